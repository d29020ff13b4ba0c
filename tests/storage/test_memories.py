"""Memories and their names, on both engines."""

from __future__ import annotations

from contextlib import closing
from dataclasses import fields
from datetime import date, timedelta
from pathlib import Path

import psycopg
import pytest

from nacre.base.frozen import frozen
from nacre.store import sqlite
from nacre.store.memories import LearnedMemory, Links, Memories, News
from nacre.store.review import Comparisons
from nacre.store.schema import Database, _memory_fields, memory_columns
from nacre.store.sqlite import open_database
from nacre.values.memory import (
    Confidence,
    Confirmation,
    Expiry,
    Kind,
    Link,
    Memory,
    Retirement,
    Scope,
    Source,
    Validity,
)
from nacre.values.session import Speaker, Trust
from nacre_server import connection
from nacre_server.postgres import PostgresDatabase
from tests.storage.samples import DAY, NOON, an_id, memory, numbers, put, retired

_FULL = memory(
    1,
    'The "Ünïcode" 🐚 of it\nhas %s and :name and ? and \\u0041.',
    kind=Kind.DECISION,
    importance=3,
    expiry=Expiry.TEMPORARY,
    scope=Scope.PUBLIC,
    project="nacre",
    tags=("Zeta", "alpha", "ärger"),
    valid=Validity(date(2026, 1, 2), date(2026, 3, 4)),
    expires_on=date(2027, 1, 1),
    speaker=Speaker.AGENT,
    trust=Trust.UNTRUSTED,
    confidence=Confidence.INFERRED,
    confidence_score=0.1,
    canonical_key="a/b",
    evergreen=True,
    author="Ünal",
    triggers=("deploy", "ship it"),
    suppressed_contexts=("session-start",),
    source=Source("claude-code:one", ("t1", "t2"), "/srv/one.jsonl"),
    confirmed=(Confirmation(NOON, "codex:two", ("t9",)), Confirmation(NOON + DAY)),
    links=(
        Link("alternative_to", an_id(3), "because", None, 0.25, Validity(date(2026, 1, 1), None)),
        Link("related_to", an_id(2), None, "reflect"),
    ),
    superseded_by=an_id(2),
    retired=Retirement(NOON + DAY, "why not"),
    inbox=True,
    proposed=True,
    extra={"aliases": ["other"], "deep": {"b": [1, 2.5, None, True], "a": "é"}},
)


def test_memory_is_stored_with_every_field(database: Database) -> None:
    store = put(database, _FULL, memory(2))
    actual = store.find(an_id(1))
    assert actual == _FULL
    assert actual is not None
    assert actual.extra == _FULL.extra
    assert store.find(an_id(9)) is None


def test_replaced_memory_is_complete_and_gets_a_new_row(
    database: Database,
) -> None:
    store = put(database, _FULL)
    before = store.last_row()
    plain = memory(1, "Plain.")
    put(database, plain)
    assert store.find(an_id(1)) == plain
    assert Links(database).of(an_id(1)) == []
    assert store.last_row() > before
    last = store.last_row()
    with database.transaction():
        store.delete(an_id(1))
        store.delete(an_id(1))
    put(database, memory(2))
    assert store.last_row() > last
    assert store.all_ids() == {an_id(2)}


def test_memory_is_found_by_either_end_of_its_id(database: Database) -> None:
    store = put(
        database, memory(0x1A), memory(0x2A), memory(0x2B), memory(0x3B), memory(0x4B, **retired())
    )
    assert numbers(store.find_like("0193-001a")) == [0x1A]
    assert numbers(store.find_like("0193")) == [0x1A, 0x2A, 0x2B]
    assert numbers(store.find_like("002b")) == [0x2B]
    assert numbers(store.find_like("-004b")) == [0x4B]
    assert numbers(store.find_like("a0193-001a")) == []
    assert numbers(store.find_like("1a")) == []
    assert numbers(store.find_like("Subject 26")) == [0x1A]


