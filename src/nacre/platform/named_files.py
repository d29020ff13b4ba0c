"""Files that the owner names to be written: new ones and regular ones outside the home, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from nacre.errors import Conflict
from nacre.platform import private_files


@dataclass(frozen=True, slots=True)
class Territory:
    """What nacre keeps itself: folders with all that is in them, and single files that may lie elsewhere."""

    folders: Sequence[Path]
    files: Sequence[Path] = ()

    def holds(self, path: Path) -> bool:
        """Whether a path leads to something of it, by whatever name: links, ``..`` and upper case are seen through."""
        place = Path(os.path.realpath(path.parent))
        if any(_is_same(folder, above) for above in (place, *place.parents) for folder in self.folders):
            return True
        if any(_is_same(file.parent, place) and file.name.casefold() == path.name.casefold() for file in self.files):
            return True
        return any(_is_same(file, path) for file in (*self.folders, *self.files)) or self._links_to(path)

    def _links_to(self, path: Path) -> bool:
        """Whether a file is one of the territory by another hard link."""
        try:
            seen = path.stat()
        except OSError:
            return False
        if not stat.S_ISREG(seen.st_mode) or seen.st_nlink < 2:
            return False
        walks = (os.walk(folder) for folder in self.folders)
        below = (Path(parent, name) for walk in walks for parent, _, names in walk for name in names)
        return any(_is_same(one, path) for one in below)


@contextlib.contextmanager
def named_file(path: Path, keep_out: Territory, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A file that the owner names; it takes its name when the block ends well, else nothing of it is left.

    Raises Conflict where it lies in ``keep_out``, is there and is not to be overwritten, or is no regular file: a
    device, a pipe and a link stay what they are.
    """
    path = path.expanduser().absolute()
    refuse_named(path, keep_out)
    with private_files.new_file(path, overwrite=overwrite) as file:
        yield file
        refuse_named(path, keep_out)  # the block may have taken its time


def refuse_named(path: Path, keep_out: Territory) -> None:
    """Raise Conflict for a path that nothing may be written to, whoever allows it."""
    path = path.expanduser().absolute()
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        seen = path.lstat()
        if stat.S_ISLNK(seen.st_mode):
            raise Conflict(f"{path} is a link to {os.path.realpath(path)}", hint="name that file, or another one")
        if not stat.S_ISREG(seen.st_mode) and not stat.S_ISDIR(seen.st_mode):
            raise Conflict(f"{path} is not a regular file", hint="name a new file, or one that may be replaced")
    if keep_out.holds(path):
        raise Conflict(f"{path} is inside nacre's own home", hint="name a file somewhere else")


def _is_same(one: Path, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
