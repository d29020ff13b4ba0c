"""Put the scores of lanes on one scale and add them.

Min-max keeps how far a lane's best hit stands out, which rank fusion throws away (retrieval study: 1.8 points of
recall@10 on chat, more at rank 1 in one pile).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Protocol, TypeVar

K = TypeVar("K", bound=Hashable)


class Scale(Protocol):
    """Puts scores on 0..1; ``floor`` is the score that becomes 0, where it is known."""

    def __call__(self, scores: Mapping[K, float], floor: float | None = None) -> dict[K, float]: ...


def min_max(scores: Mapping[K, float], floor: float | None = None) -> dict[K, float]:
    """Scale to 0..1; ``floor`` is the value that becomes 0 (the lowest score when not given).

    Where all scores are alike none is worse than another: all become 1, unless they are 0.
    """
    if not scores:
        return {}
    low = min(scores.values()) if floor is None else floor
    span = max(scores.values()) - low
    if span <= 0:
        return dict.fromkeys(scores, 1.0 if max(scores.values()) > 0 else 0.0)
    return {key: (score - low) / span if score > low else 0.0 for key, score in scores.items()}


def blend(lanes: Mapping[str, tuple[float, Mapping[K, float]]]) -> dict[K, dict[str, float]]:
    """Each key's weighted part from each lane, by the lane's name; a lane that does not know a key gives 0.

    Weights are shares: they are divided by the sum of the weights of the lanes that ran.
    """
    total = sum(weight for weight, scores in lanes.values() if scores) or 1.0
    keys: dict[K, None] = {}
    for _, scores in lanes.values():
        keys.update(dict.fromkeys(scores))
    shares = [(name, weight / total, scores.get) for name, (weight, scores) in lanes.items()]
    return {key: {name: share * score_of(key, 0.0) for name, share, score_of in shares} for key in keys}
