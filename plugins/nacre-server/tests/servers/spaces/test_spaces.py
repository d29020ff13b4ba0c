"""Members of a space may do what their role allows, and their operations are logged."""

from __future__ import annotations

from typing import Any

import pytest

from nacre.api import MemoryHome, open_memory
from nacre.errors import (
    ConflictError,
    InvalidInputError,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
)
from nacre.values.memory import Actor, Bearer, Face, Role, acting
from servers.spaces.conftest import Server

_FACT = "The ferry timetable is kept in the file tides.csv."


def _store(memory: MemoryHome, content: str = _FACT, **fields: Any) -> Any:
    return memory.call("store", content=content, **fields)


def test_spaces_are_unavailable_in_a_file_store() -> None:
    with open_memory() as memory, pytest.raises(UnavailableError, match="in a file") as error:
        memory.call("spaces-create", space="ferry-team")
    assert "docs/server.md" in str(error.value.hint)


def test_team_creator_owns_it_and_lists_it(server: Server) -> None:
    memory = server.open_space("anna")
    memory.call("spaces-create", space="anna", kind="person")
    memory.call("spaces-create", space="ferry-team", raising="owners")
    spaces = [
        (item.name, item.kind, item.role, item.raising, item.is_own)
        for item in memory.call("spaces")
    ]
    assert spaces == [
        ("anna", "person", "owner", "members", True),
        ("ferry-team", "team", "owner", "owners", False),
    ]


def test_unregistered_tenant_is_open_only_to_its_account(server: Server) -> None:
    _store(server.open_space("anna"))
    with pytest.raises(NotAllowedError, match="ben does not belong to the space anna"):
        server.open_space("ben", "anna")
    assert server.open_space("anna").call("list").total == 1


def test_existing_personal_memory_cannot_become_a_team(server: Server) -> None:
    _store(server.open_space("anna"))
    with pytest.raises(ConflictError, match="already a separate memory"):
        server.open_space("ben").call("spaces-create", space="anna")
    server.open_space("ben").call("spaces-create", space="anna", kind="person")
    assert server.open_space("anna").call("list").total == 1
    with pytest.raises(NotAllowedError):
        server.open_space("ben", "anna")


def test_space_names_are_unique_and_valid(team: Server) -> None:
    with pytest.raises(ConflictError, match="already"):
        team.open_space("ben").call("spaces-create", space="ferry-team")
    with pytest.raises(InvalidInputError):
        team.open_space("ben").call("spaces-create", space="Ferry Team")


@pytest.mark.parametrize(
    ("account", "may_write"), [("anna", True), ("ben", True), ("build-bot", True), ("rita", False)]
)
def test_role_decides_write_permission(team: Server, account: str, may_write: bool) -> None:
    _store(team.open_space("anna", "ferry-team"), "Tickets are sold at the pier.")
    memory = team.open_space(account, "ferry-team")
    assert memory.call("recall", text="where are tickets sold?").hits
    if may_write:
        assert _store(memory)
        return
    with pytest.raises(NotAllowedError, match="rita may only read ferry-team"):
        _store(memory)
    with pytest.raises(NotAllowedError, match="may only read"):  # bypasses the catalogue
        memory.store(_FACT)
    assert memory.call("list").total == 1


@pytest.mark.parametrize("account", ["ben", "build-bot"])
def test_owner_operations_are_refused_to_team_members(team: Server, account: str) -> None:
    outcome = _store(team.open_space("anna", "ferry-team"))
    with pytest.raises(NotAllowedError, match="for owners of ferry-team"):
        team.open_space(account, "ferry-team").call("forget", memories=[outcome.memory_id])
    assert team.open_space("anna", "ferry-team").call("list").total == 1


def test_role_change_applies_to_open_connections(team: Server) -> None:
    anna, ben = team.open_space("anna"), team.open_space("ben", "ferry-team")
    _store(ben)
    anna.call("spaces-add", space="ferry-team", account="ben", role="reader")
    with pytest.raises(NotAllowedError):
        _store(ben, "Dogs travel free.")
    anna.call("spaces-remove", space="ferry-team", account="ben")
    with pytest.raises(NotAllowedError, match="does not belong"):
        ben.call("list")


