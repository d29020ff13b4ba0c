"""The vault of a memory on a server: the same documents, as rows. Nobody edits them beside nacre."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from nacre.errors import EditConflict, MemoryInvalid
from nacre.platform.ids import bytes_hash
from nacre.storage.postgres.documents import Change, Documents, Head
from nacre.vault.files import MAX_FILE_BYTES, FileStat, parts_of
from nacre.vault.layout import FOLDERS, LEDGER, OWN_PAGES, is_memory_name
from nacre.vault.listing import LISTING

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
            raise MemoryInvalid(f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB", hint="split the file")
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
            raise EditConflict(f"{path} was changed by someone else", hint="read it again, then repeat the edit")
        self._documents.write(path, data)
        self._keep_one(path)

    def remove(self, path: str) -> None:
        """Remove a document; one that is gone already is fine."""
        self._documents.remove(path)
        self._keep_one(path)

    def append(self, path: str, lines: Sequence[str], known: tuple[int, bytes] = (0, b"")) -> tuple[int, bytes]:
        """Append those lines to the ledger that are not there yet. Returns its size, and what was known."""
        if path != LEDGER:
            raise MemoryInvalid(f"lines are appended to {LEDGER} alone, not to {path!r}")
        return self._documents.append(line.encode("utf-8", errors="replace") for line in lines), known[1]

    def sync_folders(self, paths: Iterable[str]) -> None:
        """A committed row is on disk."""

    def _keep_one(self, path: str) -> None:
        """Of a listing, which is made from memories, nobody wants to know what it said before."""
        if PurePosixPath(path).name == LISTING:
            self._documents.keep_present(path)

    def _reword_ledger(self, data: bytes, base: bytes | None) -> None:
        if base != bytes_hash(self._documents.ledger()):
            raise EditConflict(f"{LEDGER} was written to by someone else", hint="repeat the command")
        self._documents.reword(data.removesuffix(b"\n").split(b"\n"))

    def _seen_now(self) -> _Seen:
        """What the vault holds. Each recall asks twice: only what was written since it was asked last is read."""
        state = self._documents.state()  # before the rows: what is written in between is read twice
        known, seen = self._seen
        if state is not None and state == known:
            return seen
        seen = seen.and_then(self._documents.changes(seen.until))
        if len(seen.documents) != self._documents.count():  # what was forgotten has no version that says so
            seen = _Seen().and_then(
                [Change(one.path, one.version, one.version, one.size) for one in self._documents.heads()]
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
