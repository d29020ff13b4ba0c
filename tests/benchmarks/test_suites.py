"""Published benchmark suites are read, including their faults."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.retrieval.suites import load_suite, parse_date, parse_evidence
from nacre.errors import NotFoundError


def test_malformed_evidence_is_parsed_partially() -> None:
    assert parse_evidence(["D8:6; D9:17"]) == ["D8:6", "D9:17"]
    assert parse_evidence(["D:11:26", "D20:21"]) == ["D11:26", "D20:21"]
    assert parse_evidence(["D30:05", "D", "", None]) == ["D30:5"]


def test_locomo_conversation_has_people_times_and_photos(data: Path) -> None:
    (haystack,) = load_suite("locomo", data).haystacks
    first, second, third = haystack.sessions
    assert [turn.author for turn in first.turns] == ["Ada", "Bo", "Ada", "Bo"]
    assert [turn.role for turn in first.turns[:2]] == ["user", "assistant"]
    assert (
        first.turns[2].text == "Lovely! I started pottery lessons. [shares a photo: a green vase]"
    )
    assert second.turns[0].time == datetime(2023, 6, 1, 9, tzinfo=UTC)
    assert third.turns == ()
    assert haystack.asked == datetime(2023, 6, 1, 9, tzinfo=UTC)


def test_locomo_evidence_without_a_turn_is_skipped(data: Path) -> None:
    (haystack,) = load_suite("locomo", data).haystacks
    name = "locomo/conv-1"
    assert [question.turns for question in haystack.questions] == [
        {f"{name}/D1:2"},
        {f"{name}/D1:3", f"{name}/D2:1"},
        {f"{name}/D2:3"},
        set(),
        {f"{name}/D2:2"},
    ]
    assert haystack.questions[1].sessions == {f"{name}/D1", f"{name}/D2"}
    assert [question.category for question in haystack.questions][-1] == "5 adversarial"


def test_longmemeval_is_read_with_single_or_multiple_questions(data: Path) -> None:
    single, several = load_suite("longmemeval", data).haystacks
    (question,) = single.questions
    assert question.text == "Which bike did I buy?"
    assert question.sessions == {"longmemeval/s1"}
    assert question.turns == {"longmemeval/s1:0"}
    assert question.asked == datetime(2023, 12, 18, 4, 17, tzinfo=UTC)
    assert [item.sessions for item in several.questions] == [
        {"longmemeval/s3"},
        {"longmemeval/s4"},
    ]
    assert [item.turns for item in several.questions] == [set(), set()]


def test_devmembench_sessions_know_their_project(data: Path) -> None:
    (haystack,) = load_suite("devmembench", data).haystacks
    assert [session.project for session in haystack.sessions] == ["shop-api", "dashboard"]
    assert haystack.questions[1].sessions == {"devmembench/S01"}


def test_pile_combines_all_suites_in_one_home(data: Path) -> None:
    (pile,) = load_suite("pile", data).haystacks
    assert len(pile.sessions) == 3 + 4 + 2
    assert len(pile.questions) == 5 + 3 + 2
    turns = [turn.id for session in pile.sessions for turn in session.turns]
    assert len(set(turns)) == len(turns)
    assert {question.category for question in pile.questions} == {
        "locomo",
        "longmemeval",
        "devmembench",
        "5 adversarial",
    }
    assert all(question.asked for question in pile.questions)


def test_missing_suite_is_named(tmp_path: Path) -> None:
    for name in ("locomo", "longmemeval", "devmembench", "pile"):
        with pytest.raises(NotFoundError, match="data in"):
            load_suite(name, tmp_path)


def test_date_in_unknown_format_is_none() -> None:
    assert parse_date(None) is None
    assert parse_date("some day") is None
