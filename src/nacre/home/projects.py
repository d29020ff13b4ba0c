"""Lines that nacre writes on pages of the vault: each names at its end the memories and sessions that it rests on."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from nacre.base import files
from nacre.base.ids import bytes_hash
from nacre.base.lazy import load
from nacre.errors import (
    EditConflict,
    MemoryInvalid,
    NacreError,
    NotAllowed,
    StoreUnusable,
    Unavailable,
)
from nacre.home.home import Home, require_server, standing
from nacre.hosts.files import blocks_of
from nacre.store.postgres import Change, Documents, Head
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
"""Of the end of a memory's id, in a line."""

AGENTS = "an agent: "
"""What stands before the references of a line that rests on what an agent said."""

_REFERENCES = re.compile(rf"\((?:{AGENTS})?([^()\s]+(?:, [^()\s]+)*)\)$")
_OF_MEMORY = re.compile(r"[0-9a-f]{8}")
_OF_SESSION = re.compile(r"[\w.-]+:\S+")


def references_of(line: str) -> tuple[str, ...]:
    """What a line names as its sources, memories by the ends of their ids; empty where it names anything else."""
    found = _REFERENCES.search(line)
    named = tuple(found[1].split(", ")) if found else ()
    return named if all(_OF_MEMORY.fullmatch(one) or is_session(one) for one in named) else ()


def is_session(reference: str) -> bool:
    """Whether a reference is that of a session, not of a memory."""
    return bool(_OF_SESSION.fullmatch(reference))


def as_line(words: str, references: Iterable[str], *, by_agent: bool = False) -> str:
    """A line of a page with what it rests on."""
    return f"- {words} ({AGENTS if by_agent else ''}{', '.join(references)})"


def memory_named(home: Home, reference: str) -> Memory | None:
    """The memory that a line names, in any state; ``None`` where there is none, or more than one."""
    found = [one for one in home.memories.find_like(reference) if one.id.endswith(reference)]
    return found[0] if len(found) == 1 else None


def is_current(memory: Memory, today: date) -> bool:
    """Whether a memory holds on a day, in a place that is settled."""
    is_over = (memory.valid.until and memory.valid.until < today) or (
        memory.expires_on and memory.expires_on <= today
    )
    return memory.is_active and not (memory.inbox or is_over)


def without_what_is_over(home: Home, text: str) -> str:
    """A page without those lines of nacre's that rest on a memory which does not hold any more."""
    lines = [
        line for block in blocks_of(text) for line in block.splitlines() if line.startswith("- ")
    ]
    over = {line for line in lines if not rests_on_what_holds(home, line)}
    if not over:
        return text
    return "".join(
        line for line in text.splitlines(keepends=True) if line.rstrip("\r\n") not in over
    )


def rests_on_what_holds(home: Home, line: str) -> bool:
    """Whether all memories that a line names hold, and somebody answers for them."""
    today = home.today()
    found = [memory_named(home, one) for one in references_of(line) if not is_session(one)]
    return all(one is not None and one.is_vouched and is_current(one, today) for one in found)


# ----------------------------------------------------------------------------
# Handoffs, a small Markdown file each: ``handoffs/<project>/<id>.md``, in ``given`` beside it once a
# session has it.
#
# They are the state of a week and no memories: no index, history or other machine has them. Whoever
# writes holds the
# vault lock; hooks read without one.


FOLDER = "handoffs"
_GIVEN = "given"
_MOST_WAITING, _MOST_BYTES = 20, 1_000_000
_BY_PLACE = frozenset({"id", "project", "content"})


