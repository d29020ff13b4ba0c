"""Figures of many measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nacre.cli.speed import percentile

_EVEN = 0.5, 0.95, 0.99, 1.0


@dataclass(frozen=True, slots=True)
class Spread:
    """How long something took: milliseconds."""

    count: int
    p50: float
    p95: float
    p99: float
    longest: float


def spread(seconds: Iterable[float]) -> Spread:
    """Of times in seconds; zeros where there are none."""
    found = [1000 * one for one in seconds]
    if not found:
        return Spread(0, 0.0, 0.0, 0.0, 0.0)
    return Spread(len(found), *(round(percentile(found, share), 1) for share in _EVEN))


def percent(values: Sequence[float]) -> float:
    """The mean of values from 0 to 1 in percent; 0 where there are none."""
    return round(100 * sum(values) / len(values), 1) if values else 0.0
