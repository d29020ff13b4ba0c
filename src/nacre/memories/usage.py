"""How memories are used: spooled where they are recalled, folded into the database by the next writing command.

A recall appends one line to a spool. Folding takes the spool away under another name, counts it in transactions that
also note its name and how far they are, and then deletes it: a crash at any point loses no whole line and counts none
twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from nacre.errors import EditConflict, StoreBusy, VaultUnusable
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.memories import documents
from nacre.platform import json_text, private_files
from nacre.platform.ids import to_ms
from nacre.platform.locks import FileLock
from nacre.spending.spool import fold_notes
from nacre.storage.sqlite.rows import noted_pair
from nacre.values.memory import Memory
from nacre.values.review import UNSAID, Reason, StepsDue
from nacre.vault import ledger
from nacre.vault.layout import LEDGER

SPOOL = "usage.jsonl"
RAISED = "importance"
"""What the ledger calls a step of importance."""

PAIRED_A_USE = 5
"""Of one answer, so many memories are paired with each other: what stands below is seldom read."""

PAIRED_A_SESSION = 20
MOST_BY_USE = 9
_SITTING_MS = 30 * 60 * 1000
_SHORT_ID = 8
_KEPT_MS = 30 * 86_400_000
_DAY_MS = 86_400_000
_LATEST_MS = 2**62
_PATIENCE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Use:
    """Memories that were used at a time (epoch milliseconds), in a host's session if it named one.

    A look is one memory that was opened: an access, but no recall.
    """

    at: int
    ids: tuple[str, ...]
    session: str | None = None
    is_look: bool = False


def spool_use(home: Home, memory_ids: Sequence[str], *, session: str | None = None, is_look: bool = False) -> None:
    """Note that memories were used: one appended line, no database write.

    An answer never fails for it: on a full or read-only disk, or where another process stands still in the moment of
    taking the spool away, the line is dropped.
    """
    record: dict[str, object] = {"at": to_ms(home.clock()), "ids": list(memory_ids)}
    if session:
        record["session"] = session_name(session)
    if is_look:
        record["look"] = True
    if home.database.unwritable:
        return
    with contextlib.suppress(StoreBusy, OSError), _spool_lock(home):
        descriptor = private_files.open_file(home.folder / SPOOL, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(f"\n{json.dumps(record)}")  # the line end comes first: a torn line spoils no other one


def session_name(session: str) -> str:
    """A host's session id as it is kept: a hash, since it is only compared, and nobody knows what a host puts in it."""
    return hashlib.blake2b(session.strip().encode("utf-8", "replace"), digest_size=16).hexdigest()


def fold_usage(home: Home, seconds: float = math.inf) -> int:
    """Count what was spooled; returns how many recalls that were. Raises StoreBusy.

    It goes on for so long at most; the next one does the rest. Memories that were recalled often enough gain
    importance, in their files; see docs/context.md.
    """
    if seconds == math.inf:
        fold_notes(home)
    if home.database.unwritable or (not _is_readable(home.folder / SPOOL) and not _left(home)):
        return 0
    counted = 0
    until = time.monotonic() + seconds
    with home.change(RAISED, why="recalled often") as change:
        for taken in chain(_left(home), _take(home)):
            counted += _fold(change, taken, until)
            if home.usage.value("folded") != taken.name:
                break  # the time is up, or another process goes on with it
            taken.unlink(missing_ok=True)
        _raise_importance(change)
        queue_reviews(home)
    return counted


def use_together(home: Home, session: str, memory_ids: Sequence[str], day: int) -> None:
    """Pair memories with each other and with those used before in a session: once each, at most 20 a session."""
    with home.database.transaction():
        before = home.session_uses.paired(session)
        fresh = [memory for memory in dict.fromkeys(memory_ids) if memory not in before]
        room = PAIRED_A_SESSION - len(before)
        joined = home.co_recall.join(fresh[: max(0, room)], before, day)
        home.session_uses.pair(session, joined)


