"""Rows on many nodes: a tenant's lie on one of them, and are told from others' there, too."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest

from nacre.api import open_memory
from nacre.base.sql import statements
from nacre.errors import NotAllowedError
from nacre.store.schema import Indexed, turn_clause
from nacre.values.recall import Filter
from nacre_server.connection import connect, migrate, query
from nacre_server.postgres import PostgresDatabase, distribute
from nacre_server.search import ServerSearch
from tests.cli.conftest import Nacre, nacre  # noqa: F401 - the fixture
from tests.storage import cluster
from tests.storage.cluster import Cluster
from tests.storage.filled import dump, fill, tables
from tests.storage.made import an_id, memory, put, said, turn
from tests.storage.server import folder

citus = pytest.mark.citus
_PEOPLE = ("anna", "ben", "rita", "tom")
_TASKS = re.compile(r"Task Count: (\d+)")


@pytest.fixture(scope="module")
def many() -> Iterator[Cluster]:
    """A cluster without tenants."""
    with cluster.running() as made:
        yield made


@pytest.fixture(scope="module")
def two(many: Cluster) -> Iterator[psycopg.Connection[Any]]:
    """An administrator's connection to a cluster where two tenants have the same rows in every table."""
    with connect(many.url) as admin:
        for name in ("one", "twin"):
            fill(admin, name)
        yield admin


def opened(cluster: Cluster, tenant: str) -> Any:
    return closing(PostgresDatabase(cluster.url, tenant))


def as_tenant(database: PostgresDatabase, sql: str) -> list[Any]:
    """What an own statement finds, that no statement of nacre's would say."""
    with database.transaction():
        return database._connection.execute(sql.encode()).fetchall()


@citus
def test_every_tenant_table_is_distributed_and_colocated(many: Cluster) -> None:
    with connect(many.url) as admin:
        found = admin.execute(
            "SELECT count(*), count(DISTINCT colocation_id), min(distribution_column) FROM citus_tables"
            " WHERE citus_table_type = 'distributed'"
        ).fetchone()
        assert found == (len(tables(admin)), 1, "tenant")
        held = admin.execute(
            "SELECT nodeport, count(*) FROM citus_shards WHERE table_name = 'nacre_rows.turns'::regclass GROUP BY 1"
        ).fetchall()
    assert {port for port, _ in held} == {node.port for node in many.nodes[1:]}


@citus
def test_each_statement_queries_one_node_per_tenant(
    many: Cluster, two: psycopg.Connection[Any]
) -> None:
    texts = statements("nacre.store", "sql/queries") | statements("nacre_server", "sql/queries")
    asked = {}
    with opened(many, "one") as database:
        for name in texts:
            values = dict.fromkeys(re.findall(r"%\((\w+)\)s", query(name)))
            with suppress(psycopg.Error), database._connection.transaction(force_rollback=True):
                database._connection.execute(database._opening)
                found = database._connection.execute(
                    f"EXPLAIN (COSTS OFF) {query(name)}".encode(), values
                )
                asked[name] = {int(one) for (line,) in found for one in _TASKS.findall(line)}
    assert {name: counts for name, counts in asked.items() if counts - {0, 1}} == {}
    assert sum(counts == {1} for counts in asked.values()) > 250


@citus
def test_search_queries_one_node(many: Cluster) -> None:
    with opened(many, "anna") as database:
        said(
            database,
            "one",
            turn("a", "The ferry leaves at nine."),
            turn("b", "The harbour is closed."),
        )
        search = ServerSearch(database, Indexed.TURNS)
        with pytest.MonkeyPatch.context() as patch:
            sent = _sent(database, patch)
            assert search.match(search.terms(["ferry"]), turn_clause(Filter()), 5)
        plans = [
            line for asked in sent for (line,) in database.rows(f"EXPLAIN {asked[0]}", asked[1])
        ]
    counts = [count for line in plans for count in _TASKS.findall(line)]
    assert set(counts) == {"1"}


