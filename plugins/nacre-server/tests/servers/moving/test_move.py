"""A home moved to a server and back keeps every row and document, and interrupted moves continue."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from nacre.api import open_memory
from nacre.errors import ConflictError, InvalidSettingsError, StoreBusyError
from nacre.settings import load_settings, write_setting
from nacre.store.schema import Database
from nacre.store.sqlite import open_database
from nacre.values.reports import OnProgress, Progress
from nacre_server.move import OF_ONE_ENGINE, TABLES, MoveReport, move
from nacre_server.postgres import PostgresDatabase
from tests.catalogue.conftest import known_in, make_home
from tests.cli.conftest import Nacre, said, write_transcript
from tests.daemon.conftest import PATIENCE_SECONDS, Serving
from tests.mcp.conftest import SESSION

pytestmark = pytest.mark.usefixtures("user_home")

Carry = Callable[..., MoveReport]

FULL_TEXT = ("_fts", "_parts", "_terms")
"""Suffixes of SQLite's full-text tables."""

OF_FILES = {"sqlite_sequence"}
OF_SERVERS = {
    "documents",
    "document_versions",
    "ledger_lines",
    "words",
    "terms",
    "word_totals",
    "last_turns",
    "edition",
    "moves",
    "signs",
    "schema_version",
}


TURNS_QUERY = "SELECT seq FROM turns WHERE text LIKE ?"
USED = "SELECT CAST(sum(recall_count) AS BIGINT) FROM usage"
COUNTED = ("memories", "turns", "sessions", "links", "tombstones", "usage", "code_symbols")


@pytest.fixture
def home(user_home: Path, tmp_path: Path) -> Path:
    """A local home with memories in every state, links, sessions, a code graph, a tombstone and
    usage."""
    make_home(user_home)
    (tmp_path / "known").mkdir()
    resolve = known_in(tmp_path / "known")
    with open_memory() as memory:
        memory.call("forget", **resolve({"memories": ["{forgettable}"]}))
        memory.store("Nothing\0less, café, 北京, “quotes” and 'that'", kind="fact")
        memory.recall("which database does billing use?")
        memory.call("flush")
    return user_home / ".nacre"


@pytest.fixture
def carry(server_url: str, tenant: str) -> Carry:
    """``carry(to=True)`` moves the home to the server, ``carry(to=False)`` moves it back."""

    def run_move(
        *, to: bool, name: str = tenant, on_progress: OnProgress = lambda _: None
    ) -> MoveReport:
        ends = {"to": server_url} if to else {"source": server_url}
        return move(load_settings(), on_progress, **ends, tenant=name)

    return run_move


def rows(database: Database) -> dict[str, list[tuple[object, ...]]]:
    """Return all moved rows without the times at which files and the ledger were read."""
    results = {}
    for table in TABLES:
        columns = [f'"{name}"' for name in database.columns(table) if name != "mtime_ns"]
        query = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608 - our own names
        results[table] = sorted(database.rows(query), key=repr)
    results["forgetting_values"] = [
        row for row in results["forgetting_values"] if row[0] != "ledger"
    ]
    return results


def rows_here(home: Path, name: str = "nacre.db") -> dict[str, list[tuple[object, ...]]]:
    with closing(open_database(home / name)) as database:
        return rows(database)


def documents(vault: Path) -> dict[str, bytes]:
    """Return all documents and the ledger."""
    paths = [*vault.rglob("*.md"), vault / "ledger.jsonl"]
    return {file.relative_to(vault).as_posix(): file.read_bytes() for file in paths}


def test_home_moved_to_a_server_and_back_is_unchanged(
    home: Path, carry: Carry, server_url: str, tenant: str
) -> None:
    there = carry(to=True)
    before, files = rows_here(home, "nacre.db.moved"), documents(home / "vault")
    assert sum(map(bool, before.values())) > 25
    assert there.is_same
    assert there.is_in_use
    assert {table: there.rows[table] for table in COUNTED} == {
        table: len(before[table]) for table in COUNTED
    }
    assert there.documents.count == len(files) - 1
    with closing(PostgresDatabase(server_url, tenant)) as database:
        assert plain(rows(database)) == plain(before)
    shutil.rmtree(home / "vault")
    (home / "nacre.db.moved").unlink()
    (home / "moved.json").unlink()
    assert not (home / "nacre.db").exists()
    with open_memory() as memory:
        assert memory.recall("which database does billing use?").hits
        assert not (home / "vault").exists()
    back = carry(to=False)
    assert back.is_same
    assert documents(home / "vault") == files
    assert plain(rows_here(home)) == plain(before)
    with open_memory() as memory:
        assert {check.state for check in memory.call("doctor-deep")} <= {"ok", "info"}