def test_subjects_match_in_any_letter_case(database: Database) -> None:
    store = put(
        database,
        memory(1, subject="Ärger mit GRÖSSE"),
        memory(2, subject="ärger mit größe"),
        memory(3, subject="ΑΒΓ"),
        memory(4, subject="Plain", **retired()),
        memory(5, subject="PLAIN", days=1, **retired()),
    )
    assert numbers(store.find_like("ÄRGER MIT GRÖSSE")) == [1]
    assert numbers(store.find_like("Ärger Mit Größe")) == [2]
    assert numbers(store.find_like("αβγ")) == [3]
    assert numbers(store.find_like("plain")) == [5]
    assert numbers(store.find_like("p%")) == []


def test_memory_states_are_counted_and_listed(database: Database) -> None:
    store = put(
        database,
        memory(1, project="one"),
        memory(2, kind=Kind.TODO, project="two"),
        memory(3, superseded_by=an_id(4), days=-2),
        memory(4, superseded_by=an_id(1), project="gone", days=-1),
        memory(5, superseded_by=an_id(6)),
        memory(6, superseded_by=an_id(5)),
        memory(7, superseded_by=an_id(99)),
        memory(8, superseded_by=an_id(9)),
        memory(9, project="gone", **retired()),
    )
    assert store.counts() == {"fact": 1, "todo": 1, "superseded": 6, "retired": 1}
    assert store.projects() == {"one", "two"}
    assert [item for item, _ in store.lost()] == [an_id(5), an_id(6), an_id(7), an_id(8)]
    rows = {item.id: row for row, item in store.by_rows(range(store.last_row() + 1)).items()}
    assert an_id(9) not in rows
    assert store.former() == {rows[an_id(3)]: rows[an_id(1)], rows[an_id(4)]: rows[an_id(1)]}
    assert numbers(store.replaced_by(an_id(1))) == [4]
    assert numbers([*store.everything()]) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert numbers(store.in_any_state([an_id(9), an_id(1), an_id(77)])) == [1, 9]
    assert numbers([*store.rows_of([an_id(9), an_id(3), an_id(1)]).values()]) == [1, 3]
    assert store.rows_of([an_id(1)])[rows[an_id(1)]].subject == "Subject 1"


def test_memory_with_equal_content_or_key_is_found(database: Database) -> None:
    store = put(
        database,
        memory(1, "One  two", **retired(), days=3),
        memory(2, "one two"),
        memory(3, "One two", days=1),
        memory(4, "One two", project="a"),
    )
    assert store.same_content("ONE TWO", None) == an_id(3)
    assert store.same_content("one two", "a") == an_id(4)
    assert store.same_content("one two", "b") is None


def test_memories_of_a_session_and_a_file_are_found(database: Database) -> None:
    mine = Source("codex:one", ("t1", "t2"), "/srv/a.md")
    again = (Confirmation(NOON, "codex:one", ("t3",)),)
    store = put(
        database,
        memory(1, source=mine),
        memory(2, confirmed=again, **retired()),
        memory(3, **retired(), source=mine),
    )
    assert sorted(store.known_of("codex:one"), key=lambda item: item.id) == [
        LearnedMemory(an_id(1), Kind.FACT, "Content 1.", frozenset({"t1", "t2"})),
        LearnedMemory(an_id(2), Kind.FACT, "Content 2.", frozenset({"t3"})),
        LearnedMemory(an_id(3), Kind.FACT, "Content 3.", frozenset({"t1", "t2"})),
    ]
    assert numbers(store.of_files(["/srv/a.md", "/srv/b.md"])) == [1]
    assert store.of_files([]) == []


def test_news_are_relevant_memories_stored_by_others(database: Database) -> None:
    store = put(database, memory(1))
    mark = store.last_row()
    put(
        database,
        memory(2),
        memory(3, project="nacre"),
        memory(4, project="other"),
        memory(5, importance=4),
        memory(6, trust=Trust.UNTRUSTED),
        memory(7, inbox=True),
        memory(8, proposed=True),
        memory(9, source=Source("codex:mine")),
        memory(10, source=Source("codex:yours")),
        memory(11, expires_on=(NOON - DAY).date()),
        memory(12, valid=Validity(until=(NOON - 2 * DAY).date())),
        memory(13, valid=Validity(until=(NOON - DAY).date())),
        memory(14, days=-9),
        memory(15, **retired()),
    )
    query = News(mark, an_id(0), NOON - DAY, ("codex:mine",), "nacre", 5, 20)
    assert numbers([item for _, item in store.news(query)]) == [2, 3, 10, 13]
    assert [row for row, _ in store.news(query)] == sorted(
        store.rows_of([an_id(n) for n in (2, 3, 10, 13)])
    )
    beyond = News(store.last_row() + 1, an_id(3), NOON - DAY, (), None, 5, 3)
    assert numbers([item for _, item in store.news(beyond)]) == [9, 10, 13]
    assert store.has_stored(mark, ["codex:mine"], None)
    assert not store.has_stored(store.last_row(), ["codex:mine"], None)
    put(database, memory(16, speaker=Speaker.AGENT, project="nacre"))
    last = store.last_row() - 1
    assert store.has_stored(last, [], "nacre")
    assert not store.has_stored(last, [], None)


