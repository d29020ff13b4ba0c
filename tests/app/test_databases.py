"""Sessions are read from databases that their tools keep open, lock, encrypt or damage."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from nacre.errors import InvalidInputError, UnreadableTranscriptError
from nacre.home.home import Home
from nacre.home.parsing import batches
from nacre.learn.ingest import IngestOptions, ingest, plan
from nacre.readers.adapter import FileSource
from nacre.readers.registry import get_adapter
from nacre.redact.redactor import Redactor
from nacre.store.foreign import MAX_COPY_BYTES, ForeignDatabase, open_foreign
from nacre.values.reports import IngestReport
from tests.app.conftest import World
from tests.processes import Processes
from tests.stores import OpenCode, OpenCode2, bubble, conversation, write_state

WRITER = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=0.2)
connection.execute("PRAGMA wal_autocheckpoint = " + sys.argv[2])
count = 0
for line in sys.stdin:
    order = line.strip()
    if order == "write":
        count += 1
        data = '{"role":"user","time":{"created":1795000000000}}'
        part = '{"type":"text","text":"note %d of the other process"}' % count
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO message VALUES (?, 'ses_1', ?, 0, ?)", ("msg_w%04d" % count, count, data))
            names = ("prt_w%04d" % count, "msg_w%04d" % count)
            connection.execute("INSERT INTO part VALUES (?, ?, 'ses_1', 0, 0, ?)", (*names, part))
            connection.execute("UPDATE session SET time_updated = time_updated + 1")
            connection.execute("COMMIT")
            print("written", flush=True)
        except sqlite3.Error as error:
            print(error, flush=True)
    elif order == "lock":
        connection.execute("BEGIN EXCLUSIVE")
        print("locked", flush=True)
    elif order == "spill":
        connection.execute("PRAGMA cache_size = 2")
        connection.execute("BEGIN IMMEDIATE")
        for _ in range(200):
            connection.execute("UPDATE message SET data = data || ?", ("x" * 4000,))
        print("spilt", flush=True)
    elif order == "die":
        os._exit(1)
"""

Start = Callable[..., "Writer"]


