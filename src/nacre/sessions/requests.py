"""Requests about sessions and what was done in them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request
from nacre.values.filters import DeedFilter, SessionFilter
from nacre.values.recall import Filter

SessionId = Annotated[str, Meta(description="A session's id, or its beginning.", examples=["claude-code:7f3a1c2d"])]
Offset = Annotated[int, Meta(description="Items to skip.", ge=0)]
Aspect = Annotated[
    str,
    Meta(
        description="Only turns about this: errors, plans, configs, tools, files or decisions.",
        pattern="^(all|errors|plans|configs|tools|files|decisions)$",
    ),
]
Role = Annotated[str, Meta(description="Only turns of this speaker: owner or agent.", pattern="^(all|owner|agent)$")]
WhoseDeeds = Annotated[DeedFilter, Meta(description="Whose deeds, and when.")]


class SessionsRequest(Request, frozen=True, kw_only=True):
    """Sessions, the newest first."""

    filter: Annotated[SessionFilter, Meta(description="Which sessions.")] = SessionFilter()
    limit: Annotated[int, Meta(description="Sessions at most.", ge=0)] = 20
    offset: Offset = 0


class SessionRequest(Request, frozen=True, kw_only=True):
    """One session: its turns from ``first`` on, those ``around`` one, or, with ``at_end``, its last ones."""

    reference: Annotated[SessionId | None, Meta(description="By default, the last one of the folder.")] = None
    first: Annotated[int, Meta(description="From this turn on.", ge=0)] = 0
    limit: Annotated[int, Meta(description="Turns at most; all of them without one.", ge=0)] | None = 20
    at_end: Annotated[bool, Meta(description="The last turns.")] = False
    around: Annotated[str | None, Meta(description="The turns around this one, named by its id.")] = None
    folder: Annotated[str | None, Meta(description="Whose last session, where none is named.")] = None


class ResumeRequest(Request, frozen=True, kw_only=True):
    """Which session to go on with."""

    what: (
        Annotated[
            str,
            Meta(
                description="Its id or the beginning of it, else words of its title or of what was said; by default, "
                "the last one of the folder.",
                max_length=20_000,
            ),
        ]
        | None
    ) = None
    folder: Annotated[str | None, Meta(description="Whose last session, where none is named; its own go first.")] = None


class MatchRequest(Request, frozen=True, kw_only=True):
    """Turns that a regular expression matches."""

    expression: Annotated[str, Meta(description="A regular expression; letter case does not count.")]
    filter: Annotated[Filter, Meta(description="Which turns.")] = Filter()
    limit: Annotated[int, Meta(description="Turns at most.", ge=0)] = 10
    offset: Offset = 0
    aspect: Aspect = "all"
    role: Role = "all"
    seconds: Annotated[float, Meta(description="Longest time to look.", gt=0, le=60)] = 10.0


class ChatSearchRequest(Request, frozen=True, kw_only=True):
    """What is looked for in conversations in channels."""

    query: Annotated[str, Meta(description="A question or key words.", max_length=4_000)]
    limit: Annotated[int, Meta(description="Passages at most.", ge=1, le=50)] = 10
    channel: (
        Annotated[str, Meta(description="Only conversations in this channel.", examples=["telegram"], max_length=100)]
        | None
    ) = None
    session: (
        Annotated[
            str,
            Meta(description="Only this conversation, by its key, or one session, by its id.", max_length=300),
        ]
        | None
    ) = None
    leave_out: Annotated[str | None, Meta(description="A session whose words are not wanted, by its whole id.")] = None
    since: Annotated[datetime | None, Meta(description="From then on.")] = None
    until: Annotated[datetime | None, Meta(description="Before then.")] = None


class DidQuery(Request, frozen=True, kw_only=True):
    """What was done with a file or folder."""

    path: Annotated[str, Meta(description="A file or folder, as a person names it.", max_length=20_000)]
    wanted: WhoseDeeds = DeedFilter()
    reads: Annotated[bool, Meta(description="Also deeds that only read it.")] = False
    commands: Annotated[bool, Meta(description="Also commands that only name it.")] = False
    limit: Annotated[int, Meta(description="Changes at most.", ge=0)] = 10
    offset: Offset = 0


class FixQuery(Request, frozen=True, kw_only=True):
    """What was tried against an error before."""

    error: Annotated[str, Meta(description="The error as it was printed: a line, or a whole trace.")]
    wanted: WhoseDeeds = DeedFilter()
    limit: Annotated[int, Meta(description="Errors at most.", ge=0)] = 3
    repairs: Annotated[int, Meta(description="Repairs of each at most.", ge=0)] = 3