def test_staleness_is_kept_until_the_memory_changes(database: Database) -> None:
    store = put(database, memory(1), memory(2), memory(3, **retired()))
    store.set_stale(
        [
            (an_id(1), 0.5, "a file"),
            (an_id(2), 0.25, "b"),
            (an_id(3), 1.0, "c"),
            (an_id(1), 0.75, "d"),
        ]
    )
    assert store.stale() == {an_id(1): (0.75, "d"), an_id(2): (0.25, "b")}
    put(database, memory(2, updated=NOON + DAY))
    assert store.stale() == {an_id(1): (0.75, "d")}
    store.set_stale([])
    assert store.stale() == {}


def test_importance_can_be_set(database: Database) -> None:
    store = Memories(database)
    put(database, memory(1))
    store.set_importance(an_id(1), 2)
    actual = store.find(an_id(1))
    assert actual
    assert actual.importance == 2


def test_links_change_without_a_new_row(database: Database) -> None:
    store = put(database, memory(1), memory(2))
    before = database.value("find_memory_row", id=an_id(1))
    with database.transaction():
        store.set_links(memory(1, links=(Link("related_to", an_id(2), strength=1.0),)))
    actual = store.find(an_id(1))
    assert actual
    assert actual.links == (Link("related_to", an_id(2), strength=1.0),)
    assert database.value("find_memory_row", id=an_id(1)) == before


def test_name_in_a_text_resolves_to_its_only_memory(database: Database) -> None:
    store = put(
        database,
        memory(1, "See [[Über Pläne]] and [[Nobody]] and [[Twice]].", project="a"),
        memory(2, subject="über pläne"),
        memory(3, subject="Twice"),
        memory(4, subject="Twice"),
    )
    links = Links(database)
    assert [(item.source, item.target, item.origin) for item in links.of(an_id(1))] == [
        (an_id(1), an_id(2), "body")
    ]
    put(database, memory(4, subject="Twice", project="a"))
    assert [numbers([item.target])[0] for item in links.of(an_id(1))] == [2, 4]
    assert store.names.lost(an_id(2), known_names=["other"]) == ["über pläne"]
    assert store.names.lost(an_id(2), known_names=["über-pläne"]) == []
    put(database, memory(2, subject="Renamed", extra={"aliases": ["ÜBER PLÄNE"]}))
    assert store.names.lost(an_id(2), known_names=[]) == []
    assert [numbers([item.target])[0] for item in links.of(an_id(1))] == [2, 4]
    with database.transaction():
        store.delete(an_id(2))
    assert [numbers([item.target])[0] for item in links.of(an_id(1))] == [4]
    put(database, memory(1, "See [[Twice]].", project="a", links=(Link("supersedes", an_id(4)),)))
    assert [(item.rel, item.origin) for item in links.of(an_id(1))] == [("supersedes", "manual")]


def test_current_memory_in_the_same_place_wins_among_equal_names(database: Database) -> None:
    put(
        database,
        memory(1, "[[Plan]]", project="a"),
        memory(2, subject="Plan", project="b"),
        memory(3, subject="Plan"),
        memory(4, subject="Plan", project="a", proposed=True),
        memory(5, subject="Plan", project="a", superseded_by=an_id(3)),
        memory(6, subject="Plan", **retired()),
    )
    assert [item.target for item in Links(database).of(an_id(1))] == [an_id(3)]


