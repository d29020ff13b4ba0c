"""The vault of a memory on a server: documents as rows, which only nacre edits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import PurePosixPath

from nacre.base.ids import Clock, bytes_hash, to_ms
from nacre.errors import EditConflictError, InvalidMemoryError
from nacre.store.schema import Database, in_transaction
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

# All versions of a document are kept. Forgotten versions keep only their number, without path and bytes.


_VERSIONS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Head:
    """The current version of a document: an increasing number, its size in bytes, and its time in ms since 1970."""

    path: str
    version: int
    size: int
    written: int


@dataclass(frozen=True, slots=True)
class Change:
    """A new version of a document. ``present`` is the current version, or ``None`` if the document was deleted."""

    path: str
    version: int
    present: int | None
    size: int


class Documents:
    """Reads and writes ``documents``, ``document_versions`` and ``ledger_lines``."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def read(self, path: str) -> bytes | None:
        """Return the content of a document, or ``None``."""
        row = self._db.one("read_document", path=path)
        return bytes(row[0]) if row else None

    def head(self, path: str) -> Head | None:
        """Return the current version of a document."""
        row = self._db.one("find_document", path=path)
        return Head(path, *row) if row else None

    def heads(self) -> list[Head]:
        """Return the current versions of all documents, by path."""
        return [Head(*row) for row in self._db.all("list_documents")]

    def changes(self, since: int) -> list[Change]:
        """Return writes and deletions after a version, except forgotten ones."""
        return [Change(*row) for row in self._db.all("list_changes", since=since)]

    def count(self) -> int:
        """Count the documents."""
        return int((self._db.one("count_documents") or (0,))[0])

    def state(self) -> object:
        """Return a value that changes with any write, or ``None`` within a transaction."""
        return self._db.state()

    def versions(self, path: str) -> list[tuple[int, bytes | None, int]]:
        """Return all versions of a document, oldest first: number, content, time."""
        return [
            (version, data, written)
            for version, data, written in self._db.all("list_document_versions", path=path)
        ]

    @in_transaction
    def write(self, path: str, data: bytes) -> None:
        """Write a new version of a document."""
        (version,) = self._db.one(
            "insert_document_version", path=path, data=data, written=self._now()
        ) or (0,)
        self._db.run("save_document", path=path, version=version, size=len(data))

    @in_transaction
    def remove(self, path: str) -> None:
        """Delete a document, if present."""
        if self._db.run("delete_document", path=path):
            self._db.one("insert_document_version", path=path, data=None, written=self._now())

    @in_transaction
    def append(self, lines: Iterable[bytes]) -> int:
        """Append new lines to the ledger and return its total size in bytes."""
        rows: list[dict[str, object]] = [{"hash": _digest(line), "line": line} for line in lines]
        self._db.run_many("insert_ledger_line", rows)
        return int((self._db.one("size_of_ledger") or (0,))[0])

    def ledger(self) -> bytes:
        """Return the ledger."""
        return b"".join(bytes(line) + b"\n" for _, line in self._db.all("list_ledger_lines"))

    def ledger_lines(self) -> int:
        """Return the number of the ledger's last line, which increases with each line."""
        return int((self._db.one("last_ledger_line") or (0,))[0])

    @in_transaction
    def reword(self, lines: Sequence[bytes]) -> None:
        """Replace the ledger's lines by shorter ones. ``lines`` holds all lines."""
        for (number, line), replacement in zip(
            self._db.all("list_ledger_lines"), lines, strict=True
        ):
            if bytes(line) != replacement and not self._db.run(
                "update_ledger_line", number=number, hash=_digest(replacement), line=replacement
            ):
                self._db.run("delete_ledger_line", number=number)

    @in_transaction
    def forget(self, path: str) -> None:
        """Delete a document with all versions."""
        self._db.run("delete_document", path=path)
        self._db.run("blank_versions_of", path=path)

    @in_transaction
    def keep_present(self, path: str) -> None:
        """Delete the former versions of a document."""
        self._db.run("delete_former_versions", path=path)

    def former(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield former versions in chunks: number, path, bytes."""
        after = 0
        while rows := self._db.all("list_former_versions", after=after, limit=_VERSIONS_AT_ONCE):
            yield from ((version, path, bytes(data)) for version, path, data in rows)
            after = rows[-1][0]

    def forget_former(self, matches: Callable[[str, bytes], bool]) -> None:
        """Forget former versions whose path or bytes match."""
        matching = [version for version, path, data in self.former() if matches(path, data)]
        with self._db.transaction():
            self._db.run_many("blank_version", [{"version": version} for version in matching])
            self._db.run("blank_removals")

    def _now(self) -> int:
        return to_ms(self._clock()) or 0


def _digest(line: bytes) -> bytes:
    return blake2b(line, digest_size=16).digest()


_NANOSECONDS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The state of the vault up to a version: all documents, memories by path, and project pages by folder."""

    until: int = 0
    documents: frozenset[str] = frozenset()
    pages: Mapping[str, int] = field(default_factory=dict)
    memories: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def and_then(self, changes: Sequence[Change]) -> _Snapshot:
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

    def __init__(self, documents: Documents) -> None:
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

    def forget(self, path: str) -> None:
        """Remove a document with all its versions."""
        self._documents.forget(path)

    def former(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield former versions: number, path, content."""
        return self._documents.former()

    def forget_former(self, matches: Callable[[str, bytes], bool]) -> None:
        """Erase former versions whose path or content matches."""
        self._documents.forget_former(matches)

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
                    Change(head.path, head.version, head.version, head.size)
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


def _stat(head: Head) -> FileStat:
    return FileStat(head.path, head.version, head.size, head.written * _NANOSECONDS_PER_MS)


def _checked_path(path: str) -> str:
    parts_of(path)
    return path
