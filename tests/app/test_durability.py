"""Acknowledged changes survive crashes, full disks and rebuilds."""

from __future__ import annotations

import errno
import os
import re
import shutil
from dataclasses import replace

import apsw
import pytest

from nacre.care.database import rebuild, reset
from nacre.errors import SchemaTooNewError, UnusableStoreError, UnusableVaultError
from nacre.home.change import FEW
from nacre.home.home import Home, open_home
from nacre.memories.edit import scan
from nacre.settings import Settings
from nacre.store.maintenance import CARRIED, DERIVED
from nacre.values.memory import Intent, Kind, Link, Memory, Operation, Retirement
from tests.app.conftest import NOON, World, leave_pending, says

_OF_ONE_FILE = frozenset({"git_state", "intents", "ledger_end", "operations", "touched"})


def make_memory(memory_id: str, content: str, **more: object) -> Memory:
    values = {
        "id": memory_id,
        "kind": Kind.FACT,
        "subject": content.split(".")[0],
        "content": content,
    }
    return Memory(**values, created=NOON, updated=NOON, **more)  # type: ignore[arg-type]


def test_small_change_is_written_under_a_single_lock(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nacre.store.sqlite._MIN_LOCK_SECONDS", 0.0)  # like slow calls
    locks: list[str] = []
    context = open_home(world.settings(), observe=lambda name, _: locks.append(name))
    buoys = [
        make_memory(f"01990000-0000-7000-8000-{number:012d}", f"Buoy {number} is red.")
        for number in range(FEW)
    ]
    with context.change("store") as change:
        change.put(buoys)
        assert locks.count("write") == 1


def test_crash_between_commit_and_file_loses_nothing(world: World) -> None:
    context = world.context()
    leave_pending(
        context,
        [make_memory("01990000-0000-7000-8000-000000000001", "The vault door opens inwards.")],
    )
    context.database.close()
    assert list(world.vault.rglob("*.md")) == []

    with world.open() as memory:
        assert [item.content for item in memory.list()] == ["The vault door opens inwards."]
    assert (
        "opens inwards" in (world.vault / "global/fact/the-vault-door-opens-inwards.md").read_text()
    )
    assert world.context().files.intents() == []


def test_crash_between_file_and_intent_duplicates_nothing(
    world: World,
) -> None:
    with world.open() as memory:
        outcome = memory.store("Lunch is at noon.", subject="Lunch")
    context = world.context()
    text = world.memory_file(outcome.memory_id).read_text()
    line = '{"op": "01", "at": "2026-11-20T12:00:00Z", "action": "note"}'
    with context.database.transaction():
        context.files.intend(
            [
                Intent("write", "global/fact/lunch.md", text, None, outcome.memory_id),
                Intent("append", "ledger.jsonl", line),
                Intent("append", "ledger.jsonl", line),
            ]
        )
    scan(context)
    assert len(list(world.vault.rglob("*.md"))) == 1
    assert (world.vault / "ledger.jsonl").read_text().splitlines().count(line) == 1
    assert context.problems == []


def test_edit_conflicting_with_a_pending_write_keeps_both_versions(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The gate code is on the wall.", subject="Gate")
    context = world.context()
    present = context.memories.find(outcome.memory_id)
    assert present is not None
    leave_pending(context, [replace(present, content="The gate code is in the safe.")])
    context.database.close()
    file = world.vault / "global/fact/gate.md"
    file.write_text(file.read_text().replace("on the wall", "with the porter"))

    with world.open() as memory:
        contents = {item.content for item in memory.list()}
    assert contents == {"The gate code is in the safe.", "The gate code is with the porter."}
    assert "with the porter" in file.read_text()


def test_rebuild_from_empty_database_restores_memories_and_answers(
    world: World,
) -> None:
    world.transcript(
        "s1",
        says(
            "user",
            "Remember that the staging database is called heron and lives in Frankfurt.",
            uuid="u1",
        ),
        says("assistant", "Noted.", uuid="a1"),
        says("user", "From now on always run the linter before you commit anything.", uuid="u2"),
    )
    questions = ("where is the staging database?", "what to do before a commit?", "heron")
    with world.open() as memory:
        memory.ingest()
        memory.store(
            "The ledger is append-only.", subject="Ledger", project="acme-billing", tags=["ledger"]
        )
        first = memory.store("Backups go to the vault in Zurich.", subject="Backups")
        memory.retire(first.memory_id)
        before = memory.list()
        answers = [memory.recall(question, turns=3, update=False) for question in questions]
    for path in world.home.glob("nacre.db*"):
        path.unlink()

    rebuild(world.settings(), open_home=world.context)

    with world.open() as memory:
        assert memory.list() == before
        assert memory.get(first.memory_id).retired is not None
        for question, answer in zip(questions, answers, strict=True):
            again = memory.recall(question, turns=3, update=False)
            assert again.hits == answer.hits
            assert [(hit.turn, hit.score) for hit in again.turns] == [
                (hit.turn, hit.score) for hit in answer.turns
            ]


def test_every_table_is_derived_carried_over_or_discarded(world: World) -> None:
    context = world.context()
    names = context.database.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")  # type: ignore[attr-defined]
    context.close()
    tables = {name for (name,) in names if not re.search("_fts|_parts|_terms|^sqlite_", name)}
    kinds = [frozenset(CARRIED), DERIVED, _OF_ONE_FILE]
    assert frozenset().union(*kinds) == tables
    assert sum(map(len, kinds)) == len(tables)


def test_links_between_memories_survive_a_rebuild(world: World) -> None:
    old, new = "01990000-0000-7000-8000-000000000001", "01990000-0000-7000-8000-000000000002"
    context = world.context()
    leave_pending(context, [make_memory(old, "The build takes ten minutes.", superseded_by=new)])
    leave_pending(
        context,
        [make_memory(new, "The build takes two minutes.", links=(Link("supersedes", old),))],
    )
    scan(context)
    context.database.close()
    rebuild(world.settings(), vectors=False, open_home=world.context)
    with world.open() as memory:
        assert memory.get(new).links == (Link("supersedes", old),)
        assert [hit.memory.id for hit in memory.recall("how long does the build take?").hits] == [
            new
        ]


def test_rebuild_creates_no_memories_and_rereads_named_paths(
    world: World, tmp_path: object
) -> None:
    path = world.transcript(
        "s1", says("user", "Remember that tea is served at four in the library.", uuid="u1")
    )
    moved = world.user_home / "old-machine" / "session.jsonl"
    moved.parent.mkdir()
    path.rename(moved)
    with world.open() as memory:
        report = memory.ingest(moved)
        assert report.turns == 1
        count = len(memory.list())
    for file in world.home.glob("nacre.db*"):
        file.unlink()
    report = rebuild(world.settings(), open_home=world.context)
    assert (report.files, report.memories) == (1, ())
    with world.open() as memory:
        assert len(memory.list()) == count
        assert memory.search_sessions("tea in the library").turns[0].turn.id == "u1"


def test_rebuild_does_not_relearn_retired_or_edited_memories(world: World) -> None:
    world.transcript(
        "s1", says("user", "Remember that the release manager is the duty engineer.", uuid="u1")
    )
    with world.open() as memory:
        memory.ingest()
        memories = memory.list()
        assert len(memories) == 1
        memory.edit(memories[0].id, content="The release manager is whoever is on duty.")
        assert memory.ingest(world.user_home / ".claude").memories == ()
    for file in world.home.glob("nacre.db*"):
        file.unlink()
    with world.open() as memory:
        assert memory.ingest().memories == ()
        assert [item.content for item in memory.list()] == [
            "The release manager is whoever is on duty."
        ]
        memory.retire(memories[0].id)
    for file in world.home.glob("nacre.db*"):
        file.unlink()
    with world.open() as memory:
        assert memory.ingest().memories == ()
        assert memory.list() == []


def test_database_from_a_newer_nacre_is_refused_unchanged(world: World) -> None:
    context = world.context()
    context.database.rows("PRAGMA user_version = 9999")
    context.database.close()
    before = world.settings().database.read_bytes()
    with pytest.raises(SchemaTooNewError, match="schema 9999"):
        world.context()
    with pytest.raises(SchemaTooNewError):
        rebuild(world.settings(), open_home=world.context)
    with pytest.raises(SchemaTooNewError):
        reset(world.settings(), open_home=world.context)
    assert world.settings().database.read_bytes() == before


def test_invalid_database_file_is_reported_with_a_hint(world: World) -> None:
    world.home.mkdir()
    world.settings().database.write_text("this is not a database, it is a letter to a friend " * 40)
    with pytest.raises(UnusableStoreError, match="not a nacre database") as error:
        world.context()
    assert "rebuild" in str(error.value.hint)


def test_vault_path_to_a_file_is_refused(world: World) -> None:
    world.home.mkdir()
    world.vault.write_text("a file")
    with pytest.raises(UnusableVaultError, match="is a file"):
        world.context()


def test_backup_can_be_opened_as_a_database(world: World) -> None:
    with world.open() as memory:
        memory.store("The archive is in the cellar.", subject="Archive")
    target = world.user_home / "copies" / "nacre.db"
    world.context().database_file.backup(target)
    world.environ["NACRE_DB"] = str(target)
    with world.open() as memory:
        assert [item.subject for item in memory.list()] == ["Archive"]


def test_reset_keeps_a_copy_and_the_vault(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The archive is in the cellar.", subject="Archive")
    copy = reset(world.settings(), open_home=world.context)
    assert copy is not None
    assert copy.exists()
    with world.open() as memory:
        assert [item.id for item in memory.list()] == [outcome.memory_id]


def test_rebuild_and_reset_complete_pending_writes_first(world: World) -> None:
    for number, forget in enumerate(("rebuild", "reset")):
        context = world.context()
        memory = make_memory(
            f"01990000-0000-7000-8000-00000000000{number}", f"Pending before the {forget}."
        )
        leave_pending(context, [memory])
        context.database.close()
        if forget == "rebuild":
            rebuild(world.settings(), vectors=False, open_home=world.context)
        else:
            reset(world.settings(), open_home=world.context)
        with world.open() as home:
            assert memory.content in [item.content for item in home.list()]


def test_edit_before_a_pending_removal_is_kept(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The ladder is in the barn.", subject="Ladder")
    context = world.context()
    present = context.memories.find(outcome.memory_id)
    assert present is not None
    leave_pending(context, [replace(present, retired=Retirement(NOON, "moved"))])
    context.database.close()
    file = world.vault / "global/fact/ladder.md"
    file.write_text(file.read_text().replace("in the barn", "on the roof"))
    with world.open() as memory:
        assert "The ladder is on the roof." in [item.content for item in memory.list()]
    assert "on the roof" in file.read_text()


def test_pending_edit_of_a_deleted_file_recreates_the_file(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The kettle is red.", subject="Kettle")
    context = world.context()
    present = context.memories.find(outcome.memory_id)
    assert present is not None
    leave_pending(context, [replace(present, content="The kettle is blue.")])
    context.database.close()
    (world.vault / "global/fact/kettle.md").unlink()
    with world.open() as memory:
        assert [(item.id, item.content) for item in memory.list()] == [
            (outcome.memory_id, "The kettle is blue.")
        ]


def test_failing_write_does_not_block_other_writes(world: World) -> None:
    with world.open():
        pass
    world.vault.mkdir(exist_ok=True)
    (world.vault / "global").symlink_to(world.user_home)
    with world.open() as memory:
        memory.store("This cannot be written yet.", subject="Stuck")
        memory.store("This can.", subject="Free", project="acme")
        assert {item.subject for item in memory.list()} == {"Stuck", "Free"}
    (world.vault / "global").unlink()
    with world.open() as memory:
        assert len(memory.list()) == 2
    assert (world.vault / "global/fact/stuck.md").exists()


def test_database_and_its_side_files_are_private(world: World) -> None:
    context = world.context()
    context.memories.put(
        make_memory("01990000-0000-7000-8000-000000000009", "A row that makes the log appear.")
    )
    modes = {path.name: path.stat().st_mode & 0o777 for path in world.home.glob("nacre.db*")}
    assert set(modes.values()) == {0o600}, modes


def test_deleting_many_files_does_not_block_other_commands(world: World) -> None:
    context = world.context()
    leave_pending(
        context,
        [
            make_memory(f"01990000-0000-7000-8000-{number:012}", f"Note number {number}.")
            for number in range(1200)
        ],
    )
    scan(context)
    for path in sorted(world.vault.rglob("*.md"))[:500]:
        path.unlink()
    scan(context)
    assert sum(context.memories.counts()[kind] for kind in ("fact",)) == 700
    assert context.memories.counts()["retired"] == 500


def test_truncated_ledger_line_is_rewritten_without_leftovers(
    world: World,
) -> None:
    with world.open() as memory:
        memory.store("The lamp is lit at dusk.", subject="Lamp")
    ledger = world.vault / "ledger.jsonl"
    whole = ledger.read_bytes()
    line = '{"op": "01", "at": "2026-11-20T12:00:00Z", "action": "note"}'
    ledger.write_bytes(whole + line[:20].encode())
    context = world.context()
    with context.database.transaction():
        context.files.intend([Intent("append", "ledger.jsonl", line)])
    scan(context)
    assert ledger.read_bytes() == whole + line.encode() + b"\n"


def test_complete_ledger_line_without_a_newline_is_completed(world: World) -> None:
    with world.open() as memory:
        memory.store("The lamp is lit at dusk.", subject="Lamp")
    ledger = world.vault / "ledger.jsonl"
    whole = ledger.read_bytes()
    line = '{"op": "01", "at": "2026-11-20T12:00:00Z", "action": "note"}'
    ledger.write_bytes(whole + line.encode())
    context = world.context()
    with context.database.transaction():
        context.files.intend([Intent("append", "ledger.jsonl", line)])
    scan(context)
    assert ledger.read_bytes() == whole + line.encode() + b"\n"


def test_next_command_closes_an_operation_left_open_by_a_crash(
    world: World,
) -> None:
    with world.open() as memory:
        memory.store("The lamp is lit at dusk.", subject="Lamp")
    context = world.context()
    operation = Operation(context.ids(), NOON, "update")
    with context.database.transaction():
        context.journal.record(operation, ())
    context.database.close()
    with world.open() as memory:
        memory.list()
    assert world.context().journal.unfinished() == []
    assert operation.id in (world.vault / "ledger.jsonl").read_text()


def test_failing_rebuild_leaves_the_database_unchanged(world: World) -> None:
    world.transcript(
        "s1", says("user", "Remember that tea is served at four in the library.", uuid="u1")
    )
    with world.open() as memory:
        memory.ingest()

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(world.settings(), stop, open_home=world.context)
    with world.open() as memory:
        assert memory.search_sessions("tea in the library").turns[0].turn.id == "u1"


@pytest.mark.parametrize("cause", [apsw.CantOpenError(), OSError(errno.ENOSPC, "full")])
def test_rebuild_keeps_a_database_unreadable_on_a_full_disk(world: World, cause: Exception) -> None:
    with world.open() as memory:
        memory.store("Tea is served at four.", subject="Tea")
    before = world.settings().database.read_bytes()

    def open_home_on_full_disk(settings: Settings) -> Home:
        if settings.database == world.settings().database:
            raise UnusableStoreError("the disk is full") from cause
        return world.context(settings)

    with pytest.raises(UnusableStoreError, match="full"):
        rebuild(world.settings(), open_home=open_home_on_full_disk)
    assert world.settings().database.read_bytes() == before


def test_memories_stored_during_a_rebuild_are_kept(world: World) -> None:
    world.transcript(
        "s1", says("user", "Remember that tea is served at four in the library.", uuid="u1")
    )
    with world.open() as memory:
        memory.ingest()
    late = make_memory(
        "01990000-0000-7000-8000-000000000007", "The late guest sleeps in the blue room."
    )

    def meanwhile(_: object) -> None:
        context = world.context()
        if context.memories.find(late.id) is None:
            leave_pending(context, [late])
        context.database.close()

    rebuild(world.settings(), meanwhile, open_home=world.context)
    with world.open() as memory:
        assert late.content in [item.content for item in memory.list()]


def test_handwritten_note_keeps_its_date_through_a_rebuild(
    world: World,
) -> None:
    with world.open():
        pass
    path = world.write("global/fact/heating.md", "# Heating\n\nThe heating is bled in October.\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    with world.open() as memory:
        (before,) = memory.list()
    rebuild(world.settings(), vectors=False, open_home=world.context)
    with world.open() as memory:
        assert memory.list() == [before]
    assert before.created.year == 2023


def test_closing_a_home_never_fails(world: World) -> None:
    context = world.context()
    context.memories.put(
        make_memory("01990000-0000-7000-8000-000000000009", "A row that makes the log appear.")
    )
    shutil.rmtree(world.home)
    context.database.close()


def test_applied_pending_write_leaves_no_temporary_file(world: World) -> None:
    with world.open() as memory:
        stored = [
            memory.store(f"Lamp {number} is lit at dusk.", subject=f"Lamp {number}")
            for number in range(3)
        ]
    context = world.context()
    files = [world.memory_file(outcome.memory_id) for outcome in stored]
    with context.database.transaction():
        context.files.intend(
            [
                Intent(
                    "write",
                    str(file.relative_to(world.vault)),
                    file.read_text(),
                    None,
                    outcome.memory_id,
                )
                for file, outcome in zip(files, stored, strict=True)
            ]
        )
    (files[0].parent / f".{files[0].name}.tmp").write_text("half of it")
    scan(context)
    assert context.files.intents() == []
    assert [path.name for path in world.vault.rglob(".*.tmp")] == []
