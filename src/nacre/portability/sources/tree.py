"""What was named for an import, seen as files with relative names: a folder, a single file, a zip, or a bundle in one
file. Nothing is unpacked, no link is followed, nothing large is read whole."""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePosixPath

from nacre.errors import InvalidInput, NotFound
from nacre.platform.zips import BROKEN

MOST_FILES = 100_000
MOST_BYTES = 8_000_000
"""A note or a page is never larger; what is larger is told and left out."""

MOST_EXPORT_BYTES = 256_000_000
"""What another memory puts into one file as a whole."""

_HEAD_BYTES = 65_536
_SKIPPED = frozenset({".git", "node_modules", "__pycache__", ".venv", ".obsidian"})
_DATABASE = b"SQLite format 3\x00"


def _as_it_is(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True)
class Leaf:
    """One file: its size, when it was changed, its first bytes (all for ``None``), and what it is really called."""

    size: int
    modified: datetime
    read: Callable[[int | None], bytes]
    name: str


@dataclass(frozen=True)
class Tree:
    """Files by relative name. ``root`` is what was named; ``single`` when that is one file.

    Names are without secrets. What is made of a file's words goes through ``clean`` before it is taken apart: a secret
    in pieces, or in a project's folder, is not recognised any more.
    """

    root: Path
    leaves: Mapping[str, Leaf]
    single: bool = False
    clean: Callable[[str], str] = _as_it_is

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self.leaves))

    def matching(self, suffix: str) -> Iterator[str]:
        """The names with an ending."""
        return (name for name in self.names if name.lower().endswith(suffix))

    def text(self, name: str, most: int = MOST_BYTES) -> str | None:
        """A file as text; ``None`` when it is too large, cannot be read or is not text."""
        leaf = self.leaves[name]
        if leaf.size > most:
            return None
        try:
            data = leaf.read(most)
        except BROKEN:
            return None
        return None if b"\x00" in data else data.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")

    def head(self, name: str) -> bytes:
        """A file's first 64 KiB; empty when it cannot be read."""
        try:
            return self.leaves[name].read(_HEAD_BYTES)
        except BROKEN:
            return b""

    def is_database(self, name: str) -> bool:
        """Whether a file is a SQLite database."""
        return self.head(name).startswith(_DATABASE)

    def path_of(self, name: str) -> Path:
        """Where a file lies on disk; of a file in a zip, the zip's path with the name behind it."""
        return self.root if self.single else self.root / self.leaves[name].name

    def within(self, folder: str) -> Tree:
        """The files below a folder, which becomes the root."""
        prefix = f"{folder}/"
        kept = {name[len(prefix) :]: leaf for name, leaf in self.leaves.items() if name.startswith(prefix)}
        return Tree(self.root / folder, kept, clean=self.clean)

    def grown(self, leaves: Mapping[str, str]) -> Tree:
        """The same root with other files, given as text: what a bundle in one file holds."""
        modified = next(iter(self.leaves.values())).modified
        written = {name: _written(name, text, modified) for name, text in leaves.items() if safe_name(name)}
        return Tree(self.root, _by_name(written.items(), self.clean), clean=self.clean)


def open_tree(path: Path, clean: Callable[[str], str] = _as_it_is) -> Tree:
    """See a file or folder as a tree; ``clean`` takes secrets out of a text. Raises NotFound, InvalidInput."""
    path = path.expanduser().absolute()
    if path.is_dir():
        return Tree(path, _by_name(_bounded(_folder(path)), clean), clean=clean)
    if not path.exists():
        raise NotFound(f"there is nothing at {path}", hint="check the path")
    if not path.is_file():
        raise InvalidInput(f"{path} is neither a file nor a folder", hint="name what the other memory wrote")
    if zipfile.is_zipfile(path) and not _is_database(path):
        try:
            return Tree(path, _by_name(_bounded(_archive(path)), clean), clean=clean)
        except BROKEN as error:
            raise InvalidInput(f"{path} is a broken zip: {error}", hint="have it written again") from error
    return Tree(path, _by_name([(path.name, _leaf(path, path.name))], clean), single=True, clean=clean)


def safe_name(name: str) -> bool:
    """Whether a name stays below its root."""
    pure = PurePosixPath(name)
    return bool(name) and not pure.is_absolute() and ".." not in pure.parts and "\\" not in name and "\x00" not in name


def _folder(root: Path) -> Iterator[tuple[str, Leaf]]:
    for parent, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            path = Path(parent, name)
            try:
                if stat.S_ISREG(path.lstat().st_mode):
                    name = path.relative_to(root).as_posix()
                    yield name, _leaf(path, name)
            except OSError:
                continue


def _archive(path: Path) -> Iterator[tuple[str, Leaf]]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.is_dir() or not safe_name(info.filename) or info.flag_bits & 1:
                continue
            read = _from_zip(path, info.filename)
            yield info.filename, Leaf(info.file_size, _zip_time(info), read, info.filename)


def _by_name(leaves: Iterable[tuple[str, Leaf]], clean: Callable[[str], str]) -> dict[str, Leaf]:
    """Files by their names without secrets; of two that come to the same, the later gets a number."""
    found: dict[str, Leaf] = {}
    for name, leaf in leaves:
        wanted = own = PurePosixPath(clean(name))
        while str(own) in found:
            own = wanted.with_name(f"{wanted.stem}-{len(found)}{wanted.suffix}")
        found[str(own)] = leaf
    return found


def _bounded(leaves: Iterator[tuple[str, Leaf]]) -> Iterator[tuple[str, Leaf]]:
    for number, item in enumerate(leaves):
        if number == MOST_FILES:
            raise InvalidInput(f"more than {MOST_FILES:,} files", hint="name the folder of the memories alone")
        yield item


def _leaf(path: Path, name: str) -> Leaf:
    found = path.stat()

    def read(limit: int | None) -> bytes:
        with path.open("rb") as file:
            return file.read(MOST_BYTES if limit is None else limit)

    return Leaf(found.st_size, datetime.fromtimestamp(found.st_mtime_ns // 1_000_000 / 1000, UTC), read, name)


def _from_zip(path: Path, name: str) -> Callable[[int | None], bytes]:
    def read(limit: int | None) -> bytes:
        with zipfile.ZipFile(path) as archive, archive.open(name) as file:
            return file.read(MOST_BYTES if limit is None else limit)

    return read


def _zip_time(info: zipfile.ZipInfo) -> datetime:
    try:
        return datetime(*info.date_time, tzinfo=UTC)
    except ValueError:
        return datetime(1980, 1, 1, tzinfo=UTC)


def _written(name: str, text: str, modified: datetime) -> Leaf:
    data = text.encode("utf-8", "replace")
    return Leaf(len(data), modified, lambda limit: data if limit is None else data[:limit], name)


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_DATABASE)) == _DATABASE
