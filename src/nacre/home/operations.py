"""Operations on the vault and their pending writes (intents).

Every change to the vault belongs to an operation, which can be shown, compared and undone.

An operation that is still open when another process gets the vault lock was interrupted by a crash,
and is closed as it is. During a long operation, other processes can get the vault lock, so it holds
a separate file lock, which the system releases when the process dies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nacre.base import files
from nacre.base.ids import bytes_hash, content_hash
from nacre.base.locks import FileLock, is_held
from nacre.base.text import one_line, shorten, to_bytes
from nacre.errors import EditConflictError, InvalidMemoryError, UnusableVaultError
from nacre.home.home import Home
from nacre.values.memory import ADOPT, EDIT, SYNC, Intent, Link, Memory, Operation, SeenMemoryFile
from nacre.vault.documents import render
from nacre.vault.files import LEDGER, LedgerEntry, path_for

_MAX_SUBJECT_CHARACTERS = 120
_MAX_WHY_CHARACTERS = 300
_MAX_NAMED = 20
_FOLDER = "operations"
_PATIENCE_SECONDS = 1.0


@dataclass(slots=True)
class OpenOperation:
    """An operation in progress, which is recorded when it first writes.

    With ``is_long``, other processes can write before it ends.
    """

    home: Home
    action: str
    subject: str | None
    why: str | None
    op: str | None = None
    is_long: bool = False
    is_recorded: bool = False
    _record: Operation | None = None
    _lock: FileLock | None = None
    _is_closed: bool = False

    @property
    def operation(self) -> Operation:
        """The record of this operation. Reading it fixes the operation's id."""
        if self._record is None:
            home = self.home
            subject = _clean_line(home, self.subject, _MAX_SUBJECT_CHARACTERS)
            why = _clean_line(home, self.why, _MAX_WHY_CHARACTERS)
            by = _clean_line(home, home.actor.in_words, _MAX_SUBJECT_CHARACTERS)
            self._record = Operation(
                self.op or home.ids(), home.now(), self.action, subject, why, by
            )
        return self._record

    def describe(
        self, *, action: str | None = None, subject: str | None = None, why: str | None = None
    ) -> None:
        """Set details that were unknown at the start, before anything is written.

        This has no effect on a long operation.
        """
        if self.is_long:
            return
        assert self._record is None  # noqa: S101 - the operation might already be in use
        self.action = action or self.action
        self.subject = subject or self.subject
        self.why = why or self.why

    def explain(self, why: str | None) -> None:
        """Set the reason for the operation, unless it already has one."""
        if why and self.is_recorded and self.operation.why is None:
            self.home.journal.explain(
                self.operation.id, _clean_line(self.home, why, _MAX_WHY_CHARACTERS)
            )

    def intend(self, intents: Iterable[Intent], *, applied: bool = False) -> None:
        """Record file writes in the journal. Set ``applied`` if the files are already written."""
        assert not self._is_closed  # noqa: S101 - the ledger line would omit later writes
        home, operation = self.home, self.operation
        belonging = [replace(intent, operation=operation.id) for intent in intents]
        if not belonging:
            return
        self.is_recorded = True
        if self.is_long:
            self.keep_open()
        with home.transaction():
            for path in {intent.path for intent in belonging if intent.action != "append"}:
                home.journal.withdraw(path)
            home.journal.record(operation, belonging)
            home.files.intend(belonging, applied=applied)

    def keep_open(self) -> None:
        """Take a lock, so that other changes do not close this operation as interrupted."""
        if self.is_recorded and self._lock is None:
            files.make_folder(self.home.settings.home / _FOLDER)
            self._lock = FileLock(_lock_of(self.home, self.operation.id))
            self._lock.acquire(_PATIENCE_SECONDS)

    def close(self) -> None:
        """End the operation. Calls after the first have no effect."""
        if self.is_recorded and not self._is_closed:
            close(self.home, self.operation)
            self._is_closed = True

    def release(self) -> None:
        """Release the lock taken by :meth:`keep_open`."""
        if self._lock:
            self._lock.release()
            self._lock.remove()
            self._lock = None


