"""How sure a difference between two groups of sessions is: by drawing anew, many times, who was in which group.

Which session was held out was drawn by lot. If that makes no difference, any other draw would have done as well: what
differs between the groups of other draws is what chance does. So an interval without 0 comes about by chance in 5 of
100 homes, whatever the counts are distributed like.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

DRAWS = 1_999
CONFIDENCE = 0.95

LEAST = 32
"""Sessions told and held out, multiplied, by their sum. From there on a difference of half a standard deviation is
found 4 times in 5: (1.96 + 0.84)² / 0.5² = 31.4. That is 64 of each, or 40 held out beside 160."""

LEAST_HAPPENED = 10
"""Sessions in which it happened at all, of both groups together: of what never happened, the interval would be none."""

Counts = Sequence[tuple[int, int]]
"""Of each session, how often something happened and how often it could have; the latter is not 0."""


def are_enough(told: Counts, held_out: Counts) -> bool:
    """Whether these sessions can say something."""
    happened = sum(times > 0 for times, _ in (*told, *held_out))
    effective = len(told) * len(held_out) / max(1, len(told) + len(held_out))
    return effective >= LEAST and happened >= LEAST_HAPPENED


def needed_at(share: float) -> int:
    """How many sessions that takes, where that share of them is held out."""
    return math.ceil(round(LEAST / (share * (1 - share)), 6))


def rate(counts: Counts) -> float:
    """How often it happened, of all the times that it could have, in all sessions together."""
    return sum(times for times, _ in counts) / sum(of for _, of in counts)


def interval(told: Counts, held_out: Counts, random: Random) -> tuple[float, float]:
    """Within which bounds the true difference of their rates, held out less told, lies.

    Differences are taken in standard errors, so that a group may vary more than the other.
    """
    every = [_sums(times, of) for times, of in (*told, *held_out)]
    whole = _added(every)
    draws = (_added(random.sample(every, len(held_out))) for _ in range(DRAWS))
    by_chance = sorted(_standardised(whole, drawn) for drawn in draws)
    outside = round((1 - CONFIDENCE) / 2 * (DRAWS + 1))
    difference, error = _difference(whole, _added(every[len(told) :]))
    return difference - error * by_chance[-outside], difference - error * by_chance[outside - 1]


_Sums = tuple[int, int, int, int, int, int]
"""Of sessions: how many, how often it happened and could have, and the squares and products of the latter two."""


def _sums(times: int, of: int) -> _Sums:
    return 1, times, of, times * times, times * of, of * of


def _added(sessions: Sequence[_Sums]) -> _Sums:
    n, times, of, squares, products, of_squares = map(sum, zip(*sessions, strict=True))
    return n, times, of, squares, products, of_squares


def _standardised(whole: _Sums, held_out: _Sums) -> float:
    difference, error = _difference(whole, held_out)
    return difference / error if error else math.copysign(math.inf, difference) if difference else 0.0


def _difference(whole: _Sums, held_out: _Sums) -> tuple[float, float]:
    """The difference of the rates of those held out and of the rest, and its standard error."""
    told = [of_all - of_these for of_all, of_these in zip(whole, held_out, strict=True)]
    (without, first), (with_memory, second) = map(_rate_and_variance, (held_out, told))
    return without - with_memory, math.sqrt(first + second)


def _rate_and_variance(sums: Sequence[int]) -> tuple[float, float]:
    """Of a ratio of sums: from how far each session is from what its own number of times would have at that rate."""
    n, times, of, squares, products, of_squares = sums
    rate = times / of
    off = squares - 2 * rate * products + rate * rate * of_squares
    return rate, max(0.0, off) / (of * of) * n / (n - 1)
