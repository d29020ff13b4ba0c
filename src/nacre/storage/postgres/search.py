"""Search by words on a server, with the ranking of a database file."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nacre.platform.fast_dataclass import dataclass
from nacre.storage.database import Indexed, Row
from nacre.storage.filters import Clause, turn_clause
from nacre.storage.postgres.database import PostgresDatabase
from nacre.storage.postgres.words import key_of
from nacre.storage.search.full_text import Corpus, Match, Term, WordSearch
from nacre.values.recall import Filter

MOST_CANDIDATES = 20_000
"""Rows that are weighed hold one of the rarest words of a question: as many words as bring no more rows than this."""

_MOST_NAMES = 200
"""Identifiers that hold a part: beyond, the part is everywhere."""

_LEAST_IDF = 1e-6
_K1, _B = 1.2, 0.75
"""FTS5's own."""

_MEMORIES = "JOIN {source} m ON m.row = w.row"
_TURNS = "JOIN turns t ON t.row = w.row JOIN sessions s ON s.row = t.session"
_PLACES = {
    Indexed.MEMORIES: ("m.row, 0, 0", _MEMORIES),
    Indexed.TURNS: ("t.row, t.session, t.seq", _TURNS),
    Indexed.FAILURES: ("t.row, t.session, t.seq", _TURNS),
}

# The statements are fixed; {where} takes a Clause, whose SQL is fixed fragments too.
_MATCH = """
SELECT {fields}, h.held, w.length FROM words w {places}
CROSS JOIN LATERAL (
    SELECT array_agg(c.count ORDER BY q.n) AS held,
        sum(q.idf * c.count * 2.2 / (c.count + 1.2 * (0.25 + 0.75 * w.length / ?))) AS score
    FROM unnest(CAST(? AS bigint[]), CAST(? AS float8[])) WITH ORDINALITY AS q (key, idf, n)
    CROSS JOIN LATERAL (SELECT coalesce(w.counts[array_position(w.keys, q.key)], 0)::float8 AS count) AS c
) AS h
WHERE w.kind = ? AND {{sought}} AND {{where}}
ORDER BY h.score DESC, w.row LIMIT ?
"""
_MATCH_PARTS = """
SELECT {fields} FROM words w {places}
WHERE w.kind = ? AND w.names <> '{{{{}}}}' AND w.names && CAST(? AS bigint[]) AND {{where}}
ORDER BY cardinality(w.names), w.row DESC LIMIT ?
"""
_AT = """
SELECT t.row, t.session, t.seq, ARRAY(
    SELECT coalesce(w.counts[array_position(w.keys, q.key)], 0)::float8
    FROM unnest(CAST(? AS bigint[])) WITH ORDINALITY AS q (key, n) ORDER BY q.n
), w.length
FROM turns t JOIN words w ON w.kind = 'turns' AND w.row = t.row
WHERE (t.session, t.seq) IN (SELECT * FROM unnest(CAST(? AS bigint[]), CAST(? AS bigint[])))
"""


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
            "list_vocabulary", kind=self._kind.value, initial=initial, after=after, least=least, most=most
        )
        return [(term, count) for term, count in found]

    def rows_of_stem(self, stem: str, limit: int) -> list[int]:
        """Rows that hold a stem, or a word that begins like it: what is looked for is stemmed once more."""
        again = next(iter(self._db.stems(stem)), stem)
        return [row for (row,) in self._db.all("find_rows_of_stem", kind=self._kind.value, stem=again, limit=limit)]

    def match(self, terms: Sequence[Term], where: Clause, limit: int) -> list[Match]:
        """Rows that hold any of the terms, the best by BM25 first."""
        corpus = self.corpus(terms)
        return self.weigh(
            terms, where, limit, idf=[_idf(corpus.rows, count) for count in corpus.frequencies], of=corpus
        )

    def weigh(
        self, terms: Sequence[Term], where: Clause, limit: int, *, idf: Sequence[float], of: Corpus
    ) -> list[Match]:
        """The same, where each term weighs so much."""
        keys = [key_of(self._tenant, self._kind, term.stem) for term in terms]
        words = _words(terms, keys, of.frequencies)
        if not words:
            return []
        sought, arrays = _sought(words)
        values = (max(1.0, of.average_length), _array(keys), _array(idf), self._kind.value, *arrays)
        statement = where.into(self._match.replace("{sought}", sought))
        return [_to_match(row, terms) for row in self._db.rows(statement, (*values, *where.values, limit))]

    def match_parts(self, names: Sequence[str], where: Clause, limit: int) -> list[tuple[int, int, int]]:
        """Rows whose identifiers contain one of the names (three characters or more): (row, session, seq)."""
        known = {
            row for name in names if len(name) >= 3
            for (row,) in self._db.all("find_word_names", part=name, limit=_MOST_NAMES)
        }  # fmt: skip
        if not known:
            return []
        values = (self._kind.value, _array(sorted(known)), *where.values, limit)
        return [(row, session, seq) for row, session, seq in self._db.rows(where.into(self._parts), values)]


