"""The baseline: SQLite's full-text search in twenty lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

import apsw

from benchmarks.retrieval.suites import BenchTurn
from nacre.base.text import STOP_WORDS


class PlainFts:
    """FTS5 with Porter stems. A turn matches with any of the question's words except stop words.

    BM25 ranks.
    """

    def __init__(self, turns: Sequence[BenchTurn]) -> None:
        self._db = apsw.Connection(":memory:")
        self._db.execute(
            "CREATE VIRTUAL TABLE plain USING fts5 (id UNINDEXED, text, tokenize = 'porter unicode61')"
        )
        self._db.executemany(
            "INSERT INTO plain VALUES (?, ?)", [(turn.id, _text_of(turn)) for turn in turns]
        )

    def rank(self, question: str, limit: int) -> list[str]:
        words = [
            word
            for word in dict.fromkeys(re.findall(r"\w+", question.lower()))
            if word not in STOP_WORDS
        ]
        if not words:
            return []
        expression = " OR ".join(f'"{word}"' for word in words)
        rows = self._db.execute(
            "SELECT id FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?", (expression, limit)
        )
        return [turn for (turn,) in rows]


def _text_of(turn: BenchTurn) -> str:
    return f"{turn.author}: {turn.text}" if turn.author else turn.text
