"""Changes of the vault. Each is the vault lock, one operation, and what it intends.

One transaction records what is to be written, whole, beside the index rows: from that commit on a memory is durable.
Then the files are written and the intents cleared. What a crash leaves is completed when the home is opened next.

The lock is held from reading what a change builds on until its files are written: another process never sees a row
whose file is still to come. An operation stays in the journal until git has it.
"""

from __future__ import annotations

import contextlib
import fnmatch
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from msgspec import Meta

from nacre.base import files as private_files
from nacre.base import json as json_text
from nacre.base.ids import bytes_hash
from nacre.base.locks import FileLock
from nacre.base.request import Request
from nacre.base.text import one_line
from nacre.errors import (
    Conflict,
    EditConflict,
    InvalidInput,
    MayBeStored,
    MemoryInvalid,
    NotFound,
    StoreUnusable,
    Unavailable,
    VaultUnusable,
)
from nacre.home.home import Home
from nacre.home.location import (
    Place,
    clean_values,
    known_project,
    locate,
    project_of_folder,
    projects,
    with_former_names,
    without_secrets,
)
from nacre.home.operations import OpenOperation, apply_intents, new_path, write_memory
from nacre.home.projects import without_what_is_over
from nacre.home.views import Place as views_Place
from nacre.hosts.files import drop_blocks
from nacre.settings import Settings
from nacre.store.schema import fits_index
from nacre.values.codec import plain
from nacre.values.memory import Intent, Memory, Project, SeenMemoryFile
from nacre.values.session import Handoff, Session, StoredSession
from nacre.vault import files
from nacre.vault.documents import adjust, dump, load, merge, render, rewrite, split
from nacre.vault.files import LEDGER, folder_of, normalise_remote, slugify

BATCH = 500
"""Memories of one transaction, at most."""

FEW = 20
"""So many memories that are written together are there all or none after a crash, however slow the machine is; more
may stand for a while as some of them."""


