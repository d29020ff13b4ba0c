"""Input of any size or form is read within limits, and files stay inside the vault."""

from __future__ import annotations

import json
import os
import subprocess
import unicodedata
from pathlib import Path

import pytest

from nacre.base.yaml import MAX_CHARACTERS, MAX_DEPTH, MAX_EVENTS
from nacre.errors import InvalidMemoryError, InvalidSettingsError
from nacre.memories.edit import scan
from nacre.vault.files import MAX_FILE_BYTES
from tests.app.conftest import World, says

LAUGHS = "a: &a [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n" + "".join(
    f"{chr(98 + level)}: &{chr(98 + level)} [{', '.join([f'*{chr(97 + level)}'] * 9)}]\n"
    for level in range(12)
)

BOMBS = {
    "alias expansion": (LAUGHS + "subject: *m", "anchors and aliases"),
    "an alias of itself": ("extra: &x [*x]", "anchors and aliases"),
    "an anchor alone": ("subject: &a words", "anchors and aliases"),
    "merge keys": ("base: {kind: todo}\n<<: {kind: fact}", "merge keys"),
    "a key twice": ("kind: fact\nkind: todo", "'kind' occurs twice"),
    "a key twice, deeper": ("source: {session: a, session: b}", "'session' occurs twice"),
    "python objects": (
        "subject: !!python/object/apply:os.system [touch /tmp/pwned]",
        "tags (!) are not supported",
    ),
    "a tag of YAML's own": ("importance: !!int 8", "tags (!) are not supported"),
    "flow lists in each other": ("tags: " + "[" * 100_000, "nested too deeply"),
    "mappings in each other": ("x: " + "{a: " * 1_000 + "}" * 1_000, "nested too deeply"),
    "block lists in each other": ("x:\n  " + "- " * 100_000 + "a", "nested too deeply"),
    "one level too many": (
        "x: " + "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "nested too deeply",
    ),
    "a huge list": (f"tags: [{'x, ' * MAX_EVENTS}x]", "more than 20,000 values"),
    "a huge text": (f"subject: {'x' * MAX_CHARACTERS}", "longer than 256,000 characters"),
    "a huge key": (f"{'k' * 2_000}: x", "broken YAML"),
    "a list as key": ("? [a, b]\n: c", "a key is not a plain word"),
    "two documents": ("kind: fact\n...\nkind: todo", ""),
    "a directive": ("%YAML 1.1", ""),
    "zero bytes": ("subject: a\0b", "zero bytes"),
    "a control character": ("subject: a\x07b", "control characters"),
    "no mapping": ("- a\n- b", "not a list of keys and values"),
    "one mapping in braces": ("{kind: fact, subject: a}", "not a list of keys and values"),
    "a number without end": (f"importance: {'9' * 10_000}", "importance"),
    "not a number": ("importance: .nan", "importance must be a number"),
    "a number that Python reads": ("confidence_score: nan", "confidence_score must be a number"),
    "a time that no calendar has": ("created: 2026-13-45T99:99:99Z", "created is not a date"),
    "an id that is a path": ("id: ../../etc/passwd", "is not a valid id"),
    "an id of two lines": ('id: "a\\nb"', "is not a valid id"),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_unsafe_front_matter_is_reported_and_other_files_still_load(
    world: World, bomb: str
) -> None:
    front, complaint = BOMBS[bomb]
    world.write("global/fact/bomb.md", f"---\n{front}\n---\nWords.\n")
    world.write("global/fact/tea.md", "Tea is at four.")
    with world.open() as memory:
        assert [item.content for item in memory.list()] == ["Tea is at four."]
    problems = _problems(world)
    assert len(problems) == 1
    assert problems[0].startswith("global/fact/bomb.md: ")
    assert complaint in problems[0]
    assert len(problems[0]) < 300


def test_memory_with_an_out_of_range_time_is_listed(world: World) -> None:
    world.write(
        "global/fact/tea.md", "---\ncreated: 0001-01-01T00:00:00+23:59\n---\nTea is at four.\n"
    )
    with world.open() as memory:
        assert [item.content for item in memory.list()] == ["Tea is at four."]
    assert _problems(world) == []


@pytest.mark.parametrize("bomb", BOMBS)
def test_unsafe_project_page_does_not_affect_memories(world: World, bomb: str) -> None:
    world.write("projects/acme/project.md", f"---\n{BOMBS[bomb][0]}\n---\n# Acme\n")
    with world.open() as memory:
        memory.store("Tea is at four.", project="acme")
        assert [item.project for item in memory.list()] == ["acme"]


@pytest.mark.parametrize(
    "bomb", [bomb for bomb in BOMBS if bomb != "zero bytes"]
)  # zero bytes make the file binary
def test_unsafe_front_matter_in_an_ingested_note_is_text(
    world: World, tmp_path: Path, bomb: str
) -> None:
    note = tmp_path / "note.md"
    note.write_text(f"---\n{BOMBS[bomb][0]}\n---\n# Tea\n\nTea is at four.\n", encoding="utf-8")
    with world.open() as memory:
        report = memory.ingest(note, vectors=False)
        assert not report.problems
        assert any(
            "Tea is at four." in hit.turn.text
            for hit in memory.search_sessions("when is tea?").turns
        )


def test_unusual_front_matter_values_survive_an_edit_unchanged(world: World) -> None:
    world.write(
        "global/fact/odd.md",
        "---\nsubject: 'yes'\nwhen: 2026-13-45\nbig: "
        + "9" * 9_000
        + "\noctal: 0755\nsexagesimal: 190:20:30\n"
        "nothing: ~\nfloat: 1e999\ndeep: {a: [1, {b: c}]}\n---\nWords.\n",
    )
    with world.open() as memory:
        odd = memory.list()[0]
        memory.edit(odd.id, importance=9)
    text = world.memory_file(odd.id).read_text()
    assert "when: 2026-13-45\nbig: 9999" in text
    assert (
        "octal: 0755\nsexagesimal: 190:20:30\nnothing: ~\nfloat: 1e999\ndeep: {a: [1, {b: c}]}\n"
        in text
    )
    assert "importance: 9\n" in text


def test_file_larger_than_the_limit_is_not_read(world: World) -> None:
    file = world.write("global/fact/huge.md", "x")
    with file.open("r+b") as stream:
        stream.truncate(1_000_000_000)  # a sparse file of a gigabyte
    assert _problems(world) == ["global/fact/huge.md: it is larger than 2 MB"]
    with pytest.raises(InvalidMemoryError, match="larger than"):
        world.context().vault.read("global/fact/huge.md")
    assert MAX_FILE_BYTES < 3_000_000


def test_maximum_length_memory_survives_a_rebuild(world: World) -> None:
    content = "word " * 199_999 + "word."
    with world.open() as memory:
        outcome = memory.store(content, subject="Long")
    for path in world.home.glob("nacre.db*"):
        path.unlink()
    with world.open() as memory:
        assert memory.get(outcome.memory_id).content == content


def test_long_texts_with_a_common_prefix_are_separate_memories(world: World) -> None:
    shelves = "Shelf 1 holds jars, shelf 2 holds tins, shelf 3 holds seeds. " * 100
    with world.open() as memory:
        first = memory.store(f"{shelves} The key hangs in the shed.", subject="Shelves")
        second = memory.store(f"{shelves} The lamp stands in the hall.", subject="Shelves")
        assert {item.id for item in memory.list()} == {first.memory_id, second.memory_id}


def test_large_similar_tables_of_numbers_are_stored_separately(world: World) -> None:
    with world.open() as memory:  # a full comparison would take hours
        memory.store("1 " * 60_000, subject="First table")
        memory.store("1 " * 60_000 + "2", subject="Second table")
        assert len(memory.list()) == 2


LONG = {
    "a heading of spaces": "# Tea" + " " * 900_000 + "b",
    "a heading of marks": "# Tea" + " #" * 400_000 + "b",
    "an open command": "<command-name>" * 60_000,
    "an open shell": "<bash-input>" * 60_000,
}
"""Texts that take hours with a backtracking expression."""


@pytest.mark.parametrize("text", LONG)
def test_long_lines_are_read_without_problems(world: World, tmp_path: Path, text: str) -> None:
    world.write("global/fact/tea.md", LONG[text])
    note = tmp_path / "note.md"
    note.write_text(f"{LONG[text]}\n\nTea is at four.\n", encoding="utf-8")
    path = world.transcript("talk", says("user", LONG[text], uuid="u1"))
    with world.open() as memory:
        assert not memory.ingest(note, path, vectors=False).problems
        assert len(memory.list()) == 1


PLACES = [
    "../../outside",
    "/etc/passwd",
    "..\\..\\outside",
    "..",
    ".",
    "a/../../b",
    "\uff0e\uff0e\uff0foutside",
    "\u2025/x",
    "\u202egnp.exe",
    "con",
    "NUL.txt",
    "lpt1",
    "com\u00b9",
    "trailing. ",
    " .hidden",
    "a\0b",
    "a\nb",
    "~",
    "$HOME",
    "x" * 300,
    "\U00020000" * 300,
    "file:///etc",
    "-rf",
    "C:\\Windows",
    "ﷺ" * 40,
]


@pytest.mark.parametrize("name", PLACES, ids=ascii)
def test_files_stay_inside_the_vault_for_any_project_or_subject(world: World, name: str) -> None:
    before = {path for path in world.user_home.parent.rglob("*") if world.home not in path.parents}
    with world.open() as memory:
        memory.store("Tea is at four.", subject=name.strip() or "x", project=name)
        memories = memory.list()
    world.write(
        "inbox/note.md",
        f"---\nproject: {json.dumps(name)}\nsubject: {json.dumps(name)}\n---\nMilk is cold.\n",
    )
    world.transcript(
        "talk",
        says(
            "user",
            "Remember that the staging cluster is rebuilt on Sundays.",
            uuid="u1",
            cwd=f"/code/{name}",
        ),
    )
    with world.open() as memory:
        memory.ingest(vectors=False)
        for item in memory.list():
            memory.edit(item.id, importance=item.importance % 9 + 1)
    after = {path for path in world.user_home.parent.rglob("*") if world.home not in path.parents}
    assert after - before <= {
        world.home,
        *(world.user_home / ".claude").rglob("*"),
        world.user_home / ".claude",
    }
    assert len(memories) == 1
    for path in world.vault.rglob("*"):
        name_in_vault = path.relative_to(world.vault).as_posix()
        assert name_in_vault.isprintable()
        assert len(os.fsencode(path.name)) <= 143
        assert unicodedata.is_normalized("NFC", name_in_vault)
        assert path.stem.lower() not in {"con", "nul", "lpt1", "com1", "aux", "prn"}


def test_project_in_front_matter_moves_the_file_inside_the_vault(
    world: World,
) -> None:
    with world.open() as memory:
        outcome = memory.store("Quokkas live on Rottnest.", project="zoo")
    file = world.memory_file(outcome.memory_id)
    file.write_text(file.read_text().replace("project: zoo", "project: ../../../outside"))
    with world.open() as memory:
        assert [item.project for item in memory.list()] == ["outside"]
    assert world.memory_file(outcome.memory_id).parent == world.vault / "projects/outside/fact"


@pytest.mark.parametrize(
    "path", ["../x.md", "/etc/passwd", "global/../../x.md", "a//b.md", "", "a/\0.md"]
)
def test_vault_rejects_paths_outside_its_folder(world: World, path: str) -> None:
    vault = world.context().vault
    for use in (
        vault.read,
        vault.stat,
        vault.remove,
        lambda path: vault.write(path, "x", base=None),
    ):
        with pytest.raises(InvalidMemoryError, match="outside the vault"):
            use(path)
    with pytest.raises(InvalidMemoryError, match="outside the vault"):
        vault.append(path, "x")


def test_vault_does_not_follow_a_folder_replaced_by_a_link(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "tea.md").write_text("Tea is at five.")
    world.write("global/fact/tea.md", "Tea is at four.")
    context = world.context()
    (world.vault / "global/fact").rename(world.vault / "global/away")
    (world.vault / "global/fact").symlink_to(outside)
    for use in (
        lambda: context.vault.read("global/fact/tea.md"),
        lambda: context.vault.write("global/fact/new.md", "x", base=None),
        lambda: context.vault.remove("global/fact/tea.md"),
    ):
        with pytest.raises(InvalidMemoryError, match="symbolic link"):
            use()
    assert [path.name for path in outside.iterdir()] == ["tea.md"]


def test_hard_link_is_read_without_changing_the_shared_outside_file(
    world: World, tmp_path: Path
) -> None:
    outside = tmp_path / "note.md"
    outside.write_text("Tea is at four.")
    (world.vault / "global/fact").mkdir(parents=True)
    world.vault.chmod(0o700)
    os.link(outside, world.vault / "global/fact/tea.md")
    with world.open() as memory:
        memories = memory.list()
        memory.edit(memories[0].id, content="Tea is at five.")
    assert outside.read_text() == "Tea is at four."


def test_pipes_in_the_vault_are_reported_without_blocking(world: World) -> None:
    world.write("global/fact/tea.md", "Tea is at four.")
    os.mkfifo(world.vault / "global/fact/pipe.md")
    os.mkfifo(world.vault / "ledger.jsonl")
    (world.vault / "projects/acme").mkdir(parents=True)
    os.mkfifo(world.vault / "projects/acme/project.md")
    with world.open() as memory:
        assert [item.content for item in memory.list()] == ["Tea is at four."]
    assert "global/fact/pipe.md: it is not a regular file" in _problems(world)


def test_deeply_nested_folders_are_read_completely(world: World) -> None:
    deep = world.vault / "global" / "fact"
    deep.mkdir(parents=True)
    world.vault.chmod(0o700)
    before = os.open(deep, os.O_RDONLY)
    try:
        for _ in range(3_000):
            os.mkdir("d", dir_fd=before)
            below = os.open("d", os.O_RDONLY, dir_fd=before)
            os.close(before)
            before = below
    finally:
        os.close(before)
    world.write("global/fact/tea.md", "Tea is at four.")
    try:
        with world.open() as memory:
            assert [item.content for item in memory.list()] == ["Tea is at four."]
    finally:
        subprocess.run(
            ["rm", "-rf", str(deep)], check=True
        )  # Python's rmtree cannot descend this deep


DEEP = "[" * 100_000
RECORDS = {
    "nesting": '{"type": "user", "x": ' + DEEP + "}",
    "nesting that closes": '{"type": "user", "message": {"role": "user", "content": '
    + DEEP
    + "]" * 100_000
    + "}}",
    "glued nesting": '{"a": 1}{"b": ' + DEEP,
    "nesting in an argument": json.dumps(
        says("assistant", "x", uuid="u7")
        | {
            "message": {
                "role": "assistant",
                "id": "m7",
                "content": [
                    {
                        "type": "tool_use",
                        "id": "c",
                        "name": "Bash",
                        "input": {"command": "{" + '"a":{' * 50_000},
                    }
                ],
            }
        }
    ),
    "a number without end": '{"type": "user", "n": ' + "9" * 10_000 + "}",
    "infinity": '{"type": "user", "n": Infinity, "timestamp": 1e999}',
    "half a character": '{"type": "user", "message": {"role": "user", "content": "\\ud800"}}',
    "a key twice": '{"type": "user", "type": "assistant", "message": {}, "message": []}',
    "zero bytes": "\0" * 500,
    "a line that is no record": "null",
}


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("last", [False, True], ids=["within", "at the end, without a newline"])
def test_hostile_transcript_record_loses_only_its_own_line(
    world: World, record: str, last: bool
) -> None:
    path = world.transcript(
        "talk", says("user", "Remember that the staging cluster is rebuilt on Sundays.", uuid="u1")
    )
    with path.open("a", encoding="utf-8") as file:
        file.write(RECORDS[record] if last else f"{RECORDS[record]}\n")
    if not last:
        world.transcript(
            "talk", says("user", "Remember that the gate is closed at nine.", uuid="u2")
        )
    with world.open() as memory:
        report = memory.ingest(vectors=False)
        assert not report.problems
        turns = memory.search_sessions("staging cluster gate", limit=10).turns
        assert any("staging" in hit.turn.text for hit in turns)
        assert last or any("gate" in hit.turn.text for hit in turns)


def test_invalid_ledger_record_loses_only_its_own_line(world: World) -> None:
    with world.open() as memory:
        tea = memory.store("Tea is at four.")
        memory.retire(tea.memory_id, reason="a\u2028b\u0085c")
    with (world.vault / "ledger.jsonl").open("a", encoding="utf-8") as file:
        for record in [
            *RECORDS.values(),
            '{"op": 1, "at": [], "action": {}}',
            '{"op": "a", "at": "x", "action": "y"}',
        ]:
            file.write(f"{record}\n")
        file.write(
            '{"op": "b", "at": "2026-11-20T00:00:00Z", "action": "ingest", "paths": [1, {}, "/code/none"]}\n'
        )
        file.write(
            '{"op": "c", "at": "2026-11-20", "action": "importance", "memory": [], "steps": NaN}\n'
        )
    for path in world.home.glob("nacre.db*"):
        path.unlink()
    with world.open() as memory:
        milk = memory.store("Milk is cold.")
        for _ in range(4):
            memory.recall("is the milk cold?")
        memory.retire(milk.memory_id)
        assert memory.get(tea.memory_id).retired is not None


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 100_000,
        "a = " + "[" * 4_000 + "]" * 4_000,
        "[recall]\nlimit = " + "9" * 10_000,
        "\0",
        "\ufeff",
        "[recall]\nlimit = nan",
        "[recall]\nlimit = 3\nlimit = 4",
        "x" * 300_000,
        "[recall]\nlimit = 1979-13-99",
        "[projects]\nlabels = " + "{a=" * 5_000,
    ],
    ids=range(10),
)
def test_invalid_configuration_is_refused_with_a_short_message(world: World, text: str) -> None:
    world.home.mkdir(mode=0o700)
    (world.home / "config.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSettingsError) as error:
        world.settings()
    assert "config.toml" in error.value.message or "recall.limit" in error.value.message
    assert len(error.value.message) < 500


def _problems(world: World) -> list[str]:
    context = world.context()
    scan(context)
    return list(context.problems)


def test_ingest_does_not_follow_links_out_of_its_folder(world: World, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text(
        "# Chat\n\n## User\n\nThe code of the safe is 4711.\n", encoding="utf-8"
    )
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "own.md").write_text(
        "# Chat\n\n## User\n\nThe heron nests in the willow.\n", encoding="utf-8"
    )
    (folder / "out.md").symlink_to(tmp_path / "secret.txt")
    (folder / "within.md").symlink_to(folder / "own.md")
    (folder / "loop.md").symlink_to(folder / "loop.md")
    with world.open() as memory:
        memory.ingest(folder)
        assert memory.search_sessions("heron willow").turns
        assert not memory.search_sessions("code of the safe").turns
