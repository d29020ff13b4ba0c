"""A run in several parts is one operation, despite concurrent changes and interruptions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nacre.data.export import ImportOptions
from nacre.data.history import commit_operations
from nacre.data.imports import carry_out, plan_import
from nacre.data.undo import log, undo
from nacre.errors import ConflictError
from nacre.learn.ingest import IngestOptions, ingest
from nacre.memories.edit import scan
from nacre.memories.requests import StoreRequest
from nacre.memories.store import store
from nacre.values.reports import Progress
from tests.app.conftest import World, says
from tests.app.test_history import git, is_clean, operations_in_history

RULES = (
    "From now on always run the linter before you commit anything.",
    "Remember that the staging database is called heron and lives in Frankfurt.",
    "We decided to use Redis streams for the mailer because jobs must survive a restart.",
)
PIERS = tuple(
    f"Pier {number} is reserved for boats from berth {number * 7}." for number in range(45)
)


def read_sessions(
    world: World, between: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    """Ingest each session as a separate part, and call ``between`` after the first."""
    monkeypatch.setattr("nacre.learn.learn.BATCH_MEMORIES", 1)
    for number, rule in enumerate(RULES):
        session = f"5e55-{number:04d}"
        world.transcript(session, says("user", rule, uuid=f"u{number}", session=session))
    context = world.context()

    def notify(progress: Progress) -> None:
        if progress.stage == "learning" and progress.done == 1:
            between()

    try:
        return ingest(context, IngestOptions(vectors=False), notify).memories
    finally:
        context.database.close()


def actions(world: World) -> list[str]:
    context = world.context()
    try:
        return [item.operation.action for item in log(context)]
    finally:
        context.database.close()


def in_another_process(world: World, work: Callable[..., object], *arguments: object) -> object:
    """Call a function with a newly opened home, as another process would."""
    context = world.context()
    try:
        scan(context)
        return work(context, *arguments)
    finally:
        context.database.close()


def write_notes(path: Path) -> Path:
    """Write notes that an import reads in several parts."""
    path.mkdir(parents=True)
    (path / "MEMORY.md").write_text(
        "# Memory\n\n" + "".join(f"- {text}\n" for text in PIERS), encoding="utf-8"
    )
    return path


def test_ingest_in_parts_is_one_undoable_operation(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles: list[list[str]] = []

    def between() -> None:
        in_another_process(
            world, store, StoreRequest(content="The kettle is in the yard.", force=True)
        )
        in_another_process(world, commit_operations)
        titles.append(git(world, "log", "--format=%s").splitlines())

    memories = read_sessions(world, between, monkeypatch)
    assert len(memories) == 3
    assert actions(world) in (["store", "ingest"], ["ingest", "store"])
    assert not any("ingest" in title for title in titles[0])
    in_another_process(world, commit_operations)
    assert len(operations_in_history(world)) == 2
    assert is_clean(world)
    context = world.context()
    run = next(item.operation for item in log(context) if item.operation.action == "ingest")
    assert run.why == "learned from 3 sessions"
    undone = undo(context, run.id)
    assert sorted(step.change.memory for step in undone.steps) == sorted(memories)
    assert [item.content for item in context.memories.everything() if not item.retired] == [
        "The kettle is in the yard."
    ]
    context.database.close()


def test_import_in_parts_is_one_undoable_operation(world: World, tmp_path: Path) -> None:
    context = world.context()
    plan = plan_import(
        context, ImportOptions(path=write_notes(tmp_path / "workspace"), vectors=False)
    )
    report = carry_out(context, plan)
    assert len(report.added) == len(PIERS)
    (only,) = log(context)
    assert only.operation.action == "import"
    assert "OpenClaw" in (only.operation.why or "")
    lines = [
        json.loads(line)
        for line in (world.vault / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [(line["action"], line["count"]) for line in lines] == [("import", len(PIERS))]
    undo(context, only.operation.id)
    assert all(item.retired for item in context.memories.everything())
    context.database.close()


def test_manual_edit_during_a_run_is_committed_afterwards(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    edited: list[Path] = []

    def between() -> None:
        (path,) = (path for path in world.vault.glob("projects/*/*/*.md"))
        path.write_text(path.read_text(encoding="utf-8") + "\nSaid the owner.\n", encoding="utf-8")
        edited.append(path.relative_to(world.vault))
        in_another_process(world, commit_operations)
        assert str(edited[0]) not in git(world, "ls-files")

    read_sessions(world, between, monkeypatch)
    in_another_process(world, commit_operations)
    assert "Said the owner." in git(world, "show", f"HEAD:{edited[0]}")
    assert is_clean(world)
    order = git(world, "log", "--reverse", "--format=%s", "--", str(edited[0])).splitlines()
    assert [title.split(":")[0] for title in order] == ["ingest", "edit"]


def test_interrupted_run_is_closed_by_the_next_command(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def between() -> None:
        with pytest.raises(ConflictError, match="still running"):
            in_another_process(world, lambda context: undo(context, log(context)[0].operation.id))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_sessions(world, between, monkeypatch)
    in_another_process(world, commit_operations)
    assert [title.split(":")[0] for title in git(world, "log", "--format=%s").splitlines()] == [
        "ingest",
        "Begin the history of the vault",
    ]
    assert is_clean(world)
    assert not list(world.home.glob("run-*"))
    memories = read_sessions(world, lambda: None, monkeypatch)
    assert len(memories) == 2
    assert actions(world) == ["ingest", "ingest"]


def test_undo_of_an_ingest_keeps_project_pages(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_sessions(world, lambda: None, monkeypatch)
    context = world.context()
    (run,) = log(context)
    undo(context, run.operation.id)
    assert (world.vault / "projects" / "acme-billing" / "project.md").exists()
    context.database.close()


def test_ledger_lists_paths_once_and_each_learned_memory(world: World) -> None:
    path = world.transcript("5e55-0000", says("user", RULES[0], uuid="u0", session="5e55-0000"))
    context = world.context()
    memories = list(ingest(context, IngestOptions(paths=(path,), vectors=False)).memories)
    world.transcript("5e55-0000", says("user", RULES[1], uuid="u1", session="5e55-0000"))
    memories += ingest(context, IngestOptions(paths=(path,), vectors=False)).memories
    ingest(context, IngestOptions(paths=(path,), vectors=False, force=True))
    context.database.close()
    lines = [
        json.loads(line)
        for line in (world.vault / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [line["memory"] for line in lines] == memories
    assert [line.get("paths") for line in lines] == [[str(path)], None]
    assert actions(world) == ["ingest", "ingest"]
