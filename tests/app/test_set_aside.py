"""What rules of earlier versions wrote: candidates after the upgrade, unless somebody used it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from nacre.values.memory import Confidence, Kind, Memory, Source
from tests.app.conftest import World, says
from tests.older_homes import make_older

JUNK = "The tests of the invoice page are red again because the fixture is stale."
USED = "The invoice page is rendered by the old template engine."
EXPLICIT = "Always run the linter before you commit."


@pytest.fixture
def upgraded(world: World) -> World:
    """A home of the version before, with three memories that its rules wrote; one of them was recalled."""
    world.transcript(
        "one", says("user", JUNK, uuid="t0"), says("user", USED, uuid="t1"), says("user", EXPLICIT, uuid="t2"),
        says("assistant", "I will.", uuid="t3"),
    )  # fmt: skip
    with world.open() as memory:
        memory.ingest(extract=False)
    said = datetime(2026, 11, 18, 9, tzinfo=UTC)
    context = world.context()
    written = [
        Memory(
            id=context.ids(), kind=Kind.FACT, subject=content[:40], content=content, created=said, updated=said,
            project="acme-billing", confidence=Confidence.INFERRED,
            source=Source("claude-code:5e55-0001", (f"t{number}",)),
        )
        for number, content in enumerate((JUNK, USED, EXPLICIT))
    ]  # fmt: skip
    with context.change("store") as change, change.transaction():
        change.put(written)
    context.close()
    with world.open() as memory:
        memory.recall("which template engine renders the invoice page?", limit=1)
    make_older(world.home, 27, "DROP TABLE memory_names; DROP TABLE mentions")
    return world


def contents(world: World) -> set[str]:
    with world.open() as memory:
        return {one.content for one in memory.list()}


def test_what_nobody_used_and_nobody_said_plainly_is_a_candidate_after_the_upgrade(upgraded: World) -> None:
    with upgraded.open() as memory:
        assert memory.ingest().set_aside == 1
        assert [one.memory.content for one in memory.call("candidates").candidates] == [JUNK]
        assert memory.ingest().set_aside == 0
    assert contents(upgraded) == {USED, EXPLICIT}


def test_one_undo_brings_them_back_and_they_stay(upgraded: World) -> None:
    with upgraded.open() as memory:
        memory.ingest()
        (done,) = (one.operation for one in memory.log() if one.operation.action == "set aside")
        memory.undo(done.id)
    assert contents(upgraded) == {JUNK, USED, EXPLICIT}
    with upgraded.open() as memory:
        assert not memory.call("candidates").candidates
        assert memory.ingest().set_aside == 0
    assert contents(upgraded) == {JUNK, USED, EXPLICIT}


def test_one_that_is_kept_in_review_is_the_memory_that_it_was(upgraded: World) -> None:
    with upgraded.open() as memory:
        memory.ingest()
        (waits,) = memory.call("candidates").candidates
        memory.call("candidate-keep", reference=waits.memory.id)
        assert not memory.call("candidates").candidates
        assert memory.get(waits.memory.id).content == JUNK
    assert contents(upgraded) == {JUNK, USED, EXPLICIT}


def test_one_that_is_kept_in_other_words_is_a_memory_of_its_own(upgraded: World) -> None:
    words = "The fixture of the invoice tests goes stale at each release."
    with upgraded.open() as memory:
        memory.ingest()
        (waits,) = memory.call("candidates").candidates
        memory.call("candidate-keep", reference=waits.memory.id, content=words)
        assert not memory.call("candidates").candidates
    assert contents(upgraded) == {words, USED, EXPLICIT}
