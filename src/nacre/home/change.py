"""Changes to the vault, project pages, replacement of homes, and excluded sessions.

A change holds the vault lock for one operation. One transaction stores the complete files as
pending writes (intents), with the index rows. Memories are then durable. Next, the files are
written, and the intents deleted. After a crash, opening the home completes this.

The lock is held from the first read until the files are written, so that other processes never see
a row without its file. An operation stays in the journal until git commits it.
"""

from __future__ import annotations

import contextlib
import fnmatch
import functools
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Annotated

from nacre.base import locks
from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash
from nacre.base.text import normalise, numbered, one_line, to_bytes, to_text
from nacre.errors import (
    ConflictError,
    EditConflictError,
    InvalidInputError,
    InvalidMemoryError,
    MayBeStoredError,
    NacreError,
    NotFoundError,
    UnavailableError,
    UnusableStoreError,
    UnusableVaultError,
)
from nacre.home import operations, views
from nacre.home import projects as home_projects
from nacre.home.home import Home
from nacre.home.location import (
    CONTAINERS,
    Place,
    clean_values,
    is_fork,
    is_home,
    is_repository,
    known_project,
    last_part,
    locate,
    project_of_folder,
    projects,
    with_former_names,
    without_secrets,
)
from nacre.hosts import files as hosts_files
from nacre.operations import operation
from nacre.settings import Settings
from nacre.store import schema
from nacre.values.codec import plain
from nacre.values.memory import Intent, Memory, Project, SeenMemoryFile
from nacre.values.session import Handoff, Session, StoredSession
from nacre.vault import documents, git
from nacre.vault.files import LEDGER, LedgerEntry, escape_path, folder_of, normalise_remote, slugify

BATCH = 500
"""Maximum number of memories per transaction."""

FEW = 20
"""Maximum number of memories written atomically, even on a slow machine.

A crash can split a larger write.
"""


