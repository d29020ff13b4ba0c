"""Search conversations in channels: passages of question and answer, put together as they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from nacre.home.home import Home
from nacre.home.lookup import find_session
from nacre.platform.days import shown_minute
from nacre.retrieval.recall import search_sessions
from nacre.sessions.requests import ChatSearchRequest
from nacre.sessions.views import clean_turn
from nacre.text.excerpt import excerpt
from nacre.text.passages import one_line, words
from nacre.transcripts.tools.nacre_chat import TOOL, channel_of
from nacre.values.recall import Filter, Lane, RecallQuery, TurnHit
from nacre.values.session import Flag, Session, Speaker, StoredTurn, Trust

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
            "\n".join(self.lines[seq] for seq in sorted(self.lines)), self.score, self.session.id, key,
            channel_of(key), self.time, Trust.TRUSTED if is_trusted else Trust.UNTRUSTED,
        )  # fmt: skip


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
    return Filter(tools=(TOOL,), sessions=tuple(wanted), since=request.since, until=request.until) if wanted else None


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
        span = _Span(hit.session, hit.turn.time, min(1.0, hit.score, *(one.score for one in found[-1:])))
        row = home.sessions.find(hit.session.id)[0].row
        place = home.sessions.place_of(row, hit.turn.id)
        if place is None or any(place in one.lines for one in others):
            continue
        _fill(home, span, _free(home, row, place, others), place, terms)
        beside = next((one for one in others if one.touches(span) and one.room >= CHARACTERS - span.room), None)
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


def _fill(home: Home, span: _Span, turns: Sequence[StoredTurn], place: int, terms: Sequence[str]) -> None:
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
            lines = [(stored, _line(home, stored, CHARACTERS, terms)) for stored in turns[first : last + 1]]
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
    author = one_line(turn.author or turn.speaker.value).replace(":", " ")  # anybody may choose a name
    who = turn.speaker.value if turn.trust is Trust.TRUSTED else f"{author} (untrusted)"
    head = f"[{shown_minute(turn.time)}] {who}: " if turn.time else f"{who}: "
    room = max(_LEAST // 2, room - len(head))
    text = "\n  ".join(turn.text.splitlines())
    return head + (text if len(text) <= room else excerpt(turn.text, terms, room))
