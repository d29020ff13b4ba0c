"""The journal: operations, and what each of them wrote, until git has it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from nacre.platform.ids import from_ms, to_ms
from nacre.storage.database import Database, Row, in_transaction
from nacre.storage.vault_index import intent_of
from nacre.values.operation import Intent, Operation

_LEAST_REFERENCE = 4


class Journal:
    """Reads and writes ``operations``, ``touched`` and the intents that are done."""

    def __init__(self, database: Database) -> None:
        self._db = database

    @in_transaction
    def record(self, operation: Operation, intents: Iterable[Intent]) -> None:
        """Record an operation, unless it is there, and what it touches."""
        self._db.run(
            "insert_operation", id=operation.id, at=to_ms(operation.at), action=operation.action,
            subject=operation.subject, why=operation.why, by=operation.by,
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

    def explain(self, operation_id: str, why: str | None) -> None:
        """Say why an operation was done."""
        self._db.run("explain_operation", id=operation_id, why=why)

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

    def rename(self, old: str, new: str) -> None:
        """Call a file otherwise in all that is remembered of it: its name is not to be told any more."""
        self._db.run("delete_touched_twice", old=old, new=new)
        self._db.run("rename_touched", old=old, new=new)
        self._db.run("rename_journal", old=old, new=new)

    def touched(self, operation_id: str) -> list[tuple[str, str]]:
        """Path and memory of every file an operation touched; a file that holds no memory has an empty one."""
        return [(path, memory) for path, memory in self._db.all("list_touched", operation=operation_id)]

    def written_by(self, operation_id: str) -> list[Intent]:
        """What an operation wrote, in order; empty once git has it."""
        return [intent_of(row) for row in self._db.all("list_journal", operation=operation_id)]

    def pending(self, limit: int = 2**31, offset: int = 0) -> list[Operation]:
        """Closed operations that wait for a commit, in the order in which they were written."""
        return [_operation(row) for row in self._db.all("list_pending_operations", limit=limit, offset=offset)]

    def without_texts(self) -> list[Operation]:
        """Closed operations that no commit holds and nothing waits of: what they wrote is nowhere, or was forgotten."""
        return [_operation(row) for row in self._db.all("list_operations_without_texts")]

    def waiting(self) -> tuple[int, datetime | None]:
        """How many operations in the journal no commit holds, and the time of the oldest."""
        row = self._db.one("count_pending_operations")
        return (row[0], from_ms(row[1])) if row else (0, None)

    def is_unapplied(self, operation_id: str) -> bool:
        """Whether something of an operation is still to reach its file."""
        return self._db.one("find_unapplied", operation=operation_id) is not None

    def committed(self, operation_id: str, commit: str) -> None:
        """History has an operation: its journal goes."""
        self._db.run("commit_operation", id=operation_id, committed=commit)
        self._db.run("delete_journal", operation=operation_id)

    def drop(self, operation_id: str) -> None:
        """Forget an operation that changed nothing after all, or that history tells otherwise."""
        self._db.run("delete_journal", operation=operation_id)
        self._db.run("delete_operation", id=operation_id)

    def add_past(self, operation: Operation, touched: Iterable[tuple[str, str]]) -> None:
        """Record an operation that history tells: what it did to which (path, memory)."""
        self._db.run(
            "insert_past_operation", id=operation.id, at=to_ms(operation.at), action=operation.action,
            subject=operation.subject, why=operation.why, by=operation.by, committed=operation.committed,
        )  # fmt: skip
        rows = [{"operation": operation.id, "path": path, "memory": memory} for path, memory in touched]
        if rows:
            self._db.run_many("insert_touched", rows)

    def forget_past(self) -> None:
        """History was rewritten: what was known of it goes."""
        self._db.run("delete_past_operations")

    def operations(
        self, *, memory: str | None = None, project: str | None = None, action: str | None = None,
        since: datetime | None = None, until: datetime | None = None, limit: int = 50, offset: int = 0,
    ) -> list[Operation]:  # fmt: skip
        """Operations, the newest first; those on one memory, in one project, of one action, ``since <= t < until``."""
        rows = self._db.all(
            "list_operations", memory=memory, folder=project, action=action, since=to_ms(since), until=to_ms(until),
            limit=limit, offset=offset,
        )  # fmt: skip
        return [_operation(row) for row in rows]

    def find_like(self, reference: str) -> list[Operation]:
        """Operations whose id begins or ends so (four characters at least); at most three."""
        if len(reference) < _LEAST_REFERENCE or not set(reference) <= set("0123456789abcdef-"):
            return []
        return [_operation(row) for row in self._db.all("find_operations_like", reference=reference)]

    def before(self, intent: Intent) -> tuple[str, str | None] | None:
        """The last thing the journal knows of a file before a row: action and document; ``None`` for nothing."""
        row = self._db.one("find_journal_before", path=intent.path, seq=intent.seq)
        return (row[0], row[1]) if row else None

    def withheld(self) -> list[str]:
        """Paths of files with a secret in them, which no commit takes."""
        return [path for (path,) in self._db.all("list_withheld")]

    def keep_last(self, operations: int) -> int:
        """Without a history: keep the texts of so many operations, drop older ones; returns how many rows went."""
        row = self._db.one("find_oldest_kept", operations=operations)
        return self._db.run("delete_journal_before", seq=row[0]) if row and row[0] else 0

    def git_state(self, key: str) -> str | None:
        """What is known of the repository: ``read`` or ``index``, a commit each."""
        row = self._db.one("find_git_state", key=key)
        return str(row[0]) if row and row[0] else None

    def set_git_state(self, key: str, value: str) -> None:
        """Remember something of the repository."""
        self._db.run("upsert_git_state", key=key, value=value)

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
