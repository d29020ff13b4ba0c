"""Operations: every change of the vault belongs to one, which can be shown, compared and undone as one.

An operation that is still open when another process gets the vault lock was cut short by a crash, and is closed as it
is. A long one, which lets others write before it ends, holds a file lock of its own until then: the system frees it
when its process dies. What touches its files is committed after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from nacre.base import files
from nacre.base.ids import bytes_hash
from nacre.base.locks import FileLock, is_held
from nacre.base.text import one_line, shorten
from nacre.errors import EditConflict, MemoryInvalid, VaultUnusable
from nacre.home.home import Home
from nacre.values.memory import ADOPT, EDIT, SYNC, Intent, Link, Memory, Operation, SeenMemoryFile
from nacre.vault.documents import render
from nacre.vault.files import LEDGER, LedgerEntry, path_for

_SUBJECT_CHARACTERS = 120
_WHY_CHARACTERS = 300
_MOST_NAMED = 20
_FOLDER = "operations"
_PATIENCE_SECONDS = 1.0


class OpenOperation:
    """An operation that has not ended. It gets its id and time when they are first needed.

    Nothing of it is recorded until something is written. ``is_long``: others may write before it ends.
    """

    def __init__(
        self,
        home: Home,
        action: str,
        *,
        subject: str | None,
        why: str | None,
        op: str | None,
        is_long: bool,
    ) -> None:
        self._home = home
        self._action = action
        self._subject = subject
        self._why = why
        self._op = op
        self._is_long = is_long
        self._made: Operation | None = None
        self._lock: FileLock | None = None
        self._is_closed = False
        self.is_recorded = False

    @property
    def operation(self) -> Operation:
        """The operation as it is recorded."""
        if self._made is None:
            home = self._home
            subject = _words(home, self._subject, _SUBJECT_CHARACTERS)
            why = _words(home, self._why, _WHY_CHARACTERS)
            by = _words(home, home.actor.in_words, _SUBJECT_CHARACTERS)
            self._made = Operation(
                self._op or home.ids(), home.now(), self._action, subject, why, by
            )
        return self._made

    def describe(self, action: str | None, subject: str | None, why: str | None) -> None:
        """Set what is known of it only now. It has no id yet."""
        assert self._made is None  # noqa: S101 - somebody has seen it otherwise
        self._action = action or self._action
        self._subject = subject or self._subject
        self._why = why or self._why

    def explain(self, why: str | None) -> None:
        """Set the reason of what was written, unless there is one."""
        if why and self.is_recorded and self.operation.why is None:
            self._home.journal.explain(self.operation.id, _words(self._home, why, _WHY_CHARACTERS))

    def record(self, intents: Iterable[Intent], *, applied: bool = False) -> None:
        """Record what is to be written. ``applied``: it is in its files already, and goes to the journal only."""
        assert not self._is_closed  # noqa: S101 - its line in the ledger would not tell of it
        home, operation = self._home, self.operation
        belonging = [_of(operation, intent) for intent in intents]
        if not belonging:
            return
        if self._is_long:
            self.hold()
        with home.database.transaction():
            for path in {intent.path for intent in belonging if intent.action != "append"}:
                home.journal.withdraw(path)
            home.journal.record(operation, belonging)
            home.files.intend(belonging, applied=applied)
        self.is_recorded = True

    def hold(self) -> None:
        """Let other processes see that the operation goes on while they have the vault lock."""
        if self._lock is None:
            files.make_folder(self._home.settings.home / _FOLDER)
            self._lock = FileLock(_lock_of(self._home, self.operation.id))
            self._lock.acquire(_PATIENCE_SECONDS)

    def close(self) -> None:
        """Nothing more comes; closing it again does nothing."""
        if self.is_recorded and not self._is_closed:
            close(self._home, self.operation)
            self._is_closed = True

    def release(self) -> None:
        """Give back what :meth:`hold` took."""
        if self._lock:
            self._lock.release()
            self._lock.remove()
            self._lock = None


def close(home: Home, operation: Operation) -> None:
    """Nothing more comes: the ledger gets the operation's line, unless it has one, and it may be committed."""
    with home.database.transaction():
        if home.journal.find(operation.id) is None:
            return
        if operation.action not in (EDIT, ADOPT, SYNC) and not home.journal.is_in_ledger(
            operation.id
        ):
            home.files.intend([_of(operation, Intent("append", LEDGER, _line(home, operation)))])
        home.journal.close(operation.id, operation.subject or _subject(home, operation))


