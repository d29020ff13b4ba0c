"""What agents did: changes to files, and troubles with what mended them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nacre.values.session import Action, Session, ToolCall, Turn


@dataclass(frozen=True, slots=True)
class FileChange:
    """What was done to a file in one go: in one session, for one request.

    ``request`` is what was asked for, in the words of the owner, or of the agent that sent the session; ``words`` is
    what the agent said of it, ``seq`` the place of the last deed in the session. ``failed`` counts the calls that did
    not come out.
    """

    path: str
    session: Session
    project: str | None
    seq: int
    time: datetime | None
    edits: int
    reads: int
    commands: tuple[ToolCall, ...] = ()
    failed: int = 0
    request: Turn | None = None
    words: Turn | None = None


@dataclass(frozen=True, slots=True)
class FileHistory:
    """The answer to "who changed this file": the newest first. ``paths`` are the files that fit what was named."""

    asked: str
    paths: tuple[str, ...]
    changes: tuple[FileChange, ...]
    edits: int
    reads: int
    sessions: int
    more: bool = False


@dataclass(frozen=True, slots=True)
class Repair:
    """What followed a failure in its session.

    ``worked`` says that the same command, or the same edit, came out later; ``steps`` are the deeds before that, the
    last one being what then came out; ``attempts`` counts how often it failed again. ``words`` is what the agent said
    when it worked, else what it said last of it.
    """

    session: Session
    project: str | None
    seq: int
    time: datetime | None
    failed: ToolCall
    worked: bool
    attempts: int
    steps: tuple[ToolCall, ...] = ()
    words: Turn | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error that was met before: how like the one asked about (0 to 1), how often, and what followed, best first."""

    error: str
    likeness: float
    times: int
    sessions: int
    repairs: tuple[Repair, ...]

    @property
    def mended(self) -> int:
        """How often something worked."""
        return sum(repair.worked for repair in self.repairs)


@dataclass(frozen=True, slots=True)
class Deeds:
    """Tool calls of one turn."""

    turn: int
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class FileUse:
    """One turn that touched a file, and where it stands."""

    file: int
    turn: int
    session: int
    seq: int
    time: datetime | None
    action: Action
