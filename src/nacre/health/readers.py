"""What reads the sessions of this home by itself: a writer is shown only what was read."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.link.address import LOCK
from nacre.platform.ids import Clock
from nacre.platform.locks import is_held
from nacre.settings import Settings
from nacre.watching.status import standing
from nacre.wiring.record import load

NOTHING = "nothing by itself: nacre ingest reads them now, nacre init has your agents do it"
"""What is said where no session is read unless somebody asks for it."""


def readers(settings: Settings, clock: Clock) -> tuple[str, ...]:
    """What reads sessions: the agents that nacre is wired into, and the daemon or the watcher while it runs."""
    wired = tuple(dict.fromkeys(wish.host for wish in load(settings.home).wishes))
    found = [f"what nacre init put into {', '.join(wired)}"] if wired else []
    if is_held(settings.home / LOCK):
        found.append("the daemon while it runs")
    elif standing(settings.home, clock()).lives:
        found.append("the watcher")
    return tuple(found)


def in_words(found: Sequence[str]) -> str:
    """What reads sessions, as one line."""
    return "; ".join(found) or NOTHING
