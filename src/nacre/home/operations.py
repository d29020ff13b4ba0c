"""Operations: every change of the vault belongs to one, which can be told, compared and undone as one.

Call with the vault lock held, or within one transaction: an operation that is still open when another process gets the
lock was cut short by a crash, and is closed as it is. A long one that lets others have the lock in between, and a run,
which is one operation in many parts, say that they go on (:func:`goes_on`): they hold a file lock of their own, which
the system frees when their process dies. What touches their files is committed after them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from nacre.home.home import Home
from nacre.platform import private_files
from nacre.platform.locks import FileLock, is_held
from nacre.storage.vault_index import Intent
from nacre.text.passages import one_line, shorten
from nacre.values.operation import ADOPT, EDIT, SYNC, Operation
from nacre.vault.layout import LEDGER
from nacre.vault.ledger import Entry

_SUBJECT_CHARACTERS = 120
_WHY_CHARACTERS = 300
_MOST_NAMED = 20
_GOING_ON = "operations"
_PATIENCE_SECONDS = 1.0


@contextmanager
def running(
    home: Home, action: str, *, subject: str | None = None, why: str | None = None, op: str | None = None
) -> Iterator[None]:  # fmt: skip
    """A long operation in parts, between which others write; within another run, part of that one.

    ``subject``, ``why`` and ``op`` are as for :func:`operating`. What is written within ``operating(…, in_run=True)``
    belongs to it. When it ends, its line for the ledger is an intent. What a crash leaves of it is closed by whoever
    writes next.
    """
    if home.runs:
        yield
        return
    operation = Operation(
        op or home.ids(), home.now(), action, _words(home, subject, _SUBJECT_CHARACTERS),
        _words(home, why, _WHY_CHARACTERS),
    )  # fmt: skip
    home.runs.append(operation)
    try:
        yield
        if operation.id in home.going_on:
            with home.vault_lock:
                close(home, operation)
    finally:
        home.runs.remove(operation)
        _ends(home, operation)


@contextmanager
def operating(
    home: Home, action: str, *, subject: str | None = None, why: str | None = None, op: str | None = None,
    in_run: bool = False,
) -> Iterator[Operation]:  # fmt: skip
    """Whatever is written within belongs to one operation; within another one, to that one.

    ``subject`` says in words what it is about, ``why`` for what reason; secrets are taken out of both. ``op`` is its id
    where it has one. ``in_run``: it is a part of the run that is going on, if one is. Nothing is recorded until
    something is written.
    """
    if home.operations:
        yield home.operations[-1]
        return
    run = home.runs[-1] if in_run and home.runs else None
    operation = run or Operation(
        op or home.ids(), home.now(), action, _words(home, subject, _SUBJECT_CHARACTERS),
        _words(home, why, _WHY_CHARACTERS),
    )  # fmt: skip
    home.operations.append(operation)
    try:
        if run:
            goes_on(home)
        yield operation
        if run is None:
            close(home, operation)
    finally:
        home.operations.remove(operation)
        if run is None:
            _ends(home, operation)


def explain(home: Home, why: str | None) -> None:
    """Say why the operation that is going on was done, when that is known after its writes. Call in a transaction."""
    operation = home.operations[-1]
    if why and operation.why is None:
        home.journal.explain(operation.id, _words(home, why, _WHY_CHARACTERS))


def intend(home: Home, intents: Iterable[Intent], *, applied: bool = False) -> None:
    """Record what is to be written, with the operation it belongs to. Call in a transaction, within an operation.

    ``applied`` ones are in their files already, and go to the journal only.
    """
    operation = home.operations[-1]
    belonging = [_of(operation, intent) for intent in intents]
    if belonging:
        for path in {intent.path for intent in belonging if intent.action != "append"}:
            home.journal.withdraw(path)
        home.journal.record(operation, belonging)
        home.files.intend(belonging, applied=applied)


def record_apart(home: Home, action: str, intent: Intent, *, why: str) -> None:
    """Put one thing that is in its file in the journal, as an operation of its own. Call in a transaction."""
    operation = Operation(home.ids(), home.now(), action, why=why)
    belonging = _of(operation, intent)
    home.journal.record(operation, [belonging])
    home.files.intend([belonging], applied=True)
    home.journal.close(operation.id, _subject(home, operation))


def close(home: Home, operation: Operation) -> None:
    """Nothing more comes: the ledger gets the operation's line, unless it has one, and it may be committed."""
    with home.database.transaction():
        if home.journal.find(operation.id) is None:
            return
        if operation.action not in (EDIT, ADOPT, SYNC) and not home.journal.is_in_ledger(operation.id):
            home.files.intend([_of(operation, Intent("append", LEDGER, _line(home, operation)))])
        home.journal.close(operation.id, operation.subject or _subject(home, operation))


def goes_on(home: Home) -> None:
    """Say that the operation that is open now goes on when this process has the vault lock again."""
    for operation in home.operations:
        if operation.id not in home.going_on:
            private_files.make_folder(home.settings.home / _GOING_ON)
            lock = FileLock(_lock_of(home, operation.id))
            lock.acquire(_PATIENCE_SECONDS)
            home.going_on[operation.id] = lock


def left_open(home: Home) -> list[Operation]:
    """Operations that were going on when a crash came, or are elsewhere; with the vault lock held, only the former.

    Those of which a living process says that they go on are not among them.
    """
    own = {operation.id for operation in (*home.operations, *home.runs)}
    others = [operation for operation in home.journal.unfinished() if operation.id not in own]
    return [operation for operation in others if not is_going_on(home, operation)]


def is_going_on(home: Home, operation: Operation) -> bool:
    """Whether an operation goes on in a process that is alive, and lets others write meanwhile."""
    return is_held(_lock_of(home, operation.id))


def _ends(home: Home, operation: Operation) -> None:
    lock = home.going_on.pop(operation.id, None)
    if lock:
        lock.release()
        lock.remove()


def _lock_of(home: Home, operation_id: str) -> Path:
    return home.settings.home / _GOING_ON / f"{operation_id}.lock"


def close_left_open(home: Home) -> None:
    """Close what a crash left open. Call with the vault lock held."""
    for operation in left_open(home):
        close(home, operation)
        _lock_of(home, operation.id).unlink(missing_ok=True)


def _subject(home: Home, operation: Operation) -> str | None:
    """What an operation is about, told by what it touched."""
    touched = sorted(home.journal.touched(operation.id), key=lambda one: not one[1])  # memories before pages
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
    return Entry(operation.id, operation.at, operation.action, told_of(memories)).line()


def told_of(memories: Iterable[str]) -> dict[str, object]:
    """Memories in an entry of the ledger: by their ids, or how many where they are many."""
    ids = sorted(memories)
    if len(ids) == 1:
        return {"memory": ids[0]}
    if len(ids) <= _MOST_NAMED:
        return {"memories": ids} if ids else {}
    return {"count": len(ids)}


def _of(operation: Operation, intent: Intent) -> Intent:
    return replace(intent, operation=operation.id)


def _words(home: Home, text: str | None, limit: int) -> str | None:
    return shorten(one_line(home.redactor.clean(text)), limit) if text else None