class Handoffs:
    """The handoffs of a home."""

    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def waiting(self, project: str) -> list[Handoff]:
        """Those of a project that wait for a session, the latest first; of many the last that were begun."""
        return _read_all(self._folder / project, _MOST_WAITING)

    def of_project(self, project: str) -> list[Handoff]:
        """Those that wait and then those that were given, each the latest first."""
        folder = self._folder / project
        return [*_read_all(folder), *_read_all(folder / _GIVEN)]

    def among(self, project: str, ids: Container[str]) -> list[Handoff]:
        """Those of a project with some ids; no others are read."""
        folder = self._folder / project
        return [*_read_all(folder, only=ids), *_read_all(folder / _GIVEN, only=ids)]

    def everything(self) -> list[Handoff]:
        """Those of all projects, what waits before what was given of each."""
        return [one for project in self._projects() for one in self.of_project(project)]

    def damaged(self) -> list[Handoff]:
        """What lies among those of all projects and cannot be read as one, whole, with no session and no writer."""
        folders = (self._folder / project for project in self._projects())
        return [
            one
            for folder in folders
            for place in (folder, folder / _GIVEN)
            for one in _damaged_in(place)
        ]

    def of_session(self, session: str) -> list[Handoff]:
        """What a session handed over within a week, what waits first."""
        return [one for one in self.everything() if one.session == session]

    def find(self, handoff_id: str) -> Handoff | None:
        """The one with an id, whether it waits or was given."""
        return next((one for one in self.everything() if one.id == handoff_id), None)

    def waits(self, handoff: Handoff) -> bool:
        """Whether one that was read a moment ago still waits."""
        return self._path(handoff).exists()

    def write(self, handoff: Handoff) -> None:
        """Write one, or put other words in its place, whole or not at all; one that was given waits no more.

        Raises StoreUnusable.
        """
        path = self._path(handoff)
        values = {
            name: value
            for name, value in plain_fields(handoff).items()
            if value and name not in _BY_PLACE
        }
        try:
            files.make_folder(path.parent)
            if handoff.given:
                with suppress(FileNotFoundError):
                    self._path(replace(handoff, given="")).rename(path)
            files.sweep(path.parent)
            files.write_file(path, f"---\n{documents.dump(values)}---\n{handoff.content}\n")
        except OSError as error:
            raise StoreUnusable(
                f"cannot write {path}: {error.strerror}", hint="is the disk full?"
            ) from error

    def remove(self, handoff: Handoff) -> None:
        """Delete one for good. Raises StoreUnusable."""
        path = self._path(handoff)
        try:
            files.sweep(path.parent)
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreUnusable(
                f"cannot delete {path}: {error.strerror}", hint="delete it by hand"
            ) from error

    def follow(self, project_of: Callable[[Handoff], str]) -> None:
        """Let each handoff be one of the project that it belongs to now."""
        for one in self.everything():
            into = project_of(one)
            if into != one.project:
                self.write(replace(one, project=into))
                self.remove(one)

    def _projects(self) -> list[str]:
        with suppress(OSError):
            return sorted(folder.name for folder in self._folder.iterdir())
        return []

    def _path(self, handoff: Handoff) -> Path:
        folder = self._folder / handoff.project
        return (folder / _GIVEN if handoff.given else folder) / f"{handoff.id}.md"


def _read_all(
    folder: Path, most: int | None = None, only: Container[str] | None = None
) -> list[Handoff]:
    """The handoffs in a folder, the latest first; what is none is passed over."""
    found = []
    with suppress(OSError):
        wanted = [path for path in _files(folder) if only is None or path.stem in only]
        for path in sorted(wanted, reverse=True)[:most]:
            with suppress(OSError, MemoryInvalid, ValueError, KeyError, TypeError):
                found.append(_read(path))
    return sorted(found, key=lambda one: (one.written, one.id), reverse=True)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.suffix == ".md" and path.name[0] != "."]


def _damaged_in(folder: Path) -> Iterator[Handoff]:
    with suppress(OSError):
        for path in sorted(_files(folder)):
            try:
                _read(path)
            except OSError:
                continue
            except (MemoryInvalid, ValueError, KeyError, TypeError):
                with open(path, "rb", opener=files.open_file) as file:
                    text = file.read(_MOST_BYTES).decode("utf-8", "replace")
                since = datetime.fromtimestamp(path.stat().st_mtime, UTC)
                name, project, given = _place(path)
                yield Handoff(name, project, "", text.strip(), "", since, since, given=given)


def _place(path: Path) -> tuple[str, str, str]:
    """What a file's place says: a handoff's id, its project, and whether a session was given it."""
    is_given = path.parent.name == _GIVEN and path.parents[2].name == FOLDER
    folder = path.parents[1] if is_given else path.parent
    return path.stem, folder.name, "a session" if is_given else ""


def _read(path: Path) -> Handoff:
    """Raises OSError, and MemoryInvalid, ValueError, KeyError, TypeError for what is none."""
    with open(path, "rb", opener=files.open_file) as file:
        front, content = documents.split(file.read(_MOST_BYTES).decode("utf-8"))
    told = documents.load(front or "")
    values: dict[str, Any] = {
        field.name: str(told[field.name]) for field in fields(Handoff) if field.name in told
    }
    values |= {
        name: datetime.fromisoformat(values[name]).astimezone(UTC) for name in ("written", "said")
    }
    name, project, given = _place(path)
    given = given and (values.get("given") or given)
    return Handoff(
        **values | {"id": name, "project": project, "content": content.strip(), "given": given}
    )


