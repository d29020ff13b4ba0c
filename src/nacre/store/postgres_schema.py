"""Spaces on a server, for administration without a tenant, and full-text search."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psycopg import errors, sql

from nacre.base.frozen import frozen
from nacre.base.sql import statements
from nacre.errors import NotAllowedError
from nacre.store.postgres import PostgresDatabase
from nacre.store.postgres_connection import connect, key_of, migrate, translated, translated_errors
from nacre.store.schema import Clause, Indexed, Row
from nacre.store.search import Corpus, Match, Term, WordSearch


class Registry:
    """A connection without a tenant, for one thread at a time.

    Methods raise NotAllowed, UnusableStoreError, and Unavailable if the server sends nothing for
    ``patience`` seconds (if given).
    """

    def __init__(self, url: str, patience: float | None = None) -> None:
        self._connection = connect(url, patience=patience)
        with translated_errors():
            migrate(self._connection)

    def all(self, name: str, **values: Any) -> list[Row]:
        """Return all rows of a statement of ``sql/spaces``."""
        with _refusals():
            return self._connection.execute(_statement(name), values).fetchall()

    def run(self, name: str, **values: Any) -> int:
        """Run a statement of ``sql/spaces`` and return the number of changed rows."""
        with _refusals():
            return self._connection.execute(_statement(name), values).rowcount

    def is_used(self, tenant: str) -> bool:
        """Return True if a tenant has written anything."""
        with self.transaction():
            self.run("name_tenant", space=tenant)
            return bool(self.all("read_use"))

    def weigh(self, tenant: str) -> dict[str, tuple[int, int]]:
        """Return the number of a tenant's rows per table, and their size in bytes without indexes."""
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
        """Delete all rows of a tenant in the open transaction, and return their number.

        Repeats until no rows are left, because triggers may insert rows meanwhile.
        """
        self.run("name_tenant", space=tenant)
        self.run("wait_long")
        tables, deleted = [table for (table,) in self.all("list_tables")], 0
        while done := sum(
            len(self._of_rows("DELETE", table, tenant, " RETURNING 1")) for table in tables
        ):
            deleted += done
        return deleted

    def _of_rows(self, what: str, table: str, tenant: str, then: str = "") -> list[Row]:
        with _refusals():
            statement = sql.SQL("{} FROM nacre_rows.{} t WHERE tenant = %s{}").format(
                sql.SQL(what), sql.Identifier(table), sql.SQL(then)
            )
            return self._connection.execute(statement, (tenant,)).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in one transaction."""
        with translated_errors(), self._connection.transaction():
            yield

    def close(self) -> None:
        self._connection.close()


def _statement(name: str) -> str:
    return translated(statements("nacre.store", "sql/spaces")[name])


@contextmanager
def _refusals() -> Iterator[None]:
    with translated_errors():
        try:
            yield
        except errors.InsufficientPrivilege as error:
            raise NotAllowedError(
                "this login at the server does not manage its spaces",
                hint="use the one that owns the database, or have it grant the schema nacre_spaces and its tables",
            ) from error


# -- Full-text search with the ranking of a database file ---------------------


MOST_CANDIDATES = 20_000
"""Limit for the number of rows ranked: as many of the rarest words are used as stay within it."""

_MAX_NAMES = 200
"""Identifiers examined for a part. A part in more is too common."""

_MAX_UNFILTERED_ROWS = 1_000
"""Limit for sorting turns with one of these identifiers when there is no filter."""

_MIN_IDF = 1e-6

_MEMORIES = "JOIN {source} m ON m.row = w.row"
_TURNS = "JOIN turns t ON t.row = w.row JOIN sessions s ON s.row = t.session"
_PLACES = {
    Indexed.MEMORIES: ("m.row, 0, 0", _MEMORIES),
    Indexed.TURNS: ("t.row, t.session, t.seq", _TURNS),
    Indexed.FAILURES: ("t.row, t.session, t.seq", _TURNS),
}

# {where} is replaced by a Clause, whose SQL consists of fixed fragments too. Each stem of a
# question is a column, because processing stems row by row is much slower. k1 = 1.2 and b = 0.75,
# as in FTS5.
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
_STEM_COUNT = "count_of(CAST(? AS bigint), w.keys, w.counts)"


class ServerSearch(WordSearch):
    """Full-text search over rows of one kind."""

    def __init__(self, database: PostgresDatabase, kind: Indexed) -> None:
        super().__init__(database)
        self._tenant = database.tenant
        self._kind = kind
        fields, places = _PLACES[kind]
        self._match = _MATCH.format(fields=fields, places=places)
        self._parts = _MATCH_PARTS.format(fields=fields, places=places)

    def corpus(self, terms: Sequence[Term]) -> Corpus:
        stems = [term.stem for term in terms]
        counted = self._db.words.frequencies(self._kind, stems)
        rows, words = self._db.one("word_totals", kind=self._kind.value) or (0, 0)
        return Corpus(rows, words / max(1, rows), tuple(counted.get(stem, 0) for stem in stems))

    def vocabulary(self, initial: str, least: int, most: int) -> list[tuple[str, int]]:
        after = chr(ord(initial) + 1)
        rows = self._db.all(
            "list_vocabulary",
            kind=self._kind.value,
            initial=initial,
            after=after,
            least=least,
            most=most,
        )
        return [(term, count) for term, count in rows]

    def rows_of_stem(self, stem: str, limit: int) -> list[int]:
        """Return rows that contain a stem, or a word that begins with it. The query is stemmed again."""
        stem_of_query = next(iter(self._db.stems(stem)), stem)
        return [
            row
            for (row,) in self._db.all(
                "find_rows_of_stem", kind=self._kind.value, stem=stem_of_query, limit=limit
            )
        ]

    def match(self, terms: Sequence[Term], where: Clause, limit: int) -> list[Match]:
        corpus = self.corpus(terms)
        idf = [_idf(corpus.rows, count) for count in corpus.frequencies]
        keys = [key_of(self._tenant, self._kind, term.stem) for term in terms]
        words = _words(terms, keys, corpus.frequencies)
        if not words:
            return []
        sought, arrays = _condition(words)
        scored, most = _scoring_statement(len(keys), sought), limit if self._is_open(where) else -1
        values = (*idf, max(1.0, corpus.average_length), *keys, self._kind.value, *arrays, most)
        statement = where.into(self._match).replace("{scored}", scored)
        return [
            _to_match(row, terms)
            for row in self._db.rows(statement, (*values, *where.values, limit))
        ]

    def match_parts(
        self, names: Sequence[str], where: Clause, limit: int
    ) -> list[tuple[int, int, int]]:
        names_found = {
            row
            for name in names
            if len(name) >= 3
            for (row,) in self._db.all("find_word_names", part=name, limit=_MAX_NAMES)
        }
        if not names_found:
            return []
        most = _MAX_UNFILTERED_ROWS if self._is_open(where) else -1
        values = (self._kind.value, _array(sorted(names_found)), most, *where.values, limit)
        return [
            (row, session, seq)
            for row, session, seq in self._db.rows(where.into(self._parts), values)
        ]

    def at(self, places: Sequence[tuple[int, int]], terms: Sequence[Term]) -> list[Match]:
        keys = [key_of(self._tenant, self._kind, term.stem) for term in terms]
        sessions, seqs = [session for session, _ in places], [seq for _, seq in places]
        statement = _AT.format(counts=", ".join([_STEM_COUNT] * len(keys)))
        rows = self._db.rows(statement, (*keys, _array(sessions), _array(seqs)))
        return [_to_match(row, terms) for row in rows]

    def _is_open(self, where: Clause) -> bool:
        """Return True if all matches pass the condition, so that the limit applies early."""
        return where.is_open and self._kind is not Indexed.MEMORIES


def memory_search(database: PostgresDatabase) -> WordSearch:
    """Full-text search over memories. The subject has the highest weight."""
    return ServerSearch(database, Indexed.MEMORIES)


def turn_search(database: PostgresDatabase) -> WordSearch:
    """Full-text search over turns. Spoken text has a higher weight than actions."""
    return ServerSearch(database, Indexed.TURNS)


@frozen
class _Word:
    """A word of a question: its stems, and the maximum number of rows that contain all of them."""

    keys: tuple[int, ...]
    rows: int


def _words(terms: Sequence[Term], keys: Sequence[int], frequencies: Sequence[int]) -> list[_Word]:
    """Return the rarest indexed words whose total number of rows stays within the limit."""
    stems: dict[str, list[int]] = {}
    for at, term in enumerate(terms):
        stems.setdefault(term.word, []).append(at)
    words = [
        _Word(tuple(keys[at] for at in places), min(frequencies[at] for at in places))
        for places in stems.values()
    ]
    chosen: list[_Word] = []
    for word in sorted((word for word in words if word.rows), key=lambda word: word.rows):
        if chosen and sum(chosen_word.rows for chosen_word in chosen) + word.rows > MOST_CANDIDATES:
            break
        chosen.append(word)
    return chosen


def _condition(words: Sequence[_Word]) -> tuple[str, list[str]]:
    """Return the condition, with its values, that a row contains one of the words (all stems of that word)."""
    single = [word.keys[0] for word in words if len(word.keys) == 1]
    several = [word.keys for word in words if len(word.keys) > 1]
    conditions = ["w.keys && CAST(? AS bigint[])"] * bool(single) + [
        "w.keys @> CAST(? AS bigint[])"
    ] * len(several)
    return f"({' OR '.join(conditions)})", [
        _array(keys) for keys in ([single] if single else []) + several
    ]


def _scoring_statement(stems: int, sought: str) -> str:
    """Return the statement for rows that meet a condition, with their stem counts and BM25."""
    names = [f"c{at}" for at in range(stems)]
    return _SCORED.format(
        names=", ".join(names),
        counts=", ".join(f"{_STEM_COUNT} AS {name}" for name in names),
        sought=sought,
        score=" + ".join(f"CAST(? AS float8) * {name} * 2.2 / ({name} + slope)" for name in names),
    )


def _idf(rows: int, count: int) -> float:
    """Return FTS5's inverse document frequency, used for the ranking."""
    return max(_MIN_IDF, math.log((rows - count + 0.5) / (count + 0.5)))


def _array(values: Sequence[float]) -> str:
    return "{" + ",".join(map(repr, values)) + "}"


def _to_match(columns: Row, terms: Sequence[Term]) -> Match:
    """Convert a row, leaving out the stems of words that it contains only in part."""
    row, session, seq, counts, length = columns
    incomplete = {term.word for term, count in zip(terms, counts, strict=True) if not count}
    term_counts = {
        at: count
        for at, (term, count) in enumerate(zip(terms, counts, strict=True))
        if term.word not in incomplete
    }
    return Match(row, session, seq, term_counts, length)
