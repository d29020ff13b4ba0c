"""Operations on sessions: list, show, summarise, search and resume."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
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
from nacre.memories import edit
from nacre.operations import operation
from nacre.readers import adapter, nacre_chat, registry
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
    Session,
    SessionKind,
    Speaker,
    StoredSession,
    StoredTurn,
    Trust,
    Turn,
)


def opening_of(home: Home, stored: StoredSession) -> str | None:
    """Return the first request to use as a title, or ``None`` if the session has a title."""
    if stored.session.title:
        return None
    return topics.opening(
        [item.turn for item in home.sessions.turns_of(stored.row, limit=OPENING_TURNS)]
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


def look_at_session(
    home: Home,
    reference: str | None,
    *,
    first: int = 0,
    limit: int = -1,
    folder: Path | None = None,
    around: str | None = None,
) -> SessionView:
    """Return a session with its turns from ``first`` on. Without an id or id prefix, use the folder's last session.

    If ``around`` is the id of a turn, return the turns around it. Raises NotFoundError,
    ConflictError.
    """
    edit.catch_up(home)
    session = find_session(home, reference, folder)
    if around is not None:
        place = home.sessions.place_of(session.row, around)
        if place is None:
            raise NotFoundError(
                f"the session has no turn {around!r}", hint="nacre sessions show lists its turns"
            )
        first = max(0, place - max(0, limit) // 2)
    return _view(home, session, home.sessions.turns_of(session.row, first=first, limit=limit))


def redact_view(home: Home, view: SessionView) -> SessionView:
    """Redact a session, its parent and its children with the current rules."""
    clean = home.redactor.clean
    turns = tuple(replace(item, turn=clean_turn(item.turn, clean)) for item in view.turns)
    rest: SessionView = with_texts(
        replace(view, turns=(), memories=()), clean, ("tool", "native_id")
    )
    return replace(rest, turns=turns, memories=view.memories)


def _view(home: Home, stored: StoredSession, turns: Sequence[StoredTurn]) -> SessionView:
    learned = [
        home.memories.find(reference.id) for reference in home.memories.known_of(stored.session.id)
    ]
    memories = tuple(memory for memory in learned if memory and memory.is_active)
    children = home.sessions.children(stored.row)
    active = home.sessions.active([stored.row, *(child.row for child in children)])
    parents = (
        home.sessions.find(f"{stored.session.tool}:{stored.session.parent}")
        if stored.session.parent
        else []
    )
    return SessionView(
        stored,
        tuple(turns),
        memories,
        opening_of(home, stored),
        active.get(stored.row),
        next(iter(parents), None),
        tuple(
            SessionLine(child, opening_of(home, child), active.get(child.row)) for child in children
        ),
    )


def clean_turn(turn: Turn, clean: Callable[[str], str]) -> Turn:
    """Redact a turn with the current rules."""
    cleaned: Turn = with_texts(turn, clean, ("id",))
    return cleaned


# -- Summaries ----------------------------------------------------------------


@operation("session-summary")
def summarize(home: Home, request: SessionRequest) -> SessionReport:
    """Summarise a session, by default the folder's last session.

    The session is found by its id or id prefix. The summary covers the turns read so far. Raises
    NotFoundError, ConflictError.
    """
    folder = Path(request.folder) if request.folder else None
    view = look_at_session(home, request.reference, limit=0, folder=folder)
    turns = [item.turn for item in home.sessions.turns_of(view.session.row)]
    return SessionReport(view, topics.summarise(view.session.session, turns))


# -- Operations ---------------------------------------------------------------


@operation("session", by_key=True)
def show(home: Home, request: SessionRequest) -> SessionView:
    """Return a session with its turns, without secrets. ``7f3a1c2d#40`` starts at turn 40.

    Raises NotFoundError, ConflictError.
    """
    name, mark, first = (request.reference or "").rpartition("#")
    if mark and first.isdecimal():
        request = msgspec.structs.replace(request, reference=name, first=int(first))
    folder = Path(request.folder) if request.folder else None
    limit = -1 if request.limit is None else max(0, request.limit)
    if request.at_end:
        edit.catch_up(home)
        session = find_session(home, request.reference, folder)
        return redact_view(home, _view(home, session, home.sessions.last_turns(session.row, limit)))
    view = look_at_session(
        home,
        request.reference,
        first=max(0, request.first),
        limit=limit,
        folder=folder,
        around=request.around,
    )
    return redact_view(home, view)


# -- Search in channel conversations ------------------------------------------


CHARACTERS = 2_000
"""Maximum length of a passage in characters, about 500 tokens."""

_MAX_DISTANCE_TURNS = 20
"""Maximum distance in turns between a hit and the other turns of its passage."""

_TURNS_PER_PASSAGE, _MAX_TURNS = 3, 800
"""Turns per passage in the first search, and number of turns after which the search ends."""

_MIN_CHARACTERS = 200
"""A turn is added only if at least this many characters are free."""

_EXCLUDED = Flag.SUMMARY | Flag.META


@frozen
class Passage:
    """A matching exchange in a conversation, with neighbouring exchanges if they fit.

    ``text``: one line per turn, with local time and speaker. ``score``: relevance from 0 to 1,
    never higher than the score of the passage before. ``time``: time of the matching turn.
    ``trust``: untrusted if any turn is untrusted.
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
    """Search results, best first. ``lanes``: states of the search steps that ran."""

    query: str
    passages: tuple[Passage, ...] = ()
    lanes: tuple[Lane, ...] = ()


