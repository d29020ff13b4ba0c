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
    """Whether a text can be trusted.

    The owner's own conversation is ``trusted``. Text based on external text is ``untrusted``.
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
    """Properties of a turn that affect how nacre uses it."""

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
    """A tool call by an agent.

    ``input``: readable form of the input, such as a command, path or query (up to 300 characters).
    ``outcome``: ``"ok"``, ``"exit 2"``, ``"error: …"``, ``"rejected"`` by the user, or None if
        unknown.
    ``paths``: files that it read or edited, as the tool spells them.
    ``error``: informative lines of a failed call's output (up to 600 characters).
    ``made``: created objects, such as ``"commit 1a2b3c4"`` or the URL of a pull request.
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
        """Whether the call had an error or nonzero exit code. A rejection is not a failure."""
        return bool(self.outcome) and self.outcome not in ("ok", "rejected")


@frozen
class Turn:
    """A message in a session.

    ``id``: the tool's message id, or a hash.
    ``unique``: whether the tool never reuses ids, so that a copy in another file is the same turn.
    ``author``: name of a person in a meeting or chat.
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
    """Counts of the tokens that models read and wrote, as they report them.

    ``input`` includes tokens written to a cache, but not those read from it (``cached``).
    ``output`` includes reasoning.
    """

    input: int = 0
    cached: int = 0
    output: int = 0

    @classmethod
    def with_cached(cls, read: int, cached: int, output: int) -> Tokens:
        """Create counts from a provider's numbers.

        ``read`` includes the cached tokens, unless ``cached`` is greater.
        """
        return cls(read - cached if cached <= read else read, cached, output)

    @property
    def total(self) -> int:
        return self.input + self.cached + self.output

    @property
    def bounded(self) -> Tokens:
        """The counts, with 0 in place of negative or absurdly large values from bad transcripts."""
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
    """A conversation with an agent tool.

    ``native_id``: the tool's id.
    ``repository``: git remote URL, if recorded.
    ``model``: model that answered last, or an earlier one that might run on the user's machine.
    ``tokens``: None if the transcript does not count tokens.
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
    """A session as stored in the index."""

    row: int
    session: Session
    project: str | None
    ended: datetime | None
    file: str | None
    turns: int


@frozen
class StoredTurn:
    """A turn as stored in the index. ``seq`` is its position in the session, from 0."""

    row: int
    session: int
    seq: int
    turn: Turn


@frozen
class SeenFile:
    """A transcript file that was read, and counts of the records that nacre did not understand."""

    path: str
    tool: str
    size: int
    mtime_ns: int
    unknown: dict[str, int]
    corrupt: int


@frozen
class MainSession:
    """A main session and the version of its tool.

    ``owner_spoke`` is True if the owner wrote a message in it.
    """

    tool: str
    version: str | None
    owner_spoke: bool


class Unlearned(NamedTuple):
    """A session with unprocessed turns.

    ``begin``, ``end``: positions of the turns that extraction must process.
    ``unwritten``: position of the first turn that the writer must process.
    ``asked``: time of the writer's last call for this session.
    ``is_older``: whether only the writer has work left.
    """

    row: int
    begin: int
    end: int
    unwritten: int | None
    asked: datetime | None
    is_older: bool = False

    @property
    def first(self) -> int:
        """The position of the first unprocessed turn."""
        if self.is_older:
            return self.unwritten or 0
        return self.begin if self.unwritten is None else min(self.begin, self.unwritten)


# -- Summaries -----------------------------------------------------------------


class Ending(StrEnum):
    """How a session ended, judging by its last messages and actions."""

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
    """A request in a session, in the requester's own words (up to 300 characters).

    ``work`` is the number of tool calls and answers that followed.
    """

    text: str
    turn: str
    speaker: Speaker
    work: int


@frozen
class FileTouched:
    """A file used in a session. The path is absolute or relative to the session's folder."""

    path: str
    edits: int
    reads: int


@frozen
class ErrorMet:
    """The error output of a failed tool call.

    ``mended`` is True if a similar call succeeded later.
    """

    text: str
    call: str
    times: int
    mended: bool