class Change(operations.OpenOperation):
    """A change to the vault, made while the vault lock is held.

    Each method uses its own transaction, unless one is open.
    """

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in one transaction that also ends the operation.

        Long changes use several transactions and :meth:`yield_locks` instead.
        """
        with self.home.transaction():
            yield
            if not self.is_long:
                self.close()

    def entry(self, action: str, **details: object) -> LedgerEntry:
        """Return a ledger entry with redacted details. Details that are ``None`` are left out."""
        present = {name: value for name, value in details.items() if value is not None}
        values = clean_values(self.home.redactor, present)
        return LedgerEntry(self.operation.id, self.home.now(), action, values)

    def note(self, action: str, **details: object) -> None:
        """Append one entry to the ledger; see :meth:`entry`."""
        self.append([self.entry(action, **details)])

    def append(self, entries: Iterable[LedgerEntry]) -> None:
        self.intend([Intent("append", LEDGER, entry.line()) for entry in entries])

    def put(self, memories: Sequence[Memory], entries: Sequence[LedgerEntry] = ()) -> None:
        """Write memories and ledger entries. Raises EditConflictError if a file was edited.

        Many memories are written in several transactions, and the ledger entries in the last one.
        """
        home = self.home
        for start in range(0, max(1, len(memories)), BATCH):
            with home.transaction():
                for memory in memories[start : start + BATCH]:
                    written, intents = self._writes_of(memory)
                    self.intend(intents)
                    home.memories.put(written)
                    if len(memories) > FEW:
                        home.database.yield_write_lock()
                if start + BATCH >= len(memories):
                    self.append(entries)

    def set_importance(self, memory: Memory, note: LedgerEntry) -> None:
        """Write a memory's importance without changing ``updated``. Raises EditConflictError."""
        with self.home.transaction():
            if self._adjust(memory, {"importance": memory.importance}):
                self.append([note])
                self.home.memories.set_importance(memory.id, memory.importance)

    def set_links(self, memory: Memory) -> None:
        """Write a memory's links, but keep ``updated`` and vectors. Raises EditConflictError."""
        with self.home.transaction():
            if self._adjust(memory, {"links": plain(memory.links)}, gives_way=False):
                self.home.memories.set_links(memory)

    def remove(self, memory: Memory) -> None:
        """Delete a memory's file and index entry. Its text stays in the journal and the history.

        Raises EditConflictError.
        """
        home = self.home
        with home.transaction():
            file = home.files.file_of(memory.id)
            text = _current_text(home, file) if file else None
            if file:
                home.files.forget(file.path)
                base = file.hash if text is not None else None
                former = without_secrets(home.redactor, text)
                self.intend(
                    [Intent("remove", file.path, base=base, memory=memory.id, former=former)]
                )
            home.memories.delete(memory.id)

    def apply(self) -> None:
        """Write the files of this change immediately rather than when it ends."""
        self.keep_open()
        operations.apply_intents(self.home)

    def yield_locks(self, first: Callable[[], object] | None = None) -> bool:
        """Give other processes a chance to write between two steps of a long transaction.

        The locks are released only if they were held for a while, never in a nested transaction.
        ``first`` is called before that. Return True if another process wrote, so earlier data may
        be outdated.
        """

        def between() -> None:
            self.apply()
            self.home.vault_lock.let_others()

        return self.home.database.yield_write_lock(first, between)

    def _adjust(self, memory: Memory, values: dict[str, object], *, gives_way: bool = True) -> bool:
        # If the user edits the file meanwhile, only that version stays, unless gives_way=False.
        home = self.home
        file = home.files.file_of(memory.id)
        text = _current_text(home, file) if file else None
        if file is None or text is None:
            return False
        write = operations.write_memory(
            home, file.path, documents.adjust(text, values), file.hash, memory
        )
        action = "adjust" if gives_way else write.action
        self.intend([replace(write, action=action, former=without_secrets(home.redactor, text))])
        return True

    def _writes_of(self, memory: Memory) -> tuple[Memory, list[Intent]]:
        home = self.home
        file = home.files.file_of(memory.id)
        if file is None:
            return memory, [
                operations.write_memory(
                    home, operations.new_path(home, memory), documents.render(memory), None, memory
                )
            ]
        text = _current_text(home, file)
        base = file.hash if text is not None else None
        former_text = without_secrets(home.redactor, text)
        is_same_folder = str(PurePosixPath(file.path).parent) == folder_of(memory)
        path = file.path if is_same_folder else operations.new_path(home, memory)
        memory = with_former_names(home, memory, path)
        document = documents.rewrite(text, memory) if text is not None else documents.render(memory)
        if is_same_folder and document == text:
            return memory, []
        if is_same_folder:
            return memory, [
                replace(
                    operations.write_memory(home, path, document, base, memory), former=former_text
                )
            ]
        home.files.forget(file.path)
        return memory, [
            operations.write_memory(home, path, document, None, memory),
            Intent("remove", file.path, base=base, memory=memory.id, former=former_text),
        ]


class Run:
    """A long operation whose steps let other processes write in between."""

    def __init__(self, change: Change) -> None:
        self._change = change

    @contextmanager
    def part(self) -> Iterator[Change]:
        """Yield one step of the run as a change. Processes waiting for the vault lock go first."""
        home = self._change.home
        home.vault_lock.give_way()
        with home.vault_lock:
            yield self._change
            _apply_outside_transaction(home)


@contextmanager
def change(home: Home, action: str, subject: str | None, why: str | None) -> Iterator[Change]:
    """Implement :meth:`nacre.home.Home.change`."""
    change = Change(home, action, subject, why)
    with home.vault_lock:
        try:
            yield change
            change.close()
            _apply_outside_transaction(home)
        except (UnavailableError, UnusableStoreError) as error:
            if _is_durable(change):
                hint = "free some space, and check whether it was stored before you repeat it"
                raise MayBeStoredError(
                    f"it may have been stored, although {error.message}", hint=hint
                ) from error
            raise
        finally:
            change.release()


def _is_durable(change: Change) -> bool:
    if not change.is_recorded or change.home.database.is_in_transaction:
        return False
    try:
        return change.home.journal.find(change.operation.id) is not None
    except (UnavailableError, UnusableStoreError):
        return True


@contextmanager
def run(
    home: Home, action: str, subject: str | None, why: str | None, op: str | None
) -> Iterator[Run]:
    """Implement :meth:`nacre.home.Home.run`."""
    change = Change(home, action, subject, why, op, is_long=True)
    try:
        yield Run(change)
        if change.is_recorded:
            with home.vault_lock:
                change.close()
                operations.apply_intents(home)
    finally:
        change.release()


