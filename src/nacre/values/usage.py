"""How a memory was used so far, as the index knows it."""

from __future__ import annotations

from datetime import datetime

from nacre.platform.fast_dataclass import dataclass
from nacre.values.review import NEUTRAL_QUALITY


@dataclass(frozen=True, slots=True)
class Usage:
    """How a memory was used so far; a session's recalls count once (docs/usage.md).

    ``intervals`` are the times of the recalls that count, in epoch milliseconds. ``access_count`` counts every use.
    """

    recall_count: int = 0
    last_recalled: datetime | None = None
    intervals: tuple[int, ...] = ()
    contradictions: int = 0
    quality: float = NEUTRAL_QUALITY
    access_count: int = 0


@dataclass(frozen=True, slots=True)
class StepsDue:
    """A memory, the steps of importance its recalls have earned, and how many of them it has taken."""

    memory: str
    earned: int
    taken: int
