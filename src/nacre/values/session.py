"""Sessions and turns: what every transcript becomes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntFlag, StrEnum
from typing import NamedTuple

_MOST_TOKENS = 10**12


class Speaker(StrEnum):
    """Who said it."""

    OWNER = "owner"
    AGENT = "agent"
    TOOL = "tool"
    SYSTEM = "system"


class Trust(StrEnum):
    """Whether the words come from the owner's own conversation, or draw on text from outside."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


class SessionKind(StrEnum):
    """What a session is for. Only ``main`` sessions yield memories; all are searchable."""

    MAIN = "main"
    SUBAGENT = "subagent"
    SCHEDULED = "scheduled"
    HEARTBEAT = "heartbeat"


class Flag(IntFlag):
    """What a turn is besides plain talk."""

    NONE = 0
    INJECTED = 1
    """Held nacre's own context, which was stripped; a turn of the agent also when it repeats nacre's words."""
    META = 2
    """Harness noise: command output, caveats, interruptions."""
    SUMMARY = 4
    """Derived by compaction, never a statement."""
    SIDECHAIN = 8
    """Said to or by a sub-agent."""
    COMMAND = 16
    """The owner's slash command with its arguments, or what they chose in a dialogue."""
    INTERRUPTED = 32
    """Here the owner stopped the agent."""


class Action(StrEnum):
    """What a tool call does, whatever its tool calls it."""

    RUN = "run"
    READ = "read"
    EDIT = "edit"
    SEARCH = "search"
    FETCH = "fetch"
    PLAN = "plan"
    DELEGATE = "delegate"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of an agent.

    ``input`` is a short, readable form (a command, a path, a query), at most 300 characters.
    ``outcome`` is ``None`` while unknown, else ``"ok"``, ``"exit 2"``, ``"error: …"`` or ``"rejected"``
    (the owner declined the call; the words they said instead are an owner turn of their own).
    ``paths`` are the files that were read or edited, as the tool names them. ``error`` holds the telling lines of what
    a call that failed put out, at most 600 characters: they are a tool's words, never the agent's. ``made`` names what
    came of it and has a name of its own: ``"commit 1a2b3c4"``, ``"task 3"``, the address of a pull request.
    """

    name: str
    input: str = ""
    outcome: str | None = None
    action: Action = Action.OTHER
    paths: tuple[str, ...] = ()
    error: str | None = None
    made: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it came out with an exit code or an error; one that the owner declined did not fail."""
        return bool(self.outcome) and self.outcome not in ("ok", "rejected")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a session.

    ``id`` is the tool's own message id, else a hash of role, text and occurrence. ``unique`` says that the tool
    guarantees the id across all of its sessions, so that a copy in another file is the same turn.
    ``author`` is a person's name where a transcript has several (meetings, chats).
    """

    id: str
    speaker: Speaker
    text: str
    time: datetime | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    flags: Flag = Flag.NONE
    trust: Trust = Trust.TRUSTED
    author: str | None = None
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Tokens:
    """What models read and wrote, in their own tokens.

    ``input`` was read anew, also what was put into a cache on the way; ``cached`` was read from a cache; ``output`` was
    written, reasoning with it.
    """

    input: int = 0
    cached: int = 0
    output: int = 0

    @classmethod
    def with_cached(cls, read: int, cached: int, output: int) -> Tokens:
        """Counts in which what was read holds what came from a cache; some providers count it apart, which shows when
        more came from the cache than was read."""
        return cls(read - cached if cached <= read else read, cached, output)

    @property
    def total(self) -> int:
        """All of them."""
        return self.input + self.cached + self.output

    @property
    def bounded(self) -> Tokens:
        """The same without counts that cannot be true; a transcript may claim anything."""
        counts = (self.input, self.cached, self.output)
        return Tokens(*(count if 0 <= count <= _MOST_TOKENS else 0 for count in counts))

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.input + other.input, self.cached + other.cached, self.output + other.output)

    def __sub__(self, other: Tokens) -> Tokens:
        return Tokens(self.input - other.input, self.cached - other.cached, self.output - other.output)


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation with one agent tool, as far as its transcript tells.

    ``native_id`` is the tool's own id. ``repository`` is a git remote URL where the transcript records one. ``model``
    is the one that answered last, or one before that may be the owner's own; ``tokens`` is ``None`` where the
    transcript does not count them.
    """

    tool: str
    native_id: str
    title: str | None = None
    cwd: str | None = None
    branch: str | None = None
    repository: str | None = None
    label: str | None = None
    kind: SessionKind = SessionKind.MAIN
    parent: str | None = None
    started: datetime | None = None
    tool_version: str | None = None
    model: str | None = None
    tokens: Tokens | None = None

    @property
    def id(self) -> str:
        """``<tool>:<the tool's own id>``."""
        return f"{self.tool}:{self.native_id}"


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as the index knows it."""

    row: int
    session: Session
    project: str | None
    ended: datetime | None
    file: str | None
    turns: int


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn with its place: ``seq`` counts from 0 within the session."""

    row: int
    session: int
    seq: int
    turn: Turn


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A transcript that was read: what it was, how large, and what in it was not understood."""

    path: str
    tool: str
    size: int
    mtime_ns: int
    unknown: dict[str, int]
    corrupt: int


@dataclass(frozen=True, slots=True)
class Heard:
    """A main session of a tool in some version, and whether it holds words of the owner."""

    tool: str
    version: str | None
    owner_spoke: bool


class Unlearned(NamedTuple):
    """A session with turns that extraction has not seen from ``begin`` to ``end``, or a writer from ``unwritten`` on.

    When the writer was asked about it last, ``asked`` tells. One that ``is_older`` was seen to its end before there was
    a writer for it: it is shown from its beginning, or from ``unwritten`` on where a writer got so far.
    """

    row: int
    begin: int
    end: int
    unwritten: int | None
    asked: datetime | None
    is_older: bool = False

    @property
    def first(self) -> int:
        """The first turn that extraction or a writer has not seen."""
        if self.is_older:
            return self.unwritten or 0
        return self.begin if self.unwritten is None else min(self.begin, self.unwritten)