def part_of(
    home: Home,
    run: Run | None,
    action: str,
    *,
    subject: str | None = None,
    why: str | None = None,
) -> AbstractContextManager[Change]:
    """Return the next step of ``run`` or, if there is no run, a new operation."""
    return run.part() if run else home.change(action, subject=subject, why=why)


def _apply_outside_transaction(home: Home) -> None:
    if not home.database.is_in_transaction:
        operations.apply_intents(home)


def _current_text(home: Home, file: SeenMemoryFile) -> str | None:
    pending = home.files.pending_document(file.path)
    if pending is not None:
        return pending
    try:
        data = home.vault.read(file.path)
    except FileNotFoundError:
        return None
    if bytes_hash(data) != file.hash:
        raise EditConflictError(
            f"{file.path} was changed while nacre worked on it",
            hint="repeat the command: it reads the new version",
        )
    return to_text(data)


# -- Project pages -------------------------------------------------------------
#
# ``projects/<slug>/project.md`` defines the folders, remotes and labels of a project.


LISTS = {
    "remotes": "remote",
    "roots": "root",
    "commits": "commit",
    "labels": "label",
    "aliases": "alias",
}
"""Names of the lists in a page's front matter, with the corresponding kind of key.

A repository's first commit identifies it even if its folder was renamed.
"""


_MAX_NAME_CHARACTERS = 120
_MAX_ROOTS = 50
"""Maximum number of root folders that nacre adds to a project's page."""


@frozen
class Page:
    """A project's page, with its front matter both as text and parsed."""

    text: str
    front: str
    values: documents.Values
    body: str
    hash: bytes


def read_pages(home: Home) -> None:
    """Index the project pages in the vault. Unreadable pages are added to ``home.problems``."""
    indexed = {project.slug: project for project in home.files.projects()}
    present = home.vault.pages()
    if home.files.has_intents():  # the index already includes pending writes
        pending = home.files.awaited_paths()
        present = {
            slug: seen_ns for slug, seen_ns in present.items() if page_path(slug) not in pending
        }
    for slug in indexed.keys() - present.keys():
        with home.transaction():
            # A page whose write is pending still exists.
            if home.files.pending_document(page_path(slug)) is None and not home.vault.exists(
                page_path(slug)
            ):
                home.files.forget_project(slug)
    changed = _read_changed(home, indexed, present)
    with home.transaction() if changed else nullcontext():
        indexed_keys = (
            {(slug, key, value) for key, value, slug in home.files.project_keys()}
            if len(changed) > 1
            else set()
        )
        # A key can move from one page to another, and pages are read in any order.
        for project, values in changed if len(changed) > 1 else ():
            unchanged = [
                key for key in _keys(project.slug, values) if (project.slug, *key) in indexed_keys
            ]
            home.files.save_project(project, unchanged)
        for project, values in changed:
            index_page(home, project, values)
    if changed or not indexed.keys() <= present.keys():
        follow_pages(home)


def _read_changed(
    home: Home, indexed: Mapping[str, Project], present: Mapping[str, int]
) -> list[tuple[Project, documents.Values]]:
    read = []
    slug_by_id = {project.id: slug for slug, project in indexed.items() if slug in present}
    for slug, seen_ns in present.items():
        if slug in indexed and indexed[slug].mtime_ns == seen_ns:
            continue
        try:
            if not slug.isprintable():
                raise InvalidMemoryError("the folder's name has unprintable characters; rename it")
            mtime_ns = home.vault.stat(page_path(slug)).mtime_ns
            values = clean_values(home.redactor, _parse(home.vault.read(page_path(slug))).values)
        except FileNotFoundError:
            continue
        except (InvalidMemoryError, UnusableVaultError) as error:
            home.problems.append(f"{escape_path(page_path(slug))}: {error.message}")
            continue
        project_id = str(values.get("id") or "") or (indexed[slug].id if slug in indexed else slug)
        if slug_by_id.setdefault(project_id, slug) != slug:
            project_id = slug  # the page was copied with its folder; the first page keeps the id
        read.append((Project(project_id, slug, mtime_ns), values))
    return read


