"""Sum up sessions: what was asked, what was done, how it ended, what was left."""

from __future__ import annotations

from pathlib import Path

from nacre.home.home import Home
from nacre.sessions.summary.summarise import summarise
from nacre.sessions.views import look_at_session
from nacre.views import SessionReport


def sum_up(home: Home, reference: str | None = None, folder: Path | None = None) -> SessionReport:
    """The summary of a session by its id or the beginning of it, else of the last one of the folder.

    Made anew from its turns: one that goes on is summed up as far as it was read. Raises NotFound, Conflict.
    """
    view = look_at_session(home, reference, limit=0, folder=folder)
    turns = [item.turn for item in home.sessions.turns_of(view.session.row)]
    return SessionReport(view, summarise(view.session.session, turns))
