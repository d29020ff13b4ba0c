"""Accounts, spaces, keys and their log on a server: for who manages it, in the name of no tenant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import errors, sql

from nacre.base.files import statements
from nacre.errors import NotAllowed
from nacre.store.postgres import PostgresDatabase
from nacre.store.postgres_connection import connect, key_of, migrate, translated, translated_errors
from nacre.store.schema import Clause, Indexed, Row, turn_clause
from nacre.store.search import Corpus, Match, Term, WordSearch
from nacre.values.recall import Filter


class Registry:
    """A connection that became no tenant. One thread at a time; the methods raise NotAllowed, StoreUnusable, and
    Unavailable where the server says nothing for ``patience`` seconds, if that is given."""

    def __init__(self, url: str, patience: float | None = None) -> None:
        self._connection = connect(url, patience=patience)
        with translated_errors():
            migrate(self._connection)

    def all(self, name: str, **values: Any) -> list[Row]:
        """All rows of a statement of ``sql/spaces``."""
        with _refusals():
            return self._connection.execute(_statement(name), values).fetchall()

    def run(self, name: str, **values: Any) -> int:
        """Run a statement of ``sql/spaces``; returns how many rows it changed."""
        with _refusals():
            return self._connection.execute(_statement(name), values).rowcount

    def is_used(self, tenant: str) -> bool:
        """Whether a tenant has written anything yet."""
        with self.transaction():
            self.run("name_tenant", space=tenant)
            return bool(self.all("read_use"))

    def weigh(self, tenant: str) -> dict[str, tuple[int, int]]:
        """How many rows each table has of a tenant, and how many bytes these take without indexes."""
        with self.transaction():
            self.run("name_tenant", space=tenant)
            self.run("wait_long")
            return {
                table: tuple(
                    self._of_rows(
                        "SELECT count(*), coalesce(sum(pg_column_size(t.*)), 0)", table, tenant
                    )[0]
                )
                for (table,) in self.all("list_tables")
            }

    def delete_rows(self, tenant: str) -> int:
        """Delete all rows of a tenant, in the transaction that is open; returns how many. Triggers may write while
        others are deleted, so it goes on until none is left."""
        self.run("name_tenant", space=tenant)
        self.run("wait_long")
        tables, deleted = [table for (table,) in self.all("list_tables")], 0
        while done := sum(self._deleted(table, tenant) for table in tables):
            deleted += done
        return deleted

    def _deleted(self, table: str, tenant: str) -> int:
        return len(self._of_rows("DELETE", table, tenant, " RETURNING 1"))

    def _of_rows(self, what: str, table: str, tenant: str, then: str = "") -> list[Row]:
        with _refusals():
            asked = sql.SQL("{} FROM nacre_rows.{} t WHERE tenant = %s{}").format(
                sql.SQL(what), sql.Identifier(table), sql.SQL(then)
            )
            return self._connection.execute(asked, (tenant,)).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All in the block, or nothing."""
        with translated_errors(), self._connection.transaction():
            yield

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


def _statement(name: str) -> str:
    return translated(statements("nacre.store", "sql/spaces")[name])


@contextmanager
def _refusals() -> Iterator[None]:
    with translated_errors():
        try:
            yield
        except errors.InsufficientPrivilege as error:
            raise NotAllowed(
                "this login at the server does not manage its spaces",
                hint="use the one that owns the database, or have it grant the schema nacre_spaces and its tables",
            ) from error


# ----------------------------------------------------------------------------
# Search by words on a server, with the ranking of a database file.


MOST_CANDIDATES = 20_000
"""Rows that are weighed hold one of the rarest words of a question: as many words as bring no more rows than this."""

_MOST_NAMES = 200
"""Identifiers that hold a part: beyond, the part is everywhere."""

_MOST_IN_PART = 1_000
"""Of turns that hold one of those, so many are put in order: who asks wants a few, or learns that there are many."""

_LEAST_IDF = 1e-6

_MEMORIES = "JOIN {source} m ON m.row = w.row"
_TURNS = "JOIN turns t ON t.row = w.row JOIN sessions s ON s.row = t.session"
_PLACES = {
    Indexed.MEMORIES: ("m.row, 0, 0", _MEMORIES),
    Indexed.TURNS: ("t.row, t.session, t.seq", _TURNS),
    Indexed.FAILURES: ("t.row, t.session, t.seq", _TURNS),
}

