"""Measure how well questions that ask the same thing are grouped: ``nacre gaps`` shows them as one.

``data/unanswered.json`` has invented questions, 60 groups of two to four, written before any likeness was computed. Of
its topics every other one is a half: borders are chosen on the first half, and the second one says how good they are.
Groups of one topic are near each other on purpose, and always in the same half.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from nacre.llm.local_model import load_minilm
from nacre.review.queue import Likeness, gather, stems_of

DATA = Path(__file__).parents[1] / "data" / "unanswered.json"
JACCARDS = (0.25, 0.35, 0.5, 0.7)
COSINES = (0.55, 0.6, 0.65, 0.7, 0.75)
_SEED = 7


@dataclass(frozen=True, slots=True)
class Grouping:
    """Pairs of questions that were put together: the share that belongs together, and of those that do the share."""

    precision: float
    recall: float


@dataclass(frozen=True, slots=True)
class Border:
    """What one way of comparing, from one border on, makes of both halves."""

    by: str
    border: str
    chosen_on: Grouping
    held_out: Grouping


@dataclass(frozen=True, slots=True)
class _Half:
    group_of: tuple[int, ...]
    jaccard: Likeness
    cosine: Likeness


def measure_grouping(path: Path = DATA) -> list[Border]:
    """Every way of comparing, with each of its borders."""
    topics = [topic["groups"] for topic in json.loads(path.read_text(encoding="utf-8"))["topics"]]
    halves = [_half([group for topic in topics[start::2] for group in topic]) for start in (0, 1)]
    return [
        Border(by, told, *(_graded(half, jaccard, cosine) for half in halves))
        for by, told, jaccard, cosine in _borders()
    ]


def _borders() -> Iterator[tuple[str, str, float, float]]:
    never = 9.0
    yield from (("stems", f"{one}", one, never) for one in JACCARDS)
    yield from (("vectors", f"{one}", never, one) for one in COSINES)
    yield from (("either", f"0.5, {one}", 0.5, one) for one in COSINES)


def _half(groups: Sequence[Sequence[str]]) -> _Half:
    asked = [(text, number) for number, group in enumerate(groups) for text in group]
    random.Random(_SEED).shuffle(asked)  # noqa: S311 - an order, no secret
    texts = [text for text, _ in asked]
    stems = [stems_of(text) for text in texts]
    vectors = load_minilm(1).embed(texts)
    cosines = (vectors @ vectors.T).tolist()

    def jaccard(first: int, second: int) -> float:
        return len(stems[first] & stems[second]) / len(stems[first] | stems[second])

    def cosine(first: int, second: int) -> float:
        return float(cosines[first][second])

    return _Half(tuple(number for _, number in asked), jaccard, cosine)


def _graded(half: _Half, jaccard: float, cosine: float) -> Grouping:
    def likeness(first: int, second: int) -> float:
        return max(half.jaccard(first, second) / jaccard, half.cosine(first, second) / cosine)

    places = {
        item: number
        for number, items in enumerate(gather(len(half.group_of), likeness))
        for item in items
    }
    pairs = list(combinations(range(len(half.group_of)), 2))
    wanted = {pair for pair in pairs if half.group_of[pair[0]] == half.group_of[pair[1]]}
    made = {pair for pair in pairs if places[pair[0]] == places[pair[1]]}
    right = len(wanted & made)
    return Grouping(right / len(made) if made else 1.0, right / len(wanted))
