"""A tool call is summarised in one line, with its outcome and effects."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.readers.conversation import (
    INPUT_CHARACTERS,
    new_call,
    outcome,
    with_outcome,
)

PATCH = (
    "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: b.py\n+z\n*** End Patch"
)


@pytest.mark.parametrize(
    ("name", "arguments", "brief"),
    [
        ("Bash", {"command": "ls -la", "description": "List files"}, "ls -la"),
        ("Read", {"file_path": "/a/b.py", "limit": 5}, "/a/b.py"),
        ("Grep", {"pattern": "def x", "path": "src"}, "def x in src"),
        ("Glob", {"pattern": "**/*.py"}, "**/*.py"),
        ("WebFetch", {"url": "https://a.example", "prompt": "Summarise"}, "https://a.example"),
        ("WebSearch", {"query": "oak height"}, "oak height"),
        ("Task", {"description": "Count oaks", "prompt": "Count all the oaks"}, "Count oaks"),
        ("TodoWrite", {"todos": [{"content": "plant"}, {"content": "water"}]}, "plant; water"),
        ("shell", {"command": ["bash", "-lc", "git status | head"]}, "git status | head"),
        ("shell", '{"command": ["rg", "two words"]}', "rg 'two words'"),
        (
            "shell",
            {"command": ["bash", "-lc", f"apply_patch <<'P'\n{PATCH}\nP"]},
            "apply_patch src/a.py, b.py",
        ),
        ("apply_patch", PATCH, "src/a.py, b.py"),
        ("apply_patch", {"input": PATCH}, "src/a.py, b.py"),
        ("update_plan", {"plan": [{"step": "dig", "status": "pending"}]}, "[ ] dig"),
        ("edit", {"path": "a.ts", "oldText": "a", "newText": "b"}, "a.ts"),
        ("web_search", {"type": "search", "query": "oak"}, "oak"),
        ("anything", {"count": 3, "tree": "oak"}, "oak"),
        ("anything", {}, ""),
        ("anything", "not json", "not json"),
        ("anything", '{"torn', '{"torn'),
    ],
)
def test_call_is_summarised_in_a_single_line(name: str, arguments: Any, brief: str) -> None:
    assert new_call(name, arguments).input == brief


def test_long_input_is_kept_for_the_redactor_within_limits() -> None:
    """A heredoc may contain a whole file, and truncation before redaction would hide half a
    secret."""
    assert len(new_call("Bash", {"command": "echo " + "x" * 1_000}).input) == 1_005
    assert len(new_call("Bash", {"command": "echo " + "x " * 50_000}).input) == INPUT_CHARACTERS


def test_exit_code_takes_precedence_over_the_error_flag() -> None:
    assert outcome("boom", exit_code=2, is_error=True) == "exit 2"
    assert outcome("boom", exit_code=0) == "ok"


def test_error_is_summarised_by_its_first_line() -> None:
    assert (
        outcome("\n<tool_use_error>Error: no such file\nmore", is_error=True)
        == "error: no such file"
    )
    assert outcome("", is_error=True) == "error"
    assert outcome("fine") == "ok"
    assert len(outcome("x" * 99_999, is_error=True)) <= INPUT_CHARACTERS + len("error: ")


def test_plan_lists_unfinished_items_first() -> None:
    steps = [
        ("dig", "completed"),
        ("plant", "in_progress"),
        ("burn it down", "cancelled"),
        ("water", "pending"),
    ]
    todos = [{"content": content, "status": status} for content, status in steps]
    assert new_call("TodoWrite", {"todos": todos}).input == "[ ] plant; [ ] water; [x] dig"
    assert new_call("TaskUpdate", {"taskId": "3", "status": "completed"}).input == "#3 completed"


def test_call_effects_require_a_known_command_and_success() -> None:
    commit = new_call(
        "Bash", {"command": "cd /code/grove && git commit -qm 'Plant oaks' && gh pr create --fill"}
    )
    output = "[oaks 0a1b2c3] Plant oaks\n 2 files changed\nhttps://git.example/grove/oaks/pull/7\n"
    assert with_outcome(commit, "ok", output).made == (
        "commit 0a1b2c3",
        "https://git.example/grove/oaks/pull/7",
    )
    assert with_outcome(commit, "exit 1", output).made == ()
    looked = new_call("Bash", {"command": "cat notes.txt"})
    assert with_outcome(looked, "ok", output).made == ()
    task = new_call("TaskCreate", {"subject": "Water the oaks"})
    assert with_outcome(task, "ok", "Task #4 created successfully: Water the oaks").made == (
        "task 4",
    )
