"""Filters and lists return the same rows on both engines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nacre.store.memories import EdgeFilter, Links, Memories, UsageLog
from nacre.store.review import Reviews
from nacre.store.schema import Database
from nacre.store.search import Selection
from nacre.store.sessions import ProjectContents, Sessions
from nacre.store.sqlite import open_database
from nacre.values.memory import Expiry, Kind, Link, Memory, Scope, SessionFilter, Source, Validity
from nacre.values.recall import Filter
from nacre.values.review import Reason
from nacre.values.session import Speaker, Trust
from nacre_server.postgres import PostgresDatabase
from tests.storage.samples import DAY, NOON, an_id, memory, numbers, put, put_session, retired, turn

_TODAY = NOON.date()
_WORDS = ("Ärger", "ÄRGER", "plain", "100%", "a_b", "É", "\\", "'")


def _memories(database: Database, rows: list[int]) -> list[int]:
    memories = Memories(database).by_rows(rows)
    return numbers([memories[row] for row in rows])


def _turns(database: Database, portions: Iterator[list[int]]) -> list[str]:
    rows = [row for portion in portions for row in portion]
    sessions = Sessions(database).by_rows(rows)
    return [sessions[row].turn.id for row in rows]


def test_memories_are_filtered_by_each_field(database: Database) -> None:
    put_session(database, "one", label="Room")
    put(
        database,
        memory(1, project="a", tags=("Größe",)),
        memory(2, project="b", kind=Kind.TODO, days=1, importance=9),
        memory(3, days=2, expiry=Expiry.CORE, scope=Scope.PUBLIC),
        memory(4, days=3, speaker=Speaker.AGENT, scope=Scope.PERSONAL),
        memory(5, trust=Trust.UNTRUSTED, inbox=True),
        memory(6, proposed=True, source=Source("claude-code:one")),
        memory(7, source=Source("no colon")),
        memory(8, source=Source("codex:x:y")),
        memory(9, **retired()),
        memory(10, superseded_by="x"),
    )
    selection = Selection(database)

    def admitted(**fields: Any) -> list[int]:
        return sorted(_memories(database, [*selection.admitted_memories(Filter(**fields))]))

    assert admitted() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert admitted(projects=("a",)) == [1, 3, 4, 5, 6, 7, 8]
    assert admitted(projects=("a", "b"), strict=True) == [1, 2]
    assert admitted(exclude_projects=("a",), projects=("a", "b"), strict=True) == [2]
    assert admitted(since=NOON + DAY, until=NOON + 3 * DAY) == [2, 3]
    assert admitted(kinds=(Kind.TODO, Kind.EVENT)) == [2]
    assert admitted(tags=("GRÖßE",)) == [1]
    assert admitted(tags=("GR%",)) == []
    assert admitted(min_importance=8) == [2]
    assert admitted(expiry=(Expiry.CORE,)) == [3]
    assert admitted(scope=Scope.PUBLIC) == [3]
    assert admitted(scope=Scope.PERSONAL) == [3, 4]
    assert 4 not in admitted(owner_only=True)
    assert 5 not in admitted(trusted=True)
    assert admitted(settled=True) == [1, 2, 3, 4, 7, 8]
    assert admitted(tools=("claude-code", "codex")) == [6, 8]
    assert admitted(sessions=("Room",)) == admitted(sessions=("claude-code:one",)) == [6]
    assert admitted(sessions=("no colon", "room")) == [7]


def test_memories_are_filtered_by_validity_on_a_day(database: Database) -> None:
    put(
        database,
        memory(1, days=-9, valid=Validity(until=_TODAY)),
        memory(2, days=-9, valid=Validity(until=_TODAY - DAY)),
        memory(3, days=-9, superseded_by="x", valid=Validity(until=_TODAY)),
        memory(4, days=-9, superseded_by="x"),
        memory(5, valid=Validity(since=_TODAY - 2 * DAY)),
        memory(6, days=-9, expires_on=_TODAY),
        memory(7, days=-9, **retired()),
    )
    selection = Selection(database)
    assert sorted(
        _memories(database, [*selection.admitted_memories(Filter(as_of=_TODAY - DAY))])
    ) == [1, 2, 3, 5, 6]
    assert sorted(_memories(database, [*selection.admitted_memories(Filter(as_of=_TODAY))])) == [
        1,
        5,
        6,
    ]
    assert sorted(_memories(database, [*selection.admitted_memories(Filter(), today=_TODAY)])) == [
        1,
        5,
    ]
    assert _memories(
        database, selection.list_memories(Filter(), limit=9, offset=0, today=_TODAY)[0]
    ) == [5, 6, 1]


def test_memories_are_listed_in_each_order_with_a_total(database: Database) -> None:
    put(
        database,
        memory(1, days=1, importance=5, project="a"),
        memory(2, days=1, project="b", updated=NOON + 9 * DAY),
        memory(3, importance=9, triggers=("x",), project="a"),
        memory(4, "50% of a_b is\nÄRGER", triggers=("y",), tags=("ÉTÉ",), days=2),
    )
    selection = Selection(database)
    assert _memories(database, selection.browse_memories(Filter(), limit=3)) == [3, 4, 2]
    assert _memories(database, selection.latest_memories(Filter(), limit=3, today=_TODAY)) == [
        2,
        4,
        1,
    ]
    assert _memories(database, selection.with_triggers(Filter(), today=_TODAY)) == [3, 4]
    assert selection.projects_of_memories(Filter(), today=_TODAY) == ["b", "a"]
    rows, count = selection.list_memories(Filter(), limit=2, offset=1)
    assert (_memories(database, rows), count) == ([2, 1], 4)
    assert selection.list_memories(Filter(), limit=2, offset=9) == ([], 0)
    for words in (("0% OF", "ärger"), ("été",), ("a_b",), ("SUBJECT 4", "É")):
        rows, count = selection.list_memories(Filter(), limit=9, offset=0, words=words)
        assert (_memories(database, rows), count) == ([4], 1)
    assert selection.list_memories(Filter(), limit=9, offset=0, words=("a%b",)) == ([], 0)


def test_turns_are_filtered_and_sorted_by_latest_session(database: Database) -> None:
    put_session(
        database,
        "one",
        turn("a", minutes=1),
        turn("b", minutes=9, speaker=Speaker.AGENT),
        turn("c"),
        project="p",
        label="Room",
    )
    put_session(database, "two", turn("d", trust=Trust.UNTRUSTED, minutes=5), tool="codex")
    put_session(database, "three", turn("e"))
    selection = Selection(database)

    def newest(**fields: Any) -> list[str]:
        return _turns(database, selection.newest_turns(Filter(**fields)))

    assert newest() == ["c", "b", "d", "a", "e"]
    assert (
        newest(projects=("p",), strict=True)
        == newest(sessions=("Room",))
        == newest(sessions=("claude-code:one",))
        == ["c", "b", "a"]
    )
    assert newest(exclude_projects=("p",)) == ["d", "e"]
    assert newest(since=NOON + timedelta(minutes=2)) == ["b", "d"]
    assert newest(until=NOON + timedelta(minutes=9)) == ["d", "a"]
    assert newest(tools=("codex",)) == ["d"]
    assert newest(trusted=True, owner_only=True) == ["c", "a", "e"]
    assert newest(as_of=_TODAY) == ["b", "d", "a"]
    assert newest(as_of=_TODAY - DAY) == newest(scope=Scope.PUBLIC) == []
    assert selection.admitted_turns(Filter()) is None
    admission = selection.admitted_turns(Filter(projects=("p",), strict=True))
    assert admission is not None
    assert admission.few(2) is None
    few = admission.few(3) or []
    assert sorted(_turns(database, iter([few]))) == ["a", "b", "c"]
    every = [row for portion in selection.newest_turns(Filter()) for row in portion]
    assert admission.among(every) == set(few)
    assert admission.among([]) == set()
    sessions = Sessions(database)
    assert (sessions.authors(), sessions.projects()) == (set(), {"p"})


# Both engines, with the same rows


@pytest.fixture(scope="module")
def filled(
    server_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Database, Database]]:
    """A file and a server with the same content."""
    with ExitStack() as stack:
        databases: list[Database] = []
        for opened in (
            open_database(tmp_path_factory.mktemp("filled") / "nacre.db"),
            PostgresDatabase(server_url, "selected"),
        ):
            stack.callback(opened.close)
            _fill(opened)
            databases.append(opened)
        yield databases[0], databases[1]


def _fill(database: Database) -> None:
    projects, speakers = itertools.cycle((None, "a", "b")), itertools.cycle(Speaker)
    for number, name in enumerate(("One", "one", "ÄRGER", "ärger", "a_b", "axb", "zz")):
        author = None if number % 2 else name
        turns = [
            turn(
                f"{name}{at}",
                f"{name} {_WORDS[at]}",
                minutes=None if at == number else at * number - 9,
                speaker=next(speakers),
                author=author,
            )
            for at in range(number)
        ]
        put_session(
            database,
            name,
            *turns,
            tool=("codex", "pi")[number % 2],
            project=next(projects),
            label=name if number < 2 else None,
            title=name if number % 3 else None,
            started=None if number % 2 else NOON - number * DAY,
            model=f"m{name}",
        )
    put(database, *map(_memory, range(60)))
    for number in range(0, 60, 4):
        UsageLog(database).record(
            [an_id(number)], number, first=[an_id(number)] if number % 3 else []
        )
        Reviews(database).add(an_id(number), *_review(number), once=False)


def _review(number: int) -> tuple[Any, ...]:
    return [*Reason][number % 7], f"d{number % 3}", 1000 - number % 5


def _memory(number: int) -> Memory:
    words = _WORDS[number % len(_WORDS)]
    day = _TODAY + DAY * (number % 5 - 2)
    return memory(
        number,
        f"{words} {_WORDS[(number * 3) % 8]} {number}",
        days=number % 7 - 3,
        subject=f"{words} {number % 4}",
        kind=[*Kind][number % 7],
        project=(None, "a", "b", "Ä")[number % 4],
        importance=1 + number % 10,
        expiry=[*Expiry][number % 3],
        scope=[*Scope][number % 3],
        tags=tuple({words, _WORDS[number % 3]}),
        speaker=[*Speaker][number % 3],
        trust=[*Trust][number % 5 == 0],
        inbox=number % 11 == 0,
        proposed=number % 7 == 0,
        expires_on=day if number % 6 == 0 else None,
        valid=Validity(day if number % 2 else None, day + 2 * DAY if number % 3 else None),
        superseded_by=an_id(number + 1) if number % 8 == 0 else None,
        triggers=("t",) if number % 3 else (),
        source=Source((None, "codex:One", "pi:one", "bare")[number % 4]),
        canonical_key=words if number % 5 == 0 else None,
        links=tuple(
            Link(
                rel,
                an_id((number * 7 + at) % 60),
                strength=at / 4 or None,
                valid=Validity(day, None),
            )
            for at, rel in enumerate(("uses", "contradicts")[: number % 3])
        ),
        **(retired() if number % 9 == 0 else {}),
    )


_PROJECTS = st.lists(st.sampled_from(["a", "b", "Ä", "none"]), max_size=2, unique=True).map(tuple)
_MOMENTS = st.none() | st.integers(-4, 4).map(lambda days: NOON + days * DAY)
_FILTERS = st.builds(
    Filter,
    projects=_PROJECTS,
    strict=st.booleans(),
    exclude_projects=_PROJECTS,
    since=_MOMENTS,
    until=_MOMENTS,
    kinds=st.lists(st.sampled_from(Kind), max_size=3, unique=True).map(tuple),
    tags=st.lists(st.sampled_from(_WORDS), max_size=2).map(tuple),
    min_importance=st.none() | st.integers(1, 10),
    expiry=st.lists(st.sampled_from(Expiry), max_size=2, unique=True).map(tuple),
    scope=st.sampled_from(Scope),
    owner_only=st.booleans(),
    tools=st.lists(st.sampled_from(["codex", "pi", "bare", ""]), max_size=2).map(tuple),
    sessions=st.lists(st.sampled_from(["codex:One", "one", "One", "bare"]), max_size=2).map(tuple),
    as_of=st.none() | st.integers(-4, 4).map(lambda days: _TODAY + days * DAY),
    trusted=st.booleans(),
    settled=st.booleans(),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=_FILTERS, words=st.lists(st.sampled_from(_WORDS), max_size=2))
def test_both_engines_select_the_same_rows_in_equal_order(
    filled: tuple[Database, Database], query: Filter, words: list[str]
) -> None:
    def answers(database: Database) -> list[object]:
        selection = Selection(database)
        page, count = selection.list_memories(query, limit=9, offset=1, today=_TODAY, words=words)
        return [
            sorted(_memories(database, [*selection.admitted_memories(query)])),
            _memories(database, page),
            count if page else 0,
            _memories(database, selection.browse_memories(query, limit=9, today=_TODAY)),
            _memories(database, selection.latest_memories(query, limit=9, today=_TODAY)),
            _memories(database, selection.with_triggers(query, today=_TODAY)),
            selection.projects_of_memories(query, today=_TODAY),
            _turns(database, selection.newest_turns(query)),
        ]

    file, server = filled
    assert answers(file) == answers(server)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.builds(
        SessionFilter,
        tool=st.sampled_from([None, "codex"]),
        project=st.sampled_from([None, "a", "A"]),
        since=_MOMENTS,
        until=_MOMENTS,
        subagents=st.booleans(),
        model=st.none() | st.sampled_from(["MÄ", "m"]),
        words=st.none() | st.sampled_from([*_WORDS, "o", "_"]),
    )
)
def test_both_engines_list_the_same_sessions(
    filled: tuple[Database, Database], query: SessionFilter
) -> None:
    def answers(database: Database) -> list[object]:
        page, count = Sessions(database).page(query, limit=5, offset=1)
        return [[item.session for item in page], count]

    file, server = filled
    assert answers(file) == answers(server)


def test_both_engines_return_equal_lists_for_other_queries(
    filled: tuple[Database, Database],
) -> None:
    def answers(database: Database) -> list[object]:
        memories, sessions, links, reviews = (
            Memories(database),
            Sessions(database),
            Links(database),
            Reviews(database),
        )
        usage, ids = UsageLog(database), [an_id(number) for number in range(60)]
        rows = {
            item.id: row
            for row, item in memories.by_rows(
                [database.value("find_memory_row", id=item) or 0 for item in ids]
            ).items()
        }
        return [
            [*memories.everything()],
            [*rows],
            memories.in_any_state(ids[::3]),
            memories.counts(),
            memories.lost(),
            memories.projects(),
            [
                memories.find_like(words)
                for words in (*_WORDS, "ärger 1", "plain 2", "0193-00", "3b")
            ],
            [
                memories.same_content(f"{words} {right} {number}", "a")
                for words in _WORDS
                for right in _WORDS
                for number in (1, 9)
            ],
            memories.neighbours(ids, _TODAY),
            [links.of(item) for item in ids],
            sorted(links.at(ids[:20], _TODAY), key=repr),
            links.page(EdgeFilter(day=_TODAY), limit=99),
            links.count(_TODAY),
            links.count(_TODAY, "a"),
            links.between(_TODAY, None),
            links.map_nodes(None),
            links.map_groups(),
            links.known_files(["a.py"]),
            links.map_links(_TODAY),
            reviews.pending(),
            reviews.counts(),
            reviews.doubts(),
            reviews.doubts(both_ways=True),
            reviews.proposed(),
            reviews.low_quality(),
            usage.steps_due(),
            usage.buckets(),
            sessions.counts(),
            [item.session for item in sessions.newest(limit=-1)],
            sessions.authors(),
            sessions.projects(),
            sessions.main_sessions(2),
            sessions.unknown_senders(),
            [sessions.labels(tool) for tool in ("codex", "pi")],
            [
                [item.session.id for item in sessions.find(reference)]
                for reference in ("o", "codex:O", "ä", "a_", "pi:one")
            ],
            ProjectContents(database).sessions(),
            ProjectContents(database).memories(),
        ]

    file, server = filled
    for at, (left, right) in enumerate(zip(answers(file), answers(server), strict=True)):
        assert (at, left) == (at, right)