@pytest.mark.parametrize("most", [Role.READER, Role.SERVICE, Role.MEMBER])
def test_requested_lower_role_limits_permissions(team: Server, most: Role) -> None:
    memory = team.open_space("anna", "ferry-team")
    with acting(Actor(Face.HTTP, bearer=Bearer("anna", "ferry-team", most))):
        assert memory.call("list").total == 0
        if most is Role.READER:
            with pytest.raises(NotAllowedError):
                _store(memory)
        with pytest.raises(NotAllowedError):
            memory.call("spaces-add", space="ferry-team", account="eve", role="owner")


@pytest.mark.parametrize("account", ["ben", "rita", "build-bot", "eve"])
def test_only_owners_manage_members_and_keys(team: Server, account: str) -> None:
    memory = team.open_space(account)
    for operation, fields in {
        "spaces-add": {"account": "eve", "role": "owner"},
        "spaces-remove": {"account": "anna"},
        "spaces-members": {},
        "keys": {},
        "keys-create": {},
        "keys-revoke": {"id": "00000000"},
    }.items():
        with pytest.raises(NotAllowedError, match="does not own ferry-team"):
            memory.call(operation, space="ferry-team", **fields)


def test_last_owner_cannot_leave_a_space(team: Server) -> None:
    anna = team.open_space("anna")
    with pytest.raises(ConflictError, match="needs an owner"):
        anna.call("spaces-remove", space="ferry-team", account="anna")
    with pytest.raises(ConflictError, match="needs an owner"):
        anna.call("spaces-add", space="ferry-team", account="anna", role="member")
    anna.call("spaces-add", space="ferry-team", account="ben", role="owner")
    members = anna.call("spaces-remove", space="ferry-team", account="anna")
    assert [item.account for item in members if item.role is Role.OWNER] == ["ben"]
    with pytest.raises(NotFoundError):
        team.open_space("ben").call("spaces-remove", space="ferry-team", account="anna")


def test_space_log_records_accounts_and_actions_without_text(team: Server) -> None:
    ben, rita = team.open_space("ben", "ferry-team"), team.open_space("rita", "ferry-team")
    _store(ben, subject="Tides")
    with pytest.raises(NotAllowedError):
        _store(rita)
    with pytest.raises(NotFoundError):
        ben.call("edit", reference="nothing-of-that", importance=3)
    entries = [
        (item.account, item.action, item.outcome) for item in ben.call("spaces-log", limit=3)
    ]
    assert entries == [
        ("ben", "edit", "not_found"),
        ("rita", "store", "not_allowed"),
        ("ben", "store", "done"),
    ]
    with team.admin as admin:
        (log,) = admin.execute(
            "SELECT string_agg(l::text, ' ') FROM nacre_spaces.audit_log l"
        ).fetchone() or ("",)
    assert "spaces-add" in str(log)
    assert "tides" not in str(log).lower()


def test_agent_cannot_manage_spaces(team: Server) -> None:
    memory = team.open_space("anna")
    with acting(Actor(Face.MCP, "claude-code")):
        for operation in ("spaces-create", "spaces-add", "spaces-remove", "keys-create", "share"):
            fields = {"reference": "x"} if operation == "share" else {}
            fields |= {"account": "eve"} if operation in ("spaces-add", "spaces-remove") else {}
            with pytest.raises(Exception, match="is only for the owner"):
                memory.call(operation, space="ferry-team", **fields)


def test_python_methods_check_permissions_of_their_operations(team: Server) -> None:
    ben = team.open_space("ben", "ferry-team")
    outcome = ben.store(_FACT)
    ben.recall("ferry timetable")
    with pytest.raises(NotAllowedError, match="for owners of ferry-team"):
        ben.judge(outcome.memory_id or "", good=True)
    ben.retire(outcome.memory_id or "")
    entries = [(item.action, item.outcome) for item in ben.call("spaces-log", limit=3)]
    assert entries == [("retire", "done"), ("feedback-judge", "not_allowed"), ("store", "done")]
