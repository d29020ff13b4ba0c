"""What a session without a title is called."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from nacre.base.text import excerpt, one_line, words
from nacre.base.times import shown_minute
from nacre.errors import Conflict, NotFound, Unavailable
from nacre.home.home import Home
from nacre.home.location import find_session, project_of_folder
from nacre.home.views import Resumption, SessionLine, SessionPage, SessionReport, SessionView
from nacre.learn.discovery import tool_roots
from nacre.memories.edit import catch_up
from nacre.readers.adapter import Adapter
from nacre.readers.conversation import is_own_call
from nacre.readers.nacre_chat import TOOL, channel_of
from nacre.readers.registry import adapters
from nacre.recall.ranking import TurnQuery, admission
from nacre.recall.recall import search_sessions, search_sessions_answers
from nacre.sessions import find, topics
from nacre.sessions.find import (
    ChatSearchRequest,
    Matches,
    MatchRequest,
    ResumeRequest,
    SessionRequest,
    SessionsRequest,
)
from nacre.sessions.topics import summarise
from nacre.store.sessions import OPENING_TURNS
from nacre.values.memory import SessionFilter
from nacre.values.recall import Filter, Lane, Mode, RecallQuery, TurnHit
from nacre.values.session import (
    Flag,
    Session,
    SessionKind,
    Speaker,
    StoredSession,
    StoredTurn,
    ToolCall,
    Trust,
    Turn,
)


def opening_of(home: Home, stored: StoredSession) -> str | None:
    """Its first real request; ``None`` where it has a title."""
    if stored.session.title:
        return None
    return topics.opening(
        [item.turn for item in home.sessions.turns_of(stored.row, limit=OPENING_TURNS)]
    )


# ----------------------------------------------------------------------------
# Look at what is there: one memory with all that belongs to it, sessions, one session with its turns.


def list_sessions(home: Home, wanted: SessionFilter, *, limit: int, offset: int = 0) -> SessionPage:
    """A page of sessions, the newest first."""
    found, total = home.sessions.page(wanted, limit=limit + 1, offset=offset)
    page = found[:limit]
    active = home.sessions.active([item.row for item in page])
    lines = [SessionLine(item, opening_of(home, item), active.get(item.row)) for item in page]
    tools = tuple(tool for tool, *_ in home.sessions.counts())
    return SessionPage(tuple(lines), len(found) > limit, total, tools)


def look_at_session(
    home: Home,
    reference: str | None,
    *,
    first: int = 0,
    limit: int = -1,
    folder: Path | None = None,
    around: str | None = None,
) -> SessionView:
    """A session by its id or the beginning of it, else the last one of the folder; its turns from ``first`` on.

    With ``around``, the turns before and after the one of that id. Raises NotFound, Conflict.
    """
    catch_up(home)
    session = find_session(home, reference, folder)
    if around is not None:
        place = home.sessions.place_of(session.row, around)
        if place is None:
            raise NotFound(
                f"the session has no turn {around!r}", hint="nacre sessions show lists its turns"
            )
        first = max(0, place - max(0, limit) // 2)
    return _view(home, session, home.sessions.turns_of(session.row, first=first, limit=limit))


def look_at_end(
    home: Home, reference: str | None, *, limit: int, folder: Path | None = None
) -> SessionView:
    """The same with its last turns."""
    catch_up(home)
    session = find_session(home, reference, folder)
    return _view(home, session, home.sessions.last_turns(session.row, limit))


def cleaned(home: Home, view: SessionView) -> SessionView:
    """A session as it goes out: with today's rules of redaction."""
    clean = home.redactor.clean
    session = view.session.session
    bare = replace(
        session,
        title=session.title and clean(session.title),
        cwd=session.cwd and clean(session.cwd),
        branch=session.branch and clean(session.branch),
        label=session.label and clean(session.label),
    )
    file = view.session.file
    return replace(
        view,
        session=replace(view.session, session=bare, file=file and clean(file)),
        turns=tuple(replace(item, turn=clean_turn(item.turn, clean)) for item in view.turns),
        opening=view.opening and clean(view.opening),
    )


def _view(home: Home, stored: StoredSession, turns: Sequence[StoredTurn]) -> SessionView:
    learned = [home.memories.find(known.id) for known in home.memories.known_of(stored.session.id)]
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
    """With the rules of today, as everything that goes out."""
    calls = tuple(_clean_call(call, clean) for call in turn.tool_calls)
    return replace(
        turn, text=clean(turn.text), author=turn.author and clean(turn.author), tool_calls=calls
    )


