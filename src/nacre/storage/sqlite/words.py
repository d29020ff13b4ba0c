"""Full text in a database file: FTS5."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nacre.storage.database import Database
from nacre.storage.words import Indexed, Words

_encode = msgspec.json.Encoder().encode
_DROPS = {
    Indexed.MEMORIES: ("unindex_memory", "unindex_memory_parts"),
    Indexed.TURNS: ("unindex_turn", "unindex_turn_parts"),
    Indexed.FAILURES: ("unindex_failures",),
}


class FileWords:
    """Implements :class:`~nacre.storage.words.WordIndex`."""

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
