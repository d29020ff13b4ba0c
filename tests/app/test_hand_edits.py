"""The next command reads manual edits of vault files without loss."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from nacre.home.home import Home
from nacre.memories.edit import scan
from nacre.values.memory import Kind, Memory
from tests.app.conftest import World, leave_pending

Edit = Callable[[Path, str], None]


def _in_place(path: Path, text: str) -> None:
    with path.open("r+", encoding="utf-8") as file:
        file.truncate()
        file.write(text)


def _atomically(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.k3f9")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def _like_vim(path: Path, text: str) -> None:
    (path.parent / "4913").touch()
    (path.parent / "4913").unlink()
    path.with_name(f".{path.name}.swp").write_bytes(b"b0VIM 9.0\0" + os.urandom(64))
    path.rename(path.with_name(f"{path.name}~"))
    path.write_text(text, encoding="utf-8")


def _like_emacs(path: Path, text: str) -> None:
    path.with_name(f".#{path.name}").symlink_to("someone@example.4711:1")
    path.with_name(f"#{path.name}#").write_text("half a sen", encoding="utf-8")
    shutil.copy(path, path.with_name(f"{path.name}~"))
    _in_place(path, text)


def _keeping_its_time(path: Path, text: str) -> None:
    before = path.stat()
    _in_place(path, text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _with_windows_lines(path: Path, text: str) -> None:
    path.write_bytes(("\ufeff" + text.replace("\n", "\r\n")).encode("utf-8"))


EDITS = [_in_place, _atomically, _like_vim, _like_emacs, _keeping_its_time, _with_windows_lines]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__.strip("_"))
def test_recall_sees_an_edit_by_any_editor(world: World, edit: Edit) -> None:
    with world.open() as memory:
        outcome = memory.store("The staging server is called heron.", subject="Staging server")
    file = world.memory_file(outcome.memory_id)
    edit(file, file.read_text(encoding="utf-8").replace("heron", "stork"))
    with world.open() as memory:
        hits = memory.recall("what is the staging server called?").hits
        assert [(hit.memory.id, hit.memory.content) for hit in hits] == [
            (outcome.memory_id, "The staging server is called stork.")
        ]
        assert len(memory.list()) == 1
    assert _problems(world) == []


def test_nacre_preserves_windows_line_ends_and_byte_order_mark(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The staging server is called heron.", subject="Staging server")
    file = world.memory_file(outcome.memory_id)
    _with_windows_lines(file, file.read_text(encoding="utf-8"))
    with world.open() as memory:
        memory.edit(outcome.memory_id, importance=9, tags=["staging"])
    data = file.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf---\r\n")
    assert b"importance: 9\r\n" in data
    assert b"tags: [staging]\r\n" in data
    assert data.count(b"\r\n") == data.count(b"\n")


def test_editors_hidden_folders_contain_no_memories(world: World) -> None:
    for path in (
        ".obsidian/plugins/note.md",
        ".trash/old.md",
        "projects/acme/.stversions/fact/old.md",
        ".git/x.md",
    ):
        world.write(path, "Not a memory.")
    with world.open() as memory:
        assert memory.list() == []


def test_note_moved_to_an_editors_trash_is_retired_and_restored(
    world: World,
) -> None:
    with world.open() as memory:
        outcome = memory.store("The spare key hangs in the shed.", subject="Spare key")
    file = world.memory_file(outcome.memory_id)
    trash = world.vault / ".trash"
    trash.mkdir()
    file.rename(trash / file.name)
    with world.open() as memory:
        assert memory.list() == []
        retired = memory.get(outcome.memory_id).retired
        assert retired is not None
        assert retired.reason == "its file was deleted"
    (trash / file.name).rename(file)
    with world.open() as memory:
        assert [item.id for item in memory.list()] == [outcome.memory_id]
    assert _actions(world, outcome.memory_id) == ["store", "retire", "restore"]


def test_deleted_file_is_logged_separately_from_edits(
    world: World,
) -> None:
    with world.open() as memory:
        barrel = memory.store("The rain barrel leaks.", subject="Rain barrel")
        aluminium = memory.store("The ladder is aluminium.", subject="Ladder")
        moved = memory.store("The hose is ten metres long.", subject="Hose")
    world.memory_file(barrel.memory_id).unlink()
    ladder, hose = world.memory_file(aluminium.memory_id), world.memory_file(moved.memory_id)
    ladder.write_text(ladder.read_text().replace("aluminium", "wood"))
    hose.rename(hose.with_name("garden-hose.md"))
    with world.open() as memory:
        (removal,) = [item for item in memory.log() if item.operation.action == "remove"]
        (edit,) = [item for item in memory.log() if item.operation.action == "edit"]
        assert removal.memories == (barrel.memory_id,)
        assert removal.operation.why == "its file was deleted"
        assert set(edit.memories) == {aluminium.memory_id, moved.memory_id}
        assert memory.get(barrel.memory_id).retired
        memory.undo(removal.operation.id)
        assert memory.get(barrel.memory_id).retired is None
        assert "wood" in memory.get(aluminium.memory_id).content
    assert world.memory_file(barrel.memory_id).is_file()


def test_case_only_rename_keeps_the_memory(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("Tea is at four.", subject="Tea")
    file = world.memory_file(outcome.memory_id)
    file.rename(file.with_name("TEA.md"))
    with world.open() as memory:
        assert [item.id for item in memory.list()] == [outcome.memory_id]
    assert not (world.vault / "retired").exists()


def test_swapped_file_names_keep_both_memories(world: World) -> None:
    with world.open() as memory:
        first = memory.store("The north gate is red.", subject="North gate")
        second = memory.store("The south gate is tin.", subject="South gate")
    north, south = world.memory_file(first.memory_id), world.memory_file(second.memory_id)
    time = north.stat().st_mtime_ns
    north.rename(north.with_name("between"))
    south.rename(north)
    north.with_name("between").rename(south)
    for file in (north, south):
        os.utime(file, ns=(time, time))
    for _ in range(2):
        with world.open() as memory:
            assert {item.id: item.content for item in memory.list()} == {
                first.memory_id: "The north gate is red.",
                second.memory_id: "The south gate is tin.",
            }
    assert _problems(world) == []
    assert _actions(world, first.memory_id) == _actions(world, second.memory_id) == ["store"]


def test_rotated_file_contents_keep_three_memories(world: World) -> None:
    with world.open() as memory:
        ids = [
            memory.store(
                f"Gate {number} is closed at {number}.", subject=f"Gate {number}"
            ).memory_id
            for number in (1, 2, 3)
        ]
    files = [world.memory_file(entry) for entry in ids]
    texts = [file.read_text() for file in files]
    for file, text in zip(files, [*texts[1:], texts[0]], strict=True):
        _atomically(file, text)
    with world.open() as memory:
        assert {item.id for item in memory.list()} == set(ids)
    assert _problems(world) == []


def test_renamed_project_folder_moves_its_memories(world: World) -> None:
    with world.open() as memory:
        ids = {
            memory.store(content, project="acme-billing").memory_id
            for content in ("Invoices are numbered per year.", "Reminders are sent on Mondays.")
        }
    (world.vault / "projects/acme-billing").rename(world.vault / "projects/acme-ledger")
    with world.open() as memory:
        assert {(item.id, item.project) for item in memory.list()} == {
            (entry, "acme-ledger") for entry in ids
        }
    assert all("project: acme-ledger\n" in world.memory_file(entry).read_text() for entry in ids)
    assert not (world.vault / "projects/acme-billing").exists()


def test_folder_with_a_custom_name_stays_in_place(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("Invoices are numbered per year.", project="acme-billing")
    (world.vault / "projects/acme-billing").rename(world.vault / "projects/Acme Billing")
    for _ in range(3):
        with world.open() as memory:
            memory.edit(
                outcome.memory_id, importance=memory.get(outcome.memory_id).importance % 9 + 1
            )
    assert world.memory_file(outcome.memory_id).parent == world.vault / "projects/Acme Billing/fact"


def test_file_moved_to_the_inbox_becomes_an_inbox_item(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store(
            "Perhaps we need a second press.", subject="Second press", project="print"
        )
    target = world.vault / "inbox/second-press.md"
    target.parent.mkdir()
    world.memory_file(outcome.memory_id).rename(target)
    with world.open() as memory:
        memories = memory.list()
        assert [(item.id, item.inbox) for item in memories] == [(outcome.memory_id, True)]
    assert target.exists()


def test_moving_to_and_from_the_retired_folder_retires_and_restores(
    world: World,
) -> None:
    with world.open() as memory:
        outcome = memory.store("Releases are cut from the branch stable.", subject="Releases")
    file = world.memory_file(outcome.memory_id)
    retired_file = world.vault / "retired/global/fact/releases.md"
    retired_file.parent.mkdir(parents=True)
    file.rename(retired_file)
    with world.open() as memory:
        assert memory.recall("which branch are releases cut from?").hits == ()
    assert (
        "retired: {at: 2026-11-20T12:00:00Z, reason: its file was moved to retired/}"
        in retired_file.read_text()
    )
    retired_file.rename(file)
    with world.open() as memory:
        assert [
            hit.memory.id for hit in memory.recall("which branch are releases cut from?").hits
        ] == [outcome.memory_id]
    assert "retired:" not in file.read_text()
    assert _actions(world, outcome.memory_id) == ["store", "retire", "restore"]


def test_edited_retired_memory_stays_retired(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("Releases are cut from the branch stable.", subject="Releases")
        memory.retire(outcome.memory_id)
    file = world.memory_file(outcome.memory_id)
    _atomically(file, file.read_text().replace("stable", "release"))
    with world.open() as memory:
        assert memory.recall("which branch are releases cut from?").hits == ()
        assert memory.get(outcome.memory_id).content == "Releases are cut from the branch release."
        assert memory.get(outcome.memory_id).retired is not None


def test_edited_superseded_memory_stays_superseded(world: World) -> None:
    with world.open() as memory:
        old = memory.store(
            "The database of billing is MongoDB.", subject="Database", canonical_key="billing-db"
        )
        new = memory.store(
            "The database of billing is PostgreSQL.", subject="Database", canonical_key="billing-db"
        )
        assert new.supersedes
    file = world.memory_file(old.memory_id)
    _in_place(file, file.read_text().replace("MongoDB.", "MongoDB 7."))
    with world.open() as memory:
        assert [item.id for item in memory.list()] == [new.memory_id]
        assert memory.get(old.memory_id).content.endswith("MongoDB 7.")
        assert memory.get(old.memory_id).superseded_by == new.memory_id


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", " \r\n\t\n"])
def test_emptied_file_is_reported_and_its_memory_kept(world: World, text: str) -> None:
    with world.open() as memory:
        outcome = memory.store("The nightly job starts at two.", subject="Nightly job")
    file = world.memory_file(outcome.memory_id)
    file.write_text(text, newline="")
    with world.open() as memory:
        assert [
            hit.memory.content for hit in memory.recall("when does the nightly job start?").hits
        ] == ["The nightly job starts at two."]
    assert _problems(world) == ["global/fact/nightly-job.md: the file is empty"]
    assert file.read_bytes() == text.encode("utf-8")


def test_truncated_file_does_not_replace_the_memory(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The nightly job starts at two.", subject="Nightly job")
    file = world.memory_file(outcome.memory_id)
    whole = file.read_text()
    half = whole[: whole.index("importance")]
    file.write_text(half)
    assert _problems(world) == ["global/fact/nightly-job.md: the front matter has no end"]
    assert file.read_text() == half
    file.write_text(whole.replace("two", "three"))
    with world.open() as memory:
        assert memory.get(outcome.memory_id).content == "The nightly job starts at three."


def test_repaired_front_matter_is_read_again(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The nightly job starts at two.", subject="Nightly job")
    file = world.memory_file(outcome.memory_id)
    whole = file.read_text()
    file.write_text(whole.replace("kind: fact", "kind: [fact"))
    assert len(_problems(world)) == 1
    file.write_text(whole.replace("kind: fact", "kind: lesson"))
    with world.open() as memory:
        assert [(item.id, item.kind) for item in memory.list()] == [
            (outcome.memory_id, Kind.LESSON)
        ]
    assert _problems(world) == []


def test_copied_file_is_reported_and_becomes_another_memory(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("Tea is at four.", subject="Tea")
    file = world.memory_file(outcome.memory_id)
    shutil.copy2(file, file.with_name("tea 2.md"))
    assert _problems(world) == [
        "global/fact/tea 2.md has the same id as global/fact/tea.md; it was read as a separate memory"
    ]
    assert _problems(world) == []
    with world.open() as memory:
        memories = memory.list()
        assert [item.content for item in memories] == ["Tea is at four."] * 2
        assert outcome.memory_id in {item.id for item in memories}
        copy = next(item.id for item in memories if item.id != outcome.memory_id)
    assert [(item["of"], item["path"]) for item in _ledger(world, copy)] == [
        (outcome.memory_id, "global/fact/tea 2.md")
    ]


def test_file_moved_over_another_retires_the_overwritten_memory(world: World) -> None:
    with world.open() as memory:
        first = memory.store("The north gate is red.", subject="North gate")
        second = memory.store("The south gate is tin.", subject="South gate")
    world.memory_file(first.memory_id).replace(world.memory_file(second.memory_id))
    with world.open() as memory:
        assert [(item.id, item.content) for item in memory.list()] == [
            (first.memory_id, "The north gate is red.")
        ]
        assert memory.get(second.memory_id).content == "The south gate is tin."
        assert memory.get(second.memory_id).retired is not None


def test_edit_during_a_rewrite_keeps_both_versions(world: World) -> None:
    context = world.context()
    memory = _store_tide(context)
    file = world.vault / "global/fact/tide.md"
    leave_pending(context, [_with_content(memory, "High tide is at nine.")])
    _atomically(file, file.read_text().replace("eight", "seven"))
    scan(context)
    assert context.problems == ["global/fact/tide.md was just edited; both versions are kept"]
    with world.open() as home:
        assert {item.content for item in home.list()} == {
            "High tide is at seven.",
            "High tide is at nine.",
        }
    assert "High tide is at seven." in file.read_text()


def test_thousand_moved_files_keep_their_ids(world: World) -> None:
    for number in range(1000):
        world.write(
            f"global/fact/shelf-{number}.md",
            f"Shelf number {number} holds jars of kind {number * 7}.",
        )
    with world.open() as memory:
        before = {item.id for item in memory.list(limit=2000)}
    (world.vault / "projects/cellar").mkdir(parents=True)
    (world.vault / "global/fact").rename(world.vault / "projects/cellar/lesson")
    with world.open() as memory:
        memories = memory.list(limit=2000)
    assert {item.id for item in memories} == before
    assert {(item.project, item.kind) for item in memories} == {("cellar", Kind.LESSON)}
    assert _problems(world) == []


def test_edited_memory_gets_a_new_vector(world: World) -> None:
    world.environ["NACRE_EMBEDDING_MODEL"] = "minilm"
    with world.open() as memory:
        outcome = memory.store("The staging server is called heron.", subject="Staging server")
        memory.ingest()
    file = world.memory_file(outcome.memory_id)
    _atomically(file, file.read_text().replace("heron", "stork"))
    context = world.context()
    scan(context)
    assert context.vectors.missing()[1] == 1
    with world.open() as memory:
        memory.ingest()
    assert context.vectors.missing()[1] == 0
    assert world.embedder.embedded[-1].endswith("called stork.")


def test_invalid_utf8_file_name_is_reported_and_other_files_read(world: World) -> None:
    world.write("global/fact/tea.md", "Tea is at four.")
    folder = os.fsencode(world.vault / "global/fact")
    try:
        with open(folder + b"/caf\xe9.md", "wb") as file:
            file.write(b"Coffee is at ten.")
    except OSError:
        pytest.skip("this file system takes no such name")
    (world.vault / "global/fact" / "a\x1b[31m\nb.md").write_text("Red.")
    with world.open() as memory:
        assert [item.content for item in memory.list()] == ["Tea is at four."]
    problems = _problems(world)
    assert [problem.split(":")[0] for problem in problems] == [
        r"global/fact/a\x1b[31m\x0ab.md",
        r"global/fact/caf\xdce9.md",
    ]


@pytest.mark.parametrize("seconds", [-(2**40), 0, 2**33, 2**40])
def test_file_with_an_implausible_time_is_read(world: World, seconds: int) -> None:
    file = world.write("global/fact/tea.md", "Tea is at four.")
    try:
        os.utime(file, (seconds, seconds))
    except OSError:
        pytest.skip("this file system keeps no such time")
    with world.open() as memory:
        assert [item.content for item in memory.list()] == ["Tea is at four."]


def _store_tide(context: Home) -> Memory:
    memory = Memory(
        id=context.ids(),
        kind=Kind.FACT,
        subject="Tide",
        content="High tide is at eight.",
        created=context.now(),
        updated=context.now(),
    )
    leave_pending(context, [memory])
    scan(context)
    return memory


def _with_content(memory: Memory, content: str) -> Memory:
    return replace(memory, content=content)


def _problems(world: World) -> list[str]:
    context = world.context()
    scan(context)
    return list(context.problems)


def _ledger(world: World, memory_id: str) -> list[dict[str, str]]:
    lines = (world.vault / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    return [item for item in map(json.loads, lines) if item.get("memory") == memory_id]


def _actions(world: World, memory_id: str) -> list[str]:
    return [item["action"] for item in _ledger(world, memory_id)]


def test_file_with_carriage_return_line_ends_is_handled_normally(
    world: World,
) -> None:
    with world.open() as memory:
        outcome = memory.store("The kiln reaches 1200 degrees.", subject="Kiln", tags=["clay"])
    file = world.memory_file(outcome.memory_id)
    data = file.read_bytes().replace(b"tags: [clay]\n", b"tags: [clay]\nmood: warm\n")
    file.write_bytes(data.replace(b"1200", b"1300").replace(b"\n", b"\r"))
    new = file.with_name("glaze.md")
    new.write_bytes(b"---\rkind: fact\rtags: [clay]\r---\r# Glaze\r\rThe glaze is grey.\r")
    with world.open() as memory:
        kiln = memory.get(outcome.memory_id)
        assert (kiln.content, kiln.tags) == ("The kiln reaches 1300 degrees.", ("clay",))
        glaze = next(item for item in memory.list() if item.subject == "Glaze")
        assert (glaze.content, glaze.tags) == ("The glaze is grey.", ("clay",))
        memory.edit(kiln.id, tags=[], importance=9)
        assert memory.get(kiln.id).content == kiln.content
    assert b"mood: warm" in file.read_bytes()
    with world.open() as memory:
        kiln = memory.get(outcome.memory_id)
        assert (kiln.tags, kiln.importance, kiln.extra) == ((), 9, {"mood": "warm"})
        assert {item.id for item in memory.list()} == {kiln.id, glaze.id}


def test_file_index_is_as_recent_as_the_last_write(world: World) -> None:
    first, second = world.context(), world.context()
    stored = _store_tide(first)
    path = "global/fact/tide.md"
    states = first.files.file_states()
    assert first.files.file_states() is states
    second.files.distrust(path)
    assert first.files.file_states()[0][path] != states[0][path]
    with suppress(InterruptedError), first.database.transaction():
        first.files.forget(path)
        assert path not in first.files.file_states()[0]
        raise InterruptedError
    assert path in first.files.file_states()[0]
    assert scan(first) == 1
    assert first.files.file_states()[0] == states[0]
    first.files.forget(path)
    assert path not in first.files.file_states()[0]
    assert stored.id not in {file.memory for file in second.files.indexed().values()}


@pytest.mark.parametrize(
    "text",
    [
        b"---\nkind: rumour\n---\n\nThe tide is late.\n",
        b"---\ntags: [tide\n---\n\nLate.\n",
        b"\xff\xfe\xfa",
    ],
)
def test_invalid_memory_file_is_reported_each_time_and_reread(world: World, text: bytes) -> None:
    file = world.vault / "global" / "fact" / "rumour.md"
    _store_tide(world.context())
    file.write_bytes(text)
    problems = _problems(world)
    assert len(problems) == 1
    assert problems[0].startswith("global/fact/rumour.md: ")
    home = world.context()
    assert home.vault.times() == home.files.file_states()[0]  # no difference, so no file is read
    assert _problems(world) == problems
    (world.vault / "global" / "fact" / "honey.md").write_text("Honey is sold in jars.\n")
    assert _problems(world) == problems
    file.write_text("The tide is late.\n")
    assert _problems(world) == []
    with world.open() as memory:
        assert {"The tide is late.", "Honey is sold in jars."} <= {
            item.content for item in memory.list()
        }
    file.write_bytes(text)
    assert _problems(world) == problems
    file.unlink()
    assert _problems(world) == []
    assert not home.files.file_states()[2]


def test_database_keeps_no_content_of_an_invalid_file(
    world: World,
) -> None:
    _store_tide(world.context())
    secret = "ghp_" + "a1B2c3D4e5F6" * 3
    (world.vault / "global" / "fact" / "key.md").write_text(f"---\nkind: {secret}\n---\n\nA key.\n")
    assert len(_problems(world)) == 1
    assert not world.context().files.file_states()[2]
