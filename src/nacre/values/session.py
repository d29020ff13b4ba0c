"""Values for sessions, turns, summaries, file changes, repairs and handoffs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntFlag, StrEnum
from typing import Any, NamedTuple

from nacre.base.frozen import frozen

_MAX_TOKENS = 10**12


class Speaker(StrEnum):
    """The speaker of a turn or memory."""

    OWNER = "owner"
    AGENT = "agent"
    TOOL = "tool"
    SYSTEM = "system"


class Trust(StrEnum):
    """Whether words can be trusted.

    ``trusted``: they come from the owner's own conversation. ``untrusted``: they are based on
    external text.
    """

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


class SessionKind(StrEnum):
    """The purpose of a session. Only ``main`` sessions yield memories; all are searchable."""

    MAIN = "main"
    SUBAGENT = "subagent"
    SCHEDULED = "scheduled"
    HEARTBEAT = "heartbeat"


class Flag(IntFlag):
    """Special properties of a turn."""

    NONE = 0
    INJECTED = 1
    """Contained context from nacre, which was removed; or the agent's words repeat such context."""
    META = 2
    """Text from the tool itself: command output, caveats, interruptions."""
    SUMMARY = 4
    """A summary written by compaction, which never counts as a statement."""
    SIDECHAIN = 8
    """From or to a sub-agent."""
    COMMAND = 16
    """The owner's slash command with its arguments, or a choice in a dialog."""
    INTERRUPTED = 32
    """The owner stopped the agent here."""


class Action(StrEnum):
    """What a tool call does, independent of the tool's name."""

    RUN = "run"
    READ = "read"
    EDIT = "edit"
    SEARCH = "search"
    FETCH = "fetch"
    PLAN = "plan"
    DELEGATE = "delegate"
    OTHER = "other"


@frozen
class ToolCall:
    """One tool call by an agent.

    ``input`` is a short, readable form (a command, a path, a query), at most 300 characters.
    ``outcome`` is None while unknown, else ``"ok"``, ``"exit 2"``, ``"error: …"`` or ``"rejected"``
    (the user declined the call; a reply is a separate turn). ``paths`` are the files read or
    edited, as the tool names them. ``error`` contains the informative lines of a failed call's
    output, at most 600 characters; they are the tool's words, not the agent's. ``made`` names
    created objects: ``"commit 1a2b3c4"``, ``"task 3"``, the URL of a pull request.
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
        """True if the call ended with an error or a nonzero exit code.

        Declined calls did not fail.
        """
        return bool(self.outcome) and self.outcome not in ("ok", "rejected")


@frozen
class Turn:
    """One message in a session.

    ``id`` is the tool's message id, or a hash of role, text and occurrence. ``unique`` is set if
    the tool never uses an id twice, so that a copy in another file is the same turn. ``author`` is
    a person's name in transcripts with several people, such as meetings and chats.
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


@frozen
class Tokens:
    """Numbers of tokens that models read and wrote, as reported by the models.

    ``input`` includes tokens written to a cache. ``cached`` are tokens read from a cache.
    ``output`` includes reasoning.
    """

    input: int = 0
    cached: int = 0
    output: int = 0

    @classmethod
    def with_cached(cls, read: int, cached: int, output: int) -> Tokens:
        """Return counts from totals that include cached tokens, which are subtracted.

        If more tokens were cached than read, the provider counts them separately, and nothing is
        subtracted.
        """
        return cls(read - cached if cached <= read else read, cached, output)

    @property
    def total(self) -> int:
        return self.input + self.cached + self.output

    @property
    def bounded(self) -> Tokens:
        """The counts, with impossible values replaced by 0, because transcripts are not reliable."""
        counts = (self.input, self.cached, self.output)
        return Tokens(*(count if 0 <= count <= _MAX_TOKENS else 0 for count in counts))

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input, self.cached + other.cached, self.output + other.output
        )

    def __sub__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input - other.input, self.cached - other.cached, self.output - other.output
        )


