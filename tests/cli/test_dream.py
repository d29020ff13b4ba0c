"""nacre dream, as people meet it."""

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
    """The file of a memory that was meant for a while, long ago."""
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
    shown = dialog("dream", answers=[("Apply this plan?", "y")], environ={"NO_COLOR": "1"})
    plan, _, done = shown.out.partition("Apply this plan?")
    assert "Expired: 1" in plan
    assert "last stated or recalled on" in plan
    assert "1 memory retired" in done
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


def test_doctor_shows_pending_dream_steps_and_stale_todos(nacre: Nacre, over: Path) -> None:
    day = f"{datetime.now(UTC) - timedelta(days=40):%Y-%m-%dT%H:%M:%SZ}"
    todo = over.parents[1] / "todo/gate.md"
    todo.parent.mkdir()
    todo.write_text(
        f"---\nsubject: Gate\nkind: todo\ncreated: {day}\nupdated: {day}\n---\nMend the gate.\n"
    )
    shown = nacre("admin", "doctor").out
    assert "1 over: nacre dream --dry-run shows them" in " ".join(shown.split())
    assert "1 open, neither stated nor recalled for 30 days: Gate (" in " ".join(shown.split())
    states = {
        check["name"]: check["state"] for check in nacre("admin", "doctor", "--json").json["checks"]
    }
    assert (states["dream"], states["todos"]) == ("ok", "warning")


def test_broken_link_is_shown_dropped_and_restored_by_undo(nacre: Nacre, user_home: Path) -> None:
    label = nacre("store", "The label is yellow.", "--json").json["memory_id"]
    jar = nacre("store", "Honey is sold in jars.", "--json").json["memory_id"]
    vault = user_home / ".nacre/vault"
    (path,) = [one for one in vault.rglob("*.md") if jar in one.read_text()]
    path.write_text(
        path.read_text().replace("\n---\n", f"\nlinks:\n- rel: related_to\n  to: {label}\n---\n", 1)
    )
    for _ in range(2):
        next(one for one in vault.rglob("*.md") if f"\nid: {label}\n" in one.read_text()).unlink()
        nacre("list")
    linked = path.read_bytes()
    plan = nacre("dream", "--dry-run").out
    assert "Broken links: 1" in plan
    assert "0 of 1 memory would be retired, and 1 link dropped." in plan
    (step,) = nacre("dream", "--dry-run", "--json").json["steps"]
    assert (step["action"], step["into"], step["links"]) == ("unlink", jar, [label])
    assert "Done: 1 link dropped." in nacre("dream", "--yes").out
    assert label not in path.read_text()
    nacre("undo", "--yes")
    assert path.read_bytes() == linked


JARS = "Honey is sold in jars of 500 g at the yard."
WITH_REASON = "At the yard honey is sold in jars of 500 g, because they stack."


def answer(request: Request) -> dict[str, Any]:
    """A writer that finds the memory with the reason to hold both, and a probe neither the same nor over."""
    lines = [
        json.loads(line)
        for line in request.body["messages"][-1]["content"].splitlines()
        if line.startswith("{")
    ]
    if "text" not in lines[0]:
        findings = {one["number"]: "holds" if "earlier" in one else "differs" for one in lines}
        findings |= {one["number"]: "same" for one in lines if one.get("statement") == WITH_REASON}
        return {
            "cases": [
                {"number": number, "finding": one, "what": ""} for number, one in findings.items()
            ]
        }
    numbers = {one["text"]: one["number"] for one in lines}
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
        shown = dialog(
            "dream",
            "--tier",
            "2",
            answers=[("Ask the writer", "y"), ("Apply this plan?", "y")],
            environ={"NO_COLOR": "1"},
        )
    assert "both tell the jar" in " ".join(shown.out.split())
    assert f"ends: {JARS}" in shown.out
    assert "1 memory retired" in shown.out
    assert [one["content"] for one in nacre("list", "--json").json["memories"]] == [WITH_REASON]


