"""Values for sessions and turns, summaries, file changes and repairs, and handoffs."""

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
    """``trusted``: the words come from the owner's own conversation. ``untrusted``: they draw on
    outside text.
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
    """Contained nacre's own context, which was stripped, or repeats it, in a turn of the agent."""
    META = 2
    """Harness noise: command output, caveats, interruptions."""
    SUMMARY = 4
    """Derived by compaction, never a statement."""
    SIDECHAIN = 8
    """From or to a sub-agent."""
    COMMAND = 16
    """The owner's slash command with its arguments, or a choice in a dialogue."""
    INTERRUPTED = 32
    """The owner stopped the agent here."""


class Action(StrEnum):
    """The effect of a tool call, independent of the tool's name."""

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
    (the owner declined the call, and a reply is a separate owner turn). ``paths`` are the files
    read or edited, with the tool's names. ``error`` contains the informative lines of a failed
    call's output, at most 600 characters; they are the tool's words, not the agent's. ``made``
    names created objects: ``"commit 1a2b3c4"``, ``"task 3"``, the URL of a pull request.
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
        """True if the call ended with an exit code or an error. A declined call did not fail."""
        return bool(self.outcome) and self.outcome not in ("ok", "rejected")


@frozen
class Turn:
    """One message in a session.

    ``id`` is the tool's message id, or a hash of role, text and occurrence. ``unique`` is set if
    the tool guarantees the id across all of its sessions, so that a copy in another file is the
    same turn. ``author`` is a person's name in transcripts with several people (meetings, chats).
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
    """Number of tokens that models read and wrote, according to the models.

    ``input``: processed tokens, including tokens written to a cache. ``cached``: tokens read from a
    cache. ``output``: tokens written, including reasoning.
    """

    input: int = 0
    cached: int = 0
    output: int = 0

    @classmethod
    def with_cached(cls, read: int, cached: int, output: int) -> Tokens:
        """Return counts, subtracting cached tokens from the total.

        Nothing is subtracted if more tokens were cached than read. In that case, the provider
        counts them separately.
        """
        return cls(read - cached if cached <= read else read, cached, output)

    @property
    def total(self) -> int:
        """The sum of all counts."""
        return self.input + self.cached + self.output

    @property
    def bounded(self) -> Tokens:
        """The counts, with impossible values replaced by 0. A transcript can claim anything."""
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
    """One conversation with an agent tool, with facts from its transcript.

    ``native_id`` is the tool's id. ``repository`` is a git remote URL, if recorded. ``model`` is
    the last model that answered, or an earlier model that might run on the owner's machine.
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
        """``<tool>:<the tool's session id>``."""
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
    """A turn with its position. ``seq`` counts from 0 within the session."""

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
    """A main session in a given version of a tool.

    ``owner_spoke`` is set if it has a message from the owner.
    """

    tool: str
    version: str | None
    owner_spoke: bool


class Unlearned(NamedTuple):
    """A session with unprocessed turns.

    Extraction has not processed the turns from ``begin`` to ``end``, or a writer has not processed
    the turns from ``unwritten`` on. ``asked`` is the time of the writer's last call for the
    session. ``is_older`` is set if it was completely processed before there was a writer. The
    writer then starts at the first turn, or at ``unwritten`` after an earlier call.
    """

    row: int
    begin: int
    end: int
    unwritten: int | None
    asked: datetime | None
    is_older: bool = False

    @property
    def first(self) -> int:
        """The first turn that extraction or a writer has not processed."""
        if self.is_older:
            return self.unwritten or 0
        return self.begin if self.unwritten is None else min(self.begin, self.unwritten)


# -- Summaries -----------------------------------------------------------------


class Ending(StrEnum):
    """The end of a session, judged by its last words and actions."""

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
    """A request, in the requester's words; at most 300 characters.

    ``turn`` is the id of its turn. ``work`` counts the calls and answers until the next request.
    """

    text: str
    turn: str
    speaker: Speaker
    work: int


@frozen
class ToolUse:
    """A tool that the agent called, with the numbers of calls and failures."""

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
    """A program and subcommand. Read-only commands are omitted."""

    name: str
    runs: int
    failed: int


@frozen
class ErrorMet:
    """The output of a failed call, in the tool's words.

    ``mended`` is set if a call of that kind succeeded later.
    """

    text: str
    call: str
    times: int
    mended: bool
    trust: Trust = Trust.UNTRUSTED


