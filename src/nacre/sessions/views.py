"""Look at what is there: one memory with all that belongs to it, sessions, one session with its turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from nacre.errors import Conflict, NotFound
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.memories.scan import catch_up
from nacre.memories.store import get
from nacre.memories.usage import spool_use, today
from nacre.portability.exporting import clean_turn
from nacre.retrieval.recall import evidence_of
from nacre.retrieval.scoring import maturity
from nacre.storage.sessions import OPENING_TURNS, SessionFilter, StoredSession, StoredTurn
from nacre.storage.usage import Usage
from nacre.values.memory import Memory
from nacre.views import CompanionView, LinkView, MemoryView, SessionLine, SessionView

_COMPANIONS = 10


def look_at(home: Home, reference: str, *, update: bool = False, session: str | None = None) -> MemoryView:
    """A memory in any state with all that belongs to it. Raises NotFound, Conflict.

    ``update`` counts that as a use of it, in the host's session if there is one.
    """
    memory = open_memory(home, reference, update=update, session=session)
    file = home.files.file_of(memory.id)
    usage = home.usage.of([memory.id]).get(memory.id, Usage())
    return MemoryView(
        memory, evidence_of(home, memory), _links(home, memory), file.path if file else None, usage,
        maturity(usage), _together(home, memory),
    )  # fmt: skip


def open_memory(home: Home, reference: str, *, update: bool, session: str | None = None) -> Memory:
    """One memory in any state; with ``update``, opening it is a use. Raises NotFound, Conflict."""
    catch_up(home)
    memory = get(home, reference)
    if update and not (memory.retired or memory.superseded_by):
        spool_use(home, [memory.id], session=session, is_look=True)
    return memory


def list_sessions(home: Home, wanted: SessionFilter, *, limit: int, offset: int = 0) -> tuple[list[SessionLine], bool]:
    """A page of sessions, the newest first, and whether there are more."""
    found = home.sessions.newest(wanted, limit=limit + 1, offset=offset)
    page = found[:limit]
    active = home.sessions.active([item.row for item in page])
    lines = [SessionLine(item, opening_of(home, item), active.get(item.row)) for item in page]
    return lines, len(found) > limit


def look_at_session(
    home: Home, reference: str | None, *, first: int = 0, limit: int = -1, folder: Path | None = None
) -> SessionView:
    """A session by its id or the beginning of it, else the last one of the folder; its turns from ``first`` on.

    Raises NotFound, Conflict.
    """
    catch_up(home)
    session = find_session(home, reference, folder)
    return _view(home, session, home.sessions.turns_of(session.row, first=first, limit=limit))


def look_at_end(home: Home, reference: str | None, *, limit: int, folder: Path | None = None) -> SessionView:
    """The same with its last turns."""
    catch_up(home)
    session = find_session(home, reference, folder)
    return _view(home, session, home.sessions.last_turns(session.row, limit))


def cleaned(home: Home, view: SessionView) -> SessionView:
    """A session as it goes out: with today's rules of redaction."""
    clean = home.redactor.clean
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


def find_session(home: Home, reference: str | None, folder: Path | None = None) -> StoredSession:
    """A session by its id or the beginning of it; without one, the last one of the folder, by default the current one.

    Raises NotFound, Conflict.
    """
    if reference is None:
        return _last_here(home, folder or Path.cwd())
    found = home.sessions.find(reference.strip())
    if not found:
        raise NotFound(f"no session is called {reference!r}", hint="nacre sessions list shows ids")
    if len(found) > 1:
        names = ", ".join(item.session.id for item in found)
        raise Conflict(f"{reference!r} means several sessions: {names}", hint="give more of the id")
    return found[0]


def opening_of(home: Home, stored: StoredSession) -> str | None:
    """What a session without a title is called: its first real request."""
    if stored.session.title:
        return None
    from nacre.sessions.summary.summarise import opening  # the cue tables: what only looks for memories goes without

    return opening([item.turn for item in home.sessions.turns_of(stored.row, limit=OPENING_TURNS)])


def _last_here(home: Home, folder: Path) -> StoredSession:
    project = project_of_folder(home, folder)
    found = home.sessions.newest(SessionFilter(project=project), limit=1) if project else []
    if not found:
        raise NotFound(f"no session in {folder} is known", hint="give an id; nacre sessions list shows them")
    return found[0]


def _view(home: Home, stored: StoredSession, turns: Sequence[StoredTurn]) -> SessionView:
    learned = [home.memories.find(known.id) for known in home.memories.known_of(stored.session.id)]
    memories = tuple(memory for memory in learned if memory and not (memory.retired or memory.superseded_by))
    children = home.sessions.children(stored.row)
    active = home.sessions.active([stored.row, *(child.row for child in children)])
    parents = home.sessions.find(f"{stored.session.tool}:{stored.session.parent}") if stored.session.parent else []
    return SessionView(
        stored, tuple(turns), memories, opening_of(home, stored), active.get(stored.row), next(iter(parents), None),
        tuple(SessionLine(child, opening_of(home, child), active.get(child.row)) for child in children),
    )  # fmt: skip


def projects(home: Home) -> list[str]:
    """The slugs of all projects: those with a page, and those that memories name."""
    pages = {project.slug for project in home.files.projects()}
    return sorted(pages | home.memories.projects())


def is_empty(home: Home) -> bool:
    """Whether there is nothing to recall from yet."""
    return not home.memories.all_ids() and not home.sessions.counts()


def _together(home: Home, memory: Memory) -> tuple[CompanionView, ...]:
    edges = home.co_recall.of([memory.id], today(home))[:_COMPANIONS]
    others = {other.id: other for other in home.memories.rows_of([edge.other for edge in edges]).values()}
    return tuple(CompanionView(others[edge.other], edge.weight, edge.sessions) for edge in edges)


def _links(home: Home, memory: Memory) -> tuple[LinkView, ...]:
    views = []
    for source, rel, target, origin, reason in home.memories.links_of(memory.id):
        other = target if source == memory.id else source
        found = home.memories.find(other)
        views.append(LinkView(rel, other, found.subject if found else None, source == memory.id, origin, reason))
    return tuple(views)
