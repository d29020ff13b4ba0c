"""Requests about the projects of a home."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request

_REASON = "Why; it is kept in the ledger and in the history."


class ProjectRequest(Request, frozen=True, kw_only=True):
    """One project."""

    project: Annotated[str, Meta(description="A name, a slug or an alias of a project that is known.")]


class ProjectRenameRequest(ProjectRequest, frozen=True, kw_only=True):
    """Give a project another name; the one it had becomes an alias."""

    name: Annotated[str, Meta(description="The new name; the project's folder in the vault is called after it.")]
    reason: Annotated[str | None, Meta(description=_REASON)] = None


class ProjectMergeRequest(ProjectRequest, frozen=True, kw_only=True):
    """Make one project of two: all that belongs to the first one becomes the second one's."""

    into: Annotated[str, Meta(description="The project that stays.")]
    reason: Annotated[str | None, Meta(description=_REASON)] = None


class ProjectDependRequest(ProjectRequest, frozen=True, kw_only=True):
    """Say which projects one depends on: their memories are found in it, too, one level deep."""

    on: Annotated[
        tuple[str, ...], Meta(description="Projects that it depends on, by name, slug or alias.", min_length=1)
    ]
    remove: Annotated[bool, Meta(description="It depends on them no longer.")] = False
