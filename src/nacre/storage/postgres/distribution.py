"""Rows of tenants on many nodes, by Citus: all that is a tenant's lies on one of them.

A node knows nothing of the settings of a connection to the coordinator, but row-level security holds there, by the
tenant's name. So each transaction begins with these settings, which Citus then carries along (decision 26).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from nacre.errors import NotAllowed, StoreUnusable
from nacre.platform.sql_files import statements
from nacre.storage.postgres.dialect import translated

SHARDS = 32
"""So many parts have rows of tenants at first, and so many nodes can share them."""

IS_DISTRIBUTED = "(SELECT provolatile = 'i' FROM pg_proc WHERE oid = to_regprocedure('nacre.tenant()'))"
"""Where rows are distributed the coordinator takes the tenant's name for a constant, by which it finds the node."""

_BESIDE = b"SET search_path = nacre_rows, nacre, pg_catalog, public, pg_temp; SET citus.propagate_set_commands = local"
"""Rows are put into the tables themselves: Citus puts none into views."""


@dataclass(frozen=True, slots=True)
class Distributed:
    """On how many nodes rows of tenants lie, and how many tables were distributed just now."""

    nodes: int
    tables: int


def telling_nodes(connection: psycopg.Connection[Any], settings: Mapping[str, str]) -> bytes:
    """Have a connection work with distributed rows; returns what its transactions begin with.

    It may stand in front of a statement: both are one transaction then. It is a block of its own, since Citus hands on
    the whole text of the message that a SET stands in.
    """
    connection.execute(_BESIDE)
    told = sql.SQL("; ").join(
        sql.SQL("SET LOCAL {} = {}").format(sql.Identifier(*name.split(".")), value) for name, value in settings.items()
    )
    return sql.SQL("DO {};").format(f"BEGIN {told.as_string(connection)}; END").as_bytes(connection)


def distribute(
    connection: psycopg.Connection[Any], shards: int = SHARDS, tell: Callable[[str], object] = lambda _: None
) -> Distributed:
    """Distribute the rows of a migrated server by tenant. What is distributed already stays; new nodes are told what
    Citus does not tell them by itself.

    ``tell`` is given the name of each table before it. Nobody else can write until it is done. Raises StoreUnusable,
    NotAllowed, psycopg.Error.
    """
    _require_nodes(connection)
    with connection.transaction():
        _ask(connection, "prepare")
        _ask(connection, "be_quiet")
        found = [name for (name,) in _ask(connection, "list_local")]
        for name in found:
            tell(name)
            _ask(connection, "distribute_first" if name == "nacre_rows.memories" else "distribute_beside",
                 held=name, shards=shards)  # fmt: skip
        for (name,) in _ask(connection, "list_functions"):
            _ask(connection, "distribute_function", held=name)
        for step in ("grant_words", "close_words", "open_words", "let_in", "number_rows"):
            _ask(connection, step)
    with connection.transaction():
        _ask(connection, "prepare")
        for name in found:
            _ask(connection, "drop_copy", held=name)
    with connection.transaction():
        _told(_ask(connection, "give_operator"))
        _told(_ask(connection, "know_tenant_there"))
        _ask(connection, "know_tenant")
    return Distributed(_ask(connection, "count_nodes")[0][0], len(found))


def _require_nodes(connection: psycopg.Connection[Any]) -> None:
    if not _ask(connection, "has_citus"):
        raise StoreUnusable(
            "this database has no Citus", hint="CREATE EXTENSION citus in it, on the coordinator and on each node"
        )
    if not _ask(connection, "count_nodes")[0][0]:
        raise StoreUnusable(
            "no node is there to hold rows", hint="SELECT citus_add_node('host', 5432) on the coordinator, for each"
        )
    if not _ask(connection, "sees_all")[0][0]:
        raise NotAllowed(
            "row-level security holds rows back from this login", hint="let a superuser distribute the rows"
        )


def _told(failed: list[Any]) -> None:
    for node, port, reason in failed:
        raise StoreUnusable(f"the node {node}:{port} refuses it: {reason}", hint="mend that, and repeat the command")


def _ask(connection: psycopg.Connection[Any], name: str, **values: Any) -> list[Any]:
    found = connection.execute(translated(statements("nacre.storage", "sql/distribution")[name]).encode(), values)
    return found.fetchall() if found.description else []
