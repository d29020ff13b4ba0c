"""``memory_sessions``: what was said, session by session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nacre.errors import InvalidInput
from nacre.mcp import arguments
from nacre.mcp.answers import OUTSIDE, Answer, fitting, framed, indented, short_session, shorten_lines
from nacre.mcp.desk import Desk, going_on, page_of
from nacre.platform.days import shown_day, shown_minute
from nacre.retrieval import requests
from nacre.sessions.requests import MatchRequest, SessionRequest, SessionsRequest
from nacre.text.passages import count, harmless, one_line, shorten
from nacre.values.filters import SessionFilter
from nacre.values.recall import Filter, Mode, RecallResult, TurnHit
from nacre.values.session import ToolCall, Trust, Turn

if TYPE_CHECKING:
    from nacre.sessions.pattern_search import Matches
    from nacre.views import SessionLine, SessionPage, SessionReport, SessionView

_TURN_CHARACTERS = 1_200
_TITLE_CHARACTERS = 100
_CALL_CHARACTERS = 400
_OPEN_ENDS = 6
_REGEX_SECONDS = 3.0
"""An agent waits, and the daemon's other callers wait with it."""

_IDS = "memory_sessions with list shows ids"


def sessions(desk: Desk, asked: arguments.Sessions) -> Answer:
    """List, read, sum up or search the sessions with agents."""
    return {"list": _list, "read": _read, "summary": _summary, "search": _search}[asked.action](desk, asked)


def _named(asked: arguments.Sessions) -> str:
    if not asked.session:
        raise InvalidInput(f"{asked.action} needs a session", hint=_IDS)
    return asked.session


def _list(desk: Desk, asked: arguments.Sessions) -> Answer:
    projects = desk.projects(asked.project)
    wanted = SessionFilter(
        tool=asked.channel, project=projects[0] if projects else None, since=desk.moment("since", asked.since),
        until=desk.moment("until", asked.until), words=asked.query or None,
    )  # fmt: skip
    at = page_of(asked.cursor)
    page: SessionPage = desk.call("sessions", SessionsRequest(filter=wanted, limit=asked.limit, offset=at))
    lines = [_line(line) for line in page.lines]
    shown = fitting(lines, asked.budget)
    more = page.more or shown < len(lines)
    text = framed(
        "\n".join(lines[:shown]) or "No session fits.", going_on("memory_sessions", at + shown) if more else ""
    )
    records = {
        "sessions": [_session_record(line) for line in page.lines[:shown]],
        "cursor": str(at + shown) if more else None,
    }
    return Answer(text, records)


def _line(line: SessionLine) -> str:
    stored = line.session
    day = shown_day(stored.session.started) if stored.session.started else "no date"
    title = shorten(stored.session.title or line.opening or "without a title", _TITLE_CHARACTERS)
    told = f"{stored.session.id}, {day}, {stored.project or 'no project'}, {count(stored.turns, 'turn', 'turns')}"
    return f"- {harmless(one_line(told))}: {one_line(harmless(title))}"


def _session_record(line: SessionLine) -> dict[str, Any]:
    stored = line.session
    started = stored.session.started
    return {
        "session": stored.session.id, "project": stored.project, "turns": stored.turns,
        "started": started.isoformat() if started else None, "title": stored.session.title or line.opening,
    }  # fmt: skip


def _read(desk: Desk, asked: arguments.Sessions) -> Answer:
    reference = _named(asked)
    first = page_of(asked.cursor) if asked.cursor else asked.from_turn
    request = SessionRequest(reference=reference, first=first or 0, limit=asked.limit, at_end=first is None)
    with desk.naming(_IDS):
        view: SessionView = desk.call("session", request)
    return told_session(view, asked.budget, from_end=first is None, with_tools=asked.include_tools)


def told_session(view: SessionView, budget: int, *, from_end: bool = False, with_tools: bool = False) -> Answer:
    """Turns of a session, as many as fit; those at its end where they were asked for from there.

    ``with_tools`` tells what each tool was given and what came of it, instead of its name alone.
    """
    blocks = [_turn(item.seq, item.turn, with_tools=with_tools) for item in view.turns]
    if from_end:
        shown = fitting(blocks[::-1], budget)
        turns, told = view.turns[len(blocks) - shown :], blocks[len(blocks) - shown :]
    else:
        shown = fitting(blocks, budget)
        turns, told = view.turns[:shown], blocks[:shown]
    last = turns[-1].seq + 1 if turns else 0
    before = f"Turns 0 to {turns[0].seq - 1} come before: from_turn reads there." if turns and turns[0].seq else ""
    stored = view.session
    more = last < stored.turns
    head = f"{harmless(stored.session.id)}, {stored.project or 'no project'}, {count(stored.turns, 'turn', 'turns')}"
    text = framed(
        head, before, "\n".join(told) or "No turns from there on.",
        going_on("memory_sessions", last, stored.turns) if more else "",
    )  # fmt: skip
    records = {
        "session": stored.session.id,
        "turns": [
            {"number": item.seq, "speaker": item.turn.speaker.value, "trust": item.turn.trust.value,
             "text": item.turn.text,
             **({"tool_calls": [_call_record(call) for call in item.turn.tool_calls]} if with_tools else {})}
            for item in turns
        ],
        "cursor": str(last) if more else None,
    }  # fmt: skip
    return Answer(text, records)