def left_open(home: Home) -> list[Operation]:
    """Operations that a crash cut short, or that another process has not ended; under the vault lock, only the former.

    Long ones that go on in a living process are not among them.
    """
    return [
        operation for operation in home.journal.unfinished() if not is_going_on(home, operation)
    ]


def is_going_on(home: Home, operation: Operation) -> bool:
    """Whether a long operation goes on in a process that is alive."""
    return is_held(_lock_of(home, operation.id))


def close_left_open(home: Home) -> None:
    """Close what a crash left open."""
    with home.vault_lock:
        for operation in left_open(home):
            close(home, operation)
            _lock_of(home, operation.id).unlink(missing_ok=True)


def memories_in_entry(memories: Iterable[str]) -> dict[str, object]:
    """Memories in an entry of the ledger: by their ids, or how many where they are many."""
    ids = sorted(memories)
    if len(ids) == 1:
        return {"memory": ids[0]}
    if len(ids) <= _MOST_NAMED:
        return {"memories": ids} if ids else {}
    return {"count": len(ids)}


def subject_of(memories: Sequence[Memory]) -> str | None:
    """What an operation on some memories is about, in words."""
    if not memories:
        return None
    more = len({memory.id for memory in memories}) - 1
    return f"{shorten(memories[0].subject, 80)} and {more} more" if more else memories[0].subject


def _lock_of(home: Home, operation_id: str) -> Path:
    return home.settings.home / _FOLDER / f"{operation_id}.lock"


def _subject(home: Home, operation: Operation) -> str | None:
    """What an operation is about, from what it touched."""
    touched = sorted(
        home.journal.touched(operation.id), key=lambda one: not one[1]
    )  # memories before pages
    if not touched:
        return None
    path, memory_id = touched[0]
    memory = home.memories.find(memory_id) if memory_id else None
    more = len({memory or path for path, memory in touched}) - 1
    first = memory.subject if memory else path
    return _words(home, f"{first} and {more} more" if more else first, _SUBJECT_CHARACTERS)


def _line(home: Home, operation: Operation) -> str:
    """An operation in the ledger: which memories, but none of their words."""
    memories = {memory for _, memory in home.journal.touched(operation.id) if memory}
    by = {"by": operation.by} if operation.by else {}
    return LedgerEntry(
        operation.id, operation.at, operation.action, {**memories_in_entry(memories), **by}
    ).line()


def _of(operation: Operation, intent: Intent) -> Intent:
    return replace(intent, operation=operation.id)


def _words(home: Home, text: str | None, limit: int) -> str | None:
    return shorten(one_line(home.redactor.clean(text)), limit) if text else None


# ----------------------------------------------------------------------------
# Intents: writes to the vault that are durable in the database, and are brought to their files from
# there.
#
# A crash leaves them; whoever writes next, or opens the home, completes them.


_GROUP = 200
"""Writes that are marked as done in one transaction, which takes some ten milliseconds."""


def apply_intents(home: Home) -> int:
    """Bring the vault up to the index; returns how many writes were done.

    A write that fails keeps its intent, and so do later ones to the same file or of the same memory: the old file stays
    until the new one is there. The others go on.
    """
    if not home.files.has_intents() and not left_open(home):
        return 0
    done = 0
    stuck: set[str] = set()
    with home.vault_lock:
        close_left_open(home)
        intents = home.files.intents()
        for start in range(0, len(intents), _GROUP):
            done += _apply_group(home, intents[start : start + _GROUP], stuck)
    return done


def _apply_group(home: Home, intents: Sequence[Intent], stuck: set[str]) -> int:
    """Some writes, which wait for the disk together; ``stuck`` are paths and memories of those that cannot be done."""
    done: list[Applied] = []
    home.vault.write_ahead(
        {one.path: one.document or "" for one in reversed(intents) if one.action == "write"}
    )
    for intent in intents:
        if intent.path in stuck or intent.memory in stuck or intent.action == "append":
            continue
        try:
            done.append(_apply(home, intent))
        except (VaultUnusable, MemoryInvalid) as error:
            stuck |= {intent.path, intent.memory or intent.path}
            home.problems.append(f"{intent.path}: not written yet: {error.message}")
    lines = [intent for intent in intents if intent.action == "append"]
    end = _append(home, lines) if lines else None
    home.vault.sync_folders({one.intent.path for one in done})
    with home.database.transaction():
        for one in done:
            if one.file:
                home.files.save(one.file)
            if one.is_done:
                home.files.done(one.intent.seq)
            else:
                home.files.give_up(one.intent.seq)
        if end:
            home.journal.set_ledger_end(*end)
            for intent in lines:
                home.files.done(intent.seq)
    return len(done) + (len(lines) if end else 0)