class Writer:
    """A separate process with an open database."""

    def __init__(self, processes: Processes, path: Path, checkpoint: int) -> None:
        self._process = processes.start(
            [sys.executable, "-c", WRITER, str(path), str(checkpoint)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, order: str) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{order}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        if self._process.stdin and not self._process.stdin.closed:
            self._process.communicate(timeout=20)

    def die(self) -> None:
        self.tell("die")
        self.end()


@pytest.fixture
def writer(processes: Processes) -> Iterator[Start]:
    writers: list[Writer] = []

    def start(path: Path, checkpoint: int = 1000) -> Writer:
        writers.append(Writer(processes, path, checkpoint))
        return writers[-1]

    yield start
    for item in writers:
        item.end()


@pytest.fixture
def context(world: World) -> Iterator[Home]:
    context = world.context()
    yield context
    context.database.close()


@pytest.fixture
def opencode(world: World) -> Callable[[str], Path]:
    """Write OpenCode's database in its default place with one session of one message, and close it."""

    def write(journal: str = "wal") -> Path:
        store = OpenCode(world.user_home / ".local" / "share" / "opencode" / "opencode.db", journal)
        store.session("ses_1")
        store.message("ses_1", "user", {"text": "The ledger needs a nightly export."}, id="msg_0")
        store.close()
        return store.path

    return write


def ingest_all(context: Home) -> IngestReport:
    return ingest(context, IngestOptions(vectors=False, extract=False))


def texts(context: Home) -> list[str]:
    rows = [
        row
        for line in context.sessions.newest(limit=50)
        for row in context.sessions.turns_of(line.row)
    ]
    return [item.turn.text for item in rows]


def folder_files(path: Path) -> dict[str, bytes]:
    """Return the content of all files in a database's folder."""
    return {
        item.name: item.read_bytes() for item in sorted(path.parent.iterdir()) if item.is_file()
    }


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_database_is_read_without_changes_while_its_tool_writes(
    journal: str, context: Home, opencode: Callable[[str], Path], writer: Start
) -> None:
    path = opencode(journal)
    tool = writer(path)
    assert tool.tell("write") == "written"
    before = folder_files(path)
    assert ingest_all(context).problems == ()
    assert folder_files(path) == before
    assert "note 1 of the other process" in texts(context)


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_reading_neither_blocks_a_tool_nor_misses_writes(
    journal: str, context: Home, opencode: Callable[[str], Path], writer: Start
) -> None:
    path = opencode(journal)
    tool = writer(path, checkpoint=3)
    for _ in range(25):
        assert tool.tell("write") == "written"
        assert ingest_all(context).problems == ()
    turns = texts(context)
    assert [text for text in turns if text.startswith("note")] == [
        f"note {n + 1} of the other process" for n in range(25)
    ]


def test_open_reader_does_not_block_a_writer(
    opencode: Callable[[str], Path], writer: Start
) -> None:
    for journal in ("wal", "delete"):
        path = opencode(journal)
        tool = writer(path)
        assert tool.tell("write") == "written"
        with open_foreign(path) as database:
            for count in range(2, 6):
                assert database.all("SELECT count(*) FROM part") == [(count,)]
                assert tool.tell("write") == "written"
        tool.end()
        path.unlink()


def test_wal_of_a_killed_tool_is_read_and_left_unchanged(
    context: Home, opencode: Callable[[str], Path], writer: Start
) -> None:
    path = opencode("wal")
    tool = writer(path)
    tool.tell("write")
    tool.die()
    before = folder_files(path)
    assert {"opencode.db", "opencode.db-wal", "opencode.db-shm"} == set(before)
    assert ingest_all(context).problems == ()
    assert folder_files(path) == before
    assert "note 1 of the other process" in texts(context)


def test_wal_without_its_index_is_read_from_a_copy(
    context: Home, opencode: Callable[[str], Path], writer: Start
) -> None:
    path = opencode("wal")
    tool = writer(path)
    tool.tell("write")
    tool.die()
    path.with_name("opencode.db-shm").unlink()
    before = folder_files(path)
    assert ingest_all(context).problems == ()
    assert folder_files(path) == before
    assert "note 1 of the other process" in texts(context)


def test_reading_a_closed_database_creates_no_wal(
    context: Home, opencode: Callable[[str], Path]
) -> None:
    path = opencode("wal")
    assert set(folder_files(path)) == {"opencode.db"}
    before = folder_files(path)
    assert ingest_all(context).problems == ()
    assert folder_files(path) == before
    assert texts(context) == ["The ledger needs a nightly export."]


def test_open_reader_sees_writes_of_a_tool_started_later(
    opencode: Callable[[str], Path], writer: Start
) -> None:
    path = opencode("wal")
    with open_foreign(path) as database:
        assert database.all("SELECT count(*) FROM part") == [(1,)]
        tool = writer(path)
        assert tool.tell("write") == "written"
        assert database.all("SELECT count(*) FROM part") == [(2,)]


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_uncommitted_transaction_of_a_killed_tool_is_not_read(
    journal: str, context: Home, opencode: Callable[[str], Path], writer: Start
) -> None:
    path = opencode(journal)
    tool = writer(path)
    assert tool.tell("spill") == "spilt"
    tool.die()
    before = folder_files(path)
    assert ingest_all(context).problems == ()
    assert folder_files(path) == before
    assert texts(context) == ["The ledger needs a nightly export."]


def test_locked_database_is_reported_and_read_after_unlocking(
    context: Home, world: World, opencode: Callable[[str], Path], writer: Start
) -> None:
    path = opencode("delete")
    other = world.user_home / ".config" / "Cursor" / "User" / "globalStorage" / "state.vscdb"
    write_state(other, {}, conversation("c1", [bubble(1, "The other file is read.")]))
    tool = writer(path)
    assert tool.tell("lock") == "locked"
    report = ingest_all(context)
    assert [(problem.path, "locked" in problem.message) for problem in report.problems] == [
        (str(path), True)
    ]
    assert texts(context) == ["The other file is read."]
    tool.end()
    assert ingest_all(context).problems == ()
    assert "The ledger needs a nightly export." in texts(context)


def test_invalid_database_file_is_reported_without_failing(context: Home, world: World) -> None:
    share = world.user_home / ".local" / "share" / "opencode"
    share.mkdir(parents=True)
    (share / "opencode.db").write_bytes(b"")
    (share / "opencode-beta.db").write_bytes(os.urandom(8192))
    whole = write_state(
        world.user_home / "whole.vscdb", {}, conversation("c1", [bubble(1, "x" * 30_000)])
    )
    torn = world.user_home / ".config" / "Cursor" / "User" / "globalStorage" / "state.vscdb"
    torn.parent.mkdir(parents=True)
    torn.write_bytes(whole.read_bytes()[:9000])
    world.transcript("talk")
    report = ingest_all(context)
    messages = {Path(problem.path).name: problem.message for problem in report.problems}
    assert set(messages) == {"opencode-beta.db", "state.vscdb"}
    assert report.empty == (str(share / "opencode.db"),)
    assert "encrypted" in messages["opencode-beta.db"]
    assert "damaged" in messages["state.vscdb"]
    assert len(ingest_all(context).problems) == 2


def test_empty_database_is_reported_and_a_problem_only_if_named(
    context: Home, opencode: Callable[[str], Path]
) -> None:
    path = opencode("wal")
    full = path.read_bytes()
    path.write_bytes(b"")
    for _ in range(2):
        report = ingest_all(context)
        assert (report.empty, report.problems, report.unrecognised) == ((str(path),), (), 1)
    assert plan(context, IngestOptions()).problems == ()
    (problem,) = ingest(context, IngestOptions(paths=(path,), vectors=False)).problems
    assert problem.message == "is empty: it has no sessions"
    path.write_bytes(full)
    assert ingest_all(context).turns == 1
    path.write_bytes(b"")  # stored turns are kept
    assert ingest_all(context).empty == (str(path),)
    assert texts(context) == ["The ledger needs a nightly export."]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_databases_in_folders_with_unusual_names_are_opened(
    tmp_path: Path,
) -> None:
    for name in (b"\xff\xfe", b"50% off?mode=rw#x", "größe".encode()):
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name), "state.vscdb")
        write_state(Path(tmp_path, "plain.vscdb"), {"k": 1})
        path.parent.mkdir()
        Path(tmp_path, "plain.vscdb").rename(path)
        with open_foreign(path) as database:
            assert database.columns("ItemTable") == ("key", "value")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_invalid_utf8_path_is_reported_and_other_databases_are_read(
    context: Home, world: World, opencode: Callable[[str], Path]
) -> None:
    opencode("wal")
    folder = (
        os.fsencode(world.user_home / ".config" / "Cursor" / "User" / "workspaceStorage") + b"/\xff"
    )
    state = write_state(
        world.user_home / "state.vscdb", {}, conversation("c1", [bubble(1, "Hello")])
    )
    Path(os.fsdecode(folder)).mkdir(parents=True)
    state.rename(Path(os.fsdecode(folder), "state.vscdb"))
    (problem,) = ingest_all(context).problems
    assert "not UTF-8" in problem.message
    assert "\ufffd" in problem.path
    assert texts(context) == ["The ledger needs a nightly export."]


