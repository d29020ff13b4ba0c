"""Memories: what is kept, one Markdown file each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from nacre.base.bounds import bounds
from nacre.errors import OwnerOnly
from nacre.values.session import SessionKind, Speaker, ToolCall, Trust

MAX_BODY_BYTES = 1_000_000
NAMES = frozenset({"id", "project", "superseded_by", "session", "turns", "rel", "to"})
"""Fields of a memory, and of what it holds, that name something by an id or a slug; all other texts are words."""


class Kind(StrEnum):
    """What sort of knowledge a memory is."""

    FACT = "fact"
    DECISION = "decision"
    PREFERENCE = "preference"
    TODO = "todo"
    RELATIONSHIP = "relationship"
    EVENT = "event"
    LESSON = "lesson"


class Expiry(StrEnum):
    """How long a memory is meant to hold."""

    CORE = "core"
    PERMANENT = "permanent"
    TEMPORARY = "temporary"


class Scope(StrEnum):
    """Who may see a memory: a private request sees all, a personal one personal and public, a public one public."""

    PRIVATE = "private"
    PERSONAL = "personal"
    PUBLIC = "public"


class Confidence(StrEnum):
    """``extracted``: written down on purpose or by a model with evidence; ``inferred``: found by rules."""

    EXTRACTED = "extracted"
    INFERRED = "inferred"


@dataclass(frozen=True, slots=True)
class Validity:
    """When a memory is true in the world, apart from when it was recorded; both ends optional.

    Files and JSON call the ends ``from`` and ``to``.
    """

    since: date | None = field(default=None, metadata={"key": "from"})
    until: date | None = field(default=None, metadata={"key": "to"})


USUAL_STRENGTH = 0.5
"""Of a link that states none (seed facts 2.2)."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a memory comes from: a session id (``<tool>:<id>``), the turns that show it, the transcript file."""

    session: str | None = None
    turns: tuple[str, ...] = ()
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """A typed edge that survives in front matter.

    ``rel`` names the relation: ``related_to``, ``supersedes``, ``alternative_to`` and the like. ``reason`` says in a
    few words why it was made, where that is worth knowing, ``origin`` what for (``reflect``: as an answer to a question
    of :mod:`nacre.review.queue`), where it was not simply drawn. ``strength`` is 0 to 1; ``None`` is the usual
    strength (:data:`USUAL_STRENGTH`). ``valid`` says when it holds; on the day of its end it holds no more.
    """

    rel: str
    to: str
    reason: str | None = None
    origin: str | None = None
    strength: float | None = field(default=None, metadata={"digits": 2})
    valid: Validity = Validity()


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Where and when a memory was said again: a session and its turns, or nothing but the time."""

    at: datetime
    session: str | None = None
    turns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """What a memory says, in four words or so: of which entity, which attribute of it (in snake case), how and what.

    ``confidence`` is 0 to 1. Two memories of one entity and attribute may contradict each other.
    """

    entity: str
    attribute: str
    predicate: str
    object: str
    confidence: float = field(default=0.5, metadata={"digits": 2})

    @property
    def key(self) -> str:
        """``entity/attribute``: what it is a claim about."""
        return f"{self.entity}/{self.attribute}"


UNDONE = "undone"
"""Why a memory is retired that an undone operation had made."""


BESIDE_PASTE = "beside_paste"
"""The front-matter key of a memory that was said in a message with marks of a paste, which may be another's words."""

NODDED = "nodded"
"""The front-matter key of a memory that the owner accepted without words of their own for it, or for what it tells to
be gone, once text from outside was read."""


_NOT_WORDED = frozenset({BESIDE_PASTE, NODDED})


