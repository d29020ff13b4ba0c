"""What changed in the database since it was looked at last, whichever process changed it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nacre.platform.ids import to_ms
from nacre.storage.database import Database


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """``change`` is ``stored``, ``changed``, ``retired``, ``restored`` or ``removed``; what takes the place of a memory
    retires it. ``operation`` is the id of the last operation that touched it."""

    change: str
    id: str
    operation: str | None


@dataclass(frozen=True, slots=True)
class GrownSession:
    """A session with new turns: its id, its tool, and how many turns it has now."""

    id: str
    tool: str
    turns: int


class Changes:
    """Compares the memories with those of the last look, which a temporary table of the connection keeps."""

    def __init__(self, database: Database) -> None:
        self._db = database
        database.run("create_known_memories")
        database.run("create_memory_states")
        with database.reading():
            database.run("note_memories")

    def memories(self) -> list[MemoryChange]:
        """What became of memories since the last call."""
        with self._db.reading():
            found = [MemoryChange(*row) for row in self._db.all("list_memory_changes")]
            ids = [{"id": one.id} for one in found]
            self._db.run_many("drop_known_memory", ids)
            self._db.run_many("note_memory", ids)
        return found

    def last_turn(self) -> int:
        """The number of the turn that was read last."""
        return int((self._db.one("last_read_turn") or (0,))[0])

    def grown_sessions(self, after_turn: int, most: int) -> list[GrownSession]:
        """Sessions with turns that were read after that one, the one that grew last first."""
        return [GrownSession(*row) for row in self._db.all("list_grown_sessions", turn=after_turn, limit=most)]

    def operations(self, since: datetime) -> list[tuple[str, str]]:
        """Id and action of operations since a time, the oldest first."""
        return [(row[0], row[1]) for row in self._db.all("list_operations_since", since=to_ms(since))]

    def doubted(self) -> frozenset[str]:
        """Memories that a newer one may have outdated; all links are read."""
        return frozenset(row[0] for row in self._db.all("list_doubted"))

    def queued(self) -> frozenset[str]:
        """Memories to be reviewed, or perhaps out of date."""
        return frozenset(row[0] for row in self._db.all("list_queued"))

    def last_trace(self) -> str | None:
        """The trace that ended last, as ids go by time."""
        row = self._db.one("last_trace")
        return str(row[0]) if row and row[0] else None

    def free_pages(self) -> None:
        """Give back the memory that reading took."""
        self._db.all("give_pages_back")