def test_wal_of_an_empty_database_is_not_deleted(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.write_bytes(b"")
    log = tmp_path / "opencode.db-wal"
    log.write_bytes(b"what a tool wrote")
    with pytest.raises(InvalidInputError, match="empty"):
        ForeignDatabase(path)
    assert log.read_bytes() == b"what a tool wrote"


def test_huge_database_that_needs_copying_is_reported(
    opencode: Callable[[str], Path], writer: Start
) -> None:
    path = opencode("wal")
    tool = writer(path)
    tool.tell("write")
    tool.die()
    path.with_name("opencode.db-shm").unlink()
    os.truncate(path, MAX_COPY_BYTES + 1)  # a sparse file
    with pytest.raises(InvalidInputError, match="too large to copy"):
        ForeignDatabase(path)


def test_unrelated_files_with_database_names_are_not_problems(
    context: Home, world: World, tmp_path: Path
) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    (folder / "Thumbs.db").write_bytes(b"\xd0\xcf\x11\xe0 something of an old Windows")
    with closing(sqlite3.connect(folder / "books.db")) as connection:
        connection.execute("CREATE TABLE books (title TEXT)")
        connection.commit()
    report = ingest(context, IngestOptions(paths=(folder,), vectors=False))
    assert report.problems == ()
    assert report.unrecognised == 2


def test_unchanged_database_is_skipped_but_log_changes_are_seen(
    context: Home, opencode: Callable[[str], Path], writer: Start
) -> None:
    path = opencode("wal")
    assert ingest_all(context).files == 1
    again = ingest_all(context)
    assert (again.files, again.skipped) == (0, 1)
    tool = writer(path)
    main = path.read_bytes()
    tool.tell("write")
    assert path.read_bytes() == main
    assert ingest_all(context).files == 1
    assert "note 1 of the other process" in texts(context)


def test_changed_database_rereads_only_changed_sessions(
    context: Home, opencode: Callable[[str], Path]
) -> None:
    path = opencode("wal")
    store = OpenCode.__new__(OpenCode)
    store.connection, store.path, store.now, store.count = (
        sqlite3.connect(path, isolation_level=None),
        path,
        10,
        500,
    )
    for number in range(40):
        store.session(f"ses_9{number:02d}", time_created=number)
        store.message(
            f"ses_9{number:02d}", "user", {"text": f"Session {number}: " + "words " * 2000}
        )
    first = ingest_all(context)
    store.message("ses_907", "user", {"text": "One more thing."})
    second = ingest_all(context)
    store.close()
    assert first.bytes_read > 400_000
    assert second.bytes_read < 30_000
    assert texts(context).count("One more thing.") == 1
    assert len(texts(context)) == 42


def test_session_in_files_and_database_is_stored_once(
    context: Home, world: World, opencode: Callable[[str], Path]
) -> None:
    opencode("wal")
    storage = world.user_home / ".local" / "share" / "opencode" / "storage"
    write_opencode_files(storage)
    ingest_all(context)
    assert len(context.sessions.newest(limit=10)) == 1
    assert sorted(texts(context)) == ["It runs at two.", "The ledger needs a nightly export."]


def write_opencode_files(storage: Path) -> None:
    files = {
        "session/p1/ses_1.json": {
            "id": "ses_1",
            "version": "0.15.0",
            "projectID": "p1",
            "directory": "/code/acme",
            "title": "Export",
            "time": {"created": 1_795_000_000_000, "updated": 1_795_000_009_000},
        },
        "message/ses_1/msg_0.json": {
            "id": "msg_0",
            "sessionID": "ses_1",
            "role": "user",
            "time": {"created": 1_795_000_001_000},
        },
        "message/ses_1/msg_1.json": {
            "id": "msg_1",
            "sessionID": "ses_1",
            "role": "assistant",
            "time": {"created": 1_795_000_002_000, "completed": 1_795_000_003_000},
        },
        "part/msg_0/prt_0.json": {
            "id": "prt_0",
            "messageID": "msg_0",
            "type": "text",
            "text": "The ledger needs a nightly export.",
        },
        "part/msg_1/prt_1.json": {
            "id": "prt_1",
            "messageID": "msg_1",
            "type": "text",
            "text": "It runs at two.",
        },
    }
    for name, values in files.items():
        path = storage / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values, indent=2), encoding="utf-8")


