"""Usage records and quality of memories.

A recall adds one line to a spool file. A later transaction counts the line and records the position
in the spool, so that no line is counted twice after a crash.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from nacre.base.frozen import frozen
from nacre.base.ids import content_hash, to_ms
from nacre.base.plugins import STALE, load_usable_plugins
from nacre.base.spool import Spool, lines
from nacre.base.text import stem, words
from nacre.errors import EditConflictError, UnusableVaultError
from nacre.home.change import Change
from nacre.home.home import Home
from nacre.home.spending import fold_notes
from nacre.readers import registry
from nacre.store.schema import noted_pair
from nacre.values.memory import Kind, Memory
from nacre.values.review import UNSAID, Maturity, Reason, StepsDue, Usage, Verdict
from nacre.vault import files as ledger

SPOOL = "usage"
RAISED = "importance"
"""Ledger action for an increase in importance."""

PAIRED_A_USE = 5
"""Maximum number of memories to pair per answer. Lower-ranked memories are rarely read."""

PAIRED_A_SESSION = 20
MOST_BY_USE = 9
_SITTING_GAP_MS = 30 * 60 * 1000
_SHORT_ID_CHARACTERS = 8
_RETENTION_MS = 30 * 86_400_000
_DAY_MS = 86_400_000
_LATEST_MS = 2**62


@frozen
class Use:
    """A use of memories.

    ``at`` is in epoch milliseconds. ``is_look`` is True if a memory was opened rather than
    recalled.
    """

    at: int
    ids: tuple[str, ...]
    session: str | None = None
    is_look: bool = False


def spool_use(
    home: Home, memory_ids: Sequence[str], *, session: str | None = None, is_look: bool = False
) -> None:
    """Record a use of memories in a file, without writing to the database. Errors are ignored."""
    record: dict[str, object] = {"at": to_ms(home.clock()), "ids": list(memory_ids)}
    if session:
        record["session"] = session_name(session)
    if is_look:
        record["look"] = True
    if not home.database.unwritable:
        Spool(home.folder, SPOOL).append(json.dumps(record).encode())


def session_name(session: str) -> str:
    """Return a hash of a host's session id, which can have any format."""
    return content_hash(session.strip()).hex()


def fold_usage(home: Home, seconds: float = math.inf) -> int:
    """Count the recorded uses of memories, and return the number of recalls.

    After ``seconds``, remaining uses are left to the next call. Frequently recalled memories gain
    importance, as docs/context.md explains. Raises StoreBusyError.
    """
    if seconds == math.inf:
        fold_notes(home)
    uses = Spool(home.folder, SPOOL)
    if home.database.unwritable or not (os.access(uses.path, os.R_OK) or uses.leftovers()):
        return 0
    count = 0
    deadline = time.monotonic() + seconds
    with home.change(RAISED, why="recalled often") as change:
        for spool in uses.take(home.ids):
            count += _fold(change, spool, deadline)
            if home.usage.value("folded") != spool.name:
                break  # time ran out, or another process continues
            spool.unlink(missing_ok=True)
        _raise_importance(change)
        queue_reviews(home)
    return count


def use_together(home: Home, session: str, memory_ids: Sequence[str], day: int) -> None:
    """Record that memories were used in the same session, for at most 20 memories per session."""
    with home.transaction():
        before = home.session_uses.paired(session)
        new = [memory for memory in dict.fromkeys(memory_ids) if memory not in before]
        room = PAIRED_A_SESSION - len(before)
        paired = home.co_recall.join(new[: max(0, room)], before, day)
        home.session_uses.pair(session, paired)


def learned_together(home: Home, memories: Sequence[Memory]) -> None:
    """Record which memories, new and earlier, were learned in the same session."""
    ids_by_session: dict[str, list[str]] = defaultdict(list)
    for memory in memories:
        if memory.source.session:
            ids_by_session[memory.source.session].append(memory.id)
    for session, ids in ids_by_session.items():
        before = [
            earlier.id for earlier in home.memories.known_of(session) if earlier.id not in ids
        ][:PAIRED_A_SESSION]
        home.co_recall.join(ids[: PAIRED_A_SESSION - len(before)], before, today(home))


def today(home: Home) -> int:
    """Return the number of UTC days since 1970."""
    return home.now_ms() // _DAY_MS