# ----------------------------------------------------------------------------
# Other spaces of the server that a home is on: opened for who asks, beside the own one.


def open_space(home: Home, space: str, unwritable: NacreError | None = None) -> Home:
    """Another space of the same server, in the name of the same account; the models are shared. ``unwritable``: why
    nothing may be written there.

    Raises NotAllowed where the account does not belong to it.
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
            raise NotAllowed(f"{space} is nobody's space", hint="nacre spaces list shows yours")
    except BaseException:
        other.database.close()
        raise
    return other


@contextmanager
def opened_space(home: Home, space: str) -> Iterator[Home]:
    """The same, for the block."""
    other = open_space(home, space)
    try:
        yield other
    finally:
        other.database.close()


class FurtherSpaces:
    """The spaces that recall reads beside the own one, opened when they are first needed. Nothing writes to them."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._open: dict[str, Home] = {}

    def homes(self) -> Mapping[str, Home | NacreError]:
        """By name; where one cannot be read, why."""
        own, named = (
            self._home.settings.text("storage.tenant"),
            self._home.settings.texts("storage.spaces"),
        )
        return {name: self._read(name) for name in dict.fromkeys(named) if name != own}

    def close(self) -> None:
        """Close what is open."""
        for one in self._open.values():
            one.database.close()
        self._open.clear()

    def _read(self, name: str) -> Home | NacreError:
        try:
            if name in self._open:
                standing(self._open[name])  # they may have been shown the door meanwhile
            else:
                unwritable = Unavailable(f"{name} is read beside another space, and not written")
                self._open[name] = open_space(self._home, name, unwritable)
        except NacreError as error:
            if name in self._open:
                self._open.pop(name).database.close()
            return error
        return self._open[name]


# ----------------------------------------------------------------------------
# The vault of a memory on a server: the same documents, as rows. Nobody edits them beside nacre.


_NANOSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class _Seen:
    """What there is up to a version: all documents, and by path which of them are memories, by folder which are pages
    of projects."""

    until: int = 0
    documents: frozenset[str] = frozenset()
    pages: Mapping[str, int] = field(default_factory=dict)
    memories: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def and_then(self, changes: Sequence[Change]) -> _Seen:
        """The same after some changes."""
        until, documents = self.until, set(self.documents)
        pages, memories = dict(self.pages), dict(self.memories)
        for one in changes:
            until = max(until, one.version)
            documents.discard(one.path)
            memories.pop(one.path, None)
            parts = one.path.split("/")
            is_page = _is_page(parts)
            if is_page:
                pages.pop(parts[1], None)
            if one.present is None:
                continue
            documents.add(one.path)
            if is_page:
                pages[parts[1]] = one.present
            elif _is_memory(one.path):
                memories[one.path] = one.present, one.size
        return _Seen(until, frozenset(documents), pages, memories)


