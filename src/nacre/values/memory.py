"""Values for memories, permissions, operations, projects and forgetting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.errors import OwnerOnlyError
from nacre.values.session import SessionKind, Speaker, ToolCall, Trust

MAX_BODY_BYTES = 1_000_000
NAMES = frozenset({"id", "project", "superseded_by", "session", "turns", "rel", "to"})
"""Names of fields that contain an id or a slug. All other strings are free text."""


class Kind(StrEnum):
    """The type of knowledge in a memory."""

    FACT = "fact"
    DECISION = "decision"
    PREFERENCE = "preference"
    TODO = "todo"
    RELATIONSHIP = "relationship"
    EVENT = "event"
    LESSON = "lesson"


class Expiry(StrEnum):
    """The intended lifetime of a memory."""

    CORE = "core"
    PERMANENT = "permanent"
    TEMPORARY = "temporary"


class Scope(StrEnum):
    """The visibility of a memory.

    A private request sees all memories, a personal request personal and public ones, and a public
    request only public ones.
    """

    PRIVATE = "private"
    PERSONAL = "personal"
    PUBLIC = "public"


class Confidence(StrEnum):
    """The way a memory was obtained.

    ``extracted``: memory that was stored on purpose, or found by a model with evidence.
    ``inferred``: memory found by rules.
    """

    EXTRACTED = "extracted"
    INFERRED = "inferred"


@frozen
class Validity:
    """The period in which a memory is true, regardless of when it was recorded.

    Both ends are optional.

    Files and JSON use the keys ``from`` and ``to``.
    """

    since: date | None = field(default=None, metadata={"key": "from"})
    until: date | None = field(default=None, metadata={"key": "to"})


USUAL_STRENGTH = 0.5
"""Default strength of a link."""


@frozen
class Source:
    """The session and file from which a memory was learned.

    ``session`` is a session id (``<tool>:<id>``). ``turns`` are the ids of the turns that support
    it.
    """

    session: str | None = None
    turns: tuple[str, ...] = ()
    file: str | None = None


@frozen
class Link:
    """A link from one memory to another, stored in front matter.

    ``rel``: type, such as ``related_to``, ``supersedes`` or ``alternative_to``.
    ``origin``: who created it, such as ``agent`` or ``import``.
    ``strength``: 0 to 1, by default :data:`USUAL_STRENGTH`.
    ``valid``: period in which it applies, excluding the end day.
    """

    rel: str
    to: str
    reason: str | None = None
    origin: str | None = None
    strength: float | None = field(default=None, metadata={"digits": 2})
    valid: Validity = Validity()


@frozen
class Confirmation:
    """A later statement that repeats a memory, with its time and, if known, session and turns."""

    at: datetime
    session: str | None = None
    turns: tuple[str, ...] = ()


UNDONE = "undone"
"""Reason for retiring a memory when the operation that created it is undone."""


BESIDE_PASTE = "beside_paste"
"""Front-matter key for memories learned from a message that seems to contain pasted text.

Pasted text might be another person's words.
"""

NODDED = "nodded"
"""Front-matter key for memories that the owner accepted but did not put into words.

The agent had read external text before. The key also marks memories that retire a statement in this
way.
"""


TRIGGER_TIMES = "trigger_times"
"""Front-matter key for the number of times that a memory's triggers can deliver it."""

_NOT_OWN_WORDS_KEYS = frozenset({BESIDE_PASTE, NODDED})


@frozen
class Retirement:
    """When a memory was retired, and why."""

    at: datetime
    reason: str | None = None


