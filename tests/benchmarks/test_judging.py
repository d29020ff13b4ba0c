"""The benchmarks of claims and judgements: gold scores 1, and what is wrong scores what it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.contradictions.judging import (
    ClaimCase,
    ClaimData,
    PairData,
    claim_score,
    measure_claims,
    measure_judge,
)
from benchmarks.dataset import load_cases
from nacre.errors import ModelUnavailableError, NotFoundError, UnusableAnswerError
from nacre.memories.compare import Bearing
from nacre.values.memory import Claim
from tests.fakes.model import ScriptedModel

CLAIMS = load_cases(None, "claims", ClaimData)
PAIRS = load_cases(None, "judge", PairData)
NOTHING = {"entity": "", "attribute": "", "predicate": "", "object": "", "confidence": 0.0}


def gold_claim(case: ClaimCase) -> dict[str, Any]:
    gold = case.gold
    if gold is None:
        return NOTHING
    return {
        "entity": gold.entity,
        "attribute": gold.attribute,
        "predicate": gold.predicate,
        "object": gold.object,
        "confidence": 0.9,
    }


def verdict(relation: str, confidence: float) -> dict[str, Any]:
    return {
        "verdicts": [
            {"number": 1, "relation": relation, "confidence": confidence, "explanation": "so it is"}
        ]
    }


def test_enough_cases_of_each_kind_exist() -> None:
    assert len(CLAIMS.cases) >= 12
    assert len(PAIRS.cases) >= 20
    assert {case.relation for case in PAIRS.cases} == set(Bearing)
    assert len({case.id for case in (*CLAIMS.cases, *PAIRS.cases)}) == len(CLAIMS.cases) + len(
        PAIRS.cases
    )


def test_model_that_returns_gold_claims_scores_one() -> None:
    result = measure_claims(CLAIMS, ScriptedModel([gold_claim(case) for case in CLAIMS.cases]))
    assert (result.score, result.passed) == (1.0, len(CLAIMS.cases))


def test_judge_equal_to_gold_scores_one_without_wrong_endings() -> None:
    answers = [verdict(case.relation.value, max(0.9, case.confidence[0])) for case in PAIRS.cases]
    result = measure_judge(PAIRS, ScriptedModel(answers))
    by_model, rules = result.judges
    assert (by_model.score, by_model.passed, by_model.wrongly_ended) == (1.0, len(PAIRS.cases), 0)
    assert by_model.relations == by_model.outcomes == len(PAIRS.cases)
    assert rules.name == "rules"
    assert rules.wrongly_ended == 0
    assert rules.outcomes >= len(PAIRS.cases) / 2


def test_judge_that_always_supersedes_is_charged_with_wrong_endings() -> None:
    result = measure_judge(PAIRS, ScriptedModel([verdict("supersedes", 0.99)], repeats=True))
    assert result.judges[0].wrongly_ended >= 8
    ended = [
        case
        for case in result.cases
        if case.judged[0].problem == "the earlier one is ended, although it still holds"
    ]
    assert len(ended) >= 4
    assert all(case.expected.value == "coexist" for case in ended)


def test_each_pair_reports_verdicts_of_model_and_rules() -> None:
    wanted = {case.id: case for case in PAIRS.cases}
    answers = [verdict(case.relation.value, max(0.9, case.confidence[0])) for case in PAIRS.cases]
    result = measure_judge(PAIRS, ScriptedModel(answers))
    for case in result.cases:
        by_model, by_rules = case.judged
        assert (by_model.relation, by_model.outcome, by_model.problem) == (
            wanted[case.id].relation,
            case.expected,
            None,
        )
        assert (by_rules.judge, by_rules.confidence, by_rules.score) == ("rules", None, None)
        assert (by_rules.problem is None) == (by_rules.outcome is case.expected)


def test_wrong_confidence_and_equivalent_relation_are_reported() -> None:
    case = next(
        case
        for case in PAIRS.cases
        if case.relation is Bearing.COEXISTS and case.confidence[0] > 0.1
    )
    one = PairData((case,))
    unsure = measure_judge(one, ScriptedModel([verdict("coexists", 0.05)])).cases[0].judged[0]
    assert (unsure.score, unsure.problem) == (
        0.8,
        f"the confidence should be {case.confidence[0]:g} to {case.confidence[1]:g}",
    )
    other = (
        measure_judge(one, ScriptedModel([verdict("unrelated", case.confidence[1])]))
        .cases[0]
        .judged[0]
    )
    assert other.problem == "the relation is coexists; the outcome is the same"


@pytest.mark.parametrize(
    ("claim", "score"),
    [
        (Claim("gateway", "request_timeout", "is", "45 seconds", 0.9), 1.0),
        (Claim("gateway", "timeout", "is", "after 45 seconds", 0.9), 1.0),
        (Claim("door", "request_timeout", "is", "45 seconds", 0.9), 0.75),
        (Claim("gateway", "colour", "is", "45 seconds", 0.9), 0.75),
        (Claim("gateway", "request_timeout", "eats", "45 seconds", 0.9), 0.85),
        (Claim("gateway", "request_timeout", "is", "blue", 0.9), 0.75),
        (Claim("gateway", "request_timeout", "is", "45 seconds", 0.1), 0.9),
        (None, 0.0),
    ],
)
def test_each_part_of_a_claim_has_its_weight(claim: Claim | None, score: float) -> None:
    case = next(case for case in CLAIMS.cases if case.gold and case.gold.entity == "gateway")
    assert claim_score(case, claim) == pytest.approx(score)


def test_missing_claim_scores_one_and_invented_claim_zero() -> None:
    case = next(case for case in CLAIMS.cases if case.gold is None)
    assert claim_score(case, None) == 1.0
    assert claim_score(case, Claim("soup", "day", "is", "yesterday")) == 0.0


def test_unusable_answer_scores_zero_and_silent_model_ends_run() -> None:
    result = measure_claims(CLAIMS, ScriptedModel([UnusableAnswerError("nonsense")], repeats=True))
    assert result.score == 0.0
    with pytest.raises(ModelUnavailableError):
        measure_judge(PAIRS, ScriptedModel([ModelUnavailableError("away")]))


def test_only_rules_are_measured_without_a_model() -> None:
    (rules,) = measure_judge(PAIRS, None).judges
    assert (rules.name, rules.score) == ("rules", None)


def test_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        load_cases(tmp_path / "none.json", "claims", ClaimData)