@frozen
class SessionOutcome:
    """The outcome of a session, and the reason for this judgement.

    If the judgement is based on words, ``words`` are the words of ``speaker`` in ``turn``.
    """

    ending: Ending
    reason: str
    words: str = ""
    speaker: Speaker | None = None
    turn: str | None = None


@frozen
class OpenEnd:
    """An open item in the words of ``speaker``.

    For todos, next steps and failing commands, the speaker is the agent.
    """

    kind: Loose
    text: str
    speaker: Speaker
    turn: str


@frozen
class Summary:
    """The summary of a session. Main topics come first. Other lists are by frequency, or in order.

    Words are the owner's, or those of an agent that used no external text. Errors are a tool's
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
        """The files that were changed."""
        return tuple(file for file in self.files if file.edits)


# -- File changes, and failures with their repairs -----------------------------


@frozen
class FileChange:
    """The changes to a file in one session for one request.

    ``request`` is a request by the owner or by the agent that started the session. ``words`` is the
    agent's comment, ``seq`` the position of the last change in the session. ``failed`` is the
    number of failed calls.
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
    """The changes to a file, newest first. ``paths`` are the files that match the name."""

    asked: str
    paths: tuple[str, ...]
    changes: tuple[FileChange, ...]
    edits: int
    reads: int
    sessions: int
    more: bool = False


@frozen
class Repair:
    """The calls after a failure in its session.

    ``worked`` is set if the same command or edit succeeded later. ``steps`` are the calls up to and
    including the success. ``attempts`` counts the further failures. ``words`` is the agent's
    comment on the success, or its last comment.
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
    """An earlier error.

    ``likeness`` is the similarity to the given error (0 to 1), ``times`` the frequency. ``repairs``
    are ordered best first.
    """

    error: str
    likeness: float
    times: int
    sessions: int
    repairs: tuple[Repair, ...]
    trust: Trust = Trust.UNTRUSTED

    @property
    def mended(self) -> int:
        """Number of successful repairs."""
        return sum(repair.worked for repair in self.repairs)


@frozen
class Deeds:
    """The tool calls of one turn."""

    turn: int
    calls: tuple[ToolCall, ...]


@frozen
class FileUse:
    """One turn that used a file, with its position."""

    file: int
    turn: int
    session: int
    seq: int
    time: datetime | None
    action: Action


# -- Tasks for language models -------------------------------------------------


class Task(StrEnum):
    """The purpose of a model call. Each may have a model of its own."""

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
    """A check that a model answers."""


# -- Handoffs, flushing and chores ---------------------------------------------


HANDED_FOR = timedelta(days=7)
"""Time for which a handoff is kept and given to new sessions."""

BY_RULES = "rules"
"""Author of a handoff written by rules."""


@frozen
class Handoff:
    """Notes from a session for the project's next session.

    ``by`` is the author: rules, a model (its name), the agent or the owner. ``said`` is the time of
    the last message covered, and ``until`` its turn. ``asked`` is the turn of the owner's last
    request. ``given`` is the session that received the handoff, or empty while pending.
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

    ``waits`` is set while the handoff is pending, ``is_new`` if it was stored just now. ``note``
    explains why a model did not write the handoff despite being called, or why a requested handoff
    was not stored.
    """

    project: str | None
    handoff: Handoff | None = None
    waits: bool = False
    is_new: bool = False
    note: str | None = None


@frozen
class ChoresReport:
    """Numbers of chores: completed, failed and to be retried, abandoned, and remaining."""

    done: int = 0
    failed: int = 0
    given_up: int = 0
    left: int = 0


@frozen
class FlushReport:
    """The results of a flush.

    They include ids of new memories, the number of known candidates, sessions with new turns, the
    results of pending chores, and the reasons why a requested model did not help.
    """

    memories: tuple[str, ...] = ()
    duplicates: int = 0
    sessions: int = 0
    chores: ChoresReport = ChoresReport()
    notes: tuple[str, ...] = ()


# -- Reading positions ---------------------------------------------------------


@frozen
class Cursor:
    """The position up to which a file was read.

    ``fingerprint`` covers the first bytes (at most 256). A file with the same inode but a different
    fingerprint was replaced. ``carry`` is the adapter's state.
    """

    inode: int = 0
    offset: int = 0
    size: int = 0
    mtime_ns: int = 0
    fingerprint: str = ""
    carry: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """Counts of bad records during reading."""

    unknown: Counter[str] = field(default_factory=Counter)
    corrupt: int = 0
    oversized: int = 0