def close(home: Home, operation: Operation) -> None:
    """End an operation so that it can be committed, and write its ledger line if missing."""
    with home.transaction():
        if home.journal.find(operation.id) is None:
            return
        if operation.action not in (EDIT, ADOPT, SYNC) and not home.journal.is_in_ledger(
            operation.id
        ):
            line = _line(home, operation)
            home.files.intend([Intent("append", LEDGER, line, operation=operation.id)])
        home.journal.close(operation.id, operation.subject or _subject(home, operation))


def left_open(home: Home) -> list[Operation]:
    """Return operations that a crash interrupted.

    Unless the vault lock is held, these can include operations of other running processes.
    """
    return [
        operation for operation in home.journal.unfinished() if not is_going_on(home, operation)
    ]


def is_going_on(home: Home, operation: Operation) -> bool:
    """Return True if a long operation is still running in any process."""
    return is_held(_lock_of(home, operation.id))


def memories_in_entry(memories: Iterable[str]) -> dict[str, object]:
    """Return ledger fields that name the given memories or, if there are many, their number."""
    ids = sorted(memories)
    if len(ids) == 1:
        return {"memory": ids[0]}
    if len(ids) <= _MAX_NAMED:
        return {"memories": ids} if ids else {}
    return {"count": len(ids)}


def subject_of(memories: Sequence[Memory]) -> str | None:
    """Return the subject under which the history lists a change to these memories."""
    if not memories:
        return None
    more = len({memory.id for memory in memories}) - 1
    return f"{shorten(memories[0].subject, 80)} and {more} more" if more else memories[0].subject


def _lock_of(home: Home, operation_id: str) -> Path:
    return home.settings.home / _FOLDER / f"{operation_id}.lock"


def _subject(home: Home, operation: Operation) -> str | None:
    # Memories are described before pages.
    touched = sorted(home.journal.touched(operation.id), key=lambda item: not item[1])
    if not touched:
        return None
    path, memory_id = touched[0]
    memory = home.memories.find(memory_id) if memory_id else None
    more = len({memory or path for path, memory in touched}) - 1
    first = memory.subject if memory else path
    return _clean_line(home, f"{first} and {more} more" if more else first, _MAX_SUBJECT_CHARACTERS)


def _line(home: Home, operation: Operation) -> str:
    memories = {memory for _, memory in home.journal.touched(operation.id) if memory}
    by = {"by": operation.by} if operation.by else {}
    return LedgerEntry(
        operation.id, operation.at, operation.action, {**memories_in_entry(memories), **by}
    ).line()


def _clean_line(home: Home, text: str | None, limit: int) -> str | None:
    return shorten(one_line(home.redactor.clean(text)), limit) if text else None


# -- Intents -------------------------------------------------------------------
#
# Intents are writes to the vault that are stored in the database before the files are written.
# After a crash, the next writer or opening of the home completes them.


_GROUP_INTENTS = 200
"""Number of writes that one transaction marks as done."""


def apply_intents(home: Home) -> None:
    """Write all pending changes to the vault.

    A failed write stays pending, together with later writes to the same file or memory, so that an
    old file is never deleted before the new one exists.
    """
    if not home.files.has_intents() and not left_open(home):
        return
    stuck: set[str] = set()
    with home.vault_lock:
        for operation in left_open(home):
            close(home, operation)
            _lock_of(home, operation.id).unlink(missing_ok=True)
        intents = home.files.intents()
        for start in range(0, len(intents), _GROUP_INTENTS):
            _apply_group(home, intents[start : start + _GROUP_INTENTS], stuck)


