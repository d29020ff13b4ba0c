"""Files that a command writes outside the home, at a path given by the caller."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from nacre.base.files import new_file
from nacre.errors import ConflictError

KeptOut = Sequence[Path]
"""Files and folders of nacre, with everything in these folders."""


@contextlib.contextmanager
def named_file(path: Path, keep_out: KeptOut, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """Yield a new file at a path chosen by the user, which appears only if the block succeeds.

    Raises ConflictError if the path is in ``keep_out``, is not a regular file, or exists (unless
    ``overwrite``).
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
