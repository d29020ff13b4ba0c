"""Look through every turn for a regular expression, in pieces and with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from nacre.home.home import Home
from nacre.home.location import with_dependencies
from nacre.text.expressions import Expression
from nacre.text.passages import one_line
from nacre.values.recall import Filter, HitConfidence, TurnHit
from nacre.values.session import Trust, Turn

_PORTION = 500
_SECONDS_A_TURN = 0.25
_AROUND = 100
_WHOLE_WORD = 20


@dataclass(frozen=True, slots=True)
class Matches:
    """Turns that match, the newest first. ``unread`` says that time ran out before all were looked at; ``given_up``
    counts turns on which the expression took too long."""

    turns: tuple[TurnHit, ...]
    more: bool
    unread: bool
    given_up: int


def match_turns(
    home: Home, expression: str, wanted: Filter, *, limit: int, offset: int = 0,
    admits: Callable[[Turn], bool] | None = None, seconds: float = 10.0,
) -> Matches:  # fmt: skip
    """Turns whose words or deeds match, in any case of letters. Raises QueryInvalid for what is no expression."""
    pattern = Expression(expression, _SECONDS_A_TURN)
    until = time.monotonic() + seconds
    found: list[TurnHit] = []
    given_up = 0
    for row, turn in _turns(home, with_dependencies(home, wanted)):
        if len(found) > offset + limit or time.monotonic() > until:
            unread = len(found) <= offset + limit
            return Matches(tuple(found[offset : offset + limit]), len(found) > offset + limit, unread, given_up)
        try:
            hit = None if admits and not admits(turn) else _match(home, pattern, row, turn)
        except TimeoutError:
            given_up += 1
        else:
            found += [hit] if hit else []
    return Matches(tuple(found[offset : offset + limit]), len(found) > offset + limit, False, given_up)


def _match(home: Home, pattern: Expression, row: int, turn: Turn) -> TurnHit | None:
    """Where a turn matches; what a tool put out is no word of the agent's."""
    for text, trust in _texts(turn):
        found = pattern.search(text)
        if found:
            stored = home.sessions.get(row)
            told = replace(turn, trust=trust)
            return TurnHit(
                stored.session, stored.project, told, 1.0, around(text, *found.span()), {}, HitConfidence.SURE
            )
    return None


def around(text: str, start: int, end: int) -> str:
    """A stretch of a text with about 100 characters to either side, cut between words, on one line."""
    first, last = max(0, start - _AROUND), min(len(text), end + _AROUND)
    if first:
        space = text.find(" ", first, min(start, first + _WHOLE_WORD))
        first = space + 1 if space >= 0 else first
    if last < len(text):
        space = text.rfind(" ", max(end, last - _WHOLE_WORD), last)
        last = space if space >= 0 else last
    return f"{'…' if first else ''}{one_line(text[first:last])}{'…' if last < len(text) else ''}"


def _turns(home: Home, wanted: Filter) -> Iterator[tuple[int, Turn]]:
    """(session row, turn), those of the sessions that went on last first."""
    for rows in home.selection.newest_turns(wanted):
        for start in range(0, len(rows), _PORTION):
            portion = rows[start : start + _PORTION]
            stored = home.sessions.by_rows(portion)
            yield from ((stored[row].session, stored[row].turn) for row in portion if row in stored)


def _texts(turn: Turn) -> Iterator[tuple[str, Trust]]:
    yield turn.text, turn.trust
    for call in turn.tool_calls:
        yield f"{call.name} {call.input}", turn.trust
        yield "\n".join((call.outcome or "", call.error or "", *call.made)), Trust.UNTRUSTED
