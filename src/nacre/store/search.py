"""Full-text and vector search over memories and turns."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import apsw

from nacre.base.frozen import frozen
from nacre.base.lazy import Module
from nacre.base.sql import quoted
from nacre.base.text import segment
from nacre.errors import EmbedderUnavailableError, UnusableStoreError
from nacre.store.schema import (
    Clause,
    Database,
    Indexed,
    Store,
    Words,
    encode,
    in_transaction,
    memory_clause,
    turn_clause,
    with_words,
)
from nacre.store.sqlite import FileDatabase
from nacre.values.recall import Filter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float32]
    BitArray = NDArray[np.uint64]
else:
    np = Module("numpy")

_MEMORY_FIELDS = "m.row"
_TURN_FIELDS = "t.row, t.session, t.seq"

# {where} is replaced by the SQL of a Clause, which also consists of fixed fragments.
_MATCH_TURNS = f"""
SELECT {_TURN_FIELDS}, term_counts(turns_fts, 1.0, 0.5) FROM turns_fts f JOIN turns t ON t.row = f.rowid
JOIN sessions s ON s.row = t.session
WHERE turns_fts MATCH ? AND {{where}} ORDER BY rank LIMIT ?
"""  # noqa: S608
_MATCH_TURN_PARTS = f"""
SELECT {_TURN_FIELDS} FROM turns_parts f JOIN turns t ON t.row = f.rowid JOIN sessions s ON s.row = t.session
WHERE turns_parts MATCH ? AND {{where}} LIMIT ?
"""  # noqa: S608
_MATCH_MEMORIES = f"""
SELECT {_MEMORY_FIELDS}, 0, 0, term_counts(memories_fts, 1.5, 1.0, 1.0) FROM memories_fts f
JOIN {{source}} m ON m.row = f.rowid
WHERE memories_fts MATCH ? AND {{where}} ORDER BY rank LIMIT ?
"""  # noqa: S608
_MATCH_MEMORY_PARTS = f"""
SELECT {_MEMORY_FIELDS}, 0, 0 FROM memories_parts f JOIN {{source}} m ON m.row = f.rowid
WHERE memories_parts MATCH ? AND {{where}} ORDER BY rank LIMIT ?
"""  # noqa: S608


_MATCHES = {
    Indexed.MEMORIES: (_MATCH_MEMORIES, _MATCH_MEMORY_PARTS),
    Indexed.TURNS: (_MATCH_TURNS, _MATCH_TURN_PARTS),
}


@frozen
class Term:
    """A query word with its stem."""

    word: str
    stem: str


Held = dict[int, float]
"""The count of each query term in a row, keyed by the term's position in the query."""


class Match(NamedTuple):
    """A row that matches a query, with its word count and weighted term counts.

    This is a tuple because a search creates hundreds.
    """

    row: int
    session: int
    seq: int
    held: Held
    length: int


@frozen
class Corpus:
    """Statistics of a table: number of rows, average words per row, and rows per term."""

    rows: int
    average_length: float
    frequencies: tuple[int, ...]

    def idf(self, count: int) -> float:
        """Return a term's inverse document frequency, in its non-negative variant."""
        return math.log(1 + (self.rows - count + 0.5) / (count + 0.5))


class WordSearch(Store, ABC):
    """Full-text search over memories or turns."""

    def terms(self, words: Sequence[str]) -> tuple[Term, ...]:
        """Return a term for each distinct stem among the words."""
        terms: dict[str, Term] = {}
        for word in words:
            for stem in self._db.stems(word):
                terms.setdefault(stem, Term(word, stem))
        return tuple(terms.values())

    def rows_with(self, phrases: Sequence[str]) -> dict[str, int]:
        """Return an upper bound on the number of rows with each word or phrase that occurs.

        For a phrase, its rarest word counts.
        """
        stems = {phrase: self._db.stems(segment(phrase)) for phrase in phrases}
        all_stems = list(
            dict.fromkeys(stem for phrase_stems in stems.values() for stem in phrase_stems)
        )
        counts = dict(
            zip(
                all_stems,
                self.corpus([Term(stem, stem) for stem in all_stems]).frequencies,
                strict=True,
            )
        )
        rarest = {
            phrase: min((counts[stem] for stem in phrase_stems), default=0)
            for phrase, phrase_stems in stems.items()
        }
        return {phrase: count for phrase, count in rarest.items() if count}

    @abstractmethod
    def corpus(self, terms: Sequence[Term]) -> Corpus:
        """Return the table's statistics for these terms."""

    @abstractmethod
    def vocabulary(self, initial: str, least: int, most: int) -> list[tuple[str, int]]:
        """Return the stems that begin with a character, each with its number of rows.

        ``least`` and ``most`` limit the length.
        """

    @abstractmethod
    def rows_of_stem(self, stem: str, limit: int) -> list[int]:
        """Return rows with a word that starts with a stem."""

    @abstractmethod
    def match(self, terms: Sequence[Term], where: Clause, limit: int) -> list[Match]:
        """Return rows that contain any of the terms, best BM25 score first."""

    @abstractmethod
    def match_parts(
        self, names: Sequence[str], where: Clause, limit: int
    ) -> list[tuple[int, int, int]]:
        """Return (row, session, seq) for rows with an identifier that contains any of the names.

        Names need at least three characters.
        """

    @abstractmethod
    def at(self, places: Sequence[tuple[int, int]], terms: Sequence[Term]) -> list[Match]:
        """Return the turns at the given (session row, position) pairs.

        Term counts are included only on servers.
        """