def learned_together(home: Home, memories: Sequence[Memory]) -> None:
    """Pair memories that were learned from one session, also with what was learned from it before."""
    learned: dict[str, list[str]] = defaultdict(list)
    for memory in memories:
        if memory.source.session:
            learned[memory.source.session].append(memory.id)
    for session, ids in learned.items():
        before = [known.id for known in home.memories.known_of(session) if known.id not in ids][:PAIRED_A_SESSION]
        home.co_recall.join(ids[: PAIRED_A_SESSION - len(before)], before, today(home))


def today(home: Home) -> int:
    """The day, counted from 1970, UTC."""
    return (to_ms(home.clock()) or 0) // _DAY_MS


def queue_reviews(home: Home) -> None:
    """Put what deserves a look into the review queue: low quality despite much use, contradicted more than once."""
    at = to_ms(home.now()) or 0
    for memory, quality, recalls in home.reviews.low_quality():
        detail = f"quality {quality:.2f} after {recalls} recalls"
        home.reviews.add(memory, Reason.LOW_QUALITY, detail, at, once=False)
    for doubt in home.reviews.doubts():
        why = f" ({doubt.reason})" if doubt.reason else ""
        detail = f"{doubt.newer[-_SHORT_ID:]} says otherwise{why}"
        home.reviews.add(doubt.older, Reason.CONTRADICTED, detail, at, once=False)
    for proposed in home.reviews.proposed():
        home.reviews.add(proposed, Reason.PROPOSED, "an agent stored it", at, once=True)
    for stale in documents.unsaid(home):
        home.reviews.add(stale, Reason.STALE, UNSAID, at, once=True)
    for memory, times in home.reviews.contradicted():
        detail = f"contradicted {times} times"
        home.reviews.add(memory, Reason.CONTRADICTED, detail, at, once=True)


def _raise_importance(change: Change) -> None:
    """Give memories the importance that their recalls have earned: 1 each at 3, 10 and 25 sittings, up to 9.

    The step is in the memory's file and in the ledger. A file that a person is just changing waits for the next time.
    """
    home = change.home
    if not home.settings.flag("usage.raise_importance"):
        return
    due = {steps.memory: steps for steps in home.usage.steps_due()}
    if not due:
        return
    taken = _steps_taken(home)
    with change.transaction():
        for memory in list(due):
            steps = due.get(memory)
            with contextlib.suppress(EditConflict, VaultUnusable):
                if steps:
                    _raise(change, replace(steps, taken=max(steps.taken, taken.get(memory, 0))))
            if change.yield_locks():
                due = {steps.memory: steps for steps in home.usage.steps_due()}


def _raise(change: Change, due: StepsDue) -> None:
    home = change.home
    memory = home.memories.find(due.memory)
    if memory is None or not memory.is_vouched:
        return
    importance = max(memory.importance, min(MOST_BY_USE, memory.importance + due.earned - due.taken))
    if importance > memory.importance:
        note = change.entry(RAISED, memory=memory.id, was=memory.importance, now=importance, steps=due.earned)
        change.set_importance(replace(memory, importance=importance), note)
    home.usage.set_steps(memory.id, due.earned)


def _steps_taken(home: Home) -> dict[str, int]:
    """The steps that the ledger knows of: a new database does not take them again."""
    try:
        entries = [item for item in ledger.read(home.vault.read(LEDGER)) if item.action == RAISED]
    except FileNotFoundError:
        return {}
    taken: dict[str, int] = {}
    for item in entries:
        memory, steps = str(item.details.get("memory")), item.details.get("steps")
        if isinstance(steps, int):
            taken[memory] = max(taken.get(memory, 0), steps)
    return taken


