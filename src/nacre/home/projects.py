"""Projects: what a session's folder, remote or label resolves to. ``projects/<slug>/project.md`` is the truth."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nacre.errors import Conflict, InvalidInput, MemoryInvalid, VaultUnusable
from nacre.home.change import Change, Run, part_of
from nacre.home.home import Home
from nacre.home.location import Place, known_project, locate
from nacre.home.page_lines import without_what_is_over
from nacre.home.redaction import clean_values
from nacre.hosts.marked import drop_blocks
from nacre.platform.ids import bytes_hash
from nacre.text.passages import one_line
from nacre.values.handoff import Handoff
from nacre.values.operation import Intent, Project
from nacre.values.session import Session
from nacre.vault.front_matter import dump, load, merge, split
from nacre.vault.layout import normalise_remote, slugify

LISTS = {"remotes": "remote", "roots": "root", "labels": "label", "aliases": "alias"}
"""What a page lists as the project's, and what one of each is called."""

_NOT_PROJECTS = frozenset({"", "home", "root", "tmp", "users", "src", "projects", "workspace", "code", "desktop"})


_NAME_CHARACTERS = 120
_MOST_ROOTS = 50
"""That a page notes by itself: worktrees come and go."""


@dataclass(frozen=True, slots=True)
class Page:
    """A project's page as it is: its text, its front matter as written and as read, and what follows."""

    text: str
    front: str
    values: dict[str, Any]
    body: str
    hash: bytes


def read_pages(home: Home) -> None:
    """Bring the index up to the project pages in the vault. A page that cannot be read is in ``home.problems``."""
    known = {project.slug: project for project in home.files.projects()}
    present = home.vault.pages()
    if home.files.has_intents():  # what is about to be written or removed is in the index already
        awaited = home.files.awaited_paths()
        present = {slug: seen_ns for slug, seen_ns in present.items() if page_path(slug) not in awaited}
    for slug in known.keys() - present.keys():
        _forget(home, slug)
    read = _read_changed(home, known, present)
    with home.database.transaction() if read else nullcontext():
        held = {(slug, key, value) for key, value, slug in home.files.project_keys()} if len(read) > 1 else set()
        for project, values in read if len(read) > 1 else ():  # what one page lists no more, another may: in any order
            still = [key for key in _keys(project.slug, values) if (project.slug, *key) in held]
            home.files.save_project(project, still)
        for project, values in read:
            index_page(home, project, values)
    if read or not known.keys() <= present.keys():
        follow_pages(home)


def _read_changed(
    home: Home, known: Mapping[str, Project], present: Mapping[str, int]
) -> list[tuple[Project, dict[str, Any]]]:  # fmt: skip
    read = []
    taken = {project.id: slug for slug, project in known.items() if slug in present}
    for slug, seen_ns in present.items():
        if slug in known and known[slug].mtime_ns == seen_ns:
            continue
        try:
            if not slug.isprintable():
                raise MemoryInvalid("the folder's name holds characters that cannot be shown; rename it")
            mtime_ns = home.vault.stat(page_path(slug)).mtime_ns
            values = clean_values(home.redactor, _parse(home.vault.read(page_path(slug))).values)
        except FileNotFoundError:
            continue
        except (MemoryInvalid, VaultUnusable) as error:
            home.problems.append(f"{_shown(page_path(slug))}: {error.message}")
            continue
        own = str(values.get("id") or "") or (known[slug].id if slug in known else slug)
        if taken.setdefault(own, slug) != slug:
            own = slug  # the page was copied with its folder; the first one keeps the id
        read.append((Project(own, slug, mtime_ns), values))
    return read


def follow_pages(home: Home) -> None:
    """Let sessions and handoffs belong to the page that has the name now under which their project was met.

    So what pages say is all that a rename or a merge has to change, and taking that back takes back this, too: here,
    and on every other machine.
    """
    let_sessions_follow(home)
    with home.vault_lock.if_free() as is_ours:
        if is_ours:
            home.handoffs.follow(lambda one: _project_of_handoff(home, one))