@frozen
class Session:
    """One conversation with an agent tool.

    ``native_id`` is the tool's id. ``repository`` is a git remote URL, if recorded. ``model`` is
    the last model that answered, or an earlier model that might run on the user's machine.
    ``tokens`` is None if the transcript does not count tokens.
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
        return f"{self.tool}:{self.native_id}"


@frozen
class StoredSession:
    """A session in the index."""

    row: int
    session: Session
    project: str | None
    ended: datetime | None
    file: str | None
    turns: int


@frozen
class StoredTurn:
    """A turn with its position in the session. ``seq`` counts from 0."""

    row: int
    session: int
    seq: int
    turn: Turn


@frozen
class SeenFile:
    """A transcript that was read, with its size, and counts of unknown records."""

    path: str
    tool: str
    size: int
    mtime_ns: int
    unknown: dict[str, int]
    corrupt: int


@frozen
class Heard:
    """A main session, and the version of the tool in which it took place.

    ``owner_spoke`` is set if it has a message from the owner.
    """

    tool: str
    version: str | None
    owner_spoke: bool


class Unlearned(NamedTuple):
    """A session with turns that are not processed yet.

    Extraction has not processed the turns from ``begin`` to ``end``, and a writer those from
    ``unwritten`` on. ``asked`` is the time of the writer's last call for the session. ``is_older``
    is set if the session was processed before there was a writer. The writer then starts at the
    first turn, or at ``unwritten`` after an earlier call.
    """

    row: int
    begin: int
    end: int
    unwritten: int | None
    asked: datetime | None
    is_older: bool = False

    @property
    def first(self) -> int:
        """The first turn not yet processed by extraction or the writer."""
        if self.is_older:
            return self.unwritten or 0
        return self.begin if self.unwritten is None else min(self.begin, self.unwritten)


# -- Summaries -----------------------------------------------------------------


class Ending(StrEnum):
    """How a session ended, judged by its last words and actions."""

    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Loose(StrEnum):
    """The type of an open item."""

    REQUEST = "request"
    QUESTION = "question"
    TODO = "todo"
    NEXT_STEP = "next step"
    FAILING = "failing"


@frozen
class Topic:
    """A request in a session, in the requester's words; at most 300 characters.

    ``turn`` is the id of its turn. ``work`` counts the calls and answers until the next request.
    """

    text: str
    turn: str
    speaker: Speaker
    work: int


@frozen
class ToolUse:
    """A tool that the agent called, and how often it was called and failed."""

    name: str
    action: Action
    calls: int
    failed: int


@frozen
class FileTouched:
    """A file path, relative to the session's folder or absolute."""

    path: str
    edits: int
    reads: int


@frozen
class CommandUse:
    """A program with its subcommand. Read-only commands are omitted."""

    name: str
    runs: int
    failed: int


@frozen
class ErrorMet:
    """The output of a failed call, in the tool's words.

    ``mended`` is set if a similar call succeeded later.
    """

    text: str
    call: str
    times: int
    mended: bool
    trust: Trust = Trust.UNTRUSTED


@frozen
class SessionOutcome:
    """How a session ended, and the reason for this judgement.

    If it is based on words, these are the ``words`` of ``speaker`` in ``turn``.
    """

    ending: Ending
    reason: str
    words: str = ""
    speaker: Speaker | None = None
    turn: str | None = None


@frozen
class OpenEnd:
    """An open item, in the words of ``speaker``.

    Todos, next steps and failing commands come from the agent.
    """

    kind: Loose
    text: str
    speaker: Speaker
    turn: str


