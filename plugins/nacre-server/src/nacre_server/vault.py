"""The vault of a memory on a server, with documents in rows.

All versions of a document are kept, but forgotten versions lose their path and content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import PurePosixPath

from nacre.base.frozen import frozen
from nacre.base.ids import Clock, bytes_hash
from nacre.base.text import to_bytes
from nacre.errors import EditConflictError, InvalidMemoryError
from nacre.store.schema import Database, Row, in_transaction
from nacre.vault.files import (
    LEDGER,
    MAX_FILE_BYTES,
    FileStat,
    is_memory_file,
    parts_of,
)

_VERSIONS_AT_ONCE = 500
_NANOSECONDS_PER_MS = 1_000_000


@frozen
class _Snapshot:
    until: int = 0
    documents: frozenset[str] = frozenset()
    pages: Mapping[str, int] = field(default_factory=dict)
    memories: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def and_then(self, changes: Iterable[Row]) -> _Snapshot:
        """Apply changes, each a path, its version, and the current document's number (``None`` if
        deleted) and size.
        """
        until, documents = self.until, set(self.documents)
        pages, memories = dict(self.pages), dict(self.memories)
        for path, version, present, size in changes:
            until = max(until, version)
            documents.discard(path)
            memories.pop(path, None)
            parts = path.split("/")
            is_page = len(parts) == 3 and parts[0] == "projects" and parts[2] == "project.md"
            if is_page:
                pages.pop(parts[1], None)
            if present is None:
                continue
            documents.add(path)
            if is_page:
                pages[parts[1]] = present
            elif is_memory_file(path):
                memories[path] = present, size
        return _Snapshot(until, frozenset(documents), pages, memories)


class ServerVault:
    """A vault in database rows, with the interface of :class:`~nacre.vault.files.Vault`.

    The version number of a document serves as its time.
    """

    root = PurePosixPath("vault")
    """Prefix of displayed paths."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock
        self._snapshot: tuple[object, _Snapshot] = None, _Snapshot()

    def prepare(self) -> None:
        pass

    def pages(self) -> Mapping[str, int]:
        return self._current().pages

    def scan(self) -> list[FileStat]:
        stats = [stat for stat in self._stats() if is_memory_file(stat.path)]
        return sorted(stats, key=lambda stat: (stat.path.split("/")[:-1], stat.path))

    def paths(self) -> list[str]:
        return [stat.path for stat in self._stats()]

    def times(self) -> Mapping[str, tuple[int, int]]:
        return self._current().memories

    def read(self, path: str, *, any_size: bool = False) -> bytes:
        if path == LEDGER:
            return b"".join(bytes(line) + b"\n" for _, line in self._db.all("list_ledger_lines"))
        data = self._read(path)
        if data is None:
            raise FileNotFoundError(path)
        if not any_size and len(data) > MAX_FILE_BYTES:
            raise InvalidMemoryError(
                f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB", hint="split the file"
            )
        return data

    def exists(self, path: str) -> bool:
        return path == LEDGER or self._db.one("find_document", path=path) is not None

    def stat(self, path: str) -> FileStat:
        """Return the version and size of a document, or of the ledger. Raises FileNotFoundError."""
        if path == LEDGER:
            return _stat(LEDGER, *self._db.all("last_ledger_line")[0])
        row = self._db.one("find_document", path=path)
        if row is None:
            raise FileNotFoundError(path)
        return _stat(path, *row)

    def write_ahead(self, documents: Mapping[str, str]) -> None:
        """Do nothing, because only files need to be synced to disk in advance."""

    def write(self, path: str, text: str, *, base: bytes | None) -> None:
        self.write_bytes(path, to_bytes(text), base=base)

    def write_bytes(self, path: str, data: bytes, *, base: bytes | None) -> None:
        if path == LEDGER:
            if base != bytes_hash(self.read(LEDGER)):
                raise EditConflictError(
                    f"{LEDGER} was written to by someone else", hint="repeat the command"
                )
            self._reword(data.removesuffix(b"\n").split(b"\n"))
            return
        current = self._read(path)
        if current == data:
            return
        if (bytes_hash(current) if current is not None else None) != base:
            raise EditConflictError(
                f"{path} was changed by someone else", hint="read it again, then repeat the edit"
            )
        with self._db.transaction():
            (version,) = self._add_version(path, data)
            self._db.run("save_document", path=path, version=version, size=len(data))

    @in_transaction
    def remove(self, path: str) -> None:
        if self._db.run("delete_document", path=path):
            self._add_version(path, None)

    @in_transaction
    def forget(self, path: str) -> None:
        self._db.run("delete_document", path=path)
        self._db.run("blank_versions_of", path=path)

    def former(self) -> Iterator[tuple[int, str, bytes]]:
        """Yield the number, path and content of each former version of each document."""
        after = 0
        while rows := self._db.all("list_former_versions", after=after, limit=_VERSIONS_AT_ONCE):
            yield from ((version, path, bytes(data)) for version, path, data in rows)
            after = rows[-1][0]

    def forget_former(self, matches: Callable[[str, bytes], bool]) -> None:
        """Erase the former versions for which ``matches(path, content)`` is true."""
        matching = [version for version, path, data in self.former() if matches(path, data)]
        with self._db.transaction():
            self._db.run_each("blank_version", "version", matching)
            self._db.run("blank_removals")

    @in_transaction
    def append(
        self, path: str, lines: Sequence[str], end: tuple[int, bytes] = (0, b"")
    ) -> tuple[int, bytes]:
        """Append new lines to the ledger, and return its size and the hash in ``end``."""
        if path != LEDGER:
            raise InvalidMemoryError(f"lines are appended to {LEDGER} alone, not to {path!r}")
        encoded = [to_bytes(line) for line in lines]
        self._db.run_many(
            "insert_ledger_line", [{"hash": bytes_hash(line), "line": line} for line in encoded]
        )
        return self._db.value("size_of_ledger") or 0, end[1]

    def sync_folders(self, paths: Iterable[str]) -> None:
        """Do nothing, because a committed row is durable."""

    def _stats(self) -> list[FileStat]:
        return [_stat(*row) for row in self._db.all("list_documents")]

    def _read(self, path: str) -> bytes | None:
        parts_of(path)
        return self._db.value("read_document", path=path)

    def _add_version(self, path: str, data: bytes | None) -> Row:
        now = self._clock()
        return self._db.all("insert_document_version", path=path, data=data, written=now)[0]

    @in_transaction
    def _reword(self, lines: Sequence[bytes]) -> None:
        for (number, line), replacement in zip(
            self._db.all("list_ledger_lines"), lines, strict=True
        ):
            if bytes(line) != replacement and not self._db.run(
                "update_ledger_line", number=number, hash=bytes_hash(replacement), line=replacement
            ):
                self._db.run("delete_ledger_line", number=number)

    def _current(self) -> _Snapshot:
        # Read first, so that concurrent writes are read twice rather than missed.
        state = self._db.state()
        known_state, snapshot = self._snapshot
        if state is not None and state == known_state:
            return snapshot
        snapshot = snapshot.and_then(self._db.all("list_changes", since=snapshot.until))
        # A forgotten document has no version for its deletion.
        if len(snapshot.documents) != self._db.value("count_documents"):
            snapshot = _Snapshot().and_then(
                (path, version, version, size)
                for path, version, size, _ in self._db.all("list_documents")
            )
        if state is not None:  # not within a transaction, which can be rolled back
            self._snapshot = state, snapshot
        return snapshot


def _stat(path: str, version: int, size: int = 0, written: int = 0) -> FileStat:
    return FileStat(path, version, size, written * _NANOSECONDS_PER_MS)
