"""JSON Lines files to which processes append without waiting for the database.

nacre renames a spool, stores its lines in a transaction, and deletes it. Storing a line twice must
have no effect, so that a crash neither loses nor duplicates lines.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from nacre.base import files, json
from nacre.base.locks import FileLock
from nacre.errors import StoreBusyError

_PATIENCE_SECONDS = 0.25


class Spool:
    """A file of JSON lines, ``<name>.jsonl``, to which processes append."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self.path = folder / f"{name}.jsonl"

    def append(self, line: bytes) -> None:
        """Append a line, unless the disk is full or the file is locked."""
        with (
            suppress(StoreBusyError, OSError),
            self._lock(),
            files.open_to_append(self.path) as file,
        ):
            # The newline comes first, so that a truncated line does not damage the next.
            file.write(b"\n" + line)

    def leftovers(self) -> list[Path]:
        """Return files whose processing a crash interrupted, oldest first."""
        paths = self._folder.glob(f"{self._name}.*.taken")
        return sorted(path for path in paths if path.is_file() and os.access(path, os.R_OK))

    def take(self, new_id: Callable[[], str]) -> Iterator[Path]:
        """Yield the files to read, those left by a crash first. New lines go into a new file."""
        yield from self.leftovers()
        renamed = self._folder / f"{self._name}.{new_id()}.taken"
        if self.path.is_file() and os.access(self.path, os.R_OK):
            with suppress(FileNotFoundError, StoreBusyError):
                with self._lock():
                    self.path.rename(renamed)
                yield renamed

    def _lock(self) -> FileLock:
        return FileLock(self._folder / f"{self._name}.lock", _PATIENCE_SECONDS)


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a spool file, skipping damaged lines."""
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        with suppress(ValueError):
            value = json.parse(line)
            if isinstance(value, dict):
                yield value
