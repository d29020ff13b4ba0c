"""Questions that prove the index: what is missing, what belongs to nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence

from nacre.storage.sqlite.database import FileDatabase

_FORGET = {
    "memories_fts": "unindex_memory", "memories_parts": "unindex_memory_parts", "turns_fts": "unindex_turn",
    "turns_parts": "unindex_turn_parts", "failures_fts": "unindex_failures",
}  # fmt: skip


class Soundness:
    """Asks; changes nothing but texts that belong to nothing, when told to."""

    def __init__(self, database: FileDatabase) -> None:
        self._db = database

    def pages(self) -> int:
        """Pages of the file."""
        return int((self._db.one("count_pages") or (0,))[0])

    def unreadable(self) -> list[str]:
        """Tables that hold a text which is no UTF-8."""
        names = [name for (name,) in self._db.all("list_tables")]
        return [name for name in names if not self._db.is_readable(name)]

    def strays(self) -> list[tuple[str, int]]:
        """Rows whose owner is gone: (table, how many)."""
        return [(table, count) for table, count in self._db.all("count_strays")]

    def texts(self) -> int:
        """Memories and turns."""
        return int((self._db.one("count_texts") or (0,))[0])

    def memories_unindexed(self) -> list[str]:
        """Ids of memories that the full text lacks."""
        return [memory for (memory,) in self._db.all("list_memories_unindexed")]

    def turns_unindexed(self) -> list[int]:
        """Rows of turns that the full text lacks."""
        return [row for (row,) in self._db.all("list_turns_unindexed")]

    def text_without_rows(self) -> dict[str, list[int]]:
        """Rows of full text whose memory or turn is gone, by table."""
        found: dict[str, list[int]] = {}
        for table, row in self._db.all("list_text_without_rows"):
            found.setdefault(table, []).append(row)
        return found

    def forget_text(self, table: str, rows: Sequence[int]) -> None:
        """Take texts out of a full-text table."""
        self._db.run_many(_FORGET[table], [{"row": row} for row in rows])

    def vectors_of_other_size(self, dimensions: int) -> int:
        """Vectors that do not have so many components of a byte each."""
        return int((self._db.one("count_odd_vectors", size=dimensions) or (0,))[0])

    def bits_missing(self) -> int:
        """Passages that the quick index does not know, or knows too many."""
        return abs(int((self._db.one("count_bits_missing") or (0,))[0]))

    def sessions_miscounted(self) -> list[tuple[int, str]]:
        """Sessions whose count is not that of their turns: (row, id)."""
        return [(row, name) for row, name in self._db.all("list_sessions_miscounted")]

    def known_turns(self, identities: Sequence[bytes]) -> int:
        """How many of some turns are in the index."""
        encoded = json.dumps([identity.hex() for identity in identities])
        return int((self._db.one("count_known_turns", identities=encoded) or (0,))[0])
