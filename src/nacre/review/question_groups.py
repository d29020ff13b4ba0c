"""Group questions that ask the same thing in other words.

Each question joins the group whose questions are nearest to it on average, or begins its own. Vectors of the bundled
model are compared where there are any, else the stems of words. ``python -m benchmarks gaps`` measures the borders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from nacre.errors import EmbedderUnavailable
from nacre.home.home import BUNDLED, Home
from nacre.retrieval.question.question_words import asks
from nacre.spending.embedders import embedder_of
from nacre.text.passages import STOP_WORDS, is_unspaced, words
from nacre.text.stems import stem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COSINE = 0.65
JACCARD = 0.35
"""Of stems (seed facts 2.1)."""

Likeness = Callable[[int, int], float]
"""How alike two questions are by their places; from 1 on they ask the same."""


def stems_of(question: str) -> frozenset[str]:
    """The stems of what a question is about: without stop words and words that only ask, if others are left."""
    said = words(question)
    return frozenset(stem(word) for word in said if word not in STOP_WORDS and not asks(word)) or frozenset(said)


def group(home: Home, questions: Sequence[str]) -> tuple[list[list[int]], str]:
    """The places of questions in groups, and by what: ``cosine`` or ``words``."""
    vectors = _vectors(home, questions)
    by_words = words_likeness([stems_of(one) for one in questions])
    if vectors is None:
        return gather(len(questions), by_words), "words"
    foreign = [is_unspaced(one) for one in questions]
    cosines = vectors @ vectors.T

    def likeness(first: int, second: int) -> float:
        if foreign[first] or foreign[second]:
            return by_words(first, second)
        return float(cosines[first, second]) / COSINE

    return gather(len(questions), likeness), "cosine"


def words_likeness(stems: Sequence[frozenset[str]]) -> Likeness:
    """By the Jaccard similarity of stems."""

    def likeness(first: int, second: int) -> float:
        one, other = stems[first], stems[second]
        return len(one & other) / len(one | other) / JACCARD if one | other else 0.0

    return likeness


def gather(count: int, likeness: Likeness) -> list[list[int]]:
    """Put each item into the nearest group by the average likeness, if that is 1 at least; else begin one with it."""
    groups: list[list[int]] = []
    for item in range(count):
        near = [(sum(likeness(item, other) for other in members) / len(members), members) for members in groups]
        best, members = max(near, key=lambda one: one[0], default=(0.0, []))
        if best >= 1:
            members.append(item)
        else:
            groups.append([item])
    return groups


def _vectors(home: Home, questions: Sequence[str]) -> NDArray[np.float32] | None:
    """By the bundled model, whichever made the vectors of memories: the border is its own, and nothing is sent away."""
    if home.settings.text("embedding.model") == "none":
        return None
    try:
        return embedder_of(home, BUNDLED).embed(questions)
    except EmbedderUnavailable:
        return None
