"""What is the owner's alone: folders are 0700 and files 0600, whatever the umask. Windows keeps its own ways."""

from __future__ import annotations

import contextlib
import errno
import glob
import lzma
import os
import re
import shlex
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from sys import modules
from typing import BinaryIO

from nacre.errors import Conflict, StoreUnusable

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_IS_POSIX = os.name == "posix"
_SAFE = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
"""No symbolic link is followed, and no pipe waited for."""
_LEFT = re.compile(r"\.([0-9]{1,9})\.tmp(-journal)?$")


def temporary_name(path: Path, part: str = "") -> Path:
    """Where a file, or ``part`` of what goes into it, lies beside its place until it is whole.

    It names the process, so that what one leaves that is killed goes when the same file is written next.
    """
    return path.with_name(f".{path.name}.{part}{os.getpid()}.tmp")


def make_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, for the owner alone; one that is there stays as it is."""
    missing = [path]
    while not missing[-1].exists() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        try:
            folder.mkdir(FOLDER_MODE)
        except FileExistsError:
            if not folder.is_dir():
                raise
        else:
            with contextlib.suppress(PermissionError):  # some file systems know no modes
                folder.chmod(FOLDER_MODE)


def open_file(path: Path | str, flags: int, *, dir_fd: int | None = None) -> int:
    """Open a regular file for the owner alone; returns its descriptor.

    Raises OSError for what is not a regular file, a symbolic link among it, without waiting for it.
    """
    descriptor = os.open(path, flags | _SAFE, FILE_MODE, dir_fd=dir_fd)
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if _IS_POSIX and flags & os.O_CREAT and stat.S_IMODE(seen.st_mode) != FILE_MODE:
            with contextlib.suppress(PermissionError):
                os.fchmod(descriptor, FILE_MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def write_file(path: Path, data: bytes | str) -> None:
    """Write a file for the owner alone, whole or not at all; one of that name is replaced."""
    with new_file(path, overwrite=True) as file:
        file.write(data.encode("utf-8", errors="replace") if isinstance(data, str) else data)


@contextlib.contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A file for the owner alone that takes its name when the block ends well; else nothing of it is left.

    Its ``name`` is where it lies until then. Raises Conflict where the name is taken and is not to be overwritten.
    """
    _refuse_taken(path, overwrite)
    make_folder(path.parent)
    sweep(path.parent, path.name)
    temporary = temporary_name(path)
    try:
        with open(
            temporary,
            "w+b",
            opener=lambda name, _: open_file(name, os.O_RDWR | os.O_CREAT | os.O_EXCL),
        ) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _refuse_taken(path, overwrite)  # the block may have taken its time
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(folder: Path, name: str = "") -> None:
    """Remove what processes that were killed left in a folder of a file of this name, or of any.

    Of this process only what is of that name: other threads of it may be writing other files.
    """
    for left in folder.glob(f".{glob.escape(name)}*.tmp*"):
        found = _LEFT.search(left.name)
        if found and (bool(name) if int(found[1]) == os.getpid() else not _is_alive(int(found[1]))):
            with contextlib.suppress(OSError):
                left.unlink()


def _is_alive(process: int) -> bool:
    """Whether a process is there; where that cannot be asked, it is."""
    if not _IS_POSIX:
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _refuse_taken(path: Path, overwrite: bool) -> None:
    if path.is_dir():
        raise Conflict(f"{path} is a folder", hint="name a file")
    if os.path.lexists(path) and not overwrite:
        raise Conflict(f"{path} exists already", hint="name another file, or add --force")


def refuse_unsafe(folder: Path) -> None:
    """Raise StoreUnusable for a folder in which another user could put things, with the command that mends it.

    That others may read it is not refused: ``nacre doctor`` tells. A symbolic link counts as what it points to, where
    the owner, or the system, made it.
    """
    if not _IS_POSIX:
        return
    seen, itself, owner = folder.stat(), folder.lstat(), os.geteuid()
    if seen.st_uid != owner or itself.st_uid not in (owner, 0):
        raise StoreUnusable(
            f"{folder} belongs to another user",
            hint="run nacre as that user, set NACRE_HOME to a folder of your own, "
            f"or take it over: chown -R {owner} {shlex.quote(str(folder))}",
        )
    if seen.st_mode & 0o022:
        raise StoreUnusable(
            f"{folder} can be written to by other users ({stat.S_IMODE(seen.st_mode):o})",
            hint=f"look whether what is in it is yours, then: chmod 700 {shlex.quote(str(folder))}",
        )