@frozen
class SessionOutcome:
    """The outcome of a session, with the reason.

    ``words``, ``speaker`` and ``turn`` describe the statement that shows it, if any.
    """

    ending: Ending
    reason: str
    words: str = ""
    speaker: Speaker | None = None
    turn: str | None = None


@frozen
class OpenEnd:
    """An unfinished task in the words of ``speaker``, such as a to-do or a failing command."""

    kind: Loose
    text: str
    speaker: Speaker
    turn: str


@frozen
class Summary:
    """The summary of a session.

    The main topics come first. Apart from errors, quotations are from the owner, or from an agent
    that used no external text.
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
    """The changes to one file that resulted from one request in a session.

    ``request``: the owner's request, or the instructions to a sub-agent.
    ``words``: the agent's comment.
    ``seq``: position of the last change in the session.
    ``failed``: number of failed calls.
    """

    path: str
    session: Session
    project: str | None
    seq: int
    time: datetime | None
    edits: int
    reads: int
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
    """The calls that followed a failed call in the same session.

    ``worked``: whether the same command or edit succeeded later.
    ``steps``: related calls until the success.
    ``attempts``: number of further failures.
    ``words``: the agent's comment on the success, or its last comment.
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
    """An error from earlier sessions, with its repairs, best first.

    ``likeness`` is the similarity to the given error, from 0 to 1.
    """

    error: str
    likeness: float
    times: int
    sessions: int
    repairs: tuple[Repair, ...]

    @property
    def mended(self) -> int:
        return sum(repair.worked for repair in self.repairs)


@frozen
class Deeds:
    """The tool calls that an agent made in one turn."""

    turn: int
    calls: tuple[ToolCall, ...]


@frozen
class FileUse:
    """A turn in which a file was read or edited, and its position in the session."""

    file: int
    turn: int
    session: int
    seq: int
    time: datetime | None
    action: Action


@frozen
class LargestChange:
    """One of the files that were edited most."""

    path: str
    tool: str
    project: str | None
    edits: int
    sessions: int


# -- Tasks for language models -------------------------------------------------


class Task(StrEnum):
    """The purpose of a model call. Each purpose can have its own model."""

    EXTRACTION = "extraction"
    DEDUP = "dedup"
    RECALL = "recall"
    DREAM = "dream"
    HANDOFF = "handoff"
    CHAT = "chat"
    """Answers in the gateway's conversations."""
    TEST = "test"
    """A check that a model answers."""


# -- Handoffs, flushing and chores ---------------------------------------------


HANDED_FOR = timedelta(days=7)
"""How long a handoff is kept and given to new sessions."""

BY_RULES = "rules"
"""The author name for handoffs written by rules."""


@frozen
class Handoff:
    """Notes that a session leaves for the project's next session.

    ``by``: author of the notes: ``rules``, a model, the agent or the owner.
    ``said``, ``until``: time and turn of the last message that the notes cover.
    ``asked``: turn of the owner's last request.
    ``given``: session that received the notes, or empty while they are pending.
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
    """The latest handoff of a project.

    ``waits``: whether it is still pending.
    ``is_new``: whether it has just been stored.
    ``note``: why it could not be written or stored.
    """

    project: str | None
    handoff: Handoff | None = None
    waits: bool = False
    is_new: bool = False
    note: str | None = None


@frozen
class ChoresReport:
    """Counts of the queued tasks that were processed.

    Tasks in ``failed`` will be retried; tasks in ``given_up`` will not.
    """

    done: int = 0
    failed: int = 0
    given_up: int = 0
    left: int = 0


@frozen
class FlushReport:
    """The results of reading the latest turns and finishing queued work.

    ``memories``: ids of new memories.
    ``duplicates``: number of candidates that were already known.
    ``sessions``: number of sessions with new turns.
    ``notes``: why a requested model gave no result.
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

    ``fingerprint``: hash of up to 256 bytes at the start, which reveals a replaced file.
    ``carry``: data that the adapter needs to continue.
    """

    inode: int = 0
    offset: int = 0
    size: int = 0
    mtime_ns: int = 0
    fingerprint: str = ""
    carry: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """Counts of the unknown, broken and oversized records in a transcript."""

    unknown: Counter[str] = field(default_factory=Counter)
    corrupt: int = 0
    oversized: int = 0
