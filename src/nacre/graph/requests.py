"""Requests about links between memories."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Literal

from msgspec import Meta

from nacre.memories.requests import Offset, Reference
from nacre.platform.request import Request
from nacre.values.memory import Kind

MOST_LINKS = 1000
"""Links that are drawn together, at most."""


class Relation(StrEnum):
    """How the source of a link relates to its target (DESIGN: the seed's eleven, and ``elaborates``).

    ``calls``, ``imports`` and ``inherits`` are between symbols of code. Files may hold other names.
    """

    RELATED_TO = "related_to"
    SUPERSEDES = "supersedes"
    DEPENDS_ON = "depends_on"
    CONTRADICTS = "contradicts"
    SPECIALIZES = "specializes"
    PART_OF = "part_of"
    ALTERNATIVE_TO = "alternative_to"
    BUILDS_ON = "builds_on"
    ELABORATES = "elaborates"
    CALLS = "calls"
    IMPORTS = "imports"
    INHERITS = "inherits"


Way = Literal["both", "outbound", "inbound"]
Day = Annotated[date | None, Meta(description="The links as they were on that day; today where left out.")]
Project = Annotated[str | None, Meta(description="Only memories of this project.")]
Relations = Annotated[tuple[str, ...], Meta(description="Only these relations.")]
Origin = (
    Annotated[
        str, Meta(description="What made it: a word to list and remove such links by.", pattern="^[a-z][a-z-]{0,39}$")
    ]
    | None
)
Limit = Annotated[int, Meta(description="Items at most.", ge=1, le=1000)]


class NewLink(Request, frozen=True, kw_only=True):
    """One link to be drawn. One that is there already gets what is given here."""

    source: Reference
    relation: Annotated[Relation, Meta(description="How the source relates to the target.")]
    target: Annotated[str, Meta(description="The other memory, or a symbol of code: code:shop/src/cart.py#add.")]
    strength: (
        Annotated[float, Meta(description="How close they are, 0 to 1; .5 where left out.", ge=0, le=1)] | None
    ) = None
    since: Annotated[date | None, Meta(description="The first day on which it holds.")] = None
    until: Annotated[date | None, Meta(description="The day from which it holds no more.")] = None
    reason: Annotated[str, Meta(description="Why, in a few words.", max_length=500)] | None = None
    origin: Origin = None


class LinkRequest(Request, frozen=True, kw_only=True):
    """Links to be drawn: all of them or, where one cannot be, none."""

    links: Annotated[tuple[NewLink, ...], Meta(description="The links.", min_length=1, max_length=MOST_LINKS)]


class UnlinkRequest(Request, frozen=True, kw_only=True):
    """A link to be taken away, or all between two memories."""

    source: Reference
    target: Annotated[str, Meta(description="The memory at its other end.")]
    relation: Annotated[
        str | None, Meta(description="Its relation, as nacre graph list shows it; every one where left out.")
    ] = None


class InvalidateRequest(UnlinkRequest, frozen=True, kw_only=True):
    """A link, or all between two memories, that holds no more, and is kept."""

    at: Annotated[date | None, Meta(description="The day from which it holds no more; today where left out.")] = None


class UnlinkOriginRequest(Request, frozen=True, kw_only=True):
    """All links of an origin, to be taken away."""

    origin: Annotated[str, Meta(description="What made them: manual, agent, reflect, import, …")]
    project: Annotated[str | None, Meta(description="Only those of memories of this project.")] = None


class LinksRequest(Request, frozen=True, kw_only=True):
    """Links, those of the newest memories first: between memories that hold, or all at one memory."""

    reference: Annotated[str | None, Meta(description="Only links at this memory.")] = None
    relations: Relations = ()
    origins: Annotated[
        tuple[str, ...], Meta(description="Only of these origins; auto: likeness, which is left out otherwise.")
    ] = ()
    as_of: Day = None
    ended: Annotated[bool, Meta(description="Also links that hold no more, or not yet.")] = False
    project: Annotated[str | None, Meta(description="Only links with an end in this project.")] = None
    limit: Limit = 50
    offset: Offset = 0


class TraverseRequest(Request, frozen=True, kw_only=True):
    """What a memory is linked with, link by link."""

    reference: Annotated[str, Meta(description="Where to begin: a memory, or a symbol of code.")]
    depth: Annotated[int, Meta(description="How many links away.", ge=1, le=10)] = 2
    direction: Annotated[Way, Meta(description="outbound: only along links; inbound: only against them.")] = "both"
    relations: Relations = ()
    as_of: Day = None
    limit: Annotated[int, Meta(description="Memories at most; the nearest are kept.", ge=1, le=1000)] = 100


class AnalysisRequest(Request, frozen=True, kw_only=True):
    """What the links of all memories say, or of those of one project."""

    limit: Limit = 10
    project: Project = None


class MapRequest(Request, frozen=True, kw_only=True):
    """Memories and the links between them, to be drawn."""

    project: Project = None
    kinds: Annotated[tuple[Kind, ...], Meta(description="Only memories of these kinds.")] = ()
    relations: Relations = ()
    alike: Annotated[bool, Meta(description="Also likeness, which is computed.")] = False
    as_of: Annotated[
        date | None, Meta(description="Memories that held on that day, and their links then; today where left out.")
    ] = None
    limit: Annotated[int, Meta(description="Memories at most, the most linked first.", ge=1, le=5000)] = 1000


class BriefRequest(Request, frozen=True, kw_only=True):
    """All that is remembered, in about 200 tokens."""

    project: Project = None
