"""What goes into the ranking of turns, and how much of each. One value holds all constants, so that a benchmark can
leave one ingredient out at a time."""

from __future__ import annotations

from dataclasses import dataclass

from nacre.retrieval.fusion import Scale, min_max
from nacre.retrieval.lexical import Bm25


@dataclass(frozen=True, slots=True)
class Recipe:
    """The ingredients of turn recall.

    ``lexical``, ``vector`` and ``session`` are shares of the fused score; ``session`` is taken once by words and once
    by meaning. The others are added to a fused score of at most 1: ``author`` when the turn's author is the one person
    the question names, ``presence`` when a person it names takes part in the session or the session belongs to a
    project it names, ``name`` when an identifier was found in part, ``time`` when the turn lies in the time it names.
    ``asks`` is taken away where a turn does nothing but ask: what answers it lies beside it.
    """

    lexical: float = 0.5
    vector: float = 0.5
    session: float = 0.15
    author: float = 0.15
    presence: float = 0.15
    name: float = 0.1
    time: float = 0.2
    asks: float = 0.1

    bm25: Bm25 = Bm25(k1=0.8, b=0.5)
    reach: int = 2
    """Turns before and after that are read with a turn."""

    neighbours: float = 0.35
    """What a neighbour's term counts, beside 1 for the turn's own."""

    smoothing: float = 0.5
    """What the mean cosine of the neighbours counts, beside 1 for the turn's own."""

    doubt: float = 0.5
    """How far the lexical lane is trusted less when even its best turn holds little of the question: an exponent."""

    scale: Scale = min_max
    """Puts the scores of a lane on 0..1."""

    candidates: int = 100
    """Turns that each lane proposes."""

    parts: int = 30
    """Turns proposed because part of an identifier is in them."""

    window: int = 400
    """Turns whose term counts are known; those beyond count as empty neighbours."""

    postings: int = 10_000
    """Rows that the words of a question may touch, together; beyond, its commonest words are left out. Bounds the time
    of the lexical lane; homes below some thousand turns never reach it."""

    passages: int = 3
    """Turns that speak for their session by meaning."""


DEFAULT = Recipe()
"""Chosen on LoCoMo dev, the LongMemEval subset, DevMemBench dev and their pile; docs/benchmarks.md has the tables."""