class Search(WordSearch):
    """Full-text search of memories or turns in a database file."""

    def __init__(self, database: FileDatabase, kind: str) -> None:
        super().__init__(database)
        self._file = database
        self._kind = Indexed(kind)
        self._match, self._parts = _MATCHES[self._kind]
        database.register_term_counts(term_counts)

    def corpus(self, terms: Sequence[Term]) -> Corpus:
        stems = [term.stem for term in terms]
        counted = self._db.words.frequencies(self._kind, stems)
        total, words = self._file.fts_size(self._kind)
        return Corpus(total, words / max(1, total), tuple(counted.get(stem, 0) for stem in stems))

    def vocabulary(self, initial: str, least: int, most: int) -> list[tuple[str, int]]:
        sql = f"""SELECT term, doc FROM {self._kind}_terms
        WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ?"""  # noqa: S608
        rows = self._db.rows(sql, (initial, chr(ord(initial) + 1), least, most))
        return [(term, int(count)) for term, count in rows]

    def rows_of_stem(self, stem: str, limit: int) -> list[int]:
        """Return rows with a word that starts with a stem. FTS5 applies stemming once more."""
        sql = f"SELECT rowid FROM {self._kind}_fts WHERE {self._kind}_fts MATCH ? LIMIT ?"  # noqa: S608
        return [row for (row,) in self._db.rows(sql, (f"{quoted(stem)} *", limit))]

    def match(self, terms: Sequence[Term], where: Clause, limit: int) -> list[Match]:
        if not terms:
            return []
        expression = " OR ".join(quoted(segment(term.word)) for term in terms)
        rows = self._db.rows(where.into(self._match), (expression, *where.values, limit))
        return [_to_match(row, session, seq, packed) for row, session, seq, packed in rows]

    def match_parts(
        self, names: Sequence[str], where: Clause, limit: int
    ) -> list[tuple[int, int, int]]:
        names = [name for name in names if len(name) >= 3]
        if not names:
            return []
        expression = " OR ".join(quoted(name) for name in names)
        return self._db.rows(where.into(self._parts), (expression, *where.values, limit))

    def at(self, places: Sequence[tuple[int, int]], terms: Sequence[Term]) -> list[Match]:  # noqa: ARG002 - the server counts terms
        encoded = [session << 32 | seq for session, seq in places]
        rows = self._db.all("find_turns_at", places=encoded)
        return [Match(row, session, seq, {}, 0) for row, session, seq in rows]


def term_counts(api: apsw.FTS5ExtensionApi, *weights: float) -> str:
    """Return a row's word count and, for each phrase found, its index and weighted count.

    ``57 0 1.0 2 2.0`` means that a row of 57 words has phrase 0 once and phrase 2 twice.
    """
    parts = [str(api.column_size())]
    for phrase in range(api.phrase_count):
        count = sum(
            weight * len(places)
            for weight, places in zip(weights, api.phrase_locations(phrase), strict=True)
        )
        if count:
            parts += (str(phrase), str(count))
    return " ".join(parts)


def _to_match(row: int, session: int, seq: int, packed: str) -> Match:
    length, *counts = packed.split()
    return Match(
        row,
        session,
        seq,
        dict(zip(map(int, counts[::2]), map(float, counts[1::2]), strict=True)),
        int(length),
    )


# -- Full-text index in a database file (FTS5) --------------------------------


_TABLES = {
    Indexed.MEMORIES: ("memories_fts", "memories_parts"),
    Indexed.TURNS: ("turns_fts", "turns_parts"),
    Indexed.FAILURES: ("failures_fts",),
}


_TURNS = "JOIN turns t ON t.row = f.rowid JOIN sessions s ON s.row = t.session"

