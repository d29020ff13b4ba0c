"""Requests for dreams."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request


class DreamPlanRequest(Request, frozen=True, kw_only=True):
    """What a dream would do."""

    project: Annotated[str | None, Meta(description="Memories of one project only.")] = None
    tier: Annotated[
        int, Meta(description="1: rules alone. 2: the writer, too. 3: also the inbox, pages and links.", ge=1, le=3)
    ] = 1
    most: (
        Annotated[int, Meta(description="Memories that may end; else 2 in 100 of what there is, and 20.", ge=0)] | None
    ) = None
    writer: Annotated[bool, Meta(description="Ask the writer, where one is set (from tier 2 on).")] = True
    backfill: Annotated[
        bool, Meta(description="Pages tell of sessions of any age, also of those before the last time (tier 3).")
    ] = False


class AlikeRequest(Request, frozen=True, kw_only=True):
    """Memories that look alike."""

    project: Annotated[str | None, Meta(description="Memories of one project only.")] = None
    limit: Annotated[int, Meta(description="Groups at most.", ge=1, le=500)] = 20


class DreamRequest(DreamPlanRequest, frozen=True, kw_only=True):
    """Have a dream: plan, check, do it."""

    steps: Annotated[
        tuple[str, ...] | None, Meta(description="Only these steps of the plan, by their keys: those that were shown.")
    ] = None
    first: Annotated[bool, Meta(description="Do it also where no dream was planned in this home before.")] = False
