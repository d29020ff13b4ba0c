"""The review queue: memories that a person should look at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from nacre.platform.ids import from_ms
from nacre.storage.database import Database
from nacre.values.review import QueuedReview, Reason


@dataclass(frozen=True, slots=True)
class Doubt:
    """A memory that is likely to be outdated, the newer one that says otherwise, and in what."""

    older: str
    newer: str
    reason: str | None


class Reviews:
    """Reads and writes the queue."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, memory_id: str, reason: Reason, detail: str, at: int, *, once: bool) -> None:
        """Put a memory into the queue, unless it waits there for that reason.

        ``once``: not again with a detail that was settled before.
        """
        about = {"memory": memory_id, "reason": reason.value, "detail": detail}
        with self._db.transaction():
            if not self._db.one("find_review", **about, once=once):
                self._db.run("insert_review", **about, at=at, shown_by="[]")

    def doubt(self, memory_id: str, detail: str, at: int, shown_by: Iterable[str]) -> bool:
        """Have a memory wait as out of date, for what some sessions show; what it waited for before gives way.

        Returns whether it waits for that now, and did not before: what somebody settled is not brought up again.
        """
        about = {"memory": memory_id, "reason": Reason.STALE.value, "detail": detail}
        more = {"at": at, "shown_by": json.dumps(sorted(set(shown_by)))}
        with self._db.transaction():
            if self._db.one("find_review_detail", **about):
                return False
            if not self._db.run("renew_review", **about, **more):
                self._db.run("insert_review", **about, **more)
        return True

    def delete_where(self, tells: Callable[[str], bool]) -> None:
        """Delete entries that tell something, or whose sessions do. Call it in a transaction."""
        texts = self._db.all("list_review_texts")
        gone = [{"id": row} for row, detail, shown_by in texts if tells(f"{detail}\n{shown_by}")]
        self._db.run_many("delete_review", gone)

    def pending(self) -> list[QueuedReview]:
        """What waits, the oldest first."""
        return [
            QueuedReview(memory, Reason(reason), detail, from_ms(created))
            for memory, reason, detail, created in self._db.all("list_reviews")
        ]

    def waiting(self) -> tuple[int, int, int]:
        """How many candidates, memories in doubt and conflicts wait."""
        candidates, doubts, conflicts = self._db.one("count_waiting") or (0, 0, 0)
        return candidates, doubts, conflicts

    def dismiss(self, memory_id: str, at: int) -> int:
        """The memory is kept; returns how many entries that settled."""
        return self._db.run("dismiss_reviews", memory=memory_id, at=at)

    def settled(self, memory_id: str) -> tuple[int, int] | None:
        """When a memory began to wait, and when that was settled (epoch milliseconds); ``None`` while it waits."""
        row = self._db.one("find_settled_review", memory=memory_id)
        return (row[0], row[1]) if row else None

    def settled_at(self, at: int) -> list[str]:
        """The memories that wait no more since a time (epoch milliseconds)."""
        return [row[0] for row in self._db.all("list_settled_reviews", at=at)]

    def reopen(self, memory_id: str, at: int) -> None:
        """What was settled at a time (epoch milliseconds) waits again."""
        self._db.run("reopen_reviews", memory=memory_id, at=at)

    def settle(self, memory_id: str, reason: Reason, at: int) -> None:
        """A memory waits for a reason no more; what else it waits for stays."""
        self._db.run("settle_review", memory=memory_id, reason=reason.value, at=at)

    def stale_kept(self) -> dict[str, datetime | None]:
        """When a person last kept each memory that had seemed out of date."""
        return {memory: from_ms(at) for memory, at in self._db.all("list_stale_kept")}

    def low_quality(self) -> list[tuple[str, float, int]]:
        """Active memories below the border: (memory, quality, recall count)."""
        return [(row[0], row[1], row[2]) for row in self._db.all("list_low_quality")]

    def doubts(self, memory_ids: Sequence[str] | None = None, *, both_ways: bool = False) -> list[Doubt]:
        """Which memories are likely to be outdated by which, the oldest doubt first; of some memories, or of all.

        A pair counts once, also where each of the two doubts the other: the later memory is the newer one. With
        ``both_ways`` it counts twice then.
        """
        ids = None if memory_ids is None else json.dumps(list(memory_ids))
        return [Doubt(*row) for row in self._db.all("list_doubts", ids=ids, both_ways=both_ways)]

    def proposed(self) -> list[str]:
        """Active memories that agents proposed, the oldest first."""
        return [row[0] for row in self._db.all("list_proposed")]

    def unfounded(self, tools: Iterable[str]) -> list[str]:
        """Active memories read in documents, as these tools read, that do not say them any more."""
        return [row[0] for row in self._db.all("list_unfounded", tools=json.dumps(sorted(tools)))]

    def contradicted(self) -> list[tuple[str, int]]:
        """Active memories that were contradicted more than once: (memory, how often)."""
        return [(row[0], row[1]) for row in self._db.all("list_contradicted")]
