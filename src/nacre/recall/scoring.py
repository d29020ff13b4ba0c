"""Scores and confidence of hits: agenr's factors, lane fusion, reranking and calibration. See docs/context.md."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeVar

from nacre.base.frozen import frozen
from nacre.base.times import Window
from nacre.errors import RerankerUnavailableError
from nacre.llm.calibration import Calibration, Seen, calibration_of
from nacre.memories.usage import maturity
from nacre.protocols import Reranker
from nacre.values.memory import Confidence, Expiry, Kind, Memory
from nacre.values.recall import HitConfidence, Lane, LaneState
from nacre.values.review import Maturity, Usage

FACTOR_RANGE = (0.5, 1.25)
"""Range of the product of all factors except relevance. It keeps irrelevant hits below relevant hits."""

STABILITY_DAYS = {Expiry.CORE: math.inf, Expiry.PERMANENT: 365.0, Expiry.TEMPORARY: 30.0}
"""Number of days until retrievability falls to 0.9. This is not a half-life."""

ADDED_FACTORS = ("maturity", "confidence")
"""Factors that are not in agenr's formula."""

INFERRED_FACTOR = 0.85
OUTSIDE_WINDOW = 0.3
NEAR_WINDOW = 0.4
MATURITY_FACTORS = {Maturity.CANDIDATE: 1.0, Maturity.ESTABLISHED: 1.1, Maturity.PROVEN: 1.2}
BROWSE_HALF_LIFE_DAYS = 30.0
"""Half-life of a memory's score when browsing without a question, in days."""

_DAY_SECONDS = 86_400.0


def days_between(earlier: datetime, later: datetime) -> float:
    """Return the number of days between two times, at least 0."""
    return max(0.0, (later - earlier).total_seconds() / _DAY_SECONDS)


def recency(days: float, expiry: Expiry) -> float:
    """Return the FSRS power curve: (1 + 19/81 · days/S)^-0.5."""
    return float((1 + 19 / 81 * days / STABILITY_DAYS[expiry]) ** -0.5)


def gaussian(days: float, radius_days: float) -> float:
    """Return how close a date is, from 0 to 1, if it is ``days`` away.

    The result follows a normal distribution whose sigma is half of ``radius_days``.
    """
    sigma = radius_days / 2
    return math.exp(-0.5 * (days / sigma) ** 2)


def importance_score(importance: int) -> float:
    """Map an importance from 1 to 10 linearly onto 0.55 to 1.0."""
    return 0.55 + (min(10, max(1, importance)) - 1) / 9 * 0.45


def recall_strength(usage: Usage, days: float, expiry: Expiry) -> float:
    """Return a strength that grows with each recall and fades after the last recall."""
    if expiry is Expiry.CORE:
        return 1.0
    if usage.recall_count <= 0:
        return 0.0
    return float(min(usage.recall_count**0.7 / 5, 1.0)) * recency(days, expiry)


def spacing_factor(usage: Usage, created: datetime) -> float:
    """Return the factor for spaced recalls, ln(2 + largest gap in days), at least 1.

    If only the number of recalls is known, they are assumed to be evenly spaced between creation
    and the last recall.
    """
    ordered = sorted(usage.intervals) or _evenly_spread(usage, created)
    if len(ordered) < 2:
        return 1.0
    gap = max(later - earlier for earlier, later in pairwise(ordered)) / 1000 / _DAY_SECONDS
    return max(1.0, math.log1p(gap + 1))


def _evenly_spread(usage: Usage, created: datetime) -> list[float]:
    last = usage.last_recalled
    if usage.recall_count <= 0 or last is None or created >= last:
        return []
    gap = (last - created).total_seconds() * 1000 / usage.recall_count
    return [number * gap for number in range(usage.recall_count + 1)]


