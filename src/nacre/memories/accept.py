"""Acceptance apart from placing: where another writer is at work, a memory is durable before it has its place.

An accepted memory is its whole document, in a file of its own in the home's folder ``accepted``: 64 clients write and
wait for the disk side by side, which no lock and no database lets them. Whoever holds the vault lock next places what
was accepted, in the order of the ids, which is the order of time; a crash leaves the files, and the next command goes
on with them. What became of a memory is recorded in the transaction that places it, so that it is placed once.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from nacre.dedup.comparison import compare
from nacre.dedup.decision_prompt import Decision
from nacre.dedup.placement import place, put
from nacre.errors import EditConflict, MemoryInvalid, StoreUnusable
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.intents import apply_intents
from nacre.platform import json_values, private_files
from nacre.platform.ids import to_ms
from nacre.values.memory import Kind, Memory
from nacre.values.reports import Replaced, StoreOutcome
from nacre.vault.document import parse, render, rewrite

FOLDER = "accepted"

_DECISION = "decision"
"""The key of an accepted document that holds what a model decided about it."""

_BATCH_SECONDS = 0.2
_KEPT = timedelta(days=1)
_ID = re.compile(r"[\w-]{1,100}")

_BESIDE = ".beside.md"
"""How the file of a memory ends that is to be stored beside whatever is there."""


def accept(home: Home, memory: Memory, *, beside: bool, decision: Decision | None = None) -> None:
    """Make a memory durable, without any lock. It is on disk when this returns. Raises StoreUnusable.

    What a model decided about it goes with it: whoever places it has no time to ask.
    """
    if decision:
        memory = replace(memory, extra={**memory.extra, _DECISION: msgspec.json.encode(decision).decode()})
    folder = _folder(home)
    target = folder / f"{memory.id}{_BESIDE if beside else '.md'}"
    temporary = private_files.temporary_name(target)
    try:
        private_files.make_folder(folder)
        descriptor = private_files.open_file(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        with os.fdopen(descriptor, "wb") as file:
            file.write(render(memory).encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(target)
        _sync(folder)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise StoreUnusable(
            f"cannot write to {folder}: {error.strerror}", hint="nothing was stored; free some space or mend the folder"
        ) from error


def waiting(home: Home) -> list[str]:
    """The names of what was accepted and has no place yet, the oldest first."""
    try:
        return sorted(name for name in os.listdir(_folder(home)) if name.endswith(".md") and name[0] != ".")
    except FileNotFoundError:
        return []


def is_waiting(home: Home) -> bool:
    """Whether anything accepted has no place yet."""
    try:
        with os.scandir(_folder(home)) as entries:
            return any(entry.name[0] != "." for entry in entries)
    except FileNotFoundError:
        return False


def waits(home: Home, memory_id: str) -> bool:
    """Whether an accepted memory has no place yet."""
    return any(os.path.exists(_folder(home) / name) for name in _names(memory_id))


def _names(memory_id: str) -> tuple[str, ...]:
    """The files that may hold it; none for what is no id: whoever asks for a memory may name anything."""
    return (f"{memory_id}{_BESIDE}", f"{memory_id}.md") if _ID.fullmatch(memory_id) else ()


def accepted(home: Home, memory_id: str) -> Memory | None:
    """A memory that waits for its place, or that took its place, by the id with which it was accepted."""
    told = home.outcomes.find(memory_id)
    if told:
        return home.memories.find(told["memory"])
    for name in _names(memory_id):
        try:
            return _apart(_read(home, name))[0]
        except FileNotFoundError:
            continue
    return None


def place_accepted(home: Home, seconds: float = _BATCH_SECONDS) -> int:
    """Place what was accepted, the oldest first, each as an operation of its own; returns how many.

    It goes on for so long at most, and ends early when somebody waits for the lock. What cannot be placed stays where
    it is, and is told in ``home.problems``.
    """
    if not waiting(home):
        return 0
    _get_ready()
    with home.vault_lock:
        done = _place_until(home, waiting(home), time.monotonic() + seconds)
        if done:
            apply_intents(home)
            for name in done:
                (_folder(home) / name).unlink(missing_ok=True)
    return len(done)


def _place_until(home: Home, names: Sequence[str], until: float) -> list[str]:
    """Place some, until a moment of the monotonic clock; the names of those that were placed."""
    done = []
    with home.database.transaction():
        for name in names:
            if _is_placed(home, name):
                done.append(name)
            if time.monotonic() >= until or home.vault_lock.is_wanted():
                break
            home.database.yield_write_lock()
        else:
            home.outcomes.forget(to_ms(home.now() - _KEPT) or 0)
            private_files.sweep(_folder(home))
    return done


def outcome_of(home: Home, memory_id: str) -> StoreOutcome:
    """What became of an accepted memory; ``accepted`` while it waits for its place."""
    told = home.outcomes.find(memory_id)
    if told is None:
        return StoreOutcome("stored" if home.memories.find(memory_id) else "accepted", memory_id)
    return _outcome(home, told)


def placed(change: Change, memory: Memory, *, beside: bool, decision: Decision | None) -> StoreOutcome:
    """Place what somebody stores, or put it beside whatever is there. What is quoted from a session is not stored by
    hand: it brings nothing back that was retired since.
    """
    if beside:
        return put(change, memory, ())
    return place(change, memory, by_hand=not memory.source.turns, decision=decision)


def place_first(home: Home, reference: str) -> None:
    """Place all that was accepted before a memory, and itself, if it waits."""
    while waits(home, reference) and place_accepted(home):
        pass


@cache
def _get_ready() -> None:
    """Load what the first comparison and the first rewrite of a process load, before the write lock is taken."""
    day = datetime(2026, 1, 1, tzinfo=UTC)
    one = Memory("1", Kind.FACT, "Backups", "Backups are kept for 30 days.", day, day)
    other = replace(one, id="2", content="Backups are now kept for 90 days.")
    compare(other, [one])
    rewrite(render(one), other)


def _is_placed(home: Home, name: str) -> bool:
    """Place one; what cannot be placed leaves nothing behind but a problem."""
    try:
        with home.database.savepoint():
            _place(home, name)
    except FileNotFoundError:
        return False
    except (MemoryInvalid, EditConflict, UnicodeDecodeError) as error:
        message = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.message
        home.problems.append(f"{_folder(home) / name}: {message}")
        return False
    return True


def _place(home: Home, name: str) -> None:
    memory, decision = _apart(_read(home, name))
    if home.outcomes.find(memory.id) or home.memories.find(memory.id):
        return
    is_beside = name.endswith(_BESIDE)
    with home.change("store", subject=memory.subject) as change:
        outcome = placed(change, memory, beside=is_beside, decision=decision)
        change.explain(outcome.in_words())
    home.outcomes.record(memory.id, to_ms(home.now()) or 0, _told(outcome))


def _read(home: Home, name: str) -> Memory:
    with os.fdopen(private_files.open_file(_folder(home) / name, os.O_RDONLY), "rb") as file:
        text = file.read().decode("utf-8")
    memory = parse(text, f"inbox/{name}", new_id=home.ids, modified=home.now())
    return replace(memory, inbox=False)  # there the document itself says which project it belongs to


def _apart(memory: Memory) -> tuple[Memory, Decision | None]:
    """An accepted memory, and what was decided about it; a decision that cannot be read is none."""
    told = memory.extra.get(_DECISION)
    if told is None:
        return memory, None
    memory = replace(memory, extra={key: value for key, value in memory.extra.items() if key != _DECISION})
    try:
        return memory, json_values.decode(str(told).encode("utf-8", "replace"), Decision)
    except msgspec.DecodeError:
        return memory, None


def _told(outcome: StoreOutcome) -> dict[str, Any]:
    by = outcome.superseded_by
    return {
        "action": outcome.action,
        "memory": outcome.memory_id,
        "reason": outcome.reason,
        "supersedes": [[one.memory.id, one.reason] for one in outcome.supersedes],
        "superseded_by": [by.memory.id, by.reason] if by else None,
        "similar": [one.id for one in outcome.similar],
        "decided_by": outcome.decided_by,
        "amended": outcome.amended.id if outcome.amended else None,
    }


def _outcome(home: Home, told: dict[str, Any]) -> StoreOutcome:
    def replaced(pairs: Sequence[Sequence[str]]) -> tuple[Replaced, ...]:
        found = ((home.memories.find(memory_id), reason) for memory_id, reason in pairs)
        return tuple(Replaced(memory, reason) for memory, reason in found if memory)

    similar = (home.memories.find(memory_id) for memory_id in told["similar"])
    by = replaced([told["superseded_by"]] if told["superseded_by"] else [])
    return StoreOutcome(
        told["action"], told["memory"], told["reason"], replaced(told["supersedes"]), by[0] if by else None,
        tuple(one for one in similar if one), told.get("decided_by"),
        amended=home.memories.find(told.get("amended") or ""),
    )  # fmt: skip


@contextmanager
def _held(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _sync(folder: Path) -> None:
    """Wait until a new name is on disk."""
    if os.name != "nt":
        with _held(folder) as descriptor:
            os.fsync(descriptor)


def _folder(home: Home) -> Path:
    return home.folder / FOLDER