def _sent(database: PostgresDatabase, patch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The statements that were composed for a search, from now on."""
    sent: list[tuple[str, Any]] = []
    ask = database.rows

    def rows(sql: str, parameters: Any = ()) -> list[Any]:
        sent.append((sql, parameters))
        return ask(sql, parameters)

    patch.setattr(database, "rows", rows)
    return sent


@citus
def test_recall_queries_at_most_one_node_at_a_time(
    many: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NACRE_DB", many.url)
    monkeypatch.setenv("NACRE_STORAGE_TENANT", "rita")
    monkeypatch.setenv("NACRE_HOME", str(tmp_path))
    with connect(many.url) as admin, open_memory() as home:
        home.call(
            "store",
            kind="fact",
            subject="Ferry",
            content="The ferry timetable is kept in tides.csv.",
        )
        single, several = _queries(admin)
        found = home.call("recall", text="Where is the ferry timetable?")
        assert "tides.csv" in str(found)
        after_single, after_several = _queries(admin)
    assert after_single > single
    assert after_several == several


def _queries(admin: psycopg.Connection[Any]) -> tuple[int, int]:
    """How many were answered by one shard, and by several, that far."""
    found = admin.execute(
        "SELECT query_execution_single_shard, query_execution_multi_shard FROM citus_stat_counters"
        " WHERE name = current_database()"
    ).fetchone()
    assert found
    return found[0], found[1]


@citus
def test_tenant_cannot_read_foreign_rows_in_base_tables(
    many: Cluster, two: psycopg.Connection[Any]
) -> None:
    with opened(many, "one") as own, opened(many, "empty") as other:
        for table in tables(two):
            if table == "words":  # told apart by its view, as on one server
                assert as_tenant(other, "SELECT 1 FROM word_rows") == []
                continue
            count = f"SELECT count(*) FROM nacre_rows.{table}"  # noqa: S608 - names of ours
            assert as_tenant(other, count) == [(0,)], table
            assert (
                as_tenant(own, count)
                == two.execute((count + " WHERE tenant = 'one'").encode()).fetchall()
            ), table


@citus
def test_tenant_cannot_write_rows_of_another_tenant(
    many: Cluster, two: psycopg.Connection[Any]
) -> None:
    before = dump(two, "twin")
    with opened(many, "one") as database:
        for sql in (
            "INSERT INTO nacre_rows.tags (tenant, memory, tag) SELECT 'twin', id, 'x' FROM memories RETURNING 1",
            "INSERT INTO nacre_rows.unsettled (tenant, memory) VALUES ('twin', 'x') RETURNING 1",
            "UPDATE nacre_rows.memories SET importance = 1 WHERE tenant = 'twin' RETURNING 1",
            "DELETE FROM nacre_rows.memories WHERE tenant = 'twin' RETURNING 1",
            "DELETE FROM nacre_rows.words WHERE tenant = 'twin' RETURNING 1",
        ):
            with suppress(psycopg.errors.InsufficientPrivilege):
                assert as_tenant(database, sql) == []
    assert dump(two, "twin") == before


@citus
def test_connection_without_a_tenant_is_an_error(many: Cluster) -> None:
    with connect(many.url) as nobody:
        nobody.execute("SET ROLE nacre_tenant")
        with pytest.raises(psycopg.Error, match=r"nacre\.tenant"):
            nobody.execute("SELECT count(*) FROM nacre.memories")


@citus
def test_administrator_counts_and_deletes_tenants(
    many: Cluster, two: psycopg.Connection[Any]
) -> None:
    fill(two, "leaving")
    kept = dump(two, "twin")
    counted = dict(
        two.execute("SELECT tenant, count(*) FROM nacre_rows.turns GROUP BY tenant").fetchall()
    )
    assert counted["leaving"] == counted["twin"] > 0
    with two.transaction():
        for table in (*reversed(tables(two)), "last_turns"):  # which a trigger fills when turns go
            two.execute(f"DELETE FROM nacre_rows.{table} WHERE tenant = 'leaving'".encode())  # noqa: S608 - as above
    assert dump(two, "leaving") == []
    assert dump(two, "twin") == kept


@citus
def test_rows_move_to_a_new_node_during_writes(many: Cluster) -> None:
    is_over = Event()
    with (
        folder() as place,
        cluster.node(place / "new") as new,
        ThreadPoolExecutor(len(_PEOPLE)) as pool,
    ):
        writing = [pool.submit(_write, many, person, is_over) for person in _PEOPLE]
        try:
            many.add(new)
            with connect(many.url) as admin:
                distribute(admin)
                admin.execute("SET statement_timeout = 0")
                admin.execute(
                    "SELECT citus_rebalance_start(rebalance_strategy => 'by_shard_count')"
                )
                admin.execute("SELECT citus_rebalance_wait()")
                moved = admin.execute(
                    "SELECT count(*) FROM citus_shards WHERE nodeport = %s", (new.port,)
                ).fetchone()
        finally:
            is_over.set()
        acknowledged = [one.result() for one in writing]
        assert moved
        assert moved[0] > 0
        for person, stored in zip(_PEOPLE, acknowledged, strict=True):
            with opened(many, person) as database:
                assert [
                    row
                    for (row,) in database.rows(
                        "SELECT id FROM memories WHERE kind = 'todo' ORDER BY row"
                    )
                ] == stored
        assert all(len(stored) > 3 for stored in acknowledged)
        with connect(many.url) as admin:
            admin.execute("SELECT citus_drain_node('127.0.0.1', %s)", (new.port,))
            admin.execute("SELECT citus_remove_node('127.0.0.1', %s)", (new.port,))


def _write(many: Cluster, person: str, is_over: Event) -> list[str]:
    """Store one memory after the other; returns those that were acknowledged."""
    stored: list[str] = []
    with opened(many, person) as database:
        while not is_over.is_set():
            one = memory(len(stored), kind="todo")
            put(database, one)
            stored.append(one.id)
    return stored


@citus
def test_existing_rows_are_distributed(
    many: Cluster,
    nacre: Nacre,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for node in many.nodes:
        with connect(node.address()) as admin:
            admin.execute("CREATE DATABASE grown")
    coordinator = many.nodes[0].address("grown")
    with connect(coordinator) as admin:
        migrate(admin)
        fill(admin, "one")
        before = dump(admin, "one")
    for node in many.nodes:
        with connect(node.address("grown")) as admin:
            admin.execute("CREATE EXTENSION citus")
            admin.execute("CREATE EXTENSION IF NOT EXISTS vector")
    with connect(coordinator) as admin:
        admin.execute("SELECT citus_set_coordinator_host('127.0.0.1', %s)", (many.nodes[0].port,))
        for node in many.nodes[1:]:
            admin.execute("SELECT citus_add_node('127.0.0.1', %s)", (node.port,))
        monkeypatch.setenv("NACRE_DB", coordinator)
        distributed = nacre(
            "server", "cluster", "migrate", "--citus", "--shards", "2", "--json"
        ).json
        assert (distributed["nodes"], distributed["tables"]) == (2, len(tables(admin)))
        assert nacre("server", "cluster", "migrate", "--citus", "--json").json["tables"] == 0
        assert dump(admin, "one") == before
    with closing(PostgresDatabase(coordinator, "one")) as database:
        assert put(database, memory(1)).find(an_id(1)) == memory(1)


@citus
def test_login_restricted_by_row_security_cannot_distribute(many: Cluster) -> None:
    with connect(many.url) as admin:
        admin.execute("CREATE ROLE clerk LOGIN")
    with (
        connect(many.url.replace("postgres:@", "clerk@")) as clerk,
        pytest.raises(NotAllowedError, match="row-level security"),
    ):
        distribute(clerk)