def follow_pages(home: Home) -> None:
    """Move sessions and handoffs to their current projects after pages were renamed or merged."""
    let_sessions_follow(home)
    with home.vault_lock.if_free() as is_ours:
        if is_ours:
            home.handoffs.follow(lambda handoff: _project_of_handoff(home, handoff))


def let_sessions_follow(home: Home) -> None:
    """Move sessions to their current projects after pages were renamed or merged.

    If the recorded project no longer exists, the session's folder decides.
    """
    pages = home.files.slugs()
    contents = home.project_contents
    for recorded, current in contents.names_met():
        target = recorded if recorded in pages else home.files.name_now(recorded)
        if target in pages and target != current:
            contents.move_sessions(recorded, current, target)
    for project, folder, branch in contents.places():
        if project and not {project, home.files.name_now(project)} & pages:
            place = locate(folder, None, branch, home.settings.user_home)
            if owner := known_project(home, place):
                contents.move_sessions_of_folder(folder, project, owner)


def _project_of_handoff(home: Home, handoff: Handoff) -> str:
    names = [
        stored.project
        for stored in home.sessions.find(handoff.session)
        if stored.session.id == handoff.session
    ]
    return (names[0] if names else None) or home.files.name_now(handoff.project)


def resolve_project(
    home: Home, session: Session, *, create: bool = True, run: Run | None = None
) -> str | None:
    """Return the slug of a session's project, or ``None``. A new project gets a page.

    The session's label, git remote or folder decides. All worktrees and clones of a repository
    belong to one project, and a new project is named after its repository or folder.
    """
    if session.label:
        configured = home.settings["projects.labels"].get(session.label)
        if configured:
            return home.files.name_now(slugify(configured)) or None
        slug = home.files.project_by("label", session.label) or home.files.project_by(
            "alias", session.label
        )
        if slug:
            return slug
    place = _place_of(home, session)
    slug = known_project(home, place)
    if not create or (slug and not _has_new_location(home, slug, place)):
        return slug
    return _make(home, place, session.label, run)


def likely_project(home: Home, session: Session) -> str | None:
    """Return a session's project, or the name that it would get if it were created."""
    slug = resolve_project(home, session, create=False)
    return slug or _slug(home, _place_of(home, session)) or None


def _place_of(home: Home, session: Session) -> Place:
    return locate(session.cwd, session.repository, session.branch, home.settings.user_home)


def project_of_work(home: Home, folder: Path) -> str | None:
    """Return the project of a folder, or ``None`` for a home folder or a generic folder name.

    A new project gets a page, unless another process is writing. Raises StoreBusyError.
    """
    place = locate(str(folder))
    existing, slug = known_project(home, place), _slug(home, place)
    if existing or not slug:
        return existing
    with home.vault_lock.if_free() as is_ours:
        if not is_ours and slug not in home.files.slugs():
            return slug
        return _make(home, place)


def known_or_named(home: Home, folder: Path) -> str | None:
    """Return a folder's project, or the name that it would get if it were created.

    A home folder or a generic folder name has no project.
    """
    return likely_project(home, Session("", "", cwd=str(folder)))


def write_new_page(run: Run, path: str, document: str) -> bool:
    """Write a new page of a project or the owner. Return False if its path is invalid or taken."""
    slug = path.split("/")[1] if path.startswith("projects/") else ""
    if slug and (slugify(slug) != slug or path != page_path(slug)):
        return False
    with run.part() as change:
        home = change.home
        if home.vault.exists(path) or home.files.pending_document(path) is not None:
            return False
        change.intend([Intent("write", path, document, None)])
    return True


def _has_new_location(home: Home, slug: str, place: Place) -> bool:
    if is_home(place.root or "", home.settings.user_home) or not (
        place.is_repository or place.remote
    ):
        return False
    keys = home.files.project_keys()
    if sum(name == "root" and owner == slug for name, _, owner in keys) >= _MAX_ROOTS:
        return False
    listed_keys = {
        (name, normalise_remote(value) if name == "remote" else value) for name, value, _ in keys
    }
    current = (("root", place.root), ("root", place.worktree), ("remote", place.remote))
    return any(value and (name, value) not in listed_keys for name, value in current) or (
        _first_commit(home, place) is not None
        and not any((name, owner) == ("commit", slug) for name, _, owner in keys)
    )


