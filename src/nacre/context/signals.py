"""Signals: what one session stores and matters reaches the others that run, with their next prompt. Light, for hooks.

Reading is one look at what came after a mark; no lock is taken and nothing is written. The mark and the counts are in
the session's state, which whoever delivers the context keeps: what was not delivered is told again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from nacre.home.home import Home
from nacre.platform.ids import first_id
from nacre.settings import Settings
from nacre.storage.memories import News
from nacre.values.context import SessionState, SignalLimits
from nacre.values.memory import Memory

SAID_WITHIN = timedelta(days=1)
"""What was said longer ago is no news when it is learned now: old transcripts are read, too."""


@dataclass(frozen=True, slots=True)
class Due:
    """What a session is to be told, each memory with the row up to which it has heard all then."""

    memories: tuple[tuple[int, Memory], ...] = ()

    def given(self, state: SessionState, heard: int, told: int, now_ms: int) -> SessionState:
        """The state after the first ``heard`` of them were seen to, of which ``told`` were told."""
        if not heard:
            return state
        at = now_ms if told else state.signal_at
        return replace(
            state, signals=state.signals + told, signal_mark=self.memories[heard - 1][0], signal_at=at
        )  # fmt: skip


def limits_of(settings: Settings, narrower: SignalLimits | None = None) -> SignalLimits:
    """The owner's limits (seed facts 1.7 has the defaults), and those of a host where they are narrower."""
    own = SignalLimits(
        settings.whole("signals.min_importance"), settings.whole("signals.most_at_once"),
        settings.whole("signals.cooldown_seconds"), settings.whole("signals.most_per_session"),
        settings.whole("signals.max_age_seconds"),
    )  # fmt: skip
    return own.within(narrower) if narrower else own


def due(home: Home, state: SessionState, project: str | None, limits: SignalLimits) -> Due:
    """What other sessions stored since this one was told last: of its project or of none, trusted, important, new.

    Nothing within the cooldown, nor beyond what a session is told at most, nor to one without a mark: it begins now.
    Not what it said itself, under its own name or under one that it goes on from.
    """
    now = home.clock()
    now_ms = int(now.timestamp() * 1000)
    since = now_ms - state.signal_at
    if not state.name or state.signal_mark < 0 or not home.settings.flag("context.signals"):
        return Due()
    left = limits.most_per_session - state.signals
    if left <= 0 or 0 <= since < limits.cooldown_seconds * 1000:
        return Due()
    wanted = News(
        state.signal_mark, first_id(max(0, now_ms - limits.max_age_seconds * 1000)), now - SAID_WITHIN,
        (state.name, *state.after), project, limits.min_importance, left + len(state.given),
    )  # fmt: skip
    found = [(row, memory) for row, memory in home.memories.news(wanted) if memory.id not in state.given]
    return Due(tuple(found[: min(limits.most_at_once, left)]))


def begun(home: Home, state: SessionState) -> SessionState:
    """The state of a session that listens from now on, unless it does already."""
    return state if state.signal_mark >= 0 else replace(state, signal_mark=home.memories.last_row())
