"""Sessions and turns: what every transcript becomes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntFlag, StrEnum
from typing import Any, NamedTuple

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
        return Tokens(
            self.input + other.input, self.cached + other.cached, self.output + other.output
        )

    def __sub__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input - other.input, self.cached - other.cached, self.output - other.output
        )


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


# ----------------------------------------------------------------------------
# What a session was about, what was done in it, and how it ended.


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


# ----------------------------------------------------------------------------
# What agents did: changes to files, and troubles with what mended them.


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


# ----------------------------------------------------------------------------
# What language models are asked for.


class Task(StrEnum):
    """What a model is asked for; each may have a model and a budget of its own."""

    EXTRACTION = "extraction"
    DEDUP = "dedup"
    CLAIMS = "claims"
    CONTRADICTION = "contradiction"
    TODOS = "todos"
    RECALL = "recall"
    MERGE = "merge"
    DREAM = "dream"
    HANDOFF = "handoff"
    PROFILE = "profile"
    CHAT = "chat"
    """Answers in conversations of the gateway."""
    TEST = "test"
    """Whether a model answers at all."""


# ----------------------------------------------------------------------------
# Handing sessions over, flushing them, and the chores that do it: what is asked and what is answered.


HANDED_FOR = timedelta(days=7)
"""So long a handoff is kept, and given to sessions that begin."""

BY_RULES = "rules"
"""Who wrote a handoff that needed nobody."""


@dataclass(frozen=True, slots=True)
class Handoff:
    """What a session leaves for the next one of its project.

    ``by`` says who wrote it: rules, a model (its name), the agent or the owner. ``said`` is when the last words were
    said that it knows of, ``until`` their turn, ``asked`` the turn in which the owner asked for something last.
    ``given`` is the session that was given it; empty: it waits.
    """

    id: str
    project: str
    session: str
    content: str
    by: str
    written: datetime
    said: datetime
    until: str = ""
    asked: str = ""
    given: str = ""


@dataclass(frozen=True, slots=True)
class HandoffView:
    """The latest handoff of a project, whether it still waits for a session, and whether it was stored just now.

    ``note`` says why no model wrote it, where one was asked, or why nothing was stored, where that was wanted.
    """

    project: str | None
    handoff: Handoff | None = None
    waits: bool = False
    is_new: bool = False
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ChoresReport:
    """Chores that were done, that failed and are tried again, that were given up, and that are left."""

    done: int = 0
    failed: int = 0
    given_up: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True)
class FlushReport:
    """The ids of new memories, how many candidates were known already, sessions with turns that were not learned from
    before, what became of the chores that waited, and why a model did not help, where one was to."""

    memories: tuple[str, ...] = ()
    duplicates: int = 0
    sessions: int = 0
    chores: ChoresReport = ChoresReport()
    notes: tuple[str, ...] = ()


# ----------------------------------------------------------------------------
# How far a transcript was read, and what the reading met.


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a file was read.

    ``fingerprint`` covers the first bytes (at most 256): a file that keeps its inode but not its beginning was
    replaced. ``carry`` is what the adapter wanted to find again.
    """

    inode: int = 0
    offset: int = 0
    size: int = 0
    mtime_ns: int = 0
    fingerprint: str = ""
    carry: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """What a reading met besides good records."""

    unknown: Counter[str] = field(default_factory=Counter)
    corrupt: int = 0
    oversized: int = 0