class Change:
    """One change of the vault. Its methods write; who has one holds the vault lock.

    Each method is a transaction of its own, or part of the one that is open.
    """

    def __init__(self, home: Home, operation: OpenOperation, *, is_part: bool) -> None:
        self.home = home
        self._operation = operation
        self._is_part = is_part

    @property
    def operation_id(self) -> str:
        """The id of the operation that the change is, or belongs to."""
        return self._operation.operation.id

    @property
    def at(self) -> datetime:
        """When that operation began."""
        return self._operation.operation.at

    def describe(
        self, *, action: str | None = None, subject: str | None = None, why: str | None = None
    ) -> None:
        """Set what the operation is, what it is about, and its reason, where they are known only under the lock.

        For before the first entry or write. A part of a run is called what the run is.
        """
        if not self._is_part:
            self._operation.describe(action, subject, why)

    def explain(self, why: str | None) -> None:
        """Set the reason of what was written, unless it was given before."""
        self._operation.explain(why)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that the change writes: it is there as a whole or not at all, and the operation ends with it.

        A long one is several transactions (:meth:`yield_locks`).
        """
        with self.home.database.transaction():
            yield
            if not self._is_part:
                self._operation.close()

    def entry(self, action: str, **details: object) -> files.LedgerEntry:
        """An entry for the ledger, without secrets: its details may quote the owner."""
        values = clean_values(self.home.redactor, details)
        return files.LedgerEntry(self.operation_id, self.home.now(), action, values)

    def intend(self, intents: Iterable[Intent], *, applied: bool = False) -> None:
        """Record writes of files. ``applied``: they are in their files already, and go to the journal only."""
        self._operation.record(intents, applied=applied)

    def append(self, entries: Iterable[files.LedgerEntry]) -> None:
        """Append entries to the ledger."""
        self.intend([Intent("append", LEDGER, entry.line()) for entry in entries])

    def put(self, memories: Sequence[Memory], entries: Sequence[files.LedgerEntry] = ()) -> None:
        """Write memories, new or changed, and ledger entries. Raises EditConflict.

        Up to 20 memories are one transaction; more of them several, each of 500 at most, which let others write. The
        entries go with the last one. EditConflict: a file changed since the index last saw it.
        """
        home = self.home
        for start in range(0, max(1, len(memories)), BATCH):
            with home.database.transaction():
                for memory in memories[start : start + BATCH]:
                    written, intents = self._writes_of(memory)
                    self.intend(intents)
                    home.memories.put(written)
                    if len(memories) > FEW:
                        home.database.yield_write_lock()
                if start + BATCH >= len(memories):
                    self.append(entries)

    def set_importance(self, memory: Memory, note: files.LedgerEntry) -> None:
        """Write a new importance: the one line of front matter that says it, the index, the ledger.

        The rest of the file stays as it is, also ``updated``. Raises EditConflict.
        """
        with self.home.database.transaction():
            if self._adjust(memory, {"importance": memory.importance}):
                self.append([note])
                self.home.memories.set_importance(memory.id, memory.importance)

    def set_claim(self, memory: Memory) -> None:
        """Write the claim of a memory: its one line of front matter, and the index. Raises EditConflict."""
        with self.home.database.transaction():
            if memory.claim and self._adjust(memory, {"claim": plain(memory.claim)}):
                self.home.memories.set_claim(memory.id, memory.claim)

    def set_links(self, memory: Memory) -> None:
        """Write the links of a memory: the one line of front matter that says them, and the index. Raises EditConflict.

        The rest of the file stays as it is, also ``updated``; the memory keeps its vectors.
        """
        with self.home.database.transaction():
            if self._adjust(memory, {"links": plain(memory.links)}, gives_way=False):
                self.home.memories.set_links(memory)

    def remove(self, memory: Memory) -> None:
        """Delete a memory: its file and its row. Its words stay in the journal and in the history.

        Raises EditConflict.
        """
        home = self.home
        with home.database.transaction():
            file = home.files.file_of(memory.id)
            text = _present_text(home, file) if file else None
            if file:
                home.files.forget(file.path)
                base = file.hash if text is not None else None
                former = without_secrets(home.redactor, text)
                self.intend(
                    [Intent("remove", file.path, base=base, memory=memory.id, former=former)]
                )
            home.memories.delete(memory.id)

    def apply(self) -> None:
        """Write the files of what was recorded so far; the change ends with it anyway."""
        self.keep_open()
        apply_intents(self.home)

    def keep_open(self) -> None:
        """Go on while another change ends: what is recorded would count as an operation that a crash left open."""
        if self._operation.is_recorded:
            self._operation.hold()

    def yield_locks(self, first: Callable[[], object] | None = None) -> bool:
        """Between two parts of a long transaction that may each stand alone: let others write.

        Where it lasted long enough, ``first`` completes what was written so far, all of it reaches its files, and
        whoever waits for the database or the vault has a turn; the operation goes on. Returns whether another wrote:
        what was read of the vault may have changed then. Where the transaction is part of another one, nothing happens.
        """

        def between() -> None:
            self.apply()
            self.home.vault_lock.let_others()

        return self.home.database.yield_write_lock(first, between)

    def _adjust(self, memory: Memory, values: dict[str, object], *, gives_way: bool = True) -> bool:
        """Write single values of front matter; ``False`` where the memory has no file.

        Where a person changes the file in that moment, theirs stays; what does not give way is kept beside it.
        """
        home = self.home
        file = home.files.file_of(memory.id)
        text = _present_text(home, file) if file else None
        if file is None or text is None:
            return False
        write = write_memory(home, file.path, adjust(text, values), file.hash, memory)
        action = "adjust" if gives_way else write.action
        self.intend([replace(write, action=action, former=without_secrets(home.redactor, text))])
        return True

    def _writes_of(self, memory: Memory) -> tuple[Memory, list[Intent]]:
        """A memory as it is to be, and the writes that bring its file up to it: none where it says just that; where its
        folder is another one now, the file moves. Names that others link it by stay its names."""
        home = self.home
        file = home.files.file_of(memory.id)
        if file is None:
            return memory, [
                write_memory(home, new_path(home, memory), render(memory), None, memory)
            ]
        text = _present_text(home, file)
        base = file.hash if text is not None else None
        former = without_secrets(home.redactor, text)
        stays = str(PurePosixPath(file.path).parent) == folder_of(memory)
        path = file.path if stays else new_path(home, memory)
        memory = with_former_names(home, memory, path)
        document = rewrite(text, memory) if text is not None else render(memory)
        if stays and document == text:
            return memory, []
        if stays:
            return memory, [
                replace(write_memory(home, path, document, base, memory), former=former)
            ]
        home.files.forget(file.path)
        return memory, [
            write_memory(home, path, document, None, memory),
            Intent("remove", file.path, base=base, memory=memory.id, former=former),
        ]


class Run:
    """A long operation in parts, between which others write."""

    def __init__(self, home: Home, operation: OpenOperation) -> None:
        self._home = home
        self._operation = operation

    @contextmanager
    def part(self) -> Iterator[Change]:
        """A change that belongs to the run; whoever waits for the vault lock goes first."""
        self._home.vault_lock.give_way()
        with self._home.vault_lock:
            yield Change(self._home, self._operation, is_part=True)
            _apply_outside_transaction(self._home)


@contextmanager
def change(
    home: Home, action: str, *, subject: str | None = None, why: str | None = None
) -> Iterator[Change]:
    """See :meth:`nacre.home.home.Home.change`."""
    operation = OpenOperation(home, action, subject=subject, why=why, op=None, is_long=False)
    with home.vault_lock:
        try:
            yield Change(home, operation, is_part=False)
            operation.close()
            _apply_outside_transaction(home)
        except (Unavailable, StoreUnusable) as error:
            if _is_durable(home, operation):
                hint = "free some space; look whether it is there before you repeat it"
                raise MayBeStored(
                    f"it may have been stored, although {error.message}", hint=hint
                ) from error
            raise
        finally:
            operation.release()


def _is_durable(home: Home, operation: OpenOperation) -> bool:
    """Tell whether a failed operation is in the journal: then the next command writes its files."""
    if not operation.is_recorded or home.database.is_in_transaction:
        return False
    try:
        return home.journal.find(operation.operation.id) is not None
    except (Unavailable, StoreUnusable):
        return True


@contextmanager
def run(
    home: Home,
    action: str,
    *,
    subject: str | None = None,
    why: str | None = None,
    op: str | None = None,
) -> Iterator[Run]:
    """See :meth:`nacre.home.home.Home.run`."""
    operation = OpenOperation(home, action, subject=subject, why=why, op=op, is_long=True)
    try:
        yield Run(home, operation)
        if operation.is_recorded:
            with home.vault_lock:
                operation.close()
                apply_intents(home)
    finally:
        operation.release()


def part_of(
    home: Home, run: Run | None, action: str, *, subject: str | None = None, why: str | None = None
) -> AbstractContextManager[Change]:
    """A part of a run; a change of its own where there is none."""
    return run.part() if run else change(home, action, subject=subject, why=why)


def _apply_outside_transaction(home: Home) -> None:
    """No file is written while a transaction is open: whoever opened it applies what was intended."""
    if not home.database.is_in_transaction:
        apply_intents(home)


def _present_text(home: Home, file: SeenMemoryFile) -> str | None:
    """What a memory's file says now; a write that is still pending counts as done."""
    pending = home.files.pending_document(file.path)
    if pending is not None:
        return pending
    try:
        data = home.vault.read(file.path)
    except FileNotFoundError:
        return None
    if bytes_hash(data) != file.hash:
        raise EditConflict(
            f"{file.path} was changed while nacre worked on it",
            hint="repeat the command: it reads the new version",
        )
    return data.decode("utf-8", errors="replace")


