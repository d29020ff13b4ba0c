"""Requests to look back."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request

Project = Annotated[str | None, Meta(description="Only what belongs to this project.")]


class TodayRequest(Request, frozen=True, kw_only=True):
    """What a day, or several, brought, and what waits now."""

    since: Annotated[date | None, Meta(description="The first day; the last one where left out.")] = None
    until: Annotated[date | None, Meta(description="The last day; today where left out.")] = None
    project: Project = None
    limit: Annotated[int, Meta(description="Memories, sessions and what waits: of each so many.", ge=0, le=100)] = 5


class ActivityRequest(Request, frozen=True, kw_only=True):
    """Numbers for pictures, by day, week or month."""

    since: Annotated[date | None, Meta(description="The first day; a year before the last one where left out.")] = None
    until: Annotated[date | None, Meta(description="The last day; today where left out.")] = None
    project: Project = None
