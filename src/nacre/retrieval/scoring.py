"""How a memory's age, use and worth change its rank. Formulas of agenr, clamped (docs/context.md)."""

from __future__ import annotations

import math
from datetime import datetime
from itertools import pairwise

from nacre.memories.quality import maturity
from nacre.text.time_expressions import Window
from nacre.values.memory import Confidence, Expiry, Kind, Memory
from nacre.values.review import Maturity, Usage

FACTOR_RANGE = (0.5, 1.25)
"""All factors after relevance together: no signal lifts an irrelevant hit above a relevant one."""

STABILITY_DAYS = {Expiry.CORE: math.inf, Expiry.PERMANENT: 365.0, Expiry.TEMPORARY: 30.0}
"""Days after which retrievability has fallen to .9; a stability, not a half-life."""

ADDED_FACTORS = ("maturity", "confidence")
"""Factors that agenr's formula does not have; they come from the other seed (seed facts 2.3)."""

INFERRED_FACTOR = 0.85
OUTSIDE_WINDOW = 0.3
NEAR_WINDOW = 0.4
MATURITY_FACTORS = {Maturity.CANDIDATE: 1.0, Maturity.ESTABLISHED: 1.1, Maturity.PROVEN: 1.2}
BROWSE_HALF_LIFE_DAYS = 30.0
"""Without a question a memory counts half as much after so many days (seed facts 1.2.2)."""

_DAY_SECONDS = 86_400.0


def days_between(earlier: datetime, later: datetime) -> float:
    """Days from one time to another, never negative."""
    return max(0.0, (later - earlier).total_seconds() / _DAY_SECONDS)


def recency(days: float, expiry: Expiry) -> float:
    """The FSRS power curve: (1 + 19/81 · days/S)^-0.5."""
    return float((1 + 19 / 81 * days / STABILITY_DAYS[expiry]) ** -0.5)


def gaussian(days: float, radius_days: float) -> float:
    """Nearness to a date: sigma is half the radius."""
    sigma = radius_days / 2
    return math.exp(-0.5 * (days / sigma) ** 2)


def importance_score(importance: int) -> float:
    """.55 for 1 to 1.0 for 10."""
    return 0.55 + (min(10, max(1, importance)) - 1) / 9 * 0.45


def recall_strength(usage: Usage, days: float, expiry: Expiry) -> float:
    """Grows with recalls, fades with the days since the last one."""
    if expiry is Expiry.CORE:
        return 1.0
    if usage.recall_count <= 0:
        return 0.0
    return float(min(usage.recall_count**0.7 / 5, 1.0)) * recency(days, expiry)


def spacing_factor(usage: Usage, created: datetime) -> float:
    """Recalls far apart count more: ln(2 + largest gap in days), at least 1.

    Where only their number is known they are taken as evenly spread from the memory's creation to the last one.
    """
    ordered = sorted(usage.intervals) or _evenly_spread(usage, created)
    if len(ordered) < 2:
        return 1.0
    gap = max(later - earlier for earlier, later in pairwise(ordered)) / 1000 / _DAY_SECONDS
    return max(1.0, math.log1p(gap + 1))


def _evenly_spread(usage: Usage, created: datetime) -> list[float]:
    """One time more than there were recalls, in milliseconds; none where there is nothing to spread."""
    last = usage.last_recalled
    if usage.recall_count <= 0 or last is None or created >= last:
        return []
    gap = (last - created).total_seconds() * 1000 / usage.recall_count
    return [number * gap for number in range(usage.recall_count + 1)]


def freshness(memory: Memory, now: datetime) -> float:
    """What is important and new, from 1.5 within the hour to 1.1 within the day."""
    if memory.importance < 6:
        return 1.0
    hours = days_between(memory.created, now) * 24
    return next((boost for limit, boost in ((1, 1.5), (6, 1.25), (24, 1.1)) if hours < limit), 1.0)


def todo_staleness(memory: Memory, now: datetime) -> float:
    """An old todo counts less: half a week's age, down to .10, or .40 for an important one."""
    if memory.kind is not Kind.TODO:
        return 1.0
    floor = 0.40 if memory.importance >= 8 else 0.10
    return float(max(0.5 ** (days_between(memory.updated, now) / 7), floor))


def maturity_factor(usage: Usage) -> float:
    """Established memories and proven ones count a little more.

    The seed's .5, 1.0 and 1.5 (seed facts 2.3) would put every new memory at the lower clamp, where no other signal
    shows; its order is kept, with the candidate as the neutral one.
    """
    return MATURITY_FACTORS[maturity(usage)]


def age_factor(memory: Memory, now: datetime, *, around: datetime | None = None, radius_days: float = 14.0) -> float:
    """What its age leaves of a memory that is browsed: half after 30 days, or its nearness to a date."""
    if around:
        return _nearness(memory, around, radius_days)
    return float(0.5 ** (days_between(memory.updated, now) / BROWSE_HALF_LIFE_DAYS))


def window_closeness(time: datetime, window: Window, radius_days: float) -> float:
    """1 within a time that a question names, fading outside it."""
    if window.since and time < window.since:
        return gaussian((window.since - time).total_seconds() / _DAY_SECONDS, radius_days)
    if window.until and time >= window.until:
        return gaussian((time - window.until).total_seconds() / _DAY_SECONDS, radius_days)
    return 1.0


def window_factor(memory: Memory, window: Window) -> float:
    """What a time that the question names leaves of a memory: all within it, less the farther away."""
    length = (window.until - window.since).total_seconds() / _DAY_SECONDS if window.since and window.until else 14.0
    closest = max(window_closeness(at, window, max(1.0, length)) for at in (memory.created, memory.last_said))
    return OUTSIDE_WINDOW + (1 - OUTSIDE_WINDOW) * closest


def _nearness(memory: Memory, around: datetime, radius_days: float) -> float:
    return gaussian(abs((memory.created - around).total_seconds()) / _DAY_SECONDS, radius_days)


def factors(
    memory: Memory, usage: Usage, now: datetime, *, around: datetime | None = None, radius_days: float = 14.0,
    as_seen: datetime | None = None,
) -> dict[str, float]:  # fmt: skip
    """Every factor after relevance, by name; ``product`` multiplies and clamps them.

    ``as_seen`` is the moment that days count back from, by default ``now``; freshness counts from ``now`` in any case
    (seed facts 1.2.1).
    """
    fresh, now = freshness(memory, now), as_seen or now
    if around:
        age = _nearness(memory, around, radius_days)
    else:
        age = 1.0 if memory.evergreen else recency(days_between(memory.updated, now), memory.expiry)
    recalled_days = days_between(usage.last_recalled or memory.updated, now)
    strength = min(recall_strength(usage, recalled_days, memory.expiry) * spacing_factor(usage, memory.created), 1.0)
    worth = max(importance_score(memory.importance), strength)
    return {
        "recency": 0.3 + 0.7 * age,
        "strength": min(worth * fresh, 1.0),
        "todo": todo_staleness(memory, now),
        "contradiction": 0.8 if usage.contradictions >= 2 else 1.0,
        "quality": 0.7 + 0.6 * min(1.0, max(0.0, usage.quality)),
        "maturity": maturity_factor(usage),
        "confidence": INFERRED_FACTOR if memory.confidence is Confidence.INFERRED else 1.0,
    }


def product(parts: dict[str, float]) -> float:
    """The factors multiplied, within FACTOR_RANGE."""
    low, high = FACTOR_RANGE
    return min(high, max(low, math.prod(parts.values())))