@frozen
class Memory:
    """A single piece of knowledge. Times are in UTC.

    ``id``: UUIDv7.
    ``importance``: 1 to 10; at 7, it matters in every session of the project; at 10, it is never
        forgotten.
    ``project``: slug of the project, or None if it applies everywhere.
    ``inbox``: whether its project is still unknown; only searches find such memories.
    ``expires_on``: day from which recall and context omit it, even if it is still true.
    ``proposed``: whether an agent stored it without the owner's confirmation; contexts omit it.
    ``confirmed``: later statements that repeat it.
    ``extra``: unknown front matter keys.
    """

    id: str
    kind: Kind
    subject: str
    content: str
    created: datetime
    updated: datetime
    importance: int = 7
    expiry: Expiry = Expiry.PERMANENT
    scope: Scope = Scope.PRIVATE
    project: str | None = None
    tags: tuple[str, ...] = ()
    valid: Validity = Validity()
    expires_on: date | None = None
    speaker: Speaker = Speaker.OWNER
    trust: Trust = Trust.TRUSTED
    confidence: Confidence = Confidence.EXTRACTED
    confidence_score: float | None = None
    canonical_key: str | None = None
    evergreen: bool = False
    author: str | None = None
    triggers: tuple[str, ...] = ()
    suppressed_contexts: tuple[str, ...] = ()
    source: Source = Source()
    confirmed: tuple[Confirmation, ...] = ()
    links: tuple[Link, ...] = ()
    superseded_by: str | None = None
    retired: Retirement | None = None
    inbox: bool = False
    proposed: bool = False
    extra: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_active(self) -> bool:
        """Whether the memory is neither retired nor superseded."""
        return not (self.retired or self.superseded_by)

    @property
    def was_taken_out(self) -> bool:
        """Whether an undo retired the memory. Stating it again then restores it."""
        return self.retired is not None and self.retired.reason == UNDONE and not self.superseded_by

    @property
    def is_learned(self) -> bool:
        """Whether the memory was found in a session by rules or a model."""
        return self.confidence is Confidence.INFERRED or self.confidence_score is not None

    @property
    def is_vouched(self) -> bool:
        """Whether the memory is neither based on external text nor merely proposed by an agent."""
        return self.trust is Trust.TRUSTED and not self.proposed

    @property
    def is_owners(self) -> bool:
        """Whether the owner stated the memory."""
        return self.speaker is Speaker.OWNER

    @property
    def is_worded(self) -> bool:
        """Whether the memory is in the owner's own words, rather than accepted or pasted text.

        Only then can it retire or supersede a statement of the owner.
        """
        return self.is_owners and self.extra.keys().isdisjoint(_NOT_OWN_WORDS_KEYS)

    def as_worded(self) -> Memory:
        """Return a copy that is marked as the owner's own words."""
        return replace(
            self,
            extra={
                key: value for key, value in self.extra.items() if key not in _NOT_OWN_WORDS_KEYS
            },
        )

    @property
    def trigger_times(self) -> int:
        """How often the memory's triggers may deliver it, or 0 if there is no limit."""
        times = str(self.extra.get(TRIGGER_TIMES))
        return int(times[:9]) if times.isdecimal() else 0

    @property
    def last_said(self) -> datetime:
        """The time when the memory was last stated or edited."""
        return max(
            (self.created, self.updated, *(confirmation.at for confirmation in self.confirmed))
        )

    def shares_place(self, other: Memory) -> bool:
        """Return True if both memories have the same project and the same inbox status."""
        return (self.project, self.inbox) == (other.project, other.inbox)

    def is_said_after(self, other: Memory) -> bool:
        """Return True if this memory was stated later than ``other``.

        At equal times, a repeated statement counts as later than a first one; otherwise, ids
        decide.
        """
        return self._order() > other._order()

    def _order(self) -> tuple[datetime, bool, str]:
        return self.last_said, self.last_said > self.created, self.id


def by_id(memories: Iterable[Memory]) -> dict[str, Memory]:
    """Return a mapping from ids to memories."""
    return {memory.id: memory for memory in memories}


# -- Results of extraction -----------------------------------------------------


class Why(StrEnum):
    """The reason for holding a candidate back.

    ``found``: only rules found it. ``unproven``: its evidence does not support it. ``untrusted``:
    it might come from external text. ``minor``: its session has more important memories.
    """

    FOUND = "found"
    UNPROVEN = "unproven"
    UNTRUSTED = "untrusted"
    MINOR = "minor"


