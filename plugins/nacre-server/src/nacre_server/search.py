"""Search on a server: the full-text index, BM25 ranking, and the nearest passages."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from nacre.base.text import to_bytes
from nacre.store.schema import Clause, Indexed, Row, Words, fits_index
from nacre.store.search import Corpus, Match, Term, WordSearch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nacre_server.postgres import PostgresDatabase


# -- Full text on a server ----------------------------------------------------
# Arrays of numbered stems with an inverted index. Matches are ranked by BM25.


WEIGHTS = {
    Indexed.MEMORIES: (1.5, 1.0, 1.0),
    Indexed.TURNS: (1.0, 0.5),
    Indexed.FAILURES: (0.5, 1.0),
}
"""Weights of columns: subject over content, and spoken text over actions."""

_MAX_STEM_CHARACTERS = 200
"""Maximum length of a stored stem. PostgreSQL limits index entries to 2,700 bytes."""


def key_of(tenant: str, kind: Indexed, stem: str) -> int:
    """Return the number that stands in the index for a word stem of this tenant and kind."""
    digest = blake2b(to_bytes(f"{tenant}\0{kind}\0{stem}"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class ServerWords:
    """A server's index of words, a :class:`~nacre.store.schema.WordIndex`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._db = database
        self._tenant = database.tenant

    def add(self, kind: Indexed, rows: Sequence[Words]) -> None:
        names = self._rows_of_names(
            {name for row in rows for name in row.names.split() if fits_index(name)}
        )
        written, terms, total = [], Counter[str](), 0
        for row in rows:
            counts, length = self._count(kind, row.texts)
            counted = sorted(
                (key_of(self._tenant, kind, stem), count) for stem, count in counts.items()
            )
            terms.update(counts.keys())
            total += length
            own = sorted({names[name] for name in row.names.split() if name in names})
            written.append(
                (row.row, [key for key, _ in counted], [count for _, count in counted], length, own)
            )
        self._db.run("insert_words", kind=kind, rows=written)
        term_rows = [
            (key_of(self._tenant, kind, stem), stem[:_MAX_STEM_CHARACTERS], count)
            for stem, count in terms.items()
        ]
        self._db.run("count_in_terms", kind=kind, terms=term_rows)
        self._db.run("count_in_totals", kind=kind, rows=len(rows), words=total)

    def drop(self, kind: Indexed, rows: Sequence[int]) -> None:
        removed, words = self._db.one("delete_words", kind=kind, rows=rows) or (0, 0)
        if removed:
            self._db.run("prune_terms", kind=kind)
            self._db.run("count_in_totals", kind=kind, rows=-removed, words=-words)

    def frequencies(self, kind: Indexed, stems: Sequence[str]) -> dict[str, int]:
        keys = {key_of(self._tenant, kind, stem): stem for stem in stems}
        counts = self._db.all("count_terms_of", kind=kind, keys=[*keys])
        return {keys[key]: rows for key, rows in counts if rows > 0}

    def best(self, kind: Indexed, words: Sequence[str], where: Clause, limit: int) -> list[int]:
        search = ServerSearch(self._db, kind)
        return [match.row for match in search.match(search.terms(words), where, limit)]

    def _count(self, kind: Indexed, texts: Sequence[str]) -> tuple[dict[str, float], int]:
        counts: dict[str, float] = {}
        length = 0
        for weight, text in zip(WEIGHTS[kind], texts, strict=True):
            stems = self._db.stems(text)
            length += len(stems)
            for stem in stems:
                counts[stem] = counts.get(stem, 0.0) + weight
        return counts, length

    def _rows_of_names(self, names: set[str]) -> dict[str, int]:
        if not names:
            return {}
        self._db.run("insert_word_names", names=sorted(names))
        return dict(self._db.all("list_word_names", names=sorted(names)))


# -- Full-text search with the ranking of FTS5 in a database file -------------


MOST_CANDIDATES = 20_000
"""Maximum number of rows to rank. Common words that would exceed it are ignored."""

_MAX_NAMES = 200
"""Maximum number of identifiers with a name's component to use, shortest first."""

_MAX_UNFILTERED_ROWS = 1_000
"""Maximum number of turns to sort in a search without a filter."""

_MIN_IDF = 1e-6

_MEMORIES = "JOIN {source} m ON m.row = w.row"
_TURNS = "JOIN turns t ON t.row = w.row JOIN sessions s ON s.row = t.session"
_PLACES = {
    Indexed.MEMORIES: ("m.row, 0, 0", _MEMORIES),
    Indexed.TURNS: ("t.row, t.session, t.seq", _TURNS),
    Indexed.FAILURES: ("t.row, t.session, t.seq", _TURNS),
}

