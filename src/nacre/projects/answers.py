"""Operations on the projects of a home; :mod:`nacre.catalogue` lists them."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from nacre.errors import Conflict, MemoryInvalid
from nacre.home.home import Home
from nacre.home.projects import Page, page_text, read_page
from nacre.memories.scan import catch_up
from nacre.projects import pages
from nacre.projects.moving import known_project, known_slugs
from nacre.projects.requests import ProjectDependRequest, ProjectRequest
from nacre.projects.values import ProjectDetail, ProjectLine
from nacre.values.recall import Filter

DEPEND = "project-depend"
_LATEST = 8


def list_projects(home: Home) -> list[ProjectLine]:
    """Every project, the one of which something was last written or said first."""
    catch_up(home)
    memories, sessions = home.project_contents.memories(), home.project_contents.sessions()
    on: defaultdict[str, list[str]] = defaultdict(list)
    for slug, other in home.files.dependencies():
        on[slug].append(other)
    found = []
    for slug in known_slugs(home):
        (held, written), (seen, said) = memories.get(slug, (0, None)), sessions.get(slug, (0, None))
        page = _page(home, slug)
        name = str(page.values.get("name") or slug) if page else slug
        found.append(
            ProjectLine(slug, name, held, seen, _later(written, said), _aliases(home, slug, page), tuple(on[slug]))
        )
    return sorted(found, key=lambda one: (-(one.last.timestamp() if one.last else 0), one.slug))


def show_project(home: Home, asked: ProjectRequest) -> ProjectDetail:
    """All that is known of a project. Raises NotFound."""
    listed = {one.slug: one for one in list_projects(home)}
    slug = known_project(home, asked.project)
    told = pages.facts(_page(home, slug))
    rows = home.selection.latest_memories(Filter((slug,), strict=True), limit=_LATEST, today=home.today())
    found = home.memories.by_rows(rows)
    remotes, roots, labels = (
        tuple(map(home.redactor.clean, told.get(key, ()))) for key in ("remotes", "roots", "labels")
    )
    return ProjectDetail(
        listed[slug], page_text(home, slug, own=True), remotes, roots, labels,
        needed_by=tuple(one.slug for one in listed.values() if slug in one.dependencies),
        latest=tuple(found[row] for row in rows if row in found),
    )  # fmt: skip


def depend(home: Home, asked: ProjectDependRequest) -> ProjectLine:
    """Say what a project depends on, or no longer does. Two may depend on each other.

    Raises NotFound for a project that is not known, Conflict for one that would depend on itself, MemoryInvalid for a
    page that cannot be read.
    """
    catch_up(home)
    slug = known_project(home, asked.project)
    named = [_dependency(home, slug, one, remove=asked.remove) for one in asked.on]
    with home.change(DEPEND, subject=slug) as change:
        page = pages.page_of(home, slug)
        present = [home.files.name_now(one) for one in pages.facts(page).get("dependencies", ())]
        wanted = [one for one in present if one not in named] if asked.remove else [*present, *named]
        wanted = list(dict.fromkeys(wanted))
        if wanted != present:
            with change.transaction():
                pages.write(change, pages.depending(home, slug, page, wanted), page)
                change.append([change.entry(DEPEND, project=slug, on=wanted)])
    return next(one for one in list_projects(home) if one.slug == slug)


def _dependency(home: Home, slug: str, name: str, *, remove: bool) -> str:
    if remove and name in dict(home.files.dependencies(slug)).values():
        return name
    found = known_project(home, name)
    if found == slug and not remove:
        raise Conflict(f"{slug} cannot depend on itself", hint="what is of it is found in it anyway")
    return found


def _page(home: Home, slug: str) -> Page | None:
    """The page of a project, as far as there is one that can be read."""
    try:
        return read_page(home, slug)
    except MemoryInvalid:
        return None


def _aliases(home: Home, slug: str, page: Page | None) -> tuple[str, ...]:
    named = pages.facts(page).get("aliases", ())
    return tuple(home.redactor.clean(one) for one in dict.fromkeys(named) if one != slug)


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max((moment for moment in (one, other) if moment), default=None)
