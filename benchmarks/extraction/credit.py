"""Assign memories to labels: to as many labels as possible, and first to those with the highest weight."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

CAPACITY = 2
"""Maximum number of labels for one memory, so that one long memory cannot match everything."""


def assign_credit(weights: Sequence[float], matches: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the memory for each label that has one. ``matches`` contains the memories that match each label.

    This is Kuhn's algorithm with augmenting paths, with at most two labels for each memory. Labels
    are assigned in the given order. Memories that can take most labels are tried first, so that
    fewer memories count as repetitions.
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
        """Assign a label to a memory. Other labels are moved if that makes room."""
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
