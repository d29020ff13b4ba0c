"""Read, write and scan the vault's files; nothing leaves the vault, nothing is overwritten unseen."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol

from nacre.errors import EditConflict, MemoryInvalid, VaultUnusable
from nacre.platform import private_files
from nacre.platform.ids import bytes_hash
from nacre.values.memory import MAX_BODY_BYTES
from nacre.vault.layout import FOLDERS, LEDGER, OWN_PAGES, is_memory_name

MAX_FILE_BYTES = 2 * MAX_BODY_BYTES
"""Of a memory file, body and front matter; more is not read."""

_TOO_LARGE = f"it is larger than {MAX_FILE_BYTES // 1_000_000} MB"
_LONGEST_NAME = 255
_WORTH_WRITING_AHEAD = 4
_SIDE_BY_SIDE = 8
_FARTHEST = 2**62
_TELLS_CHANGES = os.name == "posix"
_HAS_FOLDERS = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")

_CHECKED_BYTES = 4096
"""So many bytes before the known end of a file tell whether it is still the same file up to there."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """One memory file as a scan sees it.

    ``path`` is relative to the vault. ``mtime_ns`` differs whenever one of the file's times does: what an editor or a
    copying tool sets back, the system's own note of the change tells. ``modified_ns`` is when it was last written.
    ``refusal`` says why it cannot be read.
    """

    path: str
    mtime_ns: int
    size: int
    modified_ns: int
    refusal: str = ""


class Watch(Protocol):
    """Whoever is told of each change in the vault."""

    def times(self) -> Mapping[str, tuple[int, int]]:
        """As :meth:`Vault.times`."""
        ...


class Vault:
    """The folder of memories."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._ahead: dict[str, bytes] = {}
        self.watch: Watch | None = None
        """What knows the files' times without a look at each, where somebody watches the vault."""

    def prepare(self) -> None:
        """Create the folder where it is missing. Raises VaultUnusable, StoreUnusable."""
        if self.root.exists() and not self.root.is_dir():
            raise VaultUnusable(
                f"the vault path {self.root} is a file", hint="move it away, or point NACRE_HOME at another folder"
            )
        with _translated(self.root):
            private_files.make_folder(self.root)
            private_files.refuse_unsafe(self.root)

    def pages(self) -> dict[str, int]:
        """The folder of every project that has a page, and the ``mtime_ns`` of that page; 0 where a symbolic link leads
        to it, which :meth:`stat` refuses."""
        top = os.path.join(self.root, "projects")
        if not os.path.isdir(top):
            return {}
        is_link, found = os.path.islink(top), {}
        with _listed(top) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    page = os.lstat(os.path.join(top, entry.name, "project.md"))
                    is_plain = not is_link and entry.is_dir(follow_symlinks=False) and stat.S_ISREG(page.st_mode)
                    found[entry.name] = _times(page) if is_plain else 0
        return found

    def scan(self) -> list[FileStat]:
        """Every memory file's path, time and size; symbolic links are not followed. Those of a folder come in the order
        of their names, before those of the folders in it."""
        found = [_stat_of(path, seen) for path, seen in self.walk()]
        return sorted(found, key=lambda one: (one.path.split("/")[:-1], one.path))

    def paths(self) -> list[str]:
        """Every document in Markdown, whether it is a memory or not; hidden ones and symbolic links are none."""
        found = (file.relative_to(self.root) for file in self.root.rglob("*.md") if not file.is_symlink())
        return sorted(path.as_posix() for path in found if not any(part[0] == "." for part in path.parts))

    def times(self) -> Mapping[str, tuple[int, int]]:
        """``mtime_ns`` and size of every file that :meth:`scan` would find, by path."""
        return self.watch.times() if self.watch else times_of(self.walk())

    def walk(self, enter: Callable[[str, int], object] | None = None) -> Iterator[tuple[str, os.stat_result]]:
        """The path of every memory file and what the system says of it, in no order. ``enter`` gets each folder before
        it is listed: its path, empty or with a slash at the end, and, where the system has such, its descriptor."""
        folders = [""]
        while folders:
            prefix = folders.pop()
            with _listed(os.path.join(self.root, prefix), partial(enter, prefix) if enter else None) as entries:
                for entry in entries:
                    name = entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if name[0] != "." and (prefix or name in FOLDERS):
                            folders.append(f"{prefix}{name}/")
                    elif is_memory_name(name) and (prefix or name not in OWN_PAGES):
                        try:
                            found = entry.stat(follow_symlinks=False)
                        except FileNotFoundError:  # another process took it away just now
                            continue
                        yield prefix + name, found

    def read(self, path: str, *, whole: bool = False) -> bytes:
        """A file's bytes, however many when ``whole``.

        Raises VaultUnusable, MemoryInvalid, or FileNotFoundError when it is gone.
        """
        with _translated(self.root / path), self._folder(path) as folder:
            return folder.read(limit=None if whole or path == LEDGER else MAX_FILE_BYTES)

    def exists(self, path: str) -> bool:
        """Whether there is a file at that path."""
        return os.path.lexists(self.root / path)

    def stat(self, path: str) -> FileStat:
        """A file's time and size. Raises FileNotFoundError."""
        with self._folder(path) as folder:
            found = folder.stat()
        return FileStat(path, _times(found), found.st_size, found.st_mtime_ns)

    def write_ahead(self, documents: Mapping[str, str]) -> None:
        """Put documents on disk beside the files that they will be: to wait side by side takes as long as to wait once.

        A later :meth:`write` of the same words has them at once. What cannot be written here fails there.
        """
        if len(documents) < _WORTH_WRITING_AHEAD:
            return
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - 15 ms that only writing many files needs

        def write_one(item: tuple[str, str]) -> None:
            path, text = item
            data = text.encode("utf-8", errors="replace")
            with contextlib.suppress(OSError, MemoryInvalid), self._folder(path, create=True) as folder:
                folder.write_temporary(data)
                self._ahead[path] = bytes_hash(data)

        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            list(pool.map(write_one, documents.items()))

    def write(self, path: str, text: str, *, base: bytes | None) -> None:
        """Write a file through a temporary name.

        ``base`` is the hash of the version this one was made from, ``None`` for a new file. Raises EditConflict when
        the file on disk is another one; writing what is already there is no conflict.
        """
        self.write_bytes(path, text.encode("utf-8", errors="replace"), base=base)

    def write_bytes(self, path: str, data: bytes, *, base: bytes | None) -> None:
        """As :meth:`write`, for what may be no text."""
        with _translated(self.root / path), self._folder(path, create=True) as folder:
            try:
                current = folder.read(limit=None)
            except FileNotFoundError:
                current = None
            ahead = self._ahead.pop(path, None)
            is_based = (bytes_hash(current) if current is not None else None) == base
            if current == data or not is_based:
                folder.discard()
            if current == data:
                return
            if not is_based:
                raise EditConflict(f"{path} was changed by someone else", hint="read it again, then repeat the edit")
            if ahead != bytes_hash(data):
                folder.write_temporary(data)
            folder.replace()

    def remove(self, path: str) -> None:
        """Remove a file; one that is gone already is fine."""
        with _translated(self.root / path), contextlib.suppress(FileNotFoundError), self._folder(path) as folder:
            folder.unlink()

    def append(self, path: str, lines: Sequence[str], known: tuple[int, bytes] = (0, b"")) -> tuple[int, bytes]:
        """Append those lines that are not there yet, in one write, and wait for the disk.

        ``known`` is what the last append returned: bytes until there cannot hold the lines, so only what follows is
        read, unless the end of those bytes changed. Returns the new size and a hash of the last bytes.
        """
        with (
            _translated(self.root / path),
            self._folder(path, create=True) as folder,
            os.fdopen(folder.open(os.O_RDWR | os.O_CREAT | os.O_APPEND), "r+b") as file,
        ):
            present = _tail(file, known)
            there = set(present.split(b"\n")[:-1])
            encoded = dict.fromkeys(line.encode("utf-8", errors="replace") for line in lines)
            missing = [line for line in encoded if line not in there]
            if missing:
                _drop_torn(file, present, missing)
                size = file.seek(0, os.SEEK_END)
                torn = size > 0 and not _last(file, 1).endswith(b"\n")
                file.seek(0, os.SEEK_END)
                file.write((b"\n" if torn else b"") + b"".join(line + b"\n" for line in missing))
                file.flush()
                os.fsync(file.fileno())
            return file.seek(0, os.SEEK_END), bytes_hash(_last(file, _CHECKED_BYTES))

    def sync_folders(self, paths: Iterable[str]) -> None:
        """Wait until the names of files lately written or removed are on disk."""
        gone = FileNotFoundError, NotADirectoryError, MemoryInvalid
        for path in {path.rpartition("/")[0]: path for path in sorted(paths)}.values():
            with _translated(self.root / path), contextlib.suppress(*gone), self._folder(path) as folder:
                folder.sync()

    @contextlib.contextmanager
    def _folder(self, path: str, *, create: bool = False) -> Iterator[_Folder]:
        """The open folder of a file, refusing ``..``, absolute paths and symbolic links on the way.

        Each step is taken from the open folder above it: what is swapped for a link meanwhile is not followed.
        """
        *above, name = parts_of(path)
        folder = _Folder(self.root, None, name)
        try:
            folder.enter(None)
            for part in above:
                if create:
                    folder.make(part)
                folder.enter(part)
            folder.refuse_link(name, path)
            yield folder
        except NotADirectoryError:
            folder.refuse_link(folder.entering, path)
            raise
        finally:
            folder.close()


