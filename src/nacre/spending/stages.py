"""Stages of long work as steps of its trace: what came of each, and how long it took."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from nacre.spending.tracing import Run
from nacre.values.trace import Step

MOST_REFS = 100
"""Of a step: what a big run stored is in the vault, and in its operation."""


class Stages:
    """Notes each stage as it ends; what nothing came of is no step."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._last = time.perf_counter()

    def end(self, title: str, counts: Mapping[str, int], refs: Sequence[str] = ()) -> None:
        """A stage is over: ``counts`` tell what came of it, zeros are left out."""
        now, told = time.perf_counter(), counted(counts)
        if told:
            self._run.add(Step(title, output=told, refs=tuple(refs[:MOST_REFS]), seconds=now - self._last))
        self._last = now


def counted(counts: Mapping[str, int]) -> str:
    """Counts in words: ``files: 3, turns: 1,204``; those that are zero are left out."""
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items() if count)