def freshness(memory: Memory, now: datetime) -> float:
    """Return the boost for new important memories, 1.5 in the first hour, falling to 1.1 within a day."""
    if memory.importance < 6:
        return 1.0
    hours = days_between(memory.created, now) * 24
    return next((boost for limit, boost in ((1, 1.5), (6, 1.25), (24, 1.1)) if hours < limit), 1.0)


def todo_staleness(memory: Memory, now: datetime) -> float:
    """Return a todo's weight, which halves every 7 days, down to 0.10, or 0.40 if it is important."""
    if memory.kind is not Kind.TODO:
        return 1.0
    floor = 0.40 if memory.importance >= 8 else 0.10
    return float(max(0.5 ** (days_between(memory.updated, now) / 7), floor))


def age_factor(
    memory: Memory, now: datetime, *, around: datetime | None, radius_days: float
) -> float:
    """Return the factor for a memory's age when browsing, or for its nearness to ``around``."""
    if around:
        return _nearness(memory, around, radius_days)
    return float(0.5 ** (days_between(memory.updated, now) / BROWSE_HALF_LIFE_DAYS))


def window_closeness(time: datetime, window: Window, radius_days: float) -> float:
    """Return how near a time is to a window: 1 inside, falling towards 0 with the distance."""
    if window.since and time < window.since:
        return gaussian((window.since - time).total_seconds() / _DAY_SECONDS, radius_days)
    if window.until and time >= window.until:
        return gaussian((time - window.until).total_seconds() / _DAY_SECONDS, radius_days)
    return 1.0


def window_factor(memory: Memory, window: Window) -> float:
    """Return the factor for the question's time window, which is 1 inside it and falls with the distance."""
    length = (
        (window.until - window.since).total_seconds() / _DAY_SECONDS
        if window.since and window.until
        else 14.0
    )
    closest = max(
        window_closeness(at, window, max(1.0, length)) for at in (memory.created, memory.last_said)
    )
    return OUTSIDE_WINDOW + (1 - OUTSIDE_WINDOW) * closest


def _nearness(memory: Memory, around: datetime, radius_days: float) -> float:
    return gaussian(abs((memory.created - around).total_seconds()) / _DAY_SECONDS, radius_days)


def factors(
    memory: Memory,
    usage: Usage,
    now: datetime,
    *,
    around: datetime | None = None,
    radius_days: float = 14.0,
    as_seen: datetime | None = None,
) -> dict[str, float]:
    """Return the factors of the score, except the relevance, keyed by name.

    Ages are counted until ``as_seen`` or ``now``, but the freshness always until ``now``.
    """
    fresh, now = freshness(memory, now), as_seen or now
    if around:
        age = _nearness(memory, around, radius_days)
    else:
        age = 1.0 if memory.evergreen else recency(days_between(memory.updated, now), memory.expiry)
    days_since_recall = days_between(usage.last_recalled or memory.updated, now)
    strength = min(
        recall_strength(usage, days_since_recall, memory.expiry)
        * spacing_factor(usage, memory.created),
        1.0,
    )
    worth = max(importance_score(memory.importance), strength)
    return {
        "recency": 0.3 + 0.7 * age,
        "strength": min(worth * fresh, 1.0),
        "todo": todo_staleness(memory, now),
        "contradiction": 0.8 if usage.contradictions >= 2 else 1.0,
        "quality": 0.7 + 0.6 * min(1.0, max(0.0, usage.quality)),
        "maturity": MATURITY_FACTORS[maturity(usage)],
        "confidence": INFERRED_FACTOR if memory.confidence is Confidence.INFERRED else 1.0,
    }


def product(parts: dict[str, float]) -> float:
    """Multiply the factors and clamp the product to FACTOR_RANGE."""
    low, high = FACTOR_RANGE
    return min(high, max(low, math.prod(parts.values())))


# -- Fusion of lanes -------------------------------------------------------------------------------
# Min-max scaling preserves the lead of a lane's best hit, which rank fusion loses. In the retrieval
# study, it gained 1.8 points of recall@10 on chat, and more at rank 1 in the combined pile.