def _clean_call(call: ToolCall, clean: Callable[[str], str]) -> ToolCall:
    return replace(
        call,
        name=clean(call.name),
        input=clean(call.input),
        outcome=call.outcome and clean(call.outcome),
        paths=tuple(map(clean, call.paths)),
        error=call.error and clean(call.error),
        made=tuple(map(clean, call.made)),
    )


# ----------------------------------------------------------------------------
# Sum up sessions: what was asked, what was done, how it ended, what was left.


def sum_up(home: Home, reference: str | None = None, folder: Path | None = None) -> SessionReport:
    """The summary of a session by its id or the beginning of it, else of the last one of the folder.

    Made anew from its turns: one that goes on is summed up as far as it was read. Raises NotFound, Conflict.
    """
    view = look_at_session(home, reference, limit=0, folder=folder)
    turns = [item.turn for item in home.sessions.turns_of(view.session.row)]
    return SessionReport(view, summarise(view.session.session, turns))


# ----------------------------------------------------------------------------
# What is answered to requests about sessions; :mod:`nacre.serve.catalogue` lists them.


def list_sessions_answers(home: Home, request: SessionsRequest) -> SessionPage:
    """A page of sessions, the newest first."""
    return list_sessions(
        home, request.filter, limit=max(0, request.limit), offset=max(0, request.offset)
    )


def show(home: Home, request: SessionRequest) -> SessionView:
    """One session with its turns, without secrets. Raises NotFound, Conflict."""
    folder = Path(request.folder) if request.folder else None
    limit = -1 if request.limit is None else max(0, request.limit)
    if request.at_end:
        return cleaned(home, look_at_end(home, request.reference, limit=limit, folder=folder))
    found = look_at_session(
        home,
        request.reference,
        first=max(0, request.first),
        limit=limit,
        folder=folder,
        around=request.around,
    )
    return cleaned(home, found)


def summarize(home: Home, request: SessionRequest) -> SessionReport:
    """What a session came to: what was asked, what was done, how it ended. Raises NotFound, Conflict."""
    return sum_up(home, request.reference, Path(request.folder) if request.folder else None)


def match(home: Home, request: MatchRequest) -> Matches:
    """Turns that a regular expression matches, the newest first. Raises QueryInvalid."""
    return find.match_turns(
        home,
        request.expression,
        request.filter,
        limit=request.limit,
        offset=request.offset,
        admits=admission(request.aspect, request.role),
        seconds=request.seconds,
    )


# ----------------------------------------------------------------------------
# Search conversations in channels: passages of question and answer, put together as they are read.


CHARACTERS = 2_000
"""Of a passage, about 500 tokens (seed facts 4)."""

_REACH = 20
"""Turns before and after a hit that may be in its passage."""

_FIRST, _MOST = 3, 800
"""How many turns a passage is looked for in at first, and turns at most."""

_LEAST = 200
"""Characters of a turn that are worth showing."""

_LEFT_OUT = Flag.SUMMARY | Flag.META


@dataclass(frozen=True, slots=True)
class Passage:
    """Part of a conversation: the exchange that answers, with those beside it as far as there is room.

    ``score`` (0 to 1) never rises from one passage to the next. ``time`` is that of the turn that was found; ``text``
    has a line for each turn, with its local time and who said it, and what goes on in further lines is moved in.
    ``trust`` is untrusted where anything in it is.
    """

    text: str
    score: float
    session: str
    key: str
    channel: str
    time: datetime | None
    trust: Trust


@dataclass(frozen=True, slots=True)
class Passages:
    """What a search found, the best first. ``lanes`` says what ran."""

    query: str
    passages: tuple[Passage, ...] = ()
    lanes: tuple[Lane, ...] = ()


