"""Measure how well a model extracts claims and judges pairs of memories, compared with rules.

A claim's score has these weights: entity .25, attribute .25, predicate .15, object .25, confidence
.1. A judgement's score has: relation .8, confidence .2. A case passes with .7 or
more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime

import msgspec

from nacre.base.frozen import frozen
from nacre.base.text import normalise, title_of, words
from nacre.errors import UnusableAnswerError
from nacre.llm.calibration import calibration_of
from nacre.llm.failures import ask
from nacre.memories.compare import (
    Bearing,
    ClaimAnswer,
    JudgeAnswer,
    Judgement,
    Resolution,
    are_one_attribute,
    attribute_name,
    claim_of,
    claim_prompt,
    entity_name,
    judge_prompt,
    judgements,
    resolve,
)
from nacre.memories.judge import Relation
from nacre.memories.judge import judge as judge_by_rules
from nacre.protocols import LanguageModel
from nacre.values.memory import Claim, Kind, Memory
from nacre.values.reports import OnProgress, Progress
from nacre.values.session import Speaker

PASS = 0.7
_NOON = 12
_ALIKE = (
    frozenset("is are was equals has set_to value".split()),
    frozenset(
        "uses use used runs runs_on run_on built_with stored_in kept_in keeps keeps_in is_kept_in".split()
    ),
    frozenset("prefers likes like wants prefer chooses uses".split()),
    frozenset(
        "lives_in lives is_in located_in runs_in resides_in moved_to works_from hosted_in".split()
    ),
    frozenset(
        "happens_on happen_on occurs_on takes_place_on is_on scheduled_on scheduled_for is".split()
    ),
    frozenset("designs makes creates is responsible_for".split()),
    frozenset(
        "is maintained_by owned_by looked_after_by responsible has_owner maintains owns".split()
    ),
    frozenset("is lasts retains keeps stores_for kept_for has requires needs minimum_is".split()),
)
_BEARINGS = {Relation.SUPERSEDES: Bearing.SUPERSEDES, Relation.DOUBTS: Bearing.CONTRADICTS}
_OUTCOMES = {Relation.SUPERSEDES: Resolution.SUPERSEDED, Relation.DOUBTS: Resolution.PENDING}


class Gold(msgspec.Struct, frozen=True):
    """The claim that is expected for a memory."""

    entity: str
    attribute: str
    predicate: str
    object: str


class ClaimCase(msgspec.Struct, frozen=True):
    """A memory, the known entities, the expected claim (``None`` if there is none), and other right answers."""

    id: str
    kind: Kind
    text: str
    gold: Gold | None
    known: tuple[str, ...] = ()
    or_entities: tuple[str, ...] = ()
    or_attributes: tuple[str, ...] = ()
    confidence: tuple[float, float] = (0.0, 1.0)


class Side(msgspec.Struct, frozen=True):
    """One memory of a pair."""

    text: str
    date: date
    kind: Kind = Kind.FACT
    importance: int = 7
    speaker: Speaker = Speaker.OWNER


class PairCase(msgspec.Struct, frozen=True):
    """Two memories, how they are related and why, and the expected range of confidence."""

    id: str
    why: str
    relation: Bearing
    earlier: Side
    later: Side
    confidence: tuple[float, float] = (0.0, 1.0)


class ClaimData(msgspec.Struct, frozen=True):
    """A data file for the claims benchmark."""

    cases: tuple[ClaimCase, ...]


class PairData(msgspec.Struct, frozen=True):
    """A data file for the judge benchmark."""

    cases: tuple[PairCase, ...]


@frozen
class CaseResult:
    """The score of one case, with the expected and the actual claim."""

    id: str
    score: float
    wanted: str
    came: str


@frozen
class ClaimResult:
    """The results for all claims: mean score, number that passed, and each case."""

    model: str
    score: float
    passed: int
    cases: tuple[CaseResult, ...]


@frozen
class Judges:
    """One judge's figures: how many relations and outcomes were right.

    ``wrongly_ended`` counts memories that are still true but would have been superseded.
    """

    name: str
    relations: int
    outcomes: int
    wrongly_ended: int
    score: float | None = None
    passed: int | None = None


@frozen
class Judged:
    """One judge's verdict about a pair: relation, confidence (``None`` for rules), explanation and outcome.

    Only models have a ``score``. ``problem`` describes what was wrong, if anything.
    """

    judge: str
    relation: Bearing
    confidence: float | None
    explanation: str
    outcome: Resolution
    score: float | None
    problem: str | None


@frozen
class PairResult:
    """A pair: its purpose, the right relation and outcome, and each judge's verdict."""

    id: str
    why: str
    wanted: Bearing
    expected: Resolution
    judged: tuple[Judged, ...]


