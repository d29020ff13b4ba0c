"""References in nacre's lines on pages, handoffs, other spaces of a server, and the vault on a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, fields, replace
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from nacre.base import files
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash
from nacre.base.lazy import load
from nacre.errors import (
    EditConflictError,
    InvalidMemoryError,
    NacreError,
    NotAllowedError,
    UnavailableError,
    UnusableStoreError,
)
from nacre.home.home import Home, require_server, standing
from nacre.hosts.files import blocks_of
from nacre.store import postgres
from nacre.values.codec import plain_fields
from nacre.values.memory import Memory
from nacre.values.session import Handoff
from nacre.vault import documents
from nacre.vault.files import (
    FOLDERS,
    LEDGER,
    LISTING,
    MAX_FILE_BYTES,
    OWN_PAGES,
    FileStat,
    is_memory_name,
    parts_of,
)

REFERENCE_CHARACTERS = 8
"""Characters of the end of a memory's id in a line."""

AGENTS = "an agent: "
"""Prefix of the references of a line based on an agent's words."""

_REFERENCES = re.compile(rf"\((?:{AGENTS})?([^()\s]+(?:, [^()\s]+)*)\)$")
_MEMORY_REFERENCE = re.compile(r"[0-9a-f]{8}")
_SESSION_REFERENCE = re.compile(r"[\w.-]+:\S+")


def references_of(line: str) -> tuple[str, ...]:
    """Return the sources named by a line, memories by the end of their ids.

    Empty if it names anything else.
    """
    match = _REFERENCES.search(line)
    names = tuple(match[1].split(", ")) if match else ()
    return (
        names
        if all(_MEMORY_REFERENCE.fullmatch(name) or is_session(name) for name in names)
        else ()
    )


def is_session(reference: str) -> bool:
    """Return True if a reference is a session, not a memory."""
    return bool(_SESSION_REFERENCE.fullmatch(reference))


def as_line(words: str, references: Iterable[str], *, by_agent: bool = False) -> str:
    """Return a line of a page with its references."""
    return f"- {words} ({AGENTS if by_agent else ''}{', '.join(references)})"


def memory_named(home: Home, reference: str) -> Memory | None:
    """Return the memory of a reference in any state, or ``None`` if there is none or more than one."""
    matches = [
        memory for memory in home.memories.find_like(reference) if memory.id.endswith(reference)
    ]
    return matches[0] if len(matches) == 1 else None


def is_current(memory: Memory, today: date) -> bool:
    """Return True if a memory holds on a day and belongs to a settled place."""
    has_ended = (memory.valid.until and memory.valid.until < today) or (
        memory.expires_on and memory.expires_on <= today
    )
    return memory.is_active and not (memory.inbox or has_ended)


def without_what_is_over(home: Home, text: str) -> str:
    """Return a page without nacre's lines based on memories that no longer hold."""
    lines = [
        line for block in blocks_of(text) for line in block.splitlines() if line.startswith("- ")
    ]
    outdated = {line for line in lines if not rests_on_what_holds(home, line)}
    if not outdated:
        return text
    return "".join(
        line for line in text.splitlines(keepends=True) if line.rstrip("\r\n") not in outdated
    )


def rests_on_what_holds(home: Home, line: str) -> bool:
    """Return True if all memories named by a line hold and are vouched for."""
    today = home.today()
    memories = [
        memory_named(home, reference)
        for reference in references_of(line)
        if not is_session(reference)
    ]
    return all(
        memory is not None and memory.is_vouched and is_current(memory, today)
        for memory in memories
    )


# -- Handoffs ------------------------------------------------------------------
#
# Each is a Markdown file ``handoffs/<project>/<id>.md``, moved to ``given`` in that folder once a
# session received it. They are short-lived state, not memories, so no index, history or other
# machine has them. Writers hold the vault lock, and hooks read without it.


FOLDER = "handoffs"
_GIVEN = "given"
_MAX_WAITING, _MAX_BYTES = 20, 1_000_000
_PATH_FIELDS = frozenset({"id", "project", "content"})


