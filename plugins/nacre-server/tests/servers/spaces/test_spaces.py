"""Who belongs to a space, what they may do there, and what is noted of it."""

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


def test_a_memory_in_a_file_is_one_persons() -> None:
    with open_memory() as memory, pytest.raises(UnavailableError, match="in a file") as told:
        memory.call("spaces-create", space="ferry-team")
    assert "docs/server.md" in str(told.value.hint)


def test_whoever_makes_a_team_owns_it_and_lists_it_beside_their_own(server: Server) -> None:
    memory = server.opened("anna")
    memory.call("spaces-create", space="anna", kind="person")
    memory.call("spaces-create", space="ferry-team", raising="owners")
    told = [
        (one.name, one.kind, one.role, one.raising, one.is_own) for one in memory.call("spaces")
    ]
    assert told == [
        ("anna", "person", "owner", "members", True),
        ("ferry-team", "team", "owner", "owners", False),
    ]


def test_a_tenant_that_is_no_space_is_its_own_accounts_alone(server: Server) -> None:
    _store(server.opened("anna"))
    with pytest.raises(NotAllowedError, match="ben does not belong to the space anna"):
        server.opened("ben", "anna")
    assert server.opened("anna").call("list").total == 1


def test_nobody_makes_a_team_of_what_is_somebodys_memory(server: Server) -> None:
    _store(server.opened("anna"))
    with pytest.raises(ConflictError, match="already a separate memory"):
        server.opened("ben").call("spaces-create", space="anna")
    server.opened("ben").call("spaces-create", space="anna", kind="person")
    assert server.opened("anna").call("list").total == 1
    with pytest.raises(NotAllowedError):
        server.opened("ben", "anna")


def test_there_is_one_space_of_a_name(team: Server) -> None:
    with pytest.raises(ConflictError, match="already"):
        team.opened("ben").call("spaces-create", space="ferry-team")
    with pytest.raises(InvalidInputError):
        team.opened("ben").call("spaces-create", space="Ferry Team")


@pytest.mark.parametrize(
    ("account", "may_write"), [("anna", True), ("ben", True), ("build-bot", True), ("rita", False)]
)
def test_the_role_says_who_writes(team: Server, account: str, may_write: bool) -> None:
    _store(team.opened("anna", "ferry-team"), "Tickets are sold at the pier.")
    memory = team.opened(account, "ferry-team")
    assert memory.call("recall", text="where are tickets sold?").hits
    if may_write:
        assert _store(memory)
        return
    with pytest.raises(NotAllowedError, match="rita may only read ferry-team"):
        _store(memory)
    with pytest.raises(NotAllowedError, match="may only read"):  # what passes the catalogue by
        memory.store(_FACT)
    assert memory.call("list").total == 1


@pytest.mark.parametrize("account", ["ben", "build-bot"])
def test_what_is_the_owners_is_refused_to_members_of_a_team(team: Server, account: str) -> None:
    stored = _store(team.opened("anna", "ferry-team"))
    with pytest.raises(NotAllowedError, match="for owners of ferry-team"):
        team.opened(account, "ferry-team").call("forget", memories=[stored.memory_id])
    assert team.opened("anna", "ferry-team").call("list").total == 1


def test_a_role_that_was_changed_holds_for_a_connection_that_is_open(team: Server) -> None:
    anna, ben = team.opened("anna"), team.opened("ben", "ferry-team")
    _store(ben)
    anna.call("spaces-add", space="ferry-team", account="ben", role="reader")
    with pytest.raises(NotAllowedError):
        _store(ben, "Dogs travel free.")
    anna.call("spaces-remove", space="ferry-team", account="ben")
    with pytest.raises(NotAllowedError, match="does not belong"):
        ben.call("list")


@pytest.mark.parametrize("most", [Role.READER, Role.SERVICE, Role.MEMBER])
def test_who_asks_with_a_lesser_role_has_that(team: Server, most: Role) -> None:
    memory = team.opened("anna", "ferry-team")
    with acting(Actor(Face.HTTP, bearer=Bearer("anna", "ferry-team", most))):
        assert memory.call("list").total == 0
        if most is Role.READER:
            with pytest.raises(NotAllowedError):
                _store(memory)
        with pytest.raises(NotAllowedError):
            memory.call("spaces-add", space="ferry-team", account="eve", role="owner")


@pytest.mark.parametrize("account", ["ben", "rita", "build-bot", "eve"])
def test_only_owners_say_who_belongs_to_a_space(team: Server, account: str) -> None:
    memory = team.opened(account)
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


def test_somebody_has_to_own_a_space(team: Server) -> None:
    anna = team.opened("anna")
    with pytest.raises(ConflictError, match="needs an owner"):
        anna.call("spaces-remove", space="ferry-team", account="anna")
    with pytest.raises(ConflictError, match="needs an owner"):
        anna.call("spaces-add", space="ferry-team", account="anna", role="member")
    anna.call("spaces-add", space="ferry-team", account="ben", role="owner")
    left = anna.call("spaces-remove", space="ferry-team", account="anna")
    assert [one.account for one in left if one.role is Role.OWNER] == ["ben"]
    with pytest.raises(NotFoundError):
        team.opened("ben").call("spaces-remove", space="ferry-team", account="anna")


def test_a_log_tells_who_did_what_and_no_text(team: Server) -> None:
    ben, rita = team.opened("ben", "ferry-team"), team.opened("rita", "ferry-team")
    _store(ben, subject="Tides")
    with pytest.raises(NotAllowedError):
        _store(rita)
    with pytest.raises(NotFoundError):
        ben.call("edit", reference="nothing-of-that", importance=3)
    told = [(one.account, one.action, one.outcome) for one in ben.call("spaces-log", limit=3)]
    assert told == [
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


def test_an_agent_manages_no_space(team: Server) -> None:
    memory = team.opened("anna")
    with acting(Actor(Face.MCP, "claude-code")):
        for operation in ("spaces-create", "spaces-add", "spaces-remove", "keys-create", "share"):
            fields = {"reference": "x"} if operation == "share" else {}
            fields |= {"account": "eve"} if operation in ("spaces-add", "spaces-remove") else {}
            with pytest.raises(Exception, match="is only for the owner"):
                memory.call(operation, space="ferry-team", **fields)


def test_methods_of_the_python_interface_are_the_operations_that_they_are(team: Server) -> None:
    ben = team.opened("ben", "ferry-team")
    kept = ben.store(_FACT)
    ben.recall("ferry timetable")
    with pytest.raises(NotAllowedError, match="for owners of ferry-team"):
        ben.judge(kept.memory_id or "", good=True)
    ben.retire(kept.memory_id or "")
    told = [(one.action, one.outcome) for one in ben.call("spaces-log", limit=3)]
    assert told == [("retire", "done"), ("feedback-judge", "not_allowed"), ("store", "done")]