@frozen
class Candidate:
    """A memory found in a session, but not stored yet.

    ``turns``: ids of the turns that support it.
    ``importance``: 7, or 8 for knowledge that would change the work of other running sessions.
    ``confidence_score``: share of its words found in the evidence, if a model chose them.
    ``held``, ``detail``: reason why it waits for review, or None, and an explanation.
    ``score``: estimated relevance, 0 to 1.
    ``nodded``, ``mixed``: see :data:`NODDED` and :data:`BESIDE_PASTE`.
    """

    kind: Kind
    subject: str
    content: str
    turns: tuple[str, ...]
    importance: int = 7
    expiry: Expiry = Expiry.PERMANENT
    tags: tuple[str, ...] = ()
    speaker: Speaker = Speaker.OWNER
    trust: Trust = Trust.TRUSTED
    canonical_key: str | None = None
    confidence: Confidence = Confidence.INFERRED
    confidence_score: float | None = None
    held: Why | None = None
    detail: str = ""
    score: float = 1.0
    nodded: bool = False
    mixed: bool = False


@frozen
class HeldCandidate:
    """A candidate waiting for review, with the reason, score and time of discovery."""

    memory: Memory
    why: Why
    detail: str | None
    score: float
    found: datetime


# -- Actors --------------------------------------------------------------------
# Only the actor determines whether an operation is the owner's, never the content of a text.
# Outside :func:`acting`, the settings determine the actor.


AN_AGENT = "an agent"
"""Name of an agent whose tool is unknown."""


class Role(StrEnum):
    """The permissions of an account in a space on a server.

    An owner can do everything and manages members. A member can read and write. A service is a
    program with a member's permissions, but it cannot copy memories to other spaces. A reader can
    only read.
    """

    OWNER = "owner"
    MEMBER = "member"
    SERVICE = "service"
    READER = "reader"

    def at_most(self, most: Role | None) -> Role:
        """Return this role or ``most``, whichever permits less. None sets no limit."""
        ranks = list(Role)
        return self if most is None else ranks[max(ranks.index(self), ranks.index(most))]


class Face(StrEnum):
    """The interface through which an operation is called.

    ``mcp``: tools of agents. ``http``: web routes of the daemon.
    """

    PYTHON = "python"
    DAEMON = "daemon"
    MCP = "mcp"
    HTTP = "http"
    COMMAND_LINE = "command line"


@frozen
class Bearer:
    """The account and space to which an API key belongs.

    ``most`` is the highest role that the key grants.
    """

    account: str
    space: str
    most: Role


@frozen
class Actor:
    """The caller of an operation.

    ``agent`` is the calling agent's tool, as in transcripts, or None for the owner. ``bearer`` is
    set if an API key was used.
    """

    face: Face
    agent: str | None = None
    bearer: Bearer | None = None

    @property
    def most(self) -> Role | None:
        """The highest role that the caller's API key grants, or None without a key."""
        return self.bearer.most if self.bearer else None

    @property
    def is_agent(self) -> bool:
        """Whether the caller is an agent."""
        return self.agent is not None

    @property
    def speaker(self) -> Speaker:
        """The speaker to whom the caller's words are attributed."""
        return Speaker.AGENT if self.is_agent else Speaker.OWNER

    @property
    def in_words(self) -> str:
        """The caller's interface and, for agents, the tool, such as ``mcp, claude-code``."""
        return f"{self.face.value}, {self.agent}" if self.agent else self.face.value

    def require_owner(self, what: str) -> None:
        """Raise OwnerOnlyError if the caller is an agent."""
        if self.agent:
            raise OwnerOnlyError(
                f"{what} is only for the owner, and {self.agent} runs this",
                hint="run it in a terminal of your own, outside any agent",
            )


_ACTING: ContextVar[Actor | None] = ContextVar("acting", default=None)


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Make ``actor`` this thread's caller during the block."""
    token = _ACTING.set(actor)
    try:
        yield
    finally:
        _ACTING.reset(token)


def acting_now() -> Actor | None:
    """Return this thread's caller, or None if none was set."""
    return _ACTING.get()


# -- Filters for sessions and actions ------------------------------------------