# ----------------------------------------------------------------------------
# Projects: what a session's folder, remote or label resolves to. ``projects/<slug>/project.md`` is
# the truth.


LISTS = {"remotes": "remote", "roots": "root", "labels": "label", "aliases": "alias"}
"""What a page lists as the project's, and what one of each is called."""

_NOT_PROJECTS = frozenset(
    {"", "home", "root", "tmp", "users", "src", "projects", "workspace", "code", "desktop"}
)


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
        present = {
            slug: seen_ns for slug, seen_ns in present.items() if page_path(slug) not in awaited
        }
    for slug in known.keys() - present.keys():
        _forget(home, slug)
    read = _read_changed(home, known, present)
    with home.database.transaction() if read else nullcontext():
        held = (
            {(slug, key, value) for key, value, slug in home.files.project_keys()}
            if len(read) > 1
            else set()
        )
        for project, values in (
            read if len(read) > 1 else ()
        ):  # what one page lists no more, another may: in any order
            still = [key for key in _keys(project.slug, values) if (project.slug, *key) in held]
            home.files.save_project(project, still)
        for project, values in read:
            index_page(home, project, values)
    if read or not known.keys() <= present.keys():
        follow_pages(home)


def _read_changed(
    home: Home, known: Mapping[str, Project], present: Mapping[str, int]
) -> list[tuple[Project, dict[str, Any]]]:
    read = []
    taken = {project.id: slug for slug, project in known.items() if slug in present}
    for slug, seen_ns in present.items():
        if slug in known and known[slug].mtime_ns == seen_ns:
            continue
        try:
            if not slug.isprintable():
                raise MemoryInvalid(
                    "the folder's name holds characters that cannot be shown; rename it"
                )
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
    found = [
        one.project
        for one in home.sessions.find(handoff.session)
        if one.session.id == handoff.session
    ]
    return (found[0] if found else None) or home.files.name_now(handoff.project)