class Handoffs:
    """The handoffs of a home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def waiting(self, project: str) -> list[Handoff]:
        """Return a project's pending handoffs, latest first, at most the latest 20."""
        return _read_all(self._folder / project, _MAX_WAITING)

    def of_project(self, project: str) -> list[Handoff]:
        """Return a project's pending and then its given handoffs, each latest first."""
        folder = self._folder / project
        return [*_read_all(folder), *_read_all(folder / _GIVEN)]

    def among(self, project: str, ids: Container[str]) -> list[Handoff]:
        """Return a project's handoffs with some ids, without reading others."""
        folder = self._folder / project
        return [*_read_all(folder, only=ids), *_read_all(folder / _GIVEN, only=ids)]

    def everything(self) -> list[Handoff]:
        """Return the handoffs of all projects, pending before given."""
        return [handoff for project in self._projects() for handoff in self.of_project(project)]

    def damaged(self) -> list[Handoff]:
        """Return unreadable handoffs with their whole text, but without session and writer."""
        folders = (self._folder / project for project in self._projects())
        return [
            handoff
            for folder in folders
            for place in (folder, folder / _GIVEN)
            for handoff in _damaged_in(place)
        ]

    def of_session(self, session: str) -> list[Handoff]:
        """Return the handoffs of a session, pending first."""
        return [handoff for handoff in self.everything() if handoff.session == session]

    def find(self, handoff_id: str) -> Handoff | None:
        """Return the handoff with an id, pending or given."""
        return next((handoff for handoff in self.everything() if handoff.id == handoff_id), None)

    def waits(self, handoff: Handoff) -> bool:
        """Return True if a handoff is still pending."""
        return self._path(handoff).exists()

    def write(self, handoff: Handoff) -> None:
        """Write or replace a handoff atomically.

        A given one is no longer pending. Raises UnusableStoreError.
        """
        path = self._path(handoff)
        values = {
            name: value
            for name, value in plain_fields(handoff).items()
            if value and name not in _PATH_FIELDS
        }
        try:
            files.make_folder(path.parent)
            if handoff.given:
                with suppress(FileNotFoundError):
                    self._path(replace(handoff, given="")).rename(path)
            files.sweep(path.parent)
            files.write_file(path, f"---\n{documents.dump(values)}---\n{handoff.content}\n")
        except OSError as error:
            raise UnusableStoreError(
                f"cannot write {path}: {error.strerror}", hint="is the disk full?"
            ) from error

    def remove(self, handoff: Handoff) -> None:
        """Delete a handoff. Raises UnusableStoreError."""
        path = self._path(handoff)
        try:
            files.sweep(path.parent)
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UnusableStoreError(
                f"cannot delete {path}: {error.strerror}", hint="delete it by hand"
            ) from error

    def follow(self, project_of: Callable[[Handoff], str]) -> None:
        """Move each handoff to its current project."""
        for handoff in self.everything():
            project = project_of(handoff)
            if project != handoff.project:
                self.write(replace(handoff, project=project))
                self.remove(handoff)

    def _projects(self) -> list[str]:
        with suppress(OSError):
            return sorted(folder.name for folder in self._folder.iterdir())
        return []

    def _path(self, handoff: Handoff) -> Path:
        folder = self._folder / handoff.project
        return (folder / _GIVEN if handoff.given else folder) / f"{handoff.id}.md"


def _read_all(
    folder: Path, limit: int | None = None, only: Container[str] | None = None
) -> list[Handoff]:
    """Return the readable handoffs in a folder, latest first."""
    handoffs = []
    with suppress(OSError):
        paths = [path for path in _files(folder) if only is None or path.stem in only]
        for path in sorted(paths, reverse=True)[:limit]:
            with suppress(OSError, InvalidMemoryError, ValueError, KeyError, TypeError):
                handoffs.append(_read(path))
    return sorted(handoffs, key=lambda handoff: (handoff.written, handoff.id), reverse=True)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix == ".md" and path.name[0] != "."]


def _damaged_in(folder: Path) -> Iterator[Handoff]:
    with suppress(OSError):
        for path in sorted(_files(folder)):
            try:
                _read(path)
            except OSError:
                continue
            except (InvalidMemoryError, ValueError, KeyError, TypeError):
                with open(path, "rb", opener=files.open_file) as file:
                    text = file.read(_MAX_BYTES).decode("utf-8", "replace")
                since = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                name, project, recipient = _fields_of_path(path)
                yield Handoff(name, project, "", text.strip(), "", since, since, given=recipient)


def _fields_of_path(path: Path) -> tuple[str, str, str]:
    """Return the fields in a file's path: id, project, and whether it was given."""
    is_given = path.parent.name == _GIVEN and path.parents[2].name == FOLDER
    folder = path.parents[1] if is_given else path.parent
    return path.stem, folder.name, "a session" if is_given else ""


