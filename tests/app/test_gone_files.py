"""A memory is doubted after a later session renames or deletes its file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.app.conftest import World, doubts, says
from tests.app.test_deeds import tool_call, tool_result

TIME = "2026-11-18T09:00:00.000Z"
MEMORY = "The port of the gate is set in config/gate.yaml and nowhere else."


def doubts_after(world: World, *records: dict[str, Any], content: str = MEMORY) -> list[str]:
    """Return the reasons for doubting a memory that was stored before a session."""
    with world.open() as memory:
        world.clock.pass_days(-9)
        memory.store(content=content, kind="fact", project="acme-billing")
        world.clock.pass_days(9)
    ask = says("user", "Please tidy up the settings of the gate for me.", uuid="g-0")
    world.transcript("tidy", ask, *records)
    with world.open() as memory:
        memory.ingest()
        return [item.detail or "" for item in doubts(memory._home)]


def run_command(command: str, *, is_error: bool = False) -> tuple[dict[str, Any], ...]:
    return (
        tool_call(command, "Bash", TIME, command=command),
        tool_result(command, "", TIME, fails=is_error),
    )


@pytest.mark.parametrize(
    "command",
    [
        "git mv config/gate.yaml config/gate.toml",
        "cd /code && rm -f config/gate.yaml && git status",
        "git rm -q ./config/gate.yaml",
    ],
)
def test_renamed_or_deleted_file_raises_doubt_about_its_memories(
    world: World, command: str
) -> None:
    assert doubts_after(world, *run_command(command)) == [f"a later session ran: {command}"]


@pytest.mark.parametrize(
    "records",
    [
        run_command("git mv config/lamp.yaml config/lamp.toml"),
        run_command("git rm config/gate.yaml", is_error=True),
        run_command("cat config/gate.yaml"),
        run_command("git rm --cached config/gate.yaml"),
        run_command("git mv config/gate.yaml config/old.yaml")
        + run_command("git mv config/old.yaml config/gate.yaml"),
        (
            *run_command("rm config/gate.yaml"),
            tool_call("w-1", "Write", TIME, file_path="config/gate.yaml", content="port: 1"),
            tool_result("w-1", "", TIME),
        ),
    ],
    ids=[
        "another file",
        "a failed command",
        "only read",
        "only untracked",
        "moved back",
        "written again",
    ],
)
def test_other_commands_raise_no_doubt(world: World, records: tuple[dict[str, Any], ...]) -> None:
    assert doubts_after(world, *records) == []


def test_a_memory_that_names_no_file_is_not_doubted(world: World) -> None:
    content = "The gate of the harbour is painted green every spring."
    assert doubts_after(world, *run_command("rm config/gate.yaml"), content=content) == []


@pytest.mark.parametrize(
    ("content", "records", "reason"),
    [
        (
            "Files in src/pump/old.py count strokes, since the meter is blind.",
            (*run_command("git rm -r src/pump"), *run_command('git commit -m "remove src/pump"')),
            "src/pump",
        ),
        (
            "The pump is read by readPump every minute, since it forgets its state.",
            run_command("git grep -l readPump | xargs sed -i 's/readPump/samplePump/g'"),
            "samplePump/g'",
        ),
    ],
)
def test_renamed_folder_or_name_raises_doubt_about_its_memories(
    world: World, content: str, records: tuple[dict[str, Any], ...], reason: str
) -> None:
    (why,) = doubts_after(world, *records, content=content)
    assert why.startswith("a later session ")
    assert why.endswith(reason)


RENAMING = run_command(
    "git grep -l fetch_with_retry | xargs sed -i 's/fetch_with_retry/fetch_patiently/g'"
)


@pytest.mark.parametrize(
    ("content", "records"),
    [
        ("Call fetch_with_retry.", (*RENAMING, *run_command("git checkout -- gate.py"))),
        ("Call fetch_with_retry.", (*RENAMING, *run_command("grep -rn fetch_with_retry src"))),
        ("fetch_with_retry was renamed to fetch_patiently on purpose.", RENAMING),
        (
            "The process waits for the tide.",
            run_command("grep -rl x | xargs sed -i 's/process/flowing/g'"),
        ),
        ("The gate.py opens the gate.", run_command("git mv src/gate.py lib/gate.py")),
        ("The gate.py opens the gate.", run_command("rm -rf tmp/gate.py")),
    ],
    ids="reverted|still there|on purpose|a word|same name|other folder".split("|"),
)
def test_name_that_may_still_exist_raises_no_doubt(
    world: World, content: str, records: tuple[dict[str, Any], ...]
) -> None:
    assert doubts_after(world, *records, content=f"{content} It is slow otherwise.") == []


RENAMED = run_command("git mv config/gate.yaml config/wharf.yaml")


@pytest.mark.parametrize(
    "selector", [{"sessions": ("claude-code:5e55-0001",)}, {"match": "wharf.yaml"}]
)
def test_forgotten_words_are_removed_from_doubts(world: World, selector: dict[str, Any]) -> None:
    doubts_after(world, *RENAMED)
    with world.open() as memory:
        memory.forget(memory.plan_forgetting(**selector))
        assert not doubts(memory._home)
        assert [hit.doubt for hit in memory.recall(MEMORY).hits] == [None]
    with closing(sqlite3.connect(world.settings().database)) as database:
        assert "wharf" not in str(database.execute("SELECT * FROM review_queue").fetchall())


@pytest.mark.parametrize("content", [None, "The port of the gate is set in config/wharf.yaml."])
def test_undo_of_a_review_restores_its_doubt_and_text(world: World, content: str | None) -> None:
    doubts_after(world, *RENAMED)
    world.clock.pass_days(1)
    with world.open() as memory:
        (doubt,) = doubts(memory._home)
        memory.keep(doubt.memory.id, content=content)
        assert not doubts(memory._home)
        memory.undo()
        (doubt_again,) = doubts(memory._home)
        (hit,) = memory.recall(MEMORY).hits
    assert (doubt_again.memory.content, doubt_again.detail) == (MEMORY, doubt.detail)
    assert hit.doubt == doubt.detail


def test_undo_of_a_retirement_restores_the_doubt(world: World) -> None:
    (detail,) = doubts_after(world, *RENAMED)
    world.clock.pass_days(1)
    with world.open() as memory:
        (doubt,) = doubts(memory._home)
        memory.retire(doubt.memory.id)
        memory.undo()
        assert [hit.doubt for hit in memory.recall(MEMORY).hits] == [detail]
