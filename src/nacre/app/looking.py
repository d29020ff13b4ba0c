"""Look at what is there: one memory with all that belongs to it, sessions, one session with its turns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nacre.app.context import Context
from nacre.app.recalling import evidence_of
from nacre.app.remembering import get
from nacre.app.scanning import catch_up
from nacre.app.using import spool_use, today
from nacre.errors import Conflict, NotFound
from nacre.model.memory import Memory
from nacre.model.recall import Evidence
from nacre.model.review import Maturity
from nacre.model.session import Speaker
from nacre.recall.scoring import maturity
from nacre.storage.sessions import StoredSession, StoredTurn
from nacre.storage.usage import Usage
from nacre.text import shorten

_OPENING_TURNS = 12
_OPENING_CHARACTERS = 120
_COMPANIONS = 10


@dataclass(frozen=True, slots=True)
class LinkView:
    """An edge at a memory, seen from it: what is at the other end, and its subject if that is known.

    ``origin`` is ``manual`` for what front matter says, ``auto`` for a likeness that was computed.
    """

    rel: str
    other: str
    subject: str | None
    is_outgoing: bool
    origin: str = "manual"
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CompanionView:
    """A memory that was used together with another: how strongly (0 to 1), in how many sessions."""

    memory: Memory
    weight: float
    sessions: int


@dataclass(frozen=True, slots=True)
class MemoryView:
    """A memory, where it was said, what it is linked with, its file (relative to the vault), how it was used.

    ``together`` are the memories that it was used together with, the closest first.
    """

    memory: Memory
    evidence: tuple[Evidence, ...]
    links: tuple[LinkView, ...]
    path: str | None
    usage: Usage
    maturity: Maturity
    together: tuple[CompanionView, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session with some of its turns, and the memories learned from it."""

    session: StoredSession
    turns: tuple[StoredTurn, ...]
    memories: tuple[Memory, ...]


@dataclass(frozen=True, slots=True)
class SessionLine:
    """A session in a list, with its first words where it has no title."""

    session: StoredSession
    opening: str | None


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions to list; an empty field does not restrict. Sub-agents' sessions only where asked for."""

    tool: str | None = None
    project: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    subagents: bool = False


def look_at(context: Context, reference: str, *, update: bool = False, session: str | None = None) -> MemoryView:
    """A memory in any state with all that belongs to it. Raises NotFound, Conflict.

    ``update`` counts that as a use of it, in the host's session if there is one.
    """
    memory = open_memory(context, reference, update=update, session=session)
    file = context.files.file_of(memory.id)
    usage = context.usage.of([memory.id]).get(memory.id, Usage())
    return MemoryView(
        memory, evidence_of(context, memory), _links(context, memory), file.path if file else None, usage,
        maturity(usage), _together(context, memory),
    )  # fmt: skip


def open_memory(context: Context, reference: str, *, update: bool, session: str | None = None) -> Memory:
    """One memory in any state; with ``update``, opening it is a use. Raises NotFound, Conflict."""
    catch_up(context)
    memory = get(context, reference)
    if update and not (memory.retired or memory.superseded_by):
        spool_use(context, [memory.id], session=session, is_look=True)
    return memory


def list_sessions(
    context: Context, wanted: SessionFilter, *, limit: int, offset: int = 0
) -> tuple[list[SessionLine], bool]:
    """A page of sessions, the newest first, and whether there are more."""
    found = context.sessions.newest(
        tool=wanted.tool, project=wanted.project, since=wanted.since, until=wanted.until, subagents=wanted.subagents,
        limit=limit + 1, offset=offset,
    )  # fmt: skip
    lines = [SessionLine(item, None if item.session.title else _opening(context, item)) for item in found[:limit]]
    return lines, len(found) > limit


def look_at_session(context: Context, reference: str, *, first: int = 0, limit: int = -1) -> SessionView:
    """A session by its id or the beginning of it; its turns from ``first`` on. Raises NotFound, Conflict."""
    catch_up(context)
    session = session_called(context, reference)
    learned = [context.memories.find(known.id) for known in context.memories.known_of(session.session.id)]
    memories = tuple(memory for memory in learned if memory and not (memory.retired or memory.superseded_by))
    return SessionView(session, tuple(context.sessions.turns_of(session.row, first=first, limit=limit)), memories)


def session_called(context: Context, reference: str) -> StoredSession:
    """The session of that id, or whose id begins so. Raises NotFound, Conflict."""
    found = context.sessions.find(reference.strip())
    if not found:
        raise NotFound(f"no session is called {reference!r}", hint="nacre sessions list shows ids")
    if len(found) > 1:
        names = ", ".join(item.session.id for item in found)
        raise Conflict(f"{reference!r} means several sessions: {names}", hint="give more of the id")
    return found[0]


def projects(context: Context) -> list[str]:
    """The slugs of all projects: those with a page, and those that memories name."""
    pages = {project.slug for project in context.files.projects()}
    return sorted(pages | context.memories.projects())


def is_empty(context: Context) -> bool:
    """Whether there is nothing to recall from yet."""
    return not context.memories.all_ids() and not context.sessions.counts()


def _opening(context: Context, stored: StoredSession) -> str | None:
    """The first words of the owner, else of anyone."""
    turns = [item.turn for item in context.sessions.turns_of(stored.row, limit=_OPENING_TURNS) if item.turn.text]
    said = [turn.text for turn in turns if turn.speaker is Speaker.OWNER] + [turn.text for turn in turns]
    return shorten(said[0], _OPENING_CHARACTERS) if said else None


def _together(context: Context, memory: Memory) -> tuple[CompanionView, ...]:
    edges = context.co_recall.of([memory.id], today(context))[:_COMPANIONS]
    others = {other.id: other for other in context.memories.rows_of([edge.other for edge in edges]).values()}
    return tuple(CompanionView(others[edge.other], edge.weight, edge.sessions) for edge in edges)


def _links(context: Context, memory: Memory) -> tuple[LinkView, ...]:
    views = []
    for source, rel, target, origin, reason in context.memories.links_of(memory.id):
        other = target if source == memory.id else source
        found = context.memories.find(other)
        views.append(LinkView(rel, other, found.subject if found else None, source == memory.id, origin, reason))
    return tuple(views)
