"""The archive stores transcripts and restores sessions and memories from them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from nacre.care import database
from nacre.data.scrub import ScrubOptions, scrub
from nacre.errors import ConflictError, DamagedArchiveError, NotFoundError
from nacre.home import archive
from nacre.home.change import Exclusions
from nacre.home.home import Home, open_home
from nacre.store import packs
from nacre.store.packs import Payload
from tests.app.conftest import World, says

KEY = "sk-ant-api03-" + "Zq7Lr2Vx9Kd4Tn6Hb8Wm3Pc5Yf1Gs0Ja" * 3
WEEK = 7 * 86_400


@pytest.fixture
def talk(world: World) -> World:
    """Two sessions, the first with a secret in a field that no adapter reads."""
    world.environ["NACRE_GIT_BACKGROUND"] = "false"
    world.transcript(
        "depot",
        says("user", "Remember that the northern depot opens at six.", uuid="depot-a"),
        says(
            "assistant",
            "Noted: the northern depot opens at six.",
            uuid="depot-b",
            toolUseResult={
                "stdout": f"export ANTHROPIC_API_KEY={KEY}\nquetzal 4711",
                "password": "tulip-harbour-9",
                "image": "iVBORw0KGgo" * 400,
            },
        ),
        says("user", "And the southern depot opens at eight.", uuid="depot-c"),
    )
    world.transcript(
        "ferry",
        says(
            "user", "We decided to take the ferry on Mondays.", uuid="ferry-a", session="5e55-0002"
        ),
        says("assistant", "The ferry on Mondays it is.", uuid="ferry-b", session="5e55-0002"),
    )
    return world


def ingest(world: World, *, vectors: bool = False) -> Any:
    with world.open() as memory:
        return memory.ingest(vectors=vectors)


def stored_rows(world: World) -> list[Any]:
    """Return all stored sessions, turns and memories."""
    context = world.context()
    try:
        rows = [
            context.database.rows(
                "SELECT tool, native_id, project, title, cwd, branch, kind, parent, started, ended, model, turns"
                " FROM sessions ORDER BY tool, native_id"
            ),
            context.database.rows(
                "SELECT s.native_id, t.seq, t.native_id, t.speaker, t.trust, t.flags, t.time, t.author, t.text, t.tools"
                " FROM turns t JOIN sessions s ON s.row = t.session ORDER BY s.tool, s.native_id, t.seq"
            ),
            context.database.rows("SELECT id, subject, content FROM memories ORDER BY id"),
        ]
        return [list(map(tuple, row)) for row in rows]
    finally:
        context.database.close()


def rebuild(world: World) -> Any:
    return database.rebuild(
        world.settings(),
        open_home=lambda settings: open_home(
            settings, clock=world.clock, load_embedder=lambda _: world.embedder
        ),
        vectors=False,
    )


def pack_files(world: World) -> list[Path]:
    return sorted((world.home / "archive").rglob("*.pack"))


def archived_texts(world: World) -> dict[str, bytes]:
    """Return the archived text of each transcript by file name."""
    context = world.context()
    try:
        return {
            Path(state.path).name: b"".join(
                part.text for _, part in archive.payloads(context, state)
            )
            for state in context.archive.all()
            if state.pack
        }
    finally:
        context.database.close()


def with_context(world: World, work: Any) -> Any:
    context = world.context()
    try:
        return work(context)
    finally:
        context.database.close()


@pytest.mark.parametrize("is_database_lost", [False, True])
def test_rebuild_restores_deleted_transcripts_from_the_archive(
    talk: World, is_database_lost: bool
) -> None:
    ingest(talk)
    before = stored_rows(talk)
    shutil.rmtree(talk.user_home / ".claude")
    if is_database_lost:
        for file in talk.home.glob("nacre.db*"):
            file.unlink()
    report = rebuild(talk)
    assert report.turns == 5
    assert stored_rows(talk) == before
    assert len(before[2]) > 0


def test_archive_redacts_secrets_in_unread_fields_and_keeps_valid_json(talk: World) -> None:
    ingest(talk)
    text = archived_texts(talk)["depot.jsonl"]
    assert KEY.encode() not in text
    assert b"tulip-harbour-9" not in text
    assert b"iVBORw0KGgo" not in text
    assert b"quetzal 4711" in text
    records = [json.loads(line) for line in text.splitlines()]
    assert [record["uuid"] for record in records] == ["depot-a", "depot-b", "depot-c"]
    assert records[1]["toolUseResult"]["password"].startswith("[REDACTED:")
    original = (
        (talk.user_home / ".claude/projects/-work-acme/depot.jsonl").read_bytes().splitlines()
    )
    assert text.splitlines()[0] == original[0]


def test_private_blocks_are_not_archived(world: World) -> None:
    world.transcript(
        "one",
        says("user", "The lock is old. <private>marzipan-77</private> Replace it.", uuid="aaaa-1"),
    )
    world.transcript(
        "one", says("user", "An open one: <private>nougat-12 and so on", uuid="aaaa-2")
    )
    ingest(world)
    text = archived_texts(world)["one.jsonl"]
    assert b"marzipan-77" not in text
    assert b"nougat-12" not in text
    assert [json.loads(line)["uuid"] for line in text.splitlines()] == ["aaaa-1", "aaaa-2"]


def test_archiving_an_appended_file_stores_only_the_new_lines(world: World) -> None:
    for number in range(40):
        world.transcript(
            "one",
            says(
                "user",
                f"Item {number}: box {number * 7919} goes to bay {number}.",
                uuid=f"u-{number}",
            ),
        )
    ingest(world)
    (pack,) = pack_files(world)
    before = pack.read_bytes()
    world.transcript("one", says("user", "Item 40: the last box goes to bay 40.", uuid="u-40"))
    report = ingest(world)
    after = pack.read_bytes()
    assert after.startswith(before)
    assert len(after) - len(before) < 400
    assert report.archived.read < 500
    assert archived_texts(world)["one.jsonl"].count(b"\n") == 41


def test_many_small_segments_are_merged(world: World) -> None:
    world.clock.pass_days(0)
    for number in range(70):
        world.transcript(
            "one", says("user", f"Item {number} goes to bay {number}.", uuid=f"u-{number}")
        )
        ingest(world)
    assert len(packs.load(pack_files(world)[0]).segments) < 40
    assert archived_texts(world)["one.jsonl"].count(b"\n") == 70
    before = stored_rows(world)
    shutil.rmtree(world.user_home / ".claude")
    rebuild(world)
    assert stored_rows(world) == before


def test_archiving_truncates_a_torn_pack_tail_and_continues(talk: World) -> None:
    ingest(talk)
    for pack in pack_files(talk):
        with pack.open("ab") as file:
            file.write(
                b'{"start":9999,"until":12345,"digest":"00","length":5000,"size":4000,"sum":"00"}\nhalf of it'
            )
    talk.transcript("ferry", says("user", "On Tuesdays, too.", uuid="ferry-c", session="5e55-0002"))
    ingest(talk)
    assert archived_texts(talk)["ferry.jsonl"].count(b"\n") == 3
    assert with_context(talk, archive.verify) == (2, [])


def test_archiving_does_not_repeat_segments_missing_from_the_index(talk: World) -> None:
    ingest(talk)

    def set_back(context: Any) -> None:
        with context.database.transaction():
            for state in context.archive.all():
                context.archive.save(archive.replace(state, until=0, size=0, changed=1))

    with_context(talk, set_back)
    sizes = [pack.stat().st_size for pack in pack_files(talk)]
    ingest(talk)
    assert [pack.stat().st_size for pack in pack_files(talk)] == sizes


def test_renamed_transcript_is_archived_again(talk: World) -> None:
    ingest(talk)
    path = talk.user_home / ".claude/projects/-work-acme/ferry.jsonl"
    path.rename(path.with_name("renamed.jsonl"))
    talk.transcript(
        "renamed", says("user", "On Tuesdays, too.", uuid="ferry-c", session="5e55-0002")
    )
    ingest(talk)
    assert len(pack_files(talk)) == 3
    assert archived_texts(talk)["renamed.jsonl"].count(b"\n") == 3
    before = stored_rows(talk)
    shutil.rmtree(talk.user_home / ".claude")
    for file in talk.home.glob("nacre.db*"):
        file.unlink()
    rebuild(talk)
    assert stored_rows(talk)[1] == before[1]


def test_reset_transcript_keeps_old_and_new_sessions(talk: World) -> None:
    ingest(talk)
    path = talk.user_home / ".claude/projects/-work-acme/ferry.jsonl"
    path.unlink()
    talk.transcript(
        "ferry",
        says(
            "user",
            "A new life.",
            uuid="ferry-x",
            session="5e55-0003",
            at="2026-11-19T09:00:00.000Z",
        ),
    )
    ingest(talk)
    before = stored_rows(talk)
    rebuild(talk)
    assert stored_rows(talk) == before
    assert {session for _, session, *_ in before[0]} == {"5e55-0001", "5e55-0002", "5e55-0003"}


def test_forgotten_session_is_removed_from_the_archive(talk: World) -> None:
    ingest(talk)
    with talk.open() as memory:
        memory.forget(memory.plan_forgetting(sessions=["5e55-0002"]))
    assert set(archived_texts(talk)) == {"depot.jsonl"}
    ingest(talk)
    assert set(archived_texts(talk)) == {"depot.jsonl"}
    shutil.rmtree(talk.user_home / ".claude")
    rebuild(talk)
    assert {session for _, session, *_ in stored_rows(talk)[0]} == {"5e55-0001"}


def test_forgetting_a_turn_keeps_the_other_archived_turns(talk: World) -> None:
    ingest(talk)
    with talk.open() as memory:
        memory.forget(memory.plan_forgetting(match="southern"))
    text = archived_texts(talk)["depot.jsonl"]
    assert b"southern" not in text
    assert b"northern" in text
    ingest(talk)
    assert b"southern" not in archived_texts(talk)["depot.jsonl"]
    before = stored_rows(talk)
    shutil.rmtree(talk.user_home / ".claude")
    rebuild(talk)
    assert stored_rows(talk) == before
    assert [turn[2] for turn in before[1] if turn[0] == "5e55-0001"] == ["depot-a", "depot-b"]


def test_forgetting_by_text_removes_tool_output_from_the_archive(talk: World) -> None:
    ingest(talk)
    assert b"quetzal" in archived_texts(talk)["depot.jsonl"]
    with talk.open() as memory:
        memory.forget(memory.plan_forgetting(match="quetzal"))
    talk.transcript("depot", says("user", "And one more thing.", uuid="depot-d"))
    ingest(talk)
    text = archived_texts(talk)["depot.jsonl"]
    assert b"quetzal" not in text
    assert b"one more thing" in text


def test_excluded_paths_are_not_archived(talk: World) -> None:
    talk.environ["NACRE_INGEST_EXCLUDE_PATHS"] = '["/code/acme-*"]'
    ingest(talk)
    assert pack_files(talk) == []
    assert with_context(talk, lambda context: Exclusions(context.settings).tools) == frozenset()


def test_new_redaction_rule_applies_to_the_archive(talk: World) -> None:
    ingest(talk)
    talk.environ["NACRE_REDACTION_PATTERNS"] = '["quetzal \\\\d+"]'
    dry = with_context(
        talk, lambda context: scrub(context, ScrubOptions(dry_run=True, vectors=False))
    )
    assert dry.found["archive"]
    assert b"quetzal" in archived_texts(talk)["depot.jsonl"]
    with_context(talk, lambda context: scrub(context, ScrubOptions(vectors=False)))
    text = archived_texts(talk)["depot.jsonl"]
    assert b"quetzal" not in text
    assert [json.loads(line)["uuid"] for line in text.splitlines()] == [
        "depot-a",
        "depot-b",
        "depot-c",
    ]
    assert with_context(talk, archive.verify) == (2, [])


def restore(home: Home, reference: str, folder: Path | None = None) -> archive.Restored:
    return archive.restore(home, reference=reference, folder=folder)


def test_restored_transcript_returns_to_its_path_and_can_grow(talk: World) -> None:
    ingest(talk)
    path = talk.user_home / ".claude/projects/-work-acme/depot.jsonl"
    path.unlink()
    back = with_context(talk, lambda context: restore(context, "5e55-0001"))
    assert back.path == path
    assert back.is_whole
    assert path.stat().st_mode & 0o777 == 0o600
    assert KEY not in path.read_text(encoding="utf-8")
    talk.transcript("depot", says("user", "What about the eastern depot?", uuid="depot-d"))
    report = ingest(talk)
    assert report.turns == 1
    assert report.corrupt == 0
    assert report.archived.read < 500
    before = stored_rows(talk)
    shutil.rmtree(talk.user_home / ".claude")
    rebuild(talk)
    assert stored_rows(talk) == before


def test_restore_overwrites_no_file_and_accepts_another_destination(
    talk: World, tmp_path: Path
) -> None:
    ingest(talk)
    with pytest.raises(ConflictError):
        with_context(talk, lambda context: restore(context, "5e55-0002"))
    copy = with_context(talk, lambda context: restore(context, "5e55-0002", tmp_path / "old"))
    original = talk.user_home / ".claude/projects/-work-acme/ferry.jsonl"
    assert copy.path.read_bytes() == original.read_bytes()
    with pytest.raises(NotFoundError):
        with_context(talk, lambda context: restore(context, "no-such-session"))


def test_damaged_pack_is_reported_and_archived_again(talk: World) -> None:
    ingest(talk)
    before = archived_texts(talk)
    pack = max(pack_files(talk), key=lambda path: path.stat().st_size)
    data = bytearray(pack.read_bytes())
    data[-20] ^= 0xFF
    pack.write_bytes(data)
    files, problems = with_context(talk, archive.verify)
    assert (files, len(problems)) == (2, 1)
    assert with_context(talk, archive.mend) == 1
    ingest(talk)
    assert with_context(talk, archive.verify) == (2, [])
    assert archived_texts(talk) == before
    assert pack.with_name(pack.name + ".damaged").exists()


@pytest.mark.parametrize("position", range(0, 400, 7))
def test_pack_verification_detects_any_changed_byte(tmp_path: Path, position: int) -> None:
    place = tmp_path / "one.pack"
    texts = [b'{"a": %d}\n' % number * 9 for number in range(5)]
    fresh = [
        packs.Fresh(number * 100, number * 100 + 100, Payload(text))
        for number, text in enumerate(texts)
    ]
    pack = packs.create(place, packs.Title("jsonl", "/code/one.jsonl"), fresh)
    data = bytearray(place.read_bytes())
    position = min(position * len(data) // 400, len(data) - 1)
    data[position] ^= 0x15
    place.write_bytes(data)
    try:
        result = packs.load(place, thorough=True)
        is_equal = [
            part.text for _, part in result.payloads()
        ] == texts and result.title == pack.title
    except DamagedArchiveError:
        return
    assert not is_equal


def test_pruning_removes_the_least_recently_changed_transcripts(talk: World) -> None:
    old = talk.user_home / ".claude/projects/-work-acme/ferry.jsonl"
    now = talk.clock.now.timestamp()
    os.utime(old, (now - 3 * WEEK, now - 3 * WEEK))
    os.utime(old.with_name("depot.jsonl"), (now, now))
    ingest(talk)
    talk.environ["NACRE_ARCHIVE_KEEP_DAYS"] = "14"
    report = ingest(talk)
    assert report.archived.pruned == 1
    assert set(archived_texts(talk)) == {"depot.jsonl"}
    assert ingest(talk).archived.pruned == 0
    talk.transcript("ferry", says("user", "The ferry again.", uuid="ferry-c", session="5e55-0002"))
    os.utime(old, (now, now))
    ingest(talk)
    assert archived_texts(talk)["ferry.jsonl"].count(b"\n") == 3


def test_archive_stays_within_its_size_budget(world: World) -> None:
    world.environ["NACRE_ARCHIVE_BUDGET_MB"] = "1"
    now = world.clock.now.timestamp()
    for name in range(3):
        noise = os.urandom(300_000).hex(" ", 4)
        path = world.transcript(
            f"t{name}", says("user", noise, uuid=f"t{name}-a", session=f"5e55-{name}")
        )
        os.utime(path, (now - 1000 + name, now - 1000 + name))
    report = ingest(world)
    assert report.archived.pruned == 1
    assert set(archived_texts(world)) == {"t1.jsonl", "t2.jsonl"}


def test_disabled_archive_stores_nothing(talk: World) -> None:
    talk.environ["NACRE_ARCHIVE_ENABLED"] = "false"
    ingest(talk)
    assert not (talk.home / "archive").exists()
    del talk.environ["NACRE_ARCHIVE_ENABLED"]
    ingest(talk)
    assert len(pack_files(talk)) == 2


def test_rebuild_keeps_sessions_deleted_before_archiving(
    talk: World,
) -> None:
    talk.environ["NACRE_ARCHIVE_ENABLED"] = "false"
    ingest(talk)
    shutil.rmtree(talk.user_home / ".claude")
    del talk.environ["NACRE_ARCHIVE_ENABLED"]
    ingest(talk)
    before = stored_rows(talk)
    rebuild(talk)
    assert stored_rows(talk) == before


def test_archive_keeps_only_the_latest_version_of_a_note(world: World, tmp_path: Path) -> None:
    page = tmp_path / "notes" / "2026-11-20 harbour.md"
    page.parent.mkdir()
    for words in ("The harbour freezes in January.", "The harbour never freezes."):
        page.write_text(f"# Harbour\n\n{words}\n", encoding="utf-8")
        with world.open() as memory:
            memory.ingest(page, vectors=False)
    (text,) = archived_texts(world).values()
    assert b"never freezes" in text
    assert b"January" not in text
    sessions, turns, _ = stored_rows(world)
    shutil.rmtree(page.parent)
    rebuild(world)
    assert stored_rows(world)[0] == sessions
    assert [turn[2:] for turn in stored_rows(world)[1]] == [turn[2:] for turn in turns]


def test_archive_preserves_lines_with_invalid_json_or_encoding(world: World) -> None:
    path = world.transcript("one", says("user", "The quay is closed.", uuid="q-1"))
    with path.open("ab") as file:
        file.write(b"\xff\xfe not text\n\n{broken\n")
    world.transcript("one", says("user", "The quay is open.", uuid="q-2"))
    ingest(world)
    before = stored_rows(world)
    path.unlink()
    rebuild(world)
    assert stored_rows(world) == before
    assert len(before[1]) == 2


def test_segments_are_cut_at_line_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nacre.home.parsing.SEGMENT_BYTES", 1000)
    for number in range(30):
        words = "x" * (number * 90)
        world.transcript(
            "one",
            says(
                "user", f"Row {number} {words} {KEY if number % 7 == 3 else ''}", uuid=f"r-{number}"
            ),
        )
    ingest(world)
    pack = packs.load(pack_files(world)[0])
    size = (world.user_home / ".claude/projects/-work-acme/one.jsonl").stat().st_size
    assert len(pack.segments) > 10
    assert pack.segments[-1].until == size
    assert all(
        item.until == next_item.start
        for item, next_item in zip(pack.segments, pack.segments[1:], strict=False)
    )
    before = stored_rows(world)
    shutil.rmtree(world.user_home / ".claude")
    rebuild(world)
    assert stored_rows(world) == before


def all_files(folder: Path) -> Sequence[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_archive_files_are_readable_only_by_the_owner(talk: World) -> None:
    ingest(talk)
    assert {path.stat().st_mode & 0o777 for path in all_files(talk.home / "archive")} == {0o600}


def test_archiving_failure_is_reported_and_retried(talk: World) -> None:
    folder = talk.home / "archive"
    talk.home.mkdir(mode=0o700)
    folder.write_text("in the way", encoding="utf-8")
    report = ingest(talk)
    assert report.turns == 5
    assert report.problems == ()
    assert len(report.archived.problems) == 2
    folder.unlink()
    assert ingest(talk).archived.files == 2
    assert len(pack_files(talk)) == 2
