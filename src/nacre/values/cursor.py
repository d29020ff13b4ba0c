"""How far a transcript was read, and what the reading met."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a file was read.

    ``fingerprint`` covers the first bytes (at most 256): a file that keeps its inode but not its beginning was
    replaced. ``carry`` is what the adapter wanted to find again.
    """

    inode: int = 0
    offset: int = 0
    size: int = 0
    mtime_ns: int = 0
    fingerprint: str = ""
    carry: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """What a reading met besides good records."""

    unknown: Counter[str] = field(default_factory=Counter)
    corrupt: int = 0
    oversized: int = 0
