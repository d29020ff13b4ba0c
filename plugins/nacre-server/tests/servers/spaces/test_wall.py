"""A tenant's SQL connection cannot reach other accounts, members, keys or logs."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from nacre.values.memory import Bearer, Role
from nacre_server.connection import Registry
from nacre_server.spaces import bearer_of
from servers.spaces.conftest import Server
from tests.storage.filled import acting_as

_FUNCTIONS = {"standing", "spaces_of", "note", "noted"}


def _tables(admin: psycopg.Connection[Any]) -> list[str]:
    rows = admin.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'nacre_spaces'::regnamespace AND relkind = 'r'"
    )
    return [name for (name,) in rows]


def test_tenant_cannot_access_the_space_tables(team: Server) -> None:
    with team.admin as admin:
        tables = _tables(admin)
        table_names = {"accounts", "api_keys", "audit_log", "members", "spaces"}
        assert {*tables} == table_names | {"calls", "quotas", "tended"}
        for table in tables:
            for statement in (
                "SELECT count(*) FROM {}",
                "DELETE FROM {}",
                "INSERT INTO {} DEFAULT VALUES",
                "TRUNCATE {}",
                "SELECT * FROM {} FOR UPDATE",
                "COPY {} TO STDOUT",
                "ALTER TABLE {} DISABLE TRIGGER ALL",
            ):
                with (
                    acting_as(admin, "anna"),
                    pytest.raises(errors.InsufficientPrivilege),
                    admin.transaction(),
                ):
                    admin.execute(statement.format(f"nacre_spaces.{table}"))


def test_tenant_can_call_only_required_functions(team: Server) -> None:
    with team.admin as admin:
        callable_ = admin.execute(
            "SELECT proname, prosecdef, proconfig FROM pg_proc WHERE pronamespace = 'nacre_spaces'::regnamespace"
            " AND has_function_privilege('nacre_tenant', oid, 'EXECUTE')"
        ).fetchall()
        assert {name for name, _, _ in callable_} == _FUNCTIONS
        assert {(definer, *config) for _, definer, config in callable_} == {
            (1, "search_path=pg_catalog, pg_temp")
        }


def test_tenant_functions_show_only_their_own_space(team: Server) -> None:
    with team.admin as admin:
        for space, expected in {"ferry-team": "owner", "ben": None, "eve": None}.items():
            with acting_as(admin, space):
                role = admin.execute("SELECT role FROM nacre_spaces.standing('anna')").fetchone()
                assert (role[0] if role else None) == expected
                count = admin.execute(
                    "SELECT count(*) FROM nacre_spaces.spaces_of('anna')"
                ).fetchone()
                assert count == ((2,) if expected else (0,))
        with acting_as(admin, "ben"):
            admin.execute("SELECT nacre_spaces.note('ben', 'store', '', 'done')")
            assert admin.execute("SELECT account, action FROM nacre_spaces.noted(9)").fetchall()[
                0
            ] == ("ben", "store")
            admin.execute("SELECT set_config('nacre.tenant', 'rita', true)")
            subjects = admin.execute("SELECT subject FROM nacre_spaces.noted(9)").fetchall()
        assert subjects == [("rita",)]


def test_temporary_objects_cannot_shadow_server_functions(team: Server) -> None:
    with team.admin as admin, acting_as(admin, "ben"):
        admin.execute(
            "CREATE TEMP TABLE spaces AS SELECT 'ben' AS name, 'team' AS kind, 'members' AS raising"
        )
        admin.execute(
            "CREATE FUNCTION pg_temp.tenant() RETURNS TEXT LANGUAGE sql RETURN 'ferry-team'"
        )
        assert admin.execute("SELECT role FROM nacre_spaces.standing('anna')").fetchall() == []


@pytest.mark.parametrize(
    "statement", ["UPDATE {} SET outcome = 'done'", "DELETE FROM {}", "TRUNCATE {}"]
)
def test_audit_log_is_append_only_even_for_its_owner(team: Server, statement: str) -> None:
    with (
        team.admin as admin,
        pytest.raises(errors.InsufficientPrivilege, match="appended to alone"),
    ):
        admin.execute(statement.format("nacre_spaces.audit_log"))


def test_server_stores_only_a_hash_of_a_key(team: Server) -> None:
    created = team.open_space("anna").call(
        "keys-create", space="ferry-team", account="ben", role="reader"
    )
    assert created.secret.startswith(f"nacre_{created.key.id}_")
    assert len(created.secret) == len("nacre_12345678_") + 43  # 256 bits
    with team.admin as admin:
        whole = sql.SQL("SELECT t::text FROM nacre_spaces.{} t")
        rows = [
            str(admin.execute(whole.format(sql.Identifier(table))).fetchall())
            for table in _tables(admin)
        ]
    assert any(created.key.id in row for row in rows)
    assert not any(
        created.secret[15:] in row or created.secret[15:].encode().hex() in row for row in rows
    )


def test_key_works_until_expired_revoked_or_membership_ended(team: Server) -> None:
    anna = team.open_space("anna")
    registry = Registry(team.url)

    def opens(secret: str) -> Bearer | None:
        return bearer_of(registry, secret)

    def pass_days(days: int) -> None:
        with team.admin as admin:
            admin.execute(
                "UPDATE nacre_spaces.api_keys SET expires = expires - %s", (days * 86_400_000,)
            )

    created = anna.call("keys-create", space="ferry-team", account="ben", days=30)
    assert opens(created.secret) == Bearer("ben", "ferry-team", Role.MEMBER)
    pass_days(29)
    assert opens(created.secret)
    pass_days(2)
    assert opens(created.secret) is None
    pass_days(-31)
    assert opens(created.secret[:-1]) is None
    assert opens("") is None
    anna.call("keys-revoke", space="ferry-team", id=created.key.id)
    again = anna.call("keys-create", space="ferry-team", account="ben")
    assert opens(created.secret) is None
    assert opens(again.secret) == Bearer("ben", "ferry-team", Role.MEMBER)
    keys_by_id = {
        item.id: (bool(item.revoked), bool(item.last_used))
        for item in anna.call("keys", space="ferry-team")
    }
    assert keys_by_id == {created.key.id: (True, True), again.key.id: (False, True)}
    other = anna.call("keys-create", space="ferry-team", account="rita")
    # limited to its account's role
    assert opens(other.secret) == Bearer("rita", "ferry-team", Role.READER)
    anna.call("spaces-remove", space="ferry-team", account="ben")
    assert opens(again.secret) is None
    anna.call("keys-revoke", space="ferry-team", id=other.key.id)
    assert opens(other.secret) is None
    registry.close()


def test_login_without_manager_role_cannot_manage_spaces(
    team: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with team.admin as admin:
        admin.execute(
            "DO $$ BEGIN CREATE ROLE clerk LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        )
        admin.execute("GRANT nacre_tenant TO clerk")
    monkeypatch.setenv("NACRE_DB", team.url.replace("postgres:@", "clerk@"))
    anna = team.open_space("anna")
    assert [item.name for item in anna.call("spaces")] == ["anna", "ferry-team"]
    with pytest.raises(Exception, match="does not manage its spaces"):
        anna.call("spaces-add", space="ferry-team", account="eve")
