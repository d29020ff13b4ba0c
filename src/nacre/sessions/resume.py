"""Go on with a session in its own tool: which one is meant, and the command that opens it. Nothing is run here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from nacre.errors import Conflict, NotFound, Unavailable
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.home.lookup import find_session
from nacre.ingestion.discovery import tool_roots
from nacre.retrieval.answers import search_sessions
from nacre.retrieval.requests import TurnQuery
from nacre.sessions.opening import opening_of
from nacre.sessions.requests import ResumeRequest
from nacre.storage.sessions import OPENING_TURNS
from nacre.transcripts.adapter import Adapter
from nacre.transcripts.own_calls import is_own_call
from nacre.transcripts.registry import adapters
from nacre.values.filters import SessionFilter
from nacre.values.recall import Mode
from nacre.values.session import SessionKind, StoredSession
from nacre.views import Resumption, SessionLine

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""What is handed to a program as an id: a transcript may claim anything, an option of the program as well."""

_MOST_TRIED = 10


def resume(home: Home, request: ResumeRequest) -> Resumption:
    """The session that is meant, and the command by which its own tool opens it.

    What nacre itself asked a model by an agent's command is no session to go on with, nor is a sub-agent's.
    Raises NotFound, Conflict, Unavailable.
    """
    folder = Path(request.folder) if request.folder else Path.cwd()
    stored = _meant(home, (request.what or "").strip(), folder)
    session, look = stored.session, f"nacre sessions show {stored.session.id} reads it"
    if session.kind is not SessionKind.MAIN:
        parent = f"; nacre resume {session.tool}:{session.parent} opens the one that sent it" if session.parent else ""
        raise Conflict(f"{session.id} is no session that you talked in ({session.kind.value})", hint=f"{look}{parent}")
    if _is_own(home, stored):
        raise Conflict(f"{session.id} is a question that nacre itself asked a model", hint=look)
    command = _command(home, stored, look)
    if session.cwd and not Path(session.cwd).is_dir():
        raise NotFound(f"the folder of {session.id} is gone: {session.cwd}", hint=f"{look}; make the folder to go on")
    return Resumption(SessionLine(stored, opening_of(home, stored)), command, session.cwd)


def _meant(home: Home, what: str, folder: Path) -> StoredSession:
    """The session of an id or its beginning; else the last one with these words, those of this project first."""
    if not what or home.sessions.find(what):
        return find_session(home, what or None, folder)
    project = project_of_folder(home, folder)
    for wanted in dict.fromkeys((project, None)):
        titled = home.sessions.newest(SessionFilter(project=wanted, words=what), limit=_MOST_TRIED)
        if found := _first(home, titled):
            return found
    said = search_sessions(home, TurnQuery(what, limit=_MOST_TRIED, mode=Mode.LEXICAL, update=False))
    ids = dict.fromkeys(hit.session.id for hit in said.turns)
    if found := _first(home, (home.sessions.find(one)[0] for one in ids)):
        return found
    raise NotFound(f"no session is called {what!r}, and none speaks of it", hint="nacre sessions list shows them")


def _first(home: Home, found: Iterable[StoredSession]) -> StoredSession | None:
    talked = (one for one in found if one.session.kind is SessionKind.MAIN)
    return next((one for one in talked if not _is_own(home, one)), None)


def _is_own(home: Home, stored: StoredSession) -> bool:
    return is_own_call(item.turn for item in home.sessions.turns_of(stored.row, limit=OPENING_TURNS))


def _command(home: Home, stored: StoredSession, look: str) -> tuple[str, ...]:
    """The command that opens a session. Raises Unavailable, NotFound."""
    session, file = stored.session, Path(stored.file or "")
    known = [adapter for adapter in adapters() if adapter.tool == session.tool]
    label = known[0].label if known else session.tool
    if not any(adapter.resume for adapter in known):
        raise Unavailable(f"{label} has no command that opens a session", hint=look)
    keeper = next((adapter for adapter in _keepers(home, session.tool, file) if adapter.resume), None)
    if keeper is None or not _ID.fullmatch(session.native_id):
        raise Unavailable(f"{label} cannot open {session.id}: its command line keeps none in {file.parent}", hint=look)
    if not file.is_file():
        hint = f"nacre sessions restore {session.id} writes it again, where it was archived"
        raise NotFound(f"the transcript of {session.id} is gone: {file}", hint=hint)
    return tuple(word.replace("{id}", session.native_id) for word in keeper.resume)


def _keepers(home: Home, tool: str, file: Path) -> Iterator[Adapter]:
    """The adapters of a tool's that look for such a file where it lies: there the tool finds it, too."""
    for adapter, root in tool_roots(home, (), []):
        is_there = adapter.tool == tool and file.is_relative_to(root.folder)
        if is_there and any(file.match(Path(pattern).name) for pattern in root.patterns):
            yield adapter
