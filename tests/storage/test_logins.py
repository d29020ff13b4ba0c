"""Logins that may open or migrate a tenant's rows on a server, and errors of unreachable servers."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from threading import Barrier
from typing import Any

import psycopg
import pytest

from nacre.errors import NacreError, SchemaTooNewError, UnusableStoreError
from nacre_server.connection import connect
from nacre_server.postgres import PostgresDatabase
from tests.storage.server import running

_PASSWORD = "hunter2"
_numbers = count(1)

Make = Callable[..., str]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Any]:
    """A server where login ``guarded`` needs a password and ``owner`` and ``plain`` are not superusers."""
    with running() as server:
        rules = server.pgdata / "pg_hba.conf"
        rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
        with connect(server.get_uri()) as admin:
            admin.execute("SELECT pg_reload_conf()")
            admin.execute(
                f"CREATE ROLE guarded LOGIN PASSWORD '{_PASSWORD}'; CREATE ROLE owner LOGIN"
            )
            admin.execute(
                "CREATE ROLE plain LOGIN; CREATE ROLE nacre_tenant; GRANT nacre_tenant TO plain"
            )
        yield server


@pytest.fixture
def admin(guarded: Any) -> Iterator[psycopg.Connection[Any]]:
    """An administrator's connection."""
    with connect(guarded.get_uri()) as connection:
        yield connection


@pytest.fixture
def database_of(guarded: Any, admin: psycopg.Connection[Any]) -> Make:
    """``database_of("owner")`` creates a database owned by a login; returns its address for that or another login."""

    def create(owner: str, login: str = "", options: str = "", *, has_vector: bool = False) -> str:
        name = f"made{next(_numbers)}"
        admin.execute(f"CREATE DATABASE {name} OWNER {owner} {options}")
        if has_vector:
            with connect(_address(guarded, "postgres", name)) as connection:
                connection.execute("CREATE EXTENSION vector")
        return _address(guarded, login or owner, name)

    return create


def _address(server: Any, login: str, database: str) -> str:
    return str(server.get_uri()).replace("postgres:@/postgres?", f"{login}@/{database}?")


def _write_and_read(url: str) -> None:
    database = PostgresDatabase(url, "a")
    with database.transaction():
        database.insert("sessions", {"tool": "t", "native_id": "n", "kind": "main"}, "row")
        database.run("note_session_file", session=1, file="f")
    assert database.rows("SELECT count(*) FROM session_files") == [(1,)]
    database.rows("DELETE FROM sessions RETURNING row")
    assert database.rows("SELECT count(*) FROM session_files") == [(0,)]
    database.close()


def test_unprivileged_owner_migrates_with_an_existing_granted_role(
    database_of: Make, admin: psycopg.Connection[Any]
) -> None:
    admin.execute("GRANT nacre_tenant TO owner")
    _write_and_read(database_of("owner", has_vector=True))
    admin.execute("REVOKE nacre_tenant FROM owner")


def test_owner_without_the_granted_role_gets_a_hint(
    database_of: Make,
) -> None:
    with pytest.raises(UnusableStoreError, match="refused the request") as error:
        PostgresDatabase(database_of("owner", has_vector=True), "a")
    assert "GRANT nacre_tenant TO" in str(error.value.hint)


def test_owner_with_createrole_migrates_alone(
    database_of: Make, admin: psycopg.Connection[Any]
) -> None:
    with _without_role(admin):
        admin.execute("CREATE ROLE maker LOGIN CREATEROLE")
        url = database_of("maker", has_vector=True)
        _write_and_read(url)
        admin.execute(f"DROP DATABASE {_name(url)}")
    admin.execute("DROP ROLE maker")


@pytest.mark.parametrize("inherits", ["INHERIT", "NOINHERIT"])
def test_tenant_only_login_opens_a_migrated_database(
    guarded: Any, admin: psycopg.Connection[Any], database_of: Make, inherits: str
) -> None:
    admin.execute(f"ALTER ROLE plain {inherits}")
    admin.execute(f"GRANT nacre_tenant TO plain WITH INHERIT {inherits == 'INHERIT'}")
    url = database_of("postgres")
    PostgresDatabase(url, "a").close()
    _write_and_read(_address(guarded, "plain", _name(url)))
    with pytest.raises(UnusableStoreError, match="refused the request") as error:
        PostgresDatabase(_address(guarded, "owner", _name(url)), "a")
    assert "GRANT nacre_tenant TO" in str(error.value.hint)


def test_login_without_rights_names_rights_for_the_first_opening(database_of: Make) -> None:
    with pytest.raises(UnusableStoreError, match="refused the request") as error:
        PostgresDatabase(database_of("postgres", "plain"), "a")
    assert "vector" in str(error.value.hint)


def test_concurrent_openings_migrate_databases_of_a_new_cluster(
    database_of: Make, admin: psycopg.Connection[Any]
) -> None:
    urls = [database_of("postgres") for _ in range(3)] * 3
    start = Barrier(len(urls))

    def opened(number: int) -> PostgresDatabase:
        start.wait()
        return PostgresDatabase(urls[number], f"t{number}")

    with _without_role(admin):
        with ThreadPoolExecutor(len(urls)) as threads:
            databases = list(threads.map(opened, range(len(urls))))
        assert {database.one("get_embedding_value", key="x") for database in databases} == {None}
        for database in databases:
            database.close()
        for url in set(urls):
            admin.execute(f"DROP DATABASE {_name(url)}")


