"""What a person or an agent asks of handoffs: which one waits here, and store one now."""

from __future__ import annotations

from pathlib import Path

from nacre.app.context import Context
from nacre.app.contexts.session_state import read_state
from nacre.app.handing_over import hand_over, improve, latest
from nacre.app.locating import project_of_folder
from nacre.app.reading_now import find_session, read_recent, read_session
from nacre.app.scanning import catch_up
from nacre.errors import NacreError, NotFound
from nacre.model.handing import HandoffRequest, HandoffView
from nacre.model.session import SessionKind
from nacre.storage.sessions import SessionFilter, StoredSession

NOTHING = (
    "that session leaves nothing to hand over: nothing was asked to be done, changed, decided or left open; "
    'words of your own always count: nacre handoff --store "…"'
)


def handoff(context: Context, request: HandoffRequest) -> HandoffView:
    """The latest handoff of a project; with ``store`` it is made anew. Raises NotFound."""
    catch_up(context)
    if request.store:
        return _store(context, request)
    project = project_of_folder(context, Path(request.folder)) if request.folder else None
    found = latest(context, project)
    return HandoffView(project, found, found is not None and found.retired is None)


def _store(context: Context, request: HandoffRequest) -> HandoffView:
    session = _session(context, request)
    made = hand_over(context, session, (request.words or "").strip() or None)
    note = None
    if made and not request.words:
        try:
            made = improve(context, session, background=False) or made
        except NacreError as error:
            note = f"no model wrote it: {error.message}"
    found = made or latest(context, session.project)
    is_known = found is not None and found.source.session == session.session.id
    if session.project and not (made or request.words or is_known):
        note = NOTHING
    is_waiting = found is not None and found.retired is None
    return HandoffView(session.project, found, is_waiting, made is not None, note)


def _is_of(context: Context, session: StoredSession, folder: str | None) -> bool:
    """Whether a session is of the project that a folder belongs to, where it belongs to one."""
    project = project_of_folder(context, Path(folder)) if folder else None
    return project in (None, session.project)


def _session(context: Context, request: HandoffRequest) -> StoredSession:
    own = context.settings.session  # in an agent's shell
    if own and not request.session and not read_state(context.settings.home, own).ended:
        found = read_session(context, own)
        if found and _is_of(context, found, request.folder):
            return found
    if request.session:
        found = read_session(context, request.session)
        if found is None:
            raise NotFound(f"no session is called {request.session!r}", hint="nacre sessions lists them")
        return found
    read_recent(context)
    project = project_of_folder(context, Path(request.folder)) if request.folder else None
    newest = context.sessions.newest(SessionFilter(project=project, kind=SessionKind.MAIN), limit=1) if project else []
    if not newest:
        raise NotFound(
            "no session of this project was read yet", hint="nacre ingest reads them; --session names one"
        )  # fmt: skip
    return find_session(context, newest[0].session.id) or newest[0]
