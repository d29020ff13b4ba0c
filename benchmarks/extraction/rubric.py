"""The score that agenr uses for its fixtures."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.extraction.labels import Expectation, Labelled
from benchmarks.extraction.scoring import Kept, Skipped, ratio
from nacre.base.frozen import frozen

HIT = 0.70
"""Minimum similarity for an expectation to count as met."""

_KIND, _SUBJECT, _CONTENT, _IMPORTANCE = 0.2, 0.3, 0.3, 0.2
_OUT_OF_RANGE, _ABOVE_CEILING = 0.8, 0.9


@frozen
class ExpectationMatch:
    """The similarity (0 to 1) between an expectation and its best memory."""

    expectation: Expectation
    likeness: float
    memory: Kept | None

    @property
    def is_hit(self) -> bool:
        return self.likeness >= HIT - 1e-9


@frozen
class FixtureScore:
    """A fixture's score, with shares from 0 to 1."""

    session: Labelled
    kept: tuple[Kept, ...]
    met: tuple[ExpectationMatch, ...]
    skipped: tuple[Skipped, ...]
    recall: float
    partial_recall: float
    precision: float
    in_range: bool
    below_ceiling: bool
    composite: float
    passed: bool


@frozen
class FixtureTotals:
    """Means over all fixtures, and the number that pass."""

    sessions: int
    passed: int
    recall: float | None
    partial_recall: float | None
    precision: float | None
    composite: float | None


def score_fixture(session: Labelled, kept: Sequence[Kept]) -> FixtureScore:
    """Score a session's memories against a fixture.

    The similarity is .2 kind + .3 subject + .3 share of the content's terms + .2 importance. A
    memory meets only one expectation; expectations with most terms choose first. The total score is
    the F1 of precision and partial recall, × .8 if the number of memories is out of range, × .9 if
    an importance is above the maximum.
    """
    matches = _meet(session.expectations, kept)
    skipped = tuple(
        Skipped(memory, skip.reason)
        for skip in session.skips
        for memory in kept
        if skip.pattern.search(memory.subject) or skip.pattern.search(memory.content)
    )
    recall = sum(item.is_hit for item in matches) / len(matches) if matches else 1.0
    partial = sum(item.likeness for item in matches) / len(matches) if matches else 1.0
    precision = max(0.0, 1 - len(skipped) / len(kept)) if kept else 1.0
    in_range = session.least <= len(kept) <= session.most
    below = session.ceiling is None or all(
        (memory.importance or 0) <= session.ceiling for memory in kept
    )
    composite = 2 * precision * partial / (precision + partial) if precision + partial else 0.0
    composite *= (1 if in_range else _OUT_OF_RANGE) * (1 if below else _ABOVE_CEILING)
    passed = all(item.is_hit for item in matches) and not skipped and in_range and below
    return FixtureScore(
        session,
        tuple(kept),
        matches,
        skipped,
        recall,
        partial,
        precision,
        in_range,
        below,
        composite,
        passed,
    )


def total_fixtures(scores: Sequence[FixtureScore]) -> FixtureTotals:
    """Return the totals for all fixtures."""
    return FixtureTotals(
        sessions=len(scores),
        passed=sum(score.passed for score in scores),
        recall=ratio(sum(score.recall for score in scores), len(scores)),
        partial_recall=ratio(sum(score.partial_recall for score in scores), len(scores)),
        precision=ratio(sum(score.precision for score in scores), len(scores)),
        composite=ratio(sum(score.composite for score in scores), len(scores)),
    )


def _meet(
    expectations: Sequence[Expectation], kept: Sequence[Kept]
) -> tuple[ExpectationMatch, ...]:
    left = list(kept)
    matches: dict[int, ExpectationMatch] = {}
    order = sorted(
        range(len(expectations)),
        key=lambda at: (-len(expectations[at].terms), -len(expectations[at].subject)),
    )
    for at in order:
        expectation = expectations[at]
        best = max(left, key=lambda memory: _rank(expectation, memory), default=None)
        likeness = _likeness(expectation, best) if best else 0.0
        matches[at] = ExpectationMatch(expectation, likeness, best if likeness else None)
        if best and likeness:
            left.remove(best)
    return tuple(matches[at] for at in range(len(expectations)))


def _rank(expectation: Expectation, memory: Kept) -> tuple[float, float]:
    return round(_likeness(expectation, memory), 9), _share(expectation, memory)


def _likeness(expectation: Expectation, memory: Kept) -> float:
    importance = memory.importance or 0
    fits = expectation.least <= importance and (
        expectation.most is None or importance <= expectation.most
    )
    return (
        _KIND * (memory.kind.lower() == expectation.kind.strip().lower())
        + _SUBJECT * _has(memory.subject, expectation.subject)
        + _CONTENT * _share(expectation, memory)
        + _IMPORTANCE * fits
    )


def _share(expectation: Expectation, memory: Kept) -> float:
    return (
        sum(_has(memory.content, term) for term in expectation.terms) / len(expectation.terms)
        if expectation.terms
        else 1.0
    )


def _has(text: str, term: str) -> bool:
    return term.strip().lower() in text.lower()
