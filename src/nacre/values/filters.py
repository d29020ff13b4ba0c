"""Which sessions, and which deeds in them, a question is about."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from nacre.platform.bounds import bounds
from nacre.values.session import SessionKind


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions to list; an empty field does not restrict. Those of sub-agents only where asked for."""

    tool: Annotated[str | None, bounds("Only sessions with this tool, e.g. claude-code.")] = None
    project: Annotated[str | None, bounds("Only sessions of this project.")] = None
    since: Annotated[datetime | None, bounds("From then on.")] = None
    until: Annotated[datetime | None, bounds("Before then.")] = None
    subagents: Annotated[bool, bounds("Also sessions of sub-agents and schedulers.")] = False
    branch: Annotated[str | None, bounds("Only sessions on this branch.")] = None
    model: Annotated[str | None, bounds("Only sessions with this model.")] = None
    kind: Annotated[SessionKind | None, bounds("Only sessions of this kind.")] = None
    words: Annotated[
        str | None, bounds("Only with these words in the title or, where there is none, in the first request.")
    ] = None


@dataclass(frozen=True, slots=True)
class DeedFilter:
    """Which deeds count; an empty field does not restrict. ``since <= t < until``."""

    project: Annotated[str | None, bounds("Only in this project.")] = None
    tool: Annotated[str | None, bounds("Only with this tool, e.g. claude-code.")] = None
    since: Annotated[datetime | None, bounds("From then on.")] = None
    until: Annotated[datetime | None, bounds("Before then.")] = None