@dataclass(slots=True)
class _Span:
    """Turns of one session that are one passage, each with its line, by their places in the session."""

    session: Session
    time: datetime | None
    score: float
    turns: dict[int, StoredTurn] = field(default_factory=dict)
    lines: dict[int, str] = field(default_factory=dict)

    @property
    def room(self) -> int:
        """Characters that are left."""
        return CHARACTERS - sum(map(len, self.lines.values()))

    def add(self, stored: StoredTurn, line: str) -> None:
        """A turn more."""
        self.turns[stored.seq], self.lines[stored.seq] = stored, line

    def touches(self, other: _Span) -> bool:
        """Whether one begins where the other ends."""
        return max(other.lines) + 1 == min(self.lines) or max(self.lines) + 1 == min(other.lines)

    def passage(self) -> Passage:
        """What is answered."""
        is_trusted = all(stored.turn.trust is Trust.TRUSTED for stored in self.turns.values())
        key = self.session.label or ""
        return Passage(
            "\n".join(self.lines[seq] for seq in sorted(self.lines)),
            self.score,
            self.session.id,
            key,
            channel_of(key),
            self.time,
            Trust.TRUSTED if is_trusted else Trust.UNTRUSTED,
        )


def search(home: Home, request: ChatSearchRequest) -> Passages:
    """Passages of conversations that answer a question, or hold some of its words.

    Raises QueryInvalid, and NotFound or Conflict for the session.
    """
    wanted = _filter(home, request)
    if wanted is None:
        return Passages(request.query)
    reach = request.limit * _FIRST
    while True:
        query = RecallQuery(request.query, wanted, limit=reach, diversify=False, update=False)
        found = search_sessions(home, query)
        spans = _spans(home, found.turns, request)
        if len(spans) >= request.limit or not found.truncated or reach >= _MOST:
            return Passages(request.query, tuple(span.passage() for span in spans), found.lanes)
        reach *= 4


def _filter(home: Home, request: ChatSearchRequest) -> Filter | None:
    """What is searched; ``None`` where there is nothing to search."""
    keys = home.sessions.labels(TOOL)
    wanted = [key for key in keys if request.channel in (None, channel_of(key))]
    if request.session and request.session in keys:
        wanted = [key for key in wanted if key == request.session]
    elif request.session:
        session = find_session(home, request.session).session
        wanted = [session.id] if session.label in wanted else []
    return (
        Filter(tools=(TOOL,), sessions=tuple(wanted), since=request.since, until=request.until)
        if wanted
        else None
    )


def _spans(home: Home, hits: Sequence[TurnHit], request: ChatSearchRequest) -> list[_Span]:
    """Passages around hits, the best first; a hit in one that is there already adds nothing."""
    spans: dict[str, list[_Span]] = {}
    found: list[_Span] = []
    terms = words(request.query)
    for hit in hits:
        if len(found) == request.limit:
            break
        if hit.turn.flags & _LEFT_OUT or hit.session.id == request.leave_out:
            continue
        others = spans.setdefault(hit.session.id, [])
        span = _Span(
            hit.session, hit.turn.time, min(1.0, hit.score, *(one.score for one in found[-1:]))
        )
        row = home.sessions.find(hit.session.id)[0].row
        place = home.sessions.place_of(row, hit.turn.id)
        if place is None or any(place in one.lines for one in others):
            continue
        _fill(home, span, _free(home, row, place, others), place, terms)
        beside = next(
            (one for one in others if one.touches(span) and one.room >= CHARACTERS - span.room),
            None,
        )
        if beside:
            beside.turns |= span.turns
            beside.lines |= span.lines
        else:
            others.append(span)
            found.append(span)
    return found


def _free(home: Home, row: int, place: int, others: Sequence[_Span]) -> list[StoredTurn]:
    """The turns around a place that no passage shows yet."""
    taken = {seq for one in others for seq in one.lines}
    first = max([place - _REACH, *(seq + 1 for seq in taken if seq < place)])
    last = min([place + _REACH, *(seq - 1 for seq in taken if seq > place)])
    around = home.sessions.turns_of(row, first=max(0, first), limit=last - max(0, first) + 1)
    return [stored for stored in around if not stored.turn.flags & _LEFT_OUT]


def _fill(
    home: Home, span: _Span, turns: Sequence[StoredTurn], place: int, terms: Sequence[str]
) -> None:
    """The exchange around a place, cut where it is long; then the one after it and the one before it, if they fit."""
    at = next(number for number, stored in enumerate(turns) if stored.seq == place)
    begin, end = _exchange(turns, at)
    for number in sorted(range(begin, end + 1), key=lambda one: (abs(one - at), one < at)):
        room = span.room * 3 // 4 if number == at and end > begin else span.room
        if room < _LEAST:
            return
        span.add(turns[number], _line(home, turns[number], room, terms))
    for beside in (end + 1, begin - 1):
        if 0 <= beside < len(turns):
            first, last = _exchange(turns, beside)
            lines = [
                (stored, _line(home, stored, CHARACTERS, terms))
                for stored in turns[first : last + 1]
            ]
            if sum(len(line) for _, line in lines) <= span.room:
                for stored, line in lines:
                    span.add(stored, line)