@frozen
class SessionFilter:
    """A filter for sessions. Empty fields are ignored, and sub-agents are left out by default."""

    tool: Annotated[str | None, bounds("Only sessions with this tool, e.g. claude-code.")] = None
    project: Annotated[str | None, bounds("Only sessions of this project.")] = None
    since: Annotated[datetime | None, bounds("Start time.")] = None
    until: Annotated[datetime | None, bounds("End, excluded.")] = None
    subagents: Annotated[bool, bounds("Also sessions of sub-agents and schedulers.")] = False
    branch: Annotated[str | None, bounds("Only sessions on this branch.")] = None
    model: Annotated[str | None, bounds("Only sessions with this model.")] = None
    kind: Annotated[SessionKind | None, bounds("Only sessions of this kind.")] = None
    words: Annotated[
        str | None,
        bounds(
            "Only sessions with these words in the title or, without a title, in the first request."
        ),
    ] = None


@frozen
class DeedFilter:
    """A filter for tool calls with ``since <= time < until``. Empty fields are ignored."""

    project: Annotated[str | None, bounds("Only in this project.")] = None
    tool: Annotated[str | None, bounds("Only with this tool, e.g. claude-code.")] = None
    since: Annotated[datetime | None, bounds("Start time.")] = None
    until: Annotated[datetime | None, bounds("End, excluded.")] = None


# -- Operations ----------------------------------------------------------------
# An operation is a change to the vault that the user can undo as a whole.


EDIT = "edit"
"""Action for changes made in an editor."""

REMOVE = "remove"
"""Action for files that the user deleted.

Their memories are retired, or deleted completely if already retired.
"""

ADOPT = "adopt"
"""Action for files that are older than the history, or were added outside nacre."""

DROP, REVIEW = "drop", "review"
"""Actions for review decisions, which do not always change a file."""

SYNC = "sync"
"""Action for changes merged from a remote. Their operations are recorded in separate commits."""

RENAME = "project-rename"
"""Action for renaming a project."""

FOREIGN = "commit"
"""Action for a commit in the vault's repository that nacre did not make. Its id is the commit hash."""

WITHHELD = "seems to contain a secret"
"""Reason why an edit is not committed until the user corrects the file."""


@frozen
class Operation:
    """One change to the vault, described without secrets.

    ``id``: UUIDv7.
    ``by``: interface and agent, such as ``mcp, claude-code``, if recorded.
    ``committed``: hash of the git commit, or None while it is pending.
    """

    id: str
    at: datetime
    action: str
    subject: str | None = None
    why: str | None = None
    by: str | None = None
    committed: str | None = None


@frozen
class SeenMemoryFile:
    """A memory file as nacre last read or wrote it."""

    path: str
    memory: str
    mtime_ns: int
    size: int
    hash: bytes


@frozen
class Intent:
    """A pending write to a vault file, stored in the database until it is done.

    ``action``: ``write``, ``adjust`` (nothing is written if the file has changed since),
        ``remove``, ``append``, or ``seen`` for a person's edit in the journal.
    ``base``: hash of the previous file, or None for a new file.
    ``former``: previous text, if it contains no secrets.
    ``document``: new text, or None if a person's text contains a secret.
    """

    action: str
    path: str
    document: str | None = None
    base: bytes | None = None
    memory: str | None = None
    operation: str | None = None
    former: str | None = None
    seq: int = 0


@frozen
class Project:
    """A project, with the slug that names its folder."""

    id: str
    slug: str
    mtime_ns: int


# -- Forgetting ----------------------------------------------------------------


class TombstoneKind(StrEnum):
    """The kind of a tombstone, which prevents forgotten content from returning.

    ``before``: tombstone for everything before a time, in one project or in all projects.
    ``allowed``: session that ``before`` does not affect. ``key``: the key for hashes, which is
    stored like a tombstone.
    """

    SESSION = "session"
    TURN = "turn"
    MEMORY = "memory"
    WORDS = "words"
    BEFORE = "before"
    KEY = "key"
    ALLOWED = "allowed"


@frozen
class Tombstone:
    """A record that prevents forgotten content from being stored again.

    ``run``: operation that removed the content.
    ``owner``: session or memory to which the content belonged.
    """

    kind: TombstoneKind
    value: str
    run: str = ""
    owner: str = ""


class Match(StrEnum):
    """The way a pattern must match a subject.

    ``exact``: the subject equals the pattern. ``contains``: the subject contains the pattern.
    ``pattern``: ``*`` in the pattern matches any text.
    """

    EXACT = "exact"
    CONTAINS = "contains"
    PATTERN = "pattern"


