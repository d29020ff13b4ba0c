"""``python -m benchmarks retrieval`` computes its figures from a suite's files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import benchmarks

REAL = Path(__file__).parents[3] / "shared" / "data" / "bench"


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(benchmarks, ["retrieval", *arguments])
    assert result.exit_code == code, result.output
    return result.stdout


def figures(data: Path, cache: Path, suite: str, *more: str) -> dict[str, Any]:
    arguments = ("--suite", suite, "--data", str(data), "--cache", str(cache), "--json", *more)
    result: dict[str, Any] = json.loads(run(*arguments))
    return result


def test_lexical_search_finds_turns_of_a_tiny_suite(data: Path, tmp_path: Path) -> None:
    result = figures(data, tmp_path / "cache", "locomo", "--no-vectors")
    assert (result["haystacks"], result["sessions"], result["turns"], result["questions"]) == (
        1,
        3,
        7,
        4,
    )
    plain, lexical = result["recipes"]
    assert (plain["name"], lexical["name"]) == ("plain FTS5", "lexical")
    assert plain["turns"]["overall"]["recall@10"] >= 60
    # Of three counted questions, the question with two pieces of evidence shares no word with one of them.
    assert lexical["turns"]["overall"]["recall@10"] == 83.3
    assert set(lexical["turns"]["categories"]) == {"1 multi-hop", "4 single-hop", "5 adversarial"}
    assert {"turn recall@10", "session hit@1", "session hit@5", "session mrr"} <= set(
        lexical["gains"]
    )
    assert lexical["p95_ms"] >= lexical["p50_ms"] > 0
    assert result["machine"]["cores"] >= 1


def test_pile_asks_every_suite_and_ablations_add_recipes(data: Path, tmp_path: Path) -> None:
    result = figures(data, tmp_path / "cache", "pile", "--no-vectors")
    assert result["questions"] == 4 + 3 + 2
    assert set(result["recipes"][1]["sessions"]["categories"]) == {
        "locomo",
        "longmemeval",
        "devmembench",
        "5 adversarial",
    }


@pytest.mark.embedding
def test_every_lane_and_ablation_is_measured(data: Path, tmp_path: Path) -> None:
    result = figures(data, tmp_path / "cache", "devmembench", "--ablations")
    names = [recipe["name"] for recipe in result["recipes"]]
    assert names[:4] == ["plain FTS5", "lexical", "vector", "full"]
    assert {
        "no neighbours' words",
        "no presence bonus",
        "stop words kept",
    } < set(names)
    assert len(set(names)) == len(names)
    full = result["recipes"][3]
    assert full["sessions"]["overall"]["hit@1"] == 100.0
    assert full["turns"]["overall"] is None


def test_homes_are_reused_between_runs_unless_fresh(data: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = figures(data, cache, "longmemeval", "--no-vectors")
    times = {home: home.stat().st_mtime_ns for home in cache.glob("longmemeval-*/filled")}
    assert len(times) == 2
    again = figures(data, cache, "longmemeval", "--no-vectors")
    assert {home: home.stat().st_mtime_ns for home in cache.glob("longmemeval-*/filled")} == times
    assert again["recipes"][1]["sessions"] == first["recipes"][1]["sessions"]
    figures(data, cache, "longmemeval", "--no-vectors", "--fresh")
    fresh = {home: home.stat().st_mtime_ns for home in cache.glob("longmemeval-*/filled")}
    assert fresh.keys() == times.keys()
    assert all(fresh[home] > times[home] for home in times)


def test_number_of_questions_can_be_limited(data: Path, tmp_path: Path) -> None:
    assert (
        figures(data, tmp_path / "cache", "pile", "--no-vectors", "--questions", "3")["questions"]
        == 3
    )


def test_text_output_contains_tables(data: Path, tmp_path: Path) -> None:
    arguments = (
        "--suite",
        "locomo",
        "--data",
        str(data),
        "--cache",
        str(tmp_path / "cache"),
        "--no-vectors",
    )
    output = run(*arguments)
    for words in (
        "Turns",
        "Sessions, by their best turn",
        "recall@10",
        "plain FTS5",
        "Latency in ms",
        "bootstrap",
    ):
        assert words in output


def test_users_home_is_not_changed(data: Path, tmp_path: Path, user_home: Path) -> None:
    figures(data, tmp_path / "cache", "longmemeval", "--no-vectors")
    assert list(user_home.iterdir()) == []


def test_missing_suite_is_a_plain_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        benchmarks, ["retrieval", "--suite", "locomo", "--data", str(tmp_path)]
    )
    assert result.exit_code == 3
    assert "no locomo data" in result.stderr


@pytest.mark.embedding
@pytest.mark.skipif(not REAL.is_dir(), reason="no benchmark data next to this checkout")
def test_full_recipe_beats_plain_full_text_on_real_questions(tmp_path: Path) -> None:
    result = figures(REAL, tmp_path / "cache", "devmembench")
    by_name = {recipe["name"]: recipe for recipe in result["recipes"]}
    plain, full = (by_name[name]["sessions"]["overall"] for name in ("plain FTS5", "full"))
    assert full["hit@1"] > plain["hit@1"]
    assert full["recall@5"] > plain["recall@5"]
