"""A second look at the best hits, by a model that reads question and text together; bounded in number and time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from nacre.errors import RerankerUnavailable
from nacre.protocols import Reranker
from nacre.retrieval.fusion import min_max
from nacre.values.recall import Lane, LaneState

T = TypeVar("T")

CANDIDATES = 20
SECONDS = 0.3
SHARE = 0.5
"""What the second look counts, beside the first."""

_STEP = 4
"""Texts between two looks at the clock."""


@dataclass
class SecondLook:
    """Reorders lists of hits for one question, within one allowance of time for all of them.

    ``clock`` counts seconds. A model that fails or runs out of time leaves the order of the rest as it was.
    """

    reranker: Reranker
    question: str
    clock: Callable[[], float]
    seconds: float = SECONDS
    _spent: float = 0.0
    _problems: list[Lane] = field(default_factory=list)

    def reorder(self, items: Sequence[T], *, score: Callable[[T], float], text: Callable[[T], str]) -> list[T]:
        """The best CANDIDATES in their new order, then the others."""
        seen = self._scores([text(item) for item in items[:CANDIDATES]])
        if len(seen) < 2:
            return list(items)
        first = min_max(dict(enumerate(score(item) for item in items[: len(seen)])))
        second = min_max(dict(enumerate(seen)))
        order = sorted(first, key=lambda at: -((1 - SHARE) * first[at] + SHARE * second[at]))
        return [*(items[at] for at in order), *items[len(seen) :]]

    def report(self) -> Lane:
        """What it did, as a lane of the answer."""
        if self._problems:
            return self._problems[0]
        return Lane("reranker", LaneState.RAN, note=self.reranker.name)

    def _scores(self, texts: Sequence[str]) -> list[float]:
        """Scores from the first text on, as many as time allows."""
        found: list[float] = []
        for at in range(0, len(texts), _STEP):
            if self._spent >= self.seconds:
                note = f"{self.reranker.name} ran out of time"
                self._problems.append(Lane("reranker", LaneState.PARTIAL, note=note))
                break
            started = self.clock()
            try:
                found += self.reranker.score(self.question, texts[at : at + _STEP])
            except RerankerUnavailable as error:
                self._problems.append(Lane("reranker", LaneState.UNAVAILABLE, note=error.message))
                return []
            self._spent += self.clock() - started
        return found