class _Folder:
    """An open folder on the way to a file, then the file's own. Where the system cannot, a path stands for it."""

    def __init__(self, path: Path, descriptor: int | None, name: str) -> None:
        self.path = path
        self.descriptor = descriptor
        self.name = name
        self.entering = ""

    def enter(self, part: str | None) -> None:
        """Go down to a folder, or open the first."""
        self.entering = part or ""
        path = self.path / part if part else self.path
        if _HAS_FOLDERS:
            no_link = os.O_NOFOLLOW if part else 0
            below = os.open(part or path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | no_link, dir_fd=self.descriptor)
            self.close()
            self.descriptor = below
        else:
            self.refuse_link(part or "", str(path))
        self.path = path

    def make(self, part: str) -> None:
        """Make a folder in this one, for the owner alone."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._at(part), private_files.FOLDER_MODE, dir_fd=self.descriptor)
            with contextlib.suppress(PermissionError):
                os.chmod(self._at(part), private_files.FOLDER_MODE, dir_fd=self.descriptor)

    def refuse_link(self, part: str, path: str) -> None:
        """Raise MemoryInvalid for a symbolic link."""
        with contextlib.suppress(FileNotFoundError):
            seen = os.stat(self._at(part), dir_fd=self.descriptor, follow_symlinks=False)
            if stat.S_ISLNK(seen.st_mode):
                raise MemoryInvalid(f"{path!r} is a symbolic link", hint="replace it by the file itself")

    def read(self, *, limit: int | None) -> bytes:
        """The file's bytes; those of more than ``limit`` are not read."""
        with os.fdopen(self.open(os.O_RDONLY), "rb") as file:
            if limit is None:
                return file.read()
            data = file.read(limit + 1)
        if len(data) > limit:
            raise MemoryInvalid(_TOO_LARGE, hint="split the file")
        return data

    def stat(self) -> os.stat_result:
        """The file's own times and size."""
        return os.stat(self._at(self.name), dir_fd=self.descriptor, follow_symlinks=False)

    def write_temporary(self, data: bytes) -> None:
        """Put bytes on disk that are to take the place of the file."""
        temporary = _temporary(self.name)  # the same each time: a crash leaves none behind
        self.discard()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with os.fdopen(private_files.open_file(self._at(temporary), flags, dir_fd=self.descriptor), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def discard(self) -> None:
        """Take away what was to take the place of the file."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._at(_temporary(self.name)), dir_fd=self.descriptor)

    def replace(self) -> None:
        """Put what was written in the place of the file, all of it or nothing."""
        temporary = _temporary(self.name)
        os.replace(self._at(temporary), self._at(self.name), src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def open(self, flags: int) -> int:
        """The file, open; it is a regular one, and the owner's alone."""
        return private_files.open_file(self._at(self.name), flags, dir_fd=self.descriptor)

    def unlink(self) -> None:
        """Take the file away."""
        os.unlink(self._at(self.name), dir_fd=self.descriptor)

    def sync(self) -> None:
        """Wait for the disk."""
        if self.descriptor is not None:
            os.fsync(self.descriptor)

    def close(self) -> None:
        """Done with it."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def _at(self, name: str) -> str:
        return name if self.descriptor is not None else str(self.path / name)


def parts_of(path: str) -> list[str]:
    """The folders of a path, and its name. Raises MemoryInvalid for one that leads out of the vault."""
    parts = path.split("/")
    if any(part in ("", "..") or "\0" in part or (os.name == "nt" and set(part) & {"\\", ":"}) for part in parts):
        raise MemoryInvalid(f"{path!r} lies outside the vault", hint="paths are relative to the vault")
    return parts


@contextlib.contextmanager
def _listed(folder: str, enter: Callable[[int], object] | None = None) -> Iterator[list[os.DirEntry[str]]]:
    """What is in a folder: nothing where it is gone. From an open one, files are looked at without their whole path."""
    entries: list[os.DirEntry[str]] = []
    with contextlib.ExitStack() as held:
        try:
            opened: int | str = folder
            if _HAS_FOLDERS:
                opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                held.callback(os.close, opened)
                if enter:
                    enter(opened)
            with os.scandir(opened) as found:
                entries += found
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:  # deeper than any path leads
                raise VaultUnusable(f"cannot read {folder}: {error.strerror}", hint="check its permissions") from error
        yield entries


def times_of(files: Iterable[tuple[str, os.stat_result]]) -> dict[str, tuple[int, int]]:
    """``mtime_ns`` and size of files by path, as in their :class:`FileStat`."""
    return {path if path.isprintable() else shown(path): (_times(found), found.st_size) for path, found in files}


def shown(path: str) -> str:
    """A path as it is told to people: one that cannot be shown, in other words."""
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in path)


def _stat_of(path: str, found: os.stat_result) -> FileStat:
    named = FileStat(shown(path), _times(found), found.st_size, found.st_mtime_ns)
    if named.path != path:
        return replace(named, refusal="its name holds characters that cannot be shown; rename it")
    if stat.S_ISLNK(found.st_mode):
        return replace(named, refusal="it is a symbolic link; replace it by the file itself")
    if not stat.S_ISREG(found.st_mode):
        return replace(named, refusal="it is not a regular file")
    return replace(named, refusal=_TOO_LARGE) if found.st_size > MAX_FILE_BYTES else named


def _times(found: os.stat_result) -> int:
    """Both times of a file in one number that the database holds; no calendar has some of them."""
    return (found.st_mtime_ns * 31 + (found.st_ctime_ns if _TELLS_CHANGES else 0)) % _FARTHEST


def _temporary(name: str) -> str:
    whole = f".{name}.tmp"
    if len(os.fsencode(whole)) <= _LONGEST_NAME:
        return whole
    return f".{bytes_hash(os.fsencode(name)).hex()}.tmp"


def _tail(file: BinaryIO, known: tuple[int, bytes]) -> bytes:
    """What a file holds after the bytes that are known; all of it when those are not what they were."""
    size, digest = known
    start = max(0, size - _CHECKED_BYTES)
    file.seek(start)
    rest = file.read()
    if size and len(rest) >= size - start and bytes_hash(rest[: size - start]) == digest:
        return rest[size - start :]
    file.seek(0)
    return file.read()


def _drop_torn(file: BinaryIO, present: bytes, lines: Sequence[bytes]) -> None:
    """Take away the beginning of one of ``lines``, which a crash or a full disk cut short; it is written anew."""
    torn = present.rpartition(b"\n")[2]
    if torn and any(line.startswith(torn) for line in lines):
        file.truncate(file.seek(0, os.SEEK_END) - len(torn))


def _last(file: BinaryIO, count: int) -> bytes:
    """The last bytes of a file, at most so many."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - count))
    return file.read()


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn the operating system's errors into nacre's; FileNotFoundError passes."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        full = error.errno == errno.ENOSPC
        raise VaultUnusable(
            f"cannot use {path}: {error.strerror}",
            hint="free some space and repeat; nothing was lost"
            if full
            else "check that the folder exists and is writable",
        ) from error