def queue_reviews(home: Home) -> None:
    """Queue doubtful memories for review.

    These are contradicted, proposed by an agent, of low quality, or no longer supported by their
    document.
    """
    at = home.now_ms()
    for memory, quality, recalls in home.reviews.low_quality():
        detail = f"quality {quality:.2f} after {recalls} recalls"
        home.reviews.add(memory, Reason.LOW_QUALITY, detail, at, once=False)
    doubts = home.reviews.doubts()
    older = {doubt.older for doubt in doubts}
    contradicted = {
        entry.memory for entry in home.reviews.pending() if entry.reason is Reason.CONTRADICTED
    }
    if contradicted - older:
        home.reviews.end_doubts(sorted(older))
    for doubt in doubts:
        why = f" ({doubt.reason})" if doubt.reason else ""
        detail = f"{doubt.newer[-_SHORT_ID_CHARACTERS:]} contradicts it{why}"
        home.reviews.add(doubt.older, Reason.CONTRADICTED, detail, at, once=False)
    for proposed in home.memories.rows_of(home.reviews.proposed()).values():
        detail = f"triggers: {', '.join(proposed.triggers)}" if proposed.triggers else ""
        home.reviews.add(proposed.id, Reason.PROPOSED, detail, at, once=True)
    for stale in _unsupported(home):
        home.reviews.add(stale, Reason.STALE, UNSAID, at, once=True)


def _raise_importance(change: Change) -> None:
    home = change.home
    due = {steps.memory: steps for steps in home.usage.steps_due()}
    if not due:
        return
    steps_taken = _steps_taken(home)
    with change.transaction():
        for memory in list(due):
            steps = due.get(memory)
            with contextlib.suppress(EditConflictError, UnusableVaultError):
                if steps:
                    _raise(
                        change,
                        replace(steps, applied=max(steps.applied, steps_taken.get(memory, 0))),
                    )
            if change.yield_locks():
                due = {steps.memory: steps for steps in home.usage.steps_due()}


def _raise(change: Change, due: StepsDue) -> None:
    home = change.home
    memory = home.memories.find(due.memory)
    if memory is None or not memory.is_vouched:
        return
    importance = max(
        memory.importance, min(MOST_BY_USE, memory.importance + due.earned - due.applied)
    )
    if importance > memory.importance:
        note = change.entry(
            RAISED, memory=memory.id, was=memory.importance, now=importance, steps=due.earned
        )
        change.set_importance(replace(memory, importance=importance), note)
    home.usage.set_steps(memory.id, due.earned)


def _steps_taken(home: Home) -> dict[str, int]:
    steps_by_memory: dict[str, int] = {}
    for item in ledger.read(home.ledger()):
        memory, steps = str(item.details.get("memory")), item.details.get("steps")
        if item.action == RAISED and isinstance(steps, int):
            steps_by_memory[memory] = max(steps_by_memory.get(memory, 0), steps)
    return steps_by_memory