def test_neighbours_are_sorted_and_valid_on_the_day(database: Database) -> None:
    today = NOON.date()
    ended = Validity(None, today)
    store = put(
        database,
        memory(
            1, links=(Link("z", an_id(2)), Link("a", an_id(3), strength=0.9), Link("a", an_id(4)))
        ),
        memory(2, links=(Link("back", an_id(1), strength=0.1), Link("old", an_id(5), valid=ended))),
        memory(3),
        memory(4, **retired()),
        memory(5),
    )
    assert store.neighbours([an_id(1)], today) == [
        (an_id(1), an_id(3), 0.9),
        (an_id(1), an_id(2), 0.1),
        (an_id(1), an_id(2), 0.5),
    ]
    assert store.neighbours([an_id(5)], today) == []
    assert store.neighbours([an_id(5)], today - timedelta(days=1)) == [(an_id(5), an_id(2), 0.5)]


def test_comparisons_find_titles_and_pending_memories(database: Database) -> None:
    put(
        database,
        memory(1, subject="ÉCOLE"),
        memory(2, canonical_key="k"),
        memory(3, **retired()),
        memory(4, project="a", subject="école"),
        memory(5, days=-1),
    )
    store = Comparisons(database)
    rows = {
        number: database.value("find_memory_row", id=an_id(number)) or 0 for number in range(1, 6)
    }
    titled = database.all(
        "list_memories_titled", project=None, subject="école", canonical_key="k", limit=9
    )
    assert titled == [(rows[1],), (rows[2],)]
    for number in (1, 1, 3, 5):
        store.wait(an_id(number))
    assert numbers(store.queued([*rows.values()])) == [5, 1, 3]
    store.settled(an_id(1))
    assert numbers(store.queued([rows[1], rows[3]])) == [3]
    store.link_alike(an_id(1), {an_id(2): 0.123456, an_id(5): 1.0})
    store.link_alike(an_id(1), {an_id(2): 0.98765})
    assert [(item.target, item.strength) for item in Links(database).alike()] == [
        (an_id(2), 0.9877)
    ]


def test_statements_of_a_turn_include_their_superseded_state(database: Database) -> None:
    put(
        database,
        memory(1, source=Source("codex:one", ("t1",)), superseded_by=an_id(2)),
        memory(2, confirmed=(Confirmation(NOON, "codex:one", ("t1", "t2")),)),
        memory(3, source=Source("codex:one", ("t1",)), **retired()),
    )
    assert sorted(Comparisons(database).stated_in("codex:one", "t1")) == [
        ("Subject 1 Content 1.", True),
        ("Subject 2 Content 2.", False),
    ]


@frozen
class Coloured(Memory):
    """A memory with a field of a later version."""

    colour: str | None = None


ADDED = """
ALTER TABLE nacre_rows.memories ADD COLUMN colour TEXT;
CREATE OR REPLACE VIEW nacre.memories WITH (security_invoker = true) AS
SELECT {columns}, colour FROM nacre_rows.memories WHERE tenant = nacre.tenant() WITH CASCADED CHECK OPTION;
CREATE OR REPLACE VIEW nacre.active_memories WITH (security_invoker = true) AS
SELECT * FROM nacre.memories WHERE superseded_by IS NULL AND retired_at IS NULL;
"""


def test_column_of_a_later_version_is_written_and_read(
    tmp_path: Path, server_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE coloured")
    url = server_url.replace("/postgres?", "/coloured?")
    monkeypatch.setattr("nacre.store.schema.Memory", Coloured)
    caches = (_memory_fields, memory_columns, sqlite.query, connection.query)
    for cached in caches:
        cached.cache_clear()
    try:
        with (
            closing(open_database(tmp_path / "nacre.db")) as file,
            closing(PostgresDatabase(url, "one")) as server,
        ):
            file.rows("ALTER TABLE memories ADD COLUMN colour TEXT")
            columns = ", ".join([*server.columns("memories"), "tenant"])
            with psycopg.connect(url, autocommit=True) as admin:
                admin.execute(ADDED.format(columns=columns))
            for database in (file, server):
                red, blue = (
                    Coloured(
                        **{field.name: getattr(it, field.name) for field in fields(Memory)},
                        colour=colour,
                    )
                    for it, colour in ((_FULL, "red"), (memory(2), "blue"))
                )
                store = put(database, red, blue)
                assert [store.find(an_id(1)), *store.find_like(blue.subject)] == [red, blue]
    finally:
        for cached in caches:
            cached.cache_clear()
