"""Measure how well equivalent questions are grouped. ``nacre review gaps`` shows a group as one question.

``data/unanswered.json`` contains invented questions in 60 groups of two to four, written before any
similarity was computed. Topics alternate between two halves: borders are chosen on the first half
and evaluated on the second. Groups about one topic are similar on purpose, and always in the same
half.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from nacre.base.frozen import frozen
from nacre.llm.local_model import load_minilm
from nacre.review.queue import Likeness, gather, stems_of

DATA = Path(__file__).parents[1] / "data" / "unanswered.json"
JACCARDS = (0.25, 0.35, 0.5, 0.7)
COSINES = (0.55, 0.6, 0.65, 0.7, 0.75)
_SEED = 7


@frozen
class Grouping:
    """Precision and recall for the pairs of questions that were grouped."""

    precision: float
    recall: float


@frozen
class Border:
    """The figures for one comparison and border on both halves."""

    by: str
    border: str
    chosen_on: Grouping
    held_out: Grouping


@frozen
class _Half:
    group_of: tuple[int, ...]
    jaccard: Likeness
    cosine: Likeness


def measure_grouping(path: Path = DATA) -> list[Border]:
    """Measure every comparison with each of its borders."""
    topics = [topic["groups"] for topic in json.loads(path.read_text(encoding="utf-8"))["topics"]]
    halves = [_half([group for topic in topics[start::2] for group in topic]) for start in (0, 1)]
    return [
        Border(by, label, *(_graded(half, jaccard, cosine) for half in halves))
        for by, label, jaccard, cosine in _borders()
    ]


def _borders() -> Iterator[tuple[str, str, float, float]]:
    never = 9.0
    yield from (("stems", f"{border}", border, never) for border in JACCARDS)
    yield from (("vectors", f"{border}", never, border) for border in COSINES)
    yield from (("either", f"0.5, {border}", 0.5, border) for border in COSINES)


def _half(groups: Sequence[Sequence[str]]) -> _Half:
    questions = [(text, number) for number, group in enumerate(groups) for text in group]
    random.Random(_SEED).shuffle(questions)  # noqa: S311 - an order, not a secret
    texts = [text for text, _ in questions]
    stems = [stems_of(text) for text in texts]
    vectors = load_minilm(1).embed(texts)
    cosines = (vectors @ vectors.T).tolist()

    def jaccard(first: int, second: int) -> float:
        return len(stems[first] & stems[second]) / len(stems[first] | stems[second])

    def cosine(first: int, second: int) -> float:
        return float(cosines[first][second])

    return _Half(tuple(number for _, number in questions), jaccard, cosine)


def _graded(half: _Half, jaccard: float, cosine: float) -> Grouping:
    def likeness(first: int, second: int) -> float:
        return max(half.jaccard(first, second) / jaccard, half.cosine(first, second) / cosine)

    places = {
        item: number
        for number, items in enumerate(gather(len(half.group_of), likeness))
        for item in items
    }
    pairs = list(combinations(range(len(half.group_of)), 2))
    expected = {pair for pair in pairs if half.group_of[pair[0]] == half.group_of[pair[1]]}
    made = {pair for pair in pairs if places[pair[0]] == places[pair[1]]}
    right = len(expected & made)
    return Grouping(right / len(made) if made else 1.0, right / len(expected))
