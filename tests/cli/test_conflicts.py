"""``nacre review`` of conflicts: what waits, side by side; a person settles it, and may take it back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre

OLD = "Uploads may be 10 MB"
NEW = "Uploads have changed to 25 MB"


@pytest.fixture
def doubted(nacre: Nacre) -> dict[str, Any]:
    """A home in which the words alone make one memory doubtful; the pair as ``list`` tells it."""
    nacre("store", OLD, "--project", "acme")
    nacre("store", NEW, "--project", "acme")
    (pair,) = nacre("review", "--only", "conflict", "--json").json["items"]
    found: dict[str, Any] = pair
    return found


def active(nacre: Nacre) -> set[str]:
    return {memory["content"] for memory in nacre("list", "--json").json["memories"]}


def test_conflict_shows_both_texts_with_speaker_date_and_reason(
    nacre: Nacre, doubted: dict[str, Any]
) -> None:
    assert (doubted["memory"]["content"], doubted["newer"]["content"]) == (OLD, NEW)
    shown = nacre("review").out
    assert f"older: {OLD}" in shown
    assert f"newer: {NEW}" in shown
    assert shown.count("said by you") == 2
    assert "10 mb → 25 mb" in shown.lower()
    assert f"{doubted['memory']['id'][-8:]}+{doubted['newer']['id'][-8:]}" in shown


@pytest.mark.parametrize(
    ("choice", "left"), [("keep-new", {NEW}), ("keep-old", {OLD}), ("keep-both", {OLD, NEW})]
)
def test_conflict_decision_is_logged_and_can_be_undone(
    nacre: Nacre, doubted: dict[str, Any], choice: str, left: set[str]
) -> None:
    nacre("review", "resolve", doubted["id"], choice, "--reason", "measured it")
    assert active(nacre) == left
    assert nacre("review", "--only", "conflict", "--json").json["items"] == []
    assert nacre("review", "--json").json["total"] == 0
    (told, *_) = nacre("log", "--json").json["operations"]
    assert (told["operation"]["action"], told["operation"]["why"]) == (
        "resolve",
        f"{choice}: measured it",
    )
    nacre("undo", told["operation"]["id"], "--yes")
    (again,) = nacre("review", "--only", "conflict", "--json").json["items"]
    assert again["id"] == doubted["id"]
    assert nacre("review", "--json").json["total"] == 1
    nacre("review", "resolve", doubted["memory"]["id"], "keep-new")
    assert active(nacre) == {NEW}
    nacre("undo", doubted["id"])
    assert [one["id"] for one in nacre("review", "--json").json["items"]] == [doubted["id"]]


def test_kept_memory_leaves_conflicts_until_undo(nacre: Nacre, doubted: dict[str, Any]) -> None:
    nacre("review", "keep", doubted["memory"]["id"])
    assert nacre("review", "--only", "conflict", "--json").json["items"] == []
    (waiting,) = nacre("undo", "--yes", "--json").json["waiting"]
    assert waiting["id"] == doubted["memory"]["id"]
    assert [one["id"] for one in nacre("review", "--json").json["items"]] == [doubted["id"]]


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
