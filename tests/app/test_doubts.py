"""Probably outdated memories are marked until a person resolves the doubt."""

from __future__ import annotations

from datetime import timedelta

from nacre.care.database import rebuild
from nacre.memories.judge import Relation, compare
from nacre.memories.requests import StoreRequest
from nacre.memories.store import store
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter
from nacre.values.session import Speaker
from tests.app.conftest import NOON, World

OLD = "The quarry bucket is emptied on Mondays"
NEW = "The quarry bucket is emptied on Fridays"


def store_both(world: World) -> tuple[str, str]:
    """Store a pair with conflicting words in a home without vectors."""
    world.environ["NACRE_EMBEDDING_MODEL"] = "none"
    with world.open() as memory:
        old = memory.store(OLD, project="acme")
        world.clock.pass_days(1)
        new = memory.store(NEW, project="acme")
        assert new.supersedes == ()
    return old.memory_id, new.memory_id


QUESTION = "when is the quarry bucket emptied"
PROMPT = "When is the quarry bucket of acme emptied?"


def test_newer_contradicting_memory_ranks_first_and_marks_the_older(world: World) -> None:
    old, new = store_both(world)
    with world.open() as memory:
        hits = memory.recall(QUESTION).hits
    assert [(hit.memory.id, hit.outdated_by) for hit in hits] == [(new, ()), (old, (new,))]


def test_newer_memory_ranks_higher_even_after_review(
    world: World,
) -> None:
    old, new = store_both(world)
    with world.open() as memory:
        hits = memory.recall("the quarry bucket is emptied on Mondays").hits
        memory.keep(old)
        apart = memory.recall("the quarry bucket is emptied on Mondays").hits
    assert [hit.memory.id for hit in hits] == [hit.memory.id for hit in apart] == [new, old]
    assert [hit.outdated_by for hit in apart] == [(), ()]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_reworded_older_memory_keeps_its_rank(world: World) -> None:
    old, _ = store_both(world)
    world.clock.pass_days(1)
    with world.open() as memory:
        memory.edit(old, content=f"{OLD} at noon")
        assert memory.recall("the quarry bucket is emptied on Mondays").hits[0].memory.id == old


def test_repeating_the_older_statement_reverses_the_doubt(
    world: World,
) -> None:
    old, new = store_both(world)
    world.clock.pass_days(1)
    with world.open() as memory:
        assert memory.store(OLD, project="acme").memory_id == old
    rebuild(world.settings(), open_home=world.context)
    with world.open() as memory:
        hits = memory.recall(QUESTION).hits
        text = memory.context(folder="/code/acme", moment="prompt", prompt=PROMPT).text
        pending = [review.memory.id for review in memory.reviews()]
        memory.store(NEW, project="acme")
        assert [hit.memory.id for hit in memory.recall(QUESTION).hits] == [
            old,
            new,
        ]  # both have the same time
        world.clock.pass_days(1)
        memory.store(NEW, project="acme")
        back = memory.recall(QUESTION).hits
    assert [(hit.memory.id, hit.outdated_by) for hit in hits] == [(old, ()), (new, (old,))]
    assert [(hit.memory.id, hit.outdated_by) for hit in back] == [(new, ()), (old, (new,))]
    assert (OLD in text, NEW in text) == (True, False)
    assert pending == [new]


def test_agents_repetition_does_not_settle_the_owners_doubt(world: World) -> None:
    old, new = store_both(world)
    world.clock.pass_days(1)
    store(world.context(), StoreRequest(content=OLD, project="acme", speaker=Speaker.AGENT))
    with world.open() as memory:
        hits = memory.recall(QUESTION).hits
    assert [(hit.memory.id, hit.outdated_by) for hit in hits] == [(new, ()), (old, (new,))]


def test_recall_before_the_newer_date_returns_only_the_older_memory(world: World) -> None:
    old, new = store_both(world)
    with world.open() as memory:
        (before,) = memory.recall(QUESTION, filter=Filter(as_of=NOON.date())).hits
        after = memory.recall(QUESTION, filter=Filter(as_of=(NOON + timedelta(days=1)).date())).hits
    assert (before.memory.id, before.outdated_by) == (old, ())
    assert [hit.memory.id for hit in after] == [new, old]


def test_filtered_recall_returns_the_older_memory_with_its_doubt(world: World) -> None:
    old, new = store_both(world)
    with world.open() as memory:
        (hit,) = memory.recall(QUESTION, filter=Filter(until=NOON + timedelta(hours=1))).hits
    assert (hit.memory.id, hit.outdated_by) == (old, (new,))


def test_list_and_browse_show_both_contradicting_memories(world: World) -> None:
    old, new = store_both(world)
    with world.open() as memory:
        assert {item.id for item in memory.list()} == {old, new}
        assert [hit.memory.id for hit in memory.recall("", mode="browse").hits] == [new, old]


def test_prompt_context_shows_only_the_newer_memory(world: World) -> None:
    store_both(world)
    with world.open() as memory:
        text = memory.context(folder="/code/acme", moment="prompt", prompt=PROMPT).text
    assert NEW in text
    assert OLD not in text


