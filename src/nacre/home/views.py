"""What operations answer: values alone, so that whoever asks the daemon loads no more than these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

from nacre.values.memory import USUAL_STRENGTH, Candidate, Memory, Operation, Validity
from nacre.values.models import Refusal, Spent, Trace
from nacre.values.recall import Evidence, MemoryHit, TurnHit
from nacre.values.reports import Check
from nacre.values.review import JudgedPair, Maturity, Usage
from nacre.values.session import StoredSession, StoredTurn, Summary, Trouble

_ID_BYTES = 4


@dataclass(frozen=True, slots=True)
class LinkView:
    """An edge at a memory, seen from it: what is at the other end, and its subject if that is known.

    ``origin`` is ``manual`` for what front matter says, or what it names (``reflect``), ``body`` for a name in the
    text, ``auto`` for a likeness that was computed. On the day on which ``valid`` ends it holds no more.
    """

    rel: str
    other: str
    subject: str | None
    is_outgoing: bool
    origin: str = "manual"
    reason: str | None = None
    strength: float = USUAL_STRENGTH
    valid: Validity = Validity()


@dataclass(frozen=True, slots=True)
class CompanionView:
    """A memory that was used together with another: how strongly (0 to 1), in how many sessions."""

    memory: Memory
    weight: float
    sessions: int


@dataclass(frozen=True, slots=True)
class UsedTogether:
    """Two memories that were used together: how strongly (0 to 1), in how many sessions."""

    memory: Memory
    other: Memory
    weight: float
    sessions: int


@dataclass(frozen=True, slots=True)
class MemoryView:
    """A memory, where it was said, what it is linked with, its file (relative to the vault), how it was used.

    ``together`` are the memories that it was used together with, the closest first. ``etag`` is another one whenever
    the file is; ``None`` where there is no file yet. ``doubt`` is why it may be out of date.
    """

    memory: Memory
    evidence: tuple[Evidence, ...]
    links: tuple[LinkView, ...]
    path: str | None
    usage: Usage
    maturity: Maturity
    together: tuple[CompanionView, ...] = ()
    etag: str | None = None
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A session in a list, with its first request where it has no title, and how long it was at work."""

    session: StoredSession
    opening: str | None
    active: timedelta | None = None


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session with some of its turns, the memories learned from it, the one that sent it and those it sent."""

    session: StoredSession
    turns: tuple[StoredTurn, ...]
    memories: tuple[Memory, ...]
    opening: str | None = None
    active: timedelta | None = None
    parent: StoredSession | None = None
    children: tuple[SessionLine, ...] = ()


@dataclass(frozen=True, slots=True)
class Resumption:
    """A session, and the command by which its own tool goes on with it, in the folder where it worked.

    ``folder`` is ``None`` where the transcript names none: then any will do.
    """

    line: SessionLine
    command: tuple[str, ...]
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A memory in its history: from when until when it was true, what took its place and why.

    ``is_asked`` marks the one whose history it is.
    """

    memory: Memory
    since: date
    until: date | None
    superseded_by: str | None
    reason: str | None
    is_asked: bool


@dataclass(frozen=True, slots=True)
class Version:
    """A file at a time: its path and its text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Change:
    """What an operation did to one memory, or to one other file (``memory`` is empty then).

    ``before`` is ``None`` for what was new, ``after`` for what went.
    """

    memory: str
    before: Version | None
    after: Version | None

    @property
    def latest(self) -> Version:
        """What it became, or was before it went."""
        version = self.after or self.before
        assert version is not None  # noqa: S101 - a change has one side at least
        return version


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A key of front matter, or the file itself, before and after."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Difference:
    """A change, told by fields and lines; each line begins with ``+``, ``-`` or a space."""

    change: Change
    subject: str
    fields: tuple[FieldChange, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """An operation in the list: the memories it touched."""

    operation: Operation
    memories: tuple[str, ...]


class Choice(StrEnum):
    """What a person decides about two memories."""

    KEEP_NEW = "keep-new"
    KEEP_OLD = "keep-old"
    KEEP_BOTH = "keep-both"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories in conflict: why, and how a model judged them (``None``: rules found it)."""

    older: Memory
    newer: Memory
    reason: str | None
    judged: JudgedPair | None = None

    @property
    def id(self) -> str:
        """Both ids, joined by ``+``."""
        return f"{self.older.id}+{self.newer.id}"


class PendingKind(StrEnum):
    """The kinds of items in review: a pair of memories in conflict, a memory in doubt, a candidate."""

    CONFLICT = "conflict"
    DOUBT = "doubt"
    CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True)
class Pending:
    """An item in review.

    ``why`` is a :class:`Reason` or, of a candidate, its :class:`Why`; ``detail`` says it in words. A conflict has the
    ``newer`` memory too, ``memory`` being the older one, and how a model ``judged`` them.
    """

    id: str
    kind: PendingKind
    memory: Memory
    why: str
    detail: str | None
    since: datetime | None
    newer: Memory | None = None
    judged: JudgedPair | None = None


@dataclass(frozen=True, slots=True)
class PendingPage:
    """Some of the items in review, of ``total``, and how many there are of each kind."""

    items: tuple[Pending, ...] = ()
    total: int = 0
    conflicts: int = 0
    doubts: int = 0
    candidates: int = 0


@dataclass(frozen=True, slots=True)
class SessionReport:
    """A session with its facts, without its turns, and its summary."""

    view: SessionView
    summary: Summary


@dataclass(frozen=True, slots=True)
class FixResult:
    """Troubles like the error, the likest first; lessons that may help; where it was only talked about."""

    error: str
    troubles: tuple[Trouble, ...] = ()
    lessons: tuple[MemoryHit, ...] = ()
    talk: tuple[TurnHit, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceView:
    """A trace, and what it refers to by name."""

    trace: Trace
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Place:
    """The project meant, and all that are known. ``is_known`` is false for a name that no project has.

    ``namesake`` is the project that is called as a folder is that belongs to none.
    """

    project: str | None
    known: tuple[str, ...] = ()
    is_known: bool = True
    namesake: str | None = None


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Some sessions, whether there are more, how many there are in all, and every tool that has any."""

    lines: tuple[SessionLine, ...]
    more: bool = False
    total: int = 0
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Extracted:
    """What would be learned, and what was wrong with the model if one was asked."""

    candidates: tuple[Candidate, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """What is remembered: active memories by kind, projects, the state of everything in words, links between them."""

    memories: dict[str, int]
    projects: tuple[str, ...]
    checks: tuple[Check, ...]
    links: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of memories, of ``total``."""

    memories: tuple[Memory, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Budget:
    """What the background may cost a day, and what it cost today; millionths of a US dollar."""

    task: str | None
    most: int
    spent: int


@dataclass(frozen=True, slots=True)
class CostReport:
    """What models cost since a day."""

    since: date
    today: date
    resets: datetime
    spent: Sequence[Spent]
    refused: Sequence[Refusal]
    budgets: Sequence[Budget]
    is_background_on: bool


@dataclass(frozen=True, slots=True)
class OperationDiff:
    """An operation and what it changed."""

    operation: Operation
    differences: tuple[Difference, ...]
