"""What is done for each kind of chore. All of it may be done twice: what is known is known, what is done is done."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from nacre.chores.hear import hear_reply, is_to_be_heard
from nacre.chores.learn import learn_now
from nacre.chores.queue import MOST_SECONDS, Chore, Kind, NotYetError, Worklist, folder_of, waiting
from nacre.code.staleness import note_stale
from nacre.context.handoff import delivery
from nacre.context.handoff.hand_over import hand_over, hand_over_late, improve, put_away
from nacre.context.hold_out import note_share
from nacre.context.session_state import prune_states
from nacre.errors import BudgetSpent, ModelRefused, StoreUnusable
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.hosts import isolation
from nacre.ingestion.current_session import find_session, read_beside, read_session
from nacre.memories.scan import catch_up
from nacre.platform import private_files
from nacre.platform.ids import to_ms
from nacre.portability.host_memories import capture
from nacre.values.handoff import ChoresReport
from nacre.values.session import SessionKind

LEARN, IMPROVE, CAPTURE, HEAR, STALE = "learn", "improve", "capture", "hear", "stale"

_GOES_ON = frozenset({"gemini-cli"})
"""Tools that say before each turn that they may compact, and begin no session anew when they do."""


def _session_start(home: Home, chore: Chore) -> Sequence[Chore]:
    """What was given is put away, and noted which share is held out; what the last session did not hand over, as it
    ended unseen, is handed over late."""
    catch_up(home)
    prune_states(home.settings.home, home.clock().timestamp())
    put_away(home)
    note_share(home.settings, to_ms(home.clock()) or 0)
    following = _late(home, chore) if chore.tries <= 1 and chore.occasion in (None, "", "startup", "clear") else []
    following += _to_capture(home, chore)
    if chore.session and delivery.has_claim(home, chore.session):
        raise NotYetError(following)  # its host has not been told yet, or we have not been told that it was
    return following


def _late(home: Home, chore: Chore) -> list[Chore]:
    read_beside(home, chore.session or "", chore.transcript)
    project = project_of_folder(home, Path(chore.folder)) if chore.folder else None
    if not project:
        return []
    before = datetime.fromtimestamp(chore.at, UTC) if chore.at else home.now()
    made = hand_over_late(home, project, before=before, but=chore.session or "")
    return [Chore(IMPROVE, made.session, at=chore.at)] if made else []


def _session_end(home: Home, chore: Chore) -> Sequence[Chore]:
    """It is read to its end, and handed over; learning and the model follow."""
    return [*_ended(home, chore, learns_all=True), *_to_capture(home, chore)]


def _pre_compact(home: Home, chore: Chore) -> Sequence[Chore]:
    """What will be forgotten is read, handed over and learned from, as far as it is new."""
    if (chore.session or "").partition(":")[0] in _GOES_ON:
        return _turn_end(home, chore)
    return _ended(home, chore, learns_all=False)


def _ended(home: Home, chore: Chore, *, learns_all: bool) -> Sequence[Chore]:
    catch_up(home)
    put_away(home)
    session = read_session(home, chore.session or "", chore.transcript)
    if session is None or session.session.kind is not SessionKind.MAIN:
        return []
    made = hand_over(home, session)
    following = [Chore(IMPROVE, session.session.id, at=chore.at)] if made else []
    if any(one.row == session.row for one in home.sessions.to_extract()):
        occasion = "end" if learns_all else ""
        following.append(Chore(LEARN, session.session.id, occasion=occasion, at=chore.at))
    following.append(Chore(STALE, at=chore.at))
    if is_to_be_heard(home, session):
        following.append(Chore(HEAR, session.session.id, at=chore.at))
    return following


def _turn_end(home: Home, chore: Chore) -> Sequence[Chore]:
    """It is read, no more; what it was given late is put away."""
    put_away(home)
    read_session(home, chore.session or "", chore.transcript)
    return []


def _to_capture(home: Home, chore: Chore) -> list[Chore]:
    """Where a host's own memory is turned off, what was written there even so is imported."""
    return [Chore(CAPTURE, at=chore.at)] if isolation.load(home.settings.home).hosts else []


def _capture(home: Home, _: Chore) -> Sequence[Chore]:
    capture(home)
    return []


def _learn(home: Home, chore: Chore) -> Sequence[Chore]:
    session = find_session(home, chore.session or "")
    lessons = learn_now(home, session, is_over=chore.occasion == "end") if session else None
    if lessons and lessons.by_model and lessons.by_model.elsewhere:
        raise NotYetError  # another process asks the writer, and may not have this session among what it asks about
    return []


def _hear(home: Home, chore: Chore) -> Sequence[Chore]:
    session = find_session(home, chore.session or "")
    if session:
        hear_reply(home, session)
    return []


def _stale(home: Home, _: Chore) -> Sequence[Chore]:
    note_stale(home)
    return []


def _improve(home: Home, chore: Chore) -> Sequence[Chore]:
    session = find_session(home, chore.session or "")
    if session:
        with suppress(BudgetSpent, ModelRefused):  # what the rules stored is good enough then
            improve(home, session)
    return []


KINDS: Mapping[str, Kind] = {
    "session-start": Kind(_session_start),
    "session-end": Kind(_session_end),
    "pre-compact": Kind(_pre_compact),
    "turn-end": Kind(_turn_end),
    CAPTURE: Kind(_capture),
    IMPROVE: Kind(_improve, is_slow=True),
    LEARN: Kind(_learn, is_slow=True),
    HEAR: Kind(_hear, is_slow=True),
    STALE: Kind(_stale, is_slow=True),
}
"""By the name of the chore."""


def do_waiting(
    home: Home, *, seconds: float = MOST_SECONDS, kinds: Mapping[str, Kind] = KINDS
) -> ChoresReport:  # fmt: skip
    """Do what waits and is due, quick chores first, for so long at most; what another process is at is left to it.

    Raises StoreUnusable, StoreBusy where the home cannot be written to: nothing is tried in vain then.
    """
    if home.database.unwritable:
        raise home.database.unwritable
    until = time.monotonic() + seconds
    private_files.sweep(folder_of(home.settings.home))
    work = Worklist(home, kinds)
    try:
        while time.monotonic() < until and (work.step(is_slow=False) or work.step(is_slow=True)):
            pass
    except OSError as error:
        raise StoreUnusable(
            f"what is to be done cannot be noted: {error.strerror}",
            hint="is the disk full? it waits till there is room",
        ) from error
    return replace(work.report, left=len(waiting(home.settings.home)))
