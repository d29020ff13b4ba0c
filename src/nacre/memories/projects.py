"""Rename, merge and connect projects, including their pages."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from fnmatch import fnmatch
from typing import Annotated, Any

from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.times import shown_day
from nacre.errors import ConflictError, InvalidInputError, InvalidMemoryError, NotFoundError
from nacre.home import location
from nacre.home.change import (
    FEW,
    LISTS,
    Change,
    Page,
    Run,
    follow_pages,
    index_page,
    let_sessions_follow,
    list_of,
    page_path,
    page_text,
    part_of,
    project_called,
    read_page,
    resolve_project,
)
from nacre.home.home import Home
from nacre.home.location import (
    is_repository,
    locate,
    projects,
    without_secrets,
)
from nacre.hosts.files import drop_blocks
from nacre.memories import edit
from nacre.memories.tombstones import Barred
from nacre.operations import operation
from nacre.values.codec import stamp
from nacre.values.memory import RENAME, Intent, Memory, Project, SessionFilter
from nacre.values.recall import Filter
from nacre.values.session import Session
from nacre.vault.documents import dump, join, load, split
from nacre.vault.documents import merge as merge_front
from nacre.vault.files import normalise_remote, slugify

_DESCRIPTION_KEYS = ("description", "goal", "status")
_UNTRUSTED = "untrusted"


@frozen
class NewPage:
    """A project page to be written."""

    slug: str
    text: str
    values: dict[str, Any]


def facts(page: Page | NewPage | None) -> dict[str, tuple[str, ...]]:
    """Return the lists in a project page, such as aliases and normalised remotes."""
    if page is None:
        return {}
    lists = {name: tuple(list_of(page.values, name)) for name in (*LISTS, "dependencies")}
    return lists | {"remotes": tuple(map(normalise_remote, lists["remotes"]))}


def page_of(home: Home, slug: str) -> Page | None:
    """Return a project's page, if there is one.

    Raises InvalidMemoryError if it is unreadable, or ConflictError if it contains a secret.
    """
    page = read_page(home, slug)
    if page and without_secrets(home.redactor, page.text) is None:
        raise ConflictError(
            f"{page_path(slug)} seems to contain a secret", hint="remove the secret first"
        )
    return page


def own_words(home: Home, page: Page | None, into: Page | None) -> str:
    """Return the owner's text on ``page`` that a merge must add to the page ``into``.

    There is none if ``page`` is less trusted.
    """
    if page is None or (
        _trust(page) == _UNTRUSTED and (into is None or _trust(into) != _UNTRUSTED)
    ):
        return ""
    facts_text = [
        f"{name}: {page.values[name]}" for name in _DESCRIPTION_KEYS if page.values.get(name)
    ]
    lines = drop_blocks(page.body).strip().splitlines()
    if lines and lines[0].startswith("# "):
        del lines[0]
    return home.redactor.clean("\n".join([*facts_text, *lines]).strip())


def rename_page(home: Home, page: Page | None, old: str, slug: str, name: str) -> NewPage:
    """Return a project's page under a new name, with its former names as aliases."""
    values = page.values if page else {}
    former_name = str(values.get("name") or old)
    aliases = [alias for alias in list_of(values, "aliases") if alias not in (slug, name)]
    former_names = [old, *([former_name] if former_name != name else [])]
    changed = {"name": name, "aliases": list(dict.fromkeys([*aliases, *former_names]))}
    body, title = page.body if page else None, f"# {former_name}"
    if body and body.partition("\n")[0].rstrip() == title:
        body = f"# {name}{body.removeprefix(title)}"
    return _changed_page(home, page, slug, changed, body)


def merge_pages(home: Home, old: str, page: Page | None, into: str, other: Page | None) -> NewPage:
    """Return the page of project ``into``, extended by the lists and text of project ``old``."""
    names = [old, *([str(page.values["name"])] if page and page.values.get("name") else [])]
    values, other_values = (other.values if other else {}), (page.values if page else {})
    changed: dict[str, Any] = {}
    for key in (*LISTS, "dependencies"):
        values_added = [*list_of(other_values, key), *(names if key == "aliases" else ())]
        present = list_of(values, key)
        new = [
            value
            for value in dict.fromkeys(values_added)
            if value not in (*present, into, *_redundant_values(key, old, values))
        ]
        if new:
            changed[key] = [*present, *new]
    body = other.body if other else f"# {into}\n"
    if text := own_words(home, page, other):
        body = f"{body.rstrip()}\n\n## From {old}\n\n{text}\n"
    return _changed_page(home, other, into, changed, body)


