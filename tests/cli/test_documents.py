"""Changed documents are learned again, and memories of the old version await review."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Nacre


@pytest.fixture
def runbook(tmp_path: Path) -> Path:
    return tmp_path / "runbook.md"


def written(path: Path, *statements: str) -> Path:
    path.write_text("\n\n".join(["# Runbook", *statements]) + "\n", encoding="utf-8")
    return path


def contents(nacre: Nacre) -> list[str]:
    return sorted(memory["content"] for memory in nacre("list", "--json").json["memories"])


def test_changed_document_is_learned_repeatedly(nacre: Nacre, runbook: Path) -> None:
    for host in ("walnut", "hazel", "maple"):
        nacre("ingest", str(written(runbook, f"Remember: the staging host is called {host}.")))
        assert f"The staging host is called {host}." in contents(nacre)


def test_text_removed_from_a_document_waits_for_review(nacre: Nacre, runbook: Path) -> None:
    deploys, host = (
        "Remember: we deploy on Mondays.",
        "Remember: the staging host is called walnut.",
    )
    nacre("ingest", str(written(runbook, f"{deploys} {host}")))
    assert len(contents(nacre)) == 2
    assert "stale" not in nacre("review", "--json").out
    nacre("ingest", str(written(runbook, deploys)))
    (waiting,) = nacre("review", "--only", "doubt", "--json").json["items"]
    content = waiting["memory"]["content"]
    assert (content, waiting["why"]) == ("The staging host is called walnut.", "stale")
    assert content in contents(nacre)
    nacre("review", "drop", waiting["id"], "--yes")
    assert contents(nacre) == ["We deploy on Mondays."]
    assert nacre("review", "--only", "doubt", "--json").json["items"] == []


def test_memory_waiting_as_outdated_is_found_with_a_mark(nacre: Nacre, runbook: Path) -> None:
    deploys, host = (
        "Remember: we deploy on Mondays.",
        "Remember: the staging host is called walnut.",
    )
    why = "its document does not say it any more"
    nacre("ingest", str(written(runbook, f"{deploys} {host}")))
    nacre("ingest", str(written(runbook, deploys)))
    nacre("review")
    command = ("recall", "what is the staging host called?")
    (hit,) = nacre(*command, "--json").json["hits"]
    assert hit["doubt"] == why
    assert f"may be out of date: {why}" in nacre(*command).out
    assert nacre("show", hit["memory"]["id"], "--json").json["doubt"] == why
    assert f"May be out of date: {why}" in nacre("show", hit["memory"]["id"]).out
    assert nacre("recall", "when do we deploy?", "--json").json["hits"][0]["doubt"] is None
    nacre("retire", hit["memory"]["id"], "--yes")
    nacre("retire", "--restore", hit["memory"]["id"])
    assert nacre(*command, "--json").json["hits"][0]["doubt"] == why
    nacre("review", "keep", hit["memory"]["id"])
    assert nacre(*command, "--json").json["hits"][0]["doubt"] is None


def test_candidate_of_removed_document_text_is_dropped(nacre: Nacre, runbook: Path) -> None:
    text = "We should probably move the queue to Redis, I think, since the old one loses jobs at night."
    nacre("ingest", str(written(runbook, text, "We should keep SQLite for the prototype.")))
    before = nacre("review", "--only", "candidate", "--json").json["items"]
    nacre("ingest", str(written(runbook, "Nothing is settled.")))
    after = nacre("review", "--only", "candidate", "--json").json["items"]
    assert (len(before), len(after)) == (1, 0)


@pytest.mark.parametrize("order", ["Remember", "From now on", "Merk dir"])
def test_orders_in_separate_paragraphs_are_all_kept(
    nacre: Nacre, runbook: Path, order: str
) -> None:
    nacre(
        "ingest",
        str(
            written(runbook, f"{order}: always deploy on Mondays.", f"{order}: never push to main.")
        ),
    )
    assert len(contents(nacre)) == 2