def _exchange(turns: Sequence[StoredTurn], at: int) -> tuple[int, int]:
    """The first and last turn of what people asked, and the agent answered, around one of them."""
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
    """A turn as it is shown, at most so long: nothing in it can pass for another turn."""
    turn = clean_turn(stored.turn, home.redactor.clean)
    author = one_line(turn.author or turn.speaker.value).replace(
        ":", " "
    )  # anybody may choose a name
    who = turn.speaker.value if turn.trust is Trust.TRUSTED else f"{author} (untrusted)"
    head = f"[{shown_minute(turn.time)}] {who}: " if turn.time else f"{who}: "
    room = max(_LEAST // 2, room - len(head))
    text = "\n  ".join(turn.text.splitlines())
    return head + (text if len(text) <= room else excerpt(turn.text, terms, room))


# ----------------------------------------------------------------------------
# Go on with a session in its own tool: which one is meant, and the command that opens it. Nothing is
# run here.


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
        parent = (
            f"; nacre resume {session.tool}:{session.parent} opens the one that sent it"
            if session.parent
            else ""
        )
        raise Conflict(
            f"{session.id} is no session that you talked in ({session.kind.value})",
            hint=f"{look}{parent}",
        )
    if _is_own(home, stored):
        raise Conflict(f"{session.id} is a question that nacre itself asked a model", hint=look)
    command = _command(home, stored, look)
    if session.cwd and not Path(session.cwd).is_dir():
        raise NotFound(
            f"the folder of {session.id} is gone: {session.cwd}",
            hint=f"{look}; make the folder to go on",
        )
    return Resumption(SessionLine(stored, opening_of(home, stored)), command, session.cwd)


def _meant(home: Home, what: str, folder: Path) -> StoredSession:
    """The session of an id or its beginning; else the last one with these words, those of this project first."""
    if what and home.sessions.find(what):
        return find_session(home, what)
    project = project_of_folder(home, folder)
    if not what:
        here = home.sessions.newest(SessionFilter(project=project), limit=1) if project else []
        if not here:
            raise NotFound(
                f"no session in {folder} is known",
                hint="give an id; nacre sessions list shows them",
            )
        return here[0]
    for wanted in dict.fromkeys((project, None)):
        titled = home.sessions.newest(SessionFilter(project=wanted, words=what), limit=_MOST_TRIED)
        if found := _first(home, titled):
            return found
    said = search_sessions_answers(
        home, TurnQuery(what, limit=_MOST_TRIED, mode=Mode.LEXICAL, update=False)
    )
    ids = dict.fromkeys(hit.session.id for hit in said.turns)
    if found := _first(home, (home.sessions.find(one)[0] for one in ids)):
        return found
    raise NotFound(
        f"no session is called {what!r}, and none speaks of it",
        hint="nacre sessions list shows them",
    )


def _first(home: Home, found: Iterable[StoredSession]) -> StoredSession | None:
    talked = (one for one in found if one.session.kind is SessionKind.MAIN)
    return next((one for one in talked if not _is_own(home, one)), None)


def _is_own(home: Home, stored: StoredSession) -> bool:
    return is_own_call(
        item.turn for item in home.sessions.turns_of(stored.row, limit=OPENING_TURNS)
    )


def _command(home: Home, stored: StoredSession, look: str) -> tuple[str, ...]:
    """The command that opens a session. Raises Unavailable, NotFound."""
    session, file = stored.session, Path(stored.file or "")
    known = [adapter for adapter in adapters() if adapter.tool == session.tool]
    label = known[0].label if known else session.tool
    if not any(adapter.resume for adapter in known):
        raise Unavailable(f"{label} has no command that opens a session", hint=look)
    keeper = next(
        (adapter for adapter in _keepers(home, session.tool, file) if adapter.resume), None
    )
    if keeper is None or not _ID.fullmatch(session.native_id):
        raise Unavailable(
            f"{label} cannot open {session.id}: its command line keeps none in {file.parent}",
            hint=look,
        )
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
