"""What a run of ingestion has read so far."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nacre.parsing.parse import FileDone, FileFailed
from nacre.values.reports import Problem


@dataclass(slots=True)
class ReadTally:
    """Counts of files and turns, and what was left out or went wrong."""

    files: int = 0
    turns: int = 0
    skipped: int = 0
    unrecognised: int = 0
    bytes_done: int = 0
    bytes_read: int = 0
    corrupt: int = 0
    oversized: int = 0
    sessions: set[int] = field(default_factory=set)
    left_out: set[Path] = field(default_factory=set)
    withheld: set[Path] = field(default_factory=set)
    """Files with something that the archive must not have, either."""

    distrusted: set[tuple[str, str]] = field(default_factory=set)
    """Session and end of the id of memories that an agent stored out of text from outside."""

    tools: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    excluded: dict[str, str] = field(default_factory=dict)
    """Why (``tool``, ``project`` or ``path``), by file or session."""

    def count_done(self, event: FileDone) -> None:
        """Count a file that was read."""
        self.files += 1
        self.bytes_done += event.size
        self.bytes_read += event.bytes_read
        self.tools[event.tool] += 1
        self.unknown.update(event.tally.unknown)
        self.corrupt += event.tally.corrupt + event.tally.oversized
        self.oversized += event.tally.oversized

    def count_failed(self, event: FileFailed) -> None:
        """Count a file that was not read."""
        self.bytes_done += event.size
        if event.is_excluded:
            self.excluded[str(event.path)] = "tool"
        elif event.is_own:
            self.excluded[str(event.path)] = "nacre's own call"
        elif event.problem:
            self.problems.append(event.problem)
        else:
            self.unrecognised += 1
            self.empty += [str(event.path)] if event.is_empty else []

    def in_report(self) -> dict[str, Any]:
        """The fields of a report that tell of reading."""
        return {
            "files": self.files, "sessions": len(self.sessions), "turns": self.turns, "bytes_read": self.bytes_read,
            "skipped": self.skipped + self.unrecognised, "unrecognised": self.unrecognised,
            "left_out": len(self.left_out), "tools": dict(self.tools), "unknown": dict(self.unknown),
            "corrupt": self.corrupt, "oversized": self.oversized,
            "excluded": dict(Counter(self.excluded.values())), "empty": tuple(self.empty),
            "problems": tuple(self.problems),
        }  # fmt: skip
