"""What a session was about, what was done in it, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nacre.values.session import Action, Speaker


class Ending(StrEnum):
    """How a session ended, as far as its last words and deeds tell."""

    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Loose(StrEnum):
    """What kind of end was left open."""

    REQUEST = "request"
    QUESTION = "question"
    TODO = "todo"
    NEXT_STEP = "next step"
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class Topic:
    """What was asked for, in the words of who asked; at most 300 characters.

    ``turn`` is the id of the turn. ``work`` counts the calls and answers that followed until something else was asked.
    """

    text: str
    turn: str
    speaker: Speaker
    work: int


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that the agent called: how often, and how often that failed."""

    name: str
    action: Action
    calls: int
    failed: int


@dataclass(frozen=True, slots=True)
class FileTouched:
    """A file by its path below the session's folder, else by its whole path."""

    path: str
    edits: int
    reads: int


@dataclass(frozen=True, slots=True)
class CommandUse:
    """A command by its program and what that was told first; commands that only look are left out."""

    name: str
    runs: int
    failed: int


@dataclass(frozen=True, slots=True)
class ErrorMet:
    """What a call put out that failed: a tool's words. ``mended`` says that the same kind of call came out later."""

    text: str
    call: str
    times: int
    mended: bool


@dataclass(frozen=True, slots=True)
class SessionOutcome:
    """How it ended and what tells so; ``words`` are those of ``speaker`` in ``turn``, where words tell."""

    ending: Ending
    reason: str
    words: str = ""
    speaker: Speaker | None = None
    turn: str | None = None


@dataclass(frozen=True, slots=True)
class OpenEnd:
    """What was left: in the words of ``speaker``, which are the agent's for todos, next steps and failing commands."""

    kind: Loose
    text: str
    speaker: Speaker
    turn: str


@dataclass(frozen=True, slots=True)
class Summary:
    """All of it. Topics come with the main ones first, the rest by how often, or in order.

    Words are the owner's, or those of an agent that drew on nothing from outside; errors are a tool's.
    """

    topics: tuple[Topic, ...] = ()
    outcome: SessionOutcome = SessionOutcome(Ending.UNKNOWN, "nothing was said")
    open_ends: tuple[OpenEnd, ...] = ()
    tools: tuple[ToolUse, ...] = ()
    files: tuple[FileTouched, ...] = ()
    commands: tuple[CommandUse, ...] = ()
    commits: tuple[str, ...] = ()
    pull_requests: tuple[str, ...] = ()
    errors: tuple[ErrorMet, ...] = ()
    packages: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()

    @property
    def modified(self) -> tuple[FileTouched, ...]:
        """The files that were changed."""
        return tuple(file for file in self.files if file.edits)
