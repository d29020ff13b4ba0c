"""A context as a file, for hosts that only read files: CONTEXT.md."""

from __future__ import annotations

from pathlib import Path

from nacre.errors import StoreUnusable
from nacre.platform.named_files import Territory, named_file, refuse_named
from nacre.values.context import ContextBlock


def write_snapshot(path: Path, block: ContextBlock, keep_out: Territory) -> bool:
    """Write a context to a file, whole or not at all, and only where it says something else than before.

    Returns whether it was written. An empty context makes an empty file, so that nothing outdated is read. Raises
    StoreUnusable, and Conflict where no such file may be written.
    """
    refuse_named(path, keep_out)
    data = (block.text + "\n" if block.text else "").encode()
    try:
        if path.is_file() and path.read_bytes() == data:
            return False
        with named_file(path, keep_out, overwrite=True) as file:
            file.write(data)
    except OSError as error:
        raise StoreUnusable(f"cannot write {path}: {error.strerror}", hint="name a file that can be written") from error
    return True
