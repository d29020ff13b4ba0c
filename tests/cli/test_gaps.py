"""``nacre review gaps``: what was asked, was not answered, and becomes known."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Nacre

PORT = "which port does the staging database listen on?"
PORT_IN_SHORT = "staging database port"
COFFEE = "who repairs the espresso machine?"


def asked(nacre: Nacre, *questions: str, options: tuple[str, ...] = ()) -> None:
    for question in questions:
        nacre("recall", question, *options)


def gaps(nacre: Nacre, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = nacre("review", "gaps", *options, "--json").json["gaps"]
    return found


@pytest.fixture
def known(nacre: Nacre) -> None:
    nacre("store", "The honey is sold on Saturdays at the mill.", "--project", "hive")


@pytest.mark.usefixtures("known")
def test_equivalent_questions_form_a_single_gap_ordered_by_frequency(
    nacre: Nacre,
) -> None:
    asked(nacre, COFFEE, PORT, PORT_IN_SHORT, PORT_IN_SHORT)
    first, second = gaps(nacre)
    assert (first["question"], first["times"], first["wordings"]) == (PORT_IN_SHORT, 3, [PORT])
    assert (second["question"], second["times"], second["wordings"]) == (COFFEE, 1, [])
    shown = nacre("review", "gaps").out
    assert "asked 3 times" in shown
    assert f"also: {PORT}" in shown
    assert first["id"] in shown
    assert [one["question"] for one in gaps(nacre, "--min-times", "2")] == [PORT_IN_SHORT]
    assert nacre("review", "gaps", "--limit", "1", "--json").json["total"] == 2


@pytest.mark.usefixtures("known")
def test_answered_and_unrelated_questions_are_not_gaps(nacre: Nacre) -> None:
    asked(nacre, "when is the honey sold?")
    asked(nacre, PORT, options=("--no-update",))
    asked(nacre, COFFEE, options=("--kind", "todo"))
    nacre("context", COFFEE)
    nacre("search", PORT)
    assert gaps(nacre) == []
    assert "No unanswered questions in the last 30 days.\n" in nacre("review", "gaps").out
    assert "30 days match.\n" in nacre("review", "gaps", "--min-times", "2").out


@pytest.mark.usefixtures("known")
def test_gap_closes_when_its_answer_is_stored(nacre: Nacre) -> None:
    asked(nacre, PORT, PORT_IN_SHORT, COFFEE)
    nacre("store", "The staging database listens on port 6543.")
    shown = nacre("review", "gaps", "--json").json
    assert ([one["question"] for one in shown["gaps"]], shown["closed"]) == ([COFFEE], 1)
    assert "1 answered since" in nacre("review", "gaps").out


@pytest.mark.usefixtures("known")
def test_gaps_are_listed_by_project(nacre: Nacre) -> None:
    nacre("store", "The mill wheel turns left.", "--project", "mill")
    asked(nacre, PORT, options=("--project", "hive"))
    asked(nacre, COFFEE, options=("--project", "mill"))
    assert {one["question"]: one["projects"] for one in gaps(nacre)} == {
        PORT: ["hive"],
        COFFEE: ["mill"],
    }
    assert [one["question"] for one in gaps(nacre, "--project", "mill")] == [COFFEE]


@pytest.mark.usefixtures("known")
def test_gap_becomes_a_project_todo_and_reopens_when_done(
    nacre: Nacre,
) -> None:
    asked(nacre, PORT, options=("--project", "hive"))
    (gap,) = gaps(nacre)
    stored = nacre("review", "gaps", "--todo", gap["id"], "--json").json["memory_id"]
    made = nacre("show", stored, "--json").json["memory"]
    assert (made["content"], made["kind"], made["project"]) == (
        f"Write down: {PORT}",
        "todo",
        "hive",
    )
    assert (made["speaker"], made["importance"]) == ("owner", 6)
    assert gaps(nacre) == []
    nacre("todo", "done", made["id"])
    assert [one["question"] for one in gaps(nacre)] == [PORT]


@pytest.mark.usefixtures("known")
def test_dismissed_gap_stays_dismissed_when_reworded(nacre: Nacre) -> None:
    asked(nacre, PORT, COFFEE)
    port = next(one for one in gaps(nacre) if one["question"] == PORT)
    assert f"Dismissed: {PORT}" in nacre("review", "gaps", "--dismiss", port["id"]).out
    asked(nacre, PORT_IN_SHORT, PORT)
    assert [one["question"] for one in gaps(nacre)] == [COFFEE]


@pytest.mark.usefixtures("known")
def test_unknown_gap_id_is_refused(nacre: Nacre) -> None:
    asked(nacre, PORT)
    nacre("review", "gaps", "--todo", "1", "--dismiss", "2", code=2)
    for command in ("--todo", "--dismiss"):
        assert (
            "nacre review gaps lists" in nacre("review", "gaps", command, "ffffffff", code=None).err
        )


@pytest.mark.usefixtures("known")
def test_gaps_contain_no_secrets_or_forgotten_questions(nacre: Nacre) -> None:
    asked(nacre, "what is AKIAIOSFODNN7EXAMPLA for?", COFFEE, PORT)
    shown = [one["question"] for one in gaps(nacre)]
    assert not any("AKIAIOSFODNN7EXAMPLA" in one for one in shown)
    nacre("forget", "--match", "espresso", "--yes")
    assert COFFEE not in [one["question"] for one in gaps(nacre)]


@pytest.mark.usefixtures("known")
def test_gaps_are_grouped_by_words_without_vectors(
    nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_EMBEDDING_MODEL", "none")
    asked(nacre, PORT, PORT_IN_SHORT, COFFEE)
    found = nacre("review", "gaps", "--json").json
    assert found["by"] == "words"
    assert [one["times"] for one in found["gaps"]] == [2, 1]


@pytest.mark.usefixtures("known")
def test_disabled_question_traces_are_reported(nacre: Nacre) -> None:
    nacre("config", "set", "traces.keep_days", "0")
    asked(nacre, PORT)
    assert "traces.keep_days is 0" in nacre("review", "gaps").out
