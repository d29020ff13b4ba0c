"""Review of conflicts with ``nacre review``: both memories are shown, and decisions can be undone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre

OLD = "Uploads may be 10 MB"
NEW = "Uploads have changed to 25 MB"


@pytest.fixture
def doubted(nacre: Nacre) -> dict[str, Any]:
    """A home with a memory that a later one made doubtful; the pair as listed."""
    nacre("store", OLD, "--project", "acme")
    nacre("store", NEW, "--project", "acme")
    (pair,) = nacre("review", "--only", "conflict", "--json").json["items"]
    conflict: dict[str, Any] = pair
    return conflict


def active(nacre: Nacre) -> set[str]:
    return {memory["content"] for memory in nacre("list", "--json").json["memories"]}


def test_conflict_shows_both_texts_with_speaker_date_and_reason(
    nacre: Nacre, doubted: dict[str, Any]
) -> None:
    assert (doubted["memory"]["content"], doubted["newer"]["content"]) == (OLD, NEW)
    output = nacre("review").out
    assert output.index(OLD) < output.index("newer") < output.index(NEW)
    assert output.count("said by you") == 2
    assert "10 mb → 25 mb" in output.lower()
    assert f"{doubted['memory']['id'][-8:]}+{doubted['newer']['id'][-8:]}" in output


@pytest.mark.parametrize(
    ("choice", "remaining"), [("keep-new", {NEW}), ("keep-old", {OLD}), ("keep-both", {OLD, NEW})]
)
def test_conflict_decision_is_logged_and_can_be_undone(
    nacre: Nacre, doubted: dict[str, Any], choice: str, remaining: set[str]
) -> None:
    nacre("review", "resolve", doubted["id"], choice, "--reason", "measured it")
    assert active(nacre) == remaining
    assert nacre("review", "--only", "conflict", "--json").json["items"] == []
    assert nacre("review", "--json").json["total"] == 0
    (operation, *_) = nacre("log", "--json").json["operations"]
    assert (operation["operation"]["action"], operation["operation"]["why"]) == (
        "resolve",
        f"{choice}: measured it",
    )
    nacre("undo", operation["operation"]["id"], "--yes")
    (again,) = nacre("review", "--only", "conflict", "--json").json["items"]
    assert again["id"] == doubted["id"]
    assert nacre("review", "--json").json["total"] == 1
    nacre("review", "resolve", doubted["memory"]["id"], "keep-new")
    assert active(nacre) == {NEW}
    nacre("undo", doubted["id"])
    assert [item["id"] for item in nacre("review", "--json").json["items"]] == [doubted["id"]]


def test_kept_memory_leaves_conflicts_until_undo(nacre: Nacre, doubted: dict[str, Any]) -> None:
    nacre("review", "keep", doubted["memory"]["id"])
    assert nacre("review", "--only", "conflict", "--json").json["items"] == []
    (waiting,) = nacre("undo", "--yes", "--json").json["waiting"]
    assert waiting["id"] == doubted["memory"]["id"]
    assert [item["id"] for item in nacre("review", "--json").json["items"]] == [doubted["id"]]


def test_undo_removes_a_stored_memory_after_later_comparison(
    nacre: Nacre, doubted: dict[str, Any]
) -> None:
    undone = nacre("undo", "--yes", "--json").json["operation"]
    assert (undone["action"], undone["subject"]) == ("store", NEW)
    assert active(nacre) == {OLD}


def test_manual_conflict_is_not_attributed_to_rules(nacre: Nacre) -> None:
    nacre("store", "The gate opens at eight", "--subject", "Gate", "--project", "acme")
    nacre("store", "Night guards have no keys", "--subject", "Guards", "--project", "acme")
    nacre("graph", "link", "Gate", "contradicts", "Guards")
    assert "None" not in nacre("review").out


def test_conflict_is_found_by_either_memory_id(nacre: Nacre, doubted: dict[str, Any]) -> None:
    answer = nacre("review", "resolve", doubted["newer"]["id"][-8:], "keep-new", "--json").json
    assert answer["older"]["superseded_by"] == doubted["newer"]["id"]


def test_missing_or_settled_conflict_is_reported(nacre: Nacre, doubted: dict[str, Any]) -> None:
    assert (
        nacre("review", "resolve", "ffffffff", "keep-new", "--json", code=3).error["code"]
        == "not_found"
    )
    nacre("review", "resolve", doubted["id"], "keep-both")
    assert nacre("review", "resolve", doubted["id"], "keep-both", "--json", code=3).error["hint"]
    assert "Nothing is pending" in nacre("review").out


def test_mutually_doubted_memories_form_a_single_entry(
    nacre: Nacre, doubted: dict[str, Any], user_home: Path
) -> None:
    newer, older = doubted["newer"]["id"], doubted["memory"]["id"]
    for file in (user_home / ".nacre" / "vault").rglob("*.md"):
        text = file.read_text(encoding="utf-8")
        if f"id: {older}" in text:
            link = f"links: [{{rel: contradicts, to: {newer}}}]"
            file.write_text(
                text.replace("confidence: extracted", f"confidence: extracted\n{link}"),
                encoding="utf-8",
            )
    (pair,) = nacre("review", "--only", "conflict", "--json").json["items"]
    assert (pair["memory"]["id"], pair["newer"]["id"]) == (older, newer)
    assert nacre("review", "--json").json["total"] == 1
    nacre("review", "resolve", pair["id"], "keep-both")
    assert nacre("review", "--only", "conflict", "--json").json["items"] == []
    assert active(nacre) == {OLD, NEW}


def test_undone_store_leaves_the_earlier_conflicts_and_no_doubt(nacre: Nacre) -> None:
    for day in ("Mondays", "Fridays"):
        nacre("store", f"Uploads are cleaned on {day}")
    before = nacre("review", "--json").json
    assert before["conflicts"] == 1
    nacre("store", "Uploads are cleaned on Sundays")
    assert nacre("review", "--json").json["conflicts"] == 3
    for _ in range(2):
        nacre("undo", "--yes")
        assert nacre("review", "--json").json == before
        assert nacre("review", "--only", "doubt", "--json").json["items"] == []
        nacre("undo", last_undo(nacre))
        assert nacre("review", "--json").json["conflicts"] == 3
    nacre("retire", "Uploads are cleaned on Sundays", "--yes")
    assert nacre("review", "--json").json == before


def last_undo(nacre: Nacre) -> str:
    return str(nacre("log", "--action", "undo", "--json").json["operations"][0]["operation"]["id"])
