"""Pages of projects that get another name, or become one: what they list, and the own words of both."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatch
from typing import Annotated, Any

from msgspec import Meta

from nacre.base.request import Request
from nacre.base.times import shown_day
from nacre.errors import Conflict, InvalidInput, MemoryInvalid, NotFound
from nacre.home.change import (
    FEW,
    LISTS,
    Change,
    Page,
    follow_pages,
    index_page,
    let_sessions_follow,
    listed,
    page_path,
    page_text,
    project_called,
    read_page,
)
from nacre.home.home import Home
from nacre.home.location import locate, projects, without_secrets
from nacre.hosts.files import drop_blocks
from nacre.memories.edit import catch_up, scan
from nacre.memories.tombstones import Barred
from nacre.values.codec import stamp
from nacre.values.memory import RENAME, Intent, Memory, Project
from nacre.values.recall import Filter
from nacre.vault.documents import dump, join, load, split
from nacre.vault.documents import merge as documents_merge
from nacre.vault.files import normalise_remote, slugify

_ABOUT = ("description", "goal", "status")
_UNTRUSTED = "untrusted"


@dataclass(frozen=True, slots=True)
class Written:
    """A page as it is to be written."""

    slug: str
    text: str
    values: dict[str, Any]


def facts(page: Page | None) -> dict[str, tuple[str, ...]]:
    """What a page lists, by the names of its lists; remotes as they are compared. Empty without a page."""
    found = (
        {name: tuple(listed(page.values, name)) for name in (*LISTS, "dependencies")}
        if page
        else {}
    )
    return (
        found | {"remotes": tuple(normalise_remote(one) for one in found.get("remotes", ()))}
        if found
        else found
    )


def page_of(home: Home, slug: str) -> Page | None:
    """The page of a project; ``None`` where it has none. Raises MemoryInvalid, and Conflict where it holds a secret:
    what it says could not be brought back."""
    page = read_page(home, slug)
    if page and without_secrets(home.redactor, page.text) is None:
        raise Conflict(
            f"{page_path(slug)} holds what looks like a secret",
            hint="take the secret out of it first",
        )
    return page


def own_words(home: Home, page: Page | None, into: Page | None) -> str:
    """What a person wrote on a page, to be added to that of another project; empty where that would lend it trust."""
    if page is None or (
        _trust(page) == _UNTRUSTED and (into is None or _trust(into) != _UNTRUSTED)
    ):
        return ""
    told = [f"{name}: {page.values[name]}" for name in _ABOUT if page.values.get(name)]
    lines = drop_blocks(page.body).strip().splitlines()
    if lines and lines[0].startswith("# "):
        del lines[0]
    return home.redactor.clean("\n".join([*told, *lines]).strip())


def renamed(home: Home, page: Page | None, old: str, slug: str, name: str) -> Written:
    """The page of a project under another name: the former ones are aliases, and its title is the new name where it was
    the old one."""
    if page is None:
        return _new(home, slug, name, {"aliases": [old]})
    former = str(page.values.get("name") or old)
    known = [one for one in listed(page.values, "aliases") if one not in (slug, name)]
    aliases = list(dict.fromkeys([*known, old, *([former] if former != name else [])]))
    changed = {"name": name, "aliases": aliases} | (
        {} if page.values.get("id") else {"id": home.ids()}
    )
    first, end, rest = page.body.partition("\n")
    body = (
        f"# {name}{first[len(f'# {former}') :]}{end}{rest}"
        if first.rstrip() == f"# {former}"
        else page.body
    )
    return _written(page, slug, changed, body)


def merged(home: Home, old: str, page: Page | None, into: str, other: Page | None) -> Written:
    """The page of the project that stays, with all that the other one's lists, and with its own words below."""
    named = [old, *([str(page.values["name"])] if page and page.values.get("name") else [])]
    mine, its = (other.values if other else {}), (page.values if page else {})
    changed: dict[str, Any] = {}
    for key in (*LISTS, "dependencies"):
        more = [*listed(its, key), *(named if key == "aliases" else ())]
        present = listed(mine, key)
        new = [
            one for one in dict.fromkeys(more) if one not in (*present, into, *_own(key, old, mine))
        ]
        if new:
            changed[key] = [*present, *new]
    words = own_words(home, page, other)
    if other is None:
        made = _new(home, into, into, changed)
        return replace(made, text=made.text + _section(old, words)) if words else made
    if not other.values.get("id"):
        changed["id"] = home.ids()
    body = f"{other.body.rstrip()}\n{_section(old, words)}" if words else other.body
    return _written(other, into, changed, body)


