"""Requests about the transcripts that nacre keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request


class PruneRequest(Request, frozen=True, kw_only=True):
    """Which transcripts of the archive may go; a limit of 0 lets none go."""

    keep_days: Annotated[int, Meta(description="Delete what changed more than this many days ago.", ge=0)] = 0
    budget_mb: Annotated[int, Meta(description="Largest size, in megabytes; the oldest goes first.", ge=0)] = 0


class RestoreSessionRequest(Request, frozen=True, kw_only=True):
    """Write the transcript of a session again."""

    reference: Annotated[str, Meta(description="A session's id, or its beginning.")]
    folder: Annotated[Path | None, Meta(description="Where it goes; by default, where it was.")] = None
