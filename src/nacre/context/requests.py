"""Requests of the operations in ``nacre.context``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from nacre.base.bounds import bounds
from nacre.base.request import Request
from nacre.values.context import SessionState

if TYPE_CHECKING:
    pass


PageName = Annotated[Literal["identity", "profile", "project"], bounds("Which page.")]


class HandoffRequest(Request):
    """The latest handoff of a folder's project; ``store`` makes a new one."""

    folder: Annotated[
        str | None, bounds("The agent's working folder, which determines the project.")
    ] = None
    store: Annotated[bool, bounds("Hand over the session now.")] = False
    session: Annotated[
        str | None,
        bounds("As <tool>:<id>; default: the agent's own, else the folder's last."),
    ] = None
    words: Annotated[str | None, bounds("The text; default: the owner's last messages.")] = None


class GivenRequest(Request):
    """The context delivered to a host's session."""

    session: Annotated[str, bounds("The host's session, as <tool>:<id>.")]
    state: Annotated[SessionState | None, bounds("The state of the delivered context.")] = None


class OwnPageRequest(Request):
    """A page of the owner or a project."""

    name: PageName
    project: Annotated[str | None, bounds("The project, for a project's page.")] = None


class WritePageRequest(OwnPageRequest):
    """Write a page of the owner or a project."""

    text: Annotated[
        str,
        bounds(
            "The whole page. An empty text deletes it, except a project's.",
            max_length=200_000,
        ),
    ]
    expected: Annotated[
        str | None,
        bounds("The etag from your last read. If the page has changed since, nothing is written."),
    ] = None
