"""Which memory is credited with which label: as many labels as possible, the heavy ones first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

CAPACITY = 2
"""Labels one memory can be credited with: a memory that says everything does not answer everything."""


def assign_credit(weights: Sequence[float], matches: Sequence[Sequence[int]]) -> dict[int, int]:
    """The memory of each label that is credited to one. ``matches`` holds the memories that fit each label.

    A matching along augmenting paths (Kuhn), where a memory has room for two labels. Labels are in the order in which
    they found a place; memories with most room are asked first, so that no memory is called a repetition needlessly.
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

    def settle(self, label: int, asked: set[int]) -> bool:
        """Credit a label to a memory, moving other labels to other memories where that makes room."""
        for memory in sorted(self.matches[label], key=lambda at: len(self.labels_of[at])):
            if memory in asked:
                continue
            asked.add(memory)
            if self._has_room(memory, asked):
                self.labels_of[memory].append(label)
                self.memory_of[label] = memory
                return True
        return False

    def _has_room(self, memory: int, asked: set[int]) -> bool:
        holders = self.labels_of[memory]
        if len(holders) < CAPACITY:
            return True
        mover = next((label for label in list(holders) if self.settle(label, asked)), None)
        if mover is not None:
            holders.remove(mover)
        return mover is not None