def edited(home: Home, slug: str, page: Page | None, text: str) -> Written:
    """The page of a project as a person wrote it; it keeps its id, and without front matter that, too.

    Raises MemoryInvalid.
    """
    front, body = split(text)
    if front is None:
        front = page.front if page else f"name: {slug}\n"
    own = str((page.values.get("id") if page else None) or home.ids())
    return Written(
        slug, join(text, documents_merge(front, {"id": own}, []), body), {**load(front), "id": own}
    )


def depending(home: Home, slug: str, page: Page | None, dependencies: list[str]) -> Written:
    """A page that lists what its project depends on."""
    if page is None:
        return _new(home, slug, slug, {"dependencies": dependencies})
    own = {} if page.values.get("id") else {"id": home.ids()}
    return _written(page, slug, {"dependencies": dependencies, **own}, page.body)


def write(
    change: Change, written: Written, before: Page | None, *, moved_from: str | None = None
) -> None:
    """Write a page in place of the one there was, or in another folder than that one, and index it."""
    path = page_path(written.slug)
    if before is None:
        change.intend([Intent("write", path, written.text)])
    elif moved_from is None:
        change.intend([Intent("write", path, written.text, before.hash, former=before.text)])
    else:
        change.intend([Intent("write", path, written.text), _removed(moved_from, before)])
    if moved_from is not None:
        change.home.files.forget_project(moved_from)
    index_page(change.home, Project(str(written.values["id"]), written.slug, 0), written.values)


def retire_page(change: Change, slug: str, page: Page, into: str, reason: str) -> str:
    """Put the page of a project away that has become another one; returns where it lies."""
    home, path, number = change.home, f"retired/{page_path(slug)}", 1
    while home.vault.exists(path):
        number += 1
        path = f"retired/projects/{slug}/{number}/project.md"
    told = {"retired": {"at": stamp(home.now()), "reason": reason, "into": into}}
    text = join(page.text, documents_merge(page.front, told, []), page.body)
    change.intend([Intent("write", path, text, None), _removed(slug, page)])
    home.files.forget_project(slug)
    return path


def _removed(slug: str, page: Page) -> Intent:
    return Intent("remove", page_path(slug), base=page.hash, former=page.text)


def _new(home: Home, slug: str, name: str, lists: dict[str, Any]) -> Written:
    values = {"id": home.ids(), "name": name, **{key: [] for key in LISTS}, **lists}
    return Written(slug, f"---\n{dump(values)}---\n# {name}\n", values)


def _written(page: Page, slug: str, changed: dict[str, Any], body: str) -> Written:
    text = join(page.text, documents_merge(page.front, changed, []), body)
    return Written(slug, text, {**page.values, **changed})


def _own(key: str, old: str, values: dict[str, Any]) -> tuple[str, ...]:
    """What a list does not need of another page's: its own name, and of what it depends on the one it takes in."""
    if key == "dependencies":
        return (old,)
    return (str(values.get("name") or ""),) if key == "aliases" else ()


def _section(old: str, words: str) -> str:
    return f"\n## From {old}\n\n{words}\n"


def _trust(page: Page) -> str:
    return str(page.values.get("trust") or "")


# ----------------------------------------------------------------------------
# What says that two projects are one, by what their pages list. That their names are alike never
# does.


def evidence(
    home: Home, one: tuple[str, Page | None], other: tuple[str, Page | None]
) -> tuple[str, ...]:
    """What speaks for two projects being one; nothing where both have remotes and none of them is the same.

    One remote that both pages list, one folder, a worktree of the other's repository, or that one page names the
    other's folder as an alias.
    """
    (slug, page), (its_slug, its_page) = one, other
    mine, its = facts(page), facts(its_page)
    remotes = sorted({*mine.get("remotes", ())} & {*its.get("remotes", ())})
    if mine.get("remotes") and its.get("remotes") and not remotes:
        return ()
    roots, its_roots = mine.get("roots", ()), its.get("roots", ())
    shared = sorted({*roots} & {*its_roots} - {str(home.settings.user_home)})
    return (
        *(f"both list the remote {remote}" for remote in remotes),
        *(f"both list the folder {root}" for root in shared),
        *_worktrees(roots, its_roots),
        *_worktrees(its_roots, roots),
        *((f"the page of {its_slug} calls it {slug}",) if slug in its.get("aliases", ()) else ()),
        *(
            (f"the page of {slug} calls it {its_slug}",)
            if its_slug in mine.get("aliases", ())
            else ()
        ),
    )


def _worktrees(roots: tuple[str, ...], of: tuple[str, ...]) -> list[str]:
    """The folders that are worktrees of a repository among others."""
    found = []
    for root in roots:
        if root not in of and os.path.isfile(os.path.join(root, ".git")):
            repository = locate(root).root
            found += (
                [f"{root} is a worktree of {repository}"]
                if repository in of and repository != root
                else []
            )
    return found


