"""What is answered to requests about projects and their pages; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from pathlib import Path

from nacre.errors import NotFound, VaultUnusable
from nacre.home.home import Home
from nacre.home.location import project_of_folder
from nacre.home.lookup import projects
from nacre.home.page_lines import without_what_is_over
from nacre.home.projects import name_of_folder, page_text, tie_folder
from nacre.home.requests import PageRequest, PlaceRequest, TieRequest
from nacre.vault.layout import slugify
from nacre.views import Place

HERE = "."
_PROFILE = "profile.md"


def place(home: Home, asked: PlaceRequest) -> Place:
    """The project that a name means, or a folder. Nothing is made."""
    known = tuple(projects(home))
    if asked.name in (None, "", HERE):
        folder = None if home.actor.bearer else asked.folder  # who shows a key works on another machine
        found = project_of_folder(home, Path(folder)) if folder else None
        return Place(found, known, namesake=_namesake(home, folder, known) if folder and not found else None)
    found = project_called(home, asked.name or "", known)
    return Place(found, known, found in known)


def tie(home: Home, asked: TieRequest) -> Place:
    """Make a folder a project's from now on. Raises NotFound, Conflict, InvalidInput, MemoryInvalid."""
    known = tuple(projects(home))
    slug = project_called(home, asked.project, known)
    if slug not in known:
        raise NotFound(f"no project is called {asked.project!r}", hint=_known_projects(known))
    tie_folder(home, slug, Path(asked.folder))
    return Place(slug, known)


def _known_projects(known: tuple[str, ...]) -> str:
    return f"known: {', '.join(known) or 'none yet'}; a project is created by its first memory or session"


def _namesake(home: Home, folder: str, known: tuple[str, ...]) -> str | None:
    name = name_of_folder(home, Path(folder))
    found = project_called(home, name, known) if name else None
    return found if found in known else None


def project_called(home: Home, name: str, known: tuple[str, ...] | list[str]) -> str:
    """The slug of the project that a name means, whether there is one or not."""
    slug = slugify(home.redactor.clean(name))
    if name in known:
        return name
    found = home.files.project_by("alias", name)
    return found or next((other for other in known if slugify(other) == slug), slug)


def page(home: Home, asked: PageRequest) -> str:
    """What a page tells, without secrets; empty where there is none."""
    if asked.project is not None:
        if asked.project not in projects(home):
            raise NotFound(f"no project is called {asked.project!r}", hint="memory_admin with overview names them")
        return home.redactor.clean(page_text(home, asked.project)).strip()
    try:
        text = home.vault.read(_PROFILE).decode("utf-8", errors="replace")
    except (OSError, VaultUnusable):
        return ""
    return home.redactor.clean(without_what_is_over(home, text)).strip()
