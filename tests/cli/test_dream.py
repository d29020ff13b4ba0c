"""Output and effect of ``nacre dream``."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Nacre, Outcome
from tests.fakes.provider import FakeProvider, Request


@pytest.fixture
def over(nacre: Nacre, user_home: Path) -> Path:
    """Return the file of a temporary memory whose time is over."""
    nacre("list")
    day = f"{datetime.now(UTC) - timedelta(days=200):%Y-%m-%dT%H:%M:%SZ}"
    path = user_home / ".nacre/vault/global/fact/crew.md"
    path.parent.mkdir(parents=True)
    path.write_text(
        f"---\nsubject: Crew\nexpiry: temporary\ncreated: {day}\nupdated: {day}\n---\nThe crew is away.\n"
    )
    nacre("list")
    return path


def test_dream_shows_its_plan_asks_runs_and_is_undone(
    dialog: Callable[..., Outcome], nacre: Nacre, over: Path, user_home: Path
) -> None:
    before = over.read_bytes()
    outcome = dialog("dream", answers=[("Apply this plan?", "y")], environ={"NO_COLOR": "1"})
    plan, _, output = outcome.out.partition("Apply this plan?")
    assert "Expired: 1" in plan
    assert "last stated or recalled on" in plan
    assert "1 memory retired" in output
    assert not over.exists()
    (diary,) = (user_home / ".nacre/vault/dreams").iterdir()
    assert "The crew is away." in diary.read_text()
    nacre("undo", "--yes")
    assert over.read_bytes() == before
    assert "unchanged: 1 memory that you restored after a dream" in nacre("dream", "--dry-run").out


def test_declined_or_dry_run_dream_changes_nothing(
    dialog: Callable[..., Outcome], nacre: Nacre, over: Path, user_home: Path
) -> None:
    assert len(nacre("dream", "--dry-run", "--json").json["steps"]) == 1
    assert dialog("dream", answers=[("Apply this plan?", "n")]).code == 1
    assert over.exists()
    assert not (user_home / ".nacre/vault/dreams").exists()


def test_first_unattended_dream_only_plans(nacre: Nacre, over: Path) -> None:
    assert "The first dream changes nothing" in nacre("dream", "--yes").out
    assert over.exists()
    assert "1 memory retired" in nacre("dream", "--yes").out
    assert not over.exists()
    assert nacre("dream", "--yes").out.startswith("Nothing to do: ")


def test_a_first_dream_after_a_dry_run_is_carried_out(nacre: Nacre, over: Path) -> None:
    nacre("dream", "--dry-run", "--json")
    assert nacre("dream", "--yes", "--json").json["is_first"] is False
    assert not over.exists()


def test_non_interactive_dream_requires_confirmation(nacre: Nacre, over: Path) -> None:
    assert "pass --yes, or --dry-run" in nacre("dream", code=2).err
    assert over.exists()


def test_dream_of_an_unknown_project_is_an_error(nacre: Nacre, over: Path) -> None:
    assert (
        "project 'atlantis' has no memories"
        in nacre("dream", "--project", "atlantis", "--dry-run", code=3).err
    )


def test_doctor_shows_stale_todos(nacre: Nacre, over: Path) -> None:
    day = f"{datetime.now(UTC) - timedelta(days=40):%Y-%m-%dT%H:%M:%SZ}"
    todo = over.parents[1] / "todo/gate.md"
    todo.parent.mkdir()
    todo.write_text(
        f"---\nsubject: Gate\nkind: todo\ncreated: {day}\nupdated: {day}\n---\nMend the gate.\n"
    )
    output = nacre("admin", "doctor").out
    assert "1 open, neither stated nor recalled for 30 days: Gate (" in " ".join(output.split())
    states = {
        check["name"]: check["state"] for check in nacre("admin", "doctor", "--json").json["checks"]
    }
    assert states["todos"] == "warning"


JARS = "Honey is sold in jars of 500 g at the yard."
WITH_REASON = "At the yard honey is sold in jars of 500 g, because they stack."


def answer(request: Request) -> dict[str, Any]:
    """A writer that prefers the memory with a reason, and a probe that finds no equality or contradiction."""
    lines = [
        json.loads(line)
        for line in request.body["messages"][-1]["content"].splitlines()
        if line.startswith("{")
    ]
    if "text" not in lines[0]:
        findings = {item["number"]: "holds" if "earlier" in item else "differs" for item in lines}
        findings |= {
            item["number"]: "same" for item in lines if item.get("statement") == WITH_REASON
        }
        return {
            "cases": [
                {"number": number, "finding": item, "what": ""} for number, item in findings.items()
            ]
        }
    numbers = {item["text"]: item["number"] for item in lines}
    both = [numbers[JARS], numbers[WITH_REASON]]
    return {
        "merges": [{"numbers": both, "keep": both[1], "words": None, "why": "both tell the jar"}],
        "over": [],
    }


def test_writer_is_called_after_consent_and_results_are_applied(
    dialog: Callable[..., Outcome], nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_EMBEDDING_MODEL", "minilm")
    nacre("list")
    assert "no writer is set" in nacre("dream", "--tier", "2", "--dry-run").out
    with FakeProvider(answer) as provider:
        (user_home / ".nacre/config.toml").write_text(provider.config(), encoding="utf-8")
        nacre("store", JARS)
        nacre("store", WITH_REASON)
        nacre("ingest")
        assert (
            dialog("dream", "--tier", "2", answers=[("Ask the writer", "n")]).out.count(
                "Apply this plan?"
            )
            == 0
        )
        assert not provider.requests
        outcome = dialog(
            "dream",
            "--tier",
            "2",
            answers=[("Ask the writer", "y"), ("Apply this plan?", "y")],
            environ={"NO_COLOR": "1"},
        )
    assert "both tell the jar" in " ".join(outcome.out.split())
    assert f"ends: {JARS}" in outcome.out
    assert "1 memory retired" in outcome.out
    assert [memory["content"] for memory in nacre("list", "--json").json["memories"]] == [
        WITH_REASON
    ]


def test_similar_memories_are_listed_without_a_writer_or_changes(
    nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_EMBEDDING_MODEL", "minilm")
    assert nacre("dream", "--alike").out == "No memories are similar.\n"
    nacre("store", JARS)
    nacre("store", WITH_REASON)
    nacre("store", "The extractor takes nine frames.")
    nacre("ingest")
    answer = nacre("dream", "--alike", "--json").json
    assert [sorted(item["content"] for item in group) for group in answer["groups"]] == [
        sorted([JARS, WITH_REASON])
    ]
    assert answer["total"] == 1
    assert JARS in nacre("dream", "--alike").out
    assert len(nacre("list", "--json").json["memories"]) == 3


def fills(request: Request) -> dict[str, Any]:
    """A writer that uses all notes and preferences in its prompt."""
    prompt = request.body["messages"][-1]["content"]
    records = [json.loads(line) for line in prompt.splitlines() if line.startswith('{"number"')]
    if "line" in records[0]:
        supported = {item["number"]: item["line"] in item["sources"][0]["text"] for item in records}
        findings = {
            number: "borne" if is_borne else "not_borne" for number, is_borne in supported.items()
        }
        return {
            "cases": [
                {"number": number, "finding": item, "what": ""} for number, item in findings.items()
            ]
        }
    preferences = [{"text": item["text"], "numbers": [item["number"]]} for item in records]
    return {"profile": [], "preferences": preferences, "constraints": [], "relationships": []}


def test_tier_three_shows_writer_output_and_asks_before_writing(
    dialog: Callable[..., Outcome], nacre: Nacre, user_home: Path
) -> None:
    nacre("list")
    profile = user_home / ".nacre/vault/profile.md"
    profile.write_text("# Me\n\nMine.\n")
    with FakeProvider(fills) as provider:
        (user_home / ".nacre/config.toml").write_text(provider.config(), encoding="utf-8")
        for text in ("Prefer tea.", "Prefer jars.", "Prefer bees.", "Prefer rain.", "Prefer snow."):
            nacre("store", text, "--kind", "preference")
        assert not provider.requests
        outcome = dialog(
            "dream",
            "--tier",
            "3",
            answers=[("Ask the writer", "y"), ("Apply this plan?", "y")],
            environ={"NO_COLOR": "1"},
        )
    plan, _, output = outcome.out.partition("Apply this plan?")
    assert "profile.md    lines by the writer: 5, from 5 sources" in plan
    assert "- Prefer rain. (" in plan
    assert "1 page written" in output
    assert profile.read_text().startswith("# Me\n\nMine.\n\n<!-- nacre:start -->\n## Preferences\n")
    nacre("undo", "--yes")
    assert profile.read_text() == "# Me\n\nMine.\n"


def test_consolidate_is_an_alias_of_dream(nacre: Nacre) -> None:
    assert nacre("consolidate", "--dry-run").out == nacre("dream", "--dry-run").out
    assert "consolidate" not in nacre("--help").out
