"""Full text over turns: those of the last days in FTS5, in the transaction that stored them; the many in shards.

A home of some thousand turns has no shards, and nothing here is more than a search in FTS5.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from nacre.storage.database import Row
from nacre.storage.filters import Clause, turn_clause
from nacre.storage.search.full_text import Corpus, Match, Search, Term, fresh_turn_search, quoted
from nacre.storage.search.shard_set import ShardSet
from nacre.storage.search.word_counts import key_of, unpack
from nacre.storage.sqlite.database import FileDatabase
from nacre.values.recall import Filter

_MOST_NAMES = 200
"""Identifiers that hold a part: beyond, the part is everywhere."""

_LEAST, _SPARE = 20, 3
"""A shard proposes three times its share of the best, and some: turns of one time are alike."""

_K1, _B = 1.2, 0.75
"""FTS5's own."""

_CHECK = """
SELECT t.row, t.session, t.seq FROM turns t JOIN sessions s ON s.row = t.session
WHERE t.row IN (SELECT CAST(value AS BIGINT) FROM json_each(?)) AND {where}
"""


class TurnSearch:
    """Finds turns by words and by parts of identifiers."""

    def __init__(self, database: FileDatabase, shards: ShardSet) -> None:
        self._db = database
        self._fresh: Search = fresh_turn_search(database)
        self._shards = shards

    def lost(self) -> int:
        """Turns that words do not find, as their shard cannot be read."""
        return sum(place.rows for place in self._shards.unreadable())

    def terms(self, words: Sequence[str]) -> tuple[Term, ...]:
        """The words with their stems, each stem once."""
        return self._fresh.terms(words)

    def corpus(self, terms: Sequence[Term]) -> Corpus:
        """How common the terms are."""
        with self._db.reading():
            fresh = self._fresh.corpus(terms)
            places = self._shards.places()
        if not places:
            return fresh
        shards, _ = self._shards.open(places)
        rows = fresh.rows + sum(place.rows for place in places)
        words = fresh.rows * fresh.average_length + sum(place.words for place in places)
        stems = [term.stem for term in terms]
        counts = zip(fresh.frequencies, *(shard.frequencies(stems) for shard in shards), strict=True)
        return Corpus(rows, words / max(1, rows), tuple(map(sum, counts)), quick=bool(shards))

    def vocabulary(self, initial: str, least: int, most: int) -> list[tuple[str, int]]:
        """The stems with an initial and so many characters in turns that are in no shard, with the number of turns."""
        return self._fresh.vocabulary(initial, least, most)

    def rows_of_stem(self, stem: str, limit: int) -> list[int]:
        """Turns, in no shard, that hold a stem or a word that begins like it."""
        return self._fresh.rows_of_stem(stem, limit)

    def match(
        self, terms: Sequence[Term], wanted: Filter, limit: int, *, idf: Sequence[float], average_length: float
    ) -> list[Match]:
        """Turns that hold any of the terms, the best by BM25 first.

        ``idf`` is what each term weighs in the whole home, ``average_length`` the words of an average turn.
        """
        where = turn_clause(wanted)
        with self._db.reading():
            shards, _ = self._shards.open(self._shards.places())
            fresh = self._fresh.match(terms, where, limit)
        if not shards or not terms:
            return fresh
        stems = [term.stem for term in terms]
        moved = self._moved(wanted)
        rows_in_all = sum(shard.rows for shard in shards)
        found = [
            hit
            for shard in shards
            for hit in shard.best(
                stems, idf, wanted, moved, min(limit, _LEAST + _SPARE * limit * shard.rows // rows_in_all)
            )
        ]
        best = [row for _, row in sorted(found, reverse=True)[:limit]]
        rows = best if where.is_open else list(self._admitted(best, where))
        counted = _counted(self._db.all("find_turn_words", rows=json.dumps(rows)), terms)
        matches = {match.row: match for match in (*counted, *fresh)}.values()
        scores = {match.row: _score(match, idf, average_length) for match in matches}
        return sorted(matches, key=lambda match: (-scores[match.row], match.row))[:limit]

    def at(self, places: Sequence[tuple[int, int]], terms: Sequence[Term]) -> list[Match]:
        """The turns at some places (session row, seq) and what they hold of the terms: of turns of the last days
        nothing is told. Places that do not exist are left out."""
        encoded = json.dumps([session << 32 | seq for session, seq in places])
        return _counted(self._db.all("find_turn_words_at", places=encoded), terms)

    def match_parts(self, names: Sequence[str], wanted: Filter, limit: int) -> list[tuple[int, int, int]]:
        """Turns whose identifiers contain one of the names (three characters or more): (row, session, seq)."""
        names = [name for name in names if len(name) >= 3]
        if not names or not limit:
            return []
        where = turn_clause(wanted)
        with self._db.reading():
            shards, _ = self._shards.open(self._shards.places())
            found = self._fresh.match_parts(names, where, limit)
            known = self._known_names(names) if shards else []
        if known and len(found) < limit:
            moved = self._moved(wanted)
            rows = [row for shard in shards for row in shard.with_names(known, wanted, moved, limit)]
            found += self._admitted(rows, where).values()
        return found[:limit]

    def _known_names(self, names: Sequence[str]) -> list[str]:
        part = " OR ".join(quoted(name) for name in names)
        return [name for (name,) in self._db.all("find_names", part=part, limit=_MOST_NAMES)]

    def _moved(self, wanted: Filter) -> list[int]:
        return self._shards.moved() if wanted.projects or wanted.exclude_projects else []

    def _admitted(self, rows: Sequence[int], where: Clause) -> dict[int, tuple[int, int, int]]:
        """Those turns that are still there and pass, in their order: the database decides, not a shard's marks."""
        found = self._db.rows(where.into(_CHECK), (json.dumps(list(rows)), *where.values))
        places = {row: (row, session, seq) for row, session, seq in found}
        return {row: places[row] for row in rows if row in places}


def _counted(turns: Sequence[Row], terms: Sequence[Term]) -> list[Match]:
    keys = [key_of(term.stem) for term in terms]
    return [unpack(words, keys, row, session, seq) for row, session, seq, words in turns]


def _score(match: Match, idf: Sequence[float], average_length: float) -> float:
    slope = _K1 * (1 - _B + _B * match.length / max(1.0, average_length))
    score = 0.0
    for at, count in match.held.items():
        score += idf[at] * count * (_K1 + 1) / (count + slope)
    return score