def _turn(number: int, turn: Turn, *, with_tools: bool = False) -> str:
    day = f" {shown_minute(turn.time)}" if turn.time else ""
    outside = f" (UNTRUSTED: {OUTSIDE})" if turn.trust is Trust.UNTRUSTED else ""
    words = indented(shorten_lines(turn.text, _TURN_CHARACTERS)) if turn.text.strip() else "  (no words)"
    if with_tools and turn.tool_calls:
        return "\n".join([f"{number}. {turn.speaker.value}{day}{outside}:\n{words}", *map(_call, turn.tool_calls)])
    calls = ", ".join(dict.fromkeys(call.name for call in turn.tool_calls))
    return f"{number}. {turn.speaker.value}{day}{outside}:\n{words}" + (f"\n  [{harmless(calls)}]" if calls else "")


def _call(call: ToolCall) -> str:
    """What a tool was given, in its agent's words, and what it put out, which is from outside."""
    came = f" -> {call.outcome}" if call.outcome else ""
    told = [one_line(harmless(shorten(f"[{call.name}] {call.input}{came}", _CALL_CHARACTERS)))]
    if call.made:
        told.append(one_line(harmless(f"made {', '.join(call.made)}")))
    if call.error:
        told.append(f"put out (UNTRUSTED): {one_line(harmless(shorten(call.error, _CALL_CHARACTERS)))}")
    return "\n".join(f"  {line}" for line in told)


def _call_record(call: ToolCall) -> dict[str, Any]:
    return {
        "name": call.name, "input": call.input, "outcome": call.outcome, "error": call.error, "made": list(call.made),
    }  # fmt: skip


def _summary(desk: Desk, asked: arguments.Sessions) -> Answer:
    with desk.naming(_IDS):
        report: SessionReport = desk.call("session-summary", SessionRequest(reference=_named(asked)))
    return told_summary(report)


def told_summary(report: SessionReport) -> Answer:
    """What a session came to."""
    summary, stored = report.summary, report.view.session
    outcome = summary.outcome
    parts = [
        f"{harmless(stored.session.id)}, {stored.project or 'no project'}, {count(stored.turns, 'turn', 'turns')}",
        _section("Asked for", [topic.text for topic in summary.topics]),
        f"Ended: {outcome.ending.value}; {harmless(one_line(f'{outcome.reason}. {outcome.words}'))}",
        _section("Left open", [f"{end.kind.value}: {end.text}" for end in summary.open_ends[:_OPEN_ENDS]]),
        _section("Changed", [file.path for file in summary.modified[:12]]),
        _section("Learned", [memory.subject for memory in report.view.memories[:12]]),
    ]
    records = {
        "session": stored.session.id, "topics": [topic.text for topic in summary.topics],
        "ending": outcome.ending.value, "reason": outcome.reason,
        "open_ends": [end.text for end in summary.open_ends],
        "changed": [file.path for file in summary.modified],
        "memories": [memory.id for memory in report.view.memories],
    }  # fmt: skip
    return Answer(framed(*parts), records)


def _section(title: str, lines: list[str]) -> str:
    return f"{title}:\n" + "\n".join(f"- {one_line(harmless(shorten(line, 300)))}" for line in lines) if lines else ""


def _search(desk: Desk, asked: arguments.Sessions) -> Answer:
    if not (asked.query or "").strip():
        raise InvalidInput("search needs a query", hint="words that were said")
    wanted = Filter(
        projects=desk.projects(asked.project), tools=(asked.channel,) if asked.channel else (),
        since=desk.moment("since", asked.since), until=desk.moment("until", asked.until),
    )  # fmt: skip
    at = page_of(asked.cursor)
    hits, has_more, remark = (_matched if asked.match == "regex" else _found)(desk, asked, wanted, at)
    lines = [
        (f"- {shown_day(hit.turn.time)} " if hit.turn.time else "- ") + f"{hit.turn.speaker.value} in "
        f"{short_session(hit.session.id)}{', UNTRUSTED' * (hit.turn.trust is Trust.UNTRUSTED)}: "
        f"{one_line(harmless(hit.excerpt))}"
        for hit in hits
    ]
    shown = fitting(lines, asked.budget)
    more = has_more or shown < len(lines)
    text = framed(
        "\n".join(lines[:shown]) or "No turn matches.", remark,
        going_on("memory_sessions", at + shown) if more else "",
    )  # fmt: skip
    records = {
        "turns": [{"session": hit.session.id, "turn": hit.turn.id, "excerpt": hit.excerpt} for hit in hits[:shown]],
        "cursor": str(at + shown) if more else None,
    }
    return Answer(text, records)


_MODES = {"all": Mode.HYBRID, "words": Mode.LEXICAL, "meaning": Mode.VECTOR}


def _found(desk: Desk, asked: arguments.Sessions, wanted: Filter, at: int) -> tuple[Sequence[TurnHit], bool, str]:
    """The turns that match a query, the best first; whether there are more; and what is to be said of it."""
    query = requests.TurnQuery(
        asked.query or "", wanted, _MODES[asked.match], at + asked.limit, update=False, session=desk.session,
        aspect=asked.scope, role=asked.role,
    )  # fmt: skip
    found: RecallResult = desk.call("search-sessions", query)
    return found.turns[at:], found.truncated, ""


def _matched(desk: Desk, asked: arguments.Sessions, wanted: Filter, at: int) -> tuple[Sequence[TurnHit], bool, str]:
    """The same of a regular expression, the newest first."""
    request = MatchRequest(
        expression=asked.query or "", filter=wanted, limit=asked.limit, offset=at, aspect=asked.scope, role=asked.role,
        seconds=_REGEX_SECONDS,
    )  # fmt: skip
    desk.tell("looking through all turns")
    found: Matches = desk.call("match-sessions", request)
    unread = "Not all turns were looked at in three seconds: narrow it with since, project or scope."
    return found.turns, found.more, unread if found.unread or found.given_up else ""