def _slug(home: Home, place: Place) -> str:
    # The slug may already be taken. It is empty for a home folder or a generic folder name.
    slug = slugify(_name(place.remote) or _name(place.root) or "")
    if is_home(place.root or "", home.settings.user_home):
        return ""
    if place.is_repository or place.remote:
        return slug
    is_shared = slug in CONTAINERS or home.project_contents.is_shared(place.root or "")
    return "" if is_shared else slug


def _first_commit(home: Home, place: Place) -> str | None:
    if not place.root or not os.path.exists(os.path.join(place.root, ".git", "logs", "HEAD")):
        return None
    return _root_commit(place.root, home.settings.environ.get("PATH", ""))


@functools.cache
def _root_commit(root: str, path: str) -> str | None:
    program = git.GitProgram(Path(root), {"PATH": path} if path else {})
    try:
        output = program.run("rev-list", "--max-parents=0", "HEAD", timeout=5)
    except NacreError:
        return None
    return to_text(output).split()[-1]


def _moved_project(home: Home, place: Place) -> str | None:
    commit = _first_commit(home, place)
    matches = (
        slug
        for kind, value, slug in home.files.project_keys()
        if (kind, value) == ("commit", commit)
        or (kind == "root" and os.path.isdir(value) and os.path.realpath(value) == place.root)
    )
    return next((slug for slug in matches if not _is_namesake(home, slug, place)), None)


def _make(home: Home, place: Place, label: str | None = None, run: Run | None = None) -> str | None:
    slug = _slug(home, place)
    with part_of(home, run, "project") as change:
        project = known_project(home, place)  # another process may have created it
        existing = home.files.slugs()
        if project is None and slug:
            called = slug if slug in existing else home.files.name_now(slug)
            project = _moved_project(home, place) or called
            if project not in existing or _is_namesake(home, project, place):
                slug = numbered(
                    slug,
                    lambda free: (
                        free in existing
                        or home.files.name_now(free) != free
                        or home.vault.exists(page_path(free))
                    ),
                )
                _extend(change, slug, place, _name(place.remote) or _name(place.root), label)
                return slug
            if place.exists or not is_repository(home, project):
                _extend(change, project, place)
        elif project and _has_new_location(home, project, place):
            _extend(change, project, place)
        return project


def _extend(
    change: Change,
    slug: str,
    place: Place,
    name: str | None = None,
    label: str | None = None,
    *,
    is_tied: bool = False,
) -> None:
    home = change.home
    try:
        page = read_page(home, slug)
    except InvalidMemoryError:
        return
    slugs = {project.id: project.slug for project in home.files.projects()}
    is_first = (place.is_repository or place.remote) and not is_repository(home, slug)
    values = page.values if page else {"id": "", "name": name or slug, **{key: [] for key in LISTS}}
    places = {
        "remotes": [place.remote],
        "roots": [place.root, place.worktree],
        "commits": [_first_commit(home, place)],
        "labels": [label],
    }
    changed: documents.Values = {}
    for key, values_met in places.items():
        present = listed = list_of(values, key)
        if key == "roots" and is_first and not is_tied:
            # Deleted folders have only the repository's name, which several repositories can have.
            present = [root for root in listed if root == place.root or os.path.isdir(root)]
        listed_values = {
            *present,
            *map(normalise_remote, present if key == "remotes" else ()),
        }
        new = [value for value in values_met if value and value not in listed_values]
        if new or present != listed:
            changed[key] = [*present, *new]
    if slugs.get(str(values.get("id") or slug), slug) != slug or not values.get("id"):
        # A page without an id, or with another page's id, is indexed by its folder. It gets a new
        # id here.
        project_id = next(
            (key for key, folder in slugs.items() if folder == slug and key != slug), None
        )
        changed["id"] = project_id or home.ids()
    if not changed:
        return
    values = {**values, **changed}
    document = (
        f"---\n{documents.merge(page.front, changed, [])}---\n{page.body}"
        if page
        else f"---\n{documents.dump(values)}---\n# {values['name']}\n"
    )
    change.describe(subject=str(values.get("name") or slug))
    with change.transaction():
        change.intend([Intent("write", page_path(slug), document, page.hash if page else None)])
        index_page(home, Project(str(values["id"]), slug, 0), values)


