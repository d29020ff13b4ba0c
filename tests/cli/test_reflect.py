"""``nacre review reflect`` as people and agents see them."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Nacre

READS = "The scale is read by tools/read_scale.py every ten minutes."
WANTS = "Since the move tools/read_scale.py wants the serial port as an argument."


@pytest.fixture
def scale(nacre: Nacre) -> tuple[str, str]:
    first, second = (
        nacre("store", one, "--project", "hive", "--json").json["memory_id"]
        for one in (READS, WANTS)
    )
    return str(first), str(second)


def test_questions_are_listed_and_answered_by_id(nacre: Nacre, scale: tuple[str, str]) -> None:
    shown = nacre("review", "reflect").out
    assert f"1: {WANTS}" in shown
    assert f"2: {READS}" in shown
    assert "both name tools/read_scale.py" in shown
    (question,) = nacre("review", "reflect", "--json").json["questions"]
    question_id = f"{question['first']['id'][-8:]}+{question['second']['id'][-8:]}"
    assert question_id in shown
    done = nacre("review", "reflect", question_id, "--link", "depends_on").out
    assert done.startswith("Linked")
    (link,) = nacre("show", scale[1], "--json").json["links"]
    assert (link["rel"], link["other"], link["origin"]) == ("depends_on", scale[0], "reflect")
    assert "No questions" in nacre("review", "reflect").out


def test_reflection_sentence_is_stored(nacre: Nacre, scale: tuple[str, str]) -> None:
    said = "The port is an argument since there are two computers."
    answered = nacre("review", "reflect", "+".join(scale), said, "--json").json
    assert (answered["action"], answered["stored"]["content"]) == ("stored", said)


@pytest.mark.parametrize(
    ("typed", "rel", "leads"), [("d", "depends_on", (1, 0)), ("S", "specializes", (0, 1))]
)
def test_reflection_keys_draw_links_in_either_direction(
    nacre: Nacre,
    terminal: Nacre,
    scale: tuple[str, str],
    typed: str,
    rel: str,
    leads: tuple[int, int],
) -> None:
    assert "1 of 1" in terminal("review", "reflect", typed=f"{typed}\n").out
    links = nacre("show", scale[leads[0]], "--json").json["links"]
    assert [(link["rel"], link["other"], link["is_outgoing"]) for link in links] == [
        (rel, scale[leads[1]], True)
    ]


def test_reflection_question_can_be_postponed_or_dismissed_in_terminals(
    nacre: Nacre, terminal: Nacre, scale: tuple[str, str]
) -> None:
    terminal("review", "reflect", typed="\n")
    terminal("review", "reflect", typed="q\n")
    assert nacre("review", "reflect", "--json").json["total"] == 1
    assert "Skipped" in terminal("review", "reflect", typed="what\nn\n").out
    assert nacre("review", "reflect", "--json").json["total"] == 0


def test_contradiction_is_settled_and_sentence_stored_in_terminals(
    nacre: Nacre, terminal: Nacre
) -> None:
    nacre("store", "Uploads may be 10 MB", "--project", "acme")
    nacre("store", "Uploads have changed to 25 MB", "--project", "acme")
    assert "Which of these is true?" in nacre("review", "reflect").out
    terminal("review", "reflect", typed="It was raised for the videos.\n")
    assert nacre("list", "--json").json["total"] == 3
    assert "Settled" in terminal("review", "reflect", typed="n\n").out
    assert nacre("review", "--only", "conflict", "--json").json["items"] == []


def test_agent_sees_questions_and_cannot_answer(
    nacre: Nacre, scale: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    assert len(nacre("review", "reflect", "--json").json["questions"]) == 1
    refused = nacre("review", "reflect", "+".join(scale), "--skip", "--json", code=None)
    assert refused.error["code"] == "owner_only"
