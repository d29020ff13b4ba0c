"""Requests of the operations in ``nacre.setup``."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.base.request import Request


class ChoresRequest(Request, frozen=True, kw_only=True):
    """Do what hooks left to be done."""

    seconds: Annotated[float, Meta(description="Maximum time in seconds.", ge=0)] = 300.0


class FlushRequest(Request, frozen=True, kw_only=True):
    """Read and learn at once from what agents wrote until now, in one session or in all that grew within a day."""

    session: Annotated[str | None, Meta(description="The host's session, as <tool>:<id>.")] = None
    transcript: Annotated[str | None, Meta(description="The session's transcript file.")] = None
    seconds: Annotated[float, Meta(description="Maximum time for chores, in seconds.", ge=0)] = 60.0
