"""Private files (mode 0600, folders 0700), and output files named by the user.

These modes do not depend on the umask. On Windows, permissions are left unchanged.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from nacre.errors import ConflictError, UnusableStoreError

FOLDER_MODE = 0o700
FILE_MODE = 0o600
_IS_POSIX = os.name == "posix"
_SAFE_FLAGS = (
    getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
"""Flags for opening a file without following symbolic links or blocking on pipes."""
_TEMPORARY_NAME = re.compile(r"\.([0-9]{1,9})\.tmp(-journal)?$")


def temporary_name(path: Path, part: str = "") -> Path:
    """Return a path next to ``path`` for a temporary file that :func:`sweep` can later remove."""
    return path.with_name(f".{path.name}.{part}{os.getpid()}.tmp")


def make_folder(path: Path) -> None:
    """Create a folder, and its missing parents, with mode 0700."""
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
            with contextlib.suppress(PermissionError):  # some file systems have no modes
                folder.chmod(FOLDER_MODE)


def open_file(path: Path | str, flags: int, *, dir_fd: int | None = None) -> int:
    """Open a regular file and return its descriptor. A new file gets mode 0600.

    Raises OSError for anything else, including symbolic links.
    """
    descriptor = os.open(path, flags | _SAFE_FLAGS, FILE_MODE, dir_fd=dir_fd)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        if _IS_POSIX and flags & os.O_CREAT and stat.S_IMODE(status.st_mode) != FILE_MODE:
            with contextlib.suppress(PermissionError):
                os.fchmod(descriptor, FILE_MODE)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_to_read(path: Path | str) -> BinaryIO:
    """Open a regular file for reading. Raises OSError."""
    return os.fdopen(open_file(path, os.O_RDONLY), "rb")


def open_to_append(path: Path | str) -> BinaryIO:
    """Open a private file for appending, and create it if it is missing. Raises OSError."""
    return os.fdopen(open_file(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab")


def write_file(path: Path, data: bytes | str, *, durable: bool = True) -> None:
    """Atomically write or replace a file that only its owner can read."""
    with new_file(path, overwrite=True, durable=durable) as file:
        file.write(data.encode("utf-8", errors="replace") if isinstance(data, str) else data)


@contextlib.contextmanager
def new_file(path: Path, *, overwrite: bool = False, durable: bool = True) -> Iterator[BinaryIO]:
    """Yield a private temporary file that replaces ``path`` once the block succeeds.

    Raises ConflictError if ``path`` exists, unless ``overwrite`` is set. Without ``durable``, a
    power failure can lose the content.
    """
    _refuse_taken(path, overwrite)
    make_folder(path.parent)
    sweep(path.parent, path.name)
    temporary = temporary_name(path, f"{time.time_ns()}.")
    try:
        with open(
            temporary,
            "w+b",
            opener=lambda name, _: open_file(name, os.O_RDWR | os.O_CREAT | os.O_EXCL),
        ) as file:  # with its name, which SQLite writes to
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
        _refuse_taken(path, overwrite)  # another process might have created the file meanwhile
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(folder: Path, name: str = "") -> None:
    """Remove temporary files that killed processes left in a folder, or only those for ``name``."""
    for path in folder.glob(f".{glob.escape(name)}*.tmp*"):
        match = _TEMPORARY_NAME.search(path.name)
        if match and not _is_alive(int(match[1])):
            with contextlib.suppress(OSError):
                path.unlink()


def _is_alive(process: int) -> bool:
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
        raise ConflictError(f"{path} is a folder", hint="choose a file")
    if os.path.lexists(path) and not overwrite:
        raise ConflictError(f"{path} exists already", hint="choose another, or add --force")


def refuse_unsafe(folder: Path) -> None:
    """Raise UnusableStoreError if other users can write to a folder.

    A symbolic link is followed if the owner or root created it.
    """
    if not _IS_POSIX:
        return
    status, itself, owner = folder.stat(), folder.lstat(), os.geteuid()
    if status.st_uid == owner and itself.st_uid in (owner, 0) and not status.st_mode & 0o022:
        return
    import shlex  # noqa: PLC0415 - hooks load this module

    if status.st_uid != owner or itself.st_uid not in (owner, 0):
        raise UnusableStoreError(
            f"{folder} belongs to another user",
            hint="run nacre as that user, set NACRE_HOME to a folder of your own, "
            f"or take it over: chown -R {owner} {shlex.quote(str(folder))}",
        )
    raise UnusableStoreError(
        f"{folder} can be written to by other users ({stat.S_IMODE(status.st_mode):o})",
        hint=f"check that its contents are yours, then: chmod 700 {shlex.quote(str(folder))}",
    )


def shared(paths: list[Path]) -> Iterator[tuple[Path, int]]:
    """Yield files and folders that other users can access, each with the mode it should have.

    Subfolders are included, but symbolic links are not followed.
    """
    if not _IS_POSIX:
        return
    pending = list(paths)
    while pending:
        path = pending.pop()
        try:
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode):
                pending.extend(path.iterdir())
        except OSError:
            continue
        if not stat.S_ISLNK(status.st_mode) and status.st_mode & 0o077:
            yield path, stat.S_IMODE(status.st_mode) & FOLDER_MODE


# -- Named output files outside the home -----------------------------------------------------------


KeptOut = Sequence[Path]
"""nacre's files and folders, with everything in the folders."""


@contextlib.contextmanager
def named_file(path: Path, keep_out: KeptOut, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Yield a new file at a path chosen by the user, which appears only if the block succeeds.

    Raises ConflictError if the path is in ``keep_out``, is not a regular file, or (without
    ``overwrite``) exists.
    """
    path = path.expanduser().absolute()
    refuse_named(path, keep_out)
    with new_file(path, overwrite=overwrite) as file:
        yield file
        refuse_named(path, keep_out)  # the path might have changed during the block


def refuse_named(path: Path, keep_out: KeptOut) -> None:
    """Raise ConflictError for a path that must not be written even with ``overwrite``."""
    path = path.expanduser().absolute()
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise ConflictError(
                f"{path} is a link to {os.path.realpath(path)}",
                hint="give that path, or another",
            )
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            raise ConflictError(f"{path} is not a regular file", hint="choose another path")
    if is_within(path, keep_out):
        raise ConflictError(f"{path} is inside nacre's own home", hint="choose a path outside it")


def is_within(path: Path, owned: KeptOut) -> bool:
    """Return True if a path equals or lies inside one of the given paths."""
    place = Path(os.path.realpath(path.parent), path.name)
    return any(_is_same(own, above) for own in owned for above in (place, *place.parents))


def _is_same(first: Path, second: Path) -> bool:
    try:
        return os.path.samefile(first, second)
    except OSError:
        return first == second
