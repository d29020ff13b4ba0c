"""Requests about projects and their pages."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from nacre.platform.request import Request


class PlaceRequest(Request, frozen=True, kw_only=True):
    """The project that a name means, or, without one or with ``.``, a folder."""

    name: Annotated[str | None, Meta(description="A name, a slug or an alias of a project.")] = None
    folder: Annotated[str | None, Meta(description="A folder of the project.")] = None


class TieRequest(Request, frozen=True, kw_only=True):
    """Make a folder, and the remote of its repository, a project's."""

    project: Annotated[str, Meta(description="A name, a slug or an alias of a project that is known.")]
    folder: Annotated[str, Meta(description="The folder.")]


class PageRequest(Request, frozen=True, kw_only=True):
    """The page of a project, or the owner's profile."""

    project: Annotated[str | None, Meta(description="The project's slug; without one, the owner's profile.")] = None