# {where} is replaced by a Clause, whose SQL also consists of fixed fragments. Each stem of a question
# is a column, because rows are much slower. As in FTS5, k1 = 1.2 and b = 0.75.
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
    """A full-text search over rows of one kind."""

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
        rows, words = self._db.one("word_totals", kind=self._kind) or (0, 0)
        return Corpus(rows, words / max(1, rows), tuple(counted.get(stem, 0) for stem in stems))

    def vocabulary(self, initial: str, least: int, most: int) -> list[tuple[str, int]]:
        after = chr(ord(initial) + 1)
        return self._db.all(
            "list_vocabulary",
            kind=self._kind,
            initial=initial,
            after=after,
            least=least,
            most=most,
        )

    def rows_of_stem(self, stem: str, limit: int) -> list[int]:
        """Return the rows that contain a stem, or a word that begins with it."""
        stem_of_query = next(iter(self._db.stems(stem)), stem)
        return self._db.column(
            "find_rows_of_stem", kind=self._kind, stem=stem_of_query, limit=limit
        )

    def match(self, terms: Sequence[Term], where: Clause, limit: int) -> list[Match]:
        corpus = self.corpus(terms)
        idf = [
            # FTS5 computes this in the same way.
            max(_MIN_IDF, math.log((corpus.rows - count + 0.5) / (count + 0.5)))
            for count in corpus.frequencies
        ]
        keys = [key_of(self._tenant, self._kind, term.stem) for term in terms]
        words = _words(terms, keys, corpus.frequencies)
        if not words:
            return []
        single = [word[0] for word in words if len(word) == 1]
        several = [word for word in words if len(word) > 1]
        conditions = [
            "w.keys && CAST(? AS bigint[])",
            *["w.keys @> CAST(? AS bigint[])"] * len(several),
        ]
        arrays = map(_array, (single, *several))
        names = [f"c{at}" for at in range(len(keys))]
        scored = _SCORED.format(
            names=", ".join(names),
            counts=", ".join(f"{_STEM_COUNT} AS {name}" for name in names),
            sought=f"({' OR '.join(conditions)})",
            score=" + ".join(
                f"CAST(? AS float8) * {name} * 2.2 / ({name} + slope)" for name in names
            ),
        )
        most = limit if self._is_open(where) else -1
        values = (*idf, max(1.0, corpus.average_length), *keys, self._kind, *arrays, most)
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
            for row in self._db.column("find_word_names", part=name, limit=_MAX_NAMES)
        }
        if not names_found:
            return []
        most = _MAX_UNFILTERED_ROWS if self._is_open(where) else -1
        values = (self._kind, _array(sorted(names_found)), most, *where.values, limit)
        return self._db.rows(where.into(self._parts), values)

    def at(self, places: Sequence[tuple[int, int]], terms: Sequence[Term]) -> list[Match]:
        keys = [key_of(self._tenant, self._kind, term.stem) for term in terms]
        sessions, seqs = [session for session, _ in places], [seq for _, seq in places]
        statement = _AT.format(counts=", ".join([_STEM_COUNT] * len(keys)))
        rows = self._db.rows(statement, (*keys, _array(sessions), _array(seqs)))
        return [_to_match(row, terms) for row in rows]

    def _is_open(self, where: Clause) -> bool:
        return where.is_open and self._kind is not Indexed.MEMORIES


def _words(
    terms: Sequence[Term], keys: Sequence[int], frequencies: Sequence[int]
) -> list[list[int]]:
    """Return the keys of each word's stems, rarest first, without too common words."""
    stems: dict[str, list[int]] = defaultdict(list)
    for at, term in enumerate(terms):
        stems[term.word].append(at)
    words = [
        (min(frequencies[at] for at in places), [keys[at] for at in places])
        for places in stems.values()
    ]
    chosen: list[list[int]] = []
    total = 0
    for rows, word in sorted(words, key=lambda word: word[0]):
        total += rows
        if chosen and total > MOST_CANDIDATES:
            break
        if rows:
            chosen.append(word)
    return chosen


def _array(values: Sequence[float]) -> str:
    return "{" + ",".join(map(repr, values)) + "}"


def _to_match(columns: Row, terms: Sequence[Term]) -> Match:
    row, session, seq, counts, length = columns
    counted = list(zip(terms, counts, strict=True))
    incomplete = {term.word for term, count in counted if not count}
    term_counts = {
        at: count for at, (term, count) in enumerate(counted) if term.word not in incomplete
    }
    return Match(row, session, seq, term_counts, length)


# -- Nearest passages by sign bits --------------------------------------------
# pgvector compares the bits on the server. A trigger maintains one row per passage.


_NEAREST = """
SELECT passage FROM signs WHERE tenant = ? AND length(bits) = {size}
ORDER BY CAST(bits AS bit({size})) <~> CAST(? AS bit({size})) LIMIT ?
"""
"""Query for a tenant's nearest passages, written to use the index (decision 25)."""


class ServerWalk:
    """A search of a server for nearby passages, a :class:`~nacre.store.search.Walk`."""

    def __init__(self, database: PostgresDatabase, bits: NDArray[np.uint64]) -> None:
        digits = "".join(f"{byte:08b}" for byte in bits.tobytes())
        self._db = database
        self._statement = _NEAREST.format(size=len(digits))
        self._values = database.tenant, digits
        self._seen: set[int] = set()

    def next(self, count: int) -> list[int]:
        """Return the rows of the next ``count`` passages, nearest first."""
        rows = self._db.rows(self._statement, (*self._values, len(self._seen) + count))
        fresh = [row for (row,) in rows if row not in self._seen]
        self._seen.update(fresh)
        return fresh