def page_path(slug: str) -> str:
    """Return the path of a project's page in the vault."""
    return f"projects/{slug}/project.md"


def _parse(data: bytes) -> Page:
    text = to_text(data)
    front, body = documents.split(text)
    return Page(text, front or "", documents.load(front or ""), body, bytes_hash(data))


def read_page(home: Home, slug: str) -> Page | None:
    """Return a project's page, or ``None`` if it is missing. A pending write counts as written.

    Raises InvalidMemoryError if the page cannot be parsed.
    """
    pending = home.files.pending_document(page_path(slug))
    if pending is not None:
        return _parse(to_bytes(pending))
    try:
        return _parse(home.vault.read(page_path(slug)))
    except FileNotFoundError:
        return None


def page_text(home: Home, slug: str, *, own: bool = False) -> str:
    """Return a project's page without front matter and title, or an empty string.

    Lines that nacre wrote are omitted if they are outdated or if ``own`` is True.
    """
    try:
        page = read_page(home, slug)
    except (InvalidMemoryError, UnusableVaultError, OSError):
        return ""
    if page is None or page.values.get("trust") == "untrusted":
        return ""
    facts = [
        f"{name}: {page.values[name]}"
        for name in ("description", "goal", "status")
        if page.values.get(name)
    ]
    body = (
        hosts_files.drop_blocks(page.body)
        if own
        else home_projects.without_what_is_over(home, page.body)
    )
    lines = [line for line in body.strip().splitlines() if not line.startswith("# ")]
    return home.redactor.clean("\n".join([*facts, *lines]).strip())


def page_keys(home: Home, slug: str) -> set[tuple[str, str]]:
    """Return the (kind, value) pairs, such as git remotes, by which a page identifies its project.

    Raises FileNotFoundError, or InvalidMemoryError if the page cannot be parsed.
    """
    return set(_keys(slug, _parse(home.vault.read(page_path(slug))).values))


def index_page(home: Home, project: Project, values: documents.Values) -> None:
    """Index a project with the front matter values of its page."""
    with home.transaction():
        home.files.save_project(
            project, _keys(project.slug, values), list_of(values, "dependencies")
        )


def _keys(slug: str, values: documents.Values) -> list[tuple[str, str]]:
    keys = [(key, str(value)) for name, key in LISTS.items() for value in list_of(values, name)]
    name_keys = [("alias", str(values["name"]))] if values.get("name") else []
    return [("alias", slug), *keys, *name_keys]


def list_of(values: documents.Values, name: str) -> list[str]:
    """Return a front matter value as a list. A single value becomes a list of one."""
    value = values.get(name) or []
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _is_namesake(home: Home, slug: str, place: Place) -> bool:
    # A deleted folder could belong to any of several repositories with its name.
    if is_fork(home, slug, place):
        return True
    if not (place.exists or place.remote):
        owners = {
            owner
            for kind, value, owner in home.files.project_keys()
            if kind in ("remote", "root") and _name(value) == _name(place.root)
        }
        return sum(is_repository(home, owner) for owner in owners) > 1
    folder = os.path.realpath(place.root) if place.root and os.path.isdir(place.root) else None
    return folder is not None and any(
        (kind, owner) == ("root", slug) and os.path.isdir(root) and os.path.realpath(root) != folder
        for kind, root, owner in home.files.project_keys()
    )


def _name(path: str | None) -> str | None:
    return one_line(last_part(path or ""))[:_MAX_NAME_CHARACTERS] or None


# -- Replacing a home ----------------------------------------------------------
#
# The replacement has two steps. After a crash between them, opening the home completes it.