@frozen
class JudgeResult:
    """The results for all pairs: figures for the rules and the model (if any), and the verdicts about each pair."""

    pairs: int
    judges: tuple[Judges, ...]
    cases: tuple[PairResult, ...]


def measure_claims(
    data: ClaimData, model: LanguageModel, notify: OnProgress = lambda _: None
) -> ClaimResult:
    """Let a model extract every claim. Answers that cannot be used score 0.

    Raises UnavailableError, ModelRefusedError.
    """
    results = []
    for at, case in enumerate(data.cases, 1):
        memory = _memory(case.id, Side(case.text, date(2026, 5, 20), case.kind))
        try:
            answer = ask(model, claim_prompt(memory, case.known), ClaimAnswer)
            claim, score = claim_of(answer), None
        except UnusableAnswerError:
            claim, score = None, 0.0
        gold = case.gold
        expected = (
            f"{gold.entity}/{gold.attribute} {gold.predicate} {gold.object}" if gold else "nothing"
        )
        came = (
            f"{claim.key} {claim.predicate} {claim.object} ({claim.confidence:.2f})"
            if claim
            else "nothing"
        )
        results.append(
            CaseResult(
                case.id, claim_score(case, claim) if score is None else score, expected, came
            )
        )
        notify(Progress("asking", at, len(data.cases)))
    return ClaimResult(model.name, _mean(results), _passed(results), tuple(results))


def claim_score(case: ClaimCase, claim: Claim | None) -> float:
    """Return a claim's score from 0 to 1."""
    gold = case.gold
    if gold is None or claim is None:
        return float(gold is None and claim is None)
    entities = [entity_name(name) for name in (gold.entity, *case.or_entities)]
    attributes = [attribute_name(name) for name in (gold.attribute, *case.or_attributes)]
    least, most = case.confidence
    return round(
        0.25 * (claim.entity in entities)
        + 0.25 * any(are_one_attribute(claim.attribute, name) for name in attributes)
        + 0.15 * _are_alike(claim.predicate, attribute_name(gold.predicate))
        + 0.25 * _object_score(claim.object, gold.object)
        + 0.1 * (least <= claim.confidence <= most),
        4,
    )


def _are_alike(first: str, second: str) -> bool:
    return first == second or any(first in group and second in group for group in _ALIKE)


def _object_score(came: str, expected: str) -> float:
    actual, expected_text = normalise(came), normalise(expected)
    if actual and (actual in expected_text or expected_text in actual):
        return 1.0
    mine, theirs = set(words(came)), set(words(expected))
    return len(mine & theirs) / max(1, len(mine | theirs))


def measure_judge(
    data: PairData, model: LanguageModel | None, notify: OnProgress = lambda _: None
) -> JudgeResult:
    """Judge every pair by rules, and by a model if there is one. Raises UnavailableError, ModelRefusedError."""
    cases = []
    for at, case in enumerate(data.cases, 1):
        earlier, later = _sides(case)
        expected = resolve(earlier, later, Judgement(case.relation, 1.0))
        by_model = [_by_model(case, model, expected)] if model else []
        cases.append(
            PairResult(
                case.id, case.why, case.relation, expected, (*by_model, _by_rules(case, expected))
            )
        )
        if model:
            notify(Progress("asking", at, len(data.cases)))
    columns = zip(*(case.judged for case in cases), strict=True)
    return JudgeResult(
        len(cases), tuple(_judges(column, cases) for column in columns), tuple(cases)
    )