def let_sessions_follow(home: Home) -> None:
    """The same for sessions alone, in the database. Where no page has the name under which a session's project was met,
    it goes to the project of its folder, if there is one."""
    pages = {project.slug for project in home.files.projects()}
    contents = home.project_contents
    for met, now in contents.names_met():
        into = met if met in pages else home.files.name_now(met)
        if into in pages and into != now:
            contents.move_sessions(met, now, into)
        elif into not in pages:
            for folder in contents.folders(now) if now not in pages else ():
                if found := known_project(home, locate(folder)):
                    contents.move_sessions_of_folder(folder, now, found)


def _project_of_handoff(home: Home, handoff: Handoff) -> str:
    found = [one.project for one in home.sessions.find(handoff.session) if one.session.id == handoff.session]
    return (found[0] if found else None) or home.files.name_now(handoff.project)


def _shown(path: str) -> str:
    return path if path.isprintable() else ascii(path)[1:-1]


def resolve_project(
    home: Home, session: Session, *, create: bool = True, run: Run | None = None
) -> str | None:  # fmt: skip
    """The slug of the project a session belongs to; a new project gets its page. ``None`` for no project.

    The page belongs to the ``run`` that meets the session, if one does.

    Order: configured label, git remote, known root, label or alias, then a new project named after its folder.
    Worktrees of one repository and clones of one remote are one project, and its page notes where they lie: a folder
    that is gone later still leads to it. A repository of the same name with another remote is another project.
    """
    if session.label:
        configured = home.settings["projects.labels"].get(session.label)
        if configured:
            return home.files.name_now(slugify(configured)) or None
        found = home.files.project_by("label", session.label) or home.files.project_by("alias", session.label)
        if found:
            return found
    place = locate(session.cwd, session.repository)
    found = known_project(home, place)
    if not create or (found and not _tells_more(home, found, place)):
        return found
    return _make(home, place, session.label, run)


def likely_project(home: Home, session: Session) -> str | None:
    """The project that a session belongs to, or would: nothing is made. ``None`` for no project."""
    found = resolve_project(home, session, create=False)
    return found or _slug(home, locate(session.cwd, session.repository)) or None


def project_of_work(home: Home, folder: Path) -> str | None:
    """The project of a folder in which somebody works, as for its sessions: a new one gets its page.

    ``None`` for a common folder. While another process writes, a new one has its name alone, and nobody waits, unless
    that name is another project's. Raises StoreBusy.
    """
    place = locate(str(folder))
    found, slug = known_project(home, place), _slug(home, place)
    if found or not slug:
        return found
    with home.vault_lock.if_free() as is_ours:
        if not is_ours and slug not in {project.slug for project in home.files.projects()}:
            return slug
        return _make(home, place)


def known_or_named(home: Home, folder: Path) -> str | None:
    """The project a folder belongs to, else the one it would be called; makes none. ``None`` for a common folder."""
    return known_project(home, locate(str(folder))) or name_of_folder(home, folder)


def name_of_folder(home: Home, folder: Path) -> str | None:
    """What the project of a folder would be called, where no other one is; ``None`` for a common folder."""
    return _slug(home, locate(str(folder))) or None


def tie_folder(home: Home, slug: str, folder: Path) -> None:
    """Make a folder, or the repository it lies in, a project's from now on.

    Raises InvalidInput for a folder of many projects, Conflict where it is another project's, MemoryInvalid where the
    project's page cannot be read.
    """
    place = locate(os.path.abspath(folder))
    if not place.root or not _slug(home, place) or home.settings.user_home.is_relative_to(place.root):
        raise InvalidInput(f"{folder} holds more than one project", hint="tie the project's own folder")
    read_pages(home)
    read_page(home, slug)
    with home.change("project") as change:
        found = known_project(home, place)
        if found is None:
            _extend(change, slug, place)
        elif found != slug:
            raise Conflict(
                f"{place.root} belongs to the project {found}",
                hint=f"take it out of {page_path(found)} in the vault first: of its remotes or its roots",
            )


