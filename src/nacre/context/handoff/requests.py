"""What a person or an agent asks of handoffs: which one waits here, and store one now."""

from __future__ import annotations

from pathlib import Path

from nacre.context.handoff.hand_over import hand_over, improve, latest
from nacre.context.requests import HandoffRequest
from nacre.context.session_state import read_state
from nacre.errors import InvalidInput, NacreError, NotFound
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.ingestion.current_session import find_session, read_recent, read_session
from nacre.memories.scan import catch_up
from nacre.transcripts.trust import Exchange
from nacre.values.filters import SessionFilter
from nacre.values.handoff import HandoffView
from nacre.values.session import SessionKind, StoredSession, Trust

NOTHING = (
    "that session leaves nothing to hand over: nothing was asked to be done, changed, decided or left open; "
    'words of your own always count: nacre handoff --store "…"'
)


def handoff(home: Home, request: HandoffRequest) -> HandoffView:
    """The latest handoff of a project; with ``store`` it is made anew. Raises NotFound, InvalidInput."""
    catch_up(home)
    if request.store:
        return _store(home, request)
    project = project_of_folder(home, Path(request.folder)) if request.folder else None
    found = latest(home, project)
    return HandoffView(project, found, found is not None and not found.given)


def _store(home: Home, request: HandoffRequest) -> HandoffView:
    session = _session(home, request)
    words = (request.words or "").strip() or None
    if words and home.actor.is_agent and _is_from_outside(home, session, words):
        raise InvalidInput(
            "these are words of a page, a mail or a file that the session read, which tells other sessions nothing",
            hint="say in words of your own what is left to do",
        )
    made = hand_over(home, session, words)
    note = None
    if made and not request.words:
        try:
            made = improve(home, session, background=False) or made
        except NacreError as error:
            note = f"no model wrote it: {error.message}"
    found = made or latest(home, session.project)
    is_known = found is not None and found.session == session.session.id
    if session.project and not (made or request.words or is_known):
        note = NOTHING
    is_waiting = found is not None and not found.given
    return HandoffView(session.project, found, is_waiting, made is not None, note)


def _is_from_outside(home: Home, session: StoredSession, words: str) -> bool:
    """Whether words draw on what the session heard from outside, as far as it was read."""
    read = home.sessions.cursor(session.file) if session.file else None
    return read is not None and Exchange(read[1].carry.get("exchange")).trust_of(words) is Trust.UNTRUSTED


def _is_of(home: Home, session: StoredSession, folder: str | None) -> bool:
    """Whether a session is of the project that a folder belongs to, where it belongs to one."""
    project = project_of_folder(home, Path(folder)) if folder else None
    return project in (None, session.project)


def _session(home: Home, request: HandoffRequest) -> StoredSession:
    own = home.settings.session  # in an agent's shell
    if own and not request.session and not read_state(home.settings.home, own).ended:
        found = read_session(home, own)
        if found and _is_of(home, found, request.folder):
            return found
    if request.session:
        found = read_session(home, request.session)
        if found is None:
            raise NotFound(f"no session is called {request.session!r}", hint="nacre sessions lists them")
        if own and home.actor.is_agent and found.session.id != own:
            raise InvalidInput("an agent hands over its own session", hint="leave --session out")
        return found
    read_recent(home)
    project = project_of_folder(home, Path(request.folder)) if request.folder else None
    newest = home.sessions.newest(SessionFilter(project=project, kind=SessionKind.MAIN), limit=1) if project else []
    if not newest:
        raise NotFound(
            "no session of this project was read yet", hint="nacre ingest reads them; --session names one"
        )  # fmt: skip
    return find_session(home, newest[0].session.id) or newest[0]
