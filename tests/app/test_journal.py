"""Every vault change belongs to an operation and stays in the journal until its git commit."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import nacre
from nacre.data.history import KEPT_WITHOUT_GIT, commit_in_background
from nacre.home.home import Home
from nacre.memories.edit import scan
from nacre.values.memory import Intent, Kind, Memory
from tests.app.conftest import NOON, World, leave_pending, says

KEY = "AKIA" + "Q7R2T4W6Y8Z3B5D9"


def memory_content(number: int, content: str) -> Memory:
    memory_id = f"01990000-0000-7000-8000-{number:012}"
    return Memory(memory_id, Kind.FACT, content.split(",")[0], content, created=NOON, updated=NOON)


def ledger(world: World) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (world.vault / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def journal(context: Home) -> dict[str, list[Intent]]:
    """Return the journal's items by the action and subject of their operation."""
    rows = context.database.rows("SELECT id, action, subject FROM operations ORDER BY id")
    return {f"{action}: {subject}": context.journal.written_by(op) for op, action, subject in rows}


def test_ingest_of_several_memories_is_one_ledger_line(world: World) -> None:
    world.transcript(
        "s1",
        says(
            "user",
            "Remember that the staging database is called heron and lives in Frankfurt.",
            uuid="u1",
        ),
        says("user", "From now on always run the linter before you commit anything.", uuid="u2"),
    )
    with world.open() as memory:
        memories = memory.ingest().memories
    lines = [line for line in ledger(world) if line["action"] == "ingest"]
    assert len(memories) > 1
    assert [sorted(line["memories"]) for line in lines] == [sorted(memories)]


def test_superseding_store_is_one_operation_with_both_documents(world: World) -> None:
    with world.open() as memory:
        memory.store("The ledger stores its rows in MongoDB")
        memory.store("We moved the ledger from MongoDB to PostgreSQL")
    first, second = journal(world.context()).values()
    assert [item.action for item in first] == ["write", "append"]
    items = {item.path: item for item in second if item.action == "write"}
    assert len(items) == 2
    old = next(item for path, item in items.items() if path == first[0].path)
    assert old.former == first[0].document
    assert "superseded_by" in (old.document or "")
    for item in items.values():
        assert (world.vault / item.path).read_text(encoding="utf-8") == item.document


def test_manual_edits_and_deletions_become_separate_operations(
    world: World,
) -> None:
    with world.open() as memory:
        gate_memory = memory.store("The gate is green.", subject="Gate")
        door = memory.store("The door is red.", subject="Door")
    file = world.memory_file(gate_memory.memory_id)
    file.write_text(file.read_text().replace("green", "blue"))
    world.memory_file(door.memory_id).unlink()
    world.write("global/fact/roof.md", "The roof is flat.\n")
    context = world.context()
    scan(context)
    (edit,) = [items for name, items in journal(context).items() if name.startswith("edit: ")]
    (removal,) = [items for name, items in journal(context).items() if name.startswith("remove: ")]
    paths = [{(item.action, item.path) for item in items} for items in (edit, removal)]
    assert {("seen", "global/fact/gate.md"), ("seen", "global/fact/roof.md")} <= paths[0]
    assert {("remove", "global/fact/door.md"), ("write", "retired/global/fact/door.md")} <= paths[1]
    assert not paths[0] & paths[1]
    roof = next(item for item in edit if item.path.endswith("roof.md"))
    assert roof.document == (world.vault / roof.path).read_text()
    scan(context)
    assert len(journal(context)) == 4


