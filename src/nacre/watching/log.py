"""The log of a watcher that nobody looks at: its last lines are what is of interest."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

from nacre.platform import private_files

MOST_BYTES = 1_000_000


class Log:
    """``logs/watcher.log`` of a home, or the log of ``name``. A full one is kept as ``watcher.log.1``, in the place of
    the one before."""

    def __init__(self, home: Path, name: str = "watcher") -> None:
        self.path = log_file(home, name)
        private_files.make_folder(self.path.parent)

    def write(self, line: str) -> None:
        """Add a line; opened each time, so that the file may be moved or deleted."""
        descriptor = private_files.open_file(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with os.fdopen(descriptor, "a", encoding="utf-8", errors="replace") as file:
            file.write(f"{line}\n")
            is_full = file.tell() > MOST_BYTES
        if is_full:
            self.path.replace(self.path.with_suffix(".log.1"))


def log_file(home: Path, name: str = "watcher") -> Path:
    """Where a watcher of a home writes, or the daemon."""
    return home / "logs" / f"{name}.log"


def last_lines(home: Path, count: int, name: str = "watcher") -> list[str]:
    """The last lines of the log, the oldest first."""
    path = log_file(home, name)
    found: deque[str] = deque(maxlen=count)
    for file in (path.with_suffix(".log.1"), path):
        try:
            with file.open(encoding="utf-8", errors="replace") as lines:
                found.extend(line.rstrip("\n") for line in lines)
        except OSError:
            continue
    return list(found)
