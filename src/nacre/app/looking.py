"""Look at what is there: one memory with all that belongs to it, sessions, one session with its turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from nacre.app.context import Context
from nacre.app.exporting import clean_turn
from nacre.app.locating import project_of_folder
from nacre.app.recalling import evidence_of
from nacre.app.remembering import get
from nacre.app.scanning import catch_up
from nacre.app.using import spool_use, today
from nacre.errors import Conflict, NotFound
from nacre.model.memory import Memory
from nacre.model.recall import Evidence
from nacre.model.review import Maturity
from nacre.recall.scoring import maturity
from nacre.storage.sessions import OPENING_TURNS, SessionFilter, StoredSession, StoredTurn
from nacre.storage.usage import Usage

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
    found = context.sessions.newest(wanted, limit=limit + 1, offset=offset)
    page = found[:limit]
    active = context.sessions.active([item.row for item in page])
    lines = [SessionLine(item, opening_of(context, item), active.get(item.row)) for item in page]
    return lines, len(found) > limit


def look_at_session(context: Context, reference: str | None, *, first: int = 0, limit: int = -1) -> SessionView:
    """A session by its id or the beginning of it, else the last one of this folder; its turns from ``first`` on.

    Raises NotFound, Conflict.
    """
    catch_up(context)
    session = find_session(context, reference)
    return _view(context, session, context.sessions.turns_of(session.row, first=first, limit=limit))


def look_at_end(context: Context, reference: str | None, *, limit: int) -> SessionView:
    """The same with its last turns."""
    catch_up(context)
    session = find_session(context, reference)
    return _view(context, session, context.sessions.last_turns(session.row, limit))


def cleaned(context: Context, view: SessionView) -> SessionView:
    """A session as it goes out: with today's rules of redaction."""
    clean = context.redactor.clean
    session = view.session.session
    bare = replace(
        session,
        title=session.title and clean(session.title), cwd=session.cwd and clean(session.cwd),
        branch=session.branch and clean(session.branch), label=session.label and clean(session.label),
    )  # fmt: skip
    file = view.session.file
    return replace(
        view,
        session=replace(view.session, session=bare, file=file and clean(file)),
        turns=tuple(replace(item, turn=clean_turn(item.turn, clean)) for item in view.turns),
        opening=view.opening and clean(view.opening),
    )


def find_session(context: Context, reference: str | None) -> StoredSession:
    """A session by its id or the beginning of it; without one, the last one of the folder that nacre runs in.

    Raises NotFound, Conflict.
    """
    if reference is None:
        return _last_here(context)
    found = context.sessions.find(reference.strip())
    if not found:
        raise NotFound(f"no session is called {reference!r}", hint="nacre sessions list shows ids")
    if len(found) > 1:
        names = ", ".join(item.session.id for item in found)
        raise Conflict(f"{reference!r} means several sessions: {names}", hint="give more of the id")
    return found[0]


def opening_of(context: Context, stored: StoredSession) -> str | None:
    """What a session without a title is called: its first real request."""
    if stored.session.title:
        return None
    from nacre.extract.summary.summarise import opening  # the cue tables: what only looks for memories goes without

    return opening([item.turn for item in context.sessions.turns_of(stored.row, limit=OPENING_TURNS)])


def _last_here(context: Context) -> StoredSession:
    folder = Path.cwd()
    project = project_of_folder(context, folder)
    found = context.sessions.newest(SessionFilter(project=project), limit=1) if project else []
    if not found:
        raise NotFound(f"no session in {folder} is known", hint="give an id; nacre sessions list shows them")
    return found[0]


def _view(context: Context, stored: StoredSession, turns: Sequence[StoredTurn]) -> SessionView:
    learned = [context.memories.find(known.id) for known in context.memories.known_of(stored.session.id)]
    memories = tuple(memory for memory in learned if memory and not (memory.retired or memory.superseded_by))
    children = context.sessions.children(stored.row)
    active = context.sessions.active([stored.row, *(child.row for child in children)])
    parents = context.sessions.find(f"{stored.session.tool}:{stored.session.parent}") if stored.session.parent else []
    return SessionView(
        stored, tuple(turns), memories, opening_of(context, stored), active.get(stored.row), next(iter(parents), None),
        tuple(SessionLine(child, opening_of(context, child), active.get(child.row)) for child in children),
    )  # fmt: skip


def projects(context: Context) -> list[str]:
    """The slugs of all projects: those with a page, and those that memories name."""
    pages = {project.slug for project in context.files.projects()}
    return sorted(pages | context.memories.projects())


def is_empty(context: Context) -> bool:
    """Whether there is nothing to recall from yet."""
    return not context.memories.all_ids() and not context.sessions.counts()


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