def test_edit_with_a_secret_is_withheld_from_the_database(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The gate is green.", subject="Gate")
    world.write("global/fact/roof.md", "The roof is flat.\n")
    file = world.memory_file(outcome.memory_id)
    clean = file.read_text()
    file.write_text(clean.replace("green", f"opened with {KEY}"))
    context = world.context()
    scan(context)
    withheld = [
        item for items in journal(context).values() for item in items if item.document is None
    ]
    assert [(item.action, item.path) for item in withheld if item.action == "seen"] == [
        ("seen", "global/fact/gate.md")
    ]
    context.database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    assert KEY.encode() not in world.settings().database.read_bytes()
    file.write_text(clean)
    scan(context)
    assert all(item.document for items in journal(context).values() for item in items)


def test_operation_interrupted_by_a_crash_gets_its_ledger_line(world: World) -> None:

    context = world.context()
    try:
        with context.change("note", subject="Cut short") as change:
            change.intend([Intent("write", "README.md", "What lies here.\n")])
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        context.database.close()
    context = world.context()
    scan(context)
    assert context.journal.unfinished() == []
    assert [line["action"] for line in ledger(world)] == ["note"]


def test_ledger_contains_an_edit_when_the_call_returns(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The gate is green.", subject="Gate")
        memory.edit(outcome.memory_id, content="The gate is blue.")
    assert [line["action"] for line in ledger(world)] == ["store", "update"]


def test_nested_change_is_a_separate_operation(world: World) -> None:
    context = world.context()
    with context.change("outer") as outer:
        with context.change("inner") as inner:
            inner.put([memory_content(1, "The lamp is green.")])
        outer.put([memory_content(2, "The gate is red.")])
    assert [line["action"] for line in ledger(world)] == ["inner", "outer"]
    assert context.journal.unfinished() == []
    assert len(list(world.vault.rglob("fact/*.md"))) == 2


def test_nested_change_is_rolled_back_and_leaves_no_file(
    world: World,
) -> None:
    context = world.context()
    with suppress(ZeroDivisionError), context.change("outer") as outer, outer.transaction():
        with context.change("inner") as inner:
            inner.put([memory_content(1, "The lamp is green.")])
        assert list(world.vault.rglob("fact/*.md")) == []
        raise ZeroDivisionError
    scan(context)
    assert journal(context) == {}
    assert list(world.vault.rglob("fact/*.md")) == []


def test_change_that_writes_files_early_is_one_operation(world: World) -> None:
    context = world.context()
    with context.change("dream") as change:
        change.put([memory_content(1, "The lamp is green.")])
        change.apply()
        assert len(list(world.vault.rglob("fact/*.md"))) == 1
        change.put([memory_content(2, "The gate is red.")])
    (line,) = ledger(world)
    assert len(line["memories"]) == 2
    assert list((world.home / "operations").iterdir()) == []


def test_parts_of_a_run_are_one_operation_despite_other_changes(
    world: World,
) -> None:
    context = world.context()
    with context.run("ingest") as run:
        with run.part() as part:
            part.put([memory_content(1, "The lamp is green.")])
        with world.open() as other:
            other.store("The roof is flat.", subject="Roof")
        with run.part() as part:
            part.put([memory_content(2, "The gate is red.")])
    assert [line["action"] for line in ledger(world)] == ["store", "ingest"]
    assert len(ledger(world)[1]["memories"]) == 2


def test_ledger_is_read_incrementally_and_fully_after_a_merge(world: World) -> None:
    context = world.context()
    leave_pending(context, [])
    end = context.vault.append("ledger.jsonl", ["one", "two"])
    end = context.vault.append(
        "ledger.jsonl", ["two", "three"], (4, end[1])
    )  # The file was replaced, so the whole file is read.
    assert (world.vault / "ledger.jsonl").read_text() == "one\ntwo\nthree\n"
    end = context.vault.append("ledger.jsonl", ["four"], end)
    Path(world.vault / "ledger.jsonl").write_text("four\none\ntwo\nthree\nfive")
    context.vault.append("ledger.jsonl", ["four", "six"], end)
    assert (world.vault / "ledger.jsonl").read_text() == "four\none\ntwo\nthree\nfive\nsix\n"


def test_journal_without_git_keeps_only_the_latest_operations(world: World) -> None:
    world.environ["NACRE_GIT_ENABLED"] = "false"
    context = world.context()
    leave_pending(context, [memory_content(0, "The lamp is green.")])
    for number in range(1, 2 * KEPT_WITHOUT_GIT + 1):
        leave_pending(context, [memory_content(0, f"The lamp is green, look number {number}.")])
    scan(context)
    assert context.journal.count_pending()[0] == 2 * KEPT_WITHOUT_GIT + 1
    commit_in_background(context)
    assert context.journal.count_pending()[0] == KEPT_WITHOUT_GIT
    assert not (world.vault / ".git").exists()
    assert len(context.journal.operations(limit=5000)) == 2 * KEPT_WITHOUT_GIT + 1


@pytest.mark.filterwarnings(
    "ignore:subprocess .* is still running", "ignore::pytest.PytestUnraisableExceptionWarning"
)
def test_background_commit_uses_its_home_despite_the_environment(
    world: World, tmp_path: Path
) -> None:
    modules = str(Path(nacre.__file__).parent.parent)
    world.environ |= {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": modules,
        "NACRE_HOME": str(tmp_path / "elsewhere"),
    }
    world.environ |= {"NACRE_GIT_BACKGROUND": "true", "NACRE_GIT_COMMIT_AFTER_SECONDS": "0"}
    context = world.context()
    leave_pending(context, [memory_content(0, "The lamp is green.")])
    commit_in_background(context)
    until = time.monotonic() + 60
    while context.journal.count_pending()[0] and time.monotonic() < until:
        time.sleep(0.05)
    assert context.journal.count_pending()[0] == 0
    assert not (tmp_path / "elsewhere").exists()


def test_secret_in_an_unknown_key_disappears_on_rewrite(
    world: World,
) -> None:
    with world.open() as memory:
        gate = memory.store("The gate is green.", subject="Gate").memory_id
        file = world.memory_file(gate)
        file.write_text(
            file.read_text().replace(
                "kind: fact", f"kind: fact\nkeypad: {KEY}\nmood: calm # by hand"
            )
        )
        memory.edit(gate, importance=9)
    text = world.memory_file(gate).read_text()
    assert KEY not in text
    assert "mood: calm # by hand" in text
    context = world.context()
    assert all(
        KEY not in (item.document or "") + (item.former or "")
        for items in journal(context).values()
        for item in items
    )
    assert context.journal.withheld() == []
