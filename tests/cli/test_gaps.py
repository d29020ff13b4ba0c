"""Unanswered questions in ``nacre review gaps``, and their answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Nacre

PORT = "which port does the staging database listen on?"
PORT_IN_SHORT = "staging database port"
COFFEE = "who repairs the espresso machine?"


def ask(nacre: Nacre, *questions: str, options: tuple[str, ...] = ()) -> None:
    for question in questions:
        nacre("recall", question, *options)


def gaps(nacre: Nacre, *options: str) -> list[dict[str, Any]]:
    listed_gaps: list[dict[str, Any]] = nacre("review", "gaps", *options, "--json").json["gaps"]
    return listed_gaps


@pytest.fixture
def answering_memory(nacre: Nacre) -> None:
    nacre("store", "The honey is sold on Saturdays at the mill.", "--project", "hive")


@pytest.mark.usefixtures("answering_memory")
def test_equivalent_questions_form_a_single_gap_ordered_by_frequency(
    nacre: Nacre,
) -> None:
    ask(nacre, COFFEE, PORT, PORT_IN_SHORT, PORT_IN_SHORT)
    first, second = gaps(nacre)
    assert (first["question"], first["times"], first["wordings"]) == (PORT_IN_SHORT, 3, [PORT])
    assert (second["question"], second["times"], second["wordings"]) == (COFFEE, 1, [])
    output = nacre("review", "gaps").out
    assert "asked 3 times" in output
    assert f"also: {PORT}" in output
    assert first["id"] in output
    assert [gap["question"] for gap in gaps(nacre, "--min-times", "2")] == [PORT_IN_SHORT]
    assert nacre("review", "gaps", "--limit", "1", "--json").json["total"] == 2


@pytest.mark.usefixtures("answering_memory")
def test_answered_and_unrelated_questions_are_not_gaps(nacre: Nacre) -> None:
    ask(nacre, "when is the honey sold?")
    ask(nacre, PORT, options=("--no-update",))
    ask(nacre, COFFEE, options=("--kind", "todo"))
    nacre("context", COFFEE)
    nacre("search", PORT)
    assert gaps(nacre) == []
    assert "No unanswered questions in the last 30 days.\n" in nacre("review", "gaps").out
    assert "30 days match.\n" in nacre("review", "gaps", "--min-times", "2").out


@pytest.mark.usefixtures("answering_memory")
def test_gap_closes_when_its_answer_is_stored(nacre: Nacre) -> None:
    ask(nacre, PORT, PORT_IN_SHORT, COFFEE)
    nacre("store", "The staging database listens on port 6543.")
    answer = nacre("review", "gaps", "--json").json
    assert ([gap["question"] for gap in answer["gaps"]], answer["closed"]) == ([COFFEE], 1)
    assert "1 answered since" in nacre("review", "gaps").out


@pytest.mark.usefixtures("answering_memory")
def test_gaps_are_listed_by_project(nacre: Nacre) -> None:
    nacre("store", "The mill wheel turns left.", "--project", "mill")
    ask(nacre, PORT, options=("--project", "hive"))
    ask(nacre, COFFEE, options=("--project", "mill"))
    assert {gap["question"]: gap["projects"] for gap in gaps(nacre)} == {
        PORT: ["hive"],
        COFFEE: ["mill"],
    }
    assert [gap["question"] for gap in gaps(nacre, "--project", "mill")] == [COFFEE]


@pytest.mark.usefixtures("answering_memory")
def test_gaps_contain_no_secrets_or_forgotten_questions(nacre: Nacre) -> None:
    ask(nacre, "what is AKIAIOSFODNN7EXAMPLA for?", COFFEE, PORT)
    questions = [gap["question"] for gap in gaps(nacre)]
    assert not any("AKIAIOSFODNN7EXAMPLA" in item for item in questions)
    nacre("forget", "--match", "espresso", "--yes")
    assert COFFEE not in [gap["question"] for gap in gaps(nacre)]


@pytest.mark.usefixtures("answering_memory")
def test_gaps_are_grouped_by_words_without_vectors(
    nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_EMBEDDING_MODEL", "none")
    ask(nacre, PORT, PORT_IN_SHORT, COFFEE)
    answer = nacre("review", "gaps", "--json").json
    assert answer["by"] == "words"
    assert [gap["times"] for gap in answer["gaps"]] == [2, 1]


@pytest.mark.usefixtures("answering_memory")
def test_disabled_question_traces_are_reported(nacre: Nacre) -> None:
    nacre("config", "set", "traces.keep_days", "0")
    ask(nacre, PORT)
    assert "traces.keep_days is 0" in nacre("review", "gaps").out