@dataclass(frozen=True, slots=True)
class Applied:
    """An intent that was looked after: the file it left, and whether it was done or given up."""

    intent: Intent
    file: SeenMemoryFile | None = None
    is_done: bool = True


def _append(home: Home, lines: Sequence[Intent]) -> tuple[int, bytes] | None:
    """Write what is new in the ledger, at once; ``None`` when it cannot be written now."""
    try:
        return home.vault.append(
            LEDGER, [line.document or "" for line in lines], home.journal.ledger_end()
        )
    except (VaultUnusable, MemoryInvalid) as error:
        home.problems.append(f"{LEDGER}: not written yet: {error.message}")
        return None


def _apply(home: Home, intent: Intent) -> Applied:
    if intent.action == "remove":
        return Applied(intent, is_done=_apply_remove(home, intent))
    return _apply_write(home, intent)


def _apply_remove(home: Home, intent: Intent) -> bool:
    """Take the old file away, unless someone changed it since: then it stays, and is read as what it is now."""
    try:
        present = bytes_hash(home.vault.read(intent.path))
    except FileNotFoundError:
        return True
    if intent.base is not None and present != intent.base:
        home.problems.append(
            f"{intent.path}: was edited meanwhile, so it stays beside its new place"
        )
        return False
    home.vault.remove(intent.path)
    return True


def _apply_write(home: Home, intent: Intent) -> Applied:
    document = intent.document or ""
    base = intent.base if home.vault.exists(intent.path) else None
    try:
        home.vault.write(intent.path, document, base=base)
    except EditConflict:
        if _is_overtaken(home, intent):
            return Applied(intent)
        return (
            Applied(intent, is_done=False)
            if intent.action == "adjust"
            else _keep_both(home, intent)
        )
    if intent.memory is None:
        return Applied(intent)
    stat = home.vault.stat(intent.path)
    digest = bytes_hash(document.encode("utf-8", errors="replace"))
    return Applied(
        intent, SeenMemoryFile(intent.path, intent.memory, stat.mtime_ns, stat.size, digest)
    )


def _is_overtaken(home: Home, intent: Intent) -> bool:
    """Whether the file holds what a later write of nacre's own was to put there: a crash left both to be done again."""
    present = bytes_hash(home.vault.read(intent.path))
    later = (
        other
        for other in home.files.intents()
        if other.seq > intent.seq and other.path == intent.path
    )
    return any(
        other.document and bytes_hash(other.document.encode("utf-8", "replace")) == present
        for other in later
    )


def _keep_both(home: Home, intent: Intent) -> Applied:
    """Someone edited the file meanwhile: theirs stays, ours becomes a memory of its own beside it.

    Ours turns into another intent in one transaction, so that a crash on the way makes no second copy.
    """
    memory = home.memories.find(intent.memory or "")
    if memory is None:
        home.problems.append(f"{intent.path}: was edited meanwhile; that version is kept")
        return Applied(intent, is_done=False)
    home.problems.append(f"{intent.path}: was edited meanwhile; both versions are kept")
    ours = replace(memory, id=home.ids(), links=(*memory.links, Link("alternative_to", memory.id)))
    path = new_path(home, ours)
    with home.database.transaction():
        home.memories.put(ours)
        home.files.forget(intent.path)
        write = replace(
            write_memory(home, path, render(ours), None, ours), operation=intent.operation
        )
        home.files.intend([write])
        if intent.operation:
            home.journal.touch(intent.operation, [write])
        home.files.give_up(intent.seq)
    return _apply_write(home, home.files.intents()[-1])


def write_memory(
    home: Home, path: str, document: str, base: bytes | None, memory: Memory
) -> Intent:
    """The write of a memory's file, which the index expects from now on. ``base`` is the hash of what is there now."""
    encoded = document.encode("utf-8", errors="replace")
    home.files.save(SeenMemoryFile(path, memory.id, 0, len(encoded), bytes_hash(encoded)))
    return Intent("write", path, document, base, memory.id)


def new_path(home: Home, memory: Memory) -> str:
    """A path that no file has, for a memory."""
    return path_for(memory, lambda path: home.files.is_taken(path) or home.vault.exists(path))
