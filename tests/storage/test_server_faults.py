"""A stopped server, a killed client or an interrupted statement raises an error and loses no acknowledged write."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread
from typing import Any

import psycopg
import pytest

from nacre.errors import NacreError, StoreBusyError, UnavailableError, UnusableStoreError
from nacre.store.schema import Database
from nacre.store.sessions import Changes
from nacre_server.connection import connect
from nacre_server.postgres import PostgresDatabase, ServerLock
from tests.processes import wait
from tests.storage.conftest import Open
from tests.storage.server import kill, running, standing_still, start

_TIMES = 30
_numbers = count(1)


@pytest.fixture(scope="module")
def mortal() -> Iterator[Any]:
    """A server that tests stop and kill."""
    with running() as server:
        yield server


@pytest.fixture
def open_mortal(mortal: Any) -> Iterator[Callable[[str], PostgresDatabase]]:
    """Open a tenant's rows on the server. Each test has its own tenants."""
    own, opened = next(_numbers), []

    def open_tenant(name: str = "a") -> PostgresDatabase:
        opened.append(PostgresDatabase(mortal.get_uri(), f"{name}{own}"))
        return opened[-1]

    yield open_tenant
    start(mortal)
    for database in opened:
        database.close()


def _set(database: Database, value: object) -> None:
    database.run("set_embedding_value", key="model", value=str(value))


def _get(database: Database) -> str | None:
    row = database.one("get_embedding_value", key="model")
    return row[0] if row else None


# A stopped server.


@pytest.mark.parametrize("end", [lambda server: server.stop(), kill], ids=["stopped", "killed"])
def test_connection_dropped_by_the_server_recovers_after_restart(
    mortal: Any, open_mortal: Callable[[str], PostgresDatabase], end: Callable[[Any], None]
) -> None:
    database = open_mortal("a")
    _set(database, "one")
    end(mortal)
    for _ in range(2):
        with pytest.raises(UnusableStoreError) as error:
            _get(database)
        assert error.value.hint
    with pytest.raises(UnusableStoreError):
        _set(database, "two")
    start(mortal)
    assert _get(open_mortal("a")) == "one"
    assert _get(database) == "one"
    _set(database, "three")
    assert _get(open_mortal("a")) == "three"


def test_idle_connection_reopens_after_a_restart_in_each_block(
    mortal: Any, open_mortal: Callable[[str], PostgresDatabase]
) -> None:
    database = open_mortal("a")
    _set(database, "one")
    state, edition = database.state(), database.edition()
    _restart(mortal)
    assert (database.state(), database.edition()) == (state, edition)
    _restart(mortal)
    with database.reading():
        assert _get(database) == "one"
    _restart(mortal)
    with database.transaction():
        _set(database, "two")
    _restart(mortal)
    database.run_many("set_embedding_value", [{"key": "model", "value": "three"}])
    _restart(mortal)
    assert database.rows("SELECT nacre.tenant(), current_user::text") == [
        (database.tenant, "nacre_tenant")
    ]
    assert _get(database) == "three"


def _restart(server: Any) -> None:
    kill(server)
    start(server)


def test_transaction_fails_completely_if_its_connection_is_lost(
    mortal: Any, open_mortal: Callable[[str], PostgresDatabase]
) -> None:
    database = open_mortal("a")
    _set(database, "before")
    for then in (
        lambda: _set(database, "later"),
        lambda: None,
    ):  # either another statement or only the end of the block
        with pytest.raises(UnusableStoreError):
            _lose_connection(database, mortal, then)
        assert not database.is_in_transaction
        assert _get(database) == "before"


def _lose_connection(database: Database, server: Any, then: Callable[[], object]) -> None:
    with database.transaction():
        _set(database, "lost")
        _restart(server)
        assert database.is_in_transaction
        then()


def test_read_block_does_not_continue_on_another_connection(
    mortal: Any, open_mortal: Callable[[str], PostgresDatabase]
) -> None:
    database = open_mortal("a")
    with database.reading():
        _restart(mortal)
        with pytest.raises(UnusableStoreError):
            _get(database)
    assert _get(database) is None


