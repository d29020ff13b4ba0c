"""Look up sessions and projects of an open home by what a person calls them."""

from __future__ import annotations

from pathlib import Path

from nacre.errors import Conflict, NotFound
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.values.filters import SessionFilter
from nacre.values.session import StoredSession


def find_session(home: Home, reference: str | None, folder: Path | None = None) -> StoredSession:
    """A session by its id or the beginning of it; without one, the last one of the folder, by default the current one.

    Where no session of the folder is known, it is the last one of all. Raises NotFound, Conflict.
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


def _last_here(home: Home, folder: Path) -> StoredSession:
    project = project_of_folder(home, folder)
    found = home.sessions.newest(SessionFilter(project=project), limit=1) if project else []
    found = found or home.sessions.newest(limit=1)
    if not found:
        raise NotFound("no session is known yet", hint="nacre ingest reads what your agents wrote")
    return found[0]


def projects(home: Home) -> list[str]:
    """The slugs of all projects: those with a page, and those that memories name."""
    pages = {project.slug for project in home.files.projects()}
    return sorted(pages | home.memories.projects())


def is_empty(home: Home) -> bool:
    """Whether there is nothing to recall from yet."""
    return not home.memories.all_ids() and not home.sessions.counts()