def _fold(change: Change, taken: Path, until: float) -> int:
    """Count what was taken away, as far as the time goes, or until another process goes on with it."""
    home = change.home
    present = to_ms(home.clock()) or 0
    counted = 0
    with home.database.transaction():
        if home.usage.value("folded") == taken.name:
            return 0
        uses = sorted((replace(use, at=min(use.at, present)) for use in _read(taken)), key=lambda use: use.at)
        for at in range(_folded(home, taken), len(uses)):
            use = uses[at]
            session = use.session or _sitting(home, use.at)
            _count(home, session, use)
            use_together(home, session, use.ids[:PAIRED_A_USE], use.at // _DAY_MS)
            counted += 0 if use.is_look else len(use.ids)
            so_far = partial(home.usage.set_value, _folding(taken), str(at + 1))
            if change.yield_locks(so_far) and _folded(home, taken) != at + 1:
                return counted
            if time.monotonic() > until:
                so_far()
                return counted
        home.co_recall.forget_faded(today(home))
        home.session_uses.forget(present - _KEPT_MS)
        home.usage.set_value("folded", taken.name)
        home.usage.drop_value(_folding(taken))
    return counted


def _folded(home: Home, taken: Path) -> int:
    """How many lines of a spool are counted; -1 when all are."""
    if home.usage.value("folded") == taken.name:
        return -1
    done = home.usage.value(_folding(taken)) or ""
    return int(done) if done.isdecimal() else 0


def _folding(taken: Path) -> str:
    """What is noted while a spool is counted: processes that share a memory on a server have a spool each."""
    return f"folding {taken.name}"


def _count(home: Home, session: str, use: Use) -> None:
    """Count one use: a look is an access; a recall counts once a session, and again where it goes on a day later."""
    if use.is_look:
        home.usage.look(use.ids)
        home.session_uses.record(session, use.ids, use.at, recalled=())
        return
    first = set(use.ids) - home.session_uses.recalled(session, use.at - _DAY_MS)
    home.usage.record(use.ids, use.at, first=first)
    home.session_uses.record(session, use.ids, use.at, recalled=first)


def _sitting(home: Home, at: int) -> str:
    """Where no session was named: uses less than half an hour apart belong to one sitting."""
    start, last = noted_pair(home.usage.value("sitting"), (0, 0))
    if abs(at - last) > _SITTING_MS:
        start = at
    home.usage.set_value("sitting", json.dumps([start, max(at, last)]))
    return f"sitting:{start}"


def _read(taken: Path) -> Iterator[Use]:
    """What was noted; a line that makes no sense is passed over, or nothing could be written ever after."""
    for line in taken.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError):
            values = json_text.parse(line)
            at, ids, session = int(values["at"]), tuple(map(_text, values["ids"])), values.get("session")
            if 0 <= at < _LATEST_MS:
                yield Use(at, ids, _text(session) if session else None, bool(values.get("look")))


def _text(value: object) -> str:
    """A text that the database can hold. Raises TypeError, ValueError."""
    if not isinstance(value, str):
        raise TypeError(f"not a text: {value!r}")
    value.encode("utf-8")
    return value


def _left(home: Home) -> list[Path]:
    """Spools that were taken away and not deleted, the oldest first: what a crash leaves."""
    return sorted(filter(_is_readable, home.folder.glob("usage.*.taken")))


def _is_readable(spool: Path) -> bool:
    """A spool that cannot be read waits; what a command is for does not wait for it."""
    return spool.is_file() and os.access(spool, os.R_OK)


def _take(home: Home) -> Iterator[Path]:
    """Take the spool away once it is asked for; nobody is writing to it then."""
    spool = home.folder / SPOOL
    taken = spool.with_name(f"usage.{home.ids()}.taken")
    if not _is_readable(spool):
        return
    try:
        with _spool_lock(home):
            spool.rename(taken)
    except (FileNotFoundError, StoreBusy):
        return
    yield taken


def _spool_lock(home: Home) -> FileLock:
    return FileLock(home.folder / "usage.lock", _PATIENCE_SECONDS)
