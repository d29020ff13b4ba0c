"""Read, write and scan the vault's files; nothing leaves the vault, nothing is overwritten unseen."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nacre.errors import EditConflict, MemoryInvalid, VaultUnusable
from nacre.vault.layout import is_memory_file


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

    def append(self, path: str, line: str) -> None:
        """Append a line that is not there yet (a line begins with its operation's id), and wait for the disk."""
        target = self._inside(path)
        with _translated(target):
            data = target.read_bytes() if target.exists() else b""
            encoded = line.encode("utf-8", errors="replace")
            if encoded in data.split(b"\n"):
                return
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                file.write((b"\n" if data and not data.endswith(b"\n") else b"") + encoded + b"\n")
                file.flush()
                os.fsync(file.fileno())

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