@frozen
class StandingRetirement:
    """A rule that retires every newly stored memory whose subject matches.

    ``contexts`` names kinds of context, such as ``session-start``, that omit matching memories even
    if the user restored them.
    """

    id: str
    pattern: str
    match: Match
    at: datetime
    canonical_key: str | None = None
    reason: str | None = None
    contexts: tuple[str, ...] = ("session-start",)


@frozen
class Excerpt:
    """Matching text in context. ``of`` is the id of the session, memory or handoff."""

    of: str
    text: str


@frozen
class ForgetPlan:
    """The content that an operation is about to forget.

    ``how``: ``session``, ``project``, ``match``, ``before`` or ``memory``.
    ``sessions``: sessions to remove completely, with their numbers of turns.
    ``parts``: other sessions, with the numbers of turns to remove.
    ``losing``: memories that stay, but lose evidence.
    ``released``: memories to retire because their successors are removed.
    ``untitled``: sessions that lose their titles.
    ``handoffs``: ids of handoffs to remove.
    ``files``: transcripts that contain the content.
    ``match``: text or regular expression to forget.
    ``traces``: number of recorded questions and model calls that quote ``match``.
    ``held``: number of messages and names that exist only in the gateway's database.
    ``project``: project to remove completely, with its indexed code.
    """

    how: str
    sessions: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, int] = field(default_factory=dict)
    memories: tuple[Memory, ...] = ()
    losing: tuple[Memory, ...] = ()
    released: tuple[Memory, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    untitled: tuple[str, ...] = ()
    handoffs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    traces: int = 0
    held: int = 0
    match: str | None = None
    regex: bool = False
    project: str | None = None

    @property
    def turns(self) -> int:
        return sum(self.sessions.values()) + sum(self.parts.values())

    @property
    def is_empty(self) -> bool:
        removed = (
            self.sessions,
            self.parts,
            self.memories,
            self.losing,
            self.untitled,
            self.handoffs,
        )
        return not any((*removed, self.traces, self.held))


@frozen
class Unreached:
    """A place that might still contain forgotten content, and what the user can do about it."""

    what: str
    where: str
    remedy: str


@frozen
class ForgetReport:
    """The result of a forget operation.

    ``is_erased`` is True if the database file no longer contains any forgotten bytes.
    """

    run: str
    plan: ForgetPlan
    is_erased: bool
    unreached: tuple[Unreached, ...]


@frozen
class Forgotten:
    """A record of forgotten content. ``is_allowed`` means that it may be stored again."""

    run: str
    at: datetime
    how: str
    sessions: tuple[str, ...]
    turns: int
    memories: int
    before: datetime | None = None
    is_allowed: bool = False


@frozen
class SessionPlace:
    """The database row of a session, with its tool, title and project."""

    row: int
    tool: str
    native_id: str
    project: str | None
    kind: str
    parent: str | None
    title: str | None
    file: str | None
    cwd: str | None
    branch: str | None
    turns: int

    @property
    def id(self) -> str:
        return f"{self.tool}:{self.native_id}"


@frozen
class TurnPlace:
    """The database rows and ids of a turn and its session."""

    row: int
    tool: str
    session_id: str
    session: int
    id: str
    identity: bytes


@frozen
class TurnText:
    """The text and tool calls of a turn."""

    row: int
    session: int
    text: str
    calls: tuple[ToolCall, ...]
    author: str | None


# -- Scrubbing -----------------------------------------------------------------


@frozen
class ScrubReport:
    """The result of a scrub, which finds and removes secrets.

    ``found``: numbers of matches by location and rule; a location is ``turns``, ``memories``,
        ``vault``, ``history``, ``files`` or a table.
    ``copies``: older copies of the database, which are not searched.
    ``elsewhere``: descriptions of other locations that might contain the secrets.
    """

    dry_run: bool
    found: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    turns: int = 0
    memories: int = 0
    files: int = 0
    commits: int | None = None
    copies: tuple[Path, ...] = ()
    removed: tuple[Path, ...] = ()
    elsewhere: tuple[str, ...] = ()
    vectors_left: int = 0
    seconds: float = 0.0

    @property
    def total(self) -> int:
        return sum(number for rules in self.found.values() for number in rules.values())