class _without_role:  # noqa: N801 - read as a phrase
    """Remove the role in the block, as in a cluster without tenants."""

    def __init__(self, admin: psycopg.Connection[Any]) -> None:
        self._admin = admin

    def __enter__(self) -> None:
        self._admin.execute("ALTER ROLE nacre_tenant RENAME TO former_tenant")

    def __exit__(self, *error: object) -> None:
        self._admin.execute("DROP ROLE IF EXISTS nacre_tenant")
        self._admin.execute("ALTER ROLE former_tenant RENAME TO nacre_tenant")


def _name(url: str) -> str:
    return url.split("@/")[1].split("?")[0]


def test_server_with_a_newer_schema_is_not_changed(database_of: Make) -> None:
    url = database_of("postgres")
    PostgresDatabase(url, "a").close()
    with connect(url) as server:
        server.execute("INSERT INTO nacre_rows.schema_version (number, needs) VALUES (9999, 9999)")
    with pytest.raises(SchemaTooNewError, match="9999"):
        PostgresDatabase(url, "a")


def test_missing_pgvector_is_reported(database_of: Make, admin: psycopg.Connection[Any]) -> None:
    url = database_of("postgres")
    admin.execute(f"ALTER DATABASE {_name(url)} SET extension_control_path = '/nowhere'")
    with pytest.raises(UnusableStoreError, match="vector") as error:
        PostgresDatabase(url, "a")
    assert "pgvector" in str(error.value.hint)


def test_database_with_another_encoding_is_refused(database_of: Make) -> None:
    with pytest.raises(UnusableStoreError, match="LATIN1") as error:
        PostgresDatabase(
            database_of("postgres", options="ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"), "a"
        )
    assert "UTF8" in str(error.value.hint)


def test_login_settings_do_not_weaken_transaction_guarantees(
    database_of: Make, admin: psycopg.Connection[Any]
) -> None:
    url = database_of("postgres")
    for setting in (
        "default_transaction_isolation = 'serializable'",
        "synchronous_commit = off",
        "standard_conforming_strings = off",
        "default_transaction_read_only = on",
    ):
        admin.execute(f"ALTER DATABASE {_name(url)} SET {setting}")
    database = PostgresDatabase(url, "a")
    with database.transaction():
        for name, value in {
            "transaction_isolation": "read committed",
            "synchronous_commit": "on",
        }.items():
            assert database.rows(f"SHOW {name}") == [(value,)]
        database.run("set_embedding_value", key="\\'", value="\\")
    assert database.one("get_embedding_value", key="\\'") == ("\\",)
    database.close()


@pytest.fixture
def silent() -> Iterator[str]:
    """A port with a listener that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


_PLACES = {
    "no folder": f"postgresql://guarded:{_PASSWORD}@/postgres?host=/nowhere",
    "no server": f"postgresql://guarded:{_PASSWORD}@127.0.0.1:1/postgres",
    "no such name": f"postgresql://guarded:{_PASSWORD}@nowhere.invalid/postgres",
    "silence": f"postgresql://guarded:{_PASSWORD}@SILENT/postgres?connect_timeout=2",
    "another port": f"postgresql://guarded:{_PASSWORD}@/postgres?host=FOLDER&port=5999",
    "wrong password": "postgresql://guarded:x-hunter2-x@/postgres?host=FOLDER",
    "no password": "postgresql://guarded@/postgres?host=FOLDER",
    "no database": f"postgresql://guarded:{_PASSWORD}@/hunter?host=FOLDER",
    "no login": f"postgresql://nobody:{_PASSWORD}@/postgres?host=FOLDER",
    "@": f"postgresql://guarded:x@{_PASSWORD}@127.0.0.1:1/postgres",
    "/": f"postgresql://guarded:x/{_PASSWORD}@127.0.0.1:1/postgres",
    "/ after a number": f"postgresql://guarded:12/{_PASSWORD}@127.0.0.1:1/postgres",
    "?": f"postgresql://guarded:{_PASSWORD}?x@127.0.0.1:1/postgres",
    "#": f"postgresql://guarded:{_PASSWORD}#x@127.0.0.1:1/postgres",
    "%": f"postgresql://guarded:{_PASSWORD}%zz@127.0.0.1:1/postgres",
    "[": f"postgresql://guarded:[{_PASSWORD}@127.0.0.1:1/postgres",
    ":": f"postgresql://guarded:a:{_PASSWORD}@127.0.0.1:1/postgres",
    "another scheme": f"mysql://guarded:{_PASSWORD}@127.0.0.1:1/postgres",
    "words": f"host=127.0.0.1 port=1 user=guarded password={_PASSWORD}",
    "half a word": f"host=127.0.0.1 {_PASSWORD}",
    "nothing": "postgresql://",
}


@pytest.mark.parametrize("place", _PLACES)
def test_unreachable_server_fails_quickly_without_showing_the_password(
    guarded: Any, silent: str, place: str
) -> None:
    folder = str(guarded.get_uri()).rpartition("host=")[2]
    began = time.monotonic()
    with pytest.raises(UnusableStoreError) as error:
        PostgresDatabase(_PLACES[place].replace("FOLDER", folder).replace("SILENT", silent), "a")
    assert time.monotonic() - began < 10
    assert error.value.hint
    assert _PASSWORD not in "".join(_texts(error.value))


def _texts(error: BaseException | None) -> Iterator[str]:
    """Return the texts of an error and its causes, as a log shows them."""
    while error is not None:
        yield f"{error!r} {error} {error.hint if isinstance(error, NacreError) else ''}"
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_correct_password_opens_the_database(
    guarded: Any, admin: psycopg.Connection[Any], database_of: Make
) -> None:
    url = database_of("postgres")
    PostgresDatabase(url, "a").close()
    admin.execute("GRANT nacre_tenant TO guarded")
    PostgresDatabase(_address(guarded, f"guarded:{_PASSWORD}", _name(url)), "a").close()
