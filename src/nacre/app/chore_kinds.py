"""What is done for each kind of chore. All of it may be done twice: what is known is known, what is done is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from nacre.app.chores import Chore, Kind, NotYetError
from nacre.app.context import Context
from nacre.app.contexts import handed
from nacre.app.contexts.session_state import prune_states
from nacre.app.flushing import learn_now
from nacre.app.handing_over import hand_over, hand_over_late, improve, retire_given
from nacre.app.locating import project_of_folder
from nacre.app.reading_now import find_session, read_beside, read_session
from nacre.app.scanning import catch_up
from nacre.errors import BudgetSpent, ModelRefused
from nacre.model.session import SessionKind

LEARN, IMPROVE = "learn", "improve"

_GOES_ON = frozenset({"gemini-cli"})
"""Tools that say before each turn that they may compact, and begin no session anew when they do."""


def _session_start(context: Context, chore: Chore) -> Sequence[Chore]:
    """What was given is retired; what the last session did not hand over, as it ended unseen, is handed over late."""
    catch_up(context)
    prune_states(context.settings.home, context.clock().timestamp())
    retire_given(context)
    following = _late(context, chore) if chore.tries <= 1 and chore.occasion in (None, "", "startup", "clear") else []
    if chore.session and handed.has_claim(context, chore.session):
        raise NotYetError(following)  # its host has not been told yet, or we have not been told that it was
    return following


def _late(context: Context, chore: Chore) -> list[Chore]:
    read_beside(context, chore.transcript)
    project = project_of_folder(context, Path(chore.folder)) if chore.folder else None
    if not project:
        return []
    before = datetime.fromtimestamp(chore.at, UTC) if chore.at else context.now()
    made = hand_over_late(context, project, before=before, but=chore.session or "")
    return [Chore(IMPROVE, made.source.session, at=chore.at)] if made and made.source.session else []


def _session_end(context: Context, chore: Chore) -> Sequence[Chore]:
    """It is read to its end, and handed over; learning and the model follow."""
    return _ended(context, chore, learns_all=True)


def _pre_compact(context: Context, chore: Chore) -> Sequence[Chore]:
    """What will be forgotten is read, handed over and learned from, as far as it is new."""
    if (chore.session or "").partition(":")[0] in _GOES_ON:
        return _turn_end(context, chore)
    return _ended(context, chore, learns_all=False)


def _ended(context: Context, chore: Chore, *, learns_all: bool) -> Sequence[Chore]:
    catch_up(context)
    retire_given(context)
    session = read_session(context, chore.session or "", chore.transcript)
    if session is None or session.session.kind is not SessionKind.MAIN:
        return []
    made = hand_over(context, session)
    following = [Chore(IMPROVE, session.session.id, at=chore.at)] if made else []
    if any(row == session.row for row, _ in context.sessions.to_extract()):
        occasion = "end" if learns_all else ""
        following.append(Chore(LEARN, session.session.id, occasion=occasion, at=chore.at))
    return following


def _turn_end(context: Context, chore: Chore) -> Sequence[Chore]:
    """It is read, no more; what it was given late is retired."""
    retire_given(context)
    read_session(context, chore.session or "", chore.transcript)
    return []


def _learn(context: Context, chore: Chore) -> Sequence[Chore]:
    session = find_session(context, chore.session or "")
    if session:
        learn_now(context, session, is_over=chore.occasion == "end")
    return []


def _improve(context: Context, chore: Chore) -> Sequence[Chore]:
    session = find_session(context, chore.session or "")
    if session:
        with suppress(BudgetSpent, ModelRefused):  # what the rules stored is good enough then
            improve(context, session)
    return []


KINDS: Mapping[str, Kind] = {
    "session-start": Kind(_session_start),
    "session-end": Kind(_session_end),
    "pre-compact": Kind(_pre_compact),
    "turn-end": Kind(_turn_end),
    IMPROVE: Kind(_improve, is_slow=True),
    LEARN: Kind(_learn, is_slow=True),
}
"""By the name of the chore."""