def put_in_place(fresh: Path, home: Path) -> Path | None:
    """Replace a home with the complete home ``fresh`` while no other process writes to either.

    Return the folder that now holds the previous home, if any.
    """
    ready = _staging_path(home)
    if ready.exists():
        shutil.rmtree(ready)  # left by a restore that was interrupted before the swap
    aside = (
        _backup_path(home) if home.exists() and (not home.is_dir() or any(home.iterdir())) else None
    )
    with (
        locks.FileLock(home / "vault.lock") if aside and home.is_dir() else contextlib.nullcontext()
    ):
        fresh.rename(ready)
        try:
            if aside:
                home.rename(aside)
            elif home.exists():
                home.rmdir()
            ready.rename(home)
        except OSError:
            if aside and not home.exists():
                aside.rename(home)
            ready.rename(fresh)
            raise
    return aside


def finish(home: Path) -> bool:
    """Complete an interrupted :func:`put_in_place`, and return True if there was one."""
    if home.exists() or not _staging_path(home).is_dir():
        return False
    _staging_path(home).rename(home)
    return True


def _staging_path(home: Path) -> Path:
    return home.with_name(f".{home.name}.restored")


def _backup_path(home: Path) -> Path:
    name = numbered(f"{home.name}.before-restore", lambda free: home.with_name(free).exists())
    return home.with_name(name)


# -- Pinned answers ------------------------------------------------------------
#
# ``pinned.txt`` in the vault has one line ``question => phrase in the answer`` for each pin.


PINNED = "pinned.txt"
_ARROW = "=>"


@frozen
class Pin:
    """A question, with a phrase that its answer must contain."""

    question: str
    answer: str

    def is_in(self, text: str) -> bool:
        """Return True if an answer contains the expected phrase."""
        return normalise(self.answer) in normalise(text)


def pin_in(line: str) -> Pin | None:
    """Parse a line of the pins file, or return ``None`` for any other line."""
    question, _, answer = (part.strip() for part in line.partition(_ARROW))
    return Pin(question, answer) if question and answer and question[0] != "#" else None


def read_pins(home: Home) -> list[Pin]:
    """Return all pins. An unreadable file is added to ``home.problems``."""
    try:
        lines = _read_pinned(home).splitlines()
    except NacreError as error:
        home.problems.append(error.message)
        return []
    return [pin for pin in map(pin_in, lines) if pin]


def write_pins(change: Change, is_dropped: Callable[[Pin], bool], *added: Pin) -> bool:
    """Remove and add pins in the file, and return True if it changed. Other lines are kept."""
    before = _read_pinned(change.home)
    remaining_lines = [
        line for line in before.splitlines() if not ((pin := pin_in(line)) and is_dropped(pin))
    ]
    lines = [*remaining_lines, *(f"{pin.question} {_ARROW} {pin.answer}" for pin in added)]
    is_changed = lines != before.splitlines()
    if is_changed:
        base = bytes_hash(to_bytes(before)) if before else None
        text = "\n".join([*lines, ""]) if lines else None
        action = "write" if text else "remove"
        change.intend([Intent(action, PINNED, text, base, former=before or None)])
    return is_changed


def _read_pinned(home: Home) -> str:
    return to_text(home.vault.read(PINNED)) if home.vault.exists(PINNED) else ""


# -- Operations on projects and pages ------------------------------------------


HERE = "."
_PROFILE = "profile.md"


@operation("place", by_key=True)
def place(
    home: Home,
    *,
    name: Annotated[str | None, bounds("The name, slug or alias of a project.")] = None,
    folder: Annotated[str | None, bounds("A folder of the project.")] = None,
) -> views.Place:
    """Return the project that has a name or contains a folder. No project is created."""
    slugs = tuple(projects(home))
    if name in (None, "", HERE):
        # A client with a key works on another machine.
        folder = None if home.actor.bearer else folder
        slug = project_of_folder(home, folder)
        return views.Place(
            slug, slugs, namesake=_namesake(home, folder, slugs) if folder and not slug else None
        )
    slug = project_called(home, name or "", slugs)
    return views.Place(slug, slugs, slug in slugs)