def memory_search(database: PostgresDatabase) -> WordSearch:
    """Full text over memories: the subject counts most."""
    return ServerSearch(database, Indexed.MEMORIES)


class ServerTurnSearch:
    """Finds turns by words and by parts of identifiers: what a database file's
    :class:`~nacre.storage.search.turns.TurnSearch` does, without shards."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._db = database
        self._turns = ServerSearch(database, Indexed.TURNS)
        self.terms = self._turns.terms
        self.corpus = self._turns.corpus
        self.vocabulary = self._turns.vocabulary
        self.rows_of_stem = self._turns.rows_of_stem

    def lost(self) -> int:
        """Turns that words do not find: none."""
        return 0

    def match(
        self, terms: Sequence[Term], wanted: Filter, limit: int, *, idf: Sequence[float], average_length: float
    ) -> list[Match]:
        """Turns that hold any of the terms, the best by BM25 first.

        ``idf`` is what each term weighs in the whole home, ``average_length`` the words of an average turn.
        """
        corpus = self.corpus(terms)
        of = Corpus(corpus.rows, average_length, corpus.frequencies)
        return self._turns.weigh(terms, turn_clause(wanted), limit, idf=idf, of=of)

    def at(self, places: Sequence[tuple[int, int]], terms: Sequence[Term]) -> list[Match]:
        """The turns at some places (session row, seq) and what they hold of the terms; places that do not exist are
        left out."""
        keys = [key_of(self._db.tenant, Indexed.TURNS, term.stem) for term in terms]
        sessions, seqs = [session for session, _ in places], [seq for _, seq in places]
        found = self._db.rows(_AT, (_array(keys), _array(sessions), _array(seqs)))
        return [_to_match(row, terms) for row in found]

    def match_parts(self, names: Sequence[str], wanted: Filter, limit: int) -> list[tuple[int, int, int]]:
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
        _Word(tuple(keys[at] for at in places), min(frequencies[at] for at in places)) for places in stems.values()
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
    conditions = ["w.keys && CAST(? AS bigint[])"] * bool(single) + ["w.keys @> CAST(? AS bigint[])"] * len(several)
    return f"({' OR '.join(conditions)})", [_array(keys) for keys in ([single] if single else []) + several]


def _idf(rows: int, count: int) -> float:
    """FTS5's inverse document frequency, by which it chooses the best."""
    return max(_LEAST_IDF, math.log((rows - count + 0.5) / (count + 0.5)))


def _array(values: Sequence[float]) -> str:
    return "{" + ",".join(map(repr, values)) + "}"


def _to_match(found: Row, terms: Sequence[Term]) -> Match:
    """A row, without the stems of words that it does not hold whole."""
    row, session, seq, counts, length = found
    torn = {term.word for term, count in zip(terms, counts, strict=True) if not count}
    held = {at: count for at, (term, count) in enumerate(zip(terms, counts, strict=True)) if term.word not in torn}
    return Match(row, session, seq, held, length)