@frozen
class Summary:
    """The summary of a session. Main topics come first; other lists are in order or by frequency.

    All words are the owner's, or an agent's if it used no external text. Errors are in a tool's
    words.
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
        return tuple(file for file in self.files if file.edits)


# -- File changes, and failures with their repairs -----------------------------


@frozen
class FileChange:
    """The changes to a file for one request in a session.

    ``request`` comes from the owner, or from the agent that started the session. ``words`` is the
    agent's comment, ``seq`` the position of the last change in the session. ``failed`` counts
    failed calls.
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


@frozen
class FileHistory:
    """The changes to a file, newest first. ``paths`` are all files that match the name."""

    asked: str
    paths: tuple[str, ...]
    changes: tuple[FileChange, ...]
    edits: int
    reads: int
    sessions: int
    more: bool = False


@frozen
class Repair:
    """The calls after a failure, in the same session.

    ``worked`` is set if the same command or edit succeeded later. ``steps`` are the calls up to and
    including the success. ``attempts`` counts further failures. ``words`` is the agent's comment on
    the success, or its last comment.
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


@frozen
class Trouble:
    """An earlier error and its repairs, best first.

    ``likeness`` is its similarity to the given error (0 to 1), ``times`` how often it occurred.
    """

    error: str
    likeness: float
    times: int
    sessions: int
    repairs: tuple[Repair, ...]
    trust: Trust = Trust.UNTRUSTED

    @property
    def mended(self) -> int:
        return sum(repair.worked for repair in self.repairs)


@frozen
class Deeds:
    """The tool calls of one turn."""

    turn: int
    calls: tuple[ToolCall, ...]


@frozen
class FileUse:
    """A turn in which a file was used, with its position."""

    file: int
    turn: int
    session: int
    seq: int
    time: datetime | None
    action: Action


# -- Tasks for language models -------------------------------------------------


class Task(StrEnum):
    """The purpose of a model call. A separate model can be set for each."""

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
    """Answers in the gateway's conversations."""
    TEST = "test"
    """A check whether a model answers."""


# -- Handoffs, flushing and chores ---------------------------------------------


HANDED_FOR = timedelta(days=7)
"""Time for which a handoff is kept and given to new sessions."""

BY_RULES = "rules"
"""The author of handoffs written by rules."""


@frozen
class Handoff:
    """Notes from a session for the project's next session.

    ``by`` is the author: rules, a model (its name), the agent or the owner. ``said`` is the time of
    the last message covered, ``until`` its turn. ``asked`` is the turn of the owner's last request.
    ``given`` is the session that received the handoff, or empty while pending.
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


@frozen
class HandoffView:
    """The latest handoff in a project.

    ``waits`` is set while it is pending, ``is_new`` if it was stored just now. ``note`` explains
    why no model wrote it although one was called, or why a requested handoff was not stored.
    """

    project: str | None
    handoff: Handoff | None = None
    waits: bool = False
    is_new: bool = False
    note: str | None = None


@frozen
class ChoresReport:
    """Numbers of chores that were completed, failed (and will be retried), abandoned, or remain."""

    done: int = 0
    failed: int = 0
    given_up: int = 0
    left: int = 0


@frozen
class FlushReport:
    """The results of a flush.

    They include the ids of new memories, the number of known candidates, sessions with new turns,
    the results of pending chores, and the reasons why a requested model did not help.
    """

    memories: tuple[str, ...] = ()
    duplicates: int = 0
    sessions: int = 0
    chores: ChoresReport = ChoresReport()
    notes: tuple[str, ...] = ()


# -- Reading positions ---------------------------------------------------------


@frozen
class Cursor:
    """The position up to which a transcript was read.

    ``fingerprint`` covers the first bytes (at most 256). If it differs but the inode is the same,
    the file was replaced. ``carry`` is the adapter's state.
    """

    inode: int = 0
    offset: int = 0
    size: int = 0
    mtime_ns: int = 0
    fingerprint: str = ""
    carry: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """Numbers of bad records found during reading."""

    unknown: Counter[str] = field(default_factory=Counter)
    corrupt: int = 0
    oversized: int = 0