def plain(tables: dict[str, list[tuple[object, ...]]]) -> dict[str, list[str]]:
    """Return the rows without the characters that a server's texts cannot contain."""
    return {
        table: [repr(row).replace("\\x00", "\ufffd") for row in table_rows]
        for table, table_rows in tables.items()
    }


def test_memories_stored_on_the_server_return(home: Path, carry: Carry) -> None:
    carry(to=True)
    with open_memory() as memory:
        outcome = memory.store("The pier is painted every third year", kind="fact")
        retired = memory.list()[-1].id
        memory.retire(retired)
    assert not [
        file for file in (home / "vault").rglob("*.md") if "painted" in file.read_text("utf-8")
    ]
    carry(to=False)
    with open_memory() as memory:
        assert memory.recall("when is the pier painted?").hits[0].memory.id == outcome.memory_id
        assert not [item for item in memory.list() if item.id == retired]
        assert memory.call("doctor-deep")
    assert [file for file in (home / "vault").rglob("*.md") if "painted" in file.read_text("utf-8")]


def test_pending_handoffs_in_files_are_moved(
    home: Path, carry: Carry, nacre: Nacre, server_url: str, tenant: str
) -> None:
    nacre(
        "context",
        "--handoff",
        "--store",
        "The rope of the ferry is half spliced",
        "--session",
        f"claude-code:{SESSION}",
    )
    with closing(open_database(home / "nacre.db")) as here:
        before = here.rows(USED)
    with open_memory() as memory:
        assert memory.recall("which database does billing use?").hits
    carry(to=True)
    with closing(PostgresDatabase(server_url, tenant)) as there:
        assert there.rows(USED) > before
    with open_memory() as memory:
        assert "half spliced" in memory._home.handoffs.everything()[0].content
    carry(to=False)
    with open_memory() as memory:
        assert "half spliced" in memory._home.handoffs.everything()[0].content


def test_operations_before_a_move_can_be_undone_afterwards(home: Path, carry: Carry) -> None:
    with open_memory() as memory:
        here = memory.store("The buoy is red", kind="fact").memory_id
    carry(to=True)
    with open_memory() as memory:
        memory.undo(memory.log(here)[0].operation.id)
        assert here not in {item.id for item in memory.list(limit=500)}
        there = memory.store("The buoy is green", kind="fact").memory_id
    carry(to=False)
    with open_memory() as memory:
        memory.undo(memory.log(there)[0].operation.id)
        assert there not in {item.id for item in memory.list(limit=500)}
        assert not memory.call("commit").held


def test_homes_with_equal_row_numbers_keep_separate_memories(
    home: Path, carry: Carry, user_home: Path, tenant: str
) -> None:
    shutil.copytree(home, user_home / "twin")
    carry(to=True)
    with open_memory() as memory:
        mine = [
            memory.store(f"Mine is number {number}", kind="fact").memory_id for number in range(3)
        ]
    os.environ["NACRE_HOME"] = str(user_home / "twin")
    carry(to=True, name=f"{tenant}-twin")
    folder = user_home / ".claude" / "projects" / "-code-other"
    write_transcript(
        folder / "5f0c2a4d-0000-4000-8000-000000000001.jsonl",
        [said("user", "The quay is closed in May", 1)],
    )
    with open_memory() as memory:
        theirs = [
            memory.store(f"Theirs is number {number}", kind="fact").memory_id for number in range(3)
        ]
        assert memory.ingest(vectors=False).turns
        assert not {item.id for item in memory.list(limit=500)} & set(mine)
        assert {item.id for item in memory.list(limit=500)} >= set(theirs)


