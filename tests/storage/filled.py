"""Rows for every table of a server, and parameter values that let each named statement match them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from nacre.base.sql import statements
from nacre_server.connection import query, writes

Server = psycopg.Connection[Any]

_ROWS = 24
_TRIES = 14
_TEXTS = ["one", "two", "three", "main", "pending", "auto"]
_VALUES: dict[str, list[Any]] = {
    "text": _TEXTS,
    "bigint": [0, 1, 2, 3, 4, 5],
    "integer": [0, 1, 2, 3],
    "numeric": [1, 2],
    "double precision": [0.5, 1.0],
    "bytea": [b"one", b"two", b"three", b"four"],
    "boolean": [True, False],
    "bigint[]": [[0, 1], [2, 3], [4]],
    "real[]": [[1.0, 0.5], [2.0]],
    "bit varying": ["0101", "1"],
}
_WORDS = {
    "speaker": ["owner", "agent"],
    "rel": ["contradicts", "supersedes", "related"],
    "origin": ["auto", "body", "manual"],
    "kind": ["main", "preference", "todo", "case"],
    "key": ["alias", "one", "two"],
    "manner": ["path", "name"],
}
_TUPLES = [
    [1, 1, 4, "one", "6f6e65", "main", "one", 0, 1, "one", "two", "three"],
    ["one", "two", "one", "two"],
]
_SHAPES = [
    json.dumps(sample)
    for sample in (
        _TEXTS,
        [1, 2, 3],
        ["6f6e65", "74776f"],
        *([item] for item in _TUPLES),
        {"one": 1},
    )
]
_JSON = re.compile(r"json_each\(\s*:(\w+)")
_PARAMETER = re.compile(r"'(?:[^']|'')*'|(?<![:\w]):([a-z_]\w*)")
_VAGUE = re.compile(r"(could not determine data type|inconsistent types deduced).*\$(\d+)")
_TEXT, _BIGINT = 25, 20
_OF_ACCOUNTS = ("read_standing", "list_spaces", "list_audit_log", "note_in_audit_log")
"""Statements about accounts and spaces, which do not read tenant rows; plugins/nacre-server tests them."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A named statement with parameter values."""

    name: str
    values: dict[str, Any]

    @property
    def writes(self) -> bool:
        """Return True if the statement changes rows."""
        return writes(query(self.name))


def tables(server: Server) -> list[str]:
    """List all tables with tenant rows. Referenced tables come first."""
    rows = server.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'nacre_rows'::regnamespace AND relkind IN ('r', 'p')"
        " AND relname <> 'schema_version' ORDER BY oid"
    )
    return [name for (name,) in rows]


def dump(server: Server, tenant: str) -> list[Any]:
    """Return all rows of a tenant."""
    each = sql.SQL(" UNION ALL ").join(
        sql.SQL("SELECT {}, t::text FROM nacre_rows.{} t WHERE tenant = {}").format(
            table, sql.Identifier(table), tenant
        )
        for table in tables(server)
    )
    return sorted(server.execute(each).fetchall())


@contextmanager
def acting_as(server: Server, tenant: str) -> Iterator[None]:
    """Run the block as a tenant on an administrator's connection, then roll back."""
    with server.transaction(force_rollback=True):
        server.execute("SELECT set_config('nacre.tenant', %s, true)", (tenant,))
        server.execute(
            "SET LOCAL ROLE nacre_tenant; SET LOCAL search_path = nacre, pg_catalog, public, pg_temp"
        )
        yield
        server.execute("RESET ROLE")


def outcome(server: Server, statement: Statement) -> object:
    """Return the statement's rows (without the tenant) and row count, or the server's error."""
    try:
        with server.transaction():
            cursor = server.execute(query(statement.name), statement.values)
            return cursor.rowcount if statement.writes else sorted(_read(cursor))
    except psycopg.Error as error:
        return type(error).__name__


def _read(cursor: psycopg.Cursor[Any]) -> Iterator[str]:
    """Read rows without the last column, which names the tenant in a view."""
    whose = [at for at, column in enumerate(cursor.description or ()) if column.name == "tenant"]
    for row in cursor:
        yield repr([value for at, value in enumerate(row) if at not in whose])


def fill(server: Server, tenant: str) -> None:
    """Insert the same rows into every table for a tenant."""
    chance = random.Random(23)  # noqa: S311 - rows for tests
    with server.transaction():
        server.execute("SELECT set_config('nacre.tenant', %s, true)", (tenant,))
        for table in tables(server):
            columns = server.execute(
                "SELECT attname, format_type(atttypid, NULL), attnotnull, atthasdef FROM pg_attribute"
                " WHERE attrelid = format('nacre_rows.%%I', %s::text)::regclass AND attnum > 0"
                " AND NOT attisdropped AND attname <> 'tenant'",
                (table,),
            ).fetchall()
            for number in range(_ROWS):
                row = {
                    name: chance.choice(_values_of(name, kind))
                    for name, kind, is_needed, has_default in columns
                    if (is_needed or chance.random() < number % 3 / 2)
                    and not (has_default and chance.random() < 0.8)
                }
                _insert(server, table, row)
        server.execute(
            "SELECT setval(oid::regclass, nextval(oid::regclass) + 1000) FROM pg_class"
            " WHERE relkind = 'S' AND relnamespace = 'nacre_rows'::regnamespace"
        )  # continue the server's sequences after the numbers inserted here


