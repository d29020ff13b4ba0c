"""Is anything worth showing? Decided on absolute signals, never on ranks.

A logistic model of four signals that a person can follow. Its constants lie in ``confidence.toml``, where
``scripts/calibrate_confidence.py`` writes them; the cosine is brought to one scale for all embedding models first, and
where none was compared, the form without it is used.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

from nacre.embed.calibration import Calibration, Seen, calibration_of
from nacre.values.recall import HitConfidence

SURE = 0.8
BORDER = 0.5
"""Context is given unasked when its best hit is at least so sure."""
NEAR = 0.15
"""A hit without a word of the question is shown when it is at least so sure."""


class Sure(Protocol):
    """A hit that knows how sure it is."""

    @property
    def confidence(self) -> float:
        """0 to 1."""

    @property
    def signals(self) -> Signals:
        """What the confidence is computed from."""

    @property
    def components(self) -> dict[str, float]:
        """The parts of its score."""


T = TypeVar("T", bound=Sure)


@dataclass(frozen=True, slots=True)
class Signals:
    """The absolute signals of one hit.

    ``coverage`` is the share of the telling words' weight that the hit holds, a turn together with those right before
    and after it. ``cosine`` is ``None`` when no vector was compared. ``unknown`` is the share of that weight that
    nothing in the whole home holds; ``unknown_name`` says that a name is part of it. ``empty`` is a question without
    anything to be recognised by ("ok, go on"). ``whole``: the hit alone holds every word of the question.
    """

    coverage: float
    cosine: float | None
    unknown: float = 0.0
    unknown_name: bool = False
    empty: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Weights:
    """The model: a sum of the signals times these, plus ``bias``, through the logistic function."""

    bias: float
    meaning: float
    words: float
    unknown: float
    unknown_name: float


@dataclass(frozen=True, slots=True)
class Sureness:
    """How sure a hit is. ``scale`` tells what a cosine is worth; once the best hit of an answer has passed, ``beside``
    is how sure another one must be."""

    with_meaning: Weights
    words_alone: Weights
    scale: Calibration
    beside: float

    def confidence(self, signals: Signals) -> float:
        """0 to 1; BORDER lies between showing an answer and keeping silent."""
        if signals.empty:
            return 0.0
        weights, meaning = self.words_alone, 0.0
        if signals.cosine is not None:
            weights = self.with_meaning
            meaning = self.scale.meaning(signals.cosine)
        total = (
            weights.bias
            + weights.meaning * meaning
            + weights.words * signals.coverage
            + weights.unknown * signals.unknown
            + weights.unknown_name * signals.unknown_name
        )
        return 1 / (1 + math.exp(-total))


@cache
def sureness_of(kind: str, model: str | None, seen: Seen | None = None) -> Sureness:
    """How sure a hit is among ``turns``, ``memories``, or memories that ``prompts`` bring up.

    ``model`` made the vectors, and sees so.
    """
    table = tomllib.loads(Path(__file__).with_name("confidence.toml").read_text(encoding="utf-8"))
    found = table[kind]
    return Sureness(
        with_meaning=Weights(**found["with_meaning"]),
        words_alone=Weights(**found["words_alone"]),
        scale=calibration_of(model, seen),
        beside=found["beside"],
    )


def answering(kind: str, ranked: Sequence[T]) -> list[T]:
    """The hits among ``turns``, ``memories`` or those that ``prompts`` bring up which are likely to answer, in order.

    None unless one of them is sure.
    """
    if max((item.confidence for item in ranked), default=0.0) < BORDER:
        return []
    beside = sureness_of(kind, None).beside
    return [item for item in ranked if item.confidence >= beside]


def matches(item: Sure) -> bool:
    """Whether a hit shares a word with the question, or a meaning: some hit is always the nearest."""
    if item.signals.empty:
        return item.signals.whole
    holds_words = not item.components.keys().isdisjoint(("lexical", "name"))
    return (holds_words and item.signals.coverage > 0) or item.signals.whole or item.confidence >= NEAR


def is_sure(item: Sure) -> bool:
    """Whether a hit is sure to answer."""
    return item.confidence >= SURE


def in_words(confidence: float) -> HitConfidence:
    """A confidence as a word."""
    if confidence >= SURE:
        return HitConfidence.SURE
    return HitConfidence.LIKELY if confidence >= BORDER else HitConfidence.WEAK
