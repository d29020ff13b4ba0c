"""What is done once more, unasked: what left nothing behind. What may have been committed is not."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

import nacre
from nacre.errors import SchemaTooNew, StoreBusy, StoreUnusable
from nacre.storage.database import Database
from nacre.storage.postgres.connection import connect
from nacre.storage.postgres.database import PostgresDatabase
from nacre.storage.postgres.migrate import migrations
from nacre.storage.postgres.retry import TIMES, repeated
from tests.storage.conftest import Open
from tests.storage.server import running


class Way:
    """A way to a server that may end without a word: who sends something then learns that nobody is there."""

    def __init__(self, folder: Path, to: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self._to = to
        self._mine: list[socket.socket] = []
        self._all: list[socket.socket] = []
        threading.Thread(target=self._lead, daemon=True).start()

    def end(self) -> None:
        """End the connections that are open: the client's side hears of it when it sends."""
        for server in self._mine:
            server.shutdown(socket.SHUT_RDWR)
        self._mine.clear()

    def close(self) -> None:
        for one in (self._listener, *self._all):
            one.close()

    def _lead(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._to)
                self._mine.append(server)
                self._all += client, server
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=_pass_on, args=(*pair, pair[0] is client), daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, is_client: bool) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):  # it may be closed
        if is_client:  # it sent something, and nobody took it
            source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            source.close()


@pytest.fixture
def way(tmp_path_factory: pytest.TempPathFactory, server_url: str) -> Iterator[tuple[Way, str]]:
    folder = tmp_path_factory.mktemp("way")
    found = conninfo_to_dict(server_url)
    led = Way(folder, f"{found['host']}/.s.PGSQL.{found.get('port', 5432)}")
    yield led, f"postgresql://postgres:@/postgres?host={folder}"
    led.close()


def _set(database: Database, value: str) -> None:
    database.run("set_embedding_value", key="model", value=value)


def _get(database: Database) -> str | None:
    row = database.one("get_embedding_value", key="model")
    return row[0] if row else None


def test_a_connection_that_was_lost_without_a_word_is_made_anew_before_anything_was_done(
    way: tuple[Way, str], tenant: str
) -> None:
    led, url = way
    database = PostgresDatabase(url, tenant)
    _set(database, "one")
    for step in (lambda: _get(database), lambda: _set(database, "two"), lambda: _in_one_view(database)):
        led.end()
        step()
    assert _get(database) == "two"
    database.close()


def _in_one_view(database: Database) -> None:
    with database.reading():
        assert _get(database) == "two"


def test_within_a_block_the_loss_is_told_and_nothing_is_done_again(way: tuple[Way, str], tenant: str) -> None:
    led, url = way
    database = PostgresDatabase(url, tenant)
    _set(database, "one")

    def lose() -> None:
        with database.transaction():
            _set(database, "lost")
            led.end()

    with pytest.raises(StoreUnusable):
        lose()
    assert _get(database) == "one"
    database.close()


def test_a_statement_that_the_server_took_back_to_end_a_deadlock_is_done_again(server_url: str, tenants: Open) -> None:
    database = tenants("dead")
    _set(database, "one")
    with psycopg.connect(server_url) as other, ThreadPoolExecutor(1) as thread:
        other.execute("SET deadlock_timeout = '20s'")  # so that the deadlock is not this one's to end
        other.execute("LOCK TABLE nacre_rows.embedding IN ACCESS EXCLUSIVE MODE")
        written = thread.submit(_set, database, "two")
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('dead', 0))")
        other.commit()
        written.result(30)
    assert _get(database) == "two"


def test_what_is_taken_back_every_time_is_told_as_busy_and_pauses_grow() -> None:
    tried, paused = [], list[int]()

    def work() -> None:
        tried.append(1)
        raise StoreBusy("another process is writing", hint="wait") from errors.DeadlockDetected()

    with pytest.raises(StoreBusy):
        repeated(work, paused.append)
    assert (len(tried), paused) == (TIMES, [0, 1, 2])


def test_who_waited_long_for_a_lock_is_told_at_once() -> None:
    tried = []

    def work() -> None:
        tried.append(1)
        raise StoreBusy("another process is writing", hint="wait") from errors.LockNotAvailable()

    with pytest.raises(StoreBusy):
        repeated(work)
    assert len(tried) == 1


# Old and new programs side by side.

_STORE = """
import sys, nacre
with nacre.open_memory() as memory:
    for line in sys.stdin:
        memory.store(line.strip())
        print(len(memory.list()), flush=True)
"""
_EXPAND = "-- needs {needs}\nCREATE TABLE nacre_rows.later (tenant TEXT NOT NULL, what TEXT);\n"


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A nacre with one migration more, beside which this one still works."""
    made = tmp_path / "newer" / "nacre"
    shutil.copytree(Path(nacre.__file__).parent, made, copy_function=os.symlink, ignore=shutil.ignore_patterns("*.pyc"))
    (made / "storage/sql/postgres/9000_expand.sql").write_text(_EXPAND.format(needs=max(migrations())))
    return made.parent


def _program(source: Path, url: str, home: Path) -> subprocess.Popen[str]:
    environ = {
        **os.environ, "PYTHONPATH": str(source), "NACRE_DB": url, "NACRE_HOME": str(home),
        "NACRE_EMBEDDING_MODEL": "none", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-c", _STORE], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _told(program: subprocess.Popen[str], line: str) -> int:
    assert program.stdin
    assert program.stdout
    program.stdin.write(f"{line}\n")
    program.stdin.flush()
    return int(program.stdout.readline())


def test_programs_of_two_versions_work_side_by_side_until_the_old_is_not_enough(newer: Path, tmp_path: Path) -> None:
    with running() as server:
        url = server.get_uri()
        older = Path(nacre.__file__).parents[1]
        old = _program(older, url, tmp_path / "a")
        assert _told(old, "The mill stands on the left bank.") == 1
        new = _program(newer, url, tmp_path / "b")
        assert _told(new, "The ferry runs every hour.") == 2
        assert _told(old, "The bridge is closed on Sundays.") == 3
        late = _program(older, url, tmp_path / "c")
        assert _told(late, "The inn opens in spring.") == 4
        assert _told(new, "The school has two rooms.") == 5
        for one in (old, new, late):
            one.communicate()
            assert one.returncode == 0
        with connect(url) as admin:
            admin.execute("UPDATE nacre_rows.schema_version SET needs = number")
        with pytest.raises(SchemaTooNew, match="9000"):
            PostgresDatabase(url, "main")


def test_a_migration_waits_for_who_holds_a_table_and_lets_others_go_before_it(newer: Path, tmp_path: Path) -> None:
    sql = newer / "nacre/storage/sql/postgres/9000_expand.sql"
    sql.write_text(f"-- needs {max(migrations())}\nALTER TABLE nacre_rows.embedding ADD COLUMN later TEXT;\n")
    with running() as server:
        url = server.get_uri()
        PostgresDatabase(url, "main").close()
        with psycopg.connect(url) as holder:
            holder.execute("SELECT * FROM nacre_rows.embedding")
            new = _program(newer, url, tmp_path / "b")
            with psycopg.connect(url, autocommit=True) as admin:
                refused = (
                    "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%%ADD COLUMN%%'"
                )
                for is_waiting in (True, False):  # it waits, and gives up for a moment
                    while (admin.execute(refused).fetchone() is not None) != is_waiting:
                        os.sched_yield()
            holder.commit()
            assert _told(new, "The ferry runs every hour.") == 1
            new.communicate()
