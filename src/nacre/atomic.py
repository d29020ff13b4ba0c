"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from nacre.errors import Conflict


@contextlib.contextmanager
def written(target: Path, *, overwrite: bool = False) -> Iterator[BinaryIO]:
    """A new file, mode 0600, that takes its name when the block ends well; else nothing of it is left.

    Raises Conflict where the name is taken and is not to be overwritten.
    """
    target = target.expanduser().absolute()
    refuse_taken(target, overwrite=overwrite)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        refuse_taken(target, overwrite=overwrite)  # the block may have taken its time
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def refuse_taken(target: Path, *, overwrite: bool) -> None:
    """Raises Conflict where a name is taken and is not to be overwritten."""
    if target.is_dir():
        raise Conflict(f"{target} is a folder", hint="name a file")
    if os.path.lexists(target) and not overwrite:
        raise Conflict(f"{target} exists already", hint="name another file, or add --force")
