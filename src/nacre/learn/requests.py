"""Requests of the operations in ``nacre.learn``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from nacre.base.bounds import bounds
from nacre.base.request import Request

SessionId = Annotated[str, bounds("A session: its id or the start of its id.")]


class ExtractRequest(Request):
    """A request to show the memories that a text, a transcript or a session would yield.

    With both ``path`` and ``session``, only this session of the transcript is read.
    """

    text: Annotated[
        str,
        bounds("A transcript or notes, as plain text or Markdown.", max_length=400_000),
    ] = ""
    path: Annotated[Path | None, bounds("A transcript.")] = None
    session: SessionId | None = None
    model: Annotated[
        str | None,
        bounds("provider:model instead of the configured model; none: rules only."),
    ] = None
