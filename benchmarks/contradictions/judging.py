"""How well does a model tell claims, and judge pairs of memories; and how far do the rules come without one?

Scores are those of the seed (facts 1.10). A claim: entity .25, attribute .25, predicate .15, object .25, confidence .1.
A judgement: relation .8, confidence .2. A case passes from .7 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

import msgspec

from nacre.base.text import normalise, title_of, words
from nacre.errors import AnswerUnusable
from nacre.llm.calibration import calibration_of
from nacre.llm.failures import ask, schema_of
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
    """What a memory claims."""

    entity: str
    attribute: str
    predicate: str
    object: str


class ClaimCase(msgspec.Struct, frozen=True):
    """A memory, the entities that are known, its claim (``None``: it has none), and what is right as well."""

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
    """Two memories, how they stand to each other and why, and how sure a judge should be."""

    id: str
    why: str
    relation: Bearing
    earlier: Side
    later: Side
    confidence: tuple[float, float] = (0.0, 1.0)


class ClaimData(msgspec.Struct, frozen=True):
    """A file of the benchmark of claims."""

    cases: tuple[ClaimCase, ...]


class PairData(msgspec.Struct, frozen=True):
    """A file of the benchmark of judgements."""

    cases: tuple[PairCase, ...]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case: its score, what was wanted and what came."""

    id: str
    score: float
    wanted: str
    came: str


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """A run over all claims: the mean score, how many passed, and each case."""

    model: str
    score: float
    passed: int
    cases: tuple[CaseResult, ...]


@dataclass(frozen=True, slots=True)
class Judges:
    """What one judge made of all pairs: relations that are right, and outcomes that are (superseded, pending, coexist).

    ``wrongly_ended`` counts memories that it would have superseded although nothing took their place.
    """

    name: str
    relations: int
    outcomes: int
    wrongly_ended: int
    score: float | None = None
    passed: int | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """What one judge made of a pair: the relation, how sure (``None`` of rules), why in a sentence, and what would have
    become of it.

    ``score`` is that of a model; ``problem`` tells in words what went wrong, if anything did.
    """

    judge: str
    relation: Bearing
    confidence: float | None
    explanation: str
    outcome: Resolution
    score: float | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class PairResult:
    """One pair: what it tries, the relation and the outcome that are right, and what each judge made of it."""

    id: str
    why: str
    wanted: Bearing
    expected: Resolution
    judged: tuple[Judged, ...]


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """A run over all pairs: the model, where there is one, the rules beside it, and each pair with what both said."""

    pairs: int
    judges: tuple[Judges, ...]
    cases: tuple[PairResult, ...]


def measure_claims(
    data: ClaimData, model: LanguageModel, notify: OnProgress = lambda _: None
) -> ClaimResult:
    """Have a model tell every claim. An answer that cannot be used scores nothing. Raises Unavailable, ModelRefused."""
    found = []
    for at, case in enumerate(data.cases, 1):
        memory = _memory(case.id, Side(case.text, date(2026, 5, 20), case.kind))
        try:
            answer = ask(
                model, claim_prompt(memory, case.known, schema_of(ClaimAnswer)), ClaimAnswer
            )
            claim, score = claim_of(answer), None
        except AnswerUnusable:
            claim, score = None, 0.0
        gold = case.gold
        wanted = (
            f"{gold.entity}/{gold.attribute} {gold.predicate} {gold.object}" if gold else "nothing"
        )
        came = (
            f"{claim.key} {claim.predicate} {claim.object} ({claim.confidence:.2f})"
            if claim
            else "nothing"
        )
        found.append(
            CaseResult(case.id, claim_score(case, claim) if score is None else score, wanted, came)
        )
        notify(Progress("asking", at, len(data.cases)))
    return ClaimResult(model.name, _mean(found), _passed(found), tuple(found))


def claim_score(case: ClaimCase, claim: Claim | None) -> float:
    """How much of a claim is right, 0 to 1."""
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


def _are_alike(one: str, other: str) -> bool:
    return one == other or any(one in group and other in group for group in _ALIKE)


def _object_score(came: str, wanted: str) -> float:
    one, other = normalise(came), normalise(wanted)
    if one and (one in other or other in one):
        return 1.0
    mine, theirs = set(words(came)), set(words(wanted))
    return len(mine & theirs) / max(1, len(mine | theirs))


def measure_judge(
    data: PairData, model: LanguageModel | None, notify: OnProgress = lambda _: None
) -> JudgeResult:
    """Judge every pair, by the rules and by a model where one is given. Raises Unavailable, ModelRefused."""
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
        answer = ask(model, judge_prompt(later, [earlier], schema_of(JudgeAnswer)), JudgeAnswer)
        one = judgements(answer, 1)[0]
    except AnswerUnusable:
        none = Bearing.UNRELATED, -1.0, "", Resolution.COEXIST, 0.0, "no answer of use"
        return Judged(model.name, *none)
    outcome = resolve(earlier, later, one)
    least, most = case.confidence
    is_fit = least <= one.confidence <= most
    score = round(0.8 * (one.bearing is case.relation) + 0.2 * is_fit, 4)
    problem = _PROBLEMS.get((expected, outcome))
    if problem is None and one.bearing is not case.relation:
        problem = f"the relation is {case.relation.value}, which comes to the same here"
    if problem is None and not is_fit:
        problem = f"as sure as {least:g} to {most:g} is right"
    return Judged(model.name, one.bearing, one.confidence, one.explanation, outcome, score, problem)


def _judges(column: Sequence[Judged], cases: Sequence[PairResult]) -> Judges:
    pairs = list(zip(column, cases, strict=True))
    scores = [one.score for one in column if one.score is not None]
    return Judges(
        column[0].judge,
        sum(one.relation is case.wanted for one, case in pairs),
        sum(one.outcome is case.expected for one, case in pairs),
        sum(
            one.outcome is Resolution.SUPERSEDED and case.wanted is not Bearing.SUPERSEDES
            for one, case in pairs
        ),
        round(sum(scores) / len(scores), 4) if scores else None,
        sum(score >= PASS for score in scores) if scores else None,
    )


_PROBLEMS = {
    (Resolution.SUPERSEDED, Resolution.PENDING): "a person is asked although it is plain",
    (
        Resolution.SUPERSEDED,
        Resolution.COEXIST,
    ): "both stay, although the later one takes the place of the earlier one",
    (Resolution.PENDING, Resolution.SUPERSEDED): "the earlier one is ended, and nobody is asked",
    (Resolution.PENDING, Resolution.COEXIST): "both stay, and nobody is asked which of them holds",
    (Resolution.COEXIST, Resolution.SUPERSEDED): "the earlier one is ended, although it holds",
    (Resolution.COEXIST, Resolution.PENDING): "a person is asked although both hold",
}
"""What goes wrong, by the outcome that is right and the one that came."""


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


def _mean(found: Sequence[CaseResult]) -> float:
    return round(sum(one.score for one in found) / max(1, len(found)), 4)


def _passed(found: Sequence[CaseResult]) -> int:
    return sum(one.score >= PASS for one in found)