def write_new_page(run: Run, path: str, document: str) -> bool:
    """Write a page that is not there yet, of a project or the owner's profile; returns whether it was written."""
    slug = path.split("/")[1] if path.startswith("projects/") else ""
    if slug and (slugify(slug) != slug or path != page_path(slug)):
        return False
    with run.part() as change:
        home = change.home
        if home.vault.exists(path) or home.files.pending_document(path) is not None:
            return False
        change.intend([Intent("write", path, document, None)])
    return True


def _make(home: Home, place: Place, label: str | None = None, run: Run | None = None) -> str | None:
    with part_of(home, run, "project") as change:
        found = known_project(home, place)  # another process may have made it meanwhile
        if found is None:
            return _create(change, place, label)
        if _tells_more(home, found, place):
            _extend(change, found, place)
        return found


def _tells_more(home: Home, slug: str, place: Place) -> bool:
    """Whether a repository is met at a folder, or with a remote, that its project's page does not list."""
    if not place.is_repository or place.root == str(home.settings.user_home):
        return False
    keys = home.files.project_keys()
    if sum(name == "root" and owner == slug for name, _, owner in keys) >= _MOST_ROOTS:
        return False
    known = {(name, normalise_remote(value) if name == "remote" else value) for name, value, _ in keys}
    met = (("root", place.root), ("root", place.worktree), ("remote", place.remote))
    return any(value and (name, value) not in known for name, value in met)


def _slug(home: Home, place: Place) -> str:
    """What a project at a place is called, where no other one is; empty for a common folder."""
    slug = slugify(_name(place.remote) or _name(place.root) or "")
    return "" if slug in _NOT_PROJECTS or place.root == str(home.settings.user_home) else slug


def _create(change: Change, place: Place, label: str | None) -> str | None:
    home = change.home
    slug = _slug(home, place)
    if not slug:
        return None
    name = _name(place.remote) or _name(place.root)
    existing = {project.slug for project in home.files.projects()}
    called = slug if slug in existing else home.files.name_now(slug)
    if called in existing and not _is_namesake(home, called, place):
        _extend(change, called, place)
        return called
    number = 1
    base = slug
    while slug in existing or home.files.name_now(slug) != slug or home.vault.exists(page_path(slug)):
        number += 1
        slug = f"{base}-{number}"
    values: dict[str, Any] = {"id": home.ids(), "name": name}
    values["remotes"] = [place.remote] if place.remote else []
    values["roots"] = [folder for folder in (place.root, place.worktree) if folder]
    values["labels"] = [label] if label else []
    values["aliases"] = []
    _write_page(change, slug, values, f"---\n{dump(values)}---\n# {name}\n", base=None)
    return slug


def _extend(change: Change, slug: str, place: Place) -> None:
    """A project was met at another place: remember that too. A page that a person left broken stays as it is."""
    home = change.home
    try:
        page = read_page(home, slug)
    except MemoryInvalid:
        return
    slugs = {project.id: project.slug for project in home.files.projects()}
    values = page.values if page else {"name": slug}
    found = {"remotes": [place.remote], "roots": [place.root, place.worktree]}
    changed: dict[str, Any] = {}
    for key, met in found.items():
        new = [value for value in met if value and not _lists(values, key, value)]
        if new:
            changed[key] = [*listed(values, key), *new]
    if slugs.get(str(values.get("id") or slug), slug) != slug or not values.get("id"):
        # The index calls a page without an id, or with that of another one, by its folder: here it gets one.
        known = next((key for key, folder in slugs.items() if folder == slug and key != slug), None)
        changed["id"] = known or home.ids()
    if page is None:
        values = {**values, **changed}
        _write_page(change, slug, values, f"---\n{dump(values)}---\n# {slug}\n", base=None)
    elif changed:
        document = f"---\n{merge(page.front, changed, [])}---\n{page.body}"
        _write_page(change, slug, {**values, **changed}, document, base=page.hash)


def _write_page(change: Change, slug: str, values: dict[str, Any], document: str, *, base: bytes | None) -> None:
    change.describe(subject=str(values.get("name") or slug))
    with change.transaction():
        change.intend([Intent("write", page_path(slug), document, base)])
        index_page(change.home, Project(str(values["id"]), slug, 0), values)


