"""The lexical score: BM25F over a turn and its neighbours.

A turn is not read alone: its own terms count fully, those of the turns around it in part. Every turn's counts are
brought to an ordinary length before they are shared, so that a long answer does not drown its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nacre.storage.search import Corpus, Match


@dataclass(frozen=True, slots=True)
class Bm25:
    """``k1``: how soon repetition stops counting; ``b``: how much length counts against a row."""

    k1: float = 0.8
    b: float = 0.3


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each term of a query says, and how long an ordinary row is."""

    idf: tuple[float, ...] = ()
    average_length: float = 1.0
    bm25: Bm25 = Bm25()

    @property
    def total(self) -> float:
        """The weight of a row that holds every term."""
        return sum(self.idf)

    @property
    def ideal(self) -> float:
        """The score no row reaches: every term, over and over."""
        return self.total * (self.bm25.k1 + 1)


def weigh(corpus: Corpus, bm25: Bm25 = Bm25()) -> Weights:
    """Inverse document frequency, in the form that is never negative (seed facts 2.3)."""
    idf = tuple(math.log(1 + (corpus.rows - count + 0.5) / (count + 0.5)) for count in corpus.frequencies)
    return Weights(idf, max(1.0, corpus.average_length), bm25)


def saturate(counts: Sequence[float], length: float, weights: Weights) -> float:
    """BM25 of a row that holds the terms ``counts`` times."""
    k1, b = weights.bm25.k1, weights.bm25.b
    slope = k1 * (1 - b + b * length / weights.average_length)
    held = (pair for pair in zip(weights.idf, counts, strict=True) if pair[1])
    return sum(idf * count * (k1 + 1) / (count + slope) for idf, count in held)


def coverage(counts: Sequence[float], weights: Weights) -> float:
    """The share of the query's weight that a row holds at all, 0 to 1: an absolute signal, unlike a rank."""
    held = sum(idf for idf, count in zip(weights.idf, counts, strict=True) if count)
    return held / weights.total if weights.total else 0.0


def normalise(match: Match, weights: Weights) -> tuple[float, ...]:
    """The term counts of a row, as if it were of ordinary length."""
    b = weights.bm25.b
    length = 1 - b + b * match.length / weights.average_length
    return tuple(count / length for count in match.counts)


def in_context(
    counts: Mapping[tuple[int, int], Sequence[float]], place: tuple[int, int], terms: int, *, share: float, reach: int
) -> list[float]:
    """The term counts at a place (session, seq), with the share of those around it."""
    own = counts.get(place)
    total = list(own) if own else [0.0] * terms
    session, seq = place
    for other in (*range(seq - reach, seq), *range(seq + 1, seq + reach + 1)):
        neighbour = counts.get((session, other))
        if neighbour:
            for at, count in enumerate(neighbour):
                if count:
                    total[at] += share * count
    return total
