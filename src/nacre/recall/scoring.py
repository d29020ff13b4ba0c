"""Scores and confidence of hits. docs/context.md explains the formulas."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Protocol, TypeVar

from nacre.base.frozen import frozen
from nacre.base.times import Window
from nacre.llm.calibration import Calibration, MeanCosines, calibration_of
from nacre.memories import usage as memories_usage
from nacre.values.memory import Confidence, Expiry, Kind, Memory
from nacre.values.recall import HitConfidence
from nacre.values.review import Maturity, Usage

FACTOR_RANGE = (0.5, 1.25)
"""Range of the product of all factors except the relevance, which must dominate the score."""

STABILITY_DAYS = {Expiry.CORE: math.inf, Expiry.PERMANENT: 365.0, Expiry.TEMPORARY: 30.0}
"""Number of days until the retrievability falls to 0.9."""

ADDED_FACTORS = ("maturity", "confidence")
"""Factors that agenr's formula does not have."""

INFERRED_FACTOR = 0.85
OUTSIDE_WINDOW = 0.3
MATURITY_FACTORS = {Maturity.CANDIDATE: 1.0, Maturity.ESTABLISHED: 1.1, Maturity.PROVEN: 1.2}
BROWSE_HALF_LIFE_DAYS = 30.0
"""Half-life of a memory's score when browsing."""

_DAY_SECONDS = 86_400.0


def days_between(earlier: datetime, later: datetime) -> float:
    """Return the number of days from ``earlier`` to ``later``, at least 0."""
    return max(0.0, (later - earlier).total_seconds() / _DAY_SECONDS)


def recency(days: float, expiry: Expiry) -> float:
    """Return the retrievability according to FSRS, (1 + 19/81 · days/S)^-0.5."""
    return float((1 + 19 / 81 * days / STABILITY_DAYS[expiry]) ** -0.5)


def gaussian(days: float, radius_days: float) -> float:
    """Return the closeness, from 0 to 1, of a date that is ``days`` away.

    It follows a normal distribution whose sigma is half of ``radius_days``.
    """
    sigma = radius_days / 2
    return math.exp(-0.5 * (days / sigma) ** 2)


def importance_score(importance: int) -> float:
    """Map an importance from 1 to 10 linearly to the range from 0.55 to 1.0."""
    return 0.55 + (min(10, max(1, importance)) - 1) / 9 * 0.45


def recall_strength(usage: Usage, days: float, expiry: Expiry) -> float:
    """Return a memory's strength, which grows with each recall and fades after the last one."""
    if expiry is Expiry.CORE:
        return 1.0
    if usage.recall_count <= 0:
        return 0.0
    return float(min(usage.recall_count**0.7 / 5, 1.0)) * recency(days, expiry)


def spacing_factor(usage: Usage, created: datetime) -> float:
    """Return the factor for spaced recalls: ln(2 + largest gap in days), at least 1.

    If only the number of recalls is known, they are taken as evenly spaced.
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
    """Return the factor for new, important memories: 1.5 in the first hour, falling to 1.1 after a
    day.
    """
    if memory.importance < 6:
        return 1.0
    hours = days_between(memory.created, now) * 24
    return next((boost for limit, boost in ((1, 1.5), (6, 1.25), (24, 1.1)) if hours < limit), 1.0)


def todo_staleness(memory: Memory, now: datetime) -> float:
    """Return a todo's factor, which halves every 7 days, but not below 0.10 (0.40 if important)."""
    if memory.kind is not Kind.TODO:
        return 1.0
    floor = 0.40 if memory.importance >= 8 else 0.10
    return float(max(0.5 ** (days_between(memory.updated, now) / 7), floor))


def age_factor(
    memory: Memory, now: datetime, *, around: datetime | None, radius_days: float
) -> float:
    """Return the factor for a memory's age, or for its distance from ``around``."""
    if around:
        return _nearness(memory, around, radius_days)
    return float(0.5 ** (days_between(memory.updated, now) / BROWSE_HALF_LIFE_DAYS))


