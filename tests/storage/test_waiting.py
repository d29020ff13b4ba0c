"""Pending candidates, reviews, doubts and tombstones, on both engines."""

from __future__ import annotations

from datetime import timedelta

from nacre.store.journal import Tombstones, VaultIndex
from nacre.store.memories import CoRecall, Edge, UsageLog
from nacre.store.review import Candidates, Doubt, Reviews
from nacre.store.schema import Database
from nacre.store.sessions import Sessions
from nacre.values.memory import (
    HeldCandidate,
    Link,
    Match,
    Project,
    Source,
    StandingRetirement,
    Tombstone,
    TombstoneKind,
    Why,
)
from nacre.values.review import QueuedReview, Reason
from tests.storage.samples import (
    DAY,
    MS,
    NOON,
    an_id,
    memory,
    numbers,
    put,
    put_session,
    retired,
    turn,
)

_DAY_MS = 86_400_000


def _candidate(
    number: int, content: str = "", *, score: float = 0.5, why: Why = Why.FOUND, **more: object
) -> HeldCandidate:
    return HeldCandidate(memory(number, content, **more), why, f"é {number}", score, NOON)


def _waiting(store: Candidates) -> list[int]:
    return numbers([item.memory for item in store.pending()])


def test_candidates_are_listed_likeliest_first_without_duplicates(
    database: Database,
) -> None:
    store = Candidates(database)
    full = _candidate(
        1,
        'Nul \0, "quotes" and \\u0000.',
        score=0.25,
        source=Source("codex:one", ("t1",)),
        extra={"a": [1]},
    )
    assert (
        store.add(
            [
                full,
                _candidate(2, score=0.75),
                _candidate(3, "Content 2."),
                _candidate(4, score=0.25),
            ]
        )
        == 3
    )
    assert store.add([_candidate(2, "Other words.")]) == 0
    assert _waiting(store) == [2, 1, 4]
    assert Reviews(database).counts()[0] == 3
    first = store.pending()[1]
    assert (first.why, first.detail, first.score, first.found) == (Why.FOUND, "é 1", 0.25, NOON)
    assert first.memory.content.replace("\ufffd", "\0") == full.memory.content
    assert (first.memory.source, first.memory.extra) == (full.memory.source, {"a": [1]})
    put(database, memory(4))
    assert _waiting(store) == [2, 1]


def test_candidate_is_found_by_either_end_of_its_id(
    database: Database,
) -> None:
    store = Candidates(database)
    store.add([_candidate(0x1A), _candidate(0x2A), _candidate(0x2B)])
    assert numbers([item.memory for item in store.find("0193-0")]) == [0x1A, 0x2A, 0x2B]
    assert numbers([item.memory for item in store.find("2a")]) == [0x2A]
    assert numbers([item.memory for item in store.find("0193-002b")]) == [0x2B]
    assert store.find("93-00") == store.find("x0193-002b") == []
    store.settle(an_id(0x2A), MS)
    assert store.find("2a") == []
    assert numbers([item.memory for item in store.settled("2a")]) == [0x2A]
    assert numbers([word.memory for word in store.with_words()]) == [0x1A, 0x2A, 0x2B]
    store.unsettle(an_id(0x2A))
    assert numbers([item.memory for item in store.find("2a")]) == [0x2A]


def test_words_of_settled_candidates_expire_after_a_day(
    database: Database,
) -> None:
    store = Candidates(database)
    store.add([_candidate(1), _candidate(2)])
    store.settle(an_id(1), MS)
    store.blank(MS + _DAY_MS)
    assert numbers([item.memory for item in store.settled("0001")]) == [1]
    store.blank(MS + _DAY_MS + 1)
    assert store.settled("0001") == []
    assert numbers([word.memory for word in store.with_words()]) == [2]
    assert store.add([_candidate(3, "Content 1.")]) == 0
    store.delete([an_id(2), an_id(2)])
    assert _waiting(store) == []


def test_candidates_are_removed_with_their_session_and_expire(database: Database) -> None:
    store = Candidates(database)
    mine, yours = Source("codex:one"), Source("codex:two")
    store.add(
        [
            _candidate(1, source=mine),
            _candidate(2, source=mine, why=Why.MINOR),
            _candidate(3, source=yours),
            _candidate(4, source=mine),
        ]
    )
    store.settle(an_id(4), MS)
    store.settle_session("codex:one")
    assert _waiting(store) == [2, 3]
    assert numbers([item.memory for item in store.settled("0004")]) == [4]
    assert (store.expire(MS), store.expire(MS + 1), store.expire(MS + 1)) == (0, 2, 0)


