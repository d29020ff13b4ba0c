"""What several questions found, as one answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nacre.retrieval.memories import ScoredMemory


def most_of(lists: Sequence[Sequence[ScoredMemory]]) -> list[ScoredMemory]:
    """Hits of several questions as one list: of each memory the best score, and as sure as it ever was."""
    best: dict[str, ScoredMemory] = {}
    for item in (item for ranked in lists for item in ranked):
        known = best.get(item.memory.id)
        if known is None:
            best[item.memory.id] = item
            continue
        first = max((known, item), key=lambda one: one.score)
        surest = max((known, item), key=lambda one: one.confidence)
        linked = tuple(dict.fromkeys((*known.linked_from, *item.linked_from)))
        best[item.memory.id] = replace(first, signals=surest.signals, confidence=surest.confidence, linked_from=linked)
    return sorted(best.values(), key=lambda item: (-item.score, item.memory.id))
