"""How sure a difference between two groups of sessions is: by drawing anew, many times, who was in which group.

Which session was held out was drawn by lot. If that makes no difference, any other draw would have done as well: what
differs between the groups of other draws is what chance does, and 95 in 100 of these differences are within the margin.
So an interval without 0 comes about by chance in 5 of 100 homes, whatever the counts are distributed like.
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

Counts = Sequence[tuple[int, int]]
"""Of each session, how often something happened and how often it could have; the latter is not 0."""


def are_enough(told: int, held_out: int) -> bool:
    """Whether so many sessions can say something."""
    return told * held_out >= LEAST * (told + held_out)


def needed_at(share: float) -> int:
    """How many sessions that takes, where that share of them is held out."""
    return math.ceil(round(LEAST / (share * (1 - share)), 6))


def rate(counts: Counts) -> float:
    """How often it happened, of all the times that it could have, in all sessions together."""
    return sum(times for times, _ in counts) / sum(of for _, of in counts)


def margin(told: Counts, held_out: Counts, random: Random) -> float:
    """How far the difference of two rates may be from the true one, either way."""
    every = [*told, *held_out]
    all_times, all_of = (sum(one[at] for one in every) for at in (0, 1))
    found = []
    for _ in range(DRAWS):
        drawn = random.sample(every, len(held_out))
        times, of = (sum(one[at] for one in drawn) for at in (0, 1))
        found.append(abs(times / of - (all_times - times) / (all_of - of)))
    return sorted(found)[math.ceil(CONFIDENCE * (DRAWS + 1)) - 1]