def _shown(path: str) -> str:
    return path if path.isprintable() else ascii(path)[1:-1]


def resolve_project(
    home: Home, session: Session, *, create: bool = True, run: Run | None = None
) -> str | None:
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
        found = home.files.project_by("label", session.label) or home.files.project_by(
            "alias", session.label
        )
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
    if (
        not place.root
        or not _slug(home, place)
        or home.settings.user_home.is_relative_to(place.root)
    ):
        raise InvalidInput(
            f"{folder} holds more than one project", hint="tie the project's own folder"
        )
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
    known = {
        (name, normalise_remote(value) if name == "remote" else value) for name, value, _ in keys
    }
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
    while (
        slug in existing or home.files.name_now(slug) != slug or home.vault.exists(page_path(slug))
    ):
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


def _write_page(
    change: Change, slug: str, values: dict[str, Any], document: str, *, base: bytes | None
) -> None:
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
        if home.files.pending_document(page_path(slug)) is None and not home.vault.exists(
            page_path(slug)
        ):
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
    told = [
        f"{name}: {page.values[name]}"
        for name in ("description", "goal", "status")
        if page.values.get(name)
    ]
    body = drop_blocks(page.body) if own else without_what_is_over(home, page.body)
    lines = [line for line in body.strip().splitlines() if not line.startswith("# ")]
    return home.redactor.clean("\n".join([*told, *lines]).strip())


def page_keys(home: Home, slug: str) -> set[tuple[str, str]]:
    """What a project's page says resolves to it. Raises FileNotFoundError, MemoryInvalid."""
    return set(_keys(slug, _parse(home.vault.read(page_path(slug))).values))


def index_page(home: Home, project: Project, values: dict[str, Any]) -> None:
    """Have the index know a project by what its page says."""
    with home.database.transaction():
        home.files.save_project(
            project, _keys(project.slug, values), listed(values, "dependencies")
        )


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
    return any(
        os.path.isdir(root) and os.path.realpath(root) != here
        for root in _facts(home, slug, "roots")
    )


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


# ----------------------------------------------------------------------------
# A home takes the place of another, in two steps; after a crash between them, who opens it next takes
# the second.


