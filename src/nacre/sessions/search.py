"""Operations on sessions: list, show, summarise, search and resume."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path

import msgspec

from nacre.base.frozen import frozen
from nacre.base.text import excerpt, one_line, words
from nacre.base.times import shown_minute
from nacre.errors import ConflictError, NotFoundError, UnavailableError
from nacre.home.home import Home
from nacre.home.location import find_session, project_of_folder
from nacre.home.views import Resumption, SessionLine, SessionPage, SessionReport, SessionView
from nacre.learn import discovery
from nacre.memories import edit, usage
from nacre.operations import operation
from nacre.readers import nacre_chat, registry
from nacre.readers.conversation import is_own_call
from nacre.recall import recall, requests
from nacre.sessions import topics
from nacre.sessions.find import ChatSearchRequest, ResumeRequest, SessionRequest, SessionsRequest
from nacre.store.sessions import OPENING_TURNS
from nacre.values.codec import with_texts
from nacre.values.memory import SessionFilter
from nacre.values.recall import Filter, Lane, Mode, RecallQuery, TurnHit
from nacre.values.session import (
    Flag,
    SessionKind,
    Speaker,
    StoredSession,
    StoredTurn,
    Trust,
    Turn,
)


def opening_of(home: Home, stored: StoredSession) -> str | None:
    """Derive a title for a session that has none, otherwise return ``None``."""
    if stored.session.title:
        return None
    return topics.opening(
        home.sessions.read_turns(stored.row, OPENING_TURNS),
        stored.session.branch,
    )


# -- Listing and showing ------------------------------------------------------


@operation("sessions", by_key=True)
def list_sessions(home: Home, request: SessionsRequest) -> SessionPage:
    """Return a page of sessions, newest first."""
    limit = request.limit
    sessions, total = home.sessions.page(request.filter, limit=limit + 1, offset=request.offset)
    page = sessions[:limit]
    active = home.sessions.active([item.row for item in page])
    lines = [SessionLine(item, opening_of(home, item), active.get(item.row)) for item in page]
    tools = tuple(tool for tool, *_ in home.sessions.counts())
    return SessionPage(tuple(lines), len(sessions) > limit, total, tools)


def _view(home: Home, stored: StoredSession) -> SessionView:
    learned = [
        home.memories.find(reference.id) for reference in home.memories.known_of(stored.session.id)
    ]
    memories = tuple(memory for memory in learned if memory and memory.is_active)
    children = home.sessions.children(stored.row)
    injections = home.usage.outcomes(usage.session_name(stored.session.id))
    active = home.sessions.active([stored.row, *(child.row for child in children)])
    parents = (
        home.sessions.find(f"{stored.session.tool}:{stored.session.parent}")
        if stored.session.parent
        else []
    )
    return SessionView(
        stored,
        (),
        memories,
        opening_of(home, stored),
        active.get(stored.row),
        next(iter(parents), None),
        tuple(
            SessionLine(child, opening_of(home, child), active.get(child.row)) for child in children
        ),
        tuple(
            (memory, injections[memory.id])
            for memory in home.memories.in_any_state(list(injections))
        ),
    )


# -- Summaries ----------------------------------------------------------------


@operation("session-summary")
def summarize(home: Home, request: SessionRequest) -> SessionReport:
    """Summarise a session, by default the folder's last session.

    The session is found by its id or id prefix. The summary covers the turns read so far. Raises
    NotFoundError, ConflictError.
    """
    session = _find_requested(home, request)
    turns = home.sessions.read_turns(session.row)
    return SessionReport(_view(home, session), topics.summarise(session.session, turns))


@operation("session", by_key=True)
def show(home: Home, request: SessionRequest) -> SessionView:
    """Return a session with its turns, without secrets. ``7f3a1c2d#40`` starts at turn 40.

    Raises NotFoundError, ConflictError.
    """
    name, mark, number = (request.reference or "").rpartition("#")
    if mark and number.isdecimal():
        request = msgspec.structs.replace(request, reference=name, first=int(number))
    session = _find_requested(home, request)
    limit = -1 if request.limit is None else request.limit
    first = request.first
    if request.around is not None:
        place = home.sessions.place_of(session.row, request.around)
        if place is None:
            raise NotFoundError(
                f"the session has no turn {request.around!r}",
                hint="nacre sessions show lists its turns",
            )
        first = max(0, place - max(0, limit) // 2)
    turns = (
        home.sessions.last_turns(session.row, limit)
        if request.at_end
        else home.sessions.turns_of(session.row, first=first, limit=limit)
    )
    view = replace(_view(home, session), turns=tuple(turns))
    cleaned: SessionView = with_texts(view, home.redactor.clean, ("id", "tool", "native_id"))
    return cleaned


def _find_requested(home: Home, request: SessionRequest) -> StoredSession:
    edit.catch_up(home)
    return find_session(home, request.reference, Path(request.folder) if request.folder else None)


# -- Search in channel conversations ------------------------------------------


CHARACTERS = 2_000
"""Maximum length of a passage in characters, about 500 tokens."""

_MAX_DISTANCE_TURNS = 20
"""Maximum number of turns between a hit and others in its passage."""

_TURNS_PER_PASSAGE = 15
"""Number of hits to request per passage, because passages often contain several hits."""

_MIN_CHARACTERS = 200
"""Minimum number of free characters in a passage for adding another turn."""

_EXCLUDED = Flag.SUMMARY | Flag.META


@frozen
class Passage:
    """An exchange in a conversation that matches a search.

    ``text``: one line per turn, with local time and speaker. ``score``: relevance from 0 to 1.
    ``time``: time of the matching turn. ``trust``: untrusted if any turn is.
    """

    text: str
    score: float
    session: str
    key: str
    channel: str
    time: datetime | None
    trust: Trust


@frozen
class Passages:
    """The results of a search, best first, and reports about the search methods."""

    query: str
    passages: tuple[Passage, ...] = ()
    lanes: tuple[Lane, ...] = ()


@operation("search-chats", by_key=True)
def search(home: Home, request: ChatSearchRequest) -> Passages:
    """Return passages that answer a question or contain its words.

    Raises InvalidQueryError. Raises NotFoundError or ConflictError if the requested session cannot
    be determined.
    """
    keys = home.sessions.labels(nacre_chat.TOOL)
    sessions = [key for key in keys if request.channel in (None, nacre_chat.channel_of(key))]
    if request.session and request.session in keys:
        sessions = [key for key in sessions if key == request.session]
    elif request.session:
        session = find_session(home, request.session).session
        sessions = [session.id] if session.label in sessions else []
    if not sessions:
        return Passages(request.query)
    criteria = Filter(
        tools=(nacre_chat.TOOL,),
        sessions=tuple(sessions),
        since=request.since,
        until=request.until,
    )
    limit = request.limit * _TURNS_PER_PASSAGE
    query = RecallQuery(request.query, criteria, limit=limit, diversify=False, update=False)
    result = recall.search_sessions(home, query)
    passages = islice(_iter_passages(home, result.turns, request), request.limit)
    return Passages(request.query, tuple(passages), result.lanes)


def _iter_passages(
    home: Home, hits: Sequence[TurnHit], request: ChatSearchRequest
) -> Iterator[Passage]:
    terms = words(request.query)
    covered: set[tuple[int, int]] = set()
    score = 1.0
    for hit in hits:
        if hit.turn.flags & _EXCLUDED or hit.session.id == request.leave_out:
            continue
        row = home.sessions.find(hit.session.id)[0].row
        place = home.sessions.place_of(row, hit.turn.id)
        if place is None or (row, place) in covered:
            continue
        first = max(0, place - _MAX_DISTANCE_TURNS)
        turns = [
            stored
            for stored in home.sessions.turns_of(row, first=first, limit=2 * _MAX_DISTANCE_TURNS)
            if not stored.turn.flags & _EXCLUDED
        ]
        at = next(number for number, stored in enumerate(turns) if stored.seq == place)
        begin, end = _exchange(turns, at)
        covered.update((row, stored.seq) for stored in turns[begin : end + 1])
        lines = {}
        space = CHARACTERS
        # The hit is added first, but leaves space for the rest of its exchange.
        for number in sorted(
            range(begin, end + 1), key=lambda index: (abs(index - at), index < at)
        ):
            room = space * 3 // 4 if number == at and end > begin else space
            if room < _MIN_CHARACTERS:
                break
            lines[number] = _line(home, turns[number], room, terms)
            space -= len(lines[number])
        is_trusted = all(turns[number].turn.trust is Trust.TRUSTED for number in lines)
        score = min(score, hit.score)
        key = hit.session.label or ""
        yield Passage(
            "\n".join(lines[number] for number in sorted(lines)),
            score,
            hit.session.id,
            key,
            nacre_chat.channel_of(key),
            hit.turn.time,
            Trust.TRUSTED if is_trusted else Trust.UNTRUSTED,
        )


def _exchange(turns: Sequence[StoredTurn], at: int) -> tuple[int, int]:
    begin = end = at
    while begin and _is_agents(turns[begin]):
        begin -= 1
    while begin and not _is_agents(turns[begin - 1]):
        begin -= 1
    while end + 1 < len(turns) and not (_is_agents(turns[end]) and not _is_agents(turns[end + 1])):
        end += 1
    return begin, end


def _is_agents(stored: StoredTurn) -> bool:
    return stored.turn.speaker is Speaker.AGENT


def _line(home: Home, stored: StoredTurn, room: int, terms: Sequence[str]) -> str:
    turn: Turn = with_texts(stored.turn, home.redactor.clean, ("id",))
    # People choose their own names, so names must not imitate the format.
    author = one_line(turn.author or turn.speaker).replace(":", " ")
    speaker = turn.speaker if turn.trust is Trust.TRUSTED else f"{author} (untrusted)"
    head = f"[{shown_minute(turn.time)}] {speaker}: " if turn.time else f"{speaker}: "
    room = max(_MIN_CHARACTERS // 2, room - len(head))
    # Indented lines do not look like turns.
    text = "\n  ".join(turn.text.splitlines())
    return head + (text if len(text) <= room else excerpt(turn.text, terms, room))


# -- Resuming -----------------------------------------------------------------
# nacre returns the command but does not execute it.


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""Pattern for ids that cannot be mistaken for an option of a program, even in a forged transcript."""

