"""Tenant queries use indexes despite row-level security."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.typing import NDArray

from nacre.store.schema import Indexed, Words, turn_clause
from nacre.store.search import Vectors
from nacre.store.sessions import Sessions
from nacre.values.recall import Filter
from nacre.values.session import Session
from nacre_server.connection import connect
from nacre_server.postgres import PostgresDatabase
from nacre_server.search import ServerSearch
from tests.storage.samples import turn

_ROWS, _FEW = 2000, 100
_SIZE = 384


@pytest.fixture(scope="module")
def owned(server_url: str) -> Iterator[str]:
    """A database whose owner is not a superuser, so row-level security applies to the owner, too."""
    PostgresDatabase(server_url, "first").close()
    with connect(server_url) as admin:
        admin.execute("CREATE ROLE keeper LOGIN; GRANT nacre_tenant TO keeper")
        admin.execute("CREATE DATABASE owned OWNER keeper")
        url = server_url.replace("/postgres?", "/owned?")
        with connect(url) as inside:
            inside.execute("CREATE EXTENSION vector")
        yield url.replace("postgres:@", "keeper@")


@pytest.fixture(scope="module")
def filled(owned: str) -> Iterator[PostgresDatabase]:
    """A tenant among others, with turns of many words and a vector each.

    A server may scan so few rows completely; here it does so only if no index can be used.
    """
    database = PostgresDatabase(owned, "large")
    other = PostgresDatabase(owned, "small")
    _fill(database, _ROWS)
    _fill(other, 40)
    other.close()
    with connect(owned) as keeper:
        keeper.execute("VACUUM ANALYZE")
    for way in ("seqscan", "hashjoin", "mergejoin"):
        database.rows("SELECT set_config(?, 'off', false)", [f"enable_{way}"])
    yield database
    database.close()


def _fill(database: PostgresDatabase, count: int) -> None:
    chance = random.Random(3)  # noqa: S311 - words for tests
    session = Session("claude-code", "one")
    store = Vectors(database)
    store.begin("m")
    with database.transaction():
        row = Sessions(database).upsert(session, project="p", file=None)
        texts = (" ".join(f"word{chance.randrange(2000)}" for _ in range(20)) for _ in range(count))
        Sessions(database).add_turns(
            session, row, [turn(f"{at}", text) for at, text in enumerate(texts)]
        )
        rows = [item for (item,) in database.rows("SELECT row FROM turns ORDER BY row")]
        digests = {item: [item.to_bytes(16, "big")] for item in rows}
        store.add_turn_passages(
            digests, [item.to_bytes(16, "big") for item in rows], _unit(count), through=rows[-1]
        )


def _unit(count: int) -> NDArray[np.float32]:
    vectors = np.random.default_rng(count).standard_normal((count, _SIZE)).astype(np.float32)
    unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


@contextmanager
def _counting(url: str, database: PostgresDatabase, name: str) -> Iterator[list[int]]:
    """Count the rows of a table or index that are read in the block."""
    counts: list[int] = []
    before = _read(url, database, name)
    yield counts
    counts.append(_read(url, database, name) - before)


def _read(url: str, database: PostgresDatabase, name: str) -> int:
    database.rows("SELECT CAST(pg_stat_force_next_flush() AS text)")
    database.rows("SELECT 1")
    with connect(url) as keeper:
        query = (
            "SELECT pg_stat_get_tuples_returned(of) + pg_stat_get_tuples_fetched(of)"
            " FROM CAST(%s AS regclass) AS of"
        )
        row = keeper.execute(query, (f"nacre_rows.{name}",)).fetchone()
    return int(row[0]) if row else 0


def test_words_are_found_by_index(owned: str, filled: PostgresDatabase) -> None:
    search = ServerSearch(filled, Indexed.TURNS)
    with _counting(owned, filled, "words") as read:
        matches = search.match(search.terms(["word7", "word8"]), turn_clause(Filter()), _ROWS)
    assert 10 < len(matches) < _FEW
    assert read == [len(matches)]


def test_identifiers_are_found_by_index(owned: str, filled: PostgresDatabase) -> None:
    with filled.transaction():
        (row,) = filled.rows("SELECT max(row) FROM turns")[0]
        filled.words.drop(Indexed.TURNS, [row])
        filled.words.add(Indexed.TURNS, [Words(row, ("said", "done"), "lock_gate")])
    search = ServerSearch(filled, Indexed.TURNS)
    with _counting(owned, filled, "words") as read:
        assert [
            match for match, _, _ in search.match_parts(["lock_g"], turn_clause(Filter()), 9)
        ] == [row]
    assert read[0] < _FEW


@pytest.mark.parametrize("name", ["find_texts", "find_bylines"])
def test_listed_rows_are_found_by_key(owned: str, filled: PostgresDatabase, name: str) -> None:
    rows = [row for (row,) in filled.rows("SELECT row FROM turns ORDER BY row DESC LIMIT 5")]
    with _counting(owned, filled, "turns") as read:
        assert len(filled.all(name, rows=json.dumps(rows))) == 5
    assert read[0] < _FEW


def test_embedded_texts_are_found_by_hash(owned: str, filled: PostgresDatabase) -> None:
    (row,) = filled.rows("SELECT max(row) FROM turns")[0]
    with _counting(owned, filled, "passages") as read:
        assert [*Vectors(filled).rows_of_passages([row.to_bytes(16, "big")])] == [
            row.to_bytes(16, "big")
        ]
    assert read[0] < _FEW


def test_large_vector_graph_finds_the_exact_neighbours(
    owned: str, filled: PostgresDatabase
) -> None:
    query = _unit(_ROWS)[17]
    store = Vectors(filled)
    exactly = store.nearest_turns(query, limit=10)
    with connect(owned) as keeper:
        keeper.execute(
            f"CREATE INDEX signs_of_large ON nacre_rows.signs USING hnsw ((bits::bit({_SIZE})) public.bit_hamming_ops)"
            f" WHERE tenant = 'large' AND length(bits) = {_SIZE}"
        )
    filled.rows(
        "SELECT set_config('enable_sort', 'off', false)"
    )  # comparing all is faster for few vectors
    with _counting(owned, filled, "signs_of_large") as read:
        near = store.nearest_turns(query, limit=10)
    assert read[0] > 0
    assert near[0] == exactly[0]
    assert len({item.row for item in near} & {item.row for item in exactly}) >= 8