def test_file_session_is_reread_when_a_message_changes(context: Home, world: World) -> None:
    storage = world.user_home / ".local" / "share" / "opencode" / "storage"
    write_opencode_files(storage)
    ingest_all(context)
    assert ingest_all(context).files == 0
    part = storage / "part" / "msg_1" / "prt_2.json"
    part.write_text(
        '{"id": "prt_2", "messageID": "msg_1", "type": "text", "text": "And at noon."}',
        encoding="utf-8",
    )
    message = storage / "message" / "ses_1" / "msg_1.json"
    os.utime(message, ns=(1, message.stat().st_mtime_ns + 1))
    ingest_all(context)
    assert texts(context) == [
        "The ledger needs a nightly export.",
        "It runs at two.\n\nAnd at noon.",
    ]


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(x) AS title FROM n"


@pytest.mark.parametrize(
    "definition",
    ["CREATE VIEW books AS " + ENDLESS, "CREATE VIRTUAL TABLE books USING fts5(title)"],
)
def test_foreign_database_reads_only_tables(tmp_path: Path, definition: str) -> None:
    path = tmp_path / "books.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(definition)
    with (
        open_foreign(path) as database,
        pytest.raises(InvalidInputError, match="view or virtual table"),
    ):
        database.all("SELECT count(title) FROM Books")


def test_foreign_database_has_a_time_limit(tmp_path: Path) -> None:
    path = tmp_path / "books.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE books (title)")
    times = iter([0.0])
    database = ForeignDatabase(path, clock=lambda: next(times, 1e9))
    with closing(database), pytest.raises(InvalidInputError, match="takes longer"):
        database.all(ENDLESS)


def test_transcript_has_a_time_limit(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text('{"role": "user", "content": "Which crane lifts the boats?"}\n')
    times = iter([0.0])
    with FileSource(path) as source, pytest.raises(UnreadableTranscriptError, match="takes longer"):
        list(batches(path, get_adapter("jsonl"), source, Redactor(), lambda: next(times, 1e9)))


def test_words_that_change_in_place_are_learned_again(world: World) -> None:
    store = OpenCode2(world.user_home / ".local/share/opencode/opencode.db")
    store.session("ses_1")
    first = store.row("ses_1", "user", {"text": "Remember: the ferry leaves at six."})
    store.row("ses_1", "user", {"text": "Remember: gauges are read at dawn."})
    with world.open() as memory:
        memory.ingest()
        store.connection.execute(
            "UPDATE session_message SET data = ?, time_updated = time_updated + 1 WHERE id = ?",
            (json.dumps({"text": "Remember: the pump runs dry at noon."}), first),
        )
        assert len(memory.ingest().memories) == 1
        contents = {item.content for item in memory.list(limit=9)}
    assert contents >= {"The pump runs dry at noon.", "Gauges are read at dawn."}
    assert len(contents) == 3
    store.close()
