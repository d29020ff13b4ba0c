"""How a memory's age, use and worth change its rank. Formulas of agenr, clamped (docs/context.md)."""

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

from nacre.base.times import Window
from nacre.errors import RerankerUnavailable
from nacre.llm.local_model import Calibration, Seen, calibration_of
from nacre.memories.usage import maturity
from nacre.protocols import Reranker
from nacre.values.memory import Confidence, Expiry, Kind, Memory
from nacre.values.recall import HitConfidence, Lane, LaneState
from nacre.values.review import Maturity, Usage

FACTOR_RANGE = (0.5, 1.25)
"""All factors after relevance together: no signal lifts an irrelevant hit above a relevant one."""

STABILITY_DAYS = {Expiry.CORE: math.inf, Expiry.PERMANENT: 365.0, Expiry.TEMPORARY: 30.0}
"""Days after which retrievability has fallen to .9; a stability, not a half-life."""

ADDED_FACTORS = ("maturity", "confidence")
"""Factors that agenr's formula does not have; they come from the other seed (seed facts 2.3)."""

INFERRED_FACTOR = 0.85
OUTSIDE_WINDOW = 0.3
NEAR_WINDOW = 0.4
MATURITY_FACTORS = {Maturity.CANDIDATE: 1.0, Maturity.ESTABLISHED: 1.1, Maturity.PROVEN: 1.2}
BROWSE_HALF_LIFE_DAYS = 30.0
"""Without a question a memory counts half as much after so many days (seed facts 1.2.2)."""

_DAY_SECONDS = 86_400.0


def days_between(earlier: datetime, later: datetime) -> float:
    """Days from one time to another, never negative."""
    return max(0.0, (later - earlier).total_seconds() / _DAY_SECONDS)


def recency(days: float, expiry: Expiry) -> float:
    """The FSRS power curve: (1 + 19/81 · days/S)^-0.5."""
    return float((1 + 19 / 81 * days / STABILITY_DAYS[expiry]) ** -0.5)


def gaussian(days: float, radius_days: float) -> float:
    """Nearness to a date: sigma is half the radius."""
    sigma = radius_days / 2
    return math.exp(-0.5 * (days / sigma) ** 2)


def importance_score(importance: int) -> float:
    """.55 for 1 to 1.0 for 10."""
    return 0.55 + (min(10, max(1, importance)) - 1) / 9 * 0.45


def recall_strength(usage: Usage, days: float, expiry: Expiry) -> float:
    """Grows with recalls, fades with the days since the last one."""
    if expiry is Expiry.CORE:
        return 1.0
    if usage.recall_count <= 0:
        return 0.0
    return float(min(usage.recall_count**0.7 / 5, 1.0)) * recency(days, expiry)


def spacing_factor(usage: Usage, created: datetime) -> float:
    """Recalls far apart count more: ln(2 + largest gap in days), at least 1.

    Where only their number is known they are taken as evenly spread from the memory's creation to the last one.
    """
    ordered = sorted(usage.intervals) or _evenly_spread(usage, created)
    if len(ordered) < 2:
        return 1.0
    gap = max(later - earlier for earlier, later in pairwise(ordered)) / 1000 / _DAY_SECONDS
    return max(1.0, math.log1p(gap + 1))


def _evenly_spread(usage: Usage, created: datetime) -> list[float]:
    """One time more than there were recalls, in milliseconds; none where there is nothing to spread."""
    last = usage.last_recalled
    if usage.recall_count <= 0 or last is None or created >= last:
        return []
    gap = (last - created).total_seconds() * 1000 / usage.recall_count
    return [number * gap for number in range(usage.recall_count + 1)]


def freshness(memory: Memory, now: datetime) -> float:
    """What is important and new, from 1.5 within the hour to 1.1 within the day."""
    if memory.importance < 6:
        return 1.0
    hours = days_between(memory.created, now) * 24
    return next((boost for limit, boost in ((1, 1.5), (6, 1.25), (24, 1.1)) if hours < limit), 1.0)


def todo_staleness(memory: Memory, now: datetime) -> float:
    """An old todo counts less: half a week's age, down to .10, or .40 for an important one."""
    if memory.kind is not Kind.TODO:
        return 1.0
    floor = 0.40 if memory.importance >= 8 else 0.10
    return float(max(0.5 ** (days_between(memory.updated, now) / 7), floor))


def maturity_factor(usage: Usage) -> float:
    """Established memories and proven ones count a little more.

    The seed's .5, 1.0 and 1.5 (seed facts 2.3) would put every new memory at the lower clamp, where no other signal
    shows; its order is kept, with the candidate as the neutral one.
    """
    return MATURITY_FACTORS[maturity(usage)]


