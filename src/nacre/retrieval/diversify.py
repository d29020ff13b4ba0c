"""Keep near-copies from filling an answer: maximal marginal relevance (Carbonell & Goldstein 1998)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from nacre.text.passages import words

T = TypeVar("T")

LAMBDA = 0.7
"""What relevance counts, beside being unlike what was chosen before."""

NEAR_COPY = 0.75
"""From this likeness on an item says what another one says already: it comes after all that does not."""


def diversify(
    items: Sequence[T], *, score: Callable[[T], float], text: Callable[[T], str], limit: int,
    relevance_share: float = LAMBDA,
) -> list[tuple[T, float]]:  # fmt: skip
    """Choose up to ``limit`` items, each weighed against its likeness to those chosen before; each with that likeness.

    Likeness is the Jaccard index of words longer than two characters; scores are expected in 0..1.
    """
    left = list(items)
    bags = {id(item): {word for word in words(text(item)[:2000]) if len(word) > 2} for item in left}
    chosen: list[tuple[T, float]] = []
    closest = {id(item): 0.0 for item in left}
    while left and len(chosen) < limit:
        best = max(left, key=lambda item: _worth(score(item), closest[id(item)], relevance_share))
        chosen.append((best, closest[id(best)]))
        left = [item for item in left if item is not best]
        for item in left:
            closest[id(item)] = max(closest[id(item)], _jaccard(bags[id(item)], bags[id(best)]))
    return chosen


def share_left(score: float, likeness: float, relevance_share: float = LAMBDA) -> float:
    """The share of its score that an item keeps for its place, 0 to 1: what likeness takes is (1-λ)/λ of itself."""
    if score <= 0 or relevance_share <= 0:
        return 0.0
    return max(0.0, 1 - (1 - relevance_share) / relevance_share * likeness / score)


def _worth(score: float, likeness: float, relevance_share: float) -> float:
    worth = relevance_share * score - (1 - relevance_share) * likeness
    return worth - (1.0 if likeness >= NEAR_COPY else 0.0)


def _jaccard(first: set[str], second: set[str]) -> float:
    union = len(first | second)
    return len(first & second) / union if union else 0.0
