"""What others add to a context: what was handed over, what other sessions learned just now, a reminder.

An addition looks at what is asked for and at the session's state, and answers with items of its part and the state as
it is once they were told. It only reads, waits for no lock, and is light: hooks without the daemon run it, too.
"""

from __future__ import annotations

from collections.abc import Callable

from nacre.home.home import Home
from nacre.platform.fast_dataclass import dataclass
from nacre.values.context import ContextItem, ContextRequest, LeftOut, Moment, Part, SessionState


@dataclass(frozen=True, slots=True)
class Recipient:
    """For whom something is added."""

    home: Home
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
    find: Callable[[Recipient], Added]