def age_factor(
    memory: Memory, now: datetime, *, around: datetime | None = None, radius_days: float = 14.0
) -> float:
    """What its age leaves of a memory that is browsed: half after 30 days, or its nearness to a date."""
    if around:
        return _nearness(memory, around, radius_days)
    return float(0.5 ** (days_between(memory.updated, now) / BROWSE_HALF_LIFE_DAYS))


def window_closeness(time: datetime, window: Window, radius_days: float) -> float:
    """1 within a time that a question names, fading outside it."""
    if window.since and time < window.since:
        return gaussian((window.since - time).total_seconds() / _DAY_SECONDS, radius_days)
    if window.until and time >= window.until:
        return gaussian((time - window.until).total_seconds() / _DAY_SECONDS, radius_days)
    return 1.0


def window_factor(memory: Memory, window: Window) -> float:
    """What a time that the question names leaves of a memory: all within it, less the farther away."""
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
    """Every factor after relevance, by name; ``product`` multiplies and clamps them.

    ``as_seen`` is the moment that days count back from, by default ``now``; freshness counts from ``now`` in any case
    (seed facts 1.2.1).
    """
    fresh, now = freshness(memory, now), as_seen or now
    if around:
        age = _nearness(memory, around, radius_days)
    else:
        age = 1.0 if memory.evergreen else recency(days_between(memory.updated, now), memory.expiry)
    recalled_days = days_between(usage.last_recalled or memory.updated, now)
    strength = min(
        recall_strength(usage, recalled_days, memory.expiry)
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
        "maturity": maturity_factor(usage),
        "confidence": INFERRED_FACTOR if memory.confidence is Confidence.INFERRED else 1.0,
    }


def product(parts: dict[str, float]) -> float:
    """The factors multiplied, within FACTOR_RANGE."""
    low, high = FACTOR_RANGE
    return min(high, max(low, math.prod(parts.values())))


# ----------------------------------------------------------------------------
# Put the scores of lanes on one scale and add them.
#
# Min-max keeps how far a lane's best hit stands out, which rank fusion throws away (retrieval study:
# 1.8 points of
# recall@10 on chat, more at rank 1 in one pile).


K = TypeVar("K", bound=Hashable)


class Scale(Protocol):
    """Puts scores on 0..1; ``floor`` is the score that becomes 0, where it is known."""

    def __call__(self, scores: Mapping[K, float], floor: float | None = None) -> dict[K, float]: ...


def min_max(scores: Mapping[K, float], floor: float | None = None) -> dict[K, float]:
    """Scale to 0..1; ``floor`` is the value that becomes 0 (the lowest score when not given).

    Where all scores are alike none is worse than another: all become 1, unless they are 0.
    """
    if not scores:
        return {}
    low = min(scores.values()) if floor is None else floor
    span = max(scores.values()) - low
    if span <= 0:
        return dict.fromkeys(scores, 1.0 if max(scores.values()) > 0 else 0.0)
    return {key: (score - low) / span if score > low else 0.0 for key, score in scores.items()}


def blend(lanes: Mapping[str, tuple[float, Mapping[K, float]]]) -> dict[K, dict[str, float]]:
    """Each key's weighted part from each lane, by the lane's name; a lane that does not know a key gives 0.

    Weights are shares: they are divided by the sum of the weights of the lanes that ran.
    """
    total = sum(weight for weight, scores in lanes.values() if scores) or 1.0
    keys: dict[K, None] = {}
    for _, scores in lanes.values():
        keys.update(dict.fromkeys(scores))
    shares = [(name, weight / total, scores.get) for name, (weight, scores) in lanes.items()]
    return {
        key: {name: share * score_of(key, 0.0) for name, share, score_of in shares} for key in keys
    }


# ----------------------------------------------------------------------------
# A second look at the best hits, by a model that reads question and text together; bounded in number
# and time.


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

    def reorder(
        self, items: Sequence[T], *, score: Callable[[T], float], text: Callable[[T], str]
    ) -> list[T]:
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


# ----------------------------------------------------------------------------
# Is anything worth showing? Decided on absolute signals, never on ranks.
#
# A logistic model of four signals that a person can follow. Its constants lie in ``confidence.toml``,
# where
# ``scripts/calibrate_confidence.py`` writes them; the cosine is brought to one scale for all
# embedding models first, and
# where none was compared, the form without it is used.


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


T_CONFIDENCE = TypeVar("T_CONFIDENCE", bound=Sure)


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


def answering(kind: str, ranked: Sequence[T_CONFIDENCE]) -> list[T_CONFIDENCE]:
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
    return (
        (holds_words and item.signals.coverage > 0) or item.signals.whole or item.confidence >= NEAR
    )


def is_sure(item: Sure) -> bool:
    """Whether a hit is sure to answer."""
    return item.confidence >= SURE


def in_words(confidence: float) -> HitConfidence:
    """A confidence as a word."""
    if confidence >= SURE:
        return HitConfidence.SURE
    return HitConfidence.LIKELY if confidence >= BORDER else HitConfidence.WEAK