# {where} is replaced by the SQL of a Clause, which also consists of fixed fragments.
_BEST = {
    Indexed.MEMORIES: """SELECT m.row FROM memories_fts f JOIN {source} m ON m.row = f.rowid
        WHERE memories_fts MATCH ? AND {where} ORDER BY rank LIMIT ?""",
    Indexed.FAILURES: f"""SELECT f.rowid FROM failures_fts f {_TURNS}
        WHERE failures_fts MATCH ? AND {{where}} ORDER BY bm25(failures_fts, 0.5, 1.0), f.rowid DESC LIMIT ?""",  # noqa: S608
}


def drop_texts(database: Database, table: str, rows: Sequence[int]) -> None:
    """Delete rows from a full-text table, if present."""
    database.many(f"DELETE FROM {table} WHERE rowid = ?", [(row,) for row in rows])  # noqa: S608 - an internal name


class FileWords(Store):
    """The full-text index of a database file (:class:`~nacre.store.schema.WordIndex`)."""

    def add(self, kind: Indexed, rows: Sequence[Words]) -> None:
        texts = encode([(row.row, *row.texts) for row in rows])
        names = encode([(row.row, row.names) for row in rows if row.names])
        if kind is Indexed.FAILURES:
            self._db.run("insert_failures", failures=texts)
        elif kind is Indexed.TURNS:
            self._db.run("index_turns", texts=texts)
            self._db.run("index_turn_parts", texts=names)
        else:
            self._db.run("index_memories", texts=texts)
            self._db.run("index_memory_parts", texts=names)

    def drop(self, kind: Indexed, rows: Sequence[int]) -> None:
        for table in _TABLES[kind]:
            drop_texts(self._db, table, rows)

    def frequencies(self, kind: Indexed, stems: Sequence[str]) -> dict[str, int]:
        """Return the number of rows with each stem. ``failures`` has no counts."""
        marks = ", ".join("?" * len(stems))
        sql = f"SELECT term, doc FROM {kind}_terms WHERE term IN ({marks})"  # noqa: S608 - an internal name
        return {str(term): int(rows) for term, rows in self._db.rows(sql, stems)}

    def best(self, kind: Indexed, words: Sequence[str], where: Clause, limit: int) -> list[int]:
        if not words:
            return []
        expression = " OR ".join(map(quoted, words))
        return [
            row
            for (row,) in self._db.rows(where.into(_BEST[kind]), (expression, *where.values, limit))
        ]


# -- Vectors with one byte or one bit per dimension ---------------------------


_PASSAGES_AT_ONCE = 16_384
_ROWS_AT_ONCE = 256


@frozen
class PassageCache:
    """A cache of the passages' sign bits.

    ``version`` is the model and first edition of the vectors. ``bits`` is never changed in place.
    ``next`` is the first row not in the cache.
    """

    version: tuple[str | None, str | None]
    bits: BitArray
    next: int


def distances(bits: BitArray, query_bits: BitArray) -> NDArray[np.uint16]:
    """Return the Hamming distance from a query to each passage (a column of ``bits``)."""
    count = bits.shape[1]
    result = np.zeros(count, np.uint16)
    differs, counts = np.empty(_PASSAGES_AT_ONCE, np.uint64), np.empty(_PASSAGES_AT_ONCE, np.uint8)
    for start in range(0, count, _PASSAGES_AT_ONCE):
        part = result[start : start + _PASSAGES_AT_ONCE]
        for own, other in zip(bits[:, start : start + _PASSAGES_AT_ONCE], query_bits, strict=True):
            np.bitwise_xor(own, other, out=differs[: len(part)])
            np.bitwise_count(differs[: len(part)], out=counts[: len(part)])
            np.add(part, counts[: len(part)], out=part)
    return result


def to_int8(vectors: FloatArray) -> NDArray[np.int8]:
    """Scale each vector so that its largest absolute value is 127."""
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    packed: NDArray[np.int8] = np.rint(vectors * (127.0 / np.maximum(largest, 1e-9))).astype(
        np.int8
    )
    return packed


def from_int8(blobs: Sequence[bytes]) -> FloatArray:
    """Decode stored vectors and scale them to unit length."""
    vectors = np.frombuffer(b"".join(blobs), np.int8).reshape(len(blobs), -1).astype(np.float32)
    unit: FloatArray = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return unit


def quantised_cosines(query: FloatArray, blobs: Sequence[bytes]) -> FloatArray:
    """Return the cosine similarity of a query to each stored vector."""
    cosines: FloatArray = from_int8(blobs) @ query
    return cosines


