"""Scores match values computed by hand."""

from __future__ import annotations

import pytest

from benchmarks.figures import percentile
from benchmarks.retrieval.scoring import Scored, mean, paired_gain, score_list, sessions_of


def test_a_ranked_list_is_scored_by_every_measure() -> None:
    ranked = ["x", "a", "y", "z", "w", "b", *"0123", "c"]
    scores = score_list(ranked, frozenset({"a", "b", "c", "missing"}))
    assert scores == {
        "recall@5": 0.25,
        "recall@10": 0.5,
        "recall@20": 0.75,
        "all@10": 0.0,
        "hit@1": 0.0,
        "hit@5": 1.0,
        "mrr": 0.5,
    }


def test_full_evidence_scores_1_and_empty_results_0() -> None:
    score = score_list(["a", "b"], frozenset({"a", "b"}))
    assert score
    assert (score["all@10"], score["hit@1"], score["mrr"]) == (1.0, 1.0, 1.0)
    empty = score_list([], frozenset({"a"}))
    assert empty
    assert set(empty.values()) == {0.0}


def test_a_question_without_known_answers_has_no_scores() -> None:
    assert score_list(["a"], frozenset()) is None
    assert mean([None]) is None


def test_sessions_rank_by_their_best_turn() -> None:
    session_of = {"a1": "a", "a2": "a", "b1": "b"}
    assert sessions_of(["b1", "a2", "a1", "elsewhere"], session_of) == ["b", "a"]


def test_means_are_percentages_over_scored_questions() -> None:
    scores = [score_list(["a"], frozenset({"a"})), None, score_list(["x", "a"], frozenset({"a"}))]
    averaged = mean(scores)
    assert averaged
    assert averaged["hit@1"] == 50.0
    assert averaged["mrr"] == 75.0


def test_percentiles_are_observed_values() -> None:
    assert percentile([3.0, 1.0, 2.0, 4.0], 0.5) == 3.0
    assert percentile([1.0], 0.95) == 1.0
    assert percentile([], 0.5) == 0.0


def test_gain_is_paired_and_repeatable() -> None:
    def score_of(hits: str) -> list[Scored]:
        return [Scored("c", {"hit@1": float(hit)}, None, 0.0) for hit in hits]

    gain = paired_gain(
        score_of("1101111111"), score_of("0100111101"), lambda score: score.turns, "hit@1"
    )
    assert gain == paired_gain(
        score_of("1101111111"), score_of("0100111101"), lambda score: score.turns, "hit@1"
    )
    assert gain
    assert gain.points == pytest.approx(30.0)
    assert 0.0 <= gain.low < gain.points < gain.high <= 60.0
    assert paired_gain(score_of("1"), score_of("0"), lambda score: score.sessions, "hit@1") is None
