"""What is probably outdated is marked, and a person settles it."""

from __future__ import annotations

from nacre.app import reviewing
from nacre.app.comparing import compare
from nacre.dedup.judge import Relation
from nacre.model.memory import Kind, Memory
from nacre.model.session import Speaker
from tests.app.conftest import NOON, World

OLD = "Uploads may be 10 MB"
NEW = "The upload limit is 25 MB"


def store_both(world: World) -> tuple[str, str]:
    with world.open() as memory:
        old = memory.store(OLD, project="acme")
        world.clock.pass_days(1)
        new = memory.store(NEW, project="acme")
        assert new.supersedes == ()
    return old.memory_id, new.memory_id


def test_the_newer_one_comes_first_and_the_older_one_says_what_may_have_outdated_it(world: World) -> None:
    old, new = store_both(world)
    with world.open() as memory:
        hits = memory.recall("how many MB may uploads be").hits
    assert [hit.memory.id for hit in hits] == [new, old]
    assert [hit.outdated_by for hit in hits] == [(), (new,)]


def test_the_pair_waits_for_a_person_who_lets_the_newer_one_hold(world: World) -> None:
    old, new = store_both(world)
    context = world.context()
    waiting = reviewing.pending(context)
    assert [(one.memory.id, one.entry.reason.value) for one in waiting] == [(old, "contradicted")]
    reviewing.replace_outdated(context, [old])
    assert reviewing.pending(context) == []
    found = context.memories.find(old)
    assert found is not None
    assert found.superseded_by == new
    context.database.close()
    with world.open() as memory:
        assert [hit.memory.id for hit in memory.recall("uploads MB").hits] == [new]


def test_a_person_who_keeps_it_is_not_asked_again_and_both_hold(world: World) -> None:
    old, new = store_both(world)
    context = world.context()
    reviewing.dismiss(context, [old])
    assert reviewing.pending(context) == []
    assert context.reviews.doubts() == []
    context.database.close()
    with world.open() as memory:
        hits = memory.recall("uploads MB").hits
    assert {hit.memory.id: hit.outdated_by for hit in hits} == {old: (), new: ()}


def said(memory_id: str, content: str, kind: Kind = Kind.FACT, speaker: Speaker = Speaker.OWNER) -> Memory:
    return Memory(memory_id, kind, content, content, NOON, NOON, project="acme", speaker=speaker)


def test_what_only_the_agent_said_ends_nothing_of_the_owner() -> None:
    old = said("1", "The jobs go over RabbitMQ", Kind.DECISION)
    new = said("2", "We moved the jobs from RabbitMQ to NATS", Kind.DECISION)
    by_agent = said("2", new.content, Kind.DECISION, Speaker.AGENT)
    assert compare(new, [old])[0].verdict.relation is Relation.SUPERSEDES
    assert compare(by_agent, [old])[0].verdict.relation is Relation.DOUBTS


def test_a_lesson_ends_no_decision() -> None:
    old = said("1", "The jobs go over RabbitMQ", Kind.DECISION)
    lesson = said(
        "2", "Do not use RabbitMQ for the jobs any more: we moved the jobs from RabbitMQ to NATS", Kind.LESSON
    )
    found = compare(lesson, [old])[0]
    assert not found.replaces
    assert not found.doubts


def test_one_statement_ends_one_other() -> None:
    both = [said("1", "The jobs go over RabbitMQ"), said("2", "The mail jobs go over RabbitMQ")]
    found = compare(said("3", "The jobs go over NATS instead of RabbitMQ now"), both)
    assert sum(one.replaces for one in found) == 1