def _fold(change: Change, spool: Path, deadline: float) -> int:
    home = change.home
    now = home.now_ms()
    count = 0
    with home.transaction():
        if home.usage.value("folded") == spool.name:
            return 0
        uses = sorted(
            (replace(use, at=min(use.at, now)) for use in _read(spool)), key=lambda use: use.at
        )
        for position in range(_counted_lines(home, spool), len(uses)):
            use = uses[position]
            session = use.session or _sitting_at(home, use.at)
            _count(home, session, use)
            use_together(home, session, use.ids[:PAIRED_A_USE], use.at // _DAY_MS)
            count += 0 if use.is_look else len(use.ids)
            save_position = partial(home.usage.set_value, _progress_key(spool), str(position + 1))
            if change.yield_locks(save_position) and _counted_lines(home, spool) != position + 1:
                return count
            if time.monotonic() > deadline:
                save_position()
                return count
        home.co_recall.forget_faded(today(home))
        home.session_uses.forget(now - _RETENTION_MS)
        home.usage.set_value("folded", spool.name)
        home.usage.drop_value(_progress_key(spool))
    return count


def _counted_lines(home: Home, spool: Path) -> int:
    if home.usage.value("folded") == spool.name:
        return -1
    done = home.usage.value(_progress_key(spool)) or ""
    return int(done) if done.isdecimal() else 0


def _progress_key(spool: Path) -> str:
    # Processes that share a database have separate spools.
    return f"folding {spool.name}"


def _count(home: Home, session: str, use: Use) -> None:
    first: set[str] = set()
    if use.is_look:
        home.usage.look(use.ids)
    else:
        # Recalls of a memory in one session count once a day.
        first = set(use.ids) - home.session_uses.recalled(session, use.at - _DAY_MS)
        home.usage.record(use.ids, use.at, first=first)
    home.session_uses.record(session, use.ids, use.at, recalled=first)


def _sitting_at(home: Home, at: int) -> str:
    """Return a session name that is shared by uses less than 30 minutes apart."""
    start, last = noted_pair(home.usage.value("sitting"), (0, 0))
    if abs(at - last) > _SITTING_GAP_MS:
        start = at
    home.usage.set_value("sitting", json.dumps([start, max(at, last)]))
    return f"sitting:{start}"


def _read(spool: Path) -> Iterator[Use]:
    for values in lines(spool):
        with contextlib.suppress(ValueError, KeyError, TypeError, OverflowError):
            ids = tuple(map(ledger.check_text, values["ids"]))
            at, session = int(values["at"]), values.get("session")
            if 0 <= at < _LATEST_MS:
                name = ledger.check_text(session) if session else None
                yield Use(at, ids, name, bool(values.get("look")))


def _unsupported(home: Home) -> Iterator[str]:
    """Yield the ids of active memories that their source document no longer supports."""
    tools = [adapter.tool for adapter in registry.adapters().values() if adapter.guesses]
    rows = home.reviews.unfounded(tools)
    for memory in home.memories.rows_of(rows).values():
        stems = {
            stem(word)
            for session in home.sessions.find(memory.source.session or "")
            for item in home.sessions.turns_of(session.row)
            for word in words(item.turn.text)
        }
        if not stems.issuperset(map(stem, words(memory.content))):
            yield memory.id


def note_stale(home: Home) -> None:
    """Let plugins mark memories that might be outdated."""
    for note in load_usable_plugins(STALE).values():
        note(home)


# -- Quality -------------------------------------------------------------------
#
# Each reply changes a memory's quality slightly (docs/context.md). The thresholds here are for word
# overlap. A model's calibration contains those for cosines.


LEAST_REPLY = 50
REPLY_CHARACTERS = 8000

SIGNALS = {Verdict.USED: 1.0, Verdict.UNUSED: 0.4, Verdict.CORRECTED: 0.0}
REPLY_SHARE = 0.2
PERSON_SHARE = 0.5
"""Weight of a person's verdict, which counts more than a text comparison."""

KEPT_QUALITY = 0.3
"""Minimum quality after a dismissed review."""

_MIN_QUALITY_BY_KIND = {Kind.FACT: 0.35, Kind.PREFERENCE: 0.35}
_MIN_QUALITY = 0.1


@frozen
class Borders:
    """The minimum similarities at which a memory counts as used or corrected."""

    name: str
    used: float
    corrected: float


BY_WORDS = Borders("words", 0.4, 0.6)


def verdict(reply: float, stored: float, borders: Borders) -> Verdict:
    """Decide whether an agent used, ignored or corrected a memory.

    ``reply`` is the memory's similarity to the agent's reply, and ``stored`` its highest similarity
    to a memory that the agent stored.
    """
    if stored >= borders.corrected:
        return Verdict.CORRECTED
    return Verdict.USED if reply >= borders.used else Verdict.UNUSED


def quality_after(before: float, verdict: Verdict, kind: Kind, share: float = REPLY_SHARE) -> float:
    """Return a memory's quality after a verdict.

    This is the mean of the old quality and the verdict, weighted by ``share``, but not below the
    minimum for the kind of memory.
    """
    floor = min(before, _MIN_QUALITY_BY_KIND.get(kind, _MIN_QUALITY))
    return min(1.0, max(floor, (1 - share) * before + share * SIGNALS[verdict]))


def is_protected(memory: Memory, patterns: Sequence[str]) -> bool:
    """Return True if a memory must not be forgotten automatically.

    This applies to evergreen memories, memories of importance 10, and subjects that match a
    pattern. Patterns ignore case and can contain ``*``.
    """
    subject = memory.subject.lower()
    return (
        memory.importance == 10
        or memory.evergreen
        or any(fnmatchcase(subject, item.lower()) for item in patterns)
    )


_MATURITY = ((20, Maturity.PROVEN), (5, Maturity.ESTABLISHED), (0, Maturity.CANDIDATE))


def maturity(usage: Usage) -> Maturity:
    """Return a memory's maturity: established from 5 accesses, proven from 20, else candidate."""
    return next(name for minimum, name in _MATURITY if usage.access_count >= minimum)