def edit_page(home: Home, slug: str, page: Page | None, text: str) -> NewPage:
    """Return a project's page with edited text but the same id.

    The front matter stays the same if the text has none. Raises InvalidMemoryError.
    """
    front, body = split(text)
    if front is None:
        front = page.front if page else f"name: {slug}\n"
    page_id = str((page.values.get("id") if page else None) or home.ids())
    return NewPage(
        slug,
        join(text, merge_front(front, {"id": page_id}, []), body),
        {**load(front), "id": page_id},
    )


def write(
    change: Change, page: NewPage, before: Page | None, *, moved_from: str | None = None
) -> None:
    """Write and index a project page, in place of ``before`` if given."""
    path = page_path(page.slug)
    if before is None:
        change.intend([Intent("write", path, page.text)])
    elif moved_from is None:
        change.intend([Intent("write", path, page.text, before.hash, former=before.text)])
    else:
        change.intend([Intent("write", path, page.text), _removal(moved_from, before)])
    if moved_from is not None:
        change.home.files.forget_project(moved_from)
    index_page(change.home, Project(str(page.values["id"]), page.slug, 0), page.values)


def retire_page(change: Change, slug: str, page: Page, into: str, reason: str) -> str:
    """Move the page of a merged project to ``retired/`` and return the new path."""
    home, path, number = change.home, f"retired/{page_path(slug)}", 1
    while home.vault.exists(path):
        number += 1
        path = f"retired/projects/{slug}/{number}/project.md"
    changes = {"retired": {"at": stamp(home.now()), "reason": reason, "into": into}}
    text = join(page.text, merge_front(page.front, changes, []), page.body)
    change.intend([Intent("write", path, text, None), _removal(slug, page)])
    home.files.forget_project(slug)
    return path


def _removal(slug: str, page: Page) -> Intent:
    return Intent("remove", page_path(slug), base=page.hash, former=page.text)


def _changed_page(
    home: Home, page: Page | None, slug: str, changed: dict[str, Any], body: str | None = None
) -> NewPage:
    if page is None:
        values = {"id": home.ids(), "name": slug, **{key: [] for key in LISTS}, **changed}
        title = f"# {values['name']}\n"
        text = f"---\n{dump(values)}---\n{body or title}"
        return NewPage(slug, text, values)
    if not page.values.get("id"):
        changed["id"] = home.ids()
    front = merge_front(page.front, changed, [])
    text = join(page.text, front, page.body if body is None else body)
    return NewPage(slug, text, {**page.values, **changed})


def _redundant_values(key: str, old: str, values: dict[str, Any]) -> tuple[str, ...]:
    """Return the alias or the dependency to drop: the project's own name, or the merged project."""
    if key == "dependencies":
        return (old,)
    return (str(values.get("name") or ""),) if key == "aliases" else ()


def _trust(page: Page) -> str:
    return str(page.values.get("trust") or "")


# -- Parameters ----------------------------------------------------------------


Name = Annotated[str, bounds("The name, slug or alias of a known project.")]
Into = Annotated[str, bounds("The project that remains.")]
Reason = Annotated[str | None, bounds("The reason, kept in the ledger and the history.")]


# -- Results -------------------------------------------------------------------


@frozen
class ProjectLine:
    """A project in a list.

    Sub-agent sessions are not counted. ``last`` is the time of the latest memory or turn, and
    ``hint`` a command to run if the folder was renamed.
    """

    slug: str
    name: str
    memories: int = 0
    sessions: int = 0
    last: datetime | None = None
    aliases: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    hint: str | None = None


@frozen
class ProjectDetail:
    """A project with all details and its latest memories.

    ``page`` has no front matter, and ``needed_by`` lists the projects that depend on this one.
    """

    project: ProjectLine
    page: str = ""
    remotes: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()
    latest: tuple[Memory, ...] = ()


@frozen
class ProjectMergePlan:
    """The effects of merging ``project`` into ``into``.

    ``memories`` and ``sessions`` count the items that would move. ``takes`` lists the remotes,
    roots, labels and aliases, each as kind and value, and ``words`` the text to append to the page.
    """

    project: str
    into: str
    memories: int
    sessions: int
    takes: tuple[tuple[str, str], ...] = ()
    words: str = ""


@frozen
class ProjectMoved:
    """The result of renaming a project or merging it into another.

    ``retired`` is the new path of a retired page. ``left`` lists files that stay in the old folder,
    because they cannot be read as memories.
    """

    project: str
    into: str
    memories: int
    sessions: int
    operation: str
    retired: str | None = None
    left: tuple[str, ...] = ()