def put_in_place(fresh: Path, home: Path) -> Path | None:
    """Let ``fresh``, which is whole, take the home's place while nobody writes there.

    Returns where the home before it is kept, beside it; ``None`` where there was none, or an empty folder.
    """
    ready = _ready(home)
    if ready.exists():
        shutil.rmtree(ready)  # of a restore that was cut short before it touched the home
    aside = _aside(home) if home.exists() and (not home.is_dir() or any(home.iterdir())) else None
    with FileLock(home / "vault.lock") if aside and home.is_dir() else contextlib.nullcontext():
        fresh.rename(ready)
        try:
            _give_way(home, aside)
            ready.rename(home)
        except OSError:
            if aside and not home.exists():
                aside.rename(home)
            ready.rename(fresh)
            raise
    return aside


def finish(home: Path) -> bool:
    """Take the second step where the first was taken and the home is away; returns whether it was."""
    if home.exists() or not _ready(home).is_dir():
        return False
    _ready(home).rename(home)
    return True


def _give_way(home: Path, aside: Path | None) -> None:
    if aside:
        home.rename(aside)
    elif home.exists():
        home.rmdir()


def _ready(home: Path) -> Path:
    """Where a whole home waits: one that is not whole never has this name."""
    return home.with_name(f".{home.name}.restored")


def _aside(home: Path) -> Path:
    aside = home.with_name(f"{home.name}.before-restore")
    number = 1
    while aside.exists():
        number += 1
        aside = home.with_name(f"{home.name}.before-restore-{number}")
    return aside


# ----------------------------------------------------------------------------
# The file of answers that ``nacre eval`` keeps to compare with: it quotes memories.


def baseline_file(home: Home) -> Path:
    """Where the baseline is."""
    return home.settings.home / "eval-baseline.json"


def forget_in_baseline(home: Home, memory_ids: Collection[str]) -> None:
    """Take forgotten memories out of the kept answers; a file that holds none of them stays as it is."""
    file = baseline_file(home)
    try:
        kept = json_text.parse(file.read_bytes())
        found = [answer["results"] for answer in kept["queries"]]
        left = [[one for one in results if one["id"] not in memory_ids] for results in found]
    except (OSError, ValueError, TypeError, KeyError):
        return
    if left != found:
        for answer, results in zip(kept["queries"], left, strict=True):
            answer["results"] = results
        write_json(file, kept)


def write_json(file: Path, value: object) -> None:
    """Write a value readable by the owner alone: queries and answers tell a lot."""
    private_files.write_file(file, f"{json.dumps(value, ensure_ascii=False, indent=2)}\n")


# ----------------------------------------------------------------------------
# Requests about projects and their pages.


class PlaceRequest(Request, frozen=True, kw_only=True):
    """The project that a name means, or, without one or with ``.``, a folder."""

    name: Annotated[str | None, Meta(description="A name, a slug or an alias of a project.")] = None
    folder: Annotated[str | None, Meta(description="A folder of the project.")] = None


class TieRequest(Request, frozen=True, kw_only=True):
    """Make a folder, and the remote of its repository, a project's."""

    project: Annotated[
        str, Meta(description="A name, a slug or an alias of a project that is known.")
    ]
    folder: Annotated[str, Meta(description="The folder.")]


class PageRequest(Request, frozen=True, kw_only=True):
    """The page of a project, or the owner's profile."""

    project: Annotated[
        str | None, Meta(description="The project's slug; without one, the owner's profile.")
    ] = None


# ----------------------------------------------------------------------------
# What is answered to requests about projects and their pages; :mod:`nacre.serve.catalogue` lists them.


HERE = "."
_PROFILE = "profile.md"


def place(home: Home, asked: PlaceRequest) -> views_Place:
    """The project that a name means, or a folder. Nothing is made."""
    known = tuple(projects(home))
    if asked.name in (None, "", HERE):
        folder = (
            None if home.actor.bearer else asked.folder
        )  # who shows a key works on another machine
        found = project_of_folder(home, Path(folder)) if folder else None
        return views_Place(
            found, known, namesake=_namesake(home, folder, known) if folder and not found else None
        )
    found = project_called(home, asked.name or "", known)
    return views_Place(found, known, found in known)


