"""Memories that were used together come together: neighbours of the best hits gain a little (seed facts 1.2.2).

A gain reorders hits that are likely to answer. What is not likely to by itself may come along, but only after all that
is, only where it was used together more than once, and only a few: habit adds to an answer, it does not replace it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nacre.retrieval.confidence import BORDER, Signals
from nacre.retrieval.memories import ScoredMemory
from nacre.storage.co_recall import Edge
from nacre.values.memory import Memory

SEEDS = 5
NEIGHBOURS = 10
LEAST_WEIGHT = 0.1
SHARE = 0.15
COMPANION_WEIGHT = 0.15
"""What one session gives an edge, .1, does not suffice to bring along what nothing else speaks for."""

COMPANIONS = 3


def seeds(hits: Sequence[ScoredMemory]) -> list[str]:
    """The ids of the best hits that are likely to answer, by signals that do not depend on ranks."""
    return [item.memory.id for item in hits if item.confidence >= BORDER][:SEEDS]


def pulls(edges: Sequence[Edge]) -> dict[str, float]:
    """The weight with which each neighbour is drawn: that of its strongest edge to a seed.

    ``edges`` go out from the seeds, the strongest first; ten a seed count.
    """
    drawn: dict[str, float] = {}
    followed: dict[str, int] = {}
    for edge in edges:
        followed[edge.memory] = followed.get(edge.memory, 0) + 1
        if edge.weight >= LEAST_WEIGHT and followed[edge.memory] <= NEIGHBOURS:
            drawn[edge.other] = max(drawn.get(edge.other, 0.0), edge.weight)
    return drawn


def may_come_along(weight: float) -> bool:
    """Whether use together alone is reason enough to show a memory."""
    return weight >= COMPANION_WEIGHT


def lift(hits: Sequence[ScoredMemory], drawn: Mapping[str, float]) -> list[ScoredMemory]:
    """The hits with what their neighbours add: own score + .15 · weight, at most 1, where they are likely to answer."""
    lifted = [
        _drawn(item, drawn[item.memory.id]) if item.memory.id in drawn and item.confidence >= BORDER else item
        for item in hits
    ]
    return sorted(lifted, key=lambda item: (-item.score, item.memory.id))


def companions(
    hits: Sequence[ScoredMemory], others: Sequence[ScoredMemory], found: Sequence[Memory], drawn: Mapping[str, float]
) -> list[ScoredMemory]:
    """What comes along below the hits: from ``others``, which lanes found without being sure, or ``found`` by none."""
    unfound = [ScoredMemory(memory, 0.0, {}, Signals(0.0, None)) for memory in found]
    ceiling = min((item.score for item in hits), default=0.0)
    drawn_along = [
        _drawn(item, drawn[item.memory.id], ceiling)
        for item in [*others, *unfound]
        if may_come_along(drawn.get(item.memory.id, 0.0))
    ]
    return sorted(drawn_along, key=lambda item: (-item.score, item.memory.id))[:COMPANIONS]


def _drawn(item: ScoredMemory, weight: float, ceiling: float = 1.0) -> ScoredMemory:
    gain = SHARE * weight
    score = min(ceiling, item.score + gain)
    told = {"x_co_recall": round(score / item.score, 4)} if item.score else {"relevance": round(score, 4)}
    return replace(item, score=score, components={**item.components, **told, "co_recall": round(gain, 4)})
