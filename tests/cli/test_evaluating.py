"""``nacre admin eval``: saved queries on a home of one's own."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre


@pytest.fixture
def stored(nacre: Nacre) -> dict[str, str]:
    """Ids of memories by a name."""
    found = {}
    for name, content, kind in (
        ("oven", "The bakery oven is cleaned with vinegar on Mondays.", "fact"),
        ("flour", "We decided to mill our own rye flour for the bakery.", "decision"),
        ("yeast", "Order fresh yeast before the holidays.", "todo"),
    ):
        found[name] = nacre("store", content, "--kind", kind, "--json").json["memory_id"]
    return found


def answers(nacre: Nacre, *arguments: str) -> dict[str, Any]:
    return {
        item["query"]["id"]: item
        for item in nacre("admin", "eval", *arguments, "--json").json["queries"]
    }


def ids(answer: dict[str, Any]) -> list[str]:
    return [result["memory"]["id"] for result in answer["results"]]


def test_bundled_queries_cover_start_decisions_and_todos(
    nacre: Nacre, stored: dict[str, str]
) -> None:
    found = answers(nacre)
    assert list(found) == ["session-start", "recent-decisions", "active-todos", "preferences"]
    assert set(ids(found["session-start"])) == set(stored.values())
    assert ids(found["recent-decisions"]) == [stored["flour"]]
    assert ids(found["active-todos"]) == [stored["yeast"]]
    assert ids(found["preferences"]) == []
    prefers = nacre("store", "Never knead by hand", "--kind", "preference", "--json").json[
        "memory_id"
    ]
    assert ids(answers(nacre)["preferences"]) == [prefers]


def test_session_start_respects_budget_and_answers_respect_limit(
    nacre: Nacre, stored: dict[str, str]
) -> None:
    assert len(ids(answers(nacre, "--budget", "5")["session-start"])) == 1
    assert len(ids(answers(nacre, "--limit", "2")["session-start"])) == 2


def test_eval_queries_do_not_count_as_usage(nacre: Nacre, stored: dict[str, str]) -> None:
    nacre("admin", "eval", "add", "how is the oven cleaned?", "--id", "oven")
    assert ids(answers(nacre)["oven"])[0] == stored["oven"]
    nacre("ingest")  # takes in what was noted about use
    assert nacre("show", stored["oven"], "--json").json["usage"]["recall_count"] == 0


def test_queries_with_expectations_are_measured(nacre: Nacre, stored: dict[str, str]) -> None:
    nacre(
        "admin",
        "eval",
        "add",
        "how is the oven cleaned?",
        "--id",
        "oven",
        "--expect",
        stored["oven"][-8:],
    )
    nacre(
        "admin",
        "eval",
        "add",
        "which mill grinds the rye flour?",
        "--id",
        "flour",
        "--expect",
        stored["yeast"],
    )
    result = nacre("admin", "eval", "--json").json
    assert result["expectations"] == {
        "queries": 2,
        "hits": {"1": 0.5, "5": 0.5, "10": 0.5},
        "mrr": 0.5,
    }
    assert "not found" in nacre("admin", "eval").out


def test_retired_expected_memory_is_marked(nacre: Nacre, stored: dict[str, str]) -> None:
    nacre(
        "admin",
        "eval",
        "add",
        "how is the oven cleaned?",
        "--id",
        "oven",
        "--expect",
        stored["oven"],
    )
    nacre("retire", stored["oven"])
    assert answers(nacre)["oven"]["expected"][0]["is_active"] is False
    assert "(retired)" in nacre("admin", "eval").out


def test_moves_since_the_baseline_are_shown(
    nacre: Nacre, stored: dict[str, str], user_home: Path
) -> None:
    nacre("admin", "eval", "--save-baseline")
    new = nacre(
        "store", "We decided to bake on Tuesdays only.", "--kind", "decision", "--json"
    ).json["memory_id"]
    nacre("todo", "done", stored["yeast"])
    found = answers(nacre, "--compare")
    decided = {move["id"]: move for move in found["recent-decisions"]["moves"]}
    assert decided[new]["before"] is None
    assert (decided[stored["flour"]]["before"], decided[stored["flour"]]["now"]) in ((1, 1), (1, 2))
    assert [(move["before"], move["now"]) for move in found["active-todos"]["moves"]] == [(1, None)]
    shown = nacre("admin", "eval", "--compare").out
    assert "dropped  was 1" in shown
    assert re.search(r"\d up · \d down · \d new · \d dropped", shown)
    assert stat.S_IMODE((user_home / ".nacre" / "eval-baseline.json").stat().st_mode) == 0o600


def test_comparison_uses_the_baseline_limit(nacre: Nacre, stored: dict[str, str]) -> None:
    nacre("admin", "eval", "--save-baseline", "--limit", "1")
    assert nacre("admin", "eval", "--compare", "--json").json["limit"] == 1
    assert all(not item["moves"] for item in answers(nacre, "--compare").values())


def test_new_or_reworded_query_is_not_compared(nacre: Nacre, stored: dict[str, str]) -> None:
    nacre("admin", "eval", "--save-baseline")
    nacre("admin", "eval", "add", "how is the oven cleaned?", "--id", "oven")
    assert answers(nacre, "--compare")["oven"]["moves"] is None
    assert "not in the baseline" in nacre("admin", "eval", "--compare").out


def test_queries_are_added_listed_and_removed(
    nacre: Nacre, stored: dict[str, str], user_home: Path
) -> None:
    nacre("admin", "eval", "add", "Which", "day", "is baking day?")
    file = user_home / ".nacre" / "eval-queries.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())[-1] == {
        "id": "which-day-is-baking-day",
        "query": "Which day is baking day?",
    }
    assert (
        nacre(
            "admin", "eval", "add", "again", "--id", "which-day-is-baking-day", "--json", code=4
        ).error["code"]
        == "conflict"
    )
    nacre("admin", "eval", "--remove", "which-day-is-baking-day")
    assert "baking day" not in nacre("admin", "eval", "--list").out
    nacre("admin", "eval", "--remove", "which-day-is-baking-day", code=3)
    nacre("admin", "eval", "add", "what", "--expect", "no such memory", code=3)


def test_queries_are_read_from_another_file(
    nacre: Nacre, stored: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "mine.json"
    file.write_text(
        json.dumps([{"id": "oven", "query": "how is the oven cleaned?"}]), encoding="utf-8"
    )
    assert list(answers(nacre, "--queries", str(file))) == ["oven"]
    file.write_text('{"id": 1}', encoding="utf-8")
    assert (
        "is not a file of queries"
        in nacre("admin", "eval", "--queries", str(file), "--json", code=2).error["message"]
    )


def test_compare_without_a_baseline_is_an_error(nacre: Nacre, stored: dict[str, str]) -> None:
    assert (
        nacre("admin", "eval", "--compare", "--json", code=3).error["hint"]
        == "nacre admin eval --save-baseline saves one"
    )


def test_empty_home_explains_how_to_begin(nacre: Nacre) -> None:
    assert "nacre ingest" in nacre("admin", "eval").out


def test_saved_query_contains_no_secret(nacre: Nacre, user_home: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    nacre("admin", "eval", "add", f"where is {token} used?")
    nacre("admin", "eval", "add", "another one", "--id", f"id {token}")
    kept = next(user_home.rglob("eval-queries.json")).read_text(encoding="utf-8").lower()
    assert "redacted" in kept
    assert token.lower() not in kept
