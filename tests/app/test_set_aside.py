"""What rules of earlier versions wrote: candidates after the upgrade, unless somebody used it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from nacre.values.memory import Confidence, Kind, Memory, Source
from nacre.values.review import Action, Reason
from tests.app.conftest import World, says
from tests.older_homes import make_older

JUNK = "The queue of letters is emptied by the script of the porter at noon."
LIKELY = "Reports of the office should be rendered as one page each since the printers jam on more."
USED = "The invoice page is rendered by the old template engine."
EXPLICIT = "Always run the linter before you commit."


@pytest.fixture
def upgraded(world: World) -> World:
    return upgraded_with(world, JUNK, Kind.FACT)


def upgraded_with(world: World, junk: str, kind: Kind) -> World:
    """A home of the version before, with three memories that its rules wrote; one of them was recalled."""
    world.transcript(
        "one", says("user", junk, uuid="t0"), says("user", USED, uuid="t1"), says("user", EXPLICIT, uuid="t2"),
        says("assistant", "I will.", uuid="t3"),
    )  # fmt: skip
    with world.open() as memory:
        memory.ingest(extract=False)
    said = datetime(2026, 11, 18, 9, tzinfo=UTC)
    context = world.context()
    written = [
        Memory(
            id=context.ids(), kind=kind, subject=content[:40], content=content, created=said, updated=said,
            project="acme-billing", confidence=Confidence.INFERRED,
            source=Source("claude-code:5e55-0001", (f"t{number}",)),
        )
        for number, content in enumerate((junk, USED, EXPLICIT))
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


def test_what_the_owner_rewrote_in_its_file_stays(upgraded: World) -> None:
    (file,) = (one for one in (upgraded.home / "vault").rglob("*.md") if JUNK in one.read_text(encoding="utf-8"))
    rewritten = JUNK.replace("at noon", "at dusk")
    file.write_text(file.read_text(encoding="utf-8").replace(JUNK, rewritten), encoding="utf-8")
    with upgraded.open() as memory:
        assert memory.ingest().set_aside == 0
    assert contents(upgraded) == {rewritten, USED, EXPLICIT}


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


def said(world: World, number: int, text: str) -> int:
    """Another session, in which the owner says something; returns how many memories it gave."""
    session = f"5e55-000{number}"
    at = f"2026-11-19T0{number}:00:00.000Z"
    told = says("user", text, uuid=f"u{number}", session=session, at=at)
    world.transcript(session, told, says("assistant", "I see.", uuid=f"a{number}", session=session, at=at))
    with world.open() as memory:
        return len(memory.ingest().memories)


def test_who_asks_to_remember_one_is_heard(upgraded: World) -> None:
    with upgraded.open() as memory:
        memory.ingest()
    assert said(upgraded, 2, f"Remember that {JUNK[0].lower()}{JUNK[1:]}") == 1
    with upgraded.open() as memory:
        assert not memory.call("candidates").candidates
        memory.undo(next(one.operation.id for one in memory.log() if one.operation.action == "set aside"))
        assert sorted(one.content for one in memory.list()) == sorted([JUNK, USED, EXPLICIT])


def test_one_that_is_said_again_elsewhere_is_a_memory_again(world: World) -> None:
    upgraded_with(world, LIKELY, Kind.DECISION)
    with world.open() as memory:
        memory.ingest()
    said(world, 2, LIKELY)
    assert LIKELY in contents(world)
    with world.open() as memory:
        assert not memory.call("candidates").candidates


def test_what_an_undo_took_out_is_brought_back_by_the_owner_alone_and_by_what_they_say_later(world: World) -> None:
    def say(name: str) -> None:
        at = f"{world.clock() - timedelta(hours=1):%Y-%m-%dT%H:%M:%S.000Z}"
        world.transcript(name, says("user", EXPLICIT, uuid=name, session=f"5e55-{name}", at=at))
        with world.open() as memory:
            memory.ingest()

    say("once")
    assert contents(world) == {EXPLICIT}
    with world.open() as memory:
        memory.undo(next(one.operation.id for one in memory.log() if one.operation.action == "ingest"))
    world.environ["CLAUDECODE"] = "1"
    with world.open() as memory:
        memory.store(EXPLICIT, project="acme-billing", quote=EXPLICIT)
    del world.environ["CLAUDECODE"]
    assert contents(world) == set()
    world.clock.pass_days(1)
    say("again")
    assert contents(world) == {EXPLICIT}


def test_one_that_the_owner_kept_in_review_stays(upgraded: World) -> None:
    context = upgraded.context()
    (junk,) = [one for one in context.memories.everything() if one.content == JUNK]
    context.reviews.add(junk.id, Reason.CONTRADICTED, "another says otherwise", Action.REVIEW, 1, once=True)
    context.close()
    with upgraded.open() as memory:
        memory.call("review-dismiss", references=(junk.id,))
        assert memory.ingest().set_aside == 0


def test_a_rebuild_before_the_first_ingest_forgets_none_of_it(upgraded: World) -> None:
    upgraded.rebuild()
    with upgraded.open() as memory:
        assert memory.ingest().set_aside == 1


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