# The statements are fixed; {where} takes a Clause, whose SQL is fixed fragments too. Each stem of a question is a
# column, as it is much dearer to go through them row by row. k1 = 1.2 and b = 0.75 are those of FTS5.
_SCORED = """
SELECT row, length, ARRAY[{names}] AS held, {score} AS score FROM (
    SELECT w.row, w.length, 1.2 * (0.25 + 0.75 * w.length / CAST(? AS float8)) AS slope, {counts}
    FROM word_rows w WHERE w.kind = ? AND {sought} OFFSET 0
) AS counted
ORDER BY score DESC, row LIMIT ?
"""
_MATCH = """
SELECT {fields}, w.held, w.length FROM ({{{{scored}}}}) AS w {places} WHERE {{where}}
ORDER BY w.score DESC, w.row LIMIT ?
"""
_MATCH_PARTS = """
WITH found AS MATERIALIZED (
    SELECT w.row, cardinality(w.names) AS count FROM word_rows w
    WHERE w.kind = ? AND w.names <> '{{{{}}}}' AND w.names && CAST(? AS bigint[])
)
SELECT {fields} FROM (SELECT row, count FROM found LIMIT ?) AS w {places} WHERE {{where}}
ORDER BY w.count, w.row DESC LIMIT ?
"""
_AT = """
SELECT t.row, t.session, t.seq, CAST(ARRAY[{counts}] AS float8[]), w.length
FROM turns t JOIN word_rows w ON w.kind = 'turns' AND w.row = t.row
WHERE (t.session, t.seq) IN (SELECT * FROM unnest(CAST(? AS bigint[]), CAST(? AS bigint[])))
"""
_COUNT = "count_of(CAST(? AS bigint), w.keys, w.counts)"


class ServerSearch(WordSearch):
    """Full text over rows of one kind."""

    def __init__(self, database: PostgresDatabase, kind: Indexed) -> None:
        super().__init__(database)
        self._tenant = database.tenant
        self._kind = kind
        fields, places = _PLACES[kind]
        self._match = _MATCH.format(fields=fields, places=places)
        self._parts = _MATCH_PARTS.format(fields=fields, places=places)

    def corpus(self, terms: Sequence[Term]) -> Corpus:
        """How common the terms are."""
        stems = [term.stem for term in terms]
        counted = self._db.words.frequencies(self._kind, stems)
        rows, words = self._db.one("word_totals", kind=self._kind.value) or (0, 0)
        return Corpus(rows, words / max(1, rows), tuple(counted.get(stem, 0) for stem in stems))

    def vocabulary(self, initial: str, least: int, most: int) -> list[tuple[str, int]]:
        """The stems with an initial and so many characters, each with the number of its rows."""
        after = chr(ord(initial) + 1)
        found = self._db.all(
            "list_vocabulary",
            kind=self._kind.value,
            initial=initial,
            after=after,
            least=least,
            most=most,
        )
        return [(term, count) for term, count in found]

    def rows_of_stem(self, stem: str, limit: int) -> list[int]:
        """Rows that hold a stem, or a word that begins like it: what is looked for is stemmed once more."""
        again = next(iter(self._db.stems(stem)), stem)
        return [
            row
            for (row,) in self._db.all(
                "find_rows_of_stem", kind=self._kind.value, stem=again, limit=limit
            )
        ]

    def match(self, terms: Sequence[Term], where: Clause, limit: int) -> list[Match]:
        """Rows that hold any of the terms, the best by BM25 first."""
        of = self.corpus(terms)
        idf = [_idf(of.rows, count) for count in of.frequencies]
        keys = [key_of(self._tenant, self._kind, term.stem) for term in terms]
        words = _words(terms, keys, of.frequencies)
        if not words:
            return []
        sought, arrays = _sought(words)
        scored, most = _scored(len(keys), sought), limit if self._is_open(where) else -1
        values = (*idf, max(1.0, of.average_length), *keys, self._kind.value, *arrays, most)
        statement = where.into(self._match).replace("{scored}", scored)
        return [
            _to_match(row, terms)
            for row in self._db.rows(statement, (*values, *where.values, limit))
        ]

    def match_parts(
        self, names: Sequence[str], where: Clause, limit: int
    ) -> list[tuple[int, int, int]]:
        """Rows whose identifiers contain one of the names (three characters or more): (row, session, seq)."""
        known = {
            row
            for name in names
            if len(name) >= 3
            for (row,) in self._db.all("find_word_names", part=name, limit=_MOST_NAMES)
        }
        if not known:
            return []
        most = _MOST_IN_PART if self._is_open(where) else -1
        values = (self._kind.value, _array(sorted(known)), most, *where.values, limit)
        return [
            (row, session, seq)
            for row, session, seq in self._db.rows(where.into(self._parts), values)
        ]

    def _is_open(self, where: Clause) -> bool:
        """Whether all that words find passes: no more is wanted of it than in the end."""
        return where.is_open and self._kind is not Indexed.MEMORIES