# ----------------------------------------------------------------------------
# Requests about the projects of a home.


_REASON = "Why; it is kept in the ledger and in the history."


class ProjectRequest(Request, frozen=True, kw_only=True):
    """One project."""

    project: Annotated[
        str, Meta(description="A name, a slug or an alias of a project that is known.")
    ]


class ProjectRenameRequest(ProjectRequest, frozen=True, kw_only=True):
    """Give a project another name; the one it had becomes an alias."""

    name: Annotated[
        str, Meta(description="The new name; the project's folder in the vault is called after it.")
    ]
    reason: Annotated[str | None, Meta(description=_REASON)] = None


class ProjectMergeRequest(ProjectRequest, frozen=True, kw_only=True):
    """Make one project of two: all that belongs to the first one becomes the second one's."""

    into: Annotated[str, Meta(description="The project that stays.")]
    reason: Annotated[str | None, Meta(description=_REASON)] = None


class ProjectDependRequest(ProjectRequest, frozen=True, kw_only=True):
    """Say which projects one depends on: their memories are found in it, too, one level deep."""

    on: Annotated[
        tuple[str, ...],
        Meta(description="Projects that it depends on, by name, slug or alias.", min_length=1),
    ]
    remove: Annotated[bool, Meta(description="It depends on them no longer.")] = False


# ----------------------------------------------------------------------------
# Values about projects, and the results of renaming and merging them.


@dataclass(frozen=True, slots=True)
class ProjectLine:
    """A project in a list: how many memories hold in it, its sessions (without those of sub-agents), when something was
    last written or said in it (``None``: never), its other names, and the projects that it depends on."""

    slug: str
    name: str
    memories: int = 0
    sessions: int = 0
    last: datetime | None = None
    aliases: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectDetail:
    """All that is known of a project: what its page says (``page``, without front matter) and lists, which projects
    depend on it (``needed_by``), and its latest memories."""

    project: ProjectLine
    page: str = ""
    remotes: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()
    latest: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectMergePlan:
    """What a merge would do: how many memories (in any state) and sessions become those of ``into``.

    ``takes`` is what resolves to ``into`` from then on: (``remote``, ``root``, ``label`` or ``alias``, value).
    ``words`` are those of the page of ``project`` that go below those of the page of ``into``. ``evidence`` is what
    speaks for both being one, as far as code can tell.
    """

    project: str
    into: str
    memories: int
    sessions: int
    takes: tuple[tuple[str, str], ...] = ()
    words: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProjectMoved:
    """What was renamed or merged: ``memories`` (in any state) and ``sessions`` of ``project`` belong to ``into`` now.

    ``retired`` is where its former page lies, if it had one that was put away. ``left`` are files in its folder that
    nacre cannot read as memories: they stay where they are.
    """

    project: str
    into: str
    memories: int
    sessions: int
    operation: str
    retired: str | None = None
    left: tuple[str, ...] = ()


# ----------------------------------------------------------------------------
# Another name for a project, and one project of two: pages and memories, in one operation; sessions
# follow the pages.
#
# The page goes first, with everything that resolves to it: from then on whatever is new belongs to
# the project that
# stays. What a crash leaves of its memories is moved by the same command, given again.


MERGE = "project-merge"
"""What ledger and history call it."""

_EXCLUDED = ("ingest.exclude_projects", "writer.exclude_projects")


def known_project(home: Home, name: str) -> str:
    """The slug of the project that a name means. Raises NotFound."""
    known = known_slugs(home)
    slug = project_called(home, name, known)
    if slug not in known:
        raise NotFound(
            f"no project is called {name!r}", hint=f"known: {', '.join(known) or 'none yet'}"
        )
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
        raise InvalidInput(
            f"{asked.name!r} is no name for a folder", hint="it needs a letter or a digit"
        )
    _refuse_name(home, old, slug)
    _refuse_privacy(home, old, slug)
    with home.change(RENAME, subject=f"{old} → {slug}", why=asked.reason) as change:
        page = page_of(home, old)
        sessions = _sessions(home, old)
        with change.transaction():
            if home.files.name_now(old) != slug:  # else a crash came between page and memories
                write(change, renamed(home, page, old, slug, name), page, moved_from=old)
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
    page, other = page_of(home, source), page_of(home, into)
    mine, its = facts(page), facts(other)
    takes = [
        (kind, one)
        for key, kind in LISTS.items()
        for one in mine.get(key, ())
        if one not in its.get(key, ())
    ]
    named = (
        []
        if ("alias", source) in takes or source in its.get("aliases", ())
        else [("alias", source)]
    )
    return ProjectMergePlan(
        source,
        into,
        len(_memories(home, source)),
        _sessions(home, source),
        (*takes, *named),
        own_words(home, page, other),
        evidence(home, (source, page), (into, other)),
    )


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
    page, other = page_of(home, source), page_of(home, into)
    sessions, words = _sessions(home, source), reason or f"merged into {into}"
    written = merged(home, source, page, into, other)
    retired = retire_page(change, source, page, into, words) if page else None
    write(change, written, other)
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
        raise Conflict(
            f"{asked.project} and {asked.into} are one project already: {into}",
            hint="nacre project list",
        )
    _refuse_privacy(home, source, into)
    return source, into