def test_connection_with_temporary_tables_is_not_replaced(
    mortal: Any, open_mortal: Callable[[str], PostgresDatabase]
) -> None:
    database = open_mortal("a")
    changes = Changes(database)
    assert changes.memories() == []
    _restart(mortal)
    for _ in range(2):
        with pytest.raises(UnusableStoreError, match="does not answer"):
            changes.memories()


def test_lock_lost_with_its_connection_blocks_writes(
    mortal: Any, open_mortal: Callable[[str], PostgresDatabase]
) -> None:
    database = open_mortal("a")
    lock, another = ServerLock(database, "the vault"), ServerLock(open_mortal("a"), "the vault")
    with lock:
        assert not another.acquire()
        _restart(mortal)
        for _ in range(2):
            with pytest.raises(UnusableStoreError):
                _set(database, "written without the lock")
        assert another.acquire()
    assert _get(database) is None
    assert not lock.acquire()
    another.release()
    with lock:
        _set(database, "written with it")


def test_closed_connection_stays_closed(tenants: Open) -> None:
    database = tenants("closed")
    database.close()
    database.close()
    with pytest.raises(UnusableStoreError):
        _get(database)
    with pytest.raises(UnusableStoreError):
        _set(database, "one")


# Repeated kill -9.


def _write_pairs(url: str, tenant: str, report: Callable[[int], object]) -> None:
    """Count up; write each number to two tables and to a new row; report each acknowledged number."""
    database = PostgresDatabase(url, tenant)
    while True:
        with database.transaction():
            number = int(_get(database) or 0) + 1
            _set(database, number)
            database.run("set_usage_value", key="number", value=str(number))
            database.insert("unsettled", {"memory": f"{number:09}"}, "memory")
        report(number)


def _check(database: Database, acknowledged: int) -> None:
    """Check that each acknowledged write exists once, and at most one write without acknowledgement."""
    number = int(_get(database) or 0)
    assert number in (acknowledged, acknowledged + 1)
    assert database.rows("SELECT value FROM usage_values WHERE key = 'number'") == [(str(number),)]
    assert database.rows("SELECT count(*), max(memory) FROM unsettled") == [
        (number, f"{number:09}" if number else None)
    ]


def _child(url: str, tenant: str, pipe: Connection) -> None:
    _write_pairs(url, tenant, pipe.send)


def test_killed_client_loses_duplicates_and_locks_nothing(server_url: str, tenants: Open) -> None:
    chance, processes = random.Random(7), multiprocessing.get_context("fork")  # noqa: S311 - moments to kill at
    database = tenants("killed-client")
    with database.transaction():
        _set(database, 0)
        database.run("set_usage_value", key="number", value="0")
    for _ in range(_TIMES):
        ours, theirs = processes.Pipe()
        child = processes.Process(target=_child, args=(server_url, "killed-client", theirs))
        child.start()
        theirs.close()
        numbers = [ours.recv() for _ in range(chance.randrange(1, 12))]
        for _ in range(chance.randrange(20_000)):  # kill the client between two writes
            pass
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
        numbers.extend(_rest(ours))
        with (
            database.transaction()
        ):  # the lock is free as soon as the server notices the end of the client
            _check(database, numbers[-1])


def _rest(pipe: Connection) -> Iterator[int]:
    try:
        while True:
            yield pipe.recv()
    except (EOFError, OSError):
        pipe.close()


def test_killed_server_under_load_keeps_every_acknowledged_write_once(
    mortal: Any, open_mortal: Callable[[str], PostgresDatabase]
) -> None:
    chance = random.Random(8)  # noqa: S311 - moments to kill at
    databases = [open_mortal("a"), open_mortal("b")]
    for database in databases:
        database.run("set_usage_value", key="number", value="0")
    last = dict.fromkeys((database.tenant for database in databases), 0)
    for _ in range(_TIMES):
        results: SimpleQueue[tuple[str, int]] = SimpleQueue()
        threads = [
            Thread(target=_write_until_the_end, args=(mortal.get_uri(), database.tenant, results))
            for database in databases
        ]
        for thread in threads:
            thread.start()
        for _ in range(chance.randrange(1, 20)):
            last.update([results.get()])
        kill(mortal)
        for thread in threads:
            thread.join()
        while not results.empty():
            last.update([results.get()])
        start(mortal)
        for database in databases:
            with database.transaction():
                _check(database, last[database.tenant])
                last[database.tenant] = int(_get(database) or 0)