@pytest.mark.parametrize("point", [1, 5, 20, 45, 60, 75])
def test_killed_move_continues_with_the_same_command(
    home: Path,
    carry: Carry,
    server_url: str,
    tenant: str,
    point: int,
) -> None:
    program = f"""
import os, signal
from nacre_server.move import move
from nacre.settings import load_settings
left = [{point}]

def at(progress):
    left[0] -= 1
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)

move(load_settings(), at, to={server_url!r}, tenant={tenant!r})
"""
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not load_settings().server
    report = carry(to=True)
    assert report.is_same
    before = rows_here(home, "nacre.db.moved")
    with closing(PostgresDatabase(server_url, tenant)) as database:
        assert plain(rows(database)) == plain(before)


@pytest.mark.parametrize("point", [3, 30, 70])
def test_interrupted_move_back_continues(home: Path, carry: Carry, point: int) -> None:
    carry(to=True)
    before, files = rows_here(home, "nacre.db.moved"), documents(home / "vault")
    points = [point]

    def at(progress: Progress) -> None:
        points[0] -= 1
        if points[0] == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry(to=False, on_progress=at)
    assert load_settings().server
    assert carry(to=False).is_same
    assert documents(home / "vault") == files
    assert plain(rows_here(home)) == plain(before)


def test_rows_written_during_a_move_are_included(home: Path, carry: Carry) -> None:
    notices = []

    def at(progress: Progress) -> None:
        if progress.note == "questions" and not notices:
            notices.append(progress)
            with closing(open_database(home / "nacre.db")) as database, database.transaction():
                database.rows("UPDATE usage SET recall_count = recall_count + 7")
                database.rows("DELETE FROM questions")

    carry(to=True, on_progress=at)
    with closing(open_database(home / "nacre.db.moved")) as database:
        used = database.rows("SELECT memory, recall_count FROM usage ORDER BY memory")
    assert used
    with open_memory() as memory:
        rows = memory._home.database.rows("SELECT memory, recall_count FROM usage ORDER BY memory")
        assert rows == used
        assert memory._home.database.rows("SELECT count(*) FROM questions") == [(0,)]


@pytest.mark.parametrize("to", [True, False])
def test_store_waiting_for_a_move_writes_nothing_to_the_old_place(
    home: Path, carry: Carry, *, to: bool
) -> None:
    if not to:
        carry(to=True)
    opened, stores, errors = threading.Event(), [], []

    def store() -> None:
        with open_memory() as memory:
            opened.set()
            try:
                memory.store("The harbour office opens at seven.", kind="fact")
            except StoreBusyError as error:
                errors.append(error)

    def at(_: Progress) -> None:
        if not stores:
            stores.append(threading.Thread(target=store))
            stores[0].start()
            assert opened.wait(PATIENCE_SECONDS)

    carry(to=to, on_progress=at)
    stores[0].join(PATIENCE_SECONDS)
    assert [error.message for error in errors] == ["this memory was just moved to another place"]
    assert not [path for path in home.rglob("*.md") if "harbour office" in path.read_text()]
    with open_memory() as memory:
        memory.store("The harbour office opens at seven.", kind="fact")
        assert [item.subject for item in memory.list() if "harbour" in item.content]


def test_move_gives_up_while_others_keep_writing(home: Path, carry: Carry) -> None:
    def at(progress: Progress) -> None:
        if progress.note == "questions":
            with closing(open_database(home / "nacre.db")) as database, database.transaction():
                database.rows("UPDATE usage SET recall_count = recall_count + 1")

    with pytest.raises(StoreBusyError, match="keep writing"):
        carry(to=True, on_progress=at)
    assert not load_settings().server
    assert carry(to=True).is_in_use


def test_tenant_with_another_memory_is_not_overwritten(
    home: Path, carry: Carry, user_home: Path
) -> None:
    carry(to=True)
    os.environ["NACRE_HOME"] = str(user_home / "other")
    with open_memory() as memory:
        memory.store("The other home knows this", kind="fact")
    with pytest.raises(ConflictError, match="already has a memory"):
        carry(to=True)
    with pytest.raises(ConflictError, match="its own memory"):
        carry(to=False)
    assert not load_settings().server


def test_file_edited_after_the_move_is_not_overwritten(home: Path, carry: Carry) -> None:
    carry(to=True)
    edited = next((home / "vault" / "global").rglob("*.md"))
    edited.write_text(edited.read_text("utf-8") + "\nWritten by hand.\n", "utf-8")
    with pytest.raises(ConflictError, match="edited since"):
        carry(to=False)
    assert edited.read_text("utf-8").endswith("Written by hand.\n")


