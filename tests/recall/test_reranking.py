"""The second look is bounded in number and in time."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.recall.scoring import CANDIDATES, SecondLook
from nacre.values.recall import LaneState


class Slow:
    """Likes the last best, and takes a tenth of a second for every text."""

    name = "slow"

    def __init__(self) -> None:
        self.now = 0.0
        self.read = 0

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        self.now += 0.1 * len(texts)
        first = self.read
        self.read += len(texts)
        return [float(first + at) for at in range(len(texts))]


def look(model: Slow, seconds: float) -> tuple[SecondLook, list[int]]:
    second = SecondLook(model, "why?", lambda: model.now, seconds)
    return second, second.reorder(list(range(60)), score=lambda item: 0.0, text=str)


def test_reranker_reads_only_its_candidates() -> None:
    model = Slow()
    second, order = look(model, seconds=1000)
    assert model.read == CANDIDATES
    assert order[0] == CANDIDATES - 1
    assert order[CANDIDATES:] == list(range(CANDIDATES, 60))
    assert second.report().state is LaneState.RAN


def test_reranker_stops_at_its_time_limit_and_reports_it() -> None:
    model = Slow()
    second, order = look(model, seconds=0.5)
    assert model.read == 8
    assert sorted(order[:8]) == list(range(8))
    assert order[8:] == list(range(8, 60))
    assert second.report().state is LaneState.PARTIAL