def _refuse_name(home: Home, old: str, slug: str) -> None:
    """A rename that a crash cut short goes on: its former name leads to the new one already."""
    if slug == old:
        raise Conflict(
            f"the project is called {slug} already", hint="nacre project show tells its other names"
        )
    owner = home.files.name_now(slug)
    is_going_on = home.files.name_now(old) == slug
    if (slug in known_slugs(home) and not is_going_on) or owner not in (slug, old):
        raise Conflict(
            f"there is a project {owner} already", hint=f"nacre project merge {old} {owner}"
        )


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
            raise Conflict(
                f"{source} is in {key}, and {into} is not",
                hint=f"add {into} there: nacre config get {key}",
            )


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


# ----------------------------------------------------------------------------
# Operations on the projects of a home; :mod:`nacre.serve.catalogue` lists them.


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
            ProjectLine(
                slug,
                name,
                held,
                seen,
                _later(written, said),
                _aliases(home, slug, page),
                tuple(on[slug]),
            )
        )
    return sorted(found, key=lambda one: (-(one.last.timestamp() if one.last else 0), one.slug))


def show_project(home: Home, asked: ProjectRequest) -> ProjectDetail:
    """All that is known of a project. Raises NotFound."""
    listed = {one.slug: one for one in list_projects(home)}
    slug = known_project(home, asked.project)
    told = facts(_page(home, slug))
    rows = home.selection.latest_memories(
        Filter((slug,), strict=True), limit=_LATEST, today=home.today()
    )
    found = home.memories.by_rows(rows)
    remotes, roots, labels = (
        tuple(map(home.redactor.clean, told.get(key, ()))) for key in ("remotes", "roots", "labels")
    )
    return ProjectDetail(
        listed[slug],
        page_text(home, slug, own=True),
        remotes,
        roots,
        labels,
        needed_by=tuple(one.slug for one in listed.values() if slug in one.dependencies),
        latest=tuple(found[row] for row in rows if row in found),
    )


def depend(home: Home, asked: ProjectDependRequest) -> ProjectLine:
    """Say what a project depends on, or no longer does. Two may depend on each other.

    Raises NotFound for a project that is not known, Conflict for one that would depend on itself, MemoryInvalid for a
    page that cannot be read.
    """
    catch_up(home)
    slug = known_project(home, asked.project)
    named = [_dependency(home, slug, one, remove=asked.remove) for one in asked.on]
    with home.change(DEPEND, subject=slug) as change:
        page = page_of(home, slug)
        present = [home.files.name_now(one) for one in facts(page).get("dependencies", ())]
        wanted = (
            [one for one in present if one not in named] if asked.remove else [*present, *named]
        )
        wanted = list(dict.fromkeys(wanted))
        if wanted != present:
            with change.transaction():
                write(change, depending(home, slug, page, wanted), page)
                change.append([change.entry(DEPEND, project=slug, on=wanted)])
    return next(one for one in list_projects(home) if one.slug == slug)


def _dependency(home: Home, slug: str, name: str, *, remove: bool) -> str:
    if remove and name in dict(home.files.dependencies(slug)).values():
        return name
    found = known_project(home, name)
    if found == slug and not remove:
        raise Conflict(
            f"{slug} cannot depend on itself", hint="what is of it is found in it anyway"
        )
    return found


def _page(home: Home, slug: str) -> Page | None:
    """The page of a project, as far as there is one that can be read."""
    try:
        return read_page(home, slug)
    except MemoryInvalid:
        return None


def _aliases(home: Home, slug: str, page: Page | None) -> tuple[str, ...]:
    named = facts(page).get("aliases", ())
    return tuple(home.redactor.clean(one) for one in dict.fromkeys(named) if one != slug)


def _later(one: datetime | None, other: datetime | None) -> datetime | None:
    return max((moment for moment in (one, other) if moment), default=None)