def window_closeness(time: datetime, window: Window, radius_days: float) -> float:
    """Return 1 for a time inside the window, and less the farther away it is."""
    if window.since and time < window.since:
        return gaussian((window.since - time).total_seconds() / _DAY_SECONDS, radius_days)
    if window.until and time >= window.until:
        return gaussian((time - window.until).total_seconds() / _DAY_SECONDS, radius_days)
    return 1.0


def window_factor(memory: Memory, window: Window) -> float:
    """Return 1 for a memory inside the question's period, and less the farther away it is."""
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
    """Return all factors of the score except the relevance, by name.

    Ages are measured at ``as_seen``, by default ``now``, but freshness always at ``now``.
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
        "quality": 0.7 + 0.6 * min(1.0, max(0.0, usage.quality)),
        "maturity": MATURITY_FACTORS[memories_usage.maturity(usage)],
        "confidence": INFERRED_FACTOR if memory.confidence is Confidence.INFERRED else 1.0,
    }


def product(parts: dict[str, float]) -> float:
    """Return the product of the factors, limited to FACTOR_RANGE."""
    low, high = FACTOR_RANGE
    return min(high, max(low, math.prod(parts.values())))


# -- Fusion of lanes -------------------------------------------------------------------------------
# Min-max scaling preserves the lead of a lane's best hit, which rank fusion loses. It gains 1.8
# points of recall@10 on chat.


K = TypeVar("K", bound=Hashable)


def min_max(scores: Mapping[K, float], floor: float | None = None) -> dict[K, float]:
    """Scale scores from 0 to 1, where ``floor``, by default the lowest score, becomes 0.

    If all scores are equal, positive ones become 1 and others 0.
    """
    if not scores:
        return {}
    low = min(scores.values()) if floor is None else floor
    span = max(scores.values()) - low
    if span <= 0:
        return dict.fromkeys(scores, 1.0 if max(scores.values()) > 0 else 0.0)
    return {key: (score - low) / span if score > low else 0.0 for key, score in scores.items()}


def blend(lanes: Mapping[str, tuple[float, Mapping[K, float]]]) -> dict[K, dict[str, float]]:
    """Return each key's weighted score in each lane, or 0 if it is missing there.

    The weights of the lanes that found something are scaled to a sum of 1.
    """
    total = sum(weight for weight, scores in lanes.values() if scores) or 1.0
    keys: dict[K, None] = {}
    for _, scores in lanes.values():
        keys.update(dict.fromkeys(scores))
    shares = [(name, weight / total, scores.get) for name, (weight, scores) in lanes.items()]
    return {
        key: {name: share * score_of(key, 0.0) for name, share, score_of in shares} for key in keys
    }


# -- Confidence ------------------------------------------------------------------------------------
# A logistic model of four signals decides which hits are shown. ``scripts/calibrate_confidence.py``
# writes its weights to ``confidence.toml``. Cosines are first mapped to a scale that all embedding
# models share.


SURE = 0.8
BORDER = 0.5
"""Minimum confidence of likely hits and of unsolicited context."""
LARGE_HOME_TURNS = 10_000
"""Number of turns at which the minimum confidence of a likely hit is halfway to SURE.

On the development tree (6,600 turns), this gives only weak hits for 18 instead of 14 of 20 foreign
questions. It costs 0.3 points of hit@1 on LoCoMo.
"""

NEAR = 0.15
"""Minimum confidence to show a hit that shares no word with the question."""


class Sure(Protocol):
    """A hit whose confidence is known."""

    @property
    def confidence(self) -> float:
        """The confidence that the hit answers the question, from 0 to 1."""

    @property
    def signals(self) -> Signals:
        """The signals that determine the confidence."""

    @property
    def components(self) -> dict[str, float]:
        """The components that explain the hit's score."""


HitT = TypeVar("HitT", bound=Sure)


@frozen
class Signals:
    """The signals of a hit that determine its confidence."""

    coverage: float
    """Weighted share of the question's distinctive words in the hit and a turn's neighbours."""

    own: float
    """Weighted share of the distinctive words in the hit alone."""

    cosine: float | None
    """Similarity in meaning, or ``None`` if vectors were not compared."""

    unknown: float = 0.0
    """Weighted share of the question's words that occur nowhere in the home."""

    unknown_name: bool = False
    """True if one of the unknown words is a name."""

    empty: bool = False
    """True if the question has no distinctive words ("ok, go on")."""

    whole: bool = False
    """True if the hit contains every word of the question."""


