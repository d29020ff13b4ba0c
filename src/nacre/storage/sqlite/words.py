"""Full text in a database file: FTS5."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nacre.storage.database import Database, Indexed, Words
from nacre.storage.filters import Clause
from nacre.storage.search.full_text import quoted

_encode = msgspec.json.Encoder().encode
_DROPS = {
    Indexed.MEMORIES: ("unindex_memory", "unindex_memory_parts"),
    Indexed.TURNS: ("unindex_turn", "unindex_turn_parts"),
    Indexed.FAILURES: ("unindex_failures",),
}


_TURNS = "JOIN turns t ON t.row = f.rowid JOIN sessions s ON s.row = t.session"

# The statements are fixed; {where} takes a Clause, whose SQL is fixed fragments too.
_BEST = {
    Indexed.MEMORIES: """SELECT m.row FROM memories_fts f JOIN {source} m ON m.row = f.rowid
        WHERE memories_fts MATCH ? AND {where} ORDER BY rank LIMIT ?""",
    Indexed.TURNS: f"""SELECT t.row FROM turns_fts f {_TURNS}
        WHERE turns_fts MATCH ? AND {{where}} ORDER BY rank LIMIT ?""",  # noqa: S608
    Indexed.FAILURES: f"""SELECT f.rowid FROM failures_fts f {_TURNS}
        WHERE failures_fts MATCH ? AND {{where}} ORDER BY bm25(failures_fts, 0.5, 1.0), f.rowid DESC LIMIT ?""",  # noqa: S608
}  # fmt: skip


class FileWords:
    """Implements :class:`~nacre.storage.database.WordIndex`."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, kind: Indexed, rows: Sequence[Words]) -> None:
        """Index rows that are not in it yet."""
        texts = _encode([(one.row, *one.texts) for one in rows]).decode()
        names = _encode([(one.row, one.names) for one in rows if one.names]).decode()
        if kind is Indexed.FAILURES:
            self._db.run("insert_failures", failures=texts)
        elif kind is Indexed.TURNS:
            self._db.run("index_turns", texts=texts)
            self._db.run("index_turn_parts", texts=names)
        else:
            self._db.run("index_memories", texts=texts)
            self._db.run("index_memory_parts", texts=names)

    def drop(self, kind: Indexed, rows: Sequence[int]) -> None:
        """Take rows out; those that are not in it are left alone."""
        for statement in _DROPS[kind]:
            self._db.run_many(statement, [{"row": row} for row in rows])

    def frequencies(self, kind: Indexed, stems: Sequence[str]) -> dict[str, int]:
        """In how many rows some stems stand; of failures that is not known."""
        marks = ", ".join("?" * len(stems))
        told = f"SELECT term, doc FROM {kind}_terms WHERE term IN ({marks})"  # noqa: S608 - a name of ours
        return {str(term): int(rows) for term, rows in self._db.rows(told, stems)}

    def best(self, kind: Indexed, words: Sequence[str], where: Clause, limit: int) -> list[int]:
        """Rows that hold any of some words and that a condition lets through, the best by BM25 first."""
        if not words:
            return []
        expression = " OR ".join(map(quoted, words))
        return [row for (row,) in self._db.rows(where.into(_BEST[kind]), (expression, *where.values, limit))]
