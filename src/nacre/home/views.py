"""Results of operations, without other code, so that clients of the daemon import only this."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

from nacre.base.frozen import frozen
from nacre.values.memory import USUAL_STRENGTH, Candidate, Memory, Operation, Validity
from nacre.values.models import TaskCost
from nacre.values.recall import Evidence, MemoryHit, TurnHit
from nacre.values.reports import Check
from nacre.values.review import JudgedPair, Maturity, Usage
from nacre.values.session import StoredSession, StoredTurn, Summary, Trouble


@frozen
class LinkView:
    """A link of a memory, with the other end and its subject if known.

    ``origin`` is ``manual`` or a name from front matter (``reflect``), ``body`` for a mention in
    the text, or ``auto`` for computed similarity. The last day of ``valid`` is excluded.
    """

    rel: str
    other: str
    subject: str | None
    is_outgoing: bool
    origin: str = "manual"
    reason: str | None = None
    strength: float = USUAL_STRENGTH
    valid: Validity = Validity()


@frozen
class CompanionView:
    """A memory often used together with another. ``weight`` is 0 to 1."""

    memory: Memory
    weight: float
    sessions: int


@frozen
class UsedTogether:
    """Two memories often used together.

    ``weight`` is 0 to 1, ``sessions`` counts the common sessions.
    """

    memory: Memory
    other: Memory
    weight: float
    sessions: int


@frozen
class MemoryView:
    """A memory with its evidence, links, file (relative to the vault) and usage.

    ``together`` lists companions, closest first. ``etag`` changes with the file, and is ``None``
    without one. ``doubt`` is the reason why the memory may be outdated.
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


@frozen
class SessionLine:
    """A session in a list, with its first request if it has no title, and its working time."""

    session: StoredSession
    opening: str | None
    active: timedelta | None = None


@frozen
class SessionView:
    """A session with some of its turns, the memories learned from it, and its parent and child sessions."""

    session: StoredSession
    turns: tuple[StoredTurn, ...]
    memories: tuple[Memory, ...]
    opening: str | None = None
    active: timedelta | None = None
    parent: StoredSession | None = None
    children: tuple[SessionLine, ...] = ()


@frozen
class Resumption:
    """A session, and the command with which its tool resumes it in its folder.

    ``folder`` is ``None`` if the transcript names none, so any will do.
    """

    line: SessionLine
    command: tuple[str, ...]
    folder: str | None = None


@frozen
class Step:
    """A memory in a history: its period of validity, its successor and the reason.

    ``is_asked`` marks the requested memory.
    """

    memory: Memory
    since: date
    until: date | None
    superseded_by: str | None
    reason: str | None
    is_asked: bool


@frozen
class Version:
    """The path and text of a file at some time."""

    path: str
    text: str


@frozen
class Change:
    """The effect of an operation on a memory, or on another file if ``memory`` is empty.

    ``before`` is ``None`` for a new file, ``after`` for a deleted one.
    """

    memory: str
    before: Version | None
    after: Version | None

    @property
    def latest(self) -> Version:
        """The latest existing version."""
        version = self.after or self.before
        assert version is not None  # noqa: S101 - a change has one side at least
        return version


@frozen
class FieldChange:
    """A front matter key, or the file itself, before and after."""

    name: str
    before: Any
    after: Any


@frozen
class Difference:
    """A change as fields and lines. Each line begins with ``+``, ``-`` or a space."""

    change: Change
    subject: str
    fields: tuple[FieldChange, ...]
    lines: tuple[str, ...]


@frozen
class Listed:
    """An operation in a list, with the memories it touched."""

    operation: Operation
    memories: tuple[str, ...]


class Choice(StrEnum):
    """A decision about two memories."""

    KEEP_NEW = "keep-new"
    KEEP_OLD = "keep-old"
    KEEP_BOTH = "keep-both"


@frozen
class Pair:
    """Two memories in conflict, the reason, and a model's judgement (``None`` if found by rules)."""

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


@frozen
class Pending:
    """An item in review.

    ``why`` is a :class:`Reason` or, for a candidate, a :class:`Why`, and ``detail`` describes it. A
    conflict also has the ``newer`` memory, ``memory`` being the older one, and a model's judgement
    (``judged``).
    """

    id: str
    kind: PendingKind
    memory: Memory
    why: str
    detail: str | None
    since: datetime | None
    newer: Memory | None = None
    judged: JudgedPair | None = None


@frozen
class PendingPage:
    """A page of items in review. ``total`` counts all items; the others count them by kind."""

    items: tuple[Pending, ...] = ()
    total: int = 0
    conflicts: int = 0
    doubts: int = 0
    candidates: int = 0


@frozen
class SessionReport:
    """A session without turns, and its summary."""

    view: SessionView
    summary: Summary


@frozen
class FixResult:
    """Troubles most similar to an error, lessons that may help, and turns that only mention it."""

    error: str
    troubles: tuple[Trouble, ...] = ()
    lessons: tuple[MemoryHit, ...] = ()
    talk: tuple[TurnHit, ...] = ()


@frozen
class Place:
    """A project and all known projects. ``is_known`` is false if no project has the name.

    ``namesake`` is a project with the same name as a folder that belongs to none.
    """

    project: str | None
    known: tuple[str, ...] = ()
    is_known: bool = True
    namesake: str | None = None


@frozen
class SessionPage:
    """A page of sessions, the total number, and all tools with sessions."""

    lines: tuple[SessionLine, ...]
    more: bool = False
    total: int = 0
    tools: tuple[str, ...] = ()


@frozen
class Extracted:
    """Candidates found in a text, and the problem with the model, if any."""

    candidates: tuple[Candidate, ...] = ()
    problem: str | None = None


@frozen
class Overview:
    """Active memories by kind, projects, health checks, and the number of links."""

    memories: dict[str, int]
    projects: tuple[str, ...]
    checks: tuple[Check, ...]
    links: int = 0


@frozen
class Listing:
    """A page of memories. ``total`` counts all matches."""

    memories: tuple[Memory, ...]
    total: int


@frozen
class Budget:
    """The cap of background work for a ``day`` or ``month``, and the part that is used.

    Amounts are in millionths of a US dollar.
    """

    period: str
    most: int
    spent: int

    @property
    def left(self) -> int:
        """The rest of the cap."""
        return max(0, self.most - self.spent)


@frozen
class CostReport:
    """The cost of models today and this month, by task."""

    today: date
    budgets: tuple[Budget, ...]
    tasks: tuple[TaskCost, ...]
    is_background_on: bool


@frozen
class OperationDiff:
    """An operation with its changes."""

    operation: Operation
    differences: tuple[Difference, ...]