@dataclass(frozen=True, slots=True)
class Retirement:
    """When and why a memory was soft-deleted."""

    at: datetime
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """One piece of knowledge.

    ``id`` is a UUIDv7. ``importance`` is 1 to 10: 7 is what any session of its project should know, 10 is never
    forgotten. ``project`` is a project's slug, or ``None`` for what holds everywhere. ``inbox`` says that its project
    is not settled: until it is, the memory holds nowhere, and only who searches finds it. Times are aware UTC.
    From the day ``expires_on`` recall and context leave it out, whatever it says of the world: ``valid`` tells
    that. ``proposed`` says that an agent stored it, and that the owner neither said nor kept it: it is found by who
    searches, and told to nobody unasked. ``confirmed`` tells where it was said again. ``extra`` holds front-matter keys
    that nacre does not know, untouched.
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
    claim: Claim | None = None
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
        """Whether it holds: it is neither retired nor superseded."""
        return not (self.retired or self.superseded_by)

    @property
    def was_taken_out(self) -> bool:
        """Whether an undo took it out: the owner did not retire it, and who says it again is heard."""
        return self.retired is not None and self.retired.reason == UNDONE and not self.superseded_by

    @property
    def is_learned(self) -> bool:
        """Whether rules or a model found it in a session: nobody wrote it down on purpose."""
        return self.confidence is Confidence.INFERRED or self.confidence_score is not None

    @property
    def is_vouched(self) -> bool:
        """Whether somebody answers for it: it draws on no text from outside, and is no mere proposal of an agent's."""
        return self.trust is Trust.TRUSTED and not self.proposed

    @property
    def is_worded(self) -> bool:
        """Whether it is the owner's in words of their own: what they only nodded to, or may have pasted, ends nothing
        that they said."""
        return self.speaker is Speaker.OWNER and self.extra.keys().isdisjoint(_NOT_WORDED)

    def as_worded(self) -> Memory:
        """The same, once the owner kept it, put it into words of theirs or said it themselves."""
        return replace(
            self, extra={key: value for key, value in self.extra.items() if key not in _NOT_WORDED}
        )

    @property
    def last_said(self) -> datetime:
        """When it was last said or written down."""
        return max((self.created, self.updated, *(one.at for one in self.confirmed)))

    def shares_place(self, other: Memory) -> bool:
        """Whether both hold in the same project, both everywhere, or both wait in the inbox."""
        return (self.project, self.inbox) == (other.project, other.inbox)

    def is_said_after(self, other: Memory) -> bool:
        """Whether it was said later. At one moment: what was said again after what was new, then by when it was stored
        (ids tell).
        """
        return self._place() > other._place()

    def _place(self) -> tuple[datetime, bool, str]:
        said = self.last_said
        return said, said > self.created, self.id


# ----------------------------------------------------------------------------
# The result of extraction: one proposed memory, and one that waits to become one.


class Why(StrEnum):
    """Why a candidate waits.

    ``found``: rules found it, nobody wrote it. ``unproven``: its evidence does not bear it out. ``untrusted``: it may
    come from outside. ``minor``: a writer wrote it, and others of its session matter more.
    """

    FOUND = "found"
    UNPROVEN = "unproven"
    UNTRUSTED = "untrusted"
    MINOR = "minor"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One proposed memory: the session's own words, and the ids of the turns that show it.

    ``importance`` follows agenr's calibration (seed facts 1.5): 7 is the durable default, 8 would change what
    another running session does, 9 and 10 are never given by rules alone. ``confidence_score`` is the share of its
    words that its evidence holds, where a model chose them. ``held`` says why it is to wait, empty for a memory at
    once, and ``detail`` says so in words; ``score`` is how likely it matters, 0 to 1. ``nodded`` says that
    once text from outside was read the owner stated hardly a word of it, or not what it tells to be gone
    (:data:`nacre.values.memory.NODDED`). ``mixed`` says that its message has marks of a paste
    (:data:`nacre.values.memory.BESIDE_PASTE`).
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


@dataclass(frozen=True, slots=True)
class HeldCandidate:
    """A candidate that waits, as the memory it would be: why it waits, ``detail`` in words, its score, since when."""

    memory: Memory
    why: Why
    detail: str | None
    score: float
    found: datetime


# ----------------------------------------------------------------------------
# Who asks for an operation: through which face, and which agent, where one asks. What is done is the
# owner's or not by
# this, never by what a text says.
#
# An actor holds for what runs within :func:`acting`; elsewhere the settings tell who runs the
# process.


AN_AGENT = "an agent"
"""The name of an agent that nobody knows by name."""


class Role(StrEnum):
    """What an account may do in a space on a server.

    An owner: everything, and says who belongs to it. A member reads and writes. A service does, too, for programs, and
    raises nothing into other spaces. A reader reads.
    """

    OWNER = "owner"
    MEMBER = "member"
    SERVICE = "service"
    READER = "reader"

    def at_most(self, most: Role | None) -> Role:
        """The lesser of two."""
        ranks = list(Role)
        return self if most is None else ranks[max(ranks.index(self), ranks.index(most))]


class Face(StrEnum):
    """Through what an operation is reached; ``mcp`` are the tools of agents, ``http`` the routes of the daemon."""

    PYTHON = "python"
    DAEMON = "daemon"
    MCP = "mcp"
    HTTP = "http"
    COMMAND_LINE = "command line"


@dataclass(frozen=True, slots=True)
class Quota:
    """What a space may use; ``None`` is no bound. ``calls`` are requests by key a day (UTC), ``turns`` what it holds in
    all (at least 1), ``usd`` what models may cost a day in the background, in US dollars."""

    calls: int | None = None
    turns: int | None = None
    usd: float | None = None


