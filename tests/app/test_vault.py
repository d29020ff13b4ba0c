"""Vault files are authoritative: a person can write, edit, move and delete them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nacre.errors import EditConflictError, InvalidMemoryError, NotFoundError
from nacre.memories.edit import scan
from nacre.values.codec import stamp
from nacre.values.memory import Kind
from tests.app.conftest import World


def test_memory_is_stored_as_markdown_by_project_and_kind(
    world: World,
) -> None:
    with world.open() as memory:
        outcome = memory.store(
            "We run billing on PostgreSQL: the ledger needs transactions.",
            subject="Database of billing",
            kind="decision",
            project="acme-billing",
            tags=["postgres"],
        )
    file = world.vault / "projects/acme-billing/decision/database-of-billing.md"
    text = file.read_text(encoding="utf-8")
    assert text.startswith(
        f"---\nid: {outcome.memory_id}\nkind: decision\nsubject: Database of billing\n"
    )
    assert "tags: [postgres]\ncreated: 2026-11-20T12:00:00Z\n" in text
    assert text.endswith("---\nWe run billing on PostgreSQL: the ledger needs transactions.\n")
    assert file.stat().st_mode & 0o777 == 0o600
    assert world.home.stat().st_mode & 0o777 == 0o700


def test_times_keep_milliseconds_in_file_ledger_and_rebuild(
    world: World,
) -> None:
    world.clock.now += timedelta(microseconds=45_678)
    with world.open() as memory:
        outcome = memory.store("The ferry leaves at noon.", subject="Ferry")
        world.clock.now += timedelta(milliseconds=2)
        memory.retire(outcome.memory_id)
    text = world.memory_file(outcome.memory_id).read_text(encoding="utf-8")
    assert "created: 2026-11-20T12:00:00.045Z\nupdated: 2026-11-20T12:00:00.045Z\n" in text
    assert "at: 2026-11-20T12:00:00.047Z" in text
    ledger = (world.vault / "ledger.jsonl").read_text(encoding="utf-8")
    assert '"at": "2026-11-20T12:00:00.047Z", "action": "retire"' in ledger
    with world.open() as memory:
        before = memory.get(outcome.memory_id)
    world.rebuild()
    with world.open() as memory:
        assert memory.get(outcome.memory_id) == before
    assert before.created == datetime(2026, 11, 20, 12, 0, 0, 45_000, tzinfo=UTC)
    assert world.memory_file(outcome.memory_id).read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    "created",
    [
        "2026-11-20T03:12:00Z",
        "2026-11-20T03:12:00.000Z",
        "2026-11-20T03:12:00.250Z",
        "2026-11-20T03:12:00.123456Z",
        "2026-11-20T04:12:00+01:00",
        "2026-11-20",
    ],
)
def test_unchanged_time_keeps_its_written_form(world: World, created: str) -> None:
    path = world.write(
        "global/fact/ferry.md",
        f"---\nsubject: Ferry\ncreated: {created}\n---\nIt leaves at noon.\n",
    )
    with world.open() as memory:
        memory.edit("Ferry", tags=("harbour",))
    text = path.read_text(encoding="utf-8")
    assert "tags: [harbour]" in text
    assert f"created: {created}\n" in text


def test_memories_with_one_subject_get_separate_files(world: World) -> None:
    with world.open() as memory:
        for content in (
            "Deploys happen on Fridays at noon.",
            "Deploys are announced in the release channel.",
        ):
            memory.store(content, subject="Deploys")
    assert sorted(path.name for path in world.vault.rglob("*.md")) == ["deploys-2.md", "deploys.md"]


def test_unknown_keys_comments_and_key_order_survive_an_edit(world: World) -> None:
    path = world.write(
        "global/preference/indent.md",
        "---\n# how I like it\nreviewed: by me  # last spring\nimportance: 6\n"
        "id: 0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e81\nkind: preference\nsubject: 'Indentation'\n---\n"
        "Four spaces, always.\n",
    )
    with world.open() as memory:
        memory.edit("0198f3c2", importance=9)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[1:4] == ["# how I like it", "reviewed: by me  # last spring", "importance: 9"]
    assert "subject: 'Indentation'" in lines
    assert lines[-1] == "Four spaces, always."


def test_handwritten_file_without_front_matter_keeps_its_text(
    world: World,
) -> None:
    words = (
        "# Naming of branches\n\nBranches are called after the ticket, e.g. `ACME-12-rounding`.\n"
    )
    path = world.write("global/fact/branches.md", words)
    with world.open() as memory:
        memories = memory.list()
        hits = memory.recall("how are branches named?").hits
    assert [(item.kind, item.subject) for item in memories] == [(Kind.FACT, "Naming of branches")]
    assert [hit.memory.id for hit in hits] == [memories[0].id]
    assert path.read_text(encoding="utf-8") == (
        f"---\nid: {memories[0].id}\ncreated: {stamp(memories[0].created)}\n---\n{words}"
    )


def test_handwritten_file_keeps_its_assigned_id(world: World) -> None:
    world.write("global/fact/port.md", "The staging server listens on port 8443.")
    ids = []
    for _ in range(2):
        with world.open() as memory:
            ids.append(memory.list()[0].id)
    assert ids[0] == ids[1]


def test_recall_sees_a_manual_edit(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The staging server is called heron.", subject="Staging server")
    file = world.memory_file(outcome.memory_id)
    file.write_text(
        file.read_text(encoding="utf-8").replace("heron", "kingfisher"), encoding="utf-8"
    )
    with world.open() as memory:
        assert (
            memory.recall("what is the staging server called?")
            .hits[0]
            .memory.content.endswith("kingfisher.")
        )


def test_moved_file_changes_project_and_kind(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store(
            "Invoices are numbered per year.", subject="Invoice numbers", project="acme-billing"
        )
    source = world.memory_file(outcome.memory_id)
    target = world.vault / "projects/acme-ledger/decision/invoice-numbers.md"
    target.parent.mkdir(parents=True)
    source.rename(target)
    with world.open() as memory:
        moved = memory.list()
        assert [(item.id, item.project, item.kind) for item in moved] == [
            (outcome.memory_id, "acme-ledger", Kind.DECISION)
        ]


def test_deleted_file_becomes_a_retired_memory(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The old mail server is mx2.", subject="Mail server")
    world.memory_file(outcome.memory_id).unlink()
    with world.open() as memory:
        assert memory.list() == []
        assert memory.get(outcome.memory_id).retired is not None
    assert (
        "The old mail server is mx2."
        in (world.vault / "retired/global/fact/mail-server.md").read_text()
    )
    entries = [json.loads(line) for line in (world.vault / "ledger.jsonl").read_text().splitlines()]
    assert [(item["action"], item["memory"]) for item in entries] == [
        ("store", outcome.memory_id),
        ("retire", outcome.memory_id),
    ]


def test_retired_memory_moves_to_the_retired_folder(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("Releases are cut from the branch stable.", subject="Releases")
        memory.retire(outcome.memory_id, reason="we use trunk now")
        assert memory.recall("which branch are releases cut from?").hits == ()
    text = (world.vault / "retired/global/fact/releases.md").read_text()
    assert "retired: {at: 2026-11-20T12:00:00Z, reason: we use trunk now}" in text
    assert not (world.vault / "global/fact/releases.md").exists()


def test_invalid_yaml_is_reported_and_the_last_version_kept(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The nightly job starts at two.", subject="Nightly job")
        memory.store("Logs are kept for ninety days.", subject="Logs")
    file = world.memory_file(outcome.memory_id)
    file.write_text("---\nid: [unclosed\nkind: fact\n---\nThe nightly job starts at three.\n")
    with world.open() as memory:
        assert (
            memory.recall("when does the nightly job start?")
            .hits[0]
            .memory.content.endswith("two.")
        )
        assert len(memory.list()) == 2
    context = world.context()
    scan(context)
    assert context.problems == [
        "global/fact/nightly-job.md: broken YAML at line 3: did not find expected ',' or ']'"
    ]


@pytest.mark.parametrize(
    ("front", "complaint"),
    [
        ("importance: eleven", "importance must be a number"),
        ("importance: 11", "importance must be 1 to 10"),
        ("created: the day before", "created is not a date"),
        ("expiry: forever", "unknown expiry 'forever'"),
        ("tags: {a: b}", "tags must be a list"),
        ("links: [supersedes]", "links must be a list"),
    ],
)
def test_invalid_value_error_names_file_and_value(world: World, front: str, complaint: str) -> None:
    world.write("global/fact/odd.md", f"---\n{front}\n---\nSome words.\n")
    context = world.context()
    scan(context)
    assert len(context.problems) == 1
    assert context.problems[0].startswith("global/fact/odd.md: ")
    assert complaint in context.problems[0]


def test_file_in_a_folder_of_unknown_kind_is_reported(world: World) -> None:
    world.write("projects/acme/ideas/blue.md", "Paint it blue.")
    context = world.context()
    scan(context)
    assert context.problems == ["projects/acme/ideas/blue.md: 'ideas' is not a kind of memory"]


def test_copied_file_becomes_a_separate_memory(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("Tea is at four.", subject="Tea")
    source = world.memory_file(outcome.memory_id)
    source.with_name("tea-copy.md").write_text(source.read_text().replace("four", "five"))
    with world.open() as memory:
        ids = {item.content: item.id for item in memory.list()}
    assert set(ids) == {"Tea is at four.", "Tea is at five."}
    assert ids["Tea is at four."] == outcome.memory_id
    assert ids["Tea is at five."] in source.with_name("tea-copy.md").read_text()


def test_symbolic_links_out_of_the_vault_are_not_followed(world: World, tmp_path: Path) -> None:
    outside = tmp_path / "secret.md"
    outside.write_text("The launch code is on the fridge.")
    with world.open():
        pass
    (world.vault / "global/fact").mkdir(parents=True)
    (world.vault / "global/fact/link.md").symlink_to(outside)
    with world.open() as memory:
        assert memory.list() == []
    with pytest.raises(InvalidMemoryError, match="outside the vault"):
        world.context().vault.read("../../secret.md")
    with pytest.raises(InvalidMemoryError, match="symbolic link"):
        world.context().vault.read("global/fact/link.md")


def test_derived_pages_and_dreams_are_not_memories(world: World) -> None:
    for path in (
        "MEMORY.md",
        "profile.md",
        "identity.md",
        "projects/acme/project.md",
        "dreams/2026-11-19.md",
        ".git/x.md",
        "global/fact/oar.sync-conflict-20261120-090000-ABCDEFG.md",
        "global/fact/oar (Case Conflict).md",
        "global/fact/oar (SFConflict ines@example.org 2026-11-20-09-00-00).md",
        "global/fact/oar.conflict.md",
        "global/fact/oar (Otto's conflicted copy 2026-11-20).md",
    ):
        world.write(path, "Not a memory.")
    with world.open() as memory:
        assert memory.list() == []


def test_write_does_not_overwrite_an_unseen_edit(world: World) -> None:
    context = world.context()
    path = "global/fact/a.md"
    context.vault.write(path, "one", base=None)
    with pytest.raises(EditConflictError):
        context.vault.write(path, "two", base=b"another version")
    assert (world.vault / path).read_text() == "one"


def test_memory_is_found_by_id_prefix_or_subject(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The office is on the third floor.", subject="Office")
        assert memory.get(outcome.memory_id[:13]).id == outcome.memory_id
        assert memory.get("office").id == outcome.memory_id
        with pytest.raises(NotFoundError):
            memory.get("ffffffff")


def test_secrets_are_redacted_before_the_file_is_written(world: World) -> None:
    token = "ghp_" + "a1B2" * 9
    with world.open() as memory:
        memory.store(f"The deploy token is {token}.", subject=f"Token {token}", tags=["deploy"])
        memory.retire(memory.list()[0].id, reason=f"leaked {token}")
    for file in world.home.rglob("*"):
        if file.is_file():
            assert token.encode() not in file.read_bytes(), file


def test_replaced_file_content_replaces_the_memory(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("Deploys happen on Fridays.", subject="Deploys")
    world.memory_file(outcome.memory_id).write_text(
        "# Deploys\n\nDeploys happen whenever the tests pass.\n"
    )
    with world.open() as memory:
        assert [(item.id, item.content) for item in memory.list()] == [
            (outcome.memory_id, "Deploys happen whenever the tests pass.")
        ]


def test_restored_file_reactivates_its_memory(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("The spare key hangs in the shed.", subject="Spare key")
    file = world.memory_file(outcome.memory_id)
    text = file.read_text()
    file.unlink()
    with world.open() as memory:
        assert memory.list() == []
    file.write_text(text)
    with world.open() as memory:
        assert [item.id for item in memory.list()] == [outcome.memory_id]
    assert list((world.vault / "retired").rglob("*.md")) == []


def test_temporarily_missing_vault_folder_retires_nothing(world: World) -> None:
    with world.open() as memory:
        for number in range(30):
            memory.store(f"Shelf number {number} holds jars.", subject=f"Shelf {number}")
    away = world.home / "away"
    (world.vault / "global").rename(away)
    context = world.context()
    scan(context)
    assert "30 of 30 memory files are missing at once" in context.problems[0]
    away.rename(world.vault / "global")
    with world.open() as memory:
        assert len(memory.list()) == 30


def test_new_files_with_the_same_id_are_separate_memories(world: World) -> None:
    text = "---\nid: 0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e81\n---\nThe well is {}.\n"
    world.write("global/fact/a.md", text.format("deep"))
    world.write("global/fact/b.md", text.format("dry"))
    with world.open() as memory:
        assert {item.content for item in memory.list()} == {"The well is deep.", "The well is dry."}


def test_subject_heading_is_not_content_before_or_after_edits(world: World) -> None:
    world.write("global/fact/well.md", "# The old well\n\nIt is deep.\n")
    contents = []
    for importance in (None, 9):
        with world.open() as memory:
            if importance:
                memory.edit("The old well", importance=importance)
        for path in world.home.glob("nacre.db*"):
            path.unlink()
        with world.open() as memory:
            contents.append(memory.list()[0].content)
    assert contents == ["It is deep.", "It is deep."]


def test_byte_order_mark_does_not_hide_the_front_matter(world: World) -> None:
    world.write(
        "global/fact/bom.md",
        "\ufeff---\nid: 0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e81\nsubject: Marked\n---\nWords.\n",
    )
    with world.open() as memory:
        assert [(item.id, item.subject) for item in memory.list()] == [
            ("0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e81", "Marked")
        ]


def test_deeply_nested_front_matter_does_not_affect_other_files(world: World) -> None:
    world.write("global/fact/absurd.md", f"---\ntags: {'[' * 3000}\n---\nWords.\n")
    with world.open() as memory:
        assert memory.recall("words").hits == ()
        memory.store("Other words are fine.")
        assert len(memory.list()) == 1


def test_secret_in_a_handwritten_file_reaches_neither_index_nor_model(world: World) -> None:
    token = "ghp_" + "Qw7" * 12
    world.write("global/fact/token.md", f"The deploy token is {token}, keep it.\n")
    with world.open() as memory:
        memory.ingest()
        assert "[REDACTED" in memory.list()[0].content
    assert token.encode() not in (world.home / "nacre.db").read_bytes()
    assert all(token not in text for text in world.embedder.embedded)


def test_repaired_file_disappears_from_the_problems(world: World) -> None:
    path = world.write("global/fact/odd.md", "---\nimportance: eleven\n---\nSome words.\n")
    context = world.context()
    scan(context)
    assert len(context.problems) == 1
    path.write_text("---\nimportance: 8\n---\nSome words.\n")
    scan(context)
    assert context.problems == []


def test_retired_statement_can_be_stored_again(world: World) -> None:
    with world.open() as memory:
        first = memory.store("The gate stays open at night.")
        memory.retire(first.memory_id)
        outcome = memory.store("The gate stays open at night.")
        assert outcome.action == "stored"
        assert [hit.memory.id for hit in memory.recall("is the gate open at night?").hits] == [
            outcome.memory_id
        ]


def test_editing_kind_and_project_in_a_file_moves_the_file(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store("Quokkas live on Rottnest.", subject="Quokka", project="zoo")
    file = world.memory_file(outcome.memory_id)
    file.write_text(
        file.read_text()
        .replace("kind: fact", "kind: lesson")
        .replace("project: zoo", "project: aquarium")
    )
    with world.open() as memory:
        assert [(item.id, item.kind, item.project) for item in memory.list()] == [
            (outcome.memory_id, Kind.LESSON, "aquarium")
        ]
    assert (
        world.memory_file(outcome.memory_id) == world.vault / "projects/aquarium/lesson/quokka.md"
    )


def test_moving_a_file_updates_its_front_matter(world: World) -> None:
    with world.open() as memory:
        outcome = memory.store(
            "Invoices are numbered per year.", subject="Invoice numbers", project="billing"
        )
    target = world.vault / "projects/ledger/decision/invoice-numbers.md"
    target.parent.mkdir(parents=True)
    world.memory_file(outcome.memory_id).rename(target)
    with world.open() as memory:
        memory.list()
    text = target.read_text()
    assert "project: ledger\n" in text
    assert "kind: decision\n" in text


def test_note_in_the_vault_root_is_a_memory(world: World) -> None:
    world.write("coffee.md", "The good coffee is behind the flour.\n")
    with world.open() as memory:
        assert [item.content for item in memory.list()] == ["The good coffee is behind the flour."]
    assert (world.vault / "coffee.md").exists()
