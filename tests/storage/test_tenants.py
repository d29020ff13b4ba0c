"""Many tenants on one server: no tenant reads or changes another's rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import errors, sql

from nacre.errors import InvalidInputError, UnusableStoreError
from nacre_server.connection import connect
from nacre_server.postgres import PostgresDatabase
from tests.storage.conftest import Open
from tests.storage.filled import (
    Server,
    Statement,
    acting_as,
    dump,
    fill,
    meeting,
    meets,
    outcome,
    tables,
)

_ONE, _TWIN, _EMPTY = "one", "twin", "empty"
_BY_ITS_VIEW = "words"
"""A table without rights for tenants, because row-level security would prevent use of its index. Its view reads with
the rights of the view's owner. It holds only numbers, which are hashes of a tenant's own stems."""

_FEWEST, _LEAST = 400, 0.75
"""The minimum number of statements, and the minimum share that match rows, for a meaningful test."""


@dataclass(frozen=True)
class Populated:
    """One tenant's rows, and each statement's outcome for that tenant and for an empty one, without other rows."""

    server: Server
    url: str
    statements: list[Statement]
    alone: dict[str, object]
    nothing: dict[str, object]


@pytest.fixture(scope="module")
def populated(server_url: str) -> Iterator[Populated]:
    """A new database in which one tenant has rows and two have none."""
    with connect(server_url) as first:
        first.execute("CREATE DATABASE kept")
    url = server_url.replace("/postgres?", "/kept?")
    for tenant in (_ONE, _TWIN, _EMPTY):
        PostgresDatabase(url, tenant).close()
    with connect(url) as server:
        with server.transaction(force_rollback=True):
            fill(server, _ONE)
            statements = meeting(server, _ONE, _EMPTY)
        nothing = _all_outcomes(server, statements, _EMPTY)
        fill(server, _ONE)
        yield Populated(server, url, statements, _all_outcomes(server, statements, _ONE), nothing)


def _all_outcomes(server: Server, statements: list[Statement], tenant: str) -> dict[str, object]:
    outcomes = {}
    for statement in statements:
        with acting_as(server, tenant):
            outcomes[statement.name] = outcome(server, statement)
    return outcomes


def test_statements_ignore_other_tenants_rows(
    populated: Populated,
) -> None:
    assert _all_outcomes(populated.server, populated.statements, _EMPTY) == populated.nothing


def test_most_statements_are_tried_against_existing_rows(populated: Populated) -> None:
    met = [
        statement
        for statement in populated.statements
        if meets(populated.server, _ONE, _EMPTY, statement)
    ]
    assert len(populated.statements) > _FEWEST
    assert len(met) > _LEAST * len(populated.statements)


def test_writing_statements_never_change_foreign_tenant_rows(populated: Populated) -> None:
    before = dump(populated.server, _ONE)
    changing = []
    for item in (each for each in populated.statements if each.writes):
        with acting_as(populated.server, _EMPTY):
            outcome(populated.server, item)
            populated.server.execute("RESET ROLE")
            if dump(populated.server, _ONE) != before:
                changing.append(item.name)
    assert changing == []


@pytest.fixture
def twin(populated: Populated) -> Iterator[None]:
    """Another tenant with the same rows and the same ids."""
    fill(populated.server, _TWIN)
    yield
    with populated.server.transaction():
        for table in reversed(tables(populated.server)):
            populated.server.execute(
                sql.SQL("DELETE FROM nacre_rows.{} WHERE tenant = %s").format(
                    sql.Identifier(table)
                ),
                (_TWIN,),
            )


@pytest.mark.usefixtures("twin")
def test_tenants_with_equal_ids_and_texts_see_only_their_rows(populated: Populated) -> None:
    assert _all_outcomes(populated.server, populated.statements, _TWIN) == populated.alone
    assert _all_outcomes(populated.server, populated.statements, _ONE) == populated.alone


@pytest.mark.usefixtures("twin")
def test_deletions_of_a_tenant_do_not_affect_equal_ids_elsewhere(populated: Populated) -> None:
    before = dump(populated.server, _ONE)
    with acting_as(populated.server, _TWIN):
        for statement in populated.statements:
            if statement.writes:
                outcome(populated.server, statement)
        for table in reversed(tables(populated.server)):
            populated.server.execute(
                sql.SQL("UPDATE {0} SET tenant = tenant").format(sql.Identifier(table))
            )
            populated.server.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        populated.server.execute("DELETE FROM last_turns")  # noted when turns were deleted
        populated.server.execute("RESET ROLE")
        assert dump(populated.server, _TWIN) == []
        assert dump(populated.server, _ONE) == before


def test_row_level_security_protects_rows_without_the_views(populated: Populated) -> None:
    with acting_as(populated.server, _EMPTY):
        for table in (
            sql.Identifier(name) for name in tables(populated.server) if name != _BY_ITS_VIEW
        ):
            assert _ask(populated.server, "SELECT count(*) FROM nacre_rows.{}", table) == [(0,)]
            assert (
                populated.server.execute(
                    sql.SQL("DELETE FROM nacre_rows.{}").format(table)
                ).rowcount
                == 0
            )
            assert (
                populated.server.execute(
                    sql.SQL("UPDATE nacre_rows.{} SET tenant = tenant").format(table)
                ).rowcount
                == 0
            )


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT count(*) FROM nacre_rows.{}",
        "DELETE FROM nacre_rows.{}",
        "UPDATE nacre_rows.{} SET tenant = tenant",
        "INSERT INTO nacre_rows.{} DEFAULT VALUES",
    ],
)
def test_tenant_cannot_read_the_word_table_directly(populated: Populated, statement: str) -> None:
    with acting_as(populated.server, _ONE):
        assert _ask(populated.server, "SELECT count(*) > 0 FROM nacre.words") == [(True,)]
        with pytest.raises(errors.InsufficientPrivilege), populated.server.transaction():
            populated.server.execute(sql.SQL(statement).format(sql.Identifier(_BY_ITS_VIEW)))


def test_views_protect_rows_without_row_level_security(populated: Populated) -> None:
    with populated.server.transaction(force_rollback=True):
        populated.server.execute("SELECT set_config('nacre.tenant', %s, true)", (_EMPTY,))
        for (view,) in _ask(
            populated.server,
            "SELECT relname FROM pg_class WHERE relnamespace = 'nacre'::regnamespace"
            " AND relkind = 'v'",
        ):
            assert _ask(
                populated.server, "SELECT count(*) FROM nacre.{}", sql.Identifier(view)
            ) == [(0,)], view


@pytest.mark.parametrize("schema", ["nacre", "nacre_rows"])
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {}.embedding (tenant, key, value) VALUES ('one', 'new', 'x')",
        "INSERT INTO {}.embedding (tenant, key, value) VALUES ('one', 'one', 'x') ON CONFLICT (tenant, key)"
        " DO UPDATE SET value = 'x'",
        "INSERT INTO {}.tags (tenant, memory, tag) VALUES ('one', 'one', 'new')",
    ],
)
def test_inserting_a_row_of_another_tenant_is_refused(
    populated: Populated, schema: str, statement: str
) -> None:
    refused = pytest.raises((errors.InsufficientPrivilege, errors.WithCheckOptionViolation))
    with acting_as(populated.server, _EMPTY), refused, populated.server.transaction():
        populated.server.execute(sql.SQL(statement).format(sql.Identifier(schema)))


@pytest.mark.parametrize("schema", ["nacre", "nacre_rows"])
@pytest.mark.usefixtures("twin")
def test_moving_a_row_to_another_tenant_is_refused(populated: Populated, schema: str) -> None:
    for table in tables(populated.server):
        refused = pytest.raises((errors.InsufficientPrivilege, errors.WithCheckOptionViolation))
        with acting_as(populated.server, _TWIN), refused, populated.server.transaction():
            populated.server.execute(
                sql.SQL("UPDATE {}.{} SET tenant = 'nobody'").format(
                    sql.Identifier(schema), sql.Identifier(table)
                )
            )


def test_cross_tenant_references_are_refused_even_for_administrators(populated: Populated) -> None:
    with pytest.raises(errors.ForeignKeyViolation), populated.server.transaction():
        populated.server.execute(
            "INSERT INTO nacre_rows.tags (tenant, memory, tag) SELECT 'empty', id, 'x' FROM"
            " nacre_rows.memories WHERE tenant = 'one'"
        )


@pytest.mark.parametrize(
    "naming",
    ["SELECT", "SET nacre.tenant = ''; SELECT", "SET nacre.tenant = 'one'; RESET ALL; SELECT"],
)
def test_connection_without_a_tenant_gets_an_error_and_no_rows(
    populated: Populated, naming: str
) -> None:
    with connect(populated.url) as server:
        server.execute(naming)
        server.execute("SET ROLE nacre_tenant")
        for table in tables(server):
            for schema in ("nacre", "nacre_rows"):
                with pytest.raises(errors.UndefinedObject):
                    _ask(
                        server, "SELECT * FROM {}.{}", sql.Identifier(schema), sql.Identifier(table)
                    )
                with pytest.raises(psycopg.Error):
                    server.execute(
                        sql.SQL("INSERT INTO {}.{} DEFAULT VALUES").format(
                            sql.Identifier(schema), sql.Identifier(table)
                        )
                    )


@pytest.mark.parametrize(
    "right",
    [
        "TRUNCATE nacre_rows.memories",
        "ALTER TABLE nacre_rows.memories DISABLE ROW LEVEL SECURITY",
        "DROP POLICY tenant ON nacre_rows.memories",
        "CREATE VIEW nacre.mine AS SELECT 1",
        "CREATE TABLE nacre_rows.mine (a int)",
        "DELETE FROM nacre_rows.schema_version RETURNING 1",
        "SELECT setval('nacre_rows.memories_row_seq', 1)",
    ],
)
def test_tenant_has_no_rights_beyond_rows(tenants: Open, right: str) -> None:
    with pytest.raises(UnusableStoreError, match="refused the request"):
        tenants("plain").rows(right)


_NASTY = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    [
        "'",
        "''",
        "\\",
        "\\'",
        "E'\\''",
        "\u2019",
        "\uff07",
        "%s",
        "%(key)s",
        "%%",
        ":key",
        "?",
        "$1",
        "{}",
        "$$",
        "/*",
        "--",
        "\0",
        "a\0b",
        "x" * 100_000,
        "'; SET nacre.tenant = 'one'; --",
        "'||set_config('nacre.tenant','one',false)||'",
    ]
)


@pytest.fixture(scope="module")
def nasty(populated: Populated) -> Iterator[PostgresDatabase]:
    """A tenant with hostile values."""
    database = PostgresDatabase(populated.url, "nasty")
    yield database
    database.close()


@settings(max_examples=60)
@given(key=_NASTY, value=_NASTY)
def test_values_are_never_interpreted_as_sql(nasty: PostgresDatabase, key: str, value: str) -> None:
    nasty.run("set_embedding_value", key=key, value=value)
    assert nasty.one("get_embedding_value", key=key) == (value.replace("\0", "\ufffd"),)
    assert nasty.rows("SELECT value FROM embedding WHERE key = ?", [key]) == [
        (value.replace("\0", "\ufffd"),)
    ]
    nasty.run_many("set_embedding_value", [{"key": key, "value": key}])
    assert nasty.one("get_embedding_value", key=key) == (key.replace("\0", "\ufffd"),)
    with nasty.transaction():
        nasty.rows("DELETE FROM embedding WHERE key = ? RETURNING key", [key])
        assert nasty.insert("embedding", {"key": key, "value": value}, "value") == value.replace(
            "\0", "\ufffd"
        )
    assert nasty.rows("SELECT nacre.tenant(), current_user::text") == [("nasty", "nacre_tenant")]


_NAMES = (
    "",
    " ",
    "a'b",
    'a"b',
    "a\\b",
    "a%b",
    "a\0",
    "a\n",
    "\n",
    "A",
    "\u00e4",
    "\u0661",
    "a b",
    "a;b",
    "-a",
    "a-",
    ".",
)


@pytest.mark.parametrize("name", [*_NAMES, "a" * 65])
def test_tenant_needs_a_plain_name(server_url: str, name: str) -> None:
    with pytest.raises(InvalidInputError, match="is not a valid tenant name"):
        PostgresDatabase(server_url, name)


def test_longest_tenant_names_are_distinct(tenants: Open) -> None:
    first, second = tenants("a" * 63 + "b"), tenants("a" * 63 + "c")
    first.run("set_embedding_value", key="model", value="one")
    assert second.one("get_embedding_value", key="model") is None


# The catalogue: tables that are added later need the same isolation.


def test_every_table_has_row_level_security(populated: Populated) -> None:
    protected = {
        name
        for (name,) in _ask(
            populated.server,
            """
        SELECT c.relname FROM pg_class c
        JOIN pg_policy p ON p.polrelid = c.oid AND p.polcmd = '*' AND p.polpermissive AND p.polroles = '{{0}}'
            AND pg_get_expr(p.polqual, c.oid) = '(tenant = nacre.tenant())'
            AND p.polwithcheck IS NULL
        JOIN pg_class v ON v.relnamespace = 'nacre'::regnamespace AND v.relname = c.relname AND v.relkind = 'v'
            AND v.reloptions @> '{{security_invoker=true,check_option=cascaded}}'
        WHERE c.relnamespace = 'nacre_rows'::regnamespace AND c.relrowsecurity AND c.relforcerowsecurity
            AND (SELECT count(*) FROM pg_policy o WHERE o.polrelid = c.oid) = 1
    """,
        )
    }
    assert set(tables(populated.server)) - protected == {_BY_ITS_VIEW}


def test_tenants_read_only_their_words_and_cannot_write_others(
    populated: Populated,
) -> None:
    policies = _ask(
        populated.server,
        """
        SELECT p.polname, p.polcmd::text, p.polroles = ARRAY[c.relowner], pg_get_expr(p.polqual, c.oid)
        FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid WHERE c.relname = 'words' ORDER BY 1
    """,
    )
    assert policies == [
        ("read_by_view", "r", True, "true"),
        ("tenant", "*", False, "(tenant = nacre.tenant())"),
    ]
    assert _ask(
        populated.server,
        """
        SELECT v.reloptions, v.relowner = c.relowner, c.relrowsecurity AND c.relforcerowsecurity
        FROM pg_class v JOIN pg_class c ON c.relname = v.relname AND c.relnamespace = 'nacre_rows'::regnamespace
        WHERE v.relname = 'words' AND v.relnamespace = 'nacre'::regnamespace
    """,
    ) == [(["check_option=cascaded"], True, True)]


_OF_OWN_NUMBERS = {"nacre_rows.words_keys", "nacre_rows.words_names"}
"""Inverted indexes, whose keys differ between tenants."""


def test_tenant_leads_every_key_and_every_index(populated: Populated) -> None:
    exceptions = _ask(
        populated.server,
        """
        SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
        WHERE c.relnamespace = 'nacre_rows'::regnamespace AND i.indkey[0] <> a.attnum
    """,
    )
    without_key = _ask(
        populated.server,
        """
        SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'nacre_rows'::regnamespace AND c.relkind IN ('r', 'p')
        AND NOT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
    """,
    )
    astray = _ask(
        populated.server,
        """
        SELECT f.conname FROM pg_constraint f
        JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attname = 'tenant'
        JOIN pg_attribute b ON b.attrelid = f.confrelid AND b.attname = 'tenant'
        WHERE f.contype = 'f' AND (f.conkey[1] <> a.attnum OR f.confkey[1] <> b.attnum)
    """,
    )
    assert {name for (name,) in exceptions} == _OF_OWN_NUMBERS
    assert (without_key, astray) == ([], [])


def test_every_view_except_one_uses_the_callers_rights(populated: Populated) -> None:
    assert _ask(
        populated.server,
        "SELECT relname FROM pg_class WHERE relnamespace = 'nacre'::regnamespace AND relkind = 'v'"
        " AND reloptions @> '{{security_invoker=true}}' IS NOT TRUE",
    ) == [(_BY_ITS_VIEW,)]


def test_only_two_functions_run_with_their_owners_rights(populated: Populated) -> None:
    functions = _ask(
        populated.server,
        "SELECT proname, proconfig FROM pg_proc WHERE pronamespace IN ('nacre'::regnamespace,"
        " 'nacre_rows'::regnamespace) AND prosecdef ORDER BY 1",
    )
    assert functions == [
        (name, ["search_path=pg_catalog, pg_temp"]) for name in ("keep_rows_above", "look_at_rows")
    ]


def _ask(server: Server, statement: str, *names: sql.Identifier) -> list[Any]:
    return server.execute(sql.SQL(statement).format(*names)).fetchall()