def _read(path: Path) -> Handoff:
    """Read a handoff.

    Raises OSError, and InvalidMemoryError, ValueError, KeyError, TypeError for an invalid file.
    """
    with open(path, "rb", opener=files.open_file) as file:
        front, content = documents.split(file.read(_MAX_BYTES).decode("utf-8"))
    front_values = documents.load(front or "")
    values: dict[str, Any] = {
        field.name: str(front_values[field.name])
        for field in fields(Handoff)
        if field.name in front_values
    }
    values |= {
        name: datetime.fromisoformat(values[name]).astimezone(UTC) for name in ("written", "said")
    }
    name, project, recipient = _fields_of_path(path)
    recipient = recipient and (values.get("given") or recipient)
    return Handoff(
        **values | {"id": name, "project": project, "content": content.strip(), "given": recipient}
    )


# -- Other spaces of the server ------------------------------------------------


def open_space(home: Home, space: str, unwritable: NacreError | None = None) -> Home:
    """Open another space of the server for the same account, sharing the models.

    ``unwritable`` is the error for writes, if it is read-only. Raises NotAllowedError if the account is
    not a member.
    """
    require_server(home)
    account = home.settings.text("storage.account") or home.settings.text("storage.tenant")
    settings = (
        home.settings.having("storage.tenant", space)
        .having("storage.account", account)
        .having("storage.spaces", [])
    )
    database = load("nacre.store.postgres:PostgresDatabase")(
        settings.server, space, account, unwritable
    )
    other = replace(home, settings=settings, database=database, problems=[], earlier=None)
    try:
        if standing(other).kind is None:
            raise NotAllowedError(
                f"{space} is nobody's space", hint="nacre server spaces shows yours"
            )
    except BaseException:
        other.database.close()
        raise
    return other


@contextmanager
def opened_space(home: Home, space: str) -> Iterator[Home]:
    """Open another space for the block."""
    other = open_space(home, space)
    try:
        yield other
    finally:
        other.database.close()