_MAX_TRIED = 10


@operation("resume")
def resume(home: Home, request: ResumeRequest) -> Resumption:
    """Return the requested session and the command that opens it in its tool.

    Sub-agents' sessions and nacre's own model calls cannot be resumed. Raises NotFoundError,
    ConflictError, UnavailableError.
    """
    folder = Path(request.folder) if request.folder else Path.cwd()
    stored = _find_resumable(home, (request.what or "").strip(), folder)
    session, look = stored.session, f"nacre sessions show {stored.session.id} reads it"
    if session.kind is not SessionKind.MAIN:
        parent = (
            f"; nacre resume {session.tool}:{session.parent} opens its parent"
            if session.parent
            else ""
        )
        raise ConflictError(
            f"{session.id} is not one of your own sessions ({session.kind.value})",
            hint=f"{look}{parent}",
        )
    if _is_own(home, stored):
        raise ConflictError(f"{session.id} is nacre's own call to a model", hint=look)
    command = _command(home, stored, look)
    if session.cwd and not Path(session.cwd).is_dir():
        raise NotFoundError(
            f"the folder of {session.id} is gone: {session.cwd}",
            hint=f"{look}; create the folder to resume",
        )
    return Resumption(SessionLine(stored, opening_of(home, stored)), command, session.cwd)


