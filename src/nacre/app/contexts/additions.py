"""What others add to a context: what was handed over, what other sessions learned just now, a reminder.

An addition looks at what is asked for and at the session's state, and answers with items of its part and the state as
it is once they were told. It only reads, waits for no lock, and is light: hooks without the daemon run it, too.
"""

from __future__ import annotations

from collections.abc import Callable

from nacre.app.context import Context
from nacre.frozen import dataclass
from nacre.model.context import ContextItem, ContextRequest, LeftOut, Moment, Part, SessionState


@dataclass(frozen=True, slots=True)
class Asked:
    """For whom something is added."""

    context: Context
    request: ContextRequest
    state: SessionState
    project: str | None


@dataclass(frozen=True, slots=True)
class Added:
    """What is to be told. ``state`` is true once all of ``items`` were told; what does not fit is not counted, and
    ``declined`` hears of it."""

    items: tuple[ContextItem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    state: SessionState | None = None
    declined: Callable[[ContextItem], object] = lambda _: None


@dataclass(frozen=True, slots=True)
class Addition:
    """Something that is added to a part, at some moments."""

    part: Part
    moments: frozenset[Moment]
    find: Callable[[Asked], Added]
