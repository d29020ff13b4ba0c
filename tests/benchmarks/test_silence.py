"""``python -m benchmarks silence``, and what the figures rest on: recall shows nothing for what no session holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import benchmarks
from benchmarks.retrieval.suites import load_suite


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(benchmarks, ["silence", *arguments])
    assert result.exit_code == code, result.output
    return result.stdout


def figures(cache: Path, suite: str, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        run("--suite", suite, "--cache", str(cache), "--no-vectors", "--json", *more)
    )
    return found


def test_absent_and_present_questions_are_both_asked(data: Path, tmp_path: Path) -> None:
    absent = tmp_path / "never.json"
    absent.write_text(
        json.dumps(
            [
                {"question": "Which submarine did Ada rent?", "conversation": "conv-1"},
                {"question": "Which yacht did Zoe sink?", "conversation": "conv-2"},
                "Who painted the zeppelin?",
            ]
        ),
        encoding="utf-8",
    )
    result = figures(tmp_path / "cache", "locomo", "--data", str(data), "--absent", str(absent))
    assert result["silent"] == [{"kind": "never", "asked": 2, "silent": 100.0}]
    assert result["questions"] == 3
    assert 0 < result["answered"] <= result["found"]
    silent = [trade["silent"] for trade in result["curve"]]
    lost = [trade["lost"] for trade in result["curve"]]
    assert silent == sorted(silent)
    assert lost == sorted(lost)


def test_homes_are_asked_questions_of_another_home(data: Path, tmp_path: Path) -> None:
    result = figures(tmp_path / "cache", "longmemeval", "--data", str(data))
    assert [silent["kind"] for silent in result["silent"]] == ["another home's"]


@pytest.mark.parametrize("content", ["no json", "{}", '[{"text": "x"}]'])
def test_malformed_question_list_is_refused(data: Path, tmp_path: Path, content: str) -> None:
    absent = tmp_path / "never.json"
    absent.write_text(content, encoding="utf-8")
    result = CliRunner().invoke(
        benchmarks, ["silence", "--suite", "locomo", "--data", str(data), "--absent", str(absent)]
    )
    assert result.exit_code == 3
    assert "is not a list of questions" in result.output


def test_text_output_contains_figures(tmp_path: Path) -> None:
    told = run("--suite", "coding", "--cache", str(tmp_path / "cache"), "--no-vectors")
    assert "Nothing shown for questions without an answer" in told
    assert "Other borders of confidence" in told


def test_lexical_recall_stays_silent_on_absent_coding_questions(tmp_path: Path) -> None:
    result = figures(tmp_path / "cache", "coding")
    assert result["silent"][0]["silent"] >= 90
    assert result["answered"] >= 75


@pytest.mark.embedding
def test_vectors_answer_real_questions_and_stay_silent_on_absent(
    tmp_path: Path,
) -> None:
    arguments = ("--suite", "coding", "--cache", str(tmp_path / "cache"), "--json")
    result = json.loads(run(*arguments))
    assert result["silent"][0]["silent"] >= 90
    assert result["answered"] >= 90


def test_answers_of_the_coding_suite_are_its_turns(tmp_path: Path) -> None:
    (haystack,) = load_suite("coding", tmp_path).haystacks
    turns = {turn.id for session in haystack.sessions for turn in session.turns}
    assert len(haystack.questions) >= 60
    assert all(question.turns <= turns for question in haystack.questions)
