"""The commands ``retire``, ``unretire`` and ``forget``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SESSION, Nacre


def test_retire_needs_confirmation_for_an_ambiguous_name(nacre: Nacre) -> None:
    nacre("store", "The kettle is red", "--subject", "Kettle")
    nacre("store", "The other kettle hums at night", "--subject", "kettle", "--force")
    outcome = nacre("retire", "kettle", "--dry-run")
    assert "Would retire 2 memories" in outcome.out
    assert "--dry-run" in nacre("retire", "kettle", "--json", code=2).error["message"]
    assert nacre("list", "--json").json["total"] == 2
    assert len(nacre("retire", "kettle", "--force", "--json").json["retired"]) == 2


def test_retired_memories_are_listed_and_restored(
    nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    lamp = nacre("store", "The lamp is broken", "--subject", "Lamp", "--json").json["memory_id"]
    nacre("store", "The clock is slow", "--subject", "Clock")
    nacre("retire", lamp, "--reason", "mended", "--persist")
    output = nacre("retire", "--list").out
    assert "mended" in output
    assert "memories about 'Lamp' are retired when they are stored" in output
    with monkeypatch.context() as agent:
        agent.setenv("AI_AGENT", "1")
        assert "Stored and retired" in nacre("store", "The lamp flickers", "--subject", "lamp").out
    listed = nacre("retire", "--list", "--json").json
    assert [item["subject"] for item in listed["retired"]] == ["lamp", "Lamp"]
    assert "Restored" in nacre("retire", "--restore", lamp).out
    assert "Rule ended" in nacre("retire", "--restore", listed["standing"][0]["id"]).out
    assert nacre("retire", "--list", "--json").json["standing"] == []
    nacre("retire", code=2)


def test_restore_command_no_longer_exists(nacre: Nacre) -> None:
    nacre("restore", "x", code=2)


def test_forget_shows_counts_asks_and_reports(
    nacre: Nacre, terminal: Nacre, learned: dict[str, Any], transcript: Path
) -> None:
    dry = nacre("forget", "--session", SESSION, "--dry-run", "--json").json
    assert list(dry["sessions"].values()) == [6]
    assert len(dry["memories"]) == len(learned["memories"])
    assert "add --yes" in nacre("forget", "--session", SESSION, "--json", code=2).error["message"]
    declined = terminal("forget", "--session", SESSION, typed="n\n")
    assert declined.code == 1
    assert "6 turns, 1 whole session?" in declined.out
    assert nacre("list", "--json").json["total"] == len(learned["memories"])
    outcome = terminal("forget", "--session", SESSION, typed="y\n")
    assert outcome.code == 0
    assert "Not deleted" in outcome.out
    assert transcript.name in outcome.out.replace("\n", "").replace(" ", "")
    assert nacre("list", "--json").json["total"] == 0
    report = nacre("ingest", "--json").json
    assert (report["turns"], report["left_out"]) == (0, 1)
    assert nacre("admin", "doctor", "--json").json["ok"]


def test_session_forgotten_by_mistake_can_be_read_again(
    nacre: Nacre, learned: dict[str, Any]
) -> None:
    answer = nacre("forget", "--match", "postgresql", "--yes", "--json").json
    assert answer["is_erased"]
    assert {excerpt["of"] for excerpt in answer["plan"]["excerpts"]} > {f"claude-code:{SESSION}"}
    (run,) = nacre("forget", "--list", "--json").json["forgotten"]
    assert (run["run"], run["how"], run["is_allowed"]) == (answer["run"], "match", False)
    nacre("ingest")
    assert not nacre("search", "PostgreSQL transactions", "--json").json["turns"] or all(
        "PostgreSQL" not in hit["excerpt"]
        for hit in nacre("search", "PostgreSQL transactions", "--json").json["turns"]
    )
    assert (
        nacre("forget", "--allow-again", answer["run"][-8:], "--json").json["run"] == answer["run"]
    )
    nacre("ingest")
    hits = nacre("search", "PostgreSQL transactions", "--json").json["turns"]
    assert any("PostgreSQL" in hit["excerpt"] for hit in hits)


def test_forget_never_prints_the_key_of_its_hashes(nacre: Nacre, learned: dict[str, Any]) -> None:
    outcome = nacre("forget", "--match", "postgresql", "--yes", "--json")
    ledger = (Path(os.environ["NACRE_HOME"]) / "vault" / "ledger.jsonl").read_text("utf-8")
    (key,) = (entry["key"] for entry in map(json.loads, ledger.splitlines()) if "key" in entry)
    planned = nacre("forget", "--session", SESSION, "--dry-run", "--json")
    assert key not in outcome.out + planned.out


def test_empty_forget_is_reported(nacre: Nacre, learned: dict[str, Any]) -> None:
    assert "Nothing to forget" in nacre("forget", "--match", "no such words", "--yes").out
    assert nacre("forget", "--session", "nobody", "--json", code=3).error["code"] == "not_found"
    assert nacre("forget", "--json", code=2).error["code"] == "query_invalid"
    assert nacre("forget", "--list").out == "Nothing has been forgotten.\n"
    nacre("forget", "--allow-again", "nothing", code=3)


def test_slow_regular_expression_is_aborted_without_changes(
    nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nacre.memories.tombstones._SEARCH_SECONDS", 0.5)
    memory = nacre("store", f"The key of the shed is {'a' * 60}!", "--json").json["memory_id"]
    refused = nacre("forget", "--match", "(a|aa)+$", "--regex", "--yes", code=2)
    assert "took more than" in refused.err
    assert nacre("show", memory).out


@pytest.mark.parametrize(
    "options", [("--before", "tomorrow"), ("--match", "(", "--regex"), ("--match", "x*", "--regex")]
)
def test_invalid_forget_options_are_refused(nacre: Nacre, options: tuple[str, ...]) -> None:
    assert nacre("forget", *options, "--json", code=2).error["hint"]


def test_misspelt_or_reordered_subject_is_retired_if_requested(
    nacre: Nacre,
) -> None:
    lamp = nacre(
        "store", "The lamp burns red", "--subject", "Lamp of the lighthouse", "--json"
    ).json["memory_id"]
    nacre("store", "The clock is slow", "--subject", "Clock of the town hall")
    assert nacre("retire", "Lamp of the lighthuose", code=3).code == 3
    for text in ("lamp of teh lighthuose", "The lighthouse of lamp"):
        memories = nacre("retire", "--like", text, "--dry-run", "--json").json["memories"]
        assert [memory["id"] for memory in memories] == [lamp]
    assert (
        "--dry-run"
        in nacre("retire", "--like", "lamp of the lighthuose", "--json", code=2).error["message"]
    )
    assert nacre("retire", "--like", "the harbour", "--dry-run", code=3).code == 3
    assert (
        nacre("retire", "--like", "lamp of the lighthuose", "--yes", "--json").json["retired"][0][
            "id"
        ]
        == lamp
    )


def test_retirement_by_similarity_persists_the_matched_subject(nacre: Nacre) -> None:
    nacre("store", "The lamp burns red", "--subject", "Lamp of the lighthouse")
    nacre("retire", "--like", "lamp of the lighthuose", "--persist", "--yes")
    assert "memories about 'Lamp of the lighthouse' are retired" in nacre("retire", "--list").out


def test_preview_of_forget_lists_sessions_memories_and_text(
    nacre: Nacre, learned: dict[str, Any]
) -> None:
    whole = nacre("forget", "--session", SESSION, "--dry-run").out
    assert "Would delete: " in whole
    assert "6 turns, 1 whole session" in whole
    headings = [line for line in whole.splitlines() if line and not line.startswith(" ")]
    assert headings[1:] == ["Whole sessions", "Memories"]
    assert f"claude-code {SESSION[:8]}" in whole
    part = nacre("forget", "--match", "linter", "--dry-run").out
    headings = [line for line in part.splitlines() if line and not line.startswith(" ")]
    assert headings[1:] == ["Sessions that lose turns", "Memories", "Matching text"]
    assert "Always run the linter" in part
    assert nacre("list", "--json").json["total"] == len(learned["memories"])
    output = nacre("forget", "--match", "linter", "--yes").out
    assert output.startswith("Forgotten: ")
    assert "Not deleted" in output
    (row,) = [line for line in nacre("forget", "--list").out.splitlines() if "match" in line]
    assert "1 memory" in row
    run = row.split()[0]
    assert "linter" not in nacre("forget", "--list").out
    nacre("forget", "--allow-again", run)
    assert "allowed again" in nacre("forget", "--list").out
