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

    ``trusted``: words from the owner's own conversation. ``untrusted``: words based on external
    text.
    """

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"


class SessionKind(StrEnum):
    """The purpose of a session. Only ``main`` sessions yield memories."""

    MAIN = "main"
    SUBAGENT = "subagent"
    SCHEDULED = "scheduled"
    HEARTBEAT = "heartbeat"


class Flag(IntFlag):
    """Special properties of a turn."""

    NONE = 0
    INJECTED = 1
    """The turn contained context from nacre, or the agent repeated such context.

    The context was removed from the turn.
    """
    META = 2
    """Text that the tool wrote, such as command output or notes about interruptions."""
    SUMMARY = 4
    """A summary written by compaction, which never counts as a statement."""
    SIDECHAIN = 8
    """A message from or to a sub-agent."""
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

    ``input``: short, readable form of the input, such as a command, path or query, with at most 300
    characters. ``outcome``: ``"ok"``, ``"exit 2"``, ``"error: …"``, ``"rejected"``, or None while
    unknown. A call is rejected if the user declined it. The user's reply is a separate turn.
    ``paths``: files read or edited, with the paths that the tool uses. ``error``: informative lines
    of a failed call's output, with at most 600 characters. These are the tool's words, not the
    agent's. ``made``: names of created objects, such as ``"commit 1a2b3c4"``, ``"task 3"`` or the
    URL of a pull request.
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

    ``id``: the tool's message id, or a hash. ``unique``: True if the tool never uses an id twice. A
    copy in another file is then the same turn. ``author``: name of a person, in transcripts of
    meetings and chats.
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
        """Return counts from a provider's numbers.

        Cached tokens are subtracted from ``read``, unless ``cached`` is greater. In that
        case, the provider counts them separately.
        """
        return cls(read - cached if cached <= read else read, cached, output)

    @property
    def total(self) -> int:
        return self.input + self.cached + self.output

    @property
    def bounded(self) -> Tokens:
        """The counts.

        Negative and very large counts, which come from bad transcripts, are set to 0.
        """
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

    ``begin``, ``end``: positions of the turns for extraction. ``unwritten``: position of the
    first turn for the writer. ``asked``: time of the writer's last call for the session.
    ``is_older``: True if only the writer has to process the session, from ``unwritten`` or the
    first turn on.
    """

    row: int
    begin: int
    end: int
    unwritten: int | None
    asked: datetime | None
    is_older: bool = False

    @property
    def first(self) -> int:
        """The position of the first turn that extraction or the writer has to process."""
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
    """A request in a session, in the requester's words, with at most 300 characters.

    ``turn``: id of the turn. ``work``: number of tool calls and answers after the request.
    """

    text: str
    turn: str
    speaker: Speaker
    work: int


@frozen
class FileTouched:
    """A file path, relative to the session's folder or absolute."""

    path: str
    edits: int
    reads: int


@frozen
class ErrorMet:
    """The error output of a failed tool call.

    ``mended``: True if a similar call succeeded later.
    """

    text: str
    call: str
    times: int
    mended: bool
    trust: Trust = Trust.UNTRUSTED


@frozen
class SessionOutcome:
    """A judgement of how a session ended, with the reason.

    ``words``, ``speaker``, ``turn``: statement that supports the judgement, if any.
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
    """The summary of a session.

    Main topics come first. Other lists are ordered by occurrence or frequency. Only errors are
    quoted from tools. Other words come from the owner, or from an agent that used no external
    text.
    """

    topics: tuple[Topic, ...] = ()
    outcome: SessionOutcome = SessionOutcome(Ending.UNKNOWN, "nothing was said")
    open_ends: tuple[OpenEnd, ...] = ()
    files: tuple[FileTouched, ...] = ()
    commits: tuple[str, ...] = ()
    pull_requests: tuple[str, ...] = ()
    errors: tuple[ErrorMet, ...] = ()

    @property
    def modified(self) -> tuple[FileTouched, ...]:
        return tuple(file for file in self.files if file.edits)


# -- File changes, and failures with their repairs -----------------------------


@frozen
class FileChange:
    """The changes to a file for one request in a session.

    ``request``: request from the owner, or from the agent that started the session. ``words``: the
    agent's comment. ``seq``: position of the last change in the session. ``failed``: number of
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

    ``worked``: True if the same command or edit succeeded later. ``steps``: calls up to and
    including the success. ``attempts``: number of further failures. ``words``: the agent's comment
    on the success, or its last comment if there was no success.
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

    ``likeness``: similarity to the given error (0 to 1). ``times``: how often the error occurred.
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
    """A read or edit of a file, with the turn and its position in the session."""

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
    RECALL = "recall"
    DREAM = "dream"
    HANDOFF = "handoff"
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

    ``by``: author of the notes, which is ``rules``, a model's name, the agent or the owner.
    ``said``: time of the last message that the notes cover. ``until``: turn of that message.
    ``asked``: turn of the owner's last request. ``given``: session that received the handoff, or
    empty while pending.
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

    ``waits``: True while the handoff is pending. ``is_new``: True if the handoff was stored just
    now. ``note``: reason why a model failed to write the handoff, or why a requested handoff was
    not stored.
    """

    project: str | None
    handoff: Handoff | None = None
    waits: bool = False
    is_new: bool = False
    note: str | None = None


@frozen
class ChoresReport:
    """Counts of chores.

    ``done``: completed chores. ``failed``: failed chores, which will be retried. ``given_up``:
    abandoned chores. ``left``: remaining chores.
    """

    done: int = 0
    failed: int = 0
    given_up: int = 0
    left: int = 0


@frozen
class FlushReport:
    """The results of reading the latest turns and of finishing queued work.

    ``memories``: ids of new memories. ``duplicates``: number of candidates that were already
    known. ``sessions``: number of sessions with new turns. ``chores``: results of queued work.
    ``notes``: reasons why a requested model gave no result.
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

    ``fingerprint``: hash of the first bytes (at most 256). A different fingerprint with the same
    inode means that the file was replaced. ``carry``: data with which the adapter continues
    reading.
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
