"""Another name for a project, and one project of two: pages and memories, in one operation; sessions follow the pages.

The page goes first, with everything that resolves to it: from then on whatever is new belongs to the project that
stays. What a crash leaves of its memories is moved by the same command, given again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatch

from nacre.errors import Conflict, InvalidInput, NotFound
from nacre.home.answers import project_called
from nacre.home.change import FEW, Change
from nacre.home.home import Home
from nacre.home.lookup import projects
from nacre.home.projects import LISTS, follow_pages, let_sessions_follow, page_path
from nacre.memories.scan import scan
from nacre.platform.days import shown_day
from nacre.projects import pages
from nacre.projects.evidence import evidence
from nacre.projects.requests import ProjectMergeRequest, ProjectRenameRequest
from nacre.projects.values import ProjectMergePlan, ProjectMoved
from nacre.tombstones.tombstones import Barred
from nacre.values.operation import RENAME
from nacre.vault.layout import slugify

MERGE = "project-merge"
"""What ledger and history call it."""

_EXCLUDED = ("ingest.exclude_projects", "writer.exclude_projects")


def known_project(home: Home, name: str) -> str:
    """The slug of the project that a name means. Raises NotFound."""
    known = known_slugs(home)
    slug = project_called(home, name, known)
    if slug not in known:
        raise NotFound(f"no project is called {name!r}", hint=f"known: {', '.join(known) or 'none yet'}")
    return slug


def known_slugs(home: Home) -> list[str]:
    """Every project: those with a page, with memories, with sessions."""
    return sorted({*projects(home), *home.project_contents.sessions()})


def rename(home: Home, asked: ProjectRenameRequest) -> ProjectMoved:
    """Give a project another name. Its memories keep their ids, and its former name leads to it.

    Raises NotFound, InvalidInput for a name without letters or digits, Conflict for one that another project has,
    MemoryInvalid for a page that cannot be read, EditConflict.
    """
    scan(home)
    old, name = known_project(home, asked.project), home.redactor.clean(asked.name).strip()
    slug = slugify(name)
    if not slug or not name.isprintable():
        raise InvalidInput(f"{asked.name!r} is no name for a folder", hint="it needs a letter or a digit")
    _refuse_name(home, old, slug)
    _refuse_privacy(home, old, slug)
    with home.change(RENAME, subject=f"{old} → {slug}", why=asked.reason) as change:
        page = pages.page_of(home, old)
        sessions = _sessions(home, old)
        with change.transaction():
            if home.files.name_now(old) != slug:  # else a crash came between page and memories
                pages.write(change, pages.renamed(home, page, old, slug, name), page, moved_from=old)
            let_sessions_follow(home)
            memories = _move_memories(change, old, slug)
            change.append([change.entry(RENAME, project=old, into=slug, **_reason(asked.reason))])
        operation = change.operation_id
    follow_pages(home)
    return ProjectMoved(old, slug, memories, sessions, operation, None, _left(home, old))


def plan_merge(home: Home, asked: ProjectMergeRequest) -> ProjectMergePlan:
    """What a merge would do. Raises NotFound, Conflict, MemoryInvalid."""
    scan(home)
    source, into = _two(home, asked)
    page, other = pages.page_of(home, source), pages.page_of(home, into)
    mine, its = pages.facts(page), pages.facts(other)
    takes = [(kind, one) for key, kind in LISTS.items() for one in mine.get(key, ()) if one not in its.get(key, ())]
    named = [] if ("alias", source) in takes or source in its.get("aliases", ()) else [("alias", source)]
    return ProjectMergePlan(
        source, into, len(_memories(home, source)), _sessions(home, source), (*takes, *named),
        pages.own_words(home, page, other), evidence(home, (source, page), (into, other)),
    )  # fmt: skip


def merge(home: Home, asked: ProjectMergeRequest) -> ProjectMoved:
    """Make one project of two. The page of the one that goes is retired, its own words stand on the other's.

    Raises NotFound, Conflict where one is the other, or what was forgotten of one by its name would not stay away,
    MemoryInvalid for a page that cannot be read, EditConflict.
    """
    scan(home)
    source, into = _two(home, asked)
    with home.change(MERGE, subject=f"{source} → {into}", why=asked.reason) as change:
        with change.transaction():
            moved = merge_within(change, source, into, asked.reason)
        operation = change.operation_id
    follow_pages(home)
    return replace(moved, operation=operation, left=_left(home, source))


def merge_within(change: Change, source: str, into: str, reason: str | None) -> ProjectMoved:
    """Merge two projects as a part of a change, in its transaction."""
    home = change.home
    page, other = pages.page_of(home, source), pages.page_of(home, into)
    sessions, words = _sessions(home, source), reason or f"merged into {into}"
    written = pages.merged(home, source, page, into, other)
    retired = pages.retire_page(change, source, page, into, words) if page else None
    pages.write(change, written, other)
    let_sessions_follow(home)
    memories = _move_memories(change, source, into)
    change.append([change.entry(MERGE, project=source, into=into, **_reason(reason))])
    return ProjectMoved(source, into, memories, sessions, change.operation_id, retired)


def objection(home: Home, source: str, into: str) -> str | None:
    """What speaks against making one project of two, whoever asks for it; ``None`` where nothing does."""
    try:
        _refuse_privacy(home, source, into)
    except Conflict as error:
        return error.message
    return None


def _two(home: Home, asked: ProjectMergeRequest) -> tuple[str, str]:
    source, into = known_project(home, asked.project), known_project(home, asked.into)
    if source == into:
        raise Conflict(f"{asked.project} and {asked.into} are one project already: {into}", hint="nacre project list")
    _refuse_privacy(home, source, into)
    return source, into


def _refuse_name(home: Home, old: str, slug: str) -> None:
    """A rename that a crash cut short goes on: its former name leads to the new one already."""
    if slug == old:
        raise Conflict(f"the project is called {slug} already", hint="nacre project show tells its other names")
    owner = home.files.name_now(slug)
    is_going_on = home.files.name_now(old) == slug
    if (slug in known_slugs(home) and not is_going_on) or owner not in (slug, old):
        raise Conflict(f"there is a project {owner} already", hint=f"nacre project merge {old} {owner}")


def _refuse_privacy(home: Home, source: str, into: str) -> None:
    """What was forgotten by a project's name must not come back under another, nor take with it what has another; what
    the owner keeps from being read, or from a writer, stays kept from it."""
    barred = Barred(home.tombstones.all())
    for until, scope in barred.before:
        named = barred.projects(scope, (source, into)) if scope else None
        if named:
            raise Conflict(
                f"what {named[0]} said before {shown_day(until)} is forgotten, and goes by its name",
                hint="a project of which something was forgotten by its name keeps it",
            )
    for key in _EXCLUDED:
        patterns = home.settings.texts(key)
        if _matches(source, patterns) and not _matches(into, patterns):
            raise Conflict(f"{source} is in {key}, and {into} is not", hint=f"add {into} there: nacre config get {key}")


def _matches(slug: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(slug, pattern) for pattern in patterns)


def _move_memories(change: Change, source: str, into: str) -> int:
    """Move the memories of a project, in any state; of many, 20 together, and others may write in between."""
    home, moved = change.home, 0
    while ids := home.project_contents.memory_ids(source, FEW):
        if moved and change.yield_locks():
            if home.files.name_now(source) != into:
                break  # another command says since that they belong elsewhere
            continue  # another wrote: what is still there is looked for again
        change.put([replace(one, project=into) for one in home.memories.in_any_state(ids)])
        moved += len(ids)
    return moved


def _memories(home: Home, slug: str) -> list[str]:
    return home.project_contents.memory_ids(slug, -1)


def _sessions(home: Home, slug: str) -> int:
    return home.project_contents.sessions().get(slug, (0, None))[0]


def _left(home: Home, slug: str) -> tuple[str, ...]:
    """Files in a former project's folder: what nacre could not read as a memory."""
    folder = page_path(slug).removesuffix("project.md")
    return tuple(sorted(one.path for one in home.vault.scan() if one.path.startswith(folder)))


def _reason(reason: str | None) -> dict[str, str]:
    return {"reason": reason} if reason else {}
