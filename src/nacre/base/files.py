"""Private files (mode 0600, folders 0700), zips and SQL files.

These modes do not depend on the umask. On Windows, permissions are left unchanged.
"""

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
from collections.abc import Iterator
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
    """Return a temporary path at which to write a file. ``part`` is added to the name.

    The name contains the process id, so that :func:`sweep` can remove files of killed processes.
    """
    return path.with_name(f".{path.name}.{part}{os.getpid()}.tmp")


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents with mode 0700. Existing folders are not changed."""
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

    Raises OSError for anything else, including symbolic links, without blocking.
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


def write_file(path: Path, data: bytes | str) -> None:
    """Write or replace a private file atomically."""
    with new_file(path, overwrite=True) as file:
        file.write(data.encode("utf-8", errors="replace") if isinstance(data, str) else data)


@contextlib.contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Yield a private file. Rename it to its final name if the block succeeds, otherwise delete it.

    ``file.name`` is the temporary path. Raises ConflictError if the file exists, unless
    ``overwrite``.
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
        _refuse_taken(
            path, overwrite
        )  # another process might have created the file during the block
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(folder: Path, name: str = "") -> None:
    """Remove temporary files that killed processes have left in a folder.

    With ``name``, remove only temporary files of this name, including those of this process.
    Without it, keep this process's files, because other threads might be writing them.
    """
    for path in folder.glob(f".{glob.escape(name)}*.tmp*"):
        match = _TEMPORARY_NAME.search(path.name)
        if match and (bool(name) if int(match[1]) == os.getpid() else not _is_alive(int(match[1]))):
            with contextlib.suppress(OSError):
                path.unlink()


def _is_alive(process: int) -> bool:
    """Return True if a process exists, or if this cannot be determined."""
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
        raise ConflictError(f"{path} is a folder", hint="name a file")
    if os.path.lexists(path) and not overwrite:
        raise ConflictError(f"{path} exists already", hint="name another file, or add --force")


def refuse_unsafe(folder: Path) -> None:
    """Raise UnusableStoreError if other users can write to a folder.

    The hint is a command to fix it.

    A folder that others can only read is accepted; ``nacre admin doctor`` reports it. A symbolic
    link is followed if the owner or root created it.
    """
    if not _IS_POSIX:
        return
    status, itself, owner = folder.stat(), folder.lstat(), os.geteuid()
    if status.st_uid != owner or itself.st_uid not in (owner, 0):
        raise UnusableStoreError(
            f"{folder} belongs to another user",
            hint="run nacre as that user, set NACRE_HOME to a folder of your own, "
            f"or take it over: chown -R {owner} {shlex.quote(str(folder))}",
        )
    if status.st_mode & 0o022:
        raise UnusableStoreError(
            f"{folder} can be written to by other users ({stat.S_IMODE(status.st_mode):o})",
            hint=f"check that its contents are yours, then: chmod 700 {shlex.quote(str(folder))}",
        )


def shared(paths: list[Path]) -> Iterator[tuple[Path, int]]:
    """Yield files and folders that other users can access, with the mode that they should have.

    Folders are searched recursively. Symbolic links are skipped.
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


# -- Zip files from other programs -----------------------------------------------------------------


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
"""Errors for zip files that are truncated, damaged or encrypted, or use an unknown compression."""