@dataclass(slots=True)
class _Span:
    """Turns and lines of a future passage. The keys are positions in the session."""

    session: Session
    time: datetime | None
    score: float
    turns: dict[int, StoredTurn] = field(default_factory=dict)
    lines: dict[int, str] = field(default_factory=dict)

    @property
    def room(self) -> int:
        return CHARACTERS - sum(map(len, self.lines.values()))

    def add(self, stored: StoredTurn, line: str) -> None:
        self.turns[stored.seq], self.lines[stored.seq] = stored, line

    def touches(self, other: _Span) -> bool:
        return max(other.lines) + 1 == min(self.lines) or max(self.lines) + 1 == min(other.lines)

    def passage(self) -> Passage:
        is_trusted = all(stored.turn.trust is Trust.TRUSTED for stored in self.turns.values())
        key = self.session.label or ""
        return Passage(
            "\n".join(self.lines[seq] for seq in sorted(self.lines)),
            self.score,
            self.session.id,
            key,
            nacre_chat.channel_of(key),
            self.time,
            Trust.TRUSTED if is_trusted else Trust.UNTRUSTED,
        )


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
    criteria = (
        Filter(
            tools=(nacre_chat.TOOL,),
            sessions=tuple(sessions),
            since=request.since,
            until=request.until,
        )
        if sessions
        else None
    )
    if criteria is None:
        return Passages(request.query)
    reach = request.limit * _TURNS_PER_PASSAGE
    while True:
        query = RecallQuery(request.query, criteria, limit=reach, diversify=False, update=False)
        result = recall.search_sessions(home, query)
        spans = _spans(home, result.turns, request)
        if len(spans) >= request.limit or not result.truncated or reach >= _MAX_TURNS:
            return Passages(request.query, tuple(span.passage() for span in spans), result.lanes)
        reach *= 4


def _spans(home: Home, hits: Sequence[TurnHit], request: ChatSearchRequest) -> list[_Span]:
    """Return spans around the hits, best first. An earlier span can cover several hits."""
    spans: dict[str, list[_Span]] = {}
    ordered: list[_Span] = []
    terms = words(request.query)
    for hit in hits:
        if len(ordered) == request.limit:
            break
        if hit.turn.flags & _EXCLUDED or hit.session.id == request.leave_out:
            continue
        session_spans = spans.setdefault(hit.session.id, [])
        span = _Span(
            hit.session,
            hit.turn.time,
            min(1.0, hit.score, *(placed.score for placed in ordered[-1:])),
        )
        row = home.sessions.find(hit.session.id)[0].row
        place = home.sessions.place_of(row, hit.turn.id)
        if place is None or any(place in placed.lines for placed in session_spans):
            continue
        taken = {seq for span in session_spans for seq in span.lines}
        first = max([place - _MAX_DISTANCE_TURNS, *(seq + 1 for seq in taken if seq < place)])
        last = min([place + _MAX_DISTANCE_TURNS, *(seq - 1 for seq in taken if seq > place)])
        around = home.sessions.turns_of(row, first=max(0, first), limit=last - max(0, first) + 1)
        _fill(
            home,
            span,
            [stored for stored in around if not stored.turn.flags & _EXCLUDED],
            place,
            terms,
        )
        adjacent = next(
            (
                placed
                for placed in session_spans
                if placed.touches(span) and placed.room >= CHARACTERS - span.room
            ),
            None,
        )
        if adjacent:
            adjacent.turns |= span.turns
            adjacent.lines |= span.lines
        else:
            session_spans.append(span)
            ordered.append(span)
    return ordered


