"""Forgetting: what is to go for good, what that takes with it, what could not be reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from nacre.values.memory import Memory
from nacre.values.session import ToolCall


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
        found = (self.sessions, self.parts, self.memories, self.losing, self.untitled, self.handoffs)
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
