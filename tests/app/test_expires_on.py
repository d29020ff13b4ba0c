"""A memory is left out of recall and context from its ``expires_on`` day on; its file stays as it is."""

from __future__ import annotations

from datetime import date

import pytest

from nacre.values.memory import Kind, Memory
from tests.app.conftest import World

LAST = date(2026, 11, 21)
CONTENT = "Staging runs on the spare cluster until the move is done."


@pytest.fixture
def staged(world: World) -> Memory:
    with world.open() as memory:
        outcome = memory.store(CONTENT, kind=Kind.PREFERENCE, importance=9, expires_on=LAST)
        return memory.get(outcome.memory_id)


def recalled(world: World) -> list[str]:
    with world.open() as memory:
        return [hit.memory.content for hit in memory.recall("where does staging run?").hits]


def test_memory_is_not_recalled_from_its_expiry_date(world: World, staged: Memory) -> None:
    assert recalled(world) == [CONTENT]
    world.clock.pass_days(1)
    assert recalled(world) == []


def test_session_start_omits_an_expired_memory(world: World, staged: Memory) -> None:
    with world.open() as memory:
        assert CONTENT in memory.context().text
    world.clock.pass_days(1)
    with world.open() as memory:
        assert CONTENT not in memory.context().text


def test_expiry_leaves_the_file_unchanged(world: World, staged: Memory) -> None:
    (file,) = world.vault.rglob("*staging*.md")
    before = file.read_bytes()
    assert b"\nexpires_on: 2026-11-21\n" in before
    world.clock.pass_days(30)
    assert recalled(world) == []
    assert file.read_bytes() == before
    with world.open() as memory:
        assert [one.expires_on for one in memory.list()] == [LAST]


def test_later_expiry_date_in_the_file_restores_the_memory(world: World, staged: Memory) -> None:
    world.clock.pass_days(2)
    (file,) = world.vault.rglob("*staging*.md")
    file.write_text(file.read_text().replace("2026-11-21", "2026-12-24"))
    assert recalled(world) == [CONTENT]
    with world.open() as memory:
        assert memory.get(staged.id).expires_on == date(2026, 12, 24)


def test_clearing_the_expiry_date_restores_the_memory(world: World, staged: Memory) -> None:
    world.clock.pass_days(2)
    with world.open() as memory:
        assert memory.edit(staged.id, expires_on=None).expires_on is None
    assert recalled(world) == [CONTENT]
    assert not [
        path for path in world.vault.rglob("*staging*.md") if "expires_on" in path.read_text()
    ]


def test_storing_an_expired_memory_again_restores_the_memory(world: World, staged: Memory) -> None:
    world.clock.pass_days(5)
    with world.open() as memory:
        outcome = memory.store(CONTENT, kind=Kind.PREFERENCE)
        assert (outcome.action, outcome.memory_id) == ("known", staged.id)
    assert recalled(world) == [CONTENT]


def test_rebuild_keeps_the_expiry_date(world: World, staged: Memory) -> None:
    world.rebuild()
    world.clock.pass_days(1)
    assert recalled(world) == []
