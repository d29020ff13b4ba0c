"""Files that a command writes outside the home, at a path given by the caller."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from nacre.base.files import new_file
from nacre.base.frozen import frozen
from nacre.errors import ConflictError

# -- Files written outside the home ----------------------------------------------------------------


@frozen
class Territory:
    """The paths that belong to nacre.

    ``folders``: folders whose whole content belongs to nacre. ``files``: other files of nacre.
    """

    folders: Sequence[Path]
    files: Sequence[Path] = ()

    def holds(self, path: Path) -> bool:
        """Return True if a path belongs to nacre.

        Links, ``..`` and a different letter case do not hide the path.
        """
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
        """Return True if a file is a hard link to a file in one of the folders."""
        try:
            status = path.stat()
        except OSError:
            return False
        if not stat.S_ISREG(status.st_mode) or status.st_nlink < 2:
            return False
        walks = (os.walk(folder) for folder in self.folders)
        below = (
            Path(parent, name) for walk in walks for parent, _, names in walk for name in names
        )
        return any(_is_same(file, path) for file in below)


@contextlib.contextmanager
def named_file(path: Path, keep_out: Territory, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Yield a file at a path that the user named. It is written completely or not at all.

    Raises ConflictError if the path is in ``keep_out``, is not a regular file, or exists (unless
    ``overwrite``). Devices, pipes and links are never replaced.
    """
    path = path.expanduser().absolute()
    refuse_named(path, keep_out)
    with new_file(path, overwrite=overwrite) as file:
        yield file
        refuse_named(path, keep_out)  # the path might have changed during the block


def refuse_named(path: Path, keep_out: Territory) -> None:
    """Raise ConflictError for a path that must not be written, even if the user allows it."""
    path = path.expanduser().absolute()
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise ConflictError(
                f"{path} is a link to {os.path.realpath(path)}",
                hint="name that file, or another one",
            )
        if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
            raise ConflictError(
                f"{path} is not a regular file", hint="name a new file, or one to replace"
            )
    if keep_out.holds(path):
        raise ConflictError(f"{path} is inside nacre's own home", hint="choose a path outside it")


def _is_same(first: Path, second: Path) -> bool:
    try:
        return os.path.samefile(first, second)
    except OSError:
        return False