def _write_until_the_end(url: str, tenant: str, results: SimpleQueue[tuple[str, int]]) -> None:
    with pytest.raises(UnusableStoreError):
        _write_pairs(url, tenant, lambda number: results.put((tenant, number)))


# An interrupted statement.


@pytest.fixture
def watcher(server_url: str) -> Iterator[psycopg.Connection[Any]]:
    """An administrator's connection that sees the activity of others."""
    with connect(server_url) as connection:
        yield connection


def _wait_for(watcher: psycopg.Connection[Any], query: str, *values: object) -> None:
    wait(lambda: watcher.execute(query, values).fetchone())


def _pid(database: Database) -> int:
    return int(database.rows("SELECT pg_backend_pid()")[0][0])


_RUNS = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active' AND query LIKE '%%pg_sleep%%'"
_WAITS = "SELECT 1 FROM pg_locks WHERE pid = %s AND locktype = 'advisory' AND NOT granted"
_IS_GONE = "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = %s)"


def _sleep_in_a_block(database: Database) -> None:
    with database.transaction():
        _set(database, "lost")
        database.rows("SELECT 1 FROM pg_sleep(60)")


def test_interrupted_statement_is_unavailable_and_the_connection_survives(
    tenants: Open, watcher: psycopg.Connection[Any]
) -> None:
    database = tenants("interrupted")
    _set(database, "kept")
    pid = _pid(database)
    for work in (
        lambda: database.rows("SELECT 1 FROM pg_sleep(60)"),
        lambda: _sleep_in_a_block(database),
    ):
        with ThreadPoolExecutor(1) as thread:
            slow = thread.submit(work)
            _wait_for(watcher, _RUNS, pid)
            database.interrupt()
            with pytest.raises(UnavailableError):
                slow.result()
        assert _get(database) == "kept"
        assert _pid(database) == pid
    database.interrupt()  # no statement is running
    _set(database, "kept on")
    assert _get(database) == "kept on"


def test_stalled_server_is_reported_and_retried_later(
    mortal: Any,
) -> None:
    with closing(PostgresDatabase(mortal.get_uri(), "still", patience=0.5)) as database:
        _set(database, "kept")
        for work in (lambda: _get(database), lambda: _set(database, "lost")):
            with standing_still(mortal), pytest.raises(UnavailableError, match="does not answer"):
                work()
            assert _get(database) == "kept"
        with pytest.raises(UnavailableError):
            _set_in_a_block(database, mortal)
        assert _get(database) == "kept"


def _set_in_a_block(database: Database, stops: Any) -> None:
    with database.transaction():
        _set(database, "lost")
        with standing_still(stops):
            _set(database, "lost, too")


def test_waiting_writer_can_be_interrupted(tenants: Open, watcher: psycopg.Connection[Any]) -> None:
    writer, waiting = tenants("waited"), tenants("waited")
    pid = _pid(waiting)
    with ThreadPoolExecutor(1) as thread, writer.transaction():
        write = thread.submit(_set, waiting, "two")
        _wait_for(watcher, _WAITS, pid)
        waiting.interrupt()
        with pytest.raises(UnavailableError):
            write.result()
        assert not waiting.is_in_transaction
    _set(waiting, "three")
    assert _get(writer) == "three"


def test_transaction_with_a_swallowed_error_is_not_committed(
    tenants: Open,
) -> None:
    database = tenants("swallowed")

    def write() -> None:
        with database.transaction():
            _set(database, "one")
            with pytest.raises(NacreError):
                database.run("set_embedding_value", key=None, value=None)

    with pytest.raises(UnusableStoreError, match="nothing was written"):
        write()
    assert _get(database) is None


