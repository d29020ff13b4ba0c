"""Requests about what was done, and to undo it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request


class LogRequest(Request, frozen=True, kw_only=True):
    """Operations, the newest first: all, those on one memory, in one project, or of one action."""

    reference: Annotated[str | None, Meta(description="Only those on this memory.")] = None
    project: Annotated[str | None, Meta(description="Only those in this project, by its slug.")] = None
    action: Annotated[str | None, Meta(description="Only those that did this: store, dream, undo ...")] = None
    limit: Annotated[int, Meta(description="Operations at most.", ge=0)] = 50
    offset: Annotated[int, Meta(description="Items to skip.", ge=0)] = 0


class DiffRequest(Request, frozen=True, kw_only=True):
    """What an operation changed."""

    reference: Annotated[
        str | None, Meta(description="An operation's id, or a memory for the last one on it; by default, the last.")
    ] = None


class UndoRequest(Request, frozen=True, kw_only=True):
    """Bring back what an operation changed."""

    operation: Annotated[
        str | None, Meta(description="The operation's id, or its end; by default, the last one that is not undone.")
    ] = None
    force: Annotated[bool, Meta(description="Keep both versions of what was changed since.")] = False