def tie(home: Home, asked: TieRequest) -> views_Place:
    """Make a folder a project's from now on. Raises NotFound, Conflict, InvalidInput, MemoryInvalid."""
    known = tuple(projects(home))
    slug = project_called(home, asked.project, known)
    if slug not in known:
        raise NotFound(f"no project is called {asked.project!r}", hint=_known_projects(known))
    tie_folder(home, slug, Path(asked.folder))
    return views_Place(slug, known)


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
            raise NotFound(
                f"no project is called {asked.project!r}",
                hint="memory_admin with overview names them",
            )
        return home.redactor.clean(page_text(home, asked.project)).strip()
    try:
        text = home.vault.read(_PROFILE).decode("utf-8", errors="replace")
    except (OSError, VaultUnusable):
        return ""
    return home.redactor.clean(without_what_is_over(home, text)).strip()


# ----------------------------------------------------------------------------
# Sessions that the owner does not want read: by tool, by project, by the folder in which they took
# place.


class Exclusions:
    """What ``ingest.exclude``, ``ingest.exclude_tools``, ``ingest.exclude_projects`` and ``ingest.exclude_paths`` say.

    What was read before stays, and is shown to nobody elsewhere; nothing of an excluded session is stored, and no
    project is made for it.
    """

    def __init__(self, settings: Settings) -> None:
        self.tools = frozenset(settings.texts("ingest.exclude_tools"))
        self._files = settings.texts("ingest.exclude")
        self._projects = tuple(name.lower() for name in settings.texts("ingest.exclude_projects"))
        self._paths = tuple(
            _expanded(path, settings.user_home) for path in settings.texts("ingest.exclude_paths")
        )

    def reason(self, home: Home, session: Session) -> str | None:
        """Why a session is not stored: ``path``, ``project``, or ``id`` where nobody could name it; else ``None``."""
        if not fits_index(session.native_id):
            return "id"
        return self._reason(session, lambda: resolve_project(home, session, create=False))

    def leave_out(self, stored: StoredSession) -> bool:
        """Whether a session that was read before would not be read any more."""
        session, file = stored.session, stored.file
        if session.tool in self.tools or (
            file and any(fnmatch.fnmatch(file, one) for one in self._files)
        ):
            return True
        return self._reason(session, lambda: stored.project) is not None

    def name(self, project: str) -> bool:
        """Whether a project is one whose sessions are not read."""
        return any(fnmatch.fnmatchcase(project.lower(), pattern) for pattern in self._projects)

    def _reason(self, session: Session, project: Callable[[], str | None]) -> str | None:
        if session.cwd and self._paths and self._is_below(session.cwd):
            return "path"
        if self._projects and any(map(self.name, _names(session, project()))):
            return "project"
        return None

    def _is_below(self, folder: str) -> bool:
        """Whether a folder, or one around it, matches a pattern."""
        parts = re.split(r"[\\/]", folder.rstrip("\\/"))
        around = ["/".join(parts[:end]) or "/" for end in range(1, len(parts) + 1)]
        return any(fnmatch.fnmatchcase(path, pattern) for path in around for pattern in self._paths)


def _names(session: Session, project: str | None) -> list[str]:
    """What a session's project is called, or would be."""
    folder = re.split(r"[\\/]", (session.cwd or "").rstrip("\\/"))[-1]
    found = [project, session.label, folder, slugify(folder) if folder else None]
    return [name for name in found if name]


def _expanded(path: str, home: Path) -> str:
    """A pattern with ``~`` spelt out and slashes as they are compared."""
    if path == "~" or path.startswith(("~/", "~\\")):
        path = f"{home}{path[1:]}"
    return path.replace("\\", "/").rstrip("/") or "/"
