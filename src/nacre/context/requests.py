"""Requests of the operations in ``nacre.context``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

if TYPE_CHECKING:
    pass


PageName = Annotated[Literal["identity", "profile", "project"], Meta(description="Which page.")]


Project = Annotated[str | None, Meta(description="The project, for a project's page.")]