K = TypeVar("K", bound=Hashable)


class Scale(Protocol):
    """A function that scales scores to 0..1. ``floor``: score that becomes 0, if known."""

    def __call__(self, scores: Mapping[K, float], floor: float | None = None) -> dict[K, float]: ...


def min_max(scores: Mapping[K, float], floor: float | None = None) -> dict[K, float]:
    """Scale scores to 0..1. ``floor`` is the score that becomes 0, by default the lowest score.

    If all scores are equal, positive scores become 1 and others 0.
    """
    if not scores:
        return {}
    low = min(scores.values()) if floor is None else floor
    span = max(scores.values()) - low
    if span <= 0:
        return dict.fromkeys(scores, 1.0 if max(scores.values()) > 0 else 0.0)
    return {key: (score - low) / span if score > low else 0.0 for key, score in scores.items()}


def blend(lanes: Mapping[str, tuple[float, Mapping[K, float]]]) -> dict[K, dict[str, float]]:
    """Return the weighted score of each key in each lane. A key missing in a lane scores 0.

    The weights of the lanes with results are scaled to add up to 1.
    """
    total = sum(weight for weight, scores in lanes.values() if scores) or 1.0
    keys: dict[K, None] = {}
    for _, scores in lanes.values():
        keys.update(dict.fromkeys(scores))
    shares = [(name, weight / total, scores.get) for name, (weight, scores) in lanes.items()]
    return {
        key: {name: share * score_of(key, 0.0) for name, share, score_of in shares} for key in keys
    }


# -- Reranking -------------------------------------------------------------------------------------
# A model reads the question together with each text and reorders a limited number of the best hits
# in limited time.


T = TypeVar("T")

CANDIDATES = 20
SECONDS = 0.3
SHARE = 0.5
"""Weight of the reranker's score. The rest is the weight of the first score."""

_BATCH_TEXTS = 4
"""Number of texts per reranker call. The time limit is checked between calls."""


@dataclass
class SecondLook:
    """Reorders lists of hits for a question within a shared time limit.

    ``clock`` counts seconds. If the model fails or runs out of time, the remaining hits keep their
    order.
    """

    reranker: Reranker
    question: str
    clock: Callable[[], float]
    seconds: float = SECONDS
    _spent: float = 0.0
    _problems: list[Lane] = field(default_factory=list)

    def reorder(
        self, items: Sequence[T], *, score: Callable[[T], float], text: Callable[[T], str]
    ) -> list[T]:
        """Rerank the first CANDIDATES items. The other items follow in their previous order."""
        reranked = self._scores([text(item) for item in items[:CANDIDATES]])
        if len(reranked) < 2:
            return list(items)
        first = min_max(dict(enumerate(score(item) for item in items[: len(reranked)])))
        second = min_max(dict(enumerate(reranked)))
        order = sorted(first, key=lambda at: -((1 - SHARE) * first[at] + SHARE * second[at]))
        return [*(items[at] for at in order), *items[len(reranked) :]]

    def report(self) -> Lane:
        if self._problems:
            return self._problems[0]
        return Lane("reranker", LaneState.RAN, note=self.reranker.name)

    def _scores(self, texts: Sequence[str]) -> list[float]:
        """Score as many texts as the time limit allows, in order."""
        scores: list[float] = []
        for at in range(0, len(texts), _BATCH_TEXTS):
            if self._spent >= self.seconds:
                note = f"{self.reranker.name} ran out of time"
                self._problems.append(Lane("reranker", LaneState.PARTIAL, note=note))
                break
            started = self.clock()
            try:
                scores += self.reranker.score(self.question, texts[at : at + _BATCH_TEXTS])
            except RerankerUnavailableError as error:
                self._problems.append(Lane("reranker", LaneState.UNAVAILABLE, note=error.message))
                return []
            self._spent += self.clock() - started
        return scores


