"""Requests of the operations in ``nacre.context``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from nacre.base.request import Request
from nacre.values.context import SessionState

if TYPE_CHECKING:
    pass


PageName = Annotated[Literal["identity", "profile", "project"], Meta(description="Which page.")]


class HandoffRequest(Request):
    """The latest handoff of a folder's project; ``store`` makes a new one."""

    folder: Annotated[
        str | None, Meta(description="The agent's working folder, which determines the project.")
    ] = None
    store: Annotated[bool, Meta(description="Hand over the session now.")] = False
    session: Annotated[
        str | None,
        Meta(description="As <tool>:<id>; default: the agent's own, else the folder's last."),
    ] = None
    words: Annotated[
        str | None, Meta(description="The text; default: the owner's last messages.")
    ] = None


class GivenRequest(Request):
    """The context delivered to a host's session."""

    session: Annotated[str, Meta(description="The host's session, as <tool>:<id>.")]
    state: Annotated[
        SessionState | None, Meta(description="The state of the delivered context.")
    ] = None


class OwnPageRequest(Request):
    """A page of the owner or a project."""

    name: PageName
    project: Annotated[str | None, Meta(description="The project, for a project's page.")] = None


class WritePageRequest(OwnPageRequest):
    """Write a page of the owner or a project."""

    text: Annotated[
        str,
        Meta(
            description="The whole page. An empty text deletes it, except a project's.",
            max_length=200_000,
        ),
    ]
    expected: Annotated[
        str | None,
        Meta(
            description="The etag from your last read. If the page has changed since, nothing is written."
        ),
    ] = None