def _insert(server: Server, table: str, row: dict[str, Any]) -> None:
    statement = sql.SQL("INSERT INTO nacre_rows.{} ({}) VALUES ({}) ON CONFLICT DO NOTHING").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join(map(sql.Placeholder, row)),
    )
    try:
        with server.transaction():
            server.execute(statement, row)
    except (psycopg.errors.ForeignKeyViolation, psycopg.errors.CheckViolation):
        pass


def meeting(server: Server, tenant: str, other: str) -> list[Statement]:
    """Return all statements that the server accepts, with values that match a tenant's rows where such values were
    found. Their outcome then differs from that of the other, empty tenant."""
    texts = statements("nacre.store", "sql/queries") | statements("nacre_server", "sql/queries")
    chance = random.Random(24)  # noqa: S311 - values for tests
    usable = []
    for name, text in sorted(texts.items()):
        with acting_as(server, tenant):
            types = _types(server, text)
        if (
            types is not None
            and not name.startswith("create_")
            and not name.endswith("_lock")
            and name not in _OF_ACCOUNTS
        ):
            usable.append(_meeting(server, tenant, other, name, _values(text, types, chance)))
    return usable


def meets(server: Server, tenant: str, other: str, statement: Statement) -> bool:
    """Return True if a statement changes a tenant's rows or returns different rows than for an empty tenant."""
    with acting_as(server, tenant):
        result = outcome(server, statement)
    if isinstance(result, int | str):
        return isinstance(result, int) and result > 0
    with acting_as(server, other):
        return result != outcome(server, statement)


def _meeting(
    server: Server, tenant: str, other: str, name: str, values: Iterator[dict[str, Any]]
) -> Statement:
    tried = [Statement(name, value) for value in values]
    return next((item for item in tried if meets(server, tenant, other, item)), tried[0])


def _values(text: str, types: dict[str, str], chance: random.Random) -> Iterator[dict[str, Any]]:
    lists = set(_JSON.findall(text))
    for number in range(_TRIES if types else 1):
        yield {
            name: _SHAPES[number % len(_SHAPES)]
            if name in lists
            else _random_value(name, kind, chance)
            for name, kind in types.items()
        }


def _random_value(name: str, kind: str, chance: random.Random) -> Any:
    if kind == "text" and chance.random() < 0.3:
        return None
    return chance.choice(_values_of(name, kind))


def _values_of(name: str, kind: str) -> list[Any]:
    return (kind == "text" and _WORDS.get(name)) or _VALUES[kind]


def _types(server: Server, text: str) -> dict[str, str] | None:
    """Return the types of a statement's parameters, or ``None`` if the server rejects the statement."""
    bare = re.sub(r"--[^\n]*", "", text)
    names = list(dict.fromkeys(parameter for parameter in _PARAMETER.findall(bare) if parameter))
    numbered = _PARAMETER.sub(
        lambda parameter: f"${names.index(parameter[1]) + 1}" if parameter[1] else parameter[0],
        bare,
    )
    with server.transaction(force_rollback=True):
        types = _described(
            server, numbered.replace("ON CONFLICT (", "ON CONFLICT (tenant, "), [0] * len(names)
        )
    if types is None:
        return None
    kinds = [
        server.execute("SELECT format_type(%s::oid, NULL)", (kind,)).fetchone() for kind in types
    ]
    return {name: kind[0] for name, kind in zip(names, kinds, strict=True) if kind}


def _described(server: Server, statement: str, types: list[int]) -> list[int] | None:
    """Describe a statement. Parameters that the server cannot infer are declared as text or number."""
    server.execute("SAVEPOINT asked")
    prepared = server.pgconn.prepare(b"asked", statement.encode(), param_types=types)
    if prepared.status == psycopg.pq.ExecStatus.COMMAND_OK:
        description = server.pgconn.describe_prepared(b"asked")
        server.execute("DEALLOCATE asked")
        return [description.param_type(at) for at in range(description.nparams)]
    server.execute("ROLLBACK TO asked")
    vague = _VAGUE.search(str(prepared.error_message))
    if vague is None or types[int(vague[2]) - 1]:
        return None
    types[int(vague[2]) - 1] = _TEXT if vague[1].startswith("could") else _BIGINT
    return _described(server, statement, types)
