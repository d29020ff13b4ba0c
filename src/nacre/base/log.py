"""Log files in a home."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from nacre.base import files

MAX_BYTES = 1_000_000


class Log:
    """A log file in a home's ``logs`` folder. When full, it is renamed to ``.log.1``."""

    def __init__(self, home: Path, name: str) -> None:
        self.path = home / "logs" / f"{name}.log"

    def write(self, line: str) -> None:
        """Append a line. The file may be moved or deleted between calls."""
        files.make_folder(self.path.parent)
        with files.open_to_append(self.path) as file:
            file.write(f"{line}\n".encode(errors="replace"))
            is_full = file.tell() > MAX_BYTES
        if is_full:
            self.path.replace(self.path.with_suffix(".log.1"))

    def last_lines(self, count: int) -> list[str]:
        """Return the log's last lines, oldest first."""
        tail: deque[str] = deque(maxlen=count)
        for file in (self.path.with_suffix(".log.1"), self.path):
            try:
                with file.open(encoding="utf-8", errors="replace") as lines:
                    tail.extend(line.rstrip("\n") for line in lines)
            except OSError:
                continue
        return list(tail)