@operation("project-tie", writes=True, owners=True)
def tie(
    home: Home,
    project: Annotated[str, bounds("The name, slug or alias of a known project.")],
    folder: Annotated[str, bounds("The folder.")],
) -> views.Place:
    """Assign a folder, or its repository, to a project.

    Raises NotFoundError, InvalidInputError for a folder that contains many projects, ConflictError
    if the folder belongs to another project, InvalidMemoryError if the project's page cannot be read.
    """
    slugs = tuple(projects(home))
    slug = project_called(home, project, slugs)
    if slug not in slugs:
        raise NotFoundError(
            f"there is no project {project!r}",
            hint=f"known: {', '.join(slugs) or 'none yet'}; a project is created by its first memory or session",
        )
    place = locate(os.path.abspath(folder))
    if (
        not place.root
        or not _slug(home, place)
        or home.settings.user_home.is_relative_to(place.root)
    ):
        raise InvalidInputError(
            f"{folder} contains more than one project", hint="use the project's own folder"
        )
    read_pages(home)
    read_page(home, slug)
    with home.change("project") as change:
        owner = known_project(home, place)
        if owner is None:
            _extend(change, slug, place, is_tied=True)
        elif owner != slug:
            raise ConflictError(
                f"{place.root} belongs to the project {owner}",
                hint=f"first remove it from the remotes or roots in {page_path(owner)} in the vault",
            )
    return views.Place(slug, slugs)


def _namesake(home: Home, folder: str, slugs: tuple[str, ...]) -> str | None:
    name = _slug(home, locate(folder))
    slug = project_called(home, name, slugs) if name else None
    return slug if slug in slugs else None


def project_called(home: Home, name: str, slugs: tuple[str, ...] | list[str]) -> str:
    """Return the slug of the project with this name or alias, even if no such project exists."""
    slug = slugify(home.redactor.clean(name))
    if name in slugs:
        return name
    by_alias = home.files.project_by("alias", name)
    return by_alias or next((other for other in slugs if slugify(other) == slug), slug)


# -- Excluded sessions ---------------------------------------------------------


class Exclusions:
    """The ``ingest.exclude*`` settings. Excluded sessions are not stored and create no project.

    Sessions stored before they were excluded are hidden.
    """

    def __init__(self, settings: Settings) -> None:
        self.tools = frozenset(settings.texts("ingest.exclude_tools"))
        self._files = settings.texts("ingest.exclude")
        self._projects = tuple(name.lower() for name in settings.texts("ingest.exclude_projects"))
        self._paths = tuple(
            _expand(path, settings.user_home) for path in settings.texts("ingest.exclude_paths")
        )

    def reason(self, home: Home, session: Session) -> str | None:
        """Return why a session must not be stored, or ``None`` if it may be stored.

        The reason is ``path``, ``project``, or ``id`` for an invalid session id.
        """
        if not schema.fits_index(session.native_id):
            return "id"
        return self._reason(session, lambda: resolve_project(home, session, create=False))

    def leave_out(self, stored: StoredSession) -> bool:
        """Return True if the current settings exclude a session that is already stored."""
        session, file = stored.session, stored.file
        if session.tool in self.tools or (
            file and any(fnmatch.fnmatch(file, pattern) for pattern in self._files)
        ):
            return True
        return self._reason(session, lambda: stored.project) is not None

    def name(self, project: str) -> bool:
        """Return True if the settings exclude all sessions of a project."""
        return any(fnmatch.fnmatchcase(project.lower(), pattern) for pattern in self._projects)

    def _reason(self, session: Session, project: Callable[[], str | None]) -> str | None:
        if session.cwd and self._paths and self._is_below(session.cwd):
            return "path"
        if self._projects and any(map(self.name, _names(session, project()))):
            return "project"
        return None

    def _is_below(self, folder: str) -> bool:
        parts = re.split(r"[\\/]", folder.rstrip("\\/"))
        paths = ["/".join(parts[:end]) or "/" for end in range(1, len(parts) + 1)]
        return any(fnmatch.fnmatchcase(path, pattern) for path in paths for pattern in self._paths)


def _names(session: Session, project: str | None) -> list[str]:
    folder = re.split(r"[\\/]", (session.cwd or "").rstrip("\\/"))[-1]
    names = [project, session.label, folder, slugify(folder) if folder else None]
    return [name for name in names if name]


def _expand(path: str, home: Path) -> str:
    if path == "~" or path.startswith(("~/", "~\\")):
        path = f"{home}{path[1:]}"
    return path.replace("\\", "/").rstrip("/") or "/"
