"""Results of operations, in a separate module so that the daemon's clients import nothing else."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

from nacre.base.frozen import frozen
from nacre.values.memory import USUAL_STRENGTH, Memory, Operation, Validity
from nacre.values.models import TaskCost
from nacre.values.recall import Evidence, MemoryHit, TurnHit
from nacre.values.reports import Check
from nacre.values.review import Maturity, Usage
from nacre.values.session import Ending, StoredSession, StoredTurn, Summary, Trouble


@frozen
class LinkView:
    """A link between two memories, as seen from one of them.

    ``other`` and ``subject``: id and subject of the other memory.
    ``origin``: ``body`` if the memory's text contains the link, ``auto`` if nacre found it by
        comparing contents, otherwise the front matter.
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
    """A memory that is often used together with another. ``weight`` ranges from 0 to 1."""

    memory: Memory
    weight: float
    sessions: int


@frozen
class MemoryView:
    """A memory with its evidence, links, file and usage.

    ``path``: path relative to the vault.
    ``together``: memories that are often used with this one.
    ``etag``: identifies the version of the file.
    ``doubt``: why the memory might be outdated.
    ``deliveries``: how often triggers with a limit have delivered it.
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
class Belief:
    """A statement that nacre considers true.

    ``quote`` is the turn that states it, and ``replaced`` are superseded statements, latest first.
    """

    memory: Memory
    quote: Evidence | None
    replaced: tuple[Memory, ...] = ()


@frozen
class Beliefs:
    """One page of beliefs. ``total`` counts the beliefs on all pages."""

    beliefs: tuple[Belief, ...]
    total: int


@frozen
class SessionLine:
    """A session in a list.

    ``opening``: its first request, if it has no title.
    ``active``: time during which it was active.
    ``ending``: its outcome, if known.
    """

    session: StoredSession
    opening: str | None
    active: timedelta | None = None
    ending: Ending | None = None


@frozen
class SessionView:
    """A session with some of its turns, the memories learned from it, and related sessions.

    ``injected`` lists the memories in its context, and what the agent did with each.
    """

    session: StoredSession
    turns: tuple[StoredTurn, ...]
    memories: tuple[Memory, ...]
    opening: str | None = None
    active: timedelta | None = None
    parent: StoredSession | None = None
    children: tuple[SessionLine, ...] = ()
    injected: tuple[tuple[Memory, str], ...] = ()


@frozen
class Resumption:
    """A session and the command that resumes it.

    ``folder`` is where the command must run, or ``None`` if it can run anywhere.
    """

    line: SessionLine
    command: tuple[str, ...]
    folder: str | None = None


@frozen
class Step:
    """A memory in the history of a statement, with its validity period and its successor.

    ``is_asked`` marks the memory whose history was requested.
    """

    memory: Memory
    since: date
    until: date | None
    superseded_by: str | None
    reason: str | None
    is_asked: bool


@frozen
class Version:
    """The path and text of one version of a file."""

    path: str
    text: str


@frozen
class Change:
    """The change of one file by an operation. ``memory`` is empty if the file is not a memory.

    ``before`` is ``None`` for a new file, and ``after`` for a deleted file.
    """

    memory: str
    before: Version | None
    after: Version | None

    @property
    def latest(self) -> Version:
        """The new version of the file or, if it was deleted, the old one."""
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
    """An operation in a list, with the ids of the memories that it changed."""

    operation: Operation
    memories: tuple[str, ...]


class Choice(StrEnum):
    """A person's decision about two conflicting memories."""

    KEEP_NEW = "keep-new"
    KEEP_OLD = "keep-old"
    KEEP_BOTH = "keep-both"


@frozen
class Pair:
    """Two memories that contradict each other, and why."""

    older: Memory
    newer: Memory
    reason: str | None

    @property
    def id(self) -> str:
        """The ids of the two memories, joined by ``+``."""
        return f"{self.older.id}+{self.newer.id}"


class PendingKind(StrEnum):
    """The kinds of items in review: a conflict between two memories, a doubtful memory, or a
    candidate.
    """

    CONFLICT = "conflict"
    DOUBT = "doubt"
    CANDIDATE = "candidate"


@frozen
class Pending:
    """A memory that waits for the owner's review.

    ``why``: a :class:`Reason` or, for a candidate, a :class:`Why`.
    ``detail``: explanation of the reason.
    ``newer``: in a conflict, the memory that contradicts the older ``memory``.
    ``later``: a later statement that contradicts the memory.
    """

    id: str
    kind: PendingKind
    memory: Memory
    why: str
    detail: str | None
    since: datetime | None
    newer: Memory | None = None
    later: str | None = None


@frozen
class PendingPage:
    """A page of the review queue, with the numbers of all entries and of each kind."""

    items: tuple[Pending, ...] = ()
    total: int = 0
    conflicts: int = 0
    doubts: int = 0
    candidates: int = 0


@frozen
class SessionReport:
    """A session and its summary, without its turns."""

    view: SessionView
    summary: Summary


@frozen
class FixResult:
    """Earlier experience with an error message.

    ``troubles``: similar errors in earlier sessions.
    ``lessons``: memories that might help.
    ``talk``: messages that mention the error.
    """

    error: str
    troubles: tuple[Trouble, ...] = ()
    lessons: tuple[MemoryHit, ...] = ()
    talk: tuple[TurnHit, ...] = ()


@frozen
class Place:
    """The current project and all known projects.

    ``is_known`` is False if the requested project does not exist. ``namesake`` is a project with
    the name of a folder that belongs to no project.
    """

    project: str | None
    known: tuple[str, ...] = ()
    is_known: bool = True
    namesake: str | None = None


@frozen
class SessionPage:
    """One page of sessions, with their total number and all tools that have sessions."""

    lines: tuple[SessionLine, ...]
    more: bool = False
    total: int = 0
    tools: tuple[str, ...] = ()


@frozen
class Overview:
    """A summary of a home's memories and health.

    ``memories``: number of active memories of each kind.
    ``checks``: results of the health checks.
    ``links``: number of links.
    """

    memories: dict[str, int]
    projects: tuple[str, ...]
    checks: tuple[Check, ...]
    links: int = 0


@frozen
class Listing:
    """One page of memories. ``total`` counts the memories on all pages.

    ``outdated_by``: newer memories that contradict the older ones.
    """

    memories: tuple[Memory, ...]
    total: int
    outdated_by: dict[str, tuple[str, ...]]


@frozen
class Budget:
    """The daily limit for background work and the amount spent, in millionths of a US dollar."""

    most: int
    spent: int

    @property
    def remaining(self) -> int:
        """The amount that can still be spent."""
        return max(0, self.most - self.spent)


@frozen
class CostReport:
    """The cost of models today and this month, for each task."""

    today: date
    budget: Budget
    tasks: tuple[TaskCost, ...]
    is_background_on: bool


@frozen
class OperationDiff:
    """An operation and its changes."""

    operation: Operation
    differences: tuple[Difference, ...]