def test_replaced_vault_files_are_backed_up(home: Path, carry: Carry) -> None:
    carry(to=True)
    (home / "vault" / "identity.md").write_text("I mend boats.", "utf-8")
    page = next((home / "vault" / "projects").glob("*/project.md"))
    page.write_text("My own page.", "utf-8")
    carry(to=False)
    backup = home / "vault.before-move"
    assert (backup / "identity.md").read_text("utf-8") == "I mend boats."
    assert (backup / page.relative_to(home / "vault")).read_text("utf-8") == "My own page."


def test_move_commands_report_results(nacre: Nacre, server_url: str, tenant: str) -> None:
    nacre("store", "The harbour crane was built in 1931", "--subject", "Crane")
    assert "--yes" in nacre("data", "move", "--to", server_url, "--tenant", tenant, code=2).err
    result = nacre("data", "move", "--to", server_url, "--tenant", tenant, "--yes")
    assert "byte for byte the same" in result.out
    assert nacre("config", "show", "storage.tenant").out.strip().endswith(tenant)
    again = nacre("data", "move", "--to", server_url, "--tenant", tenant, "--yes", code=4)
    assert "already on a server" in again.err
    nacre("store", "The quay is ninety metres long", "--subject", "Quay")
    back = nacre("data", "move", "--from", server_url, "--tenant", tenant, "--json").json
    assert back["is_same"] is True
    memories = nacre("list", "--json").json["memories"]
    assert {memory["subject"] for memory in memories} == {"Crane", "Quay"}


def test_unreachable_server_fails_immediately_and_hides_the_password(
    home: Path, nacre: Nacre
) -> None:
    failed = nacre(
        "data", "move", "--to", "postgresql://nobody:s3cretword@127.0.0.1:1/none", "--yes", code=1
    )
    assert "cannot connect" in failed.err
    assert "s3cretword" not in failed.err
    assert not (home / "moved.json").exists()


def test_settings_never_store_the_password(home: Path) -> None:
    for address in (
        "postgresql://ada:pw@host/nacre",
        "postgresql://host/nacre?password=pw",
        "host/nacre",
    ):
        with pytest.raises(InvalidSettingsError) as error:
            write_setting(load_settings().config, "storage.url", address)
        assert "pw" not in f"{error.value.message} {error.value.hint}".replace("~/.pgpass", "")
    assert not load_settings().server


def test_every_table_is_moved_or_belongs_to_one_engine(
    home: Path, server_url: str, tenant: str
) -> None:
    with (
        closing(open_database(home / "nacre.db")) as file,
        closing(PostgresDatabase(server_url, tenant)) as server,
    ):
        here = {
            name for (name,) in file.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }
        there = {
            name
            for (name,) in server.rows(
                "SELECT tablename::text FROM pg_tables WHERE schemaname = 'nacre_rows'"
            )
        }
    here = {name for name in here if not any(part in name for part in FULL_TEXT)}
    assert here - set(TABLES) - OF_ONE_ENGINE == OF_FILES
    assert there - set(TABLES) - OF_ONE_ENGINE == OF_SERVERS
    assert set(TABLES) <= here & there


def test_daemon_follows_the_moved_memory(
    home: Path,
    carry: Carry,
    serving: Callable[..., Serving],
    user_home: Path,
    server_url: str,
    tenant: str,
) -> None:
    daemon = serving()
    daemon.until("following")
    carry(to=True)
    with closing(PostgresDatabase(server_url, tenant)) as there:
        _say(user_home, 1)
        daemon.until("read 1 turn")
        assert there.rows(TURNS_QUERY, ["%quay number 1%"])
        assert not (home / "nacre.db").exists()
        carry(to=False)
        _say(user_home, 2)
        daemon.until("read 1 turn")
        assert not there.rows(TURNS_QUERY, ["%quay number 2%"])
    with closing(open_database(home / "nacre.db")) as here:
        assert here.rows(TURNS_QUERY, ["%quay number 2%"])


def _say(user_home: Path, number: int) -> None:
    folder = user_home / ".claude" / "projects" / "-code-other"
    talk = [said("user", f"Which boat lies at quay number {number}?", 1)]
    write_transcript(folder / f"5f0c2a4d-0000-4000-8000-00000000000{number}.jsonl", talk)
