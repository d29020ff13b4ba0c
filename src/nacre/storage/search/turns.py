"""Full text over turns."""

from __future__ import annotations

import json
from collections.abc import Sequence

from nacre.storage.filters import turn_clause
from nacre.storage.search.full_text import Match, Search, Term, turn_search
from nacre.storage.sqlite.database import FileDatabase
from nacre.values.recall import Filter


class TurnSearch:
    """Finds turns by words and by parts of identifiers."""

    def __init__(self, database: FileDatabase) -> None:
        self._db = database
        self._turns: Search = turn_search(database)
        self.terms = self._turns.terms
        self.corpus = self._turns.corpus
        self.vocabulary = self._turns.vocabulary
        self.rows_of_stem = self._turns.rows_of_stem

    def match(self, terms: Sequence[Term], wanted: Filter, limit: int) -> list[Match]:
        """Turns that hold any of the terms, the best by BM25 first."""
        return self._turns.match(terms, turn_clause(wanted), limit)

    def at(self, places: Sequence[tuple[int, int]], terms: Sequence[Term]) -> list[Match]:  # noqa: ARG002 - a server tells more
        """The turns at some places (session row, seq), of which no words are told. Places that do not exist are left
        out."""
        encoded = json.dumps([session << 32 | seq for session, seq in places])
        return [Match(row, session, seq, {}, 0) for row, session, seq in self._db.all("find_turns_at", places=encoded)]

    def match_parts(self, names: Sequence[str], wanted: Filter, limit: int) -> list[tuple[int, int, int]]:
        """Turns whose identifiers contain one of the names (three characters or more): (row, session, seq)."""
        return self._turns.match_parts(names, turn_clause(wanted), limit)
