"""PageRank (Page and Brin, 1998): how often a random walk along links visits a memory."""

from __future__ import annotations

from collections.abc import Sequence

DAMPING = 0.85
_ROUNDS = 50
_ENOUGH = 1e-7


def pagerank(nodes: int, links: Sequence[tuple[int, int]]) -> list[float]:
    """The rank of each node; the sum is 1. A node without outgoing links counts as linked to all."""
    leads: list[list[int]] = [[] for _ in range(nodes)]
    for source, target in links:
        leads[source].append(target)
    ranks = [1 / max(1, nodes)] * nodes
    for _ in range(_ROUNDS):
        following = _round(leads, ranks)
        change = sum(abs(one - other) for one, other in zip(ranks, following, strict=True))
        ranks = following
        if change < _ENOUGH:
            break
    return ranks


def _round(leads: Sequence[Sequence[int]], ranks: Sequence[float]) -> list[float]:
    lost = sum(rank for rank, ends in zip(ranks, leads, strict=True) if not ends)
    following = [(1 - DAMPING + DAMPING * lost) / max(1, len(ranks))] * len(ranks)
    for rank, ends in zip(ranks, leads, strict=True):
        if ends:
            share = DAMPING * rank / len(ends)
            for end in ends:
                following[end] += share
    return following
