"""What a session without a title is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nacre.home.home import Home
from nacre.platform.lazy import Module
from nacre.storage.sessions import OPENING_TURNS
from nacre.values.session import StoredSession

if TYPE_CHECKING:
    from nacre.sessions.summary import summarise
else:
    summarise = Module("nacre.sessions.summary.summarise")


def opening_of(home: Home, stored: StoredSession) -> str | None:
    """Its first real request; ``None`` where it has a title."""
    if stored.session.title:
        return None
    return summarise.opening([item.turn for item in home.sessions.turns_of(stored.row, limit=OPENING_TURNS)])
