"""Results of operations, in a separate module so that the daemon's clients import nothing else."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

from nacre.base.frozen import frozen
from nacre.values.memory import USUAL_STRENGTH, Candidate, Memory, Operation, Validity
from nacre.values.models import TaskCost
from nacre.values.recall import Evidence, MemoryHit, TurnHit
from nacre.values.reports import Check
from nacre.values.review import Maturity, Usage
from nacre.values.session import StoredSession, StoredTurn, Summary, Trouble


@frozen
class LinkView:
    """A link between a memory and another memory.

    ``other`` and ``subject`` are the id and the subject of the other memory. ``origin`` tells where
    the link comes from: ``body`` is the text, ``auto`` is a comparison of the contents, and all
    other values are the front matter.
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
    """A memory that is often used together with another memory. ``weight`` is 0 to 1."""

    memory: Memory
    weight: float
    sessions: int


@frozen
class UsedTogether:
    """Two memories that are often used together.

    ``weight`` is 0 to 1. ``sessions`` is the number of sessions that used both.
    """

    memory: Memory
    other: Memory
    weight: float
    sessions: int


@frozen
class MemoryView:
    """A memory with its evidence, links, file and usage.

    ``path`` is relative to the vault. ``together`` lists memories that are often used with this
    memory. ``etag`` identifies the version of the file. ``doubt`` is the reason why the memory
    might be outdated. ``deliveries`` counts deliveries by triggers that end after some deliveries.
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
    deliveries: int = 0


@frozen
class SessionLine:
    """A session in a list.

    ``opening``: its first request, if it has no title. ``active``: its active time.
    """

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
    """A session, with the command that resumes the session.

    ``folder`` is where the command must run. If ``folder`` is ``None``, any folder works.
    """

    line: SessionLine
    command: tuple[str, ...]
    folder: str | None = None


@frozen
class Step:
    """A memory in a history, with its validity period, its successor and the reason.

    ``is_asked``: it is the requested memory.
    """

    memory: Memory
    since: date
    until: date | None
    superseded_by: str | None
    reason: str | None
    is_asked: bool


@frozen
class Version:
    """A file's path and text at a given time."""

    path: str
    text: str


@frozen
class Change:
    """The change of one file in an operation. ``memory`` is empty if the file is not a memory.

    ``before`` is ``None`` for a new file. ``after`` is ``None`` for a deleted file.
    """

    memory: str
    before: Version | None
    after: Version | None

    @property
    def latest(self) -> Version:
        """The new version of the file, or the old version if the file was deleted."""
        version = self.after or self.before
        assert version is not None  # noqa: S101 - a change has at least one version
        return version


@frozen
class FieldChange:
    """A front matter value, or the text of a file, before and after a change."""

    name: str
    before: Any
    after: Any


@frozen
class Difference:
    """The changed fields and lines of a file. Each line begins with ``+``, ``-`` or a space."""

    change: Change
    subject: str
    fields: tuple[FieldChange, ...]
    lines: tuple[str, ...]


@frozen
class Listed:
    """An operation in a list, with the affected memories."""

    operation: Operation
    memories: tuple[str, ...]


class Choice(StrEnum):
    """A person's decision about two conflicting memories."""

    KEEP_NEW = "keep-new"
    KEEP_OLD = "keep-old"
    KEEP_BOTH = "keep-both"


@frozen
class Pair:
    """Two conflicting memories and the reason."""

    older: Memory
    newer: Memory
    reason: str | None

    @property
    def id(self) -> str:
        """The ids of the two memories, joined by ``+``."""
        return f"{self.older.id}+{self.newer.id}"


class PendingKind(StrEnum):
    """The kinds of items in review: a conflict of two memories, a doubtful memory, or a candidate."""

    CONFLICT = "conflict"
    DOUBT = "doubt"
    CANDIDATE = "candidate"


@frozen
class Pending:
    """An item in review.

    ``why`` is a :class:`Reason` or, for a candidate, a :class:`Why`. ``detail`` describes it. For a
    conflict, ``memory`` is the older memory and ``newer`` is the newer memory.
    """

    id: str
    kind: PendingKind
    memory: Memory
    why: str
    detail: str | None
    since: datetime | None
    newer: Memory | None = None


@frozen
class PendingPage:
    """A page of items in review, with the total and the number of items of each kind."""

    items: tuple[Pending, ...] = ()
    total: int = 0
    conflicts: int = 0
    doubts: int = 0
    candidates: int = 0


@frozen
class SessionReport:
    """A session and its summary, but not its turns."""

    view: SessionView
    summary: Summary


@frozen
class FixResult:
    """The results of a search for an error message.

    ``troubles``: earlier errors that are similar. ``lessons``: memories that might help. ``talk``:
    messages that mention the error.
    """

    error: str
    troubles: tuple[Trouble, ...] = ()
    lessons: tuple[MemoryHit, ...] = ()
    talk: tuple[TurnHit, ...] = ()


@frozen
class Place:
    """A project, with a list of all known projects.

    ``is_known`` is False if no project has the requested name. If the folder belongs to no project,
    ``namesake`` is a project with the folder's name.
    """

    project: str | None
    known: tuple[str, ...] = ()
    is_known: bool = True
    namesake: str | None = None


@frozen
class SessionPage:
    """A page of sessions, the total number, and all tools that have sessions."""

    lines: tuple[SessionLine, ...]
    more: bool = False
    total: int = 0
    tools: tuple[str, ...] = ()


@frozen
class Extracted:
    """The candidates found in a text. ``problem``: failure of the model, if any."""

    candidates: tuple[Candidate, ...] = ()
    problem: str | None = None


@frozen
class Overview:
    """An overview of the stored knowledge.

    ``memories``: number of active memories of each kind. ``checks``: results of health checks.
    ``links``: number of links.
    """

    memories: dict[str, int]
    projects: tuple[str, ...]
    checks: tuple[Check, ...]
    links: int = 0


@frozen
class Listing:
    """A part of a list of memories. ``total``: number of memories in the whole list."""

    memories: tuple[Memory, ...]
    total: int


@frozen
class Budget:
    """The cap for background work in a ``day`` or ``month``, and the amount spent.

    Amounts are in millionths of a US dollar.
    """

    period: str
    most: int
    spent: int

    @property
    def left(self) -> int:
        """The amount that can still be spent."""
        return max(0, self.most - self.spent)


@frozen
class CostReport:
    """The cost of models today and this month, per task."""

    today: date
    budgets: tuple[Budget, ...]
    tasks: tuple[TaskCost, ...]
    is_background_on: bool


@frozen
class OperationDiff:
    """An operation and its changes."""

    operation: Operation
    differences: tuple[Difference, ...]
