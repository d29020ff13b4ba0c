"""How well does a model tell claims, and judge pairs of memories; and how far do the rules come without one?

Scores are those of the seed (facts 1.10). A claim: entity .25, attribute .25, predicate .15, object .25, confidence .1.
A judgement: relation .8, confidence .2. A case passes from .7 on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

import msgspec

from nacre.dedup.claims import (
    ClaimAnswer,
    are_one_attribute,
    attribute_name,
    claim_of,
    claim_prompt,
    entity_name,
)
from nacre.dedup.contradiction import Bearing, JudgeAnswer, Judgement, Outcome, judge_prompt, judgements, resolve
from nacre.dedup.judge import Relation
from nacre.dedup.judge import judge as judge_by_rules
from nacre.embed.calibration import calibration_of
from nacre.errors import AnswerUnusable, NotFound, QueryInvalid
from nacre.llm.answers import ask, schema_of
from nacre.model.memory import Claim, Kind, Memory
from nacre.model.reports import Progress
from nacre.model.session import Speaker
from nacre.protocols import LanguageModel
from nacre.text import normalise, title_of, words

PASS = 0.7
_NOON = 12
_ALIKE = (
    frozenset("is are was equals has set_to value".split()),
    frozenset("uses use used runs runs_on run_on built_with stored_in kept_in keeps keeps_in is_kept_in".split()),
    frozenset("prefers likes like wants prefer chooses uses".split()),
    frozenset("lives_in lives is_in located_in runs_in resides_in moved_to works_from hosted_in".split()),
    frozenset("happens_on happen_on occurs_on takes_place_on is_on scheduled_on scheduled_for is".split()),
    frozenset("designs makes creates is responsible_for".split()),
    frozenset("is maintained_by owned_by looked_after_by responsible has_owner maintains owns".split()),
    frozenset("is lasts retains keeps stores_for kept_for has requires needs minimum_is".split()),
)  # fmt: skip
_BEARINGS = {Relation.SUPERSEDES: Bearing.SUPERSEDES, Relation.DOUBTS: Bearing.CONTRADICTS}
_OUTCOMES = {Relation.SUPERSEDES: Outcome.SUPERSEDED, Relation.DOUBTS: Outcome.PENDING}

D = TypeVar("D", bound=msgspec.Struct)
Notify = Callable[[Progress], None]


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
class JudgeResult:
    """A run over all pairs: the model, where there is one, the rules beside it, and each case of the model's (or of the
    rules', without one)."""

    pairs: int
    judges: tuple[Judges, ...]
    cases: tuple[CaseResult, ...]


def load(file: Path | None, name: str, type_: type[D]) -> D:
    """The cases in a file, or nacre's own. Raises NotFound, QueryInvalid."""
    try:
        raw = file.read_bytes() if file else files("nacre.bench").joinpath(f"data/{name}.json").read_bytes()
        return msgspec.json.decode(raw, type=type_)
    except FileNotFoundError as error:
        raise NotFound(f"there is no {file}") from error
    except msgspec.DecodeError as error:
        raise QueryInvalid(f"{file or 'the data'} is no data of this benchmark: {error}") from error


def measure_claims(data: ClaimData, model: LanguageModel, notify: Notify = lambda _: None) -> ClaimResult:
    """Have a model tell every claim. An answer that cannot be used scores nothing. Raises Unavailable, ModelRefused."""
    found = []
    for at, case in enumerate(data.cases, 1):
        memory = _memory(case.id, Side(case.text, date(2026, 5, 20), case.kind))
        try:
            answer = ask(model, claim_prompt(memory, case.known, schema_of(ClaimAnswer)), ClaimAnswer)
            claim, score = claim_of(answer), None
        except AnswerUnusable:
            claim, score = None, 0.0
        gold = case.gold
        wanted = f"{gold.entity}/{gold.attribute} {gold.predicate} {gold.object}" if gold else "nothing"
        came = f"{claim.key} {claim.predicate} {claim.object} ({claim.confidence:.2f})" if claim else "nothing"
        found.append(CaseResult(case.id, claim_score(case, claim) if score is None else score, wanted, came))
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