def to_bits(vectors: NDArray[np.int8]) -> BitArray:
    """Pack the signs of vectors into 64-bit words."""
    packed = np.packbits(vectors > 0, axis=1)
    words = -(-packed.shape[1] // 8)  # round up to whole words
    return np.pad(packed, ((0, 0), (0, words * 8 - packed.shape[1]))).view(np.uint64)


class Walk(Protocol):
    """An iterator over passages in order of their distance from a query."""

    def next(self, count: int) -> list[int]:
        """Return about ``count`` more rows, or fewer at the end."""


class Outward:
    """A :class:`Walk` over passages whose distances are already known."""

    def __init__(self, distances: NDArray[np.uint16]) -> None:
        self.distances = distances
        self._within = np.cumsum(np.bincount(distances))
        self._next = 0

    def next(self, count: int) -> list[int]:
        """Return at least ``count`` more passages, including all that tie for last place."""
        if self._next >= len(self._within):
            return []
        before = int(self._within[self._next - 1]) if self._next else 0
        last = int(np.searchsorted(self._within, before + count))
        ring = (self.distances >= self._next) & (self.distances <= last)
        self._next = last + 1
        rows: list[int] = (np.flatnonzero(ring) + 1).tolist()
        return rows


# -- Memories and turns selected by a filter ----------------------------------


_SESSIONS_AT_ONCE = 100

# {where} is replaced by the SQL of a Clause, which also consists of fixed fragments.
_TURNS_OF_SESSIONS = """
SELECT t.row FROM turns t JOIN sessions s ON s.row = t.session
WHERE t.session IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) AND {where}
ORDER BY coalesce(t.time, s.ended, s.started, 0) DESC, t.session DESC, t.seq DESC
"""
_ADMITTED_MEMORIES = "SELECT m.row FROM {source} m WHERE {where}"
_LIST_MEMORIES = """
SELECT m.row, count(*) OVER () FROM {source} m WHERE {where} ORDER BY m.created DESC, m.id DESC LIMIT ? OFFSET ?
"""
_LATEST_MEMORIES = """
SELECT m.row FROM {source} m WHERE {where} ORDER BY m.updated DESC, m.id DESC LIMIT ?
"""
_TRIGGERED_MEMORIES = """
SELECT m.row FROM {source} m WHERE m.triggers != '[]' AND {where} ORDER BY m.importance DESC, m.updated DESC, m.id DESC
"""
_PROJECTS = """
SELECT m.project FROM {source} m WHERE m.project IS NOT NULL AND {where}
GROUP BY m.project ORDER BY max(m.updated) DESC, m.project
"""
_BROWSE_MEMORIES = """
SELECT m.row FROM {source} m WHERE {where} ORDER BY m.importance DESC, m.created DESC, m.id LIMIT ?
"""
_FEW_TURNS = """
SELECT t.row FROM sessions s CROSS JOIN turns t WHERE t.session = s.row AND {where} LIMIT ?
"""
_CHECK_TURNS = """
SELECT t.row FROM turns t JOIN sessions s ON s.row = t.session
WHERE t.row IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) AND {where}
"""


class Admission:
    """A query for turns that match a filter, which can be too many to load."""

    def __init__(self, database: Database, where: Clause) -> None:
        self._db = database
        self._where = where

    def few(self, most: int) -> list[int] | None:
        """Return the matching turns, unless there are more than ``most``."""
        rows = self._db.rows(self._where.into(_FEW_TURNS), (*self._where.values, most + 1))
        return [row for (row,) in rows] if len(rows) <= most else None

    def among(self, rows: Collection[int]) -> set[int]:
        """Return the matching rows among ``rows``."""
        values = ([*rows], *self._where.values)
        return {row for (row,) in self._db.rows(self._where.into(_CHECK_TURNS), values)}


class Selection(Store):
    """Memories and turns that match filters."""

    def admitted_turns(self, criteria: Filter) -> Admission | None:
        """Return the turns that match a filter, or ``None`` if all do."""
        where = turn_clause(criteria)
        return None if where.is_open else Admission(self._db, where)

    def newest_turns(self, criteria: Filter) -> Iterator[list[int]]:
        """Yield matching turns, a hundred sessions at a time, latest session first."""
        where = turn_clause(criteria)
        sessions = self._db.column("list_session_rows")
        for start in range(0, len(sessions), _SESSIONS_AT_ONCE):
            values = (sessions[start : start + _SESSIONS_AT_ONCE], *where.values)
            yield [row for (row,) in self._db.rows(where.into(_TURNS_OF_SESSIONS), values)]

    def _memories(
        self, statement: str, criteria: Filter, today: date | None, *limit: int
    ) -> list[Any]:
        where = memory_clause(criteria, today)
        return [row for (row,) in self._db.rows(where.into(statement), (*where.values, *limit))]

    def admitted_memories(self, criteria: Filter, *, today: date | None = None) -> set[int]:
        """Return the active memories that match a filter. ``today`` excludes outdated ones."""
        return set(self._memories(_ADMITTED_MEMORIES, criteria, today))

    def browse_memories(
        self, criteria: Filter, *, limit: int, today: date | None = None
    ) -> list[int]:
        """Return active memories by importance, then newest first. ``today`` excludes outdated
        ones.
        """
        return self._memories(_BROWSE_MEMORIES, criteria, today, limit)

    def list_memories(
        self,
        criteria: Filter,
        *,
        limit: int,
        offset: int,
        today: date | None = None,
        words: Sequence[str] = (),
        for_list: bool = True,
    ) -> tuple[list[int], int]:
        """Return a page of active memories, newest first, and the total.

        ``today`` excludes outdated memories and, unless ``for_list``, expired ones. With ``words``,
        the subject, content or tags must contain each, in any case.
        """
        where = with_words(memory_clause(criteria, today, for_list=for_list), words)
        rows = self._db.rows(where.into(_LIST_MEMORIES), (*where.values, limit, offset))
        return [row for row, _ in rows], int(rows[0][1]) if rows else 0

    def latest_memories(self, criteria: Filter, *, limit: int, today: date) -> list[int]:
        """Return valid memories, most recently changed first."""
        return self._memories(_LATEST_MEMORIES, criteria, today, limit)

    def with_triggers(self, criteria: Filter, *, today: date) -> list[int]:
        """Return valid memories that have triggers, most important first."""
        return self._memories(_TRIGGERED_MEMORIES, criteria, today)

    def projects_of_memories(self, criteria: Filter, *, today: date) -> list[str]:
        """Return the projects with valid memories, most recently changed first."""
        return self._memories(_PROJECTS, criteria, today)


# -- Vectors ------------------------------------------------------------------
# A passage is stored once, under the hash of its text, even if many turns contain it. A search
# scans the sign bits of all passages with XOR and popcount, then computes exact cosines of the
# nearest passages from int8 components. This takes about six milliseconds for a million passages
# without an index structure. Bits are stored word by word (the first 64 of all passages, then the
# next 64) and compared in portions that fit the CPU cache.


_NEAREST_BY_BITS = 600
_PORTION_GROWTH = 4
_MAX_PASSAGES = 40_000
"""Maximum number of passages to compare when searching for turns that match a filter."""
_FEW_TURNS_VECTORS = 5_000
"""Up to this number of turns, comparing each turn is faster than searching all passages."""
_DROP_STATEMENTS = (
    "drop_embedding_values",
    "drop_vectors",
    "drop_turn_passages",
    "drop_bits",
    "drop_memory_vectors",
)


@frozen
class Near:
    """A row and its cosine similarity to a query."""

    row: int
    cosine: float


class Vectors:
    """The stored vectors, all from one model, with a cache of sign bits and memory vectors."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._version: tuple[str | None, str | None] = (None, None)
        self._bits: BitArray = np.empty((0, 0), np.uint64)
        self._next = 1
        self._edition: tuple[str | None, int] = (None, -1)
        self._complete: object = None
        self._memories: NDArray[np.int64] = np.empty(0, np.int64)
        self._first_pieces: NDArray[np.int64] = np.empty(0, np.int64)
        self._pieces: FloatArray = np.empty((0, 0), np.float32)

    def passage_cache(self) -> PassageCache:
        """Return the passage cache, for use by another connection to the same database."""
        return PassageCache(self._version, self._bits, self._next)

    def begin_with(self, cache: PassageCache) -> None:
        """Adopt another connection's passage cache if it is more complete."""
        if not self._bits.size or (cache.version == self._version and cache.next > self._next):
            self._version, self._bits, self._next = cache.version, cache.bits, cache.next

    def model(self) -> str | None:
        """Return the name of the model that made the vectors, if there are any."""
        return self._value("model")

    def setting(self) -> str | None:
        """Return the value that ``embedding.model`` had when the vectors were made."""
        return self._value("setting")

    def seen(self) -> tuple[float, float] | None:
        """Return the model's stored probe results (:mod:`nacre.llm.local_model`), if any."""
        stored = self._value("seen")
        if stored is None:
            return None
        chance, restated = json.loads(stored)
        return float(chance), float(restated)

    @in_transaction
    def note_seen(self, cosines: tuple[float, float]) -> None:
        """Store the probe results for the model."""
        self._set_value("seen", json.dumps(cosines))

    def dimensions(self) -> int:
        """Return the number of dimensions of the vectors, or 0 if there are none."""
        return int(self._db.value("one_size") or 0)

    def size(self) -> int:
        """Return the size of all vectors in bytes."""
        return int(self._db.value("size_of_vectors") or 0)

    def begin(self, model: str, setting: str = "minilm") -> None:
        """Prepare for a model's vectors, and delete any other model's.

        ``setting`` is the value of ``embedding.model``.
        """
        if self.model() == model:
            if self.setting() != setting:
                self._set_value("setting", setting)
            return
        edition = str(self._count_of("edition") + 1)
        for name in _DROP_STATEMENTS:
            self._db.run(name)
        with self._db.transaction():
            self._set_value("model", model)
            self._set_value("setting", setting)
            self._set_value("edition", edition)
            self._set_value("begun", edition)

    @in_transaction
    def pass_over(self) -> None:
        """Mark all turns as processed, if none of them needs a vector."""
        if not self.turns_to_embed(1):
            newest = self._db.value("last_turn") or 0
            self._set_value("through", str(max(int(newest), self._count_of("through"))))

    def turns_to_embed(self, limit: int) -> list[tuple[int, str]]:
        """Return the row and text of the next turns that need vectors."""
        return self.turns_after(self._count_of("through"), limit)

    def memories_to_embed(self, limit: int) -> list[tuple[int, str, str]]:
        """Return the row, subject and content of the newest memories that need vectors."""
        return sorted(self._db.all("list_memories_to_embed", limit=limit))

    def are_missing(self) -> bool:
        """Return True if any turn or memory still needs a vector."""
        state = self._db.state()
        if state is None or state != self._complete:
            if self.turns_to_embed(1) or self.memories_to_embed(1):
                return True
            self._complete = state
        return False

    def turns_after(self, row: int, limit: int) -> list[tuple[int, str]]:
        """Return the row and text of turns after a given row that need vectors."""
        return self._db.all("list_turns_to_embed", after=row, limit=limit)

    def memory_texts(self) -> list[tuple[str, str]]:
        """Return the subject and content of all memories that have or need vectors."""
        return self._db.all("list_memory_texts")

    def missing(self) -> tuple[int, int]:
        """Count the turns and the memories that still need vectors."""
        turns = self._db.value("count_turns_to_embed", after=self._count_of("through")) or 0
        return int(turns), self._db.value("count_memories_to_embed") or 0

    def rows_of_passages(self, hashes: Sequence[bytes]) -> dict[bytes, int]:
        """Return the rows of stored passages by hash."""
        rows = self._db.all("find_passages", hashes=[digest.hex() for digest in hashes])
        return {digest: passage for passage, digest in rows}

    def take_over(self, earlier: Vectors, hashes: Sequence[bytes]) -> None:
        """Copy passages from the database that this one replaces, if it used the same model."""
        try:
            if earlier.model() != self.model():
                return
            rows = earlier._db.all(
                "find_vectors_by_hash", hashes=[digest.hex() for digest in hashes]
            )
        except UnusableStoreError:
            return
        if rows:
            with self._db.transaction():
                self._add_passages(
                    [digest for digest, _ in rows], from_int8([vector for _, vector in rows])
                )

    @in_transaction
    def add_turn_passages(
        self,
        digests_by_turn: Mapping[int, Sequence[bytes]],
        fresh: Sequence[bytes],
        vectors: FloatArray,
        *,
        through: int,
    ) -> None:
        """Store the passages of turns that still exist.

        ``digests_by_turn`` maps turn rows to passage hashes. ``fresh`` and ``vectors`` are hashes
        and unit vectors of new passages, and ``through`` is the last processed turn's row. Raises
        EmbedderUnavailableError for vectors of the wrong size.
        """
        self._check_size(vectors)
        numbers = self.rows_of_passages(
            [digest for digests in digests_by_turn.values() for digest in digests]
        )
        missing = [at for at, digest in enumerate(fresh) if digest not in numbers]
        if missing:
            numbers |= self._add_passages([fresh[at] for at in missing], vectors[missing])
        pairs: list[dict[str, object]] = [
            {"passage": numbers[digest], "turn": turn}
            for turn, digests in digests_by_turn.items()
            for digest in digests
        ]
        self._db.run_many("insert_turn_passage", pairs)
        self._set_value("through", str(max(through, self._count_of("through"))))

    def add_memory_vectors(self, vectors_by_row: Mapping[int, FloatArray]) -> None:
        """Store the vectors of memories that still exist and have not changed.

        ``vectors_by_row`` contains unit vectors for the pieces of each memory's text. Raises
        EmbedderUnavailableError for vectors of the wrong size.
        """
        rows: list[dict[str, object]] = [
            {"memory": memory, "ordinal": ordinal, "vector": vector.tobytes()}
            for memory, vectors in vectors_by_row.items()
            for ordinal, vector in enumerate(to_int8(vectors))
        ]
        with self._db.transaction():
            for vectors in vectors_by_row.values():
                self._check_size(vectors)
            self._db.run_many("insert_memory_vector", rows)
            self._set_value("edition", str(self._count_of("edition") + 1))

    def nearest_turns(
        self, query: FloatArray, *, limit: int, admitted: Admission | None = None
    ) -> list[Near]:
        """Return the turns with the passages most similar to a query vector, nearest first."""
        few = admitted.few(_FEW_TURNS_VECTORS) if admitted else None
        if few is not None:
            return _sorted(self.cosines_of_turns(query, few))[:limit]
        nearest = self._outward(to_bits(to_int8(query[None, :]))[0])
        if admitted is None:
            return self._rank(query, nearest.next(_NEAREST_BY_BITS), None)[:limit]
        turns: list[Near] = []
        portion = _NEAREST_BY_BITS
        while len(turns) < limit and portion < _MAX_PASSAGES and (rows := nearest.next(portion)):
            turns += self._rank(query, rows, admitted)
            portion *= _PORTION_GROWTH
        return sorted(turns, key=lambda near: (-near.cosine, near.row))[:limit]

    def cosines_of_turns(self, query: FloatArray, turns: Sequence[int]) -> dict[int, float]:
        """Return each turn's highest cosine similarity to a query. Turns without vectors are left
        out.
        """
        rows = self._db.all("find_vectors_of_turns", rows=turns)
        best: dict[int, float] = {}
        if rows:
            cosines = quantised_cosines(query, [vector for _, vector in rows])
            for (turn, _), cosine in zip(rows, cosines, strict=True):
                best[turn] = max(best.get(turn, -1.0), float(cosine))
        return best

    def memory_cosines(self, query: FloatArray) -> dict[int, float]:
        """Return each memory's highest cosine similarity to a query."""
        self._load_memories()
        if not len(self._memories):
            return {}
        best = np.maximum.reduceat(self._pieces @ query, self._first_pieces)
        return dict(zip(self._memories.tolist(), best.tolist(), strict=True))

    def near_memory(self, row: int, *, limit: int) -> list[Near]:
        """Return the memories most similar to a given memory, nearest first."""
        self._load_memories()
        at = int(np.searchsorted(self._memories, row))
        if at >= len(self._memories) or self._memories[at] != row:
            return []
        ends = np.append(self._first_pieces[1:], len(self._pieces))
        own = self._pieces[self._first_pieces[at] : ends[at]]
        best = np.maximum.reduceat((self._pieces @ own.T).max(axis=1), self._first_pieces)
        best[at] = -1.0
        nearest = np.argsort(-best, kind="stable")[:limit]
        return [
            Near(int(self._memories[index]), float(best[index]))
            for index in nearest
            if best[index] > 0
        ]

    def near_pairs(self, rows: Sequence[int], *, least: float) -> list[tuple[int, int, float]]:
        """Return the pairs of given memories with a cosine similarity of at least ``least``,
        highest first.
        """
        self._load_memories()
        lengths = np.diff(np.append(self._first_pieces, len(self._pieces)))
        owner = np.repeat(self._memories, lengths)
        chosen = np.isin(owner, np.array(rows, np.int64))
        owner, pieces = owner[chosen], self._pieces[chosen]
        best: dict[tuple[int, int], float] = {}
        for start in range(0, len(pieces), _ROWS_AT_ONCE):
            cosines = pieces[start : start + _ROWS_AT_ONCE] @ pieces[start:].T
            for left, right in np.argwhere(cosines >= least).tolist():
                pair = int(owner[start + left]), int(owner[start + right])
                if pair[0] < pair[1]:
                    best[pair] = max(best.get(pair, -1.0), float(cosines[left, right]))
        nearest = sorted(best.items(), key=lambda item: (-item[1], item[0]))
        return [(*pair, cosine) for pair, cosine in nearest]

    def count(self) -> int:
        """Count the stored passages."""
        return self._db.value("count_passages") or 0

    def count_memories(self) -> int:
        """Count the memories that have vectors."""
        return self._db.value("count_memory_vectors") or 0

    def of(self, model: str) -> VectorsOf:
        return VectorsOf(self, model)

    def _check_size(self, vectors: FloatArray) -> None:
        present = self.dimensions()
        if present and len(vectors) and vectors.shape[1] != present:
            raise EmbedderUnavailableError(
                f"{self.model()} now returns {vectors.shape[1]} dimensions, but the index has {present}",
                hint="to delete the old vectors: nacre admin doctor --deep --repair",
            )

    def _add_passages(self, digests: Sequence[bytes], vectors: FloatArray) -> dict[bytes, int]:
        first = int(self._db.value("next_passage") or 1)
        packed = to_int8(vectors)
        rows: list[dict[str, object]] = [
            {"row": first + at, "hash": digest, "vector": packed[at].tobytes()}
            for at, digest in enumerate(digests)
        ]
        self._db.run_many("insert_passage", rows)
        self._db.run("insert_bits", first=first, count=len(rows), bits=to_bits(packed).tobytes())
        return {digest: first + at for at, digest in enumerate(digests)}

    def _rank(self, query: FloatArray, rows: list[int], admitted: Admission | None) -> list[Near]:
        rows_found = self._db.all("find_vectors", rows=rows)
        if not rows_found:
            return []
        passages, vectors = zip(*rows_found, strict=True)
        cosines = dict(zip(passages, quantised_cosines(query, vectors), strict=True))
        best: dict[int, float] = {}
        pairs = self._db.all("find_turns_of_passages", rows=rows)
        among = admitted.among({turn for _, turn in pairs}) if admitted else None
        for passage, turn in pairs:
            if passage in cosines and (among is None or turn in among):
                best[turn] = max(best.get(turn, -1.0), float(cosines[passage]))
        return _sorted(best)

    def _outward(self, bits: BitArray) -> Walk:
        if server := self._db.server:
            return server.nearest(bits)
        self._load_bits()
        return Outward(distances(self._bits, bits) if self._bits.size else np.empty(0, np.uint16))

    def _load_bits(self) -> None:
        version = (self.model(), self._value("begun"))
        if version != self._version:  # the vectors were replaced, perhaps by another process
            self._bits, self._next, self._version = np.empty((0, 0), np.uint64), 1, version
        runs = self._db.all("list_bits", first=self._next)
        if not runs:
            return
        words = len(runs[0][2]) // runs[0][1] // 8
        fresh = np.frombuffer(b"".join(bits for _, _, bits in runs), np.uint64).reshape(-1, words).T
        self._bits = (
            np.concatenate([self._bits, fresh], axis=1)
            if self._bits.size
            else np.ascontiguousarray(fresh)
        )
        self._next = self._bits.shape[1] + 1

    def _load_memories(self) -> None:
        edition = (self.model(), self._count_of("edition"))
        if edition == self._edition:
            return
        rows = self._db.all("list_memory_vectors")
        owners = np.array([memory for memory, _ in rows], np.int64)
        self._memories, self._first_pieces = np.unique(owners, return_index=True)
        self._pieces = (
            from_int8([vector for _, vector in rows]) if rows else np.empty((0, 0), np.float32)
        )
        self._edition = edition

    def _count_of(self, key: str) -> int:
        return int(self._value(key) or 0)

    def _value(self, key: str) -> str | None:
        return self._db.value("get_embedding_value", key=key)

    def _set_value(self, key: str, value: str) -> None:
        self._db.run("set_embedding_value", key=key, value=value)


@frozen
class VectorsOf:
    """A search of one model's vectors. It finds nothing if another model's vectors are stored."""

    _vectors: Vectors
    name: str

    def model(self) -> str:
        return self.name

    def seen(self) -> tuple[float, float] | None:
        """Return the model's stored probe results, if any."""
        return self._vectors.seen()

    def nearest_turns(
        self, query: FloatArray, *, limit: int, admitted: Admission | None = None
    ) -> list[Near]:
        """See :meth:`Vectors.nearest_turns`."""
        with self._vectors._db.reading():
            return (
                self._vectors.nearest_turns(query, limit=limit, admitted=admitted)
                if self._is_there()
                else []
            )

    def cosines_of_turns(self, query: FloatArray, turns: Sequence[int]) -> dict[int, float]:
        """See :meth:`Vectors.cosines_of_turns`."""
        with self._vectors._db.reading():
            return self._vectors.cosines_of_turns(query, turns) if self._is_there() else {}

    def memory_cosines(self, query: FloatArray) -> dict[int, float]:
        """See :meth:`Vectors.memory_cosines`."""
        with self._vectors._db.reading():
            return self._vectors.memory_cosines(query) if self._is_there() else {}

    def _is_there(self) -> bool:
        return self._vectors.model() == self.name


def _sorted(cosines: Mapping[int, float]) -> list[Near]:
    near = (Near(row, cosine) for row, cosine in cosines.items())
    return sorted(near, key=lambda item: (-item.cosine, item.row))
