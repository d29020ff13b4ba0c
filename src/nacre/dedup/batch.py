"""Many memories at once: likely repetitions are found by their MinHash signatures instead of by searching.

Signatures are derived. Those that are missing, also after a crash, are made in steps before they are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.home.home import Home
from nacre.platform.installed import is_installed
from nacre.platform.lazy import Module
from nacre.values.memory import Memory

if TYPE_CHECKING:
    from nacre.dedup import minhash
    from nacre.dedup.minhash import Signatures
else:
    minhash = Module("nacre.dedup.minhash")

BULK_FROM = 100
"""From so many new memories on, signatures are worth the quarter of a second that numpy takes to load."""

_STEP = 500


class Repetitions:
    """Which memories a new one may repeat. Empty for a few memories, and without numpy: words find what they repeat."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._rows: list[int] = []
        self._known: Signatures | None = None
        self._own: dict[str, Signatures] = {}

    def load(self, memories: Sequence[Memory]) -> None:
        """Read the stored signatures, after making those that are missing, and sign the new memories."""
        while waiting := self._home.comparisons.unsigned(_STEP):
            signed = {row: minhash.signature(content).tobytes() for row, content in waiting}
            with self._home.database.transaction():
                self._home.comparisons.sign(signed)
        stored = self._home.comparisons.signatures()
        self._rows = [row for row, _ in stored]
        self._known = minhash.stack([numbers for _, numbers in stored])
        self._own = {memory.id: minhash.signature(memory.content) for memory in memories}

    def of(self, memory: Memory) -> list[Memory]:
        """The stored memories that a new one likely repeats."""
        if self._known is None:
            return []
        rows = [self._rows[at] for at in minhash.near(self._own[memory.id], self._known)]
        return list(self._home.memories.by_rows(rows).values())

    def add(self, memory: Memory) -> None:
        """A new memory was stored: later ones may repeat it."""
        row = self._home.comparisons.row_of(memory.id) if self._known is not None else None
        if row is None or self._known is None:
            return
        self._home.comparisons.sign({row: self._own[memory.id].tobytes()})
        self._rows.append(row)
        self._known = minhash.with_row(self._known, self._own[memory.id])


def repetitions(home: Home, memories: Sequence[Memory]) -> Repetitions:
    """What tells which of some new memories repeat stored ones."""
    found = Repetitions(home)
    if len(memories) >= BULK_FROM and is_installed("numpy"):
        found.load(memories)
    return found
