"""Tool calls get the same action and paths whatever the tool is called."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.readers.conversation import ERROR_CHARACTERS, new_call, telling, with_outcome
from nacre.values.session import Action

PATCH = "*** Begin Patch\n*** Update File: src/oven.py\n@@\n-a\n+b\n*** Add File: docs/oven.md\n+x\n*** End Patch"


@pytest.mark.parametrize(
    ("name", "arguments", "action", "paths"),
    [
        ("Bash", {"command": "make"}, Action.RUN, ()),
        ("exec_command", {"cmd": "make"}, Action.RUN, ()),
        ("run_in_terminal", {"command": "make"}, Action.RUN, ()),
        ("Read", {"file_path": "/code/oven/a.py"}, Action.READ, ("/code/oven/a.py",)),
        ("builtin_read_file", {"filepath": "a.py"}, Action.READ, ("a.py",)),
        ("read_many_files", {"paths": ["a.py", "b.py"]}, Action.READ, ("a.py", "b.py")),
        (
            "MultiEdit",
            {"file_path": "a.py", "edits": [{"old_string": "x"}]},
            Action.EDIT,
            ("a.py",),
        ),
        ("apply_patch", PATCH, Action.EDIT, ("src/oven.py", "docs/oven.md")),
        (
            "shell",
            {"command": ["apply_patch", PATCH]},
            Action.EDIT,
            ("src/oven.py", "docs/oven.md"),
        ),
        ("write_to_file", '{"path": "a.py", "content": "x"}', Action.EDIT, ("a.py",)),
        ("Grep", {"pattern": "bread", "path": "src"}, Action.SEARCH, ()),
        ("WebFetch", {"url": "https://bakery.example"}, Action.FETCH, ()),
        ("update_plan", {"plan": []}, Action.PLAN, ()),
        ("Task", {"prompt": "look"}, Action.DELEGATE, ()),
        ("mcp__files__edit_file", {"path": "a.py"}, Action.EDIT, ("a.py",)),
        ("knead", {"old_string": "x", "file": "a.py"}, Action.EDIT, ("a.py",)),
        ("knead", {"command": "make"}, Action.RUN, ()),
        ("mcp__oven__bake", {"query": "bread"}, Action.OTHER, ()),
        ("knead", {}, Action.OTHER, ()),
    ],
)
def test_call_has_an_action_and_paths(
    name: str, arguments: dict[str, Any] | str, action: Action, paths: tuple[str, ...]
) -> None:
    call = new_call(name, arguments)
    assert (call.action, call.paths) == (action, paths)


def test_invalid_path_is_ignored() -> None:
    assert new_call("Read", {"file_path": "two\nlines"}).paths == ()
    assert new_call("Read", {"file_path": "x" * 501}).paths == ()
    assert new_call("Read", {"file_path": 7, "paths": [None, {"path": "a.py"}]}).paths == ("a.py",)


def test_failed_call_keeps_the_informative_error_lines() -> None:
    output = "Exit code 1\ncollecting ...\nloaded 3 plugins\nModuleNotFoundError: No module named 'yeast'\n\n"
    call = with_outcome(new_call("Bash", {"command": "pytest"}), "exit 1", output)
    assert call.failed
    assert call.error == "ModuleNotFoundError: No module named 'yeast'"


@pytest.mark.parametrize("result", ["ok", "rejected", None])
def test_successful_call_keeps_no_output(result: str | None) -> None:
    call = with_outcome(new_call("Bash", {"command": "pytest"}), result, "error: none")
    assert (call.failed, call.error) == (False, None)


@pytest.mark.parametrize(
    "output",
    [
        "oven.ts(16,5): error TS1: no such loaf\nnpm error Lifecycle script `check` failed with error:\n"
        "npm error code 2\nnpm error command failed\n\n\nCommand exited with code 2",
        "oven.ts(16,5): error TS1: no such loaf\nmake: *** [Makefile:3: bread] Error 2\n",
        "oven.ts(16,5): error TS1: no such loaf\n    + CategoryInfo          : ParserError: (:) []\n"
        "    + FullyQualifiedErrorId : EmptyLoaf\n",
    ],
)
def test_runner_errors_do_not_hide_program_errors(output: str) -> None:
    assert telling(output) == "oven.ts(16,5): error TS1: no such loaf"


def test_runner_error_is_shown_without_program_errors() -> None:
    assert telling("done\nnpm error code ENOENT\n") == "npm error code ENOENT"
    assert telling("(no output)\nCommand exited with code 1") == ""


def test_output_without_an_error_is_shown_by_its_end() -> None:
    assert telling("one\ntwo\nthree\nfour\nfive\n") == "two\nthree\nfour\nfive"
    assert telling("") == ""


def test_long_error_line_is_truncated() -> None:
    assert len(telling(f"error: {'x' * 5000}")) == ERROR_CHARACTERS