def test_candidate_is_removed_with_its_last_turn(database: Database) -> None:
    store = Candidates(database)
    put_session(database, "one", turn("t1"), turn("t2"), file="/srv/a")
    store.add(
        [
            _candidate(number, source=Source(f"claude-code:{session}", turns))
            for number, session, turns in (
                (1, "one", ("t1", "t2")),
                (2, "one", ("t2",)),
                (3, "two", ("t2",)),
                (4, "one", ()),
            )
        ]
    )
    with database.transaction():
        Sessions(database).retain("claude-code", "/srv/a", {"one": ["t1"]})
    assert _waiting(store) == [1, 3]


def test_candidate_shows_the_current_project_name(database: Database) -> None:
    store, vault = Candidates(database), VaultIndex(database)
    vault.save_project(Project("p1", "new", 0), [("alias", "old")])
    store.add(
        [
            _candidate(1, project="old", tags=("a", "ü"), extra={"z": 1.5, "a": None}),
            _candidate(2, project="other"),
        ]
    )
    assert [item.memory.project for item in store.pending()] == ["new", "other"]
    assert store.find(an_id(1))[0].memory == memory(
        1, project="new", tags=("a", "ü"), extra={"z": 1.5, "a": None}
    )


def test_reviews_are_listed_once_per_reason_oldest_first(database: Database) -> None:
    put(
        database,
        memory(1),
        memory(2),
        memory(3, **retired()),
        memory(4, proposed=True),
        memory(5, proposed=True),
    )
    store = Reviews(database)
    for number, reason, detail, at in (
        (2, Reason.MANUAL, "x", MS),
        (1, Reason.STALE, "é", MS),
        (1, Reason.MANUAL, "y", MS - 1),
        (1, Reason.MANUAL, "z", MS - 2),
        (3, Reason.MANUAL, "", 0),
    ):
        store.add(an_id(number), reason, detail, at, once=False)
    moment = NOON - timedelta(milliseconds=1)
    assert store.pending() == [
        QueuedReview(an_id(1), Reason.MANUAL, "y", moment),
        QueuedReview(an_id(2), Reason.MANUAL, "x", NOON),
        QueuedReview(an_id(1), Reason.STALE, "é", NOON),
    ]
    Candidates(database).add([_candidate(8)])
    assert store.counts() == (1, 4, 0)
    assert store.proposed() == [an_id(4), an_id(5)]
    assert store.settled(an_id(1)) is None
    assert (store.dismiss(an_id(1), MS + 1), store.dismiss(an_id(1), MS + 1)) == (2, 0)
    assert store.settled(an_id(1)) == (MS - 1, MS + 1)
    store.add(an_id(1), Reason.MANUAL, "y", MS, once=True)
    assert [item.memory for item in store.pending()] == [an_id(2)]
    store.add(an_id(1), Reason.MANUAL, "y", MS, once=False)
    store.reopen(an_id(1), MS + 1)
    assert [item.reason for item in store.pending() if item.memory == an_id(1)] == [
        Reason.STALE,
        Reason.MANUAL,
    ]
    store.add(an_id(2), Reason.CONTRADICTED, "", MS, once=True)
    store.settle(an_id(2), Reason.CONTRADICTED, MS)
    assert [item.reason for item in store.pending() if item.memory == an_id(2)] == [Reason.MANUAL]


def test_retired_memory_has_no_reviews_or_associations(database: Database) -> None:
    put(database, memory(1), memory(2))
    reviews, together = Reviews(database), CoRecall(database)
    reviews.add(an_id(1), Reason.MANUAL, "", MS, once=False)
    together.join([an_id(1), an_id(2)], [], 100)
    assert len(together.of([an_id(1)], 100)) == 1
    put(database, memory(1, **retired()))
    put(database, memory(1))
    assert (reviews.pending(), together.of([an_id(1)], 100)) == ([], [])
    assert reviews.settled(an_id(1)) == (MS, MS)


