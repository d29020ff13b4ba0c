"""Credit memories with labels: as many labels as possible, heavy ones first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

CAPACITY = 2
"""Maximum labels credited to one memory, so that one long memory cannot match everything."""


def assign_credit(weights: Sequence[float], matches: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the memory of each credited label. ``matches`` has the matching memories of each label.

    This is Kuhn's algorithm with augmenting paths, with two labels for each memory. Labels are in the order of
    assignment. Memories with most room are tried first, so that fewer memories count as repetitions.
    """
    ledger = _Ledger(matches)
    for label in sorted(range(len(weights)), key=lambda at: -weights[at]):
        ledger.settle(label, set())
    return ledger.memory_of


class _Ledger:
    def __init__(self, matches: Sequence[Sequence[int]]) -> None:
        self.matches = matches
        self.labels_of: defaultdict[int, list[int]] = defaultdict(list)
        self.memory_of: dict[int, int] = {}

    def settle(self, label: int, visited: set[int]) -> bool:
        """Credit a label to a memory; move other labels if that makes room."""
        for memory in sorted(self.matches[label], key=lambda at: len(self.labels_of[at])):
            if memory in visited:
                continue
            visited.add(memory)
            if self._has_room(memory, visited):
                self.labels_of[memory].append(label)
                self.memory_of[label] = memory
                return True
        return False

    def _has_room(self, memory: int, visited: set[int]) -> bool:
        holders = self.labels_of[memory]
        if len(holders) < CAPACITY:
            return True
        mover = next((label for label in list(holders) if self.settle(label, visited)), None)
        if mover is not None:
            holders.remove(mover)
        return mover is not None
