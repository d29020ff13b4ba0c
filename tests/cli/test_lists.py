"""Long lists are complete with --all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre

MANY = 510
"""More than one page of a list."""


@pytest.fixture
def many(user_home: Path, monkeypatch: pytest.MonkeyPatch, nacre: Nacre) -> list[str]:
    """Return the ids of all memories of a home, newest first."""
    monkeypatch.setenv("NACRE_EMBEDDING_MODEL", "none")
    home = user_home / ".nacre"
    facts = home / "vault" / "global" / "fact"
    facts.mkdir(parents=True, mode=0o700)
    for number in range(MANY):
        (facts / f"note-{number}.md").write_text(
            f"# Service {number}\n\nService {number} listens on port {20_000 + number}.\n"
        )
    return [memory["id"] for memory in nacre("list", "--limit", "1000", "--json").json["memories"]]


def test_list_stops_at_its_limit_unless_all_is_given(nacre: Nacre, many: list[str]) -> None:
    assert len(many) == MANY
    assert len(nacre("list", "--json").json["memories"]) == 20
    whole = nacre("list", "--all", "--json").json
    assert [memory["id"] for memory in whole["memories"]] == many
    assert whole["total"] == MANY
    assert [
        memory["id"]
        for memory in nacre("list", "--all", "--offset", "3", "--json").json["memories"]
    ] == many[3:]
    assert nacre("list", "--all").out.count("\n") >= MANY


def test_list_words_must_all_match_case_insensitively(nacre: Nacre) -> None:
    nacre("store", "The Lamp burns red 100%", "--tag", "Harbour")
    nacre("store", "The lamp of the pier burns green")

    def listed(*words: str) -> int:
        total: int = nacre("list", *words, "--json").json["total"]
        return total

    assert listed("lamp") == 2
    assert listed("LAMP", "harbour") == listed("100%") == 1
    assert listed("lamp", "zeppelin") == 0
    assert listed("lamp", "--tag", "harbour") == 1


def test_list_is_filtered_by_tool(nacre: Nacre, learned: dict[str, Any]) -> None:
    nacre("store", "The lamp burns red")
    assert nacre("list", "--platform", "claude-code", "--json").json["total"] == len(
        learned["memories"]
    )
    assert nacre("list", "--tool", "codex", "--json").json["total"] == 0
    hits = nacre("recall", "which database for billing", "--tool", "claude-code", "--json").json[
        "hits"
    ]
    assert hits
    assert not nacre("recall", "which database for billing", "--platform", "codex", "--json").json[
        "hits"
    ]
