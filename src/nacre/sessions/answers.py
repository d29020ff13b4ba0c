"""What is answered to requests about sessions; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from pathlib import Path

from nacre.home.home import Home
from nacre.retrieval.aspects import admission
from nacre.sessions import pattern_search, summaries, views
from nacre.sessions.pattern_search import Matches
from nacre.sessions.requests import MatchRequest, SessionRequest, SessionsRequest
from nacre.views import SessionPage, SessionReport, SessionView


def list_sessions(home: Home, request: SessionsRequest) -> SessionPage:
    """A page of sessions, the newest first."""
    return views.list_sessions(home, request.filter, limit=max(0, request.limit), offset=max(0, request.offset))


def show(home: Home, request: SessionRequest) -> SessionView:
    """One session with its turns, without secrets. Raises NotFound, Conflict."""
    folder = Path(request.folder) if request.folder else None
    limit = -1 if request.limit is None else max(0, request.limit)
    if request.at_end:
        return views.cleaned(home, views.look_at_end(home, request.reference, limit=limit, folder=folder))
    found = views.look_at_session(
        home, request.reference, first=max(0, request.first), limit=limit, folder=folder, around=request.around
    )
    return views.cleaned(home, found)


def summarize(home: Home, request: SessionRequest) -> SessionReport:
    """What a session came to: what was asked, what was done, how it ended. Raises NotFound, Conflict."""
    return summaries.sum_up(home, request.reference, Path(request.folder) if request.folder else None)


def match(home: Home, request: MatchRequest) -> Matches:
    """Turns that a regular expression matches, the newest first. Raises QueryInvalid."""
    return pattern_search.match_turns(
        home, request.expression, request.filter, limit=request.limit, offset=request.offset,
        admits=admission(request.aspect, request.role), seconds=request.seconds,
    )  # fmt: skip
