"""Memories that name a file which a later session renames or deletes."""

from __future__ import annotations

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
        calls("r-1", "Bash", AT, command=command),
        gives("r-1", "", AT, fails=is_error),
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
        (
            *ran("rm config/gate.yaml"),
            calls("w-1", "Write", AT, file_path="config/gate.yaml", content="port: 1"),
            gives("w-1", "", AT),
        ),
    ],
    ids=["another file", "a failed command", "only read", "written again"],
)
def test_other_commands_doubt_nothing(world: World, records: tuple[dict[str, Any], ...]) -> None:
    assert after(world, *records) == []


def test_a_memory_that_names_no_file_is_not_doubted(world: World) -> None:
    content = "The gate of the harbour is painted green every spring."
    assert after(world, *ran("rm config/gate.yaml"), content=content) == []
