"""Request types of contexts and handoffs."""

from __future__ import annotations

from typing import Annotated, Literal

from nacre.base.bounds import bounds
from nacre.base.request import Request

PageName = Annotated[Literal["identity", "profile", "project"], bounds("Which page.")]
PageProject = Annotated[str | None, bounds("The project, for a project's page.")]


class HandoffRequest(Request):
    """The latest handoff of a folder's project. ``store`` makes a new one."""

    folder: Annotated[
        str | None, bounds("The agent's working folder, which determines the project.")
    ] = None
    store: Annotated[bool, bounds("Hand over the session now.")] = False
    session: Annotated[
        str | None,
        bounds("As <tool>:<id>; default: the agent's own, else the folder's last."),
    ] = None
    words: Annotated[str | None, bounds("The text; default: the owner's last messages.")] = None
