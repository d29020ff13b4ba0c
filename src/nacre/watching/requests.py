"""Requests of the watcher."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request


class SurveyRequest(Request, frozen=True, kw_only=True):
    """What the watcher would follow."""

    paths: Annotated[
        tuple[Path, ...], Meta(description="Files and folders; by default, all that discovery finds.")
    ] = ()


class RoundRequest(SurveyRequest, frozen=True, kw_only=True):
    """One round of the watcher: read what is new, learn from it, make vectors."""

    reads: Annotated[bool, Meta(description="False: learn only from what was read before.")] = True
    seconds: Annotated[float | None, Meta(description="Longest time for vectors; none: until all are made.")] = None
    learns: Annotated[bool, Meta(description="Learn and make vectors at all.")] = True
