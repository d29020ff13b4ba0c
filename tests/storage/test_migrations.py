"""Migrations of an existing memory by a newer nacre, and the behaviour of older versions afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import psycopg
import pytest

import nacre
import nacre_server
from nacre.errors import SchemaTooNewError
from nacre.store.sqlite import FileDatabase, newest
from nacre_server.connection import connect, migrations
from nacre_server.postgres import PostgresDatabase
from tests.storage.server import running

PRESENT = Path(nacre.__file__).parents[1]

_COLUMN = "ALTER TABLE {schema}embedding ADD COLUMN later TEXT;"
_STORE = """
import sys, nacre
with nacre.open_memory() as memory:
    for line in sys.stdin:
        memory.store(line.strip())
        print(len(memory.list()), flush=True)
"""


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A copy of nacre that tests can extend with a migration."""
    ignored = shutil.ignore_patterns("*.pyc")
    for package in (nacre, nacre_server):
        (present,) = map(Path, package.__path__)
        copy = tmp_path / "newer" / present.name
        shutil.copytree(present, copy, copy_function=os.symlink, ignore=ignored)
    return copy.parent


def _give(source: Path, sql: str) -> None:
    """Add migration 9000, with which the current version can still use a server."""
    file = source / "nacre/store/sql/migrations/9000_later.sql"
    file.write_text(sql.format(schema=""))
    header = f"-- needs {max(migrations())}\n{sql.format(schema='nacre_rows.')}\n"
    (source / "nacre_server/sql/migrations/9000_later.sql").write_text(header)


def _program(source: Path, home: Path, url: str = "") -> subprocess.Popen[str]:
    environ = {
        **os.environ,
        "PYTHONPATH": str(source),
        "NACRE_DB": url,
        "NACRE_HOME": str(home),
        "NACRE_EMBEDDING_MODEL": "none",
    }
    return subprocess.Popen(
        [sys.executable, "-c", _STORE],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _answer(program: subprocess.Popen[str], line: str) -> int:
    assert program.stdin
    assert program.stdout
    program.stdin.write(f"{line}\n")
    program.stdin.flush()
    return int(program.stdout.readline())


def _stored(source: Path, home: Path, line: str, url: str = "") -> int:
    """Return the number of memories after a program stored one and ended."""
    with _program(source, home, url) as program:
        answer = _answer(program, line)
        program.communicate()
    assert program.returncode == 0
    return answer


def _refused(source: Path, home: Path, url: str = "") -> str:
    """Return the error output of a program that cannot open a memory."""
    with _program(source, home, url) as program:
        _, output = program.communicate()
    assert program.returncode
    return output


def _columns(file: Path) -> list[str]:
    database = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    columns = [
        name for (name,) in database.execute("SELECT name FROM pragma_table_info('embedding')")
    ]
    database.close()
    return columns


def test_file_migration_keeps_a_copy_and_refuses_older_programs(
    newer: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    assert _stored(PRESENT, home, "The mill stands on the left bank.") == 1
    _give(newer, _COLUMN)
    assert _stored(newer, home, "The ferry runs every hour.") == 2
    assert _columns(home / "nacre.db") == ["key", "value", "later"]
    copy = home / "nacre.db.before-9000"
    assert _columns(copy) == ["key", "value"]
    database = FileDatabase(copy)
    assert database.schema() == newest()
    assert database.rows("SELECT content FROM memories") == [("The mill stands on the left bank.",)]
    database.close()
    assert "has schema 9000" in _refused(PRESENT, home)


def test_server_column_can_be_added_during_use_by_old_programs(newer: Path, tmp_path: Path) -> None:
    with running() as server:
        url = server.get_uri()
        assert _stored(PRESENT, tmp_path / "a", "The mill stands on the left bank.", url) == 1
        _give(newer, _COLUMN)
        assert _stored(newer, tmp_path / "b", "The ferry runs every hour.", url) == 2
        assert _stored(PRESENT, tmp_path / "a", "The bridge is closed on Sundays.", url) == 3
        with connect(url) as admin:
            query = "SELECT 1 FROM information_schema.columns WHERE table_schema = 'nacre_rows' AND column_name = 'later'"  # noqa: E501
            assert admin.execute(query).fetchall() == [(1,)]


@pytest.mark.parametrize("engine", ["file", "server"])
def test_failed_migration_leaves_the_memory_unchanged(
    engine: str, newer: Path, tmp_path: Path
) -> None:
    _give(newer, f"{_COLUMN} DROP TABLE {{schema}}nowhere;")
    home = tmp_path / "home"
    with running() as server:
        url = server.get_uri() if engine == "server" else ""
        assert _stored(PRESENT, home, "The mill stands on the left bank.", url) == 1
        assert "nowhere" in _refused(newer, home, url)
        assert _stored(PRESENT, home, "The ferry runs every hour.", url) == 2


def test_two_versions_coexist_until_the_old_is_unsupported(newer: Path, tmp_path: Path) -> None:
    _give(newer, "CREATE TABLE nacre_rows.later (tenant TEXT NOT NULL, what TEXT);")
    with running() as server:
        url = server.get_uri()
        old = _program(PRESENT, tmp_path / "a", url)
        assert _answer(old, "The mill stands on the left bank.") == 1
        new = _program(newer, tmp_path / "b", url)
        assert _answer(new, "The ferry runs every hour.") == 2
        assert _answer(old, "The bridge is closed on Sundays.") == 3
        late = _program(PRESENT, tmp_path / "c", url)
        assert _answer(late, "The inn opens in spring.") == 4
        assert _answer(new, "The school has two rooms.") == 5
        for item in (old, new, late):
            item.communicate()
            assert item.returncode == 0
        with connect(url) as admin:
            admin.execute("UPDATE nacre_rows.schema_version SET needs = number")
        with pytest.raises(SchemaTooNewError, match="9000"):
            PostgresDatabase(url, "main")


def test_migration_waiting_for_a_table_gives_up_and_retries(newer: Path, tmp_path: Path) -> None:
    _give(newer, _COLUMN)
    with running() as server:
        url = server.get_uri()
        PostgresDatabase(url, "main").close()
        with psycopg.connect(url) as holder:
            holder.execute("SELECT * FROM nacre_rows.embedding")
            new = _program(newer, tmp_path / "b", url)
            with psycopg.connect(url, autocommit=True) as admin:
                refused = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%%ADD COLUMN%%'"  # noqa: E501
                for is_waiting in (True, False):  # the migration waits for the lock and times out
                    while (admin.execute(refused).fetchone() is not None) != is_waiting:
                        os.sched_yield()
            holder.commit()
            assert _answer(new, "The ferry runs every hour.") == 1
            new.communicate()