NO_QUOTA = Quota()


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who shows a key: an account, in one space, at most in that role, within the space's quota."""

    account: str
    space: str
    most: Role
    quota: Quota = NO_QUOTA


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks. ``agent`` is the agent's tool, as transcripts call it, or ``None`` for the owner; ``bearer`` whose key
    was shown, if one was."""

    face: Face
    agent: str | None = None
    bearer: Bearer | None = None

    @property
    def most(self) -> Role | None:
        """The role beyond which the key does not go."""
        return self.bearer.most if self.bearer else None

    @property
    def is_agent(self) -> bool:
        """Whether it is not the owner."""
        return self.agent is not None

    @property
    def speaker(self) -> Speaker:
        """Whose word it is."""
        return Speaker.AGENT if self.is_agent else Speaker.OWNER

    @property
    def in_words(self) -> str:
        """The face, and the agent if there is one: ``mcp, claude-code``."""
        return f"{self.face.value}, {self.agent}" if self.agent else self.face.value

    def require_owner(self, what: str) -> None:
        """Raises OwnerOnly where an agent asks."""
        if self.agent:
            raise OwnerOnly(
                f"{what} is for the owner alone, and {self.agent} runs this",
                hint="run it in a terminal of your own, outside any agent",
            )


_ACTING: ContextVar[Actor | None] = ContextVar("acting", default=None)


@contextmanager
def acting(actor: Actor) -> Iterator[None]:
    """Within it, this is who asks, in this thread."""
    token = _ACTING.set(actor)
    try:
        yield
    finally:
        _ACTING.reset(token)


def acting_now() -> Actor | None:
    """Who asks, where somebody said so."""
    return _ACTING.get()


# ----------------------------------------------------------------------------
# Which sessions, and which deeds in them, a question is about.


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
        str | None,
        bounds("Only with these words in the title or, where there is none, in the first request."),
    ] = None


@dataclass(frozen=True, slots=True)
class DeedFilter:
    """Which deeds count; an empty field does not restrict. ``since <= t < until``."""

    project: Annotated[str | None, bounds("Only in this project.")] = None
    tool: Annotated[str | None, bounds("Only with this tool, e.g. claude-code.")] = None
    since: Annotated[datetime | None, bounds("From then on.")] = None
    until: Annotated[datetime | None, bounds("Before then.")] = None


# ----------------------------------------------------------------------------
# An operation: one change of the vault that a person would name as one, and can undo.


EDIT = "edit"
"""The action of what a person did to files in an editor."""

REMOVE = "remove"
"""The action of files that a person deleted: their memories are retired, or gone for good where they were already."""

ADOPT = "adopt"
"""The action of files that were there before anyone kept a history, or that nobody saw come."""

DROP, REVIEW = "drop", "review"
DECISIONS = frozenset({DROP, REVIEW})
"""What is decided in review, and may change no file: that candidates go, that memories stay."""

SYNC = "sync"
"""The action of what was brought in from a remote: its operations are told by their own commits."""

RENAME = "project-rename"
"""The action of giving a project another name."""

FOREIGN = "commit"
"""The action of a commit that somebody else made in the vault's repository; its hash stands for an id."""

WITHHELD = "holds what looks like a secret"
"""Why an edit is kept out of the history until its file is mended."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Its UUIDv7, when, what was done (``store``, ``retire`` …), to what, and why, in words without secrets.

    ``by`` says through which face it was asked, and by which agent, if it was one: ``mcp, claude-code``; ``None`` where
    nobody noted it. ``committed`` is the hash of the commit that holds it, ``None`` while it waits for one.
    """

    id: str
    at: datetime
    action: str
    subject: str | None = None
    why: str | None = None
    by: str | None = None
    committed: str | None = None


@dataclass(frozen=True, slots=True)
class SeenMemoryFile:
    """A memory file as it was last read or written."""

    path: str
    memory: str
    mtime_ns: int
    size: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class Intent:
    """A write to the vault that is durable in the database: ``write``, ``adjust``, ``remove`` or ``append``.

    An ``adjust`` is a write that gives way to whoever changed the file meanwhile. ``base`` is the hash of the file a
    write was made from, ``None`` for a new one, ``former`` what that file said, where it holds no secret. In the
    journal there is also ``seen``: what a person wrote, whose ``document`` is ``None`` where it holds a secret.
    """

    action: str
    path: str
    document: str | None = None
    base: bytes | None = None
    memory: str | None = None
    operation: str | None = None
    former: str | None = None
    seq: int = 0


@dataclass(frozen=True, slots=True)
class Project:
    """A project: its id, and its slug, which is its folder."""

    id: str
    slug: str
    mtime_ns: int


