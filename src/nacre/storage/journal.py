"""The journal: operations, and what each of them wrote, until git has it."""

from __future__ import annotations

from collections.abc import Iterable

from nacre.model.operation import Operation
from nacre.storage.database import Database, Row
from nacre.storage.times import from_ms, to_ms
from nacre.storage.vault_index import Intent, intent_of


class Journal:
    """Reads and writes ``operations``, ``touched`` and the intents that are done."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def record(self, operation: Operation, intents: Iterable[Intent]) -> None:
        """Record an operation, unless it is there, and what it touches. Call in the transaction of its intents."""
        self._db.run(
            "insert_operation", id=operation.id, at=to_ms(operation.at), action=operation.action,
            subject=operation.subject, why=operation.why,
        )  # fmt: skip
        self.touch(operation.id, intents)

    def touch(self, operation_id: str, intents: Iterable[Intent]) -> None:
        """Note which files and memories an operation touches."""
        rows = [
            {"operation": operation_id, "path": intent.path, "memory": intent.memory or ""}
            for intent in intents
            if intent.action != "append"
        ]
        if rows:
            self._db.run_many("insert_touched", rows)

    def find(self, operation_id: str) -> Operation | None:
        """An operation by its id."""
        row = self._db.one("find_operation", id=operation_id)
        return _operation(row) if row else None

    def unfinished(self) -> list[Operation]:
        """Operations whose last write may be still to come, the oldest first."""
        return [_operation(row) for row in self._db.all("list_open_operations")]

    def is_in_ledger(self, operation_id: str) -> bool:
        """Whether an operation has a line of its own for the ledger."""
        return self._db.one("find_ledger_line", operation=operation_id) is not None

    def close(self, operation_id: str, subject: str | None) -> None:
        """Nothing more belongs to an operation: from now on it may be committed."""
        self._db.run("close_operation", id=operation_id, subject=subject)

    def withdraw(self, path: str) -> None:
        """Forget what was withheld of a file: it says something else now."""
        if self._db.run("delete_withheld", path=path):
            self._db.run("delete_empty_operations")

    def touched(self, operation_id: str) -> list[tuple[str, str]]:
        """Path and memory of every file an operation touched; a file that holds no memory has an empty one."""
        return [(path, memory) for path, memory in self._db.all("list_touched", operation=operation_id)]

    def written_by(self, operation_id: str) -> list[Intent]:
        """What an operation wrote, in order; empty once git has it."""
        return [intent_of(row) for row in self._db.all("list_journal", operation=operation_id)]

    def ledger_end(self) -> tuple[int, bytes]:
        """How many bytes of the ledger are known, and a hash of the last of them."""
        row = self._db.one("find_ledger_end")
        return (int(row[0]), bytes(row[1])) if row else (0, b"")

    def set_ledger_end(self, size: int, digest: bytes) -> None:
        """Remember how far the ledger is known."""
        self._db.run("upsert_ledger_end", size=size, hash=digest)


def _operation(row: Row) -> Operation:
    at = from_ms(row[1])
    assert at is not None  # noqa: S101 - the column is never null
    return Operation(row[0], at, *row[2:])