def memory_search(database: PostgresDatabase) -> WordSearch:
    """Full text over memories: the subject counts most."""
    return ServerSearch(database, Indexed.MEMORIES)


class ServerTurnSearch:
    """Finds turns by words and by parts of identifiers: what a database file's
    :class:`~nacre.store.search.TurnSearch` does."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._db = database
        self._turns = ServerSearch(database, Indexed.TURNS)
        self.terms = self._turns.terms
        self.corpus = self._turns.corpus
        self.vocabulary = self._turns.vocabulary
        self.rows_of_stem = self._turns.rows_of_stem

    def match(self, terms: Sequence[Term], wanted: Filter, limit: int) -> list[Match]:
        """Turns that hold any of the terms, the best by BM25 first."""
        return self._turns.match(terms, turn_clause(wanted), limit)

    def at(self, places: Sequence[tuple[int, int]], terms: Sequence[Term]) -> list[Match]:
        """The turns at some places (session row, seq) and what they hold of the terms; places that do not exist are
        left out."""
        keys = [key_of(self._db.tenant, Indexed.TURNS, term.stem) for term in terms]
        sessions, seqs = [session for session, _ in places], [seq for _, seq in places]
        statement = _AT.format(counts=", ".join([_COUNT] * len(keys)))
        found = self._db.rows(statement, (*keys, _array(sessions), _array(seqs)))
        return [_to_match(row, terms) for row in found]

    def match_parts(
        self, names: Sequence[str], wanted: Filter, limit: int
    ) -> list[tuple[int, int, int]]:
        """Turns whose identifiers contain one of the names (three characters or more): (row, session, seq)."""
        return self._turns.match_parts(names, turn_clause(wanted), limit)


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a question: the stems it consists of, and in how many rows all of them can stand."""

    keys: tuple[int, ...]
    rows: int


def _words(terms: Sequence[Term], keys: Sequence[int], frequencies: Sequence[int]) -> list[_Word]:
    """The rarest words that stand somewhere, as many as bring a bearable number of rows."""
    stems: dict[str, list[int]] = {}
    for at, term in enumerate(terms):
        stems.setdefault(term.word, []).append(at)
    found = [
        _Word(tuple(keys[at] for at in places), min(frequencies[at] for at in places))
        for places in stems.values()
    ]
    chosen: list[_Word] = []
    for word in sorted((word for word in found if word.rows), key=lambda word: word.rows):
        if chosen and sum(one.rows for one in chosen) + word.rows > MOST_CANDIDATES:
            break
        chosen.append(word)
    return chosen


def _sought(words: Sequence[_Word]) -> tuple[str, list[str]]:
    """The condition that a row holds one of them, with its values: of a word of several stems it holds all."""
    single = [word.keys[0] for word in words if len(word.keys) == 1]
    several = [word.keys for word in words if len(word.keys) > 1]
    conditions = ["w.keys && CAST(? AS bigint[])"] * bool(single) + [
        "w.keys @> CAST(? AS bigint[])"
    ] * len(several)
    return f"({' OR '.join(conditions)})", [
        _array(keys) for keys in ([single] if single else []) + several
    ]


def _scored(stems: int, sought: str) -> str:
    """Rows that meet a condition, with what they hold of so many stems and their BM25."""
    names = [f"c{at}" for at in range(stems)]
    return _SCORED.format(
        names=", ".join(names),
        counts=", ".join(f"{_COUNT} AS {name}" for name in names),
        sought=sought,
        score=" + ".join(f"CAST(? AS float8) * {name} * 2.2 / ({name} + slope)" for name in names),
    )


def _idf(rows: int, count: int) -> float:
    """FTS5's inverse document frequency, by which it chooses the best."""
    return max(_LEAST_IDF, math.log((rows - count + 0.5) / (count + 0.5)))


def _array(values: Sequence[float]) -> str:
    return "{" + ",".join(map(repr, values)) + "}"


def _to_match(found: Row, terms: Sequence[Term]) -> Match:
    """A row, without the stems of words that it does not hold whole."""
    row, session, seq, counts, length = found
    torn = {term.word for term, count in zip(terms, counts, strict=True) if not count}
    held = {
        at: count
        for at, (term, count) in enumerate(zip(terms, counts, strict=True))
        if term.word not in torn
    }
    return Match(row, session, seq, held, length)
