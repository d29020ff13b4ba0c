"""An expired memory is omitted from recall and context, and its file is unchanged."""

from __future__ import annotations

from datetime import date

import pytest

from nacre.values.memory import Kind, Memory
from tests.app.conftest import World

LAST = date(2026, 11, 21)
CONTENT = "Staging runs on the spare cluster until the move is done."


@pytest.fixture
def expiring(world: World) -> Memory:
    with world.open() as memory:
        outcome = memory.store(CONTENT, kind=Kind.PREFERENCE, importance=9, expires_on=LAST)
        return memory.get(outcome.memory_id)


def recall_contents(world: World) -> list[str]:
    with world.open() as memory:
        return [hit.memory.content for hit in memory.recall("where does staging run?").hits]


def test_memory_is_not_recalled_from_its_expiry_date(world: World, expiring: Memory) -> None:
    assert recall_contents(world) == [CONTENT]
    world.clock.pass_days(1)
    assert recall_contents(world) == []


def test_session_start_omits_an_expired_memory(world: World, expiring: Memory) -> None:
    with world.open() as memory:
        assert CONTENT in memory.context().text
    world.clock.pass_days(1)
    with world.open() as memory:
        assert CONTENT not in memory.context().text


def test_expiry_leaves_the_file_unchanged(world: World, expiring: Memory) -> None:
    (file,) = world.vault.rglob("*staging*.md")
    before = file.read_bytes()
    assert b"\nexpires_on: 2026-11-21\n" in before
    world.clock.pass_days(30)
    assert recall_contents(world) == []
    assert file.read_bytes() == before
    with world.open() as memory:
        assert [item.expires_on for item in memory.list()] == [LAST]


def test_later_expiry_date_in_the_file_restores_the_memory(world: World, expiring: Memory) -> None:
    world.clock.pass_days(2)
    (file,) = world.vault.rglob("*staging*.md")
    file.write_text(file.read_text().replace("2026-11-21", "2026-12-24"))
    assert recall_contents(world) == [CONTENT]
    with world.open() as memory:
        assert memory.get(expiring.id).expires_on == date(2026, 12, 24)


def test_clearing_the_expiry_date_restores_the_memory(world: World, expiring: Memory) -> None:
    world.clock.pass_days(2)
    with world.open() as memory:
        assert memory.edit(expiring.id, expires_on=None).expires_on is None
    assert recall_contents(world) == [CONTENT]
    assert not [
        path for path in world.vault.rglob("*staging*.md") if "expires_on" in path.read_text()
    ]


def test_storing_an_expired_memory_again_restores_the_memory(
    world: World, expiring: Memory
) -> None:
    world.clock.pass_days(5)
    with world.open() as memory:
        outcome = memory.store(CONTENT, kind=Kind.PREFERENCE)
        assert (outcome.action, outcome.memory_id) == ("known", expiring.id)
    assert recall_contents(world) == [CONTENT]


def test_rebuild_keeps_the_expiry_date(world: World, expiring: Memory) -> None:
    world.rebuild()
    world.clock.pass_days(1)
    assert recall_contents(world) == []