def _fill(
    home: Home, span: _Span, turns: Sequence[StoredTurn], place: int, terms: Sequence[str]
) -> None:
    """Add an exchange to a span, and then its neighbours if they fit.

    ``place``: position of a turn in the exchange. A long exchange is shortened.
    """
    at = next(number for number, stored in enumerate(turns) if stored.seq == place)
    begin, end = _exchange(turns, at)
    for number in sorted(range(begin, end + 1), key=lambda index: (abs(index - at), index < at)):
        room = span.room * 3 // 4 if number == at and end > begin else span.room
        if room < _MIN_CHARACTERS:
            return
        span.add(turns[number], _line(home, turns[number], room, terms))
    for neighbour in (end + 1, begin - 1):
        if 0 <= neighbour < len(turns):
            first, last = _exchange(turns, neighbour)
            lines = [
                (stored, _line(home, stored, CHARACTERS, terms))
                for stored in turns[first : last + 1]
            ]
            if sum(len(line) for _, line in lines) <= span.room:
                for stored, line in lines:
                    span.add(stored, line)


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
    """Format a turn in about ``room`` characters.

    Further lines are indented, so that they do not look like turns.
    """
    turn = clean_turn(stored.turn, home.redactor.clean)
    # Authors choose their own names.
    author = one_line(turn.author or turn.speaker.value).replace(":", " ")
    speaker = turn.speaker.value if turn.trust is Trust.TRUSTED else f"{author} (untrusted)"
    head = f"[{shown_minute(turn.time)}] {speaker}: " if turn.time else f"{speaker}: "
    room = max(_MIN_CHARACTERS // 2, room - len(head))
    text = "\n  ".join(turn.text.splitlines())
    return head + (text if len(text) <= room else excerpt(turn.text, terms, room))


# -- Resuming -----------------------------------------------------------------
# Nothing is executed.


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""Pattern of ids that are safe as program arguments. A transcript could contain an option instead of an id."""

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
    """Return the latest session that ``reference`` identifies by its id, id prefix or words.

    Sessions of this project are preferred.
    """
    if reference and home.sessions.find(reference):
        return find_session(home, reference)
    project = project_of_folder(home, folder)
    if not reference:
        newest = home.sessions.newest(SessionFilter(project=project), limit=1) if project else []
        if not newest:
            raise NotFoundError(
                f"no session in {folder} is known", hint="give an id: nacre sessions list"
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
        f"no session has the name {reference!r} or contains it",
        hint="nacre sessions list shows them",
    )


def _first(home: Home, sessions: Iterable[StoredSession]) -> StoredSession | None:
    own = (stored for stored in sessions if stored.session.kind is SessionKind.MAIN)
    return next((stored for stored in own if not _is_own(home, stored)), None)


def _is_own(home: Home, stored: StoredSession) -> bool:
    return is_own_call(
        item.turn for item in home.sessions.turns_of(stored.row, limit=OPENING_TURNS)
    )


def _command(home: Home, stored: StoredSession, look: str) -> tuple[str, ...]:
    """Return the command that opens a session. Raises UnavailableError, NotFoundError."""
    session, file = stored.session, Path(stored.file or "")
    matching = registry.adapters_of(session.tool)
    label = matching[0].label if matching else session.tool
    if not any(adapter.resume for adapter in matching):
        raise UnavailableError(f"{label} has no command that opens a session", hint=look)
    keeper = next((reader for reader in _keepers(home, session.tool, file) if reader.resume), None)
    if keeper is None or not _ID.fullmatch(session.native_id):
        raise UnavailableError(
            f"{label} cannot open {session.id}: its command does not use {file.parent}", hint=look
        )
    if not file.is_file():
        hint = f"nacre sessions restore {session.id} restores it if it was archived"
        raise NotFoundError(f"the transcript of {session.id} is gone: {file}", hint=hint)
    return tuple(word.replace("{id}", session.native_id) for word in keeper.resume)


def _keepers(home: Home, tool: str, file: Path) -> Iterator[adapter.Adapter]:
    """Yield the tool's adapters that would discover a file."""
    for reader, root in discovery.tool_roots(home, (), []):
        is_there = reader.tool == tool and file.is_relative_to(root.folder)
        if is_there and any(file.match(Path(pattern).name) for pattern in root.patterns):
            yield reader
