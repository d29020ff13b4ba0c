"""How memories are used: state that a rebuild starts from neutral."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from nacre.storage.database import Database
from nacre.storage.times import from_ms


@dataclass(frozen=True, slots=True)
class Usage:
    """How a memory was used so far; ``intervals`` are the times of its recalls in epoch milliseconds."""

    recall_count: int = 0
    last_recalled: datetime | None = None
    intervals: tuple[int, ...] = ()
    contradictions: int = 0
    quality: float = 0.5
    access_count: int = 0


class UsageLog:
    """Reads usage, and folds in what was spooled."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def of(self, memory_ids: Sequence[str]) -> dict[str, Usage]:
        """Usage by memory id; memories never used are left out."""
        rows = self._db.all("find_usage", ids=json.dumps(list(memory_ids)))
        return {
            memory: Usage(count, from_ms(last), tuple(json.loads(intervals)), contradictions, quality, accesses)
            for memory, count, last, intervals, contradictions, quality, accesses in rows
        }

    def record(self, recalls: Sequence[tuple[str, int]]) -> None:
        """Fold in recalls: (memory id, epoch milliseconds)."""
        self._db.run_many("record_recall", [{"memory": memory, "at": at} for memory, at in recalls])

    def confirm(self, memory_id: str) -> None:
        """The same thing was said again."""
        self._db.run("confirm_memory", memory=memory_id)
