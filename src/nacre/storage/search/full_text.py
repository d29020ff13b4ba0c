"""Full-text search over memories and turns: candidates with the term counts that ranking needs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import apsw

from nacre.storage.database import Database
from nacre.storage.filters import Clause
from nacre.storage.sqlite.database import FileDatabase
from nacre.text.passages import segment

_MEMORY_FIELDS = "m.row"
_TURN_FIELDS = "t.row, t.session, t.seq"

# The statements are fixed; {where} takes a Clause, whose SQL is fixed fragments too.
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


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a query, and its stem in the index."""

    word: str
    stem: str


Held = dict[int, float]
"""How often a row holds each of those terms that it holds at all, by their place among the terms."""


class Match(NamedTuple):
    """A row and what it holds of the terms (weighted over columns), and how many words the row has.

    A tuple, since an answer makes hundreds.
    """

    row: int
    session: int
    seq: int
    held: Held
    length: int


@dataclass(frozen=True, slots=True)
class Corpus:
    """What weighting a term needs: rows in the index, words in an average row, rows that hold each term."""

    rows: int
    average_length: float
    frequencies: tuple[int, ...]

    def idf(self, count: int) -> float:
        """Inverse document frequency of a term in so many rows, in the form that is never negative (seed facts 2.3)."""
        return math.log(1 + (self.rows - count + 0.5) / (count + 0.5))


class WordSearch(ABC):
    """Full text over rows of one kind."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def terms(self, words: Sequence[str]) -> tuple[Term, ...]:
        """The words with their stems, each stem once."""
        found: dict[str, Term] = {}
        for word in words:
            for stem in self._db.stems(word):
                found.setdefault(stem, Term(word, stem))
        return tuple(found.values())

    def rows_with(self, phrases: Sequence[str]) -> dict[str, int]:
        """In how many rows words and phrases may stand, at most: as many as hold the rarest word of each.

        Those that stand in none are left out.
        """
        stems = {phrase: self._db.stems(segment(phrase)) for phrase in phrases}
        known = list(dict.fromkeys(stem for found in stems.values() for stem in found))
        counts = dict(zip(known, self.corpus([Term(stem, stem) for stem in known]).frequencies, strict=True))
        rarest = {phrase: min((counts[stem] for stem in found), default=0) for phrase, found in stems.items()}
        return {phrase: count for phrase, count in rarest.items() if count}

    @abstractmethod
    def corpus(self, terms: Sequence[Term]) -> Corpus:
        """How common the terms are."""

    @abstractmethod
    def vocabulary(self, initial: str, least: int, most: int) -> list[tuple[str, int]]:
        """The stems with an initial and so many characters that the index holds, each with the number of its rows."""

    @abstractmethod
    def rows_of_stem(self, stem: str, limit: int) -> list[int]:
        """Rows that hold a stem, or a word that begins like it."""

    @abstractmethod
    def match(self, terms: Sequence[Term], where: Clause, limit: int) -> list[Match]:
        """Rows that hold any of the terms, the best by BM25 first."""

    @abstractmethod
    def match_parts(self, names: Sequence[str], where: Clause, limit: int) -> list[tuple[int, int, int]]:
        """Rows whose identifiers contain one of the names (three characters or more): (row, session, seq)."""


class Search(WordSearch):
    """Full text over one of the two tables of a database file."""

    def __init__(self, database: FileDatabase, *, table: str, match: str, parts: str) -> None:
        super().__init__(database)
        self._file = database
        self._table = table
        self._match = match
        self._parts = parts
        database.register_term_counts(term_counts)

    def corpus(self, terms: Sequence[Term]) -> Corpus:
        """How common the terms are."""
        stems = [term.stem for term in terms]
        marks = ", ".join("?" * len(stems))
        rows = self._db.rows(f"SELECT term, doc FROM {self._table}_terms WHERE term IN ({marks})", stems)  # noqa: S608
        counted = {stem: int(count) for stem, count in rows}
        total, words = self._file.fts_size(self._table)
        return Corpus(total, words / max(1, total), tuple(counted.get(stem, 0) for stem in stems))

    def vocabulary(self, initial: str, least: int, most: int) -> list[tuple[str, int]]:
        """The stems with an initial and so many characters that the index holds, each with the number of its rows."""
        told = f"""SELECT term, doc FROM {self._table}_terms
        WHERE term >= ? AND term < ? AND length(term) BETWEEN ? AND ?"""  # noqa: S608
        rows = self._db.rows(told, (initial, chr(ord(initial) + 1), least, most))
        return [(term, int(count)) for term, count in rows]

    def rows_of_stem(self, stem: str, limit: int) -> list[int]:
        """Rows that hold a stem, or a word that begins like it: what is looked for is stemmed once more."""
        told = f"SELECT rowid FROM {self._table}_fts WHERE {self._table}_fts MATCH ? LIMIT ?"  # noqa: S608
        return [row for (row,) in self._db.rows(told, (f"{quoted(stem)} *", limit))]

    def match(self, terms: Sequence[Term], where: Clause, limit: int) -> list[Match]:
        """Rows that hold any of the terms, the best by BM25 first."""
        if not terms:
            return []
        expression = " OR ".join(quoted(segment(term.word)) for term in terms)
        rows = self._db.rows(where.into(self._match), (expression, *where.values, limit))
        return [_to_match(row, session, seq, packed) for row, session, seq, packed in rows]

    def match_parts(self, names: Sequence[str], where: Clause, limit: int) -> list[tuple[int, int, int]]:
        """Rows whose identifiers contain one of the names (three characters or more): (row, session, seq)."""
        names = [name for name in names if len(name) >= 3]
        if not names:
            return []
        expression = " OR ".join(quoted(name) for name in names)
        rows = self._db.rows(where.into(self._parts), (expression, *where.values, limit))
        return [(row, session, seq) for row, session, seq in rows]


def memory_search(database: FileDatabase) -> Search:
    """Full text over memories: the subject counts most."""
    return Search(database, table="memories", match=_MATCH_MEMORIES, parts=_MATCH_MEMORY_PARTS)


def turn_search(database: FileDatabase) -> Search:
    """Full text over turns: what was said counts more than what was done."""
    return Search(database, table="turns", match=_MATCH_TURNS, parts=_MATCH_TURN_PARTS)


def quoted(term: str) -> str:
    """A word or phrase as FTS5 takes it."""
    return '"' + term.replace('"', '""') + '"'


def term_counts(api: apsw.FTS5ExtensionApi, *weights: float) -> str:
    """A row's words, then each phrase of the query that it holds, and how often, weighted over its columns: of a row
    of 57 words that holds the first phrase once and the third twice, ``57 0 1.0 2 2.0``."""
    told = [str(api.column_size())]
    for phrase in range(api.phrase_count):
        count = sum(weight * len(places) for weight, places in zip(weights, api.phrase_locations(phrase), strict=True))
        if count:
            told += (str(phrase), str(count))
    return " ".join(told)


def _to_match(row: int, session: int, seq: int, told: str) -> Match:
    length, *held = told.split()
    return Match(row, session, seq, dict(zip(map(int, held[::2]), map(float, held[1::2]), strict=True)), int(length))
