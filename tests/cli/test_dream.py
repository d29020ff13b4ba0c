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
    path.write_text(f"---\nsubject: Crew\nexpiry: temporary\ncreated: {day}\nupdated: {day}\n---\nThe crew is away.\n")
    nacre("list")
    return path


def test_a_dream_shows_its_plan_asks_does_it_and_is_undone(
    dialog: Callable[..., Outcome], nacre: Nacre, over: Path, user_home: Path
) -> None:
    before = over.read_bytes()
    shown = dialog("dream", answers=[("Do it?", "y")], environ={"NO_COLOR": "1"})
    plan, _, done = shown.out.partition("Do it?")
    assert "Meant for a while: 1" in plan
    assert "last said or recalled on" in plan
    assert "1 memory retired" in done
    assert not over.exists()
    (diary,) = (user_home / ".nacre/vault/dreams").iterdir()
    assert "The crew is away." in diary.read_text()
    nacre("undo", "--yes")
    assert over.read_bytes() == before


def test_who_says_no_or_only_looks_changes_nothing(
    dialog: Callable[..., Outcome], nacre: Nacre, over: Path, user_home: Path
) -> None:
    assert nacre("dream", "--dry-run", "--json").json["ending"] == 1
    assert dialog("dream", answers=[("Do it?", "n")]).code == 1
    assert over.exists()
    assert not (user_home / ".nacre/vault/dreams").exists()


def test_a_first_dream_that_nobody_looks_at_only_plans(nacre: Nacre, over: Path) -> None:
    assert "a first dream only plans" in nacre("dream", "--yes").out
    assert over.exists()
    assert "1 memory retired" in nacre("dream", "--yes").out
    assert not over.exists()
    assert nacre("dream", "--yes").out.startswith("Nothing to do: ")


def test_where_nobody_can_be_asked_a_dream_wants_a_yes(nacre: Nacre, over: Path) -> None:
    assert "pass --yes, or --dry-run" in nacre("dream", code=2).err
    assert over.exists()


def test_a_dream_of_a_project_that_is_not_there_is_told(nacre: Nacre, over: Path) -> None:
    assert "no memory is of 'atlantis'" in nacre("dream", "--project", "atlantis", "--dry-run", code=3).err


def test_health_shows_what_a_dream_would_end_and_which_todos_are_stale(nacre: Nacre, over: Path) -> None:
    day = f"{datetime.now(UTC) - timedelta(days=40):%Y-%m-%dT%H:%M:%SZ}"
    todo = over.parents[1] / "todo/gate.md"
    todo.parent.mkdir()
    todo.write_text(f"---\nsubject: Gate\nkind: todo\ncreated: {day}\nupdated: {day}\n---\nMend the gate.\n")
    shown = nacre("health").out
    assert "1 over: nacre dream --dry-run shows them" in " ".join(shown.split())
    assert "1 open, neither said nor recalled for 30 days: Gate (" in " ".join(shown.split())
    states = {check["name"]: check["state"] for check in nacre("health", "--json").json["checks"]}
    assert (states["dream"], states["todos"]) == ("ok", "warning")


def test_a_link_that_leads_nowhere_is_shown_dropped_and_undone(nacre: Nacre, user_home: Path) -> None:
    label = nacre("store", "The label is yellow.", "--json").json["memory"]["id"]
    jar = nacre("store", "Honey is sold in jars.", "--json").json["memory"]["id"]
    vault = user_home / ".nacre/vault"
    (path,) = [one for one in vault.rglob("*.md") if jar in one.read_text()]
    path.write_text(path.read_text().replace("\n---\n", f"\nlinks:\n- rel: related_to\n  to: {label}\n---\n", 1))
    for _ in range(2):
        next(one for one in vault.rglob("*.md") if f"\nid: {label}\n" in one.read_text()).unlink()
        nacre("list")
    linked = path.read_bytes()
    plan = nacre("dream", "--dry-run").out
    assert "Links that lead nowhere: 1" in plan
    assert "0 of 1 memory would be retired, and 1 link dropped." in plan
    (step,) = nacre("dream", "--dry-run", "--json").json["steps"]
    assert (step["action"], step["into"], step["links"]) == ("unlink", jar, [label])
    assert "first dream only plans" in nacre("dream", "--yes").out
    assert "Done: 1 link dropped." in nacre("dream", "--yes").out
    assert label not in path.read_text()
    nacre("undo", "--yes")
    assert path.read_bytes() == linked


JARS = "Honey is sold in jars of 500 g at the yard."
WITH_REASON = "At the yard honey is sold in jars of 500 g, because they stack."


def answer(request: Request) -> dict[str, Any]:
    """A writer that finds the second of two jars to hold both, and the probe neither the same nor over."""
    if "A `statement`" in json.dumps(dict(request.body)):
        findings = enumerate(("same", "differs", "holds"), 1)
        return {"cases": [{"number": number, "finding": one, "what": ""} for number, one in findings]}
    return {"merges": [{"numbers": [1, 2], "keep": 2, "words": None, "why": "both tell the jar"}], "over": []}


def test_a_writer_is_asked_only_after_a_yes_and_what_it_finds_is_shown_and_done(
    dialog: Callable[..., Outcome], nacre: Nacre, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_EMBEDDING_MODEL", "minilm")
    nacre("list")
    assert "no writer is set" in nacre("dream", "--tier", "2", "--estimate").out
    with FakeProvider(answer) as provider:
        (user_home / ".nacre/config.toml").write_text(provider.config(), encoding="utf-8")
        nacre("store", JARS)
        nacre("store", WITH_REASON)
        nacre("ingest")
        assert "2 memories in 1 group look alike" in nacre("dream", "--tier", "2", "--estimate").out
        assert dialog("dream", "--tier", "2", answers=[("Ask it?", "n")]).out.count("Do it?") == 0
        assert not provider.requests
        shown = dialog("dream", "--tier", "2", answers=[("Ask it?", "y"), ("Do it?", "y")], environ={"NO_COLOR": "1"})
    assert "both tell the jar" in " ".join(shown.out.split())
    assert "1 memory retired" in shown.out
    assert [one["content"] for one in nacre("list", "--json").json["memories"]] == [WITH_REASON]