# -- Operations ----------------------------------------------------------------
#
# Pages and memories change in one operation, and sessions follow the pages. The page is written
# first, with all its keys, so that new memories go to the remaining project. After a crash,
# repeating the command moves the remaining memories.


MERGE = "project-merge"

_EXCLUSION_SETTINGS = ("ingest.exclude_projects", "writer.exclude_projects")


def known_project(home: Home, name: str) -> str:
    """Return the slug of an existing project, given any of its names. Raises NotFoundError."""
    slugs = known_slugs(home)
    slug = project_called(home, name, slugs)
    if slug not in slugs:
        raise NotFoundError(
            f"there is no project {name!r}",
            hint=f"known projects: {', '.join(slugs) or 'none yet'}",
        )
    return slug


def known_slugs(home: Home) -> list[str]:
    """Return the slugs of all projects that have a page, memories or sessions."""
    return sorted({*projects(home), *home.project_contents.sessions()})


@operation("project-rename", writes=True, takes_long=True, owners=True)
def rename(
    home: Home,
    project: Name,
    name: Annotated[
        str,
        bounds("The new name. The project's folder in the vault is renamed to match."),
    ],
    reason: Reason = None,
) -> ProjectMoved:
    """Rename a project. Memories keep their ids, and the former name resolves to the project.

    Raises NotFoundError, InvalidInputError for a name without letters or digits, ConflictError if
    another project has the name, InvalidMemoryError for an unreadable page, EditConflictError.
    """
    edit.scan(home)
    old, new_name = known_project(home, project), home.redactor.clean(name).strip()
    slug = slugify(new_name)
    if not slug or not new_name.isprintable():
        raise InvalidInputError(
            f"{name!r} cannot be used as a folder name",
            hint="a project's name must contain a letter or a digit",
        )
    if slug == old:
        raise ConflictError(
            f"the project is already called {slug}", hint="nacre project show lists its other names"
        )
    owner = home.files.name_now(slug)
    is_resumed = home.files.name_now(old) == slug
    if (slug in known_slugs(home) and not is_resumed) or owner not in (slug, old):
        raise ConflictError(
            f"there is already a project {owner}", hint=f"nacre project merge {old} {owner}"
        )
    _refuse_privacy(home, old, slug)
    with home.change(RENAME, subject=f"{old} → {slug}", why=reason) as change:
        page = page_of(home, old)
        sessions = _sessions(home, old)
        with change.transaction():
            if home.files.name_now(old) != slug:  # equal after a crash between page and memories
                write(change, rename_page(home, page, old, slug, new_name), page, moved_from=old)
            let_sessions_follow(home)
            memories = _move_memories(change, old, slug)
            change.note(RENAME, project=old, into=slug, reason=reason or None)
        operation = change.operation.id
    follow_pages(home)
    return ProjectMoved(
        old, slug, memories, sessions, operation, None, _unreadable_files(home, old)
    )


@operation("project-merge-plan")
def plan_merge(
    home: Home,
    project: Name,
    into: Into,
) -> ProjectMergePlan:
    """Return the effects of a merge. Raises NotFoundError, ConflictError, InvalidMemoryError."""
    edit.scan(home)
    source, into = _source_and_target(home, project, into)
    page, other = page_of(home, source), page_of(home, into)
    present, merged = facts(other), facts(merge_pages(home, source, page, into, other))
    takes = tuple(
        (kind, value)
        for key, kind in LISTS.items()
        for value in merged[key]
        if value not in present.get(key, ())
    )
    return ProjectMergePlan(
        source,
        into,
        len(home.project_contents.memory_ids(source, -1)),
        _sessions(home, source),
        takes,
        own_words(home, page, other),
    )


@operation("project-merge", writes=True, takes_long=True, owners=True)
def merge(
    home: Home,
    project: Name,
    into: Into,
    reason: Reason = None,
) -> ProjectMoved:
    """Merge a project into another.

    The page of the merged project is retired. The page's hand-written text is appended to the page
    of the other project. Raises NotFoundError, EditConflictError. Raises InvalidMemoryError for an
    unreadable page. Raises ConflictError if both projects are the same, or if forgotten content
    could return.
    """
    edit.scan(home)
    source, into = _source_and_target(home, project, into)
    with home.change(MERGE, subject=f"{source} → {into}", why=reason) as change:
        with change.transaction():
            page, other = page_of(home, source), page_of(home, into)
            sessions = _sessions(home, source)
            new_page = merge_pages(home, source, page, into, other)
            explanation = reason or f"merged into {into}"
            retired = retire_page(change, source, page, into, explanation) if page else None
            write(change, new_page, other)
            let_sessions_follow(home)
            memories = _move_memories(change, source, into)
            change.note(MERGE, project=source, into=into, reason=reason or None)
        operation = change.operation.id
    follow_pages(home)
    return ProjectMoved(
        source, into, memories, sessions, operation, retired, _unreadable_files(home, source)
    )