def _apply_group(home: Home, intents: Sequence[Intent], stuck: set[str]) -> None:
    applied_intents = []
    home.vault.write_ahead(
        {item.path: item.document or "" for item in reversed(intents) if item.action == "write"}
    )
    for intent in intents:
        if intent.path in stuck or intent.memory in stuck or intent.action == "append":
            continue
        try:
            applied_intents.append(
                (intent, None, _apply_remove(home, intent))
                if intent.action == "remove"
                else _apply_write(home, intent)
            )
        except (UnusableVaultError, InvalidMemoryError) as error:
            stuck |= {intent.path, intent.memory or intent.path}
            home.problems.append(f"{intent.path}: not written yet: {error.message}")
    lines = [intent for intent in intents if intent.action == "append"]
    end = _append(home, lines) if lines else None
    home.vault.sync_folders({intent.path for intent, *_ in applied_intents})
    with home.transaction():
        for intent, file, is_done in applied_intents:
            if file:
                home.files.save(file)
            if is_done:
                home.files.done(intent.seq)
            else:
                home.files.give_up(intent.seq)
        if end:
            home.journal.set_ledger_end(*end)
            for intent in lines:
                home.files.done(intent.seq)


_Applied = tuple[Intent, SeenMemoryFile | None, bool]
"""A pending write, the resulting file, and False if the write was abandoned."""


def _append(home: Home, lines: Sequence[Intent]) -> tuple[int, bytes] | None:
    try:
        return home.vault.append(
            LEDGER, [line.document or "" for line in lines], home.journal.ledger_end()
        )
    except (UnusableVaultError, InvalidMemoryError) as error:
        home.problems.append(f"{LEDGER}: not written yet: {error.message}")
        return None


def _apply_remove(home: Home, intent: Intent) -> bool:
    try:
        present = bytes_hash(home.vault.read(intent.path))
    except FileNotFoundError:
        return True
    if intent.base is not None and present != intent.base:
        home.problems.append(
            f"{intent.path} was just edited, so the old file stays next to the new one"
        )
        return False
    home.vault.remove(intent.path)
    return True


def _apply_write(home: Home, intent: Intent) -> _Applied:
    document = intent.document or ""
    base = intent.base if home.vault.exists(intent.path) else None
    try:
        home.vault.write(intent.path, document, base=base)
    except EditConflictError:
        if _is_overtaken(home, intent):
            return intent, None, True
        return (intent, None, False) if intent.action == "adjust" else _keep_both(home, intent)
    if intent.memory is None:
        return intent, None, True
    stat = home.vault.stat(intent.path)
    digest = content_hash(document)
    file = SeenMemoryFile(intent.path, intent.memory, stat.mtime_ns, stat.size, digest)
    return intent, file, True


def _is_overtaken(home: Home, intent: Intent) -> bool:
    present = bytes_hash(home.vault.read(intent.path))
    later = (
        other
        for other in home.files.intents()
        if other.seq > intent.seq and other.path == intent.path
    )
    return any(other.document and content_hash(other.document) == present for other in later)


def _keep_both(home: Home, intent: Intent) -> _Applied:
    # Both versions are recorded in one transaction, so that a crash cannot cause a second copy.
    memory = home.memories.find(intent.memory or "")
    if memory is None:
        home.problems.append(f"{intent.path} was just edited; that version is kept")
        return (intent, None, False)
    home.problems.append(f"{intent.path} was just edited; both versions are kept")
    own_version = replace(
        memory, id=home.ids(), links=(*memory.links, Link("alternative_to", memory.id))
    )
    path = new_path(home, own_version)
    with home.transaction():
        home.memories.put(own_version)
        home.files.forget(intent.path)
        write = replace(
            write_memory(home, path, render(own_version), None, own_version),
            operation=intent.operation,
        )
        home.files.intend([write])
        if intent.operation:
            home.journal.touch(intent.operation, [(path, own_version.id)])
        home.files.give_up(intent.seq)
    return _apply_write(home, home.files.intents()[-1])


def write_memory(
    home: Home, path: str, document: str, base: bytes | None, memory: Memory
) -> Intent:
    """Add a memory's file to the index, and return the pending write.

    ``base`` is the hash of the current file, or ``None`` for a new file.
    """
    encoded = to_bytes(document)
    home.files.save(SeenMemoryFile(path, memory.id, 0, len(encoded), bytes_hash(encoded)))
    return Intent("write", path, document, base, memory.id)


def new_path(home: Home, memory: Memory) -> str:
    """Return an unused vault path for a memory's file."""
    return path_for(memory, lambda path: home.files.is_taken(path) or home.vault.exists(path))
