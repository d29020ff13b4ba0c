"""What is the owner's alone: folders are 0700 and files 0600, whatever the umask. Windows keeps its own ways."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import re
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
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
        with open(temporary, "w+b", opener=lambda name, _: open_file(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)) as file:
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
