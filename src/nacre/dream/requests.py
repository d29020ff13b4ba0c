"""Requests for dreams."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request


class DreamPlanRequest(Request, frozen=True, kw_only=True):
    """What a dream would do."""

    project: Annotated[str | None, Meta(description="Memories of one project only.")] = None
    tier: Annotated[int, Meta(description="1: rules alone. 2: the writer, too.", ge=1, le=2)] = 1
    most: (
        Annotated[int, Meta(description="Memories that may end; else 2 in 100 of what there is, and 20.", ge=0)] | None
    ) = None


class DreamRequest(DreamPlanRequest, frozen=True, kw_only=True):
    """Have a dream: plan, check, do it."""

    first: Annotated[bool, Meta(description="Do it also where no dream was planned in this home before.")] = False