def test_doubts_are_listed_once_per_pair_or_both_ways(database: Database) -> None:
    contradicts = "contradicts"
    put(
        database,
        memory(1, links=(Link(contradicts, an_id(2), "one"),)),
        memory(2, links=(Link(contradicts, an_id(1), "two"), Link(contradicts, an_id(3))), days=1),
        memory(3, links=(Link(contradicts, an_id(4)),), days=2),
        memory(4, **retired()),
    )
    store = Reviews(database)
    first, second, third = (
        Doubt(an_id(2), an_id(1), "one"),
        Doubt(an_id(1), an_id(2), "two"),
        Doubt(an_id(3), an_id(2), None),
    )
    assert store.doubts() == [second, third]
    assert store.doubts(both_ways=True) == [first, second, third]
    assert store.doubts([an_id(3), an_id(4)]) == [third]
    assert store.doubts([]) == []


def test_memory_removed_from_its_document_is_unfounded(database: Database) -> None:
    put_session(database, "one", turn("t1"), tool="notes")
    source = [Source("notes:one", turns) for turns in (("t1", "t9"), ("t9",), ())]
    put(
        database,
        *(memory(at, source=item) for at, item in enumerate(source)),
        memory(3, source=Source("codex:one", ("t9",))),
    )
    assert numbers(Reviews(database).unfounded({"notes", "codex"})) == [1]


def test_low_quality_memories_are_listed(database: Database) -> None:
    put(database, memory(1), memory(2), memory(3))
    usage = UsageLog(database)
    for number, times, quality in ((2, 10, 0.1), (1, 11, 0.19), (3, 10, 0.2)):
        for at in range(times):
            usage.record([an_id(number)], MS + at, first=[an_id(number)])
        usage.set_quality(an_id(number), quality)
    assert Reviews(database).low_quality() == [(an_id(1), 0.19, 11), (an_id(2), 0.1, 10)]


def test_associations_of_memories_used_together_grow_and_fade(database: Database) -> None:
    put(database, memory(1), memory(2), memory(3), memory(4, **retired()))
    first, second, third, fourth = map(an_id, range(1, 5))
    store = CoRecall(database)
    assert store.join([second, first, fourth], [third, second], 100) == [second, first]
    assert store.of([first], 100) == [Edge(first, second, 0.1, 1), Edge(first, third, 0.1, 1)]
    store.join([first], [second], 101)
    assert store.of([second], 101) == [
        Edge(second, first, 0.1 * 0.95 + 0.1, 2),
        Edge(second, third, 0.1 * 0.95, 1),
    ]
    assert [edge.other for edge in store.of([first], 101)][:1] == [second]
    assert len(store.of([third], 113)) == 2
    assert store.of([third], 114) == []
    store.forget_faded(114)
    store.forget_faded(101)
    assert [edge.other for edge in store.of([first], 101)] == [second]
    for day in range(200, 230):
        store.join([first], [third], day)
    assert store.of([third], 229) == [Edge(third, first, 1.0, 30)]


def test_tombstones_are_unique_and_have_an_edition(database: Database) -> None:
    store = Tombstones(database)
    assert (store.edition(), store.all(), store.due()) == ("", [], set())
    words = Tombstone(TombstoneKind.WORDS, "ü", "run", "owner")
    session = Tombstone(TombstoneKind.SESSION, "codex:one", "run")
    store.add([words, session, words])
    assert (store.all(), store.edition()) == ([session, words], "1")
    store.change([], [])
    store.change([Tombstone(TombstoneKind.BEFORE, "1", "b")], [session])
    assert ([item.kind for item in store.all()], store.edition()) == (
        [TombstoneKind.BEFORE, TombstoneKind.WORDS],
        "2",
    )
    store.set_due(["b", "a"])
    assert (store.due(), store.value("due")) == ({"a", "b"}, '["a", "b"]')


def test_standing_retirements_are_listed_oldest_first(database: Database) -> None:
    store = Tombstones(database)
    item = StandingRetirement("1", "A*", Match.PATTERN, NOON, "k", "é", ("session-start", "x"))
    two = StandingRetirement("2", "b", Match.EXACT, NOON + DAY, None, None, ())
    store.add_standing([two, item, item])
    assert store.standing() == [item, two]
    store.replace_standing([two])
    assert store.standing() == [two]
