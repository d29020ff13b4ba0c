"""Changes of a memory in the output of store and recall, in the history, and their undo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre


@pytest.fixture
def changed(nacre: Nacre) -> tuple[str, str]:
    """Return the ids of a memory and its replacement."""
    old = nacre("store", "The gate listens on port 8080", "--json").json["memory_id"]
    new = nacre("store", "The gate now listens on port 8443", "--json").json["memory_id"]
    return old, new


def test_store_names_the_superseded_memory(nacre: Nacre) -> None:
    nacre("store", "The gate listens on port 8080")
    output = nacre("store", "The gate now listens on port 8443").out
    assert "supersedes: The gate listens on port 8080" in output
    assert "8080 → 8443" in output


def test_store_reports_similar_memories_and_force_skips_the_check(nacre: Nacre) -> None:
    first = nacre("store", "Backups of the ledger lie in Zurich", "--json").json["memory_id"]
    again = nacre("store", "Backups of the ledger lie in Zurich!", "--json").json
    assert (again["action"], again["memory_id"]) == ("known", first)
    assert "--force stores it anyway" in nacre("store", "Backups of the ledger lie in Zurich").out
    forced = nacre("store", "Backups of the ledger lie in Zurich", "--force", "--json").json
    assert forced["action"] == "stored"
    similar = nacre(
        "store", "Backups of the ledger lie in Zurich, says Nadia", "--kind", "event", "--json"
    ).json
    assert first in {item["id"] for item in similar["similar"]}


def test_store_output_names_similar_memories(nacre: Nacre) -> None:
    nacre("store", "Backups of the ledger lie in Zurich")
    output = nacre(
        "store", "Backups of the ledger lie in Zurich, says Nadia", "--kind", "event"
    ).out
    assert "similar: Backups of the ledger lie in Zurich" in output


def test_store_names_a_possibly_outdated_memory(nacre: Nacre) -> None:
    nacre("store", "Uploads may be 10 MB")
    for rehearsed in (("--dry-run",), ()):
        output = nacre("store", "Uploads have changed to 25 MB", *rehearsed).out
        assert (
            "may supersede: Uploads may be 10 MB  shown as possibly out of date: nacre review"
            in output
        )
        assert "similar" not in output


def test_show_names_the_superseding_memory(nacre: Nacre, changed: tuple[str, str]) -> None:
    assert f"Superseded by {changed[1][-8:]} since" in nacre("show", changed[0]).out


def test_history_is_equal_from_either_end(nacre: Nacre, changed: tuple[str, str]) -> None:
    for item in changed:
        steps = nacre("show", item, "--history", "--json").json["history"]
        assert [step["memory"]["id"] for step in steps] == list(changed)
        assert [step["reason"] for step in steps] == ["8080 → 8443", None]
        assert [step["is_asked"] for step in steps] == [
            step["memory"]["id"] == item for step in steps
        ]
    output = nacre("show", changed[0], "--history").out
    assert "superseded by" in output
    assert "8080 → 8443" in output


def test_history_of_an_unchanged_memory_is_empty(nacre: Nacre) -> None:
    memory_id = nacre("store", "The lamp is green", "--json").json["memory_id"]
    assert "no predecessor or successor" in nacre("show", memory_id, "--history").out


def test_list_and_recall_support_a_past_date(nacre: Nacre, changed: tuple[str, str]) -> None:
    assert [memory["id"] for memory in nacre("list", "--json").json["memories"]] == [changed[1]]
    assert nacre("list", "--as-of", "2020-01-01", "--json").json["memories"] == []
    assert nacre("recall", "gate port", "--as-of", "2020-01-01", "--json").json["hits"] == []


def test_unretire_restores_by_id_or_subject(nacre: Nacre, changed: tuple[str, str]) -> None:
    assert (
        nacre("retire", "--restore", "The gate listens on port 8080", "--json").json["memories"][0][
            "superseded_by"
        ]
        is None
    )
    assert {memory["id"] for memory in nacre("list", "--json").json["memories"]} == set(changed)
    nacre("retire", changed[1])
    assert "Restored" in nacre("retire", "--restore", changed[1]).out
    assert nacre("retire", "--restore", changed[1], "--json", code=4).error["code"] == "conflict"


@pytest.mark.embedding
def test_restored_memory_has_its_vector(nacre: Nacre, learned: dict[str, Any]) -> None:
    old = nacre("store", "The gate listens on port 8080", "--json").json["memory_id"]
    new = nacre("store", "The gate now listens on port 8443", "--json").json["memory_id"]
    for command in (("retire", new), ("retire", "--restore", new), ("retire", "--restore", old)):
        nacre(*command)
        assert _vectors(nacre) == "ok", command


@pytest.mark.embedding
def test_doctor_counts_vectors_of_memories_without_sessions(nacre: Nacre) -> None:
    nacre("store", "The gate listens on port 8080")
    assert "for 1 memory and 0 passages of sessions" in nacre("admin", "doctor").out


@pytest.mark.embedding
def test_memory_restored_by_review_has_its_vector(nacre: Nacre, learned: dict[str, Any]) -> None:
    nacre("store", "The gate listens on port 8080")
    new = nacre("store", "The gate now listens on port 8443", "--json").json["memory_id"]
    nacre("review", "feedback", new, "--bad")
    nacre("review", "drop", new, "--yes")
    assert _vectors(nacre) == "ok"


@pytest.mark.embedding
@pytest.mark.parametrize("settled", ["keep", "resolve"])
def test_memory_kept_by_review_has_its_vector(
    nacre: Nacre, user_home: Path, learned: dict[str, Any], settled: str
) -> None:
    old = nacre("store", "The kiln burns at night", "--json").json["memory_id"]
    new = nacre("store", "Bread is baked at dawn", "--json").json["memory_id"]
    (file,) = (user_home / ".nacre" / "vault").rglob("bread-is-baked-at-dawn.md")
    doubt = f"links: [{{rel: contradicts, to: {old}}}]"
    file.write_text(
        file.read_text(encoding="utf-8").replace("---\n", f"---\n{doubt}\n", 1), encoding="utf-8"
    )
    nacre("ingest")
    assert _vectors(nacre) == "ok"
    assert [
        item["memory"]["id"]
        for item in nacre("review", "--only", "conflict", "--json").json["items"]
    ] == [old]
    nacre("review", settled, old, *(["keep-new"] if settled == "resolve" else []))
    assert _vectors(nacre) == "ok"
    remaining = {memory["id"] for memory in nacre("list", "--json").json["memories"]}
    assert (old in remaining, new in remaining) == (settled == "keep", True)


def _vectors(nacre: Nacre) -> str:
    state: str = {
        check["name"]: check for check in nacre("admin", "doctor", "--json").json["checks"]
    }["vectors"]["state"]
    return state