def test_similar_memories_are_listed_without_a_writer_or_changes(
    nacre: Nacre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_EMBEDDING_MODEL", "minilm")
    assert nacre("dream", "--alike").out == "No memories are similar.\n"
    nacre("store", JARS)
    nacre("store", WITH_REASON)
    nacre("store", "The extractor takes nine frames.")
    nacre("ingest")
    found = nacre("dream", "--alike", "--json").json
    assert [sorted(one["content"] for one in group) for group in found["groups"]] == [
        sorted([JARS, WITH_REASON])
    ]
    assert found["total"] == 1
    assert JARS in nacre("dream", "--alike").out
    assert len(nacre("list", "--json").json["memories"]) == 3


@pytest.fixture
def waits(nacre: Nacre, user_home: Path) -> Path:
    """The file of a memory in the inbox that names the one project there is."""
    nacre("list")
    vault = user_home / ".nacre/vault"
    (vault / "projects/hivelog").mkdir(parents=True)
    (vault / "projects/hivelog/project.md").write_text("---\nname: hivelog\n---\n# Hivelog\n")
    path = vault / "inbox/scales.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("---\nsubject: Scales\n---\nThe scales of hivelog are read hourly.\n")
    (path.parent / "toner.md").write_text(
        "---\nsubject: Toner\n---\nThe printer needs blue toner.\n"
    )
    nacre("list")
    return path


def test_tier_three_files_memories_that_name_their_project(
    dialog: Callable[..., Outcome], nacre: Nacre, waits: Path, user_home: Path
) -> None:
    before = waits.read_bytes()
    shown = dialog(
        "dream", "--tier", "3", answers=[("Apply this plan?", "y")], environ={"NO_COLOR": "1"}
    )
    plan, _, done = shown.out.partition("Apply this plan?")
    assert "Writer: no writer is set" in plan
    assert "From the inbox to their projects: 1" in plan
    assert "→ hivelog  names hivelog" in plan
    assert "1 memory more in the inbox: project unknown" in plan
    assert "Done: 1 memory filed." in done
    assert (user_home / ".nacre/vault/projects/hivelog/fact/scales.md").exists()
    nacre("undo", "--yes")
    assert waits.read_bytes() == before


def test_tier_three_json_contains_evidence_project_and_unfiled_memories(
    nacre: Nacre, waits: Path
) -> None:
    found = nacre("dream", "--tier", "3", "--dry-run", "--json").json
    ((step,), unfiled) = found["steps"], found["unfiled"]
    assert (step["action"], step["project"], step["why"], step["ends"]) == (
        "file",
        "hivelog",
        "names hivelog",
        [],
    )
    assert (len(unfiled), found["unwritten"], found["note"]) == (
        1,
        [],
        "no writer is set: nacre writer set",
    )
    assert nacre("dream", "--tier", "3", "--no-writer", "--dry-run", "--json").json["note"] is None


def fills(request: Request) -> dict[str, Any]:
    """A writer that takes over what it is shown as notes and preferences."""
    asked = request.body["messages"][-1]["content"]
    shown = [json.loads(line) for line in asked.splitlines() if line.startswith('{"number"')]
    if "line" in shown[0]:
        borne = {one["number"]: one["line"] in one["sources"][0]["text"] for one in shown}
        findings = {
            number: "borne" if is_borne else "not_borne" for number, is_borne in borne.items()
        }
        return {
            "cases": [
                {"number": number, "finding": one, "what": ""} for number, one in findings.items()
            ]
        }
    taken = [{"text": one["text"], "numbers": [one["number"]]} for one in shown]
    return {"profile": [], "preferences": taken, "constraints": [], "relationships": []}


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
        shown = dialog(
            "dream",
            "--tier",
            "3",
            answers=[("Ask the writer", "y"), ("Apply this plan?", "y")],
            environ={"NO_COLOR": "1"},
        )
    plan, _, done = shown.out.partition("Apply this plan?")
    assert "profile.md    lines by the writer: 5, from 5 sources" in plan
    assert "- Prefer rain. (" in plan
    assert "1 page written" in done
    assert profile.read_text().startswith("# Me\n\nMine.\n\n<!-- nacre:start -->\n## Preferences\n")
    nacre("undo", "--yes")
    assert profile.read_text() == "# Me\n\nMine.\n"


def test_consolidate_is_an_alias_of_dream(nacre: Nacre) -> None:
    assert nacre("consolidate", "--dry-run").out == nacre("dream", "--dry-run").out
    assert "consolidate" not in nacre("--help").out
