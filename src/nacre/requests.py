"""What operations are asked: values alone, so that whoever asks the daemon loads no more than these."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from nacre.storage.file_history import DeedFilter
from nacre.storage.sessions import SessionFilter
from nacre.values.memory import Expiry, Kind, Scope, Source
from nacre.values.recall import Filter, RecallQuery
from nacre.values.session import Speaker, Trust
from nacre.values.trace import TraceKind


@dataclass(frozen=True, slots=True)
class PlaceRequest:
    """Which project is meant: by a name, a slug or an alias, or, without one or with ``.``, by a folder."""

    name: str | None = None
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The page of a project, by its slug, or the owner's profile."""

    project: str | None = None


@dataclass(frozen=True, slots=True)
class SessionsRequest:
    """A page of sessions, the newest first."""

    filter: SessionFilter = SessionFilter()
    limit: int = 20
    offset: int = 0


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """One session by its id or the beginning of it, else the last one of ``folder``.

    Its turns from ``first`` on, or, with ``at_end``, its last ones; without a ``limit`` all of them.
    """

    reference: str | None = None
    first: int = 0
    limit: int | None = 20
    at_end: bool = False
    folder: str | None = None


@dataclass(frozen=True, slots=True)
class ExtractRequest:
    """What a text or a session that was read would teach; ``by_model=False`` goes by rules."""

    text: str = ""
    session: str | None = None
    by_model: bool = True


@dataclass(frozen=True, slots=True)
class OverviewRequest:
    """Nothing is to be chosen."""


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Read what is new in transcripts: all that discovery finds."""

    vectors: bool = True


@dataclass(frozen=True, slots=True)
class WaitingRequest:
    """Nothing is to be chosen."""


@dataclass(frozen=True, slots=True)
class GetRequest:
    """One memory by id, the beginning of its id, or its subject."""

    reference: str
    update: bool = True
    session: str | None = None


@dataclass(frozen=True, slots=True)
class RetireRequest:
    """Memories to soft-delete; see :meth:`nacre.api.MemoryHome.retire`."""

    references: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    reason: str | None = None
    persist: bool = False


@dataclass(frozen=True, slots=True)
class ListRequest:
    """Active memories, the newest first."""

    filter: Filter = field(default_factory=Filter)
    limit: int = 50
    offset: int = 0


@dataclass(frozen=True, slots=True)
class DidQuery:
    """Which file or folder, as a person names it, and which deeds: those that changed it, with or without those that
    only read it or only name it in a command."""

    path: str
    wanted: DeedFilter = DeedFilter()
    reads: bool = False
    commands: bool = False
    limit: int = 10
    offset: int = 0


@dataclass(frozen=True, slots=True)
class FixQuery:
    """An error in the words of whoever printed it, of one line or a whole trace; whose deeds count."""

    error: str
    wanted: DeedFilter = DeedFilter()
    limit: int = 3
    repairs: int = 3


@dataclass(frozen=True, slots=True)
class Asking:
    """How a model is asked about new memories.

    ``online`` asks in so many words (or forbids it); left open, it is background work. ``aggressive`` asks about
    memories that are less alike, and shows ten instead of five; left open, the settings tell. ``threshold`` is the
    cosine of the nearest memory from which a model is asked, instead of the calibrated one. ``seconds`` is how long all
    answers together may take; ``None`` waits for each as long as models may take.
    """

    online: bool | None = None
    aggressive: bool | None = None
    threshold: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class NewMemory:
    """What is to be stored; a missing subject is made from the first words of the content.

    Without a ``project`` it is that of the ``folder`` where it is said: one that nobody knows yet is made, as for a
    session there. Without a ``speaker`` it is whoever runs nacre: the agent in an agent's shell, else the owner.
    Without a session in its ``source`` it is that agent's, where its host names it.
    """

    content: str
    subject: str | None = None
    kind: Kind = Kind.FACT
    importance: int = 7
    expiry: Expiry = Expiry.PERMANENT
    scope: Scope = Scope.PRIVATE
    project: str | None = None
    folder: str | None = None
    tags: tuple[str, ...] = ()
    canonical_key: str | None = None
    speaker: Speaker | None = None
    trust: Trust = Trust.TRUSTED
    source: Source = Source()
    author: str | None = None
    force: bool = False
    asking: Asking = Asking()


@dataclass(frozen=True, slots=True)
class ConnectionsRequest:
    """``limit`` bounds each list."""

    limit: int = 10


@dataclass(frozen=True, slots=True)
class TurnQuery(RecallQuery):
    """A search of turns. ``aspect`` and ``role`` admit only turns that are about something, or of one speaker."""

    offset: int = 0
    aspect: str = "all"
    role: str = "all"


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """What a memory superseded, and what superseded it: by its id, the beginning of its id, or its subject."""

    reference: str


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Operations, the newest first: all, those on one memory, or those in one project."""

    memory: str | None = None
    project: str | None = None
    limit: int = 50
    offset: int = 0


@dataclass(frozen=True, slots=True)
class DiffRequest:
    """An operation by its id, the last one on a memory, or the last one of all."""

    reference: str | None = None


@dataclass(frozen=True, slots=True)
class SettledRequest:
    """Conflicts that were settled; there is nothing to choose."""


@dataclass(frozen=True, slots=True)
class TracesRequest:
    """Traces, the latest first."""

    kind: TraceKind | None = None
    since: datetime | None = None
    limit: int = 20


@dataclass(frozen=True, slots=True)
class TraceRequest:
    """A trace by its id, or the beginning or end of it."""

    reference: str


@dataclass(frozen=True, slots=True)
class CostRequest:
    """What models cost in the last days, including today."""

    days: int = 30