@frozen
class Weights:
    """Weights of the signals in a logistic regression."""

    bias: float
    words: float
    meaning: float = 0.0
    unknown: float = 0.0
    unknown_name: float = 0.0


@frozen
class Sureness:
    """A logistic model for the confidence in a hit, and for the hit's fit to the question."""

    with_meaning: Weights
    """Weights of the confidence if there is a cosine."""

    words_alone: Weights
    """Weights of the confidence without a cosine."""

    fit_with_meaning: Weights
    fit_words_alone: Weights
    scale: Calibration
    """Calibration of the cosines."""

    further: float
    """Minimum confidence of further hits if the best hit is likely."""

    def confidence(self, signals: Signals) -> float:
        """Return the probability that the home contains the answer."""
        if signals.empty:
            return 0.0
        total = self._sum(signals, signals.coverage, self.with_meaning, self.words_alone)
        return 1 / (1 + math.exp(-total))

    def fit(self, signals: Signals) -> float:
        """Return the log-odds that the hit itself is the answer."""
        return self._sum(signals, signals.own, self.fit_with_meaning, self.fit_words_alone)

    def _sum(
        self, signals: Signals, coverage: float, with_meaning: Weights, words_alone: Weights
    ) -> float:
        weights, meaning = words_alone, 0.0
        if signals.cosine is not None:
            weights, meaning = with_meaning, self.scale.meaning(signals.cosine)
        return (
            weights.bias
            + weights.meaning * meaning
            + weights.words * coverage
            + weights.unknown * signals.unknown
            + weights.unknown_name * signals.unknown_name
        )


@cache
def sureness_of(kind: str, model: str | None, seen: MeanCosines | None = None) -> Sureness:
    """Return the confidence model for ``turns``, ``memories`` or ``prompts`` (memories for
    prompts).

    ``model`` is the embedding model, and ``seen`` the distribution of its cosines in practice.
    """
    table = tomllib.loads(Path(__file__).with_name("confidence.toml").read_text(encoding="utf-8"))
    constants, fit = table[kind], table["fit"]
    return Sureness(
        with_meaning=Weights(**constants["with_meaning"]),
        words_alone=Weights(**constants["words_alone"]),
        fit_with_meaning=Weights(**fit["with_meaning"]),
        fit_words_alone=Weights(**fit["words_alone"]),
        scale=calibration_of(model, seen),
        further=constants["beside"],
    )


def select_answering(kind: str, ranked: Sequence[HitT]) -> list[HitT]:
    """Return the hits that probably answer the question, or none if the best one is not likely.

    ``kind`` is the name of the confidence model.
    """
    if max((item.confidence for item in ranked), default=0.0) < BORDER:
        return []
    minimum = sureness_of(kind, None).further
    return [item for item in ranked if item.confidence >= minimum]


def matches(item: Sure) -> bool:
    """Return True if a hit has words or meaning in common with the question."""
    if item.signals.empty:
        return item.signals.whole
    holds_words = not item.components.keys().isdisjoint(("lexical", "name"))
    return (
        (holds_words and item.signals.coverage > 0) or item.signals.whole or item.confidence >= NEAR
    )


def is_sure(item: Sure) -> bool:
    """Return True if a hit almost certainly answers the question."""
    return item.confidence >= SURE


def least_confidence(turns: int, half: int) -> float:
    """Return the confidence, from BORDER to SURE, that a hit needs in a home with ``turns`` turns.

    More turns lead to more chance matches. At ``half`` turns, the minimum is halfway.
    """
    return BORDER + (SURE - BORDER) * turns / (turns + half)


def in_words(item: Sure, turns: int) -> HitConfidence:
    """Return ``likely`` or ``weak`` for a hit in a home with ``turns`` turns.

    Only a comparison with the other hits can make a hit ``sure``.
    """
    is_likely = item.confidence >= least_confidence(turns, LARGE_HOME_TURNS)
    return HitConfidence.LIKELY if is_likely else HitConfidence.WEAK
