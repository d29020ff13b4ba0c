"""Memories that name a file which a later session renames or deletes."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.app.conftest import World, doubts, says
from tests.app.test_deeds import calls, gives

AT = "2026-11-18T09:00:00.000Z"
MEMORY = "The port of the gate is set in config/gate.yaml and nowhere else."


def after(world: World, *records: dict[str, Any], content: str = MEMORY) -> list[str]:
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


def ran(command: str, *, is_error: bool = False) -> tuple[dict[str, Any], ...]:
    return (
        calls(command, "Bash", AT, command=command),
        gives(command, "", AT, fails=is_error),
    )


@pytest.mark.parametrize(
    "command",
    [
        "git mv config/gate.yaml config/gate.toml",
        "cd /code && rm -f config/gate.yaml && git status",
        "git rm -q ./config/gate.yaml",
    ],
)
def test_a_renamed_or_deleted_file_doubts_its_memories(world: World, command: str) -> None:
    assert after(world, *ran(command)) == [f"a later session ran: {command}"]


@pytest.mark.parametrize(
    "records",
    [
        ran("git mv config/lamp.yaml config/lamp.toml"),
        ran("git rm config/gate.yaml", is_error=True),
        ran("cat config/gate.yaml"),
        ran("git rm --cached config/gate.yaml"),
        ran("git mv config/gate.yaml config/old.yaml")
        + ran("git mv config/old.yaml config/gate.yaml"),
        (
            *ran("rm config/gate.yaml"),
            calls("w-1", "Write", AT, file_path="config/gate.yaml", content="port: 1"),
            gives("w-1", "", AT),
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
def test_other_commands_doubt_nothing(world: World, records: tuple[dict[str, Any], ...]) -> None:
    assert after(world, *records) == []


def test_a_memory_that_names_no_file_is_not_doubted(world: World) -> None:
    content = "The gate of the harbour is painted green every spring."
    assert after(world, *ran("rm config/gate.yaml"), content=content) == []


@pytest.mark.parametrize(
    ("content", "records", "reason"),
    [
        (
            "Files in src/pump/old.py count strokes, since the meter is blind.",
            (*ran("git rm -r src/pump"), *ran('git commit -m "remove src/pump"')),
            "src/pump",
        ),
        (
            "The pump is read by readPump every minute, since it forgets its state.",
            ran("git grep -l readPump | xargs sed -i 's/readPump/samplePump/g'"),
            "samplePump/g'",
        ),
    ],
)
def test_renamed_or_deleted_folder_or_name_doubts_its_memories(
    world: World, content: str, records: tuple[dict[str, Any], ...], reason: str
) -> None:
    (why,) = after(world, *records, content=content)
    assert why.startswith("a later session ")
    assert why.endswith(reason)


GONE = ran("git grep -l fetch_with_retry | xargs sed -i 's/fetch_with_retry/fetch_patiently/g'")


@pytest.mark.parametrize(
    ("content", "records"),
    [
        ("Call fetch_with_retry.", (*GONE, *ran("git checkout -- gate.py"))),
        ("Call fetch_with_retry.", (*GONE, *ran("grep -rn fetch_with_retry src"))),
        ("fetch_with_retry was renamed to fetch_patiently on purpose.", GONE),
        ("The process waits for the tide.", ran("grep -rl x | xargs sed -i 's/process/flowing/g'")),
        ("The gate.py opens the gate.", ran("git mv src/gate.py lib/gate.py")),
        ("The gate.py opens the gate.", ran("rm -rf tmp/gate.py")),
    ],
    ids="reverted|still found|says so|a word|same name|elsewhere".split("|"),
)
def test_a_name_that_may_still_exist_doubts_nothing(
    world: World, content: str, records: tuple[dict[str, Any], ...]
) -> None:
    assert after(world, *records, content=f"{content} It is slow otherwise.") == []


RENAMED = ran("git mv config/gate.yaml config/wharf.yaml")


@pytest.mark.parametrize(
    "meant", [{"sessions": ("claude-code:5e55-0001",)}, {"match": "wharf.yaml"}]
)
def test_forgotten_words_are_removed_from_doubts(world: World, meant: dict[str, Any]) -> None:
    after(world, *RENAMED)
    with world.open() as memory:
        memory.forget(memory.plan_forgetting(**meant))
        assert not doubts(memory._home)
        assert [hit.doubt for hit in memory.recall(MEMORY).hits] == [None]
    with closing(sqlite3.connect(world.settings().database)) as database:
        assert "wharf" not in str(database.execute("SELECT * FROM review_queue").fetchall())


@pytest.mark.parametrize("content", [None, "The port of the gate is set in config/wharf.yaml."])
def test_undo_of_a_review_restores_its_doubt_and_text(world: World, content: str | None) -> None:
    after(world, *RENAMED)
    world.clock.pass_days(1)
    with world.open() as memory:
        (doubt,) = doubts(memory._home)
        memory.keep(doubt.memory.id, content=content)
        assert not doubts(memory._home)
        memory.undo()
        (restored,) = doubts(memory._home)
        (hit,) = memory.recall(MEMORY).hits
    assert (restored.memory.content, restored.detail) == (MEMORY, doubt.detail)
    assert hit.doubt == doubt.detail


def test_undo_of_a_retirement_restores_the_doubt(world: World) -> None:
    (detail,) = after(world, *RENAMED)
    world.clock.pass_days(1)
    with world.open() as memory:
        (doubt,) = doubts(memory._home)
        memory.retire(doubt.memory.id)
        memory.undo()
        assert [hit.doubt for hit in memory.recall(MEMORY).hits] == [detail]