def _by_rules(case: PairCase, expected: Resolution) -> Judged:
    earlier, later = _sides(case)
    verdict = judge_by_rules(earlier, later, None, calibration_of(None))
    relation = verdict.relation
    is_only_agents = later.speaker is not Speaker.OWNER and earlier.speaker is Speaker.OWNER
    if is_only_agents and relation is Relation.SUPERSEDES:
        relation = Relation.DOUBTS
    is_apart = relation is Relation.UNRELATED
    bearing = Bearing.UNRELATED if is_apart else _BEARINGS.get(relation, Bearing.COEXISTS)
    outcome = _OUTCOMES.get(relation, Resolution.COEXIST)
    return Judged(
        "rules", bearing, None, verdict.reason, outcome, None, _PROBLEMS.get((expected, outcome))
    )


def _by_model(case: PairCase, model: LanguageModel, expected: Resolution) -> Judged:
    earlier, later = _sides(case)
    try:
        answer = ask(model, judge_prompt(later, [earlier]), JudgeAnswer)
        judgement = judgements(answer, 1)[0]
    except UnusableAnswerError:
        none = Bearing.UNRELATED, -1.0, "", Resolution.COEXIST, 0.0, "the answer is not usable"
        return Judged(model.name, *none)
    outcome = resolve(earlier, later, judgement)
    least, most = case.confidence
    is_fit = least <= judgement.confidence <= most
    score = round(0.8 * (judgement.bearing is case.relation) + 0.2 * is_fit, 4)
    problem = _PROBLEMS.get((expected, outcome))
    if problem is None and judgement.bearing is not case.relation:
        problem = f"the relation is {case.relation.value}; the outcome is the same"
    if problem is None and not is_fit:
        problem = f"the confidence should be {least:g} to {most:g}"
    return Judged(
        model.name,
        judgement.bearing,
        judgement.confidence,
        judgement.explanation,
        outcome,
        score,
        problem,
    )


def _judges(column: Sequence[Judged], cases: Sequence[PairResult]) -> Judges:
    pairs = list(zip(column, cases, strict=True))
    scores = [verdict.score for verdict in column if verdict.score is not None]
    return Judges(
        column[0].judge,
        sum(verdict.relation is case.wanted for verdict, case in pairs),
        sum(verdict.outcome is case.expected for verdict, case in pairs),
        sum(
            verdict.outcome is Resolution.SUPERSEDED and case.wanted is not Bearing.SUPERSEDES
            for verdict, case in pairs
        ),
        round(sum(scores) / len(scores), 4) if scores else None,
        sum(score >= PASS for score in scores) if scores else None,
    )


_PROBLEMS = {
    (Resolution.SUPERSEDED, Resolution.PENDING): "asks for a review although the case is clear",
    (
        Resolution.SUPERSEDED,
        Resolution.COEXIST,
    ): "both stay, although the later one replaces the earlier one",
    (Resolution.PENDING, Resolution.SUPERSEDED): "the earlier one is ended without a review",
    (Resolution.PENDING, Resolution.COEXIST): "both stay without a review",
    (
        Resolution.COEXIST,
        Resolution.SUPERSEDED,
    ): "the earlier one is ended, although it still holds",
    (Resolution.COEXIST, Resolution.PENDING): "asks for a review although both hold",
}
"""Messages by expected and actual outcome."""


def _sides(case: PairCase) -> tuple[Memory, Memory]:
    return _memory(f"{case.id}-earlier", case.earlier), _memory(f"{case.id}-later", case.later)


def _memory(memory_id: str, side: Side) -> Memory:
    at = datetime(side.date.year, side.date.month, side.date.day, _NOON, tzinfo=UTC)
    return Memory(
        id=memory_id,
        kind=side.kind,
        subject=title_of(side.text),
        content=side.text,
        created=at,
        updated=at,
        importance=side.importance,
        speaker=side.speaker,
    )


def _mean(results: Sequence[CaseResult]) -> float:
    return round(sum(result.score for result in results) / max(1, len(results)), 4)


def _passed(results: Sequence[CaseResult]) -> int:
    return sum(result.score >= PASS for result in results)