# -- Confidence ------------------------------------------------------------------------------------
# A logistic model of four absolute signals decides which hits are shown. Ranks do not matter.
# ``scripts/calibrate_confidence.py`` writes the constants to ``confidence.toml``. Cosines are first
# mapped to a scale that all embedding models share. If no vector was compared, a variant of the
# model without the cosine is used.


SURE = 0.8
BORDER = 0.5
"""Minimum confidence of the best hit. Below it, nacre adds no context on its own."""
NEAR = 0.15
"""Minimum confidence to show a hit that shares no word with the question."""


class Sure(Protocol):
    """A search hit with a confidence score."""

    @property
    def confidence(self) -> float:
        """The confidence, 0 to 1."""

    @property
    def signals(self) -> Signals:
        """The signals from which the confidence is computed."""

    @property
    def components(self) -> dict[str, float]:
        """The parts of the score."""


HitT = TypeVar("HitT", bound=Sure)


@frozen
class Signals:
    """The signals of one hit, from which its confidence is computed.

    ``coverage``: weighted share of the question's distinctive words that the hit contains.
    ``cosine``: cosine similarity, or ``None`` if no vector was compared. ``unknown``: weighted
    share of words that occur nowhere in nacre's home. ``unknown_name``: True if one of those words
    is a name. ``empty``: True if the question has no distinctive words ("ok, go on"). ``whole``:
    True if the hit contains every word of the question.
    """

    coverage: float
    cosine: float | None
    unknown: float = 0.0
    unknown_name: bool = False
    empty: bool = False
    whole: bool = False


@frozen
class Weights:
    """Weights of the signals in a logistic regression. ``bias``: constant term."""

    bias: float
    meaning: float
    words: float
    unknown: float
    unknown_name: float


@frozen
class Sureness:
    """The confidence model.

    ``scale``: calibration of cosines. ``further``: minimum confidence of other hits if the first
    hit is likely.
    """

    with_meaning: Weights
    words_alone: Weights
    scale: Calibration
    further: float

    def confidence(self, signals: Signals) -> float:
        """Return the confidence, 0 to 1. Answers with at least BORDER are shown."""
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
    """Return the confidence model for ``turns``, ``memories`` or ``prompts``.

    ``prompts`` stands for memories that match a prompt. ``model``: embedding model. ``seen``:
    observed distribution of its cosines.
    """
    table = tomllib.loads(Path(__file__).with_name("confidence.toml").read_text(encoding="utf-8"))
    constants = table[kind]
    return Sureness(
        with_meaning=Weights(**constants["with_meaning"]),
        words_alone=Weights(**constants["words_alone"]),
        scale=calibration_of(model, seen),
        further=constants["beside"],
    )


def select_answering(kind: str, ranked: Sequence[HitT]) -> list[HitT]:
    """Return the hits that probably answer the question, in order.

    ``kind``: ``turns``, ``memories`` or ``prompts``. Return nothing if each confidence is below
    BORDER.
    """
    if max((item.confidence for item in ranked), default=0.0) < BORDER:
        return []
    minimum = sureness_of(kind, None).further
    return [item for item in ranked if item.confidence >= minimum]


def matches(item: Sure) -> bool:
    """Return True if a hit shares words or meaning with the question. Even the nearest hit can be unrelated."""
    if item.signals.empty:
        return item.signals.whole
    holds_words = not item.components.keys().isdisjoint(("lexical", "name"))
    return (
        (holds_words and item.signals.coverage > 0) or item.signals.whole or item.confidence >= NEAR
    )


def is_sure(item: Sure) -> bool:
    """Return True if a hit almost certainly answers the question."""
    return item.confidence >= SURE


def in_words(confidence: float) -> HitConfidence:
    """Convert a confidence to ``sure``, ``likely`` or ``weak``."""
    if confidence >= SURE:
        return HitConfidence.SURE
    return HitConfidence.LIKELY if confidence >= BORDER else HitConfidence.WEAK
