"""Requests to keep the vault in step with a remote."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.git.program import TIMEOUT_SECONDS
from nacre.platform.request import Request


class SyncRequest(Request, frozen=True, kw_only=True):
    """Keep the vault in step with a remote."""

    remote: Annotated[str | None, Meta(description="An address, or the name of a remote in git; none later.")] = None
    dry_run: Annotated[bool, Meta(description="Say what would be done, and do nothing.")] = False
    timeout_seconds: Annotated[float, Meta(description="Longest time for each call, in seconds.", gt=0)] = (
        TIMEOUT_SECONDS
    )
    accept_rewritten: Annotated[
        bool, Meta(description="Take a history that somebody rewrote at the remote as it is now.")
    ] = False
    patience_seconds: Annotated[float, Meta(description="Longest wait for another sync, in seconds.", ge=0)] = 20.0
