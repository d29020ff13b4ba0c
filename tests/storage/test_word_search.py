"""Word search finds the same rows, counts and order on both engines."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from nacre.store.memories import Memories
from nacre.store.schema import Database, memory_clause, turn_clause
from nacre.store.search import Match, Search, WordSearch
from nacre.store.sessions import Sessions
from nacre.store.sqlite import FileDatabase, open_database
from nacre.values.memory import Kind, Memory
from nacre.values.recall import Filter
from nacre.values.session import Session, Speaker, Turn
from nacre_server.postgres import PostgresDatabase
from tests.storage.conftest import Both

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SYLLABLES = ("ka", "ro", "mi", "te", "lu", "so", "ven", "dar", "pol", "ish")
WORDS = [syllable + other for syllable in SYLLABLES for other in SYLLABLES]
QUESTIONS = (
    ["kaka"],
    ["roka", "misso"],
    ["kaka", "karo", "kami"],
    ["nothing", "polish"],
    ["sluice", "lock_gate"],
    ["水闸"],
    ["running", "gates"],
)


def search_of(database: Database, table: str) -> WordSearch:
    if isinstance(database, FileDatabase):
        return Search(database, table)
    assert database.server
    return database.server.search(table)


def memories_of(database: Database) -> WordSearch:
    return search_of(database, "memories")


def turns_of(database: Database) -> WordSearch:
    return search_of(database, "turns")


def fill(database: Database, *, seed: int = 7) -> None:
    """Store memories and turns of random words (the first are common) and some known texts."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    weights = [1 / (1 + at) for at in range(len(WORDS))]

    def text() -> str:
        return " ".join(chance.choices(WORDS, weights, k=chance.randint(3, 30)))

    memories = Memories(database)
    texts = [
        "The sluice opens by lock_gate() at noon",
        "水闸 在 中午 打开",
        "He was running the gates",
    ]
    with database.transaction():
        for at, content in enumerate([*texts, *(text() for _ in range(120))]):
            memory = Memory(
                f"{at:032x}",
                Kind.FACT,
                f"Note {at}",
                content,
                NOON,
                NOON + timedelta(hours=at),
                project="mill",
            )
            memories.put(memory)
    sessions = Sessions(database)
    with database.transaction():
        session = Session("claude-code", "s1", started=NOON)
        row = sessions.upsert(session, project="mill", file=None)
        turns = [
            Turn(
                f"t{at}",
                Speaker.OWNER if at % 2 else Speaker.AGENT,
                text_of,
                NOON + timedelta(minutes=at),
            )
            for at, text_of in enumerate([*texts, *(text() for _ in range(200))])
        ]
        sessions.add_turns(session, row, turns)


def by_content(
    database: Database, matches: Sequence[Match]
) -> dict[int, tuple[dict[int, float], int]]:
    """Return matches by content; row numbers of a server differ because they span all tenants."""
    (first,) = database.rows(
        "SELECT min(row) FROM turns"
        if matches and matches[0].session
        else "SELECT min(row) FROM memories"
    )[0]
    return {match.row - first: (match.held, match.length) for match in matches}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, server_url: str) -> Iterator[Both]:
    """The same content in a file and on a server, read-only."""
    folder = tmp_path_factory.mktemp("filled")
    with (
        closing(open_database(folder / "nacre.db")) as file,
        closing(PostgresDatabase(server_url, "filled")) as server,
    ):
        fill(file)
        fill(server)
        yield file, server


def test_words_are_found_with_their_counts(database: Database) -> None:
    fill(database)
    search = memories_of(database)
    terms = search.terms(["sluices", "lock_gate"])
    (match,) = search.match(terms[:1], memory_clause(Filter()), 5)
    assert match.held == {0: 1.0}
    assert match.length == 10
    assert search.corpus(terms[:1]).frequencies == (1,)


@pytest.mark.parametrize("words", QUESTIONS)
def test_both_engines_find_the_same_memories(filled: Both, words: list[str]) -> None:
    answers = []
    for database in filled:
        search = memories_of(database)
        terms = search.terms(words)
        corpus = search.corpus(terms)
        matches = search.match(terms, memory_clause(Filter()), 400)
        parts = search.match_parts(words, memory_clause(Filter()), 400)
        answers.append(
            (terms, corpus, by_content(database, matches), search.rows_with(words), len(parts))
        )
    assert answers[0] == answers[1]


@pytest.mark.parametrize("words", QUESTIONS)
def test_both_engines_find_the_same_turns_in_equal_order(filled: Both, words: list[str]) -> None:
    answers = []
    for database in filled:
        search = turns_of(database)
        terms = search.terms(words)
        corpus = search.corpus(terms)
        query = Filter(owner_only=True)
        matches = search.match(terms, turn_clause(query), 400)
        first = [match.row for match in search.match(terms, turn_clause(Filter()), 10)]
        answers.append(
            (
                corpus,
                by_content(database, matches),
                sorted(search.match_parts(words, turn_clause(query), 400)),
                len(first),
            )
        )
    assert answers[0] == answers[1]


def test_deleted_memory_is_neither_found_nor_counted(database: Database) -> None:
    fill(database)
    memories, search = Memories(database), memories_of(database)
    terms = search.terms(["sluice"])
    with database.transaction():
        memories.delete(f"{0:032x}")
    assert search.match(terms, memory_clause(Filter()), 5) == []
    assert search.corpus(terms).frequencies == (0,)
    assert search.corpus(terms).rows == 122


def test_vocabulary_is_listed_by_initial(database: Database) -> None:
    fill(database)
    search = memories_of(database)
    assert ("sluic", 1) in search.vocabulary("s", 3, 6)
    assert search.rows_of_stem("sluic", 5) == search.rows_of_stem("sluice", 5)