def test_idle_transaction_is_terminated_with_an_error(
    tenants: Open, watcher: psycopg.Connection[Any]
) -> None:
    database = tenants("idle")
    for then in (lambda: _set(database, "later"), lambda: None):
        with pytest.raises(UnusableStoreError):
            _idle(database, watcher, then)
        assert _get(database) is None


def _idle(database: Database, watcher: psycopg.Connection[Any], then: Callable[[], object]) -> None:
    with database.transaction():
        _set(database, "lost")
        pid = _pid(database)
        database.rows("SELECT set_config('idle_in_transaction_session_timeout', '20ms', false)")
        _wait_for(watcher, _IS_GONE, pid)
        then()


# Many writers.


def test_writers_of_one_tenant_are_serialised(
    tenants: Open, watcher: psycopg.Connection[Any]
) -> None:
    writer, waiting = tenants("two-writers"), tenants("two-writers")
    pid = _pid(waiting)
    with ThreadPoolExecutor(1) as thread:
        with writer.transaction():
            _set(writer, "one")
            write = thread.submit(_set, waiting, "two")
            _wait_for(watcher, _WAITS, pid)
            assert _get(writer) == "one"
        write.result()
    assert _get(writer) == "two"


def _impatient(database: Database) -> Database:
    database.rows("SELECT set_config('lock_timeout', '20ms', false)")
    return database


def test_writer_waiting_too_long_gets_a_busy_error(tenants: Open) -> None:
    writer, waiting = tenants("busy"), _impatient(tenants("busy"))
    with writer.transaction():
        _set(writer, "one")
        for ask in (
            lambda: _set(waiting, "two"),
            lambda: waiting.rows("INSERT INTO unsettled (memory) VALUES ('x') RETURNING memory"),
        ):
            with pytest.raises(StoreBusyError):
                ask()
            assert not waiting.is_in_transaction
        assert _get(waiting) is None
    _set(waiting, "three")
    assert _get(writer) == "three"


def test_writers_of_different_tenants_do_not_wait(tenants: Open) -> None:
    first, second = tenants("apart-one"), _impatient(tenants("apart-two"))
    with first.transaction():
        _set(first, "one")
        for _ in range(3):
            with second.transaction():
                _set(second, "two")
                second.rows("DELETE FROM embedding WHERE key = 'none' RETURNING key")
    assert (_get(first), _get(second)) == ("one", "two")


def test_eight_counting_threads_lose_no_increment(server_url: str, tenants: Open) -> None:
    def work(_: int) -> None:
        database = PostgresDatabase(server_url, "counted")
        for _ in range(200):
            with database.transaction():
                _set(database, int(_get(database) or 0) + 1)
        database.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert _get(tenants("counted")) == "1600"


# Editions.


def test_edition_changes_after_a_write_on_another_connection(
    tenants: Open,
) -> None:
    writer, same, other = tenants("edited"), tenants("edited"), tenants("edited-not")
    edition, state = writer.edition(), writer.state()
    _set(other, "x")
    with same.transaction():
        _get(same)
    with pytest.raises(ZeroDivisionError), same.transaction():
        _set(same, 1 // 0)
    assert (writer.edition(), writer.state()) == (edition, state)
    _set(writer, "own")
    assert writer.edition() == edition
    assert writer.state() not in (state, None)
    _set(same, "another's")
    assert writer.edition() != edition
    with writer.transaction():
        assert writer.state() is None


@pytest.mark.parametrize("tenant", ["nobody", "same", "other"])
def test_yielding_the_lock_reports_concurrent_changes_of_the_tenant(
    tenants: Open, tenant: str
) -> None:
    writer, other_writers = (
        tenants("yields"),
        {"same": tenants("yields"), "other": tenants("yields-not")},
    )

    def between() -> None:
        if tenant in other_writers:
            _set(other_writers[tenant], "meanwhile")

    with writer.transaction():
        writer.rows(
            "SELECT 1 FROM pg_sleep(0.031)"
        )  # the minimum hold time before the lock is yielded
        _set(writer, "first part")
        assert writer.yield_write_lock(between=between) == (tenant == "same")
        assert _get(writer) == ("meanwhile" if tenant == "same" else "first part")