def settle(home: Home, run: Run | None = None) -> None:
    """Move sessions and their memories if their project became known only later.

    A deleted folder that could belong to several repositories belongs to no project. Projects that
    are then empty are removed, unless their page has the owner's text.
    """
    contents = home.project_contents
    for slug, folder, branch in sorted(contents.places(), key=lambda row: row[1]):
        place = locate(folder, None, branch, home.settings.user_home)
        target = location.known_project(home, place) or slug
        if slug and is_repository(home, slug):
            if place.exists and home.files.project_by("root", place.root or ""):
                continue
            session = Session("", "", cwd=folder, branch=branch)
            target = resolve_project(home, session, run=run)
        if target == slug or (slug and target and objection(home, slug, target)):
            continue
        criteria = SessionFilter(project=slug)
        with part_of(home, run, MERGE) as change, change.transaction():
            sessions = {
                stored.session.id
                for stored in home.sessions.newest(criteria, limit=-1)
                if (stored.session.cwd, stored.project) == (folder, slug)
            }
            memories = home.memories.in_any_state(contents.memory_ids(slug, -1))
            moved = [memory for memory in memories if memory.source.session in sessions]
            change.put([replace(memory, project=target) for memory in moved])
            contents.move_sessions_of_folder(folder, slug, target)
            change.note(MERGE, project=slug, into=target)
            page = page_of(home, slug) if slug else None
            is_empty = len(moved) == len(memories) and not home.sessions.newest(criteria, limit=1)
            if slug and page and is_empty and not own_words(home, page, None):
                change.intend([_removal(slug, page)])
                home.files.forget_project(slug)


def rename_hints(home: Home) -> dict[str, str]:
    """Return a suggested merge for each project whose folder seems to have been renamed, by slug."""
    keys = home.files.project_keys()
    hosted = {slug for kind, _, slug in keys if kind == "remote"}
    roots = [(slug, root) for kind, root, slug in keys if kind == "root" and slug not in hosted]
    live = [(slug, root) for slug, root in roots if os.path.exists(os.path.join(root, ".git"))]
    last, hints = home.project_contents.sessions(), {}
    for old, root in roots:
        ended = last.get(old, (0, None))[1]
        if not ended or is_repository(home, old) or not home.project_contents.has_branch(root):
            continue
        later = [
            (began, new)
            for new, path in live
            if os.path.dirname(path) == os.path.dirname(root)
            for first in home.sessions.newest(SessionFilter(project=new), limit=-1)[-1:]
            if (began := first.session.started) and began >= ended
        ]
        if later:
            new = min(later)[1]
            hints[old] = (
                f"The folder of {old} is gone. If it is now {new}: nacre project merge {old} {new}"
            )
    return hints


def objection(home: Home, source: str, into: str) -> str | None:
    """Return the reason why two projects must not be merged, if there is one."""
    try:
        _refuse_privacy(home, source, into)
    except ConflictError as error:
        return error.message
    return None


def _source_and_target(home: Home, project: str, other: str) -> tuple[str, str]:
    source, into = known_project(home, project), known_project(home, other)
    if source == into:
        raise ConflictError(
            f"{project} and {other} are already the same project: {into}",
            hint="nacre project list shows all projects",
        )
    _refuse_privacy(home, source, into)
    return source, into


def _refuse_privacy(home: Home, source: str, into: str) -> None:
    """Refuse a merge that would restore forgotten content, forget too much, or lift an exclusion."""
    barred = Barred(home.tombstones.all())
    for until, scope in barred.before:
        affected = barred.projects(scope, (source, into)) if scope else None
        if affected:
            raise ConflictError(
                f"content of {affected[0]} from before {shown_day(until)} was forgotten",
                hint="a project with forgotten content cannot be renamed or merged",
            )
    for key in _EXCLUSION_SETTINGS:
        patterns = home.settings.texts(key)
        if _matches_any(source, patterns) and not _matches_any(into, patterns):
            raise ConflictError(
                f"{source} is in {key}, and {into} is not",
                hint=f"add {into} to that list: nacre config show {key}",
            )


def _matches_any(slug: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(slug, pattern) for pattern in patterns)