class FurtherSpaces:
    """The additional spaces that recall reads, opened on first use and never written."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._open: dict[str, Home] = {}

    def homes(self) -> Mapping[str, Home | NacreError]:
        """Return the spaces by name, or the error for an unreadable one."""
        tenant, names = (
            self._home.settings.text("storage.tenant"),
            self._home.settings.texts("storage.spaces"),
        )
        return {name: self._read(name) for name in dict.fromkeys(names) if name != tenant}

    def close(self) -> None:
        """Close the open spaces."""
        for home in self._open.values():
            home.database.close()
        self._open.clear()

    def _read(self, name: str) -> Home | NacreError:
        try:
            if name in self._open:
                standing(self._open[name])  # the account may have been removed since
            else:
                unwritable = UnavailableError(
                    f"{name} is read beside another space, and not written"
                )
                self._open[name] = open_space(self._home, name, unwritable)
        except NacreError as error:
            if name in self._open:
                self._open.pop(name).database.close()
            return error
        return self._open[name]


# -- The vault on a server -----------------------------------------------------
#
# The same documents, stored as rows that only nacre edits.


_NANOSECONDS_PER_MS = 1_000_000


@frozen
class _Snapshot:
    """The state of the vault up to a version: all documents, memories by path, and project pages by folder."""

    until: int = 0
    documents: frozenset[str] = frozenset()
    pages: Mapping[str, int] = field(default_factory=dict)
    memories: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def and_then(self, changes: Sequence[postgres.Change]) -> _Snapshot:
        """Return the state after some changes."""
        until, documents = self.until, set(self.documents)
        pages, memories = dict(self.pages), dict(self.memories)
        for change in changes:
            until = max(until, change.version)
            documents.discard(change.path)
            memories.pop(change.path, None)
            parts = change.path.split("/")
            is_page = len(parts) == 3 and parts[0] == "projects" and parts[2] == "project.md"
            if is_page:
                pages.pop(parts[1], None)
            if change.present is None:
                continue
            documents.add(change.path)
            if is_page:
                pages[parts[1]] = change.present
            elif _is_memory(change.path):
                memories[change.path] = change.present, change.size
        return _Snapshot(until, frozenset(documents), pages, memories)


class ServerVault:
    """The interface of :class:`~nacre.vault.files.Vault` over rows.

    Its rules for paths apply, so that a vault can move to files.
    """

    root = PurePosixPath("vault")
    """Prefix of displayed paths."""

    def __init__(self, documents: postgres.Documents) -> None:
        self._documents = documents
        self._seen: tuple[object, _Snapshot] = None, _Snapshot()

    def prepare(self) -> None:
        """Do nothing."""

    def pages(self) -> Mapping[str, int]:
        """Return the folder of each project with a page, and the version of the page."""
        return self._seen_now().pages

    def scan(self) -> list[FileStat]:
        """Return path, version and size of every memory, ordered by folder and name."""
        stats = [_stat(head) for head in self._documents.heads() if _is_memory(head.path)]
        return sorted(stats, key=lambda stat: (stat.path.split("/")[:-1], stat.path))

    def paths(self) -> list[str]:
        """Return the paths of all documents."""
        return [head.path for head in self._documents.heads()]

    def times(self) -> Mapping[str, tuple[int, int]]:
        """Return version and size by path for everything that :meth:`scan` finds."""
        return self._seen_now().memories

    def read(self, path: str, *, whole: bool = False) -> bytes:
        """Return a document's bytes, of any size if ``whole``.

        Raises InvalidMemoryError, FileNotFoundError.
        """
        if path == LEDGER:
            return self._documents.ledger()
        data = self._documents.read(_checked_path(path))
        if data is None:
            raise FileNotFoundError(path)
        if not whole and len(data) > MAX_FILE_BYTES:
            raise InvalidMemoryError(
                f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB", hint="split the file"
            )
        return data

    def exists(self, path: str) -> bool:
        """Return True if there is a document at a path."""
        return path == LEDGER or self._documents.head(path) is not None

    def stat(self, path: str) -> FileStat:
        """Return a document's version and size, or the ledger's last line number.

        Raises FileNotFoundError.
        """
        if path == LEDGER:
            return FileStat(LEDGER, self._documents.ledger_lines(), 0, 0)
        head = self._documents.head(path)
        if head is None:
            raise FileNotFoundError(path)
        return _stat(head)

    def write_ahead(self, documents: Mapping[str, str]) -> None:
        """Do nothing, because rows need no disk sync."""

    def write(self, path: str, text: str, *, base: bytes | None) -> None:
        """Write a document.

        ``base`` is the hash of the version it was derived from, ``None`` for a new one.

        Raises EditConflictError if the current version is neither ``base`` nor the new text.
        """
        self.write_bytes(path, text.encode("utf-8", errors="replace"), base=base)

    def write_bytes(self, path: str, data: bytes, *, base: bytes | None) -> None:
        """Write binary data like :meth:`write`."""
        if path == LEDGER:
            if base != bytes_hash(self._documents.ledger()):
                raise EditConflictError(
                    f"{LEDGER} was written to by someone else", hint="repeat the command"
                )
            self._documents.reword(data.removesuffix(b"\n").split(b"\n"))
            return
        current = self._documents.read(_checked_path(path))
        if current == data:
            return
        if (bytes_hash(current) if current is not None else None) != base:
            raise EditConflictError(
                f"{path} was changed by someone else", hint="read it again, then repeat the edit"
            )
        self._documents.write(path, data)
        self._keep_one(path)

    def remove(self, path: str) -> None:
        """Remove a document, if it exists."""
        self._documents.remove(path)
        self._keep_one(path)

    def append(
        self, path: str, lines: Sequence[str], known: tuple[int, bytes] = (0, b"")
    ) -> tuple[int, bytes]:
        """Append new lines to the ledger. Return its size and the known hash."""
        if path != LEDGER:
            raise InvalidMemoryError(f"lines are appended to {LEDGER} alone, not to {path!r}")
        return self._documents.append(
            line.encode("utf-8", errors="replace") for line in lines
        ), known[1]

    def sync_folders(self, paths: Iterable[str]) -> None:
        """Do nothing, because committed rows are durable."""

    def _keep_one(self, path: str) -> None:
        """Delete former versions of a listing, which is derived from memories."""
        if PurePosixPath(path).name == LISTING:
            self._documents.keep_present(path)

    def _seen_now(self) -> _Snapshot:
        """Return the current state. Each recall calls this twice, so only new changes are read."""
        # First, so that concurrent writes are read twice rather than missed.
        state = self._documents.state()
        known_state, seen = self._seen
        if state is not None and state == known_state:
            return seen
        seen = seen.and_then(self._documents.changes(seen.until))
        # A forgotten document has no version for its deletion.
        if len(seen.documents) != self._documents.count():
            seen = _Snapshot().and_then(
                [
                    postgres.Change(head.path, head.version, head.version, head.size)
                    for head in self._documents.heads()
                ]
            )
        if state is not None:  # not within a transaction, which may be rolled back
            self._seen = state, seen
        return seen


def _is_memory(path: str) -> bool:
    *above, name = path.split("/")
    if not is_memory_name(name) or any(part.startswith(".") for part in above):
        return False
    return above[0] in FOLDERS if above else name not in OWN_PAGES


def _stat(head: postgres.Head) -> FileStat:
    return FileStat(head.path, head.version, head.size, head.written * _NANOSECONDS_PER_MS)


def _checked_path(path: str) -> str:
    parts_of(path)
    return path
