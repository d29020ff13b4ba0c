"""What a tenant's connection can reach of accounts, members, keys and logs, whatever it says in SQL."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import errors, sql

from nacre.values.memory import Bearer, Role
from nacre_server.registry import Registry
from nacre_server.spaces import bearer_of
from servers.spaces.conftest import Server
from tests.storage.filled import acting_as

_FUNCTIONS = {"standing", "spaces_of", "note", "noted"}


def _tables(admin: psycopg.Connection[Any]) -> list[str]:
    found = admin.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'nacre_spaces'::regnamespace AND relkind = 'r'"
    )
    return [name for (name,) in found]


def test_tenant_cannot_access_the_space_tables(team: Server) -> None:
    with team.admin as admin:
        tables = _tables(admin)
        known = {"accounts", "api_keys", "audit_log", "members", "spaces"}
        assert {*tables} == known | {"calls", "quotas", "tended"}
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
                told = admin.execute("SELECT role FROM nacre_spaces.standing('anna')").fetchone()
                assert (told[0] if told else None) == expected
                listed = admin.execute(
                    "SELECT count(*) FROM nacre_spaces.spaces_of('anna')"
                ).fetchone()
                assert listed == ((2,) if expected else (0,))
        with acting_as(admin, "ben"):
            admin.execute("SELECT nacre_spaces.note('ben', 'store', '', 'done')")
            assert admin.execute("SELECT account, action FROM nacre_spaces.noted(9)").fetchall()[
                0
            ] == ("ben", "store")
            admin.execute("SELECT set_config('nacre.tenant', 'rita', true)")
            told_of_rita = admin.execute("SELECT subject FROM nacre_spaces.noted(9)").fetchall()
        assert told_of_rita == [("rita",)]


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
    made = team.opened("anna").call("keys-create", space="ferry-team", account="ben", role="reader")
    assert made.secret.startswith(f"nacre_{made.key.id}_")
    assert len(made.secret) == len("nacre_12345678_") + 43  # 256 bits
    with team.admin as admin:
        whole = sql.SQL("SELECT t::text FROM nacre_spaces.{} t")
        rows = [
            str(admin.execute(whole.format(sql.Identifier(table))).fetchall())
            for table in _tables(admin)
        ]
    assert any(made.key.id in row for row in rows)
    assert not any(
        made.secret[15:] in row or made.secret[15:].encode().hex() in row for row in rows
    )


def test_key_works_until_expired_revoked_or_membership_ended(team: Server) -> None:
    anna = team.opened("anna")
    registry = Registry(team.url)

    def opens(secret: str) -> Bearer | None:
        return bearer_of(registry, secret)

    def pass_days(days: int) -> None:
        with team.admin as admin:
            admin.execute(
                "UPDATE nacre_spaces.api_keys SET expires = expires - %s", (days * 86_400_000,)
            )

    made = anna.call("keys-create", space="ferry-team", account="ben", days=30)
    assert opens(made.secret) == Bearer("ben", "ferry-team", Role.MEMBER)
    pass_days(29)
    assert opens(made.secret)
    pass_days(2)
    assert opens(made.secret) is None
    pass_days(-31)
    assert opens(made.secret[:-1]) is None
    assert opens("") is None
    anna.call("keys-revoke", space="ferry-team", id=made.key.id)
    again = anna.call("keys-create", space="ferry-team", account="ben")
    assert opens(made.secret) is None
    assert opens(again.secret) == Bearer("ben", "ferry-team", Role.MEMBER)
    held = {
        one.id: (bool(one.revoked), bool(one.last_used))
        for one in anna.call("keys", space="ferry-team")
    }
    assert held == {made.key.id: (True, True), again.key.id: (False, True)}
    other = anna.call("keys-create", space="ferry-team", account="rita")
    assert opens(other.secret) == Bearer(
        "rita", "ferry-team", Role.READER
    )  # no more than its account
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
    anna = team.opened("anna")
    assert [one.name for one in anna.call("spaces")] == ["anna", "ferry-team"]
    with pytest.raises(Exception, match="does not manage its spaces"):
        anna.call("spaces-add", space="ferry-team", account="eve")