def measure_judge(data: PairData, model: LanguageModel | None, notify: Notify = lambda _: None) -> JudgeResult:
    """Judge every pair, by the rules and by a model where one is given. Raises Unavailable, ModelRefused."""
    rules = [_by_rules(case) for case in data.cases]
    told = [Bearing.UNRELATED if one is Relation.UNRELATED else _BEARINGS.get(one, Bearing.COEXISTS) for one in rules]
    by_rules = _judges("rules", data.cases, told, [_OUTCOMES.get(one, Outcome.COEXIST) for one in rules])
    if model is None:
        cases = [
            CaseResult(case.id, float(case.relation is one), case.relation.value, one.value)
            for case, one in zip(data.cases, told, strict=True)
        ]
        return JudgeResult(len(data.cases), (by_rules,), tuple(cases))
    found: list[CaseResult] = []
    judged: list[Judgement] = []
    for at, case in enumerate(data.cases, 1):
        one = _by_model(case, model)
        score = 0.8 * (one.bearing is case.relation) + 0.2 * (
            case.confidence[0] <= one.confidence <= case.confidence[1]
        )
        came = f"{one.bearing.value} ({one.confidence:.2f}): {one.explanation}"
        judged.append(one)
        found.append(CaseResult(case.id, round(score, 4), case.relation.value, came))
        notify(Progress("asking", at, len(data.cases)))
    outcomes = [resolve(*_sides(case), one) for case, one in zip(data.cases, judged, strict=True)]
    by_model = _judges(model.name, data.cases, [one.bearing for one in judged], outcomes, _mean(found), _passed(found))
    return JudgeResult(len(data.cases), (by_model, by_rules), tuple(found))


def _by_rules(case: PairCase) -> Relation:
    earlier, later = _sides(case)
    relation = judge_by_rules(earlier, later, None, calibration_of(None)).relation
    is_only_agents = later.speaker is not Speaker.OWNER and earlier.speaker is Speaker.OWNER
    return Relation.DOUBTS if is_only_agents and relation is Relation.SUPERSEDES else relation


def _by_model(case: PairCase, model: LanguageModel) -> Judgement:
    earlier, later = _sides(case)
    prompt = judge_prompt(later, [earlier], schema_of(JudgeAnswer))
    try:
        return judgements(ask(model, prompt, JudgeAnswer), 1)[0]
    except AnswerUnusable:
        return Judgement(Bearing.UNRELATED, -1.0, "no answer of use")


def _judges(
    name: str, cases: Sequence[PairCase], told: Sequence[Bearing], outcomes: Sequence[Outcome],
    score: float | None = None, passed: int | None = None,
) -> Judges:  # fmt: skip
    wanted = [resolve(*_sides(case), Judgement(case.relation, 1.0)) for case in cases]
    ended = sum(
        one is Outcome.SUPERSEDED and case.relation is not Bearing.SUPERSEDES
        for one, case in zip(outcomes, cases, strict=True)
    )
    right = sum(one is case.relation for one, case in zip(told, cases, strict=True))
    same = sum(one is other for one, other in zip(outcomes, wanted, strict=True))
    return Judges(name, right, same, ended, score, passed)


def _sides(case: PairCase) -> tuple[Memory, Memory]:
    return _memory(f"{case.id}-earlier", case.earlier), _memory(f"{case.id}-later", case.later)


def _memory(memory_id: str, side: Side) -> Memory:
    at = datetime(side.date.year, side.date.month, side.date.day, _NOON, tzinfo=UTC)
    return Memory(
        id=memory_id, kind=side.kind, subject=title_of(side.text), content=side.text, created=at, updated=at,
        importance=side.importance, speaker=side.speaker,
    )  # fmt: skip


def _mean(found: Sequence[CaseResult]) -> float:
    return round(sum(one.score for one in found) / max(1, len(found)), 4)


def _passed(found: Sequence[CaseResult]) -> int:
    return sum(one.score >= PASS for one in found)
