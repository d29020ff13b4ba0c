"""What a session without a title is called."""

from __future__ import annotations

from nacre.home.home import Home
from nacre.sessions.summary import summarise
from nacre.storage.sessions import OPENING_TURNS
from nacre.values.session import StoredSession


def opening_of(home: Home, stored: StoredSession) -> str | None:
    """Its first real request; ``None`` where it has a title."""
    if stored.session.title:
        return None
    return summarise.opening([item.turn for item in home.sessions.turns_of(stored.row, limit=OPENING_TURNS)])