def _find_resumable(home: Home, reference: str, folder: Path) -> StoredSession:
    if reference and home.sessions.find(reference):
        return find_session(home, reference)
    project = project_of_folder(home, folder)
    if not reference:
        newest = home.sessions.newest(SessionFilter(project=project), limit=1) if project else []
        if not newest:
            raise NotFoundError(
                f"nacre knows no session in {folder}", hint="give an id from nacre sessions list"
            )
        return newest[0]
    for candidate in dict.fromkeys((project, None)):
        titled = home.sessions.newest(
            SessionFilter(project=candidate, words=reference), limit=_MAX_TRIED
        )
        if session := _first(home, titled):
            return session
    result = recall.search_sessions_answers(
        home, requests.TurnQuery(reference, limit=_MAX_TRIED, mode=Mode.LEXICAL, update=False)
    )
    ids = dict.fromkeys(hit.session.id for hit in result.turns)
    if session := _first(home, (home.sessions.find(session_id)[0] for session_id in ids)):
        return session
    raise NotFoundError(
        f"no session has {reference!r} in its title or its text",
        hint="nacre sessions list shows them",
    )


def _first(home: Home, sessions: Iterable[StoredSession]) -> StoredSession | None:
    own = (stored for stored in sessions if stored.session.kind is SessionKind.MAIN)
    return next((stored for stored in own if not _is_own(home, stored)), None)


def _is_own(home: Home, stored: StoredSession) -> bool:
    return is_own_call(home.sessions.read_turns(stored.row, OPENING_TURNS))


def _command(home: Home, stored: StoredSession, look: str) -> tuple[str, ...]:
    session, file = stored.session, Path(stored.file or "")
    label = next((reader.label for reader in registry.adapters_of(session.tool)), session.tool)
    keepers = (
        reader
        for reader, root in discovery.tool_roots(home, (), [])
        if reader.tool == session.tool
        and reader.resume
        and file.is_relative_to(root.folder)
        and any(file.match(Path(pattern).name) for pattern in root.patterns)
    )
    keeper = next(keepers, None)
    if keeper is None or not _ID.fullmatch(session.native_id):
        raise UnavailableError(
            f"{label} has no command that opens transcripts in {file.parent}", hint=look
        )
    if not file.is_file():
        hint = f"nacre sessions restore {session.id} restores it if it was archived"
        raise NotFoundError(f"the transcript of {session.id} is gone: {file}", hint=hint)
    return tuple(word.replace("{id}", session.native_id) for word in keeper.resume)