class ServerVault:
    """What :class:`~nacre.vault.files.Vault` does, over rows. Paths keep its rules: a vault may move to files."""

    root = PurePosixPath("vault")
    """What stands before a path where people are told of it."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._seen: tuple[object, _Seen] = None, _Seen()

    def prepare(self) -> None:
        """Nothing is to be made."""

    def pages(self) -> Mapping[str, int]:
        """The folder of every project that has a page, and the version of that page."""
        return self._seen_now().pages

    def scan(self) -> list[FileStat]:
        """Every memory's path, version and size. Those of a folder come in the order of their names, before those of
        the folders in it."""
        found = [_stat(head) for head in self._memories()]
        return sorted(found, key=lambda one: (one.path.split("/")[:-1], one.path))

    def paths(self) -> list[str]:
        """Every document, whether it is a memory or not."""
        return [head.path for head in self._documents.heads()]

    def times(self) -> Mapping[str, tuple[int, int]]:
        """Version and size of everything that :meth:`scan` would find, by path."""
        return self._seen_now().memories

    def read(self, path: str, *, whole: bool = False) -> bytes:
        """A document's bytes, however many when ``whole``. Raises MemoryInvalid, FileNotFoundError."""
        if path == LEDGER:
            return self._documents.ledger()
        found = self._documents.read(_checked(path))
        if found is None:
            raise FileNotFoundError(path)
        if not whole and len(found) > MAX_FILE_BYTES:
            raise MemoryInvalid(
                f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB", hint="split the file"
            )
        return found

    def exists(self, path: str) -> bool:
        """Whether there is a document at that path."""
        return path == LEDGER or self._documents.head(path) is not None

    def stat(self, path: str) -> FileStat:
        """A document's version and size; of the ledger the number of its last line. Raises FileNotFoundError."""
        if path == LEDGER:
            return FileStat(LEDGER, self._documents.ledger_lines(), 0, 0)
        head = self._documents.head(path)
        if head is None:
            raise FileNotFoundError(path)
        return _stat(head)

    def write_ahead(self, documents: Mapping[str, str]) -> None:
        """Rows need no disk of ours to wait for."""

    def write(self, path: str, text: str, *, base: bytes | None) -> None:
        """Write a document. ``base`` is the hash of the version this one was made from, ``None`` for a new one.

        Raises EditConflict when another version is there; writing what is already there is no conflict.
        """
        self.write_bytes(path, text.encode("utf-8", errors="replace"), base=base)

    def write_bytes(self, path: str, data: bytes, *, base: bytes | None) -> None:
        """As :meth:`write`, for what may be no text."""
        if path == LEDGER:
            self._reword_ledger(data, base)
            return
        current = self._documents.read(_checked(path))
        if current == data:
            return
        if (bytes_hash(current) if current is not None else None) != base:
            raise EditConflict(
                f"{path} was changed by someone else", hint="read it again, then repeat the edit"
            )
        self._documents.write(path, data)
        self._keep_one(path)

    def remove(self, path: str) -> None:
        """Remove a document; one that is gone already is fine."""
        self._documents.remove(path)
        self._keep_one(path)

    def append(
        self, path: str, lines: Sequence[str], known: tuple[int, bytes] = (0, b"")
    ) -> tuple[int, bytes]:
        """Append those lines to the ledger that are not there yet. Returns its size, and what was known."""
        if path != LEDGER:
            raise MemoryInvalid(f"lines are appended to {LEDGER} alone, not to {path!r}")
        return self._documents.append(
            line.encode("utf-8", errors="replace") for line in lines
        ), known[1]

    def sync_folders(self, paths: Iterable[str]) -> None:
        """A committed row is on disk."""

    def _keep_one(self, path: str) -> None:
        """Of a listing, which is made from memories, nobody wants to know what it said before."""
        if PurePosixPath(path).name == LISTING:
            self._documents.keep_present(path)

    def _reword_ledger(self, data: bytes, base: bytes | None) -> None:
        if base != bytes_hash(self._documents.ledger()):
            raise EditConflict(
                f"{LEDGER} was written to by someone else", hint="repeat the command"
            )
        self._documents.reword(data.removesuffix(b"\n").split(b"\n"))

    def _seen_now(self) -> _Seen:
        """What the vault holds. Each recall asks twice: only what was written since it was asked last is read."""
        state = self._documents.state()  # before the rows: what is written in between is read twice
        known, seen = self._seen
        if state is not None and state == known:
            return seen
        seen = seen.and_then(self._documents.changes(seen.until))
        if (
            len(seen.documents) != self._documents.count()
        ):  # what was forgotten has no version that says so
            seen = _Seen().and_then(
                [
                    Change(one.path, one.version, one.version, one.size)
                    for one in self._documents.heads()
                ]
            )
        if state is not None:  # what a transaction sees may be taken back
            self._seen = state, seen
        return seen

    def _memories(self) -> Iterator[Head]:
        return (head for head in self._documents.heads() if _is_memory(head.path))


def _is_memory(path: str) -> bool:
    *above, name = path.split("/")
    if not is_memory_name(name) or any(part.startswith(".") for part in above):
        return False
    return above[0] in FOLDERS if above else name not in OWN_PAGES


def _is_page(parts: Sequence[str]) -> bool:
    return len(parts) == 3 and parts[0] == "projects" and parts[2] == "project.md"


def _stat(head: Head) -> FileStat:
    return FileStat(head.path, head.version, head.size, head.written * _NANOSECONDS)


def _checked(path: str) -> str:
    parts_of(path)
    return path
