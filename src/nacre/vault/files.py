"""Read, write and scan the vault's files; nothing leaves the vault, nothing is overwritten unseen."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from nacre.errors import EditConflict, MemoryInvalid, VaultUnusable
from nacre.vault.layout import is_memory_file

_CHECKED_BYTES = 4096
"""So many bytes before the known end of a file tell whether it is still the same file up to there."""


@dataclass(frozen=True, slots=True)
class FileStat:
    """One memory file as a scan sees it; ``path`` is relative to the vault."""

    path: str
    mtime_ns: int
    size: int


def file_hash(data: bytes) -> bytes:
    """16 bytes that identify a file's bytes."""
    return hashlib.blake2b(data, digest_size=16).digest()


class Vault:
    """The folder of memories."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def prepare(self) -> None:
        """Create the folder where it is missing. Raises VaultUnusable."""
        if self.root.exists() and not self.root.is_dir():
            raise VaultUnusable(
                f"the vault path {self.root} is a file", hint="move it away, or point NACRE_HOME at another folder"
            )
        with _translated(self.root):
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)

    def scan(self) -> Iterator[FileStat]:
        """Every memory file's path, time and size; symbolic links are not followed."""
        yield from self._scan(self.root, "")

    def read(self, path: str) -> bytes:
        """A file's bytes. Raises VaultUnusable, or FileNotFoundError when it is gone."""
        with _translated(self.root / path):
            return self._inside(path).read_bytes()

    def exists(self, path: str) -> bool:
        """Whether there is a file at that path."""
        return os.path.lexists(self.root / path)

    def stat(self, path: str) -> FileStat:
        """A file's time and size. Raises FileNotFoundError."""
        found = self._inside(path).stat()
        return FileStat(path, found.st_mtime_ns, found.st_size)

    def write(self, path: str, text: str, *, base: bytes | None) -> None:
        """Write a file through a temporary name.

        ``base`` is the hash of the version this one was made from, ``None`` for a new file. Raises EditConflict when
        the file on disk is another one; writing what is already there is no conflict.
        """
        target = self._inside(path)
        data = text.encode("utf-8", errors="replace")
        with _translated(target):
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            current = target.read_bytes() if target.exists() else None
            if current == data:
                return
            if (file_hash(current) if current is not None else None) != base:
                raise EditConflict(f"{path} was changed by someone else", hint="read it again, then repeat the edit")
            temporary = target.with_name(f".{target.name}.tmp")  # the same each time: a crash leaves none behind
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)

    def remove(self, path: str) -> None:
        """Remove a file; one that is gone already is fine."""
        with _translated(self.root / path):
            self._inside(path).unlink(missing_ok=True)

    def append(self, path: str, lines: Sequence[str], known: tuple[int, bytes] = (0, b"")) -> tuple[int, bytes]:
        """Append those lines that are not there yet, in one write, and wait for the disk.

        ``known`` is what the last append returned: bytes until there cannot hold the lines, so only what follows is
        read, unless the end of those bytes changed. Returns the new size and a hash of the last bytes.
        """
        target = self._inside(path)
        with _translated(target):
            descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "r+b") as file:
                present = _tail(file, known)
                there = set(present.split(b"\n"))
                encoded = dict.fromkeys(line.encode("utf-8", errors="replace") for line in lines)
                missing = [line for line in encoded if line not in there]
                if missing:
                    size = file.seek(0, os.SEEK_END)
                    torn = size > 0 and not _last(file, 1).endswith(b"\n")
                    file.seek(0, os.SEEK_END)
                    file.write((b"\n" if torn else b"") + b"".join(line + b"\n" for line in missing))
                    file.flush()
                    os.fsync(file.fileno())
                return file.seek(0, os.SEEK_END), file_hash(_last(file, _CHECKED_BYTES))

    def sync_folders(self, paths: Iterable[str]) -> None:
        """Wait until the names of files lately written or removed are on disk."""
        if os.name == "nt":
            return
        for folder in sorted({(self.root / path).parent for path in paths}):
            if folder.is_dir():
                descriptor = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def _inside(self, path: str) -> Path:
        """The absolute path of a file, refusing ``..``, absolute paths and symbolic links on the way."""
        parts = Path(path).parts
        if Path(path).is_absolute() or ".." in parts:
            raise MemoryInvalid(f"{path!r} lies outside the vault", hint="paths are relative to the vault")
        at = self.root
        for part in parts:
            at = at / part
            if at.is_symlink():
                raise MemoryInvalid(f"{path!r} is a symbolic link", hint="replace it by the file itself")
        return at

    def _scan(self, folder: Path, prefix: str) -> Iterator[FileStat]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        except OSError as error:
            raise VaultUnusable(f"cannot read {folder}: {error.strerror}", hint="check its permissions") from error
        for entry in entries:
            path = f"{prefix}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith("."):
                    yield from self._scan(Path(entry.path), f"{path}/")
            elif is_memory_file(path) and entry.is_file(follow_symlinks=False):
                found = entry.stat(follow_symlinks=False)
                yield FileStat(path, found.st_mtime_ns, found.st_size)


def _tail(file: BinaryIO, known: tuple[int, bytes]) -> bytes:
    """What a file holds after the bytes that are known; all of it when those are not what they were."""
    size, digest = known
    start = max(0, size - _CHECKED_BYTES)
    file.seek(start)
    rest = file.read()
    if size and len(rest) >= size - start and file_hash(rest[: size - start]) == digest:
        return rest[size - start :]
    file.seek(0)
    return file.read()


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
