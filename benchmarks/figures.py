"""Statistics for measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nacre.base.frozen import frozen

_SHARES = 0.5, 0.95, 0.99, 1.0


@frozen
class Spread:
    """Percentiles of durations in milliseconds."""

    count: int
    p50: float
    p95: float
    p99: float
    longest: float


def spread(seconds: Iterable[float]) -> Spread:
    """Return percentiles of durations in seconds. If there are none, all are zero."""
    times = [1000 * time for time in seconds]
    if not times:
        return Spread(0, 0.0, 0.0, 0.0, 0.0)
    return Spread(len(times), *(round(percentile(times, share), 1) for share in _SHARES))


def percent(values: Sequence[float]) -> float:
    """Return the mean of values from 0 to 1 in percent, or 0 if there are none."""
    return round(100 * sum(values) / len(values), 1) if values else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """Return a quantile of the values (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0