def page_path(slug: str) -> str:
    """Where a project's page lies in the vault."""
    return f"projects/{slug}/project.md"


def _parse(data: bytes) -> Page:
    text = data.decode("utf-8", errors="replace")
    front, body = split(text)
    return Page(text, front or "", load(front or ""), body, bytes_hash(data))


def read_page(home: Home, slug: str) -> Page | None:
    """A project's page, as it is about to be where a write is pending; ``None`` when it is missing.

    Raises MemoryInvalid.
    """
    pending = home.files.pending_document(page_path(slug))
    if pending is not None:
        return _parse(pending.encode("utf-8", "replace"))
    try:
        return _parse(home.vault.read(page_path(slug)))
    except FileNotFoundError:
        return None


def _forget(home: Home, slug: str) -> None:
    with home.database.transaction():
        # A page that is still to be written is not gone.
        if home.files.pending_document(page_path(slug)) is None and not home.vault.exists(page_path(slug)):
            home.files.forget_project(slug)


def page_text(home: Home, slug: str, *, own: bool = False) -> str:
    """What a project's page tells of it, without its front matter and its title; empty where there is nothing.

    ``own``: without what nacre wrote into it; else without those lines of nacre's that hold no more.
    """
    try:
        page = read_page(home, slug)
    except (MemoryInvalid, VaultUnusable, OSError):
        return ""
    if page is None or page.values.get("trust") == "untrusted":
        return ""
    told = [f"{name}: {page.values[name]}" for name in ("description", "goal", "status") if page.values.get(name)]
    body = drop_blocks(page.body) if own else without_what_is_over(home, page.body)
    lines = [line for line in body.strip().splitlines() if not line.startswith("# ")]
    return home.redactor.clean("\n".join([*told, *lines]).strip())


def page_keys(home: Home, slug: str) -> set[tuple[str, str]]:
    """What a project's page says resolves to it. Raises FileNotFoundError, MemoryInvalid."""
    return set(_keys(slug, _parse(home.vault.read(page_path(slug))).values))


def index_page(home: Home, project: Project, values: dict[str, Any]) -> None:
    """Have the index know a project by what its page says."""
    with home.database.transaction():
        home.files.save_project(project, _keys(project.slug, values), listed(values, "dependencies"))


def _keys(slug: str, values: dict[str, Any]) -> list[tuple[str, str]]:
    keys = [(key, str(value)) for name, key in LISTS.items() for value in listed(values, name)]
    named = [("alias", str(values["name"]))] if values.get("name") else []
    return [("alias", slug), *keys, *named]


def listed(values: dict[str, Any], name: str) -> list[str]:
    """A list in a page's front matter; a single value is a list of one."""
    value = values.get(name) or []
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _lists(values: dict[str, Any], name: str, value: str) -> bool:
    """Whether a page lists a value, however it spells it."""
    there = listed(values, name)
    return value in there or (name == "remotes" and value in map(normalise_remote, there))


def _is_namesake(home: Home, slug: str, place: Place) -> bool:
    """Whether the project of that name is another one: another remote, or another folder of this machine."""
    if place.remote and _has_other_remote(home, slug, place.remote):
        return True
    if not place.root or not os.path.isdir(place.root):
        return False
    here = os.path.realpath(place.root)
    return any(os.path.isdir(root) and os.path.realpath(root) != here for root in _facts(home, slug, "roots"))


def _has_other_remote(home: Home, slug: str, remote: str) -> bool:
    """Whether a project is known under remotes of which this is none: a fork, or a namesake."""
    remotes = [normalise_remote(one) for one in _facts(home, slug, "remotes")]
    return bool(remotes) and remote not in remotes


def _facts(home: Home, slug: str, name: str) -> list[str]:
    """A list in a project's page; empty when the page is missing or broken."""
    try:
        page = read_page(home, slug)
    except (MemoryInvalid, OSError):
        return []
    return listed(page.values, name) if page else []


def _name(path: str | None) -> str | None:
    if not path:
        return None
    last = re.split(r"[\\/]", path.rstrip("/\\"))[-1]
    return one_line(last)[:_NAME_CHARACTERS] or None