def _move_memories(change: Change, source: str, into: str) -> int:
    home, count = change.home, 0
    while ids := home.project_contents.memory_ids(source, FEW):
        if count and change.yield_locks():
            if home.files.name_now(source) != into:
                break  # another command moved the project
            continue  # another process wrote, so read the remaining memories again
        change.put([replace(memory, project=into) for memory in home.memories.in_any_state(ids)])
        count += len(ids)
    return count


def _sessions(home: Home, slug: str) -> int:
    return home.project_contents.sessions().get(slug, (0, None))[0]


def _unreadable_files(home: Home, slug: str) -> tuple[str, ...]:
    folder = page_path(slug).removesuffix("project.md")
    return tuple(sorted(file.path for file in home.vault.scan() if file.path.startswith(folder)))


# -- Project commands ----------------------------------------------------------


DEPEND = "project-depend"
_MAX_LATEST = 8


@operation("project-list", by_key=True)
def list_projects(home: Home) -> list[ProjectLine]:
    """List all projects, most recently used first."""
    edit.catch_up(home)
    memories, sessions = home.project_contents.memories(), home.project_contents.sessions()
    dependencies: defaultdict[str, list[str]] = defaultdict(list)
    for slug, other in home.files.dependencies():
        dependencies[slug].append(other)
    lines, hints = [], rename_hints(home)
    for slug in known_slugs(home):
        memory_count, last_memory = memories.get(slug, (0, None))
        session_count, last_turn = sessions.get(slug, (0, None))
        page = _page(home, slug)
        name = str(page.values.get("name") or slug) if page else slug
        lines.append(
            ProjectLine(
                slug,
                name,
                memory_count,
                session_count,
                max(filter(None, (last_memory, last_turn)), default=None),
                _aliases(home, slug, page),
                tuple(dependencies[slug]),
                hints.get(slug),
            )
        )
    return sorted(lines, key=lambda line: (-(line.last.timestamp() if line.last else 0), line.slug))


@operation("project-show", by_key=True)
def show_project(home: Home, project: Name) -> ProjectDetail:
    """Show a project. Raises NotFoundError."""
    listed = {line.slug: line for line in list_projects(home)}
    slug = known_project(home, project)
    lists = facts(_page(home, slug))
    rows = home.selection.latest_memories(
        Filter((slug,), strict=True), limit=_MAX_LATEST, today=home.today()
    )
    remotes, roots, labels = (
        tuple(map(home.redactor.clean, lists.get(key, ())))
        for key in ("remotes", "roots", "labels")
    )
    return ProjectDetail(
        listed[slug],
        page_text(home, slug, own=True),
        remotes,
        roots,
        labels,
        needed_by=tuple(line.slug for line in listed.values() if slug in line.dependencies),
        latest=tuple(home.memories.by_rows(rows).values()),
    )


@operation("project-depend", writes=True, owners=True)
def depend(
    home: Home,
    project: Name,
    on: Annotated[
        tuple[str, ...],
        bounds("Projects that it depends on, by name, slug or alias.", min_length=1),
    ],
    remove: Annotated[bool, bounds("Remove these dependencies instead of adding them.")] = False,
) -> ProjectLine:
    """Add or remove dependencies of a project. Two projects can depend on each other.

    Raises NotFoundError for an unknown project, ConflictError for a dependency on itself,
    InvalidMemoryError for an unreadable page.
    """
    edit.catch_up(home)
    slug = known_project(home, project)
    names = [_dependency(home, slug, name, remove=remove) for name in on]
    with home.change(DEPEND, subject=slug) as change:
        page = page_of(home, slug)
        present = [home.files.name_now(name) for name in facts(page).get("dependencies", ())]
        dependencies = (
            [name for name in present if name not in names] if remove else [*present, *names]
        )
        dependencies = list(dict.fromkeys(dependencies))
        if dependencies != present:
            with change.transaction():
                write(change, _changed_page(home, page, slug, {"dependencies": dependencies}), page)
                change.note(DEPEND, project=slug, on=dependencies)
    return next(line for line in list_projects(home) if line.slug == slug)


def _dependency(home: Home, slug: str, name: str, *, remove: bool) -> str:
    if remove and name in dict(home.files.dependencies(slug)).values():
        return name
    slug_found = known_project(home, name)
    if slug_found == slug and not remove:
        raise ConflictError(
            f"{slug} cannot depend on itself", hint="it always includes its own memories"
        )
    return slug_found


def _page(home: Home, slug: str) -> Page | None:
    try:
        return read_page(home, slug)
    except InvalidMemoryError:
        return None


def _aliases(home: Home, slug: str, page: Page | None) -> tuple[str, ...]:
    aliases = facts(page).get("aliases", ())
    return tuple(home.redactor.clean(alias) for alias in dict.fromkeys(aliases) if alias != slug)