# ----------------------------------------------------------------------------
# Forgetting: what is to go for good, what that takes with it, what could not be reached.


class TombstoneKind(StrEnum):
    """What a tombstone keeps from coming back.

    ``before``: whatever was said before a time, of one project or of all. ``key``: no tombstone, but the key of hashes.
    ``allowed``: a session that a time does not concern any more.
    """

    SESSION = "session"
    TURN = "turn"
    MEMORY = "memory"
    WORDS = "words"
    BEFORE = "before"
    KEY = "key"
    ALLOWED = "allowed"


@dataclass(frozen=True, slots=True)
class Tombstone:
    """One thing that must not come back; ``run`` is the operation that forgot it.

    ``owner`` is the session of a turn, the memory of words.
    """

    kind: TombstoneKind
    value: str
    run: str
    owner: str = ""


class Match(StrEnum):
    """How a subject is compared with a pattern: as a whole, as a part of it, or with ``*`` for any text."""

    EXACT = "exact"
    CONTAINS = "contains"
    PATTERN = "pattern"


@dataclass(frozen=True, slots=True)
class StandingRetirement:
    """Memories whose subject fits are retired as soon as they are stored.

    ``contexts`` are where they would stay out of if they were brought back (``session-start``).
    """

    id: str
    pattern: str
    match: Match
    at: datetime
    canonical_key: str | None = None
    reason: str | None = None
    contexts: tuple[str, ...] = ("session-start",)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Where a text was found: in a turn of a session or in a memory (``of`` is its id), and the words around it."""

    of: str
    text: str


@dataclass(frozen=True, slots=True)
class ForgetPlan:
    """What forgetting takes.

    ``how`` is ``session``, ``project``, ``match``, ``before`` or ``memory``. ``sessions`` go whole, with as many turns
    as the number says; of the sessions in ``parts`` so many turns go. ``memories`` go, those in ``losing`` keep other
    evidence, those in ``released`` were superseded by what goes, and are retired. ``excerpts`` show what ``match``
    found; ``untitled`` are sessions whose title it is in, ``handoffs`` (ids) go too. ``files`` are the transcripts that
    tell it. ``traces`` counts the questions and the runs of models that quote what ``match`` finds, a text or a
    regular expression. ``held`` counts messages, parts of answers and names that only the gateway's database has.
    ``project`` is the one that goes whole, with its code that was read.
    """

    how: str
    tombstones: tuple[Tombstone, ...] = ()
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
        """Turns that go, in all."""
        return sum(self.sessions.values()) + sum(self.parts.values())

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to forget."""
        found = (
            self.sessions,
            self.parts,
            self.memories,
            self.losing,
            self.untitled,
            self.handoffs,
        )
        return not any((*found, self.traces, self.held))


@dataclass(frozen=True, slots=True)
class Unreached:
    """A place where what was forgotten may still be, and what its owner can do about it."""

    what: str
    where: str
    remedy: str


@dataclass(frozen=True, slots=True)
class ForgetReport:
    """What was forgotten; ``is_erased`` says that no byte of it is left in the database."""

    run: str
    plan: ForgetPlan
    is_erased: bool
    unreached: tuple[Unreached, ...]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """One run of forgetting, as the ledger tells it; ``is_allowed`` where all of it was allowed again."""

    run: str
    at: datetime
    how: str
    sessions: tuple[str, ...]
    turns: int
    memories: int
    before: datetime | None = None
    is_allowed: bool = False


@dataclass(frozen=True, slots=True)
class SessionPlace:
    """A session in brief."""

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
        """``<tool>:<the tool's own id>``."""
        return f"{self.tool}:{self.native_id}"


@dataclass(frozen=True, slots=True)
class TurnPlace:
    """What tells a turn from others."""

    row: int
    tool: str
    session_id: str
    session: int
    id: str
    identity: bytes


@dataclass(frozen=True, slots=True)
class TurnText:
    """What a turn says and does."""

    row: int
    session: int
    text: str
    calls: tuple[ToolCall, ...]
    author: str | None


# ----------------------------------------------------------------------------
# What a scrub found, changed, and could not reach.


@dataclass(frozen=True, slots=True)
class ScrubReport:
    """Secrets by place and rule, and how much was changed.

    ``found`` maps a place (``turns``, ``memories``, ``vault``, ``history``, ``files``, or a table) to rules and how
    often each of them found something. ``copies`` are older copies of the database, which a scrub does not look into;
    ``elsewhere`` says in words what may still hold what was taken out here.
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
        """How many secrets were found in all."""
        return sum(number for rules in self.found.values() for number in rules.values())
