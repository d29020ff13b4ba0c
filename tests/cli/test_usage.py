"""Records of use by ``feedback`` and ``review``, and their display by other commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Nacre

REPLY = "I looked it up: the falcon lands on the north tower, so the camera has to point there, not at the gate."


@pytest.fixture
def falcon(nacre: Nacre) -> str:
    memory_id: str = nacre(
        "store", "The falcon lands on the north tower.", "--kind", "lesson", "--json"
    ).json["memory_id"]
    return memory_id


@pytest.fixture
def kettle(nacre: Nacre) -> str:
    memory_id: str = nacre("store", "The kettle in the kitchen is called heron.", "--json").json[
        "memory_id"
    ]
    return memory_id


def test_a_reply_in_a_file_or_a_pipe_is_judged(
    nacre: Nacre, falcon: str, kettle: str, tmp_path: Path
) -> None:
    file = tmp_path / "reply.md"
    file.write_text(REPLY, encoding="utf-8")
    answer = nacre("review", "feedback", falcon, "--reply", str(file), "--json").json
    assert answer["by"] == "words"
    assert answer["note"] is None
    assert [
        (item["memory_id"], item["verdict"], item["before"], round(item["after"], 4))
        for item in answer["judged"]
    ] == [(falcon, "used", 0.5, 0.6)]
    output = nacre("review", "feedback", kettle[-8:], "--reply", "-", stdin=REPLY).out
    assert output.split()[:2] == ["unused", kettle[-8:]]
    assert "quality 0.50 → 0.48" in output


def test_session_is_judged_by_its_id(nacre: Nacre, falcon: str, kettle: str) -> None:
    nacre("recall", "where does the falcon land?", "--session", "s-1")
    nacre("show", kettle, "--session", "s-1")
    nacre("show", falcon, "--session", "s-2", "--no-update")
    judged = nacre("review", "feedback", "--session", "s-1", "--json", stdin=REPLY).json["judged"]
    assert {item["memory_id"]: item["verdict"] for item in judged} == {
        falcon: "used",
        kettle: "unused",
    }
    for session in ("s-1", "s-2"):
        again = nacre("review", "feedback", "--session", session, "--json", stdin=REPLY).json
        assert again["judged"] == []
        assert "no memory was used" in again["note"]


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        ((), 2, "no memories were given to judge"),
        (("nope-nope",), 3, "there is no memory"),
        (("--good",), 2, "require memories"),
        (("x", "--good", "--session", "s"), 2, "no other options"),
        (("x", "--reply", "/no/such/file"), 2, "does not exist"),
    ],
)
def test_feedback_names_missing_arguments(
    nacre: Nacre, arguments: tuple[str, ...], code: int, complaint: str
) -> None:
    assert (
        complaint
        in nacre("review", "feedback", *arguments, "--json", code=code, stdin=REPLY).error[
            "message"
        ]
    )


def test_terminal_feedback_does_not_wait_for_a_reply(
    nacre: Nacre, terminal: Nacre, falcon: str
) -> None:
    outcome = terminal("review", "feedback", falcon)
    assert outcome.code == 2
    assert "--good or --bad" in outcome.out


def test_bad_memory_waits_for_review_and_is_kept_or_retired(
    nacre: Nacre, falcon: str, kettle: str
) -> None:
    assert nacre("review").out == "Nothing is pending.\n"
    assert "bad" in nacre("review", "feedback", falcon, kettle, "--bad").out
    waiting = nacre("review", "--only", "doubt", "--json").json["items"]
    assert waiting == nacre("review", "--only", "doubt", "--json").json["items"]
    assert [(item["id"], item["why"]) for item in waiting] == [
        (falcon, "manual"),
        (kettle, "manual"),
    ]
    assert "you called it bad" in nacre("review").out
    assert [item["id"] for item in nacre("review", "keep", falcon, "--json").json["kept"]] == [
        falcon
    ]
    retired = nacre("review", "drop", kettle[-8:], "--json").json["dropped"]
    assert [item["id"] for item in retired] == [kettle]
    assert (
        nacre("show", kettle, "--json").json["memory"]["retired"]["reason"]
        == "review: you called it bad"
    )
    assert nacre("review", "--only", "doubt", "--json").json["items"] == []
    assert (
        "has no pending review"
        in nacre("review", "keep", falcon, "--json", code=3).error["message"]
    )


def test_review_asks_in_a_terminal_before_retiring(
    nacre: Nacre, terminal: Nacre, falcon: str
) -> None:
    nacre("review", "feedback", falcon, "--bad")
    assert "Retire?" in terminal("review", "drop", falcon, typed="n\n").out
    assert nacre("show", falcon, "--json").json["memory"]["retired"] is None
    assert "Dropped" in terminal("review", "drop", falcon, "--yes").out


def test_show_includes_maturity_quality_and_associated_memories(
    nacre: Nacre, falcon: str, kettle: str
) -> None:
    for number in range(3):
        nacre("recall", "where does the falcon land?", "--session", str(number))
        nacre("show", kettle, "--session", str(number))
    nacre("review", "feedback", falcon, "--good")
    answer = nacre("show", falcon, "--no-update", "--json").json
    assert (
        answer["usage"]["recall_count"],
        answer["usage"]["access_count"],
        answer["maturity"],
    ) == (
        3,
        3,
        "candidate",
    )
    assert answer["usage"]["quality"] == 0.75
    assert [
        (item["memory"]["id"], round(item["weight"], 4), item["sessions"])
        for item in answer["together"]
    ] == [(kettle, 0.3, 3)]
    output = nacre("show", falcon).out
    assert "candidate (3 uses)" in output
    assert "kettle" not in output


def test_explain_shows_the_co_recall_bonus(nacre: Nacre, falcon: str, kettle: str) -> None:
    for number in range(3):
        nacre("show", falcon, "--session", str(number))
        nacre("show", kettle, "--session", str(number))
    nacre("review", "feedback", falcon, "--good")
    output = nacre("recall", "where does the falcon land?", "--explain").out
    assert output.index("falcon") < output.index("kettle")
    assert "co_recall" in output[output.index("kettle") :]


@pytest.mark.embedding
def test_bundled_model_distinguishes_use_mention_and_correction(
    nacre: Nacre, falcon: str, kettle: str
) -> None:
    reply = "Point the camera at the northern tower; that is where the bird comes down in the evening, as you told me."
    anew = nacre(
        "store", "The heron is the name of the coffee machine, not of the kettle.", "--json"
    ).json["memory_id"]
    answer = nacre(
        "review", "feedback", falcon, kettle, "--stored", anew, "--json", stdin=reply
    ).json
    assert answer["by"] == "cosine"
    assert [item["verdict"] for item in answer["judged"]] == ["used", "corrected"]
    other = "All tests pass now, so I will open the pull request for the new search page."
    again = nacre("review", "feedback", falcon, kettle, "--json", stdin=other).json
    assert [item["verdict"] for item in again["judged"]] == ["unused", "unused"]


def test_memories_used_in_one_session_are_listed_together(
    nacre: Nacre, falcon: str, kettle: str
) -> None:
    for memory in (falcon, kettle):
        nacre("show", memory, "--session", "s-1")
    nacre("store", "The clock is slow")  # which includes the recorded uses
    (companion,) = nacre("show", kettle[-8:], "--json").json["together"]
    assert companion["memory"]["id"] == falcon