def test_editing_importance_does_not_settle_a_doubt(world: World) -> None:
    old, _ = store_both(world)
    world.clock.pass_days(1)
    with world.open() as memory:
        memory.edit(old, importance=9)
        text = memory.context(folder="/code/acme", moment="prompt", prompt=PROMPT).text
        assert (OLD in text, NEW in text) == (False, True)
        assert [review.memory.id for review in memory.reviews()] == [old]
        memory.keep(old)
        text_after_review = memory.context(folder="/code/acme", moment="prompt", prompt=PROMPT).text
    assert (
        OLD in text_after_review,
        NEW in text_after_review,
        "says otherwise" in text_after_review,
    ) == (True, True, False)


def test_prompt_matching_only_the_older_memory_shows_its_doubt(world: World) -> None:
    old, new = store_both(world)
    with world.open() as memory:
        memory.edit(old, triggers=["parcels"])
        text = memory.context(
            folder="/code/acme", moment="prompt", prompt="Where do the parcels of acme go?"
        ).text
    assert f"{old[-8:]}; may be out of date: {new[-8:]} says otherwise)" in text
    assert NEW not in text


def test_newest_of_several_doubts_ranks_first_and_cycles_keep_all(world: World) -> None:
    for number, doubted, day in (
        (1, "2 3", 19),
        (2, "", 12),
        (3, "2", 13),
        (4, "5", 14),
        (5, "4", 15),
    ):
        links = [f"{{rel: contradicts, to: {uuid(int(part))}}}" for part in doubted.split()]
        front = f"id: {uuid(number)}\ncreated: 2026-11-{day}\nlinks: [{', '.join(links)}]"
        world.write(
            f"global/fact/{number}.md",
            f"---\n{front}\n---\nThe kiln {'abcde'[number - 1]} burns at night.\n",
        )
    with world.open() as memory:
        hits = [hit.memory.id for hit in memory.recall("when do kilns burn").hits]
    assert [hit for hit in hits if hit in (uuid(1), uuid(2), uuid(3))] == [
        uuid(1),
        uuid(3),
        uuid(2),
    ]
    assert [hit for hit in hits if hit in (uuid(4), uuid(5))] == [uuid(5), uuid(4)]


def test_contradicting_memories_of_one_time_are_both_marked(world: World) -> None:
    for number, other in ((1, 2), (2, 1)):
        front = f"id: {uuid(number)}\ncreated: 2026-11-10\nlinks: [{{rel: contradicts, to: {uuid(other)}}}]"
        world.write(
            f"global/fact/{number}.md",
            f"---\n{front}\n---\nThe kiln {'ab'[number - 1]} burns at night.\n",
        )
    with world.open() as memory:
        hits = {hit.memory.id: hit.outdated_by for hit in memory.recall("when do kilns burn").hits}
    assert hits == {uuid(1): (uuid(2),), uuid(2): (uuid(1),)}


def uuid(number: int) -> str:
    return f"019a0000-0000-7000-8000-00000000000{number}"


def test_review_choice_keep_new_supersedes_the_older_memory(world: World) -> None:
    old, new = store_both(world)
    with world.open() as memory:
        assert [(review.kind, review.id) for review in memory.reviews()] == [
            ("conflict", f"{old}+{new}")
        ]
        memory.call("review-resolve", reference=old, choice="keep-new")
        assert list(memory.reviews()) == []
        assert memory.get(old).superseded_by == new
        assert [hit.memory.id for hit in memory.recall("quarry bucket emptied").hits] == [new]


def test_keeping_the_older_memory_settles_the_doubt(world: World) -> None:
    old, new = store_both(world)
    with world.open() as memory:
        memory.keep(old)
        assert list(memory.reviews()) == []
        assert memory._home.reviews.doubts() == []
        hits = memory.recall("quarry bucket emptied").hits
    assert {hit.memory.id: hit.outdated_by for hit in hits} == {old: (), new: ()}


def memory_of(
    memory_id: str, content: str, kind: Kind = Kind.FACT, speaker: Speaker = Speaker.OWNER
) -> Memory:
    return Memory(memory_id, kind, content, content, NOON, NOON, project="acme", speaker=speaker)


def test_agents_statement_only_doubts_the_owners_statement() -> None:
    old = memory_of("1", "The jobs go over RabbitMQ", Kind.DECISION)
    new = memory_of("2", "We moved the jobs from RabbitMQ to NATS", Kind.DECISION)
    by_agent = memory_of("2", new.content, Kind.DECISION, Speaker.AGENT)
    assert compare(new, [old])[0].verdict.relation is Relation.SUPERSEDES
    assert compare(by_agent, [old])[0].verdict.relation is Relation.DOUBTS


def test_lesson_neither_replaces_nor_doubts_a_decision() -> None:
    old = memory_of("1", "The jobs go over RabbitMQ", Kind.DECISION)
    lesson = memory_of(
        "2",
        "Do not use RabbitMQ for the jobs any more: we moved the jobs from RabbitMQ to NATS",
        Kind.LESSON,
    )
    comparison = compare(lesson, [old])[0]
    assert not comparison.replaces
    assert not comparison.doubts


def test_statement_replaces_at_most_one_memory() -> None:
    memories = [
        memory_of("1", "The jobs go over RabbitMQ"),
        memory_of("2", "The mail jobs go over RabbitMQ"),
    ]
    comparisons = compare(memory_of("3", "The jobs go over NATS instead of RabbitMQ now"), memories)
    assert sum(item.replaces for item in comparisons) == 1
