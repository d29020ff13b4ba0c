"""Scores of ranked lists against labels."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from nacre.base.frozen import frozen

MEASURES = ("recall@5", "recall@10", "recall@20", "all@10", "hit@1", "hit@5", "mrr")
_BOOTSTRAP_ROUNDS = 2000


@frozen
class Scored:
    """One question's scores for turns and sessions, by measure; ``None`` without labels."""

    category: str
    turns: Mapping[str, float] | None
    sessions: Mapping[str, float] | None
    seconds: float


@frozen
class Gain:
    """A difference between paired scores in points of 100, and its 95 % interval."""

    points: float
    low: float
    high: float


def score_list(ranked: Sequence[str], gold: frozenset[str]) -> dict[str, float] | None:
    """Return all measures for a ranked list, or ``None`` without labels."""
    if not gold:
        return None
    places = [at for at, turn in enumerate(ranked, start=1) if turn in gold]

    def within(depth: int) -> int:
        return sum(place <= depth for place in places)

    return {
        **{f"recall@{depth}": within(depth) / len(gold) for depth in (5, 10, 20)},
        "all@10": float(within(10) == len(gold)),
        **{f"hit@{depth}": float(within(depth) > 0) for depth in (1, 5)},
        "mrr": 1 / places[0] if places else 0.0,
    }


def sessions_of(ranked: Sequence[str], session_of: Mapping[str, str]) -> list[str]:
    """Return sessions in the order of their best turn."""
    return list(dict.fromkeys(session_of[turn] for turn in ranked if turn in session_of))


def mean(scores: Sequence[Mapping[str, float] | None]) -> dict[str, float] | None:
    """Return the mean of each measure in percent, over the questions that have scores."""
    present = [score for score in scores if score is not None]
    if not present:
        return None
    return {
        measure: round(100 * sum(score[measure] for score in present) / len(present), 1)
        for measure in MEASURES
    }


def paired_gain(
    better: Sequence[Scored],
    baseline: Sequence[Scored],
    level: Callable[[Scored], Mapping[str, float] | None],
    measure: str,
    seed: int = 0,
) -> Gain | None:
    """Return how much better one recipe is than another on the same questions, by paired bootstrap."""
    differences = [
        ours[measure] - theirs[measure]
        for first, second in zip(better, baseline, strict=True)
        if (ours := level(first)) is not None and (theirs := level(second)) is not None
    ]
    if not differences:
        return None
    draw = random.Random(seed)  # noqa: S311 - a repeatable draw
    count = len(differences)
    means = sorted(
        sum(draw.choices(differences, k=count)) / count for _ in range(_BOOTSTRAP_ROUNDS)
    )
    return Gain(
        round(100 * sum(differences) / count, 1),
        round(100 * means[int(0.025 * _BOOTSTRAP_ROUNDS)], 1),
        round(100 * means[int(0.975 * _BOOTSTRAP_ROUNDS) - 1], 1),
    )
