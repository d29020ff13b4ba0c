"""Automatic retries: operations without effect are retried, possibly committed ones are not."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from nacre.errors import StoreBusyError, UnusableStoreError
from nacre.store.schema import Database
from nacre_server import connection
from nacre_server.connection import TIMES, repeated
from nacre_server.postgres import PostgresDatabase
from tests.storage.conftest import Open


class Way:
    """A proxy to a server that can drop connections silently; the client notices with its next request."""

    def __init__(self, folder: Path, to: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self._to = to
        self._mine: list[socket.socket] = []
        self._all: list[socket.socket] = []
        threading.Thread(target=self._lead, daemon=True).start()

    def end(self) -> None:
        """End the open connections; the client notices when it sends."""
        for server in self._mine:
            server.shutdown(socket.SHUT_RDWR)
        self._mine.clear()

    def close(self) -> None:
        for item in (self._listener, *self._all):
            item.close()

    def _lead(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._to)
                self._mine.append(server)
                self._all += client, server
                for pair in ((client, server), (server, client)):
                    threading.Thread(
                        target=_pass_on, args=(*pair, pair[0] is client), daemon=True
                    ).start()


def _pass_on(source: socket.socket, target: socket.socket, is_client: bool) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):  # the socket may be closed
        if is_client:  # data arrived after the connection ended
            source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            source.close()


@pytest.fixture
def way(tmp_path_factory: pytest.TempPathFactory, server_url: str) -> Iterator[tuple[Way, str]]:
    folder = tmp_path_factory.mktemp("way")
    options = conninfo_to_dict(server_url)
    led = Way(folder, f"{options['host']}/.s.PGSQL.{options.get('port', 5432)}")
    yield led, f"postgresql://postgres:@/postgres?host={folder}"
    led.close()


def _set(database: Database, value: str) -> None:
    database.run("set_embedding_value", key="model", value=value)


def _get(database: Database) -> str | None:
    row = database.one("get_embedding_value", key="model")
    return row[0] if row else None


def test_lost_connection_is_reopened_before_any_change(way: tuple[Way, str], tenant: str) -> None:
    led, url = way
    database = PostgresDatabase(url, tenant)
    _set(database, "one")
    for step in (
        lambda: _get(database),
        lambda: _set(database, "two"),
        lambda: _expect_two_in_a_block(database),
    ):
        led.end()
        step()
    assert _get(database) == "two"
    database.close()


def _expect_two_in_a_block(database: Database) -> None:
    with database.reading():
        assert _get(database) == "two"


def test_connection_loss_in_a_transaction_is_reported_without_retry(
    way: tuple[Way, str], tenant: str
) -> None:
    led, url = way
    database = PostgresDatabase(url, tenant)
    _set(database, "one")

    def lose() -> None:
        with database.transaction():
            _set(database, "lost")
            led.end()

    with pytest.raises(UnusableStoreError):
        lose()
    assert _get(database) == "one"
    database.close()


def test_statement_rolled_back_by_deadlock_is_retried(server_url: str, tenants: Open) -> None:
    database = tenants("dead")
    _set(database, "one")
    with psycopg.connect(server_url) as other, ThreadPoolExecutor(1) as thread:
        other.execute(
            "SET deadlock_timeout = '20s'"
        )  # so that the other transaction is the deadlock's victim
        other.execute("LOCK TABLE nacre_rows.embedding IN ACCESS EXCLUSIVE MODE")
        written = thread.submit(_set, database, "two")
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('dead', 0))")
        other.commit()
        written.result(30)
    assert _get(database) == "two"


def test_repeated_rollback_reports_busy_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried, paused = [], list[int]()
    monkeypatch.setattr(connection, "pause", paused.append)

    def work() -> None:
        tried.append(1)
        raise StoreBusyError(
            "another process is writing", hint="wait"
        ) from errors.DeadlockDetected()

    with pytest.raises(StoreBusyError):
        repeated(work)
    assert (len(tried), paused) == (TIMES, [0, 1, 2])


def test_lock_timeout_is_not_retried() -> None:
    tried = []

    def work() -> None:
        tried.append(1)
        raise StoreBusyError(
            "another process is writing", hint="wait"
        ) from errors.LockNotAvailable()

    with pytest.raises(StoreBusyError):
        repeated(work)
    assert len(tried) == 1
