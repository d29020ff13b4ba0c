"""What became of memories that were accepted first and placed later."""

from __future__ import annotations

import json
from typing import Any

from nacre.storage.database import Database


class Outcomes:
    """Reads and writes ``outcomes``; what is told is JSON values."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def record(self, memory_id: str, at: int, told: dict[str, Any]) -> None:
        """Note what became of a memory. Call in the transaction that places it."""
        self._db.run("insert_outcome", memory=memory_id, at=at, told=json.dumps(told))

    def find(self, memory_id: str) -> dict[str, Any] | None:
        """What became of a memory; ``None`` while it waits, and long after."""
        row = self._db.one("find_outcome", memory=memory_id)
        return dict(json.loads(row[0])) if row else None

    def forget(self, before: int) -> None:
        """Drop what is older."""
        self._db.run("delete_old_outcomes", before=before)