def shared(paths: list[Path]) -> Iterator[tuple[Path, int]]:
    """Files and folders among ``paths`` and below them that others may use, each with the mode it should have.

    Symbolic links are left alone.
    """
    if not _IS_POSIX:
        return
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        try:
            seen = path.lstat()
            if stat.S_ISDIR(seen.st_mode):
                waiting.extend(path.iterdir())
        except OSError:
            continue
        if not stat.S_ISLNK(seen.st_mode) and seen.st_mode & 0o077:
            yield path, stat.S_IMODE(seen.st_mode) & FOLDER_MODE


# ----------------------------------------------------------------------------
# Files that the owner names to be written: new ones and regular ones outside the home, whole or not
# at all.


@dataclass(frozen=True, slots=True)
class Territory:
    """What nacre keeps itself: folders with all that is in them, and single files that may lie elsewhere."""

    folders: Sequence[Path]
    files: Sequence[Path] = ()

    def holds(self, path: Path) -> bool:
        """Whether a path leads to something of it, by whatever name: links, ``..`` and upper case are seen through."""
        place = Path(os.path.realpath(path.parent))
        if any(
            _is_same(folder, above) for above in (place, *place.parents) for folder in self.folders
        ):
            return True
        if any(
            _is_same(file.parent, place) and file.name.casefold() == path.name.casefold()
            for file in self.files
        ):
            return True
        return any(_is_same(file, path) for file in (*self.folders, *self.files)) or self._links_to(
            path
        )

    def _links_to(self, path: Path) -> bool:
        """Whether a file is one of the territory by another hard link."""
        try:
            seen = path.stat()
        except OSError:
            return False
        if not stat.S_ISREG(seen.st_mode) or seen.st_nlink < 2:
            return False
        walks = (os.walk(folder) for folder in self.folders)
        below = (
            Path(parent, name) for walk in walks for parent, _, names in walk for name in names
        )
        return any(_is_same(one, path) for one in below)


@contextlib.contextmanager
def named_file(path: Path, keep_out: Territory, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A file that the owner names; it takes its name when the block ends well, else nothing of it is left.

    Raises Conflict where it lies in ``keep_out``, is there and is not to be overwritten, or is no regular file: a
    device, a pipe and a link stay what they are.
    """
    path = path.expanduser().absolute()
    refuse_named(path, keep_out)
    with new_file(path, overwrite=overwrite) as file:
        yield file
        refuse_named(path, keep_out)  # the block may have taken its time


def refuse_named(path: Path, keep_out: Territory) -> None:
    """Raise Conflict for a path that nothing may be written to, whoever allows it."""
    path = path.expanduser().absolute()
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        seen = path.lstat()
        if stat.S_ISLNK(seen.st_mode):
            raise Conflict(
                f"{path} is a link to {os.path.realpath(path)}",
                hint="name that file, or another one",
            )
        if not stat.S_ISREG(seen.st_mode) and not stat.S_ISDIR(seen.st_mode):
            raise Conflict(
                f"{path} is not a regular file", hint="name a new file, or one that may be replaced"
            )
    if keep_out.holds(path):
        raise Conflict(f"{path} is inside nacre's own home", hint="name a file somewhere else")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


# ----------------------------------------------------------------------------
# Zips that others made.


BROKEN = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
)
"""What reading one may raise: torn, spoiled, with a password, packed in a way that Python does not know."""


# ----------------------------------------------------------------------------
# SQL statements in files.
#
# A file is a row of blocks: a line ``-- name --``, comment lines that give the intent, then one
# statement.


_HEADING = re.compile(r"^-- (\w+) --\s*$", re.MULTILINE)


@cache
def statements(package: str, folder: str) -> dict[str, str]:
    """The statements of all ``.sql`` files in a package's folder, by name. Raises ValueError when two share one."""
    found: dict[str, str] = {}
    for file in sorted(
        Path(modules[package].__path__[0], folder).iterdir(), key=lambda file: file.name
    ):
        if not file.name.endswith(".sql"):
            continue
        parts = _HEADING.split(file.read_text(encoding="utf-8"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"two queries are called {name!r}")
            found[name] = body.strip()
    return found
