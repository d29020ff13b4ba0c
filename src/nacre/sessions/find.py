"""Requests of the operations on sessions, and search by regular expression."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.request import Request
from nacre.base.text import Expression, excerpt
from nacre.home import home, location
from nacre.operations import operation
from nacre.recall import ranking
from nacre.values.fields import Limit, Offset
from nacre.values.memory import DeedFilter, SessionFilter
from nacre.values.recall import Filter, HitConfidence, TurnHit
from nacre.values.session import StoredTurn, Trust, Turn

SessionId = Annotated[
    str, bounds("A session's id, or its beginning.", examples=["claude-code:7f3a1c2d"])
]
Aspect = Annotated[
    str,
    bounds(
        "Only turns about this: errors, plans, configs, tools, files or decisions.",
        pattern="^(all|errors|plans|configs|tools|files|decisions)$",
    ),
]
Role = Annotated[
    str,
    bounds("Only turns of this speaker: owner or agent.", pattern="^(all|owner|agent)$"),
]
DeedScope = Annotated[DeedFilter, bounds("The scope: sessions and times.")]


class SessionsRequest(Request):
    """A request to list sessions, newest first."""

    filter: Annotated[SessionFilter, bounds("Which sessions.")] = SessionFilter()
    limit: Limit = 20
    offset: Offset = 0


class SessionRequest(Request):
    """A request for a session and some of its turns."""

    reference: Annotated[SessionId | None, bounds("Default: the folder's last session.")] = None
    first: Annotated[int, bounds("The first turn.", ge=0)] = 0
    limit: Annotated[int, bounds("Maximum number of turns; default: all.", ge=0)] | None = 20
    at_end: Annotated[bool, bounds("The last turns.")] = False
    around: Annotated[str | None, bounds("The turns around the one with this id.")] = None
    folder: Annotated[
        str | None, bounds("Without a session: the folder or project of the last one.")
    ] = None


class ResumeRequest(Request):
    """A request to resume a session."""

    what: (
        Annotated[
            str,
            bounds(
                "Its id, the start of its id, or words from it; default: the folder's last session.",
                max_length=20_000,
            ),
        ]
        | None
    ) = None
    folder: Annotated[
        str | None,
        bounds("Without a session: the tool of the last one. The tool's own sessions come first."),
    ] = None


class ChatSearchRequest(Request):
    """A request to search chat conversations."""

    query: Annotated[str, bounds("A question or keywords.", max_length=4_000)]
    limit: Annotated[int, bounds("Maximum number of passages.", ge=1, le=50)] = 10
    channel: (
        Annotated[
            str,
            bounds(
                "Only conversations in this channel.",
                examples=["telegram"],
                max_length=100,
            ),
        ]
        | None
    ) = None
    session: (
        Annotated[
            str,
            bounds("Only this conversation (its key) or session (its id).", max_length=300),
        ]
        | None
    ) = None
    leave_out: Annotated[str | None, bounds("A session to leave out, by its whole id.")] = None
    since: Annotated[datetime | None, bounds("Start time.")] = None
    until: Annotated[datetime | None, bounds("End, excluded.")] = None


class DidQuery(Request):
    """A query about a file's or folder's history."""

    path: Annotated[str, bounds("A file or folder.", max_length=20_000)]
    wanted: DeedScope = DeedFilter()
    reads: Annotated[bool, bounds("Also actions that only read it.")] = False
    limit: Limit = 10
    offset: Offset = 0


class FixQuery(Request):
    """A query for earlier attempts to fix an error."""

    error: Annotated[str, bounds("The error as printed: a line or a whole trace.")]
    wanted: DeedScope = DeedFilter()
    limit: Limit = 3
    repairs: Annotated[int, bounds("Maximum repairs per error.", ge=0)] = 3


# -- Regular-expression search with a deadline --------------------------------


_ROWS_PER_QUERY = 500
_SECONDS_PER_TURN = 0.25
_CONTEXT_CHARACTERS = 240


@frozen
class Matches:
    """Turns that match an expression, newest first.

    ``unread``: whether time ran out before all turns were read. ``given_up``: number of turns that
    took too long to match.
    """

    turns: tuple[TurnHit, ...]
    more: bool
    unread: bool
    given_up: int


@operation("match-sessions")
def match_turns(
    home: home.Home,
    expression: Annotated[str, bounds("A regular expression, which ignores case.")],
    filter: Annotated[Filter, bounds("Which turns.")] = Filter(),  # noqa: A002, B008
    *,
    limit: Limit = 10,
    offset: Offset = 0,
    aspect: Aspect = "all",
    role: Role = "all",
    seconds: Annotated[float, bounds("Time limit of the search.", gt=0, le=60)] = 10.0,
) -> Matches:
    """Return turns whose text or calls match, the newest first. Raises InvalidQueryError for an invalid expression."""
    admits = ranking.admission(aspect, role)
    pattern = Expression(expression, _SECONDS_PER_TURN)
    until = time.monotonic() + seconds
    hits: list[TurnHit] = []
    given_up, unread = 0, False
    for stored in _turns(home, location.with_dependencies(home, filter)):
        if len(hits) > offset + limit:
            break
        unread = time.monotonic() > until
        if unread:
            break
        try:
            hit = None if admits and not admits(stored.turn) else _match(home, pattern, stored)
        except TimeoutError:
            given_up += 1
        else:
            hits += [hit] if hit else []
    return Matches(
        tuple(hits[offset : offset + limit]), len(hits) > offset + limit, unread, given_up
    )


def _match(home: home.Home, pattern: Expression, item: StoredTurn) -> TurnHit | None:
    for text, trust in _texts(item.turn):
        match = pattern.search(text)
        if match:
            stored = home.sessions.get(item.session)
            matched = replace(item.turn, trust=trust)
            return TurnHit(
                stored.session,
                stored.project,
                matched,
                item.seq,
                1.0,
                excerpt(text, (), _CONTEXT_CHARACTERS, phrase=match[0]),
                {},
                HitConfidence.SURE,
            )
    return None


def _turns(home: home.Home, criteria: Filter) -> Iterator[StoredTurn]:
    for rows in home.selection.newest_turns(criteria):
        for start in range(0, len(rows), _ROWS_PER_QUERY):
            portion = rows[start : start + _ROWS_PER_QUERY]
            yield from home.sessions.by_rows(portion).values()


def _texts(turn: Turn) -> Iterator[tuple[str, Trust]]:
    yield turn.text, turn.trust
    for call in turn.tool_calls:
        yield f"{call.name} {call.input}", turn.trust
        yield "\n".join((call.outcome or "", call.error or "", *call.made)), Trust.UNTRUSTED
