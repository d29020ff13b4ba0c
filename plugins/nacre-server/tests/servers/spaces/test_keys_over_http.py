"""Programs use a space over HTTP with a key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nacre.serve.catalogue import CATALOGUE, offered_by
from nacre.values.memory import Face
from servers.spaces.conftest import Server
from tests.web_server.conftest import Site, nacre, process, serving, site  # noqa: F401 - fixtures

_FACT = "The ferry timetable is kept in the file tides.csv."
_QUESTION = "where is the ferry timetable kept?"


@pytest.fixture
def served(team: Server, site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> Site:  # noqa: F811
    """Anna's memory, served, with ``_FACT`` in the team's space and a secret in her own."""
    team.open_space("anna", "ferry-team").call("store", content=_FACT, scope="personal")
    team.open_space("anna").call(
        "store", content="The spare key of the ferry office is under the third stone."
    )
    monkeypatch.setenv("NACRE_STORAGE_SPACES", "[]")
    return site()


def _key(team: Server, account: str, **fields: Any) -> tuple[str, dict[str, str]]:
    created = team.open_space("anna").call(
        "keys-create", space="ferry-team", account=account, **fields
    )
    return created.key.id, {"Authorization": f"Bearer {created.secret}"}


def test_key_opens_its_space_and_not_the_served_home(team: Server, served: Site) -> None:
    _, key = _key(team, "ben")
    answer = served.ask("recall", {"text": _QUESTION}, **key).json()
    assert [hit["memory"]["content"] for hit in answer["hits"]] == [_FACT]
    answer = served.ask(
        "recall", {"text": "where is the spare key of the ferry office?"}, **key
    ).json()
    assert "stone" not in str(answer)
    assert "stone" in str(served.ask("list", {}, **served.token).json())


def test_memory_stored_with_a_key_is_a_logged_proposal(team: Server, served: Site) -> None:
    _, key = _key(team, "build-bot", role="service")
    outcome = served.ask("store", {"content": "Dogs travel free."}, **key)
    assert outcome.status_code == 200
    assert outcome.json()["proposed"]
    assert "Dogs" not in str(served.ask("list", {}, **served.token).json())
    log = team.open_space("anna", "ferry-team").call("spaces-log", limit=1)
    assert [(item.account, item.action) for item in log] == [("build-bot", "store")]


@pytest.mark.parametrize(("account", "most"), [("ben", "reader"), ("rita", "member")])
def test_permission_is_the_lower_of_account_and_key_role(
    team: Server, served: Site, account: str, most: str
) -> None:
    _, key = _key(team, account, role=most)
    assert served.ask("recall", {"text": _QUESTION}, **key).json()["hits"]
    response = served.ask("store", {"content": "Dogs travel free."}, **key)
    assert (response.status_code, response.json()["code"]) == (403, "not_allowed")


def test_key_is_refused_immediately_after_its_end(team: Server, served: Site) -> None:
    number, key = _key(team, "ben")
    assert served.ask("list", {}, **key).status_code == 200
    team.open_space("anna").call("keys-revoke", space="ferry-team", id=number)
    assert served.ask("list", {}, **key).status_code == 401
    _, other = _key(team, "ben")
    team.open_space("anna").call("spaces-remove", space="ferry-team", account="ben")
    assert served.ask("list", {}, **other).status_code == 401


_NO_KEYS = ("nacre_", "nacre_12345678_" + "A" * 43, "nacre_' OR 1=1 --", "NACRE_12345678_x")


@pytest.mark.parametrize("key", _NO_KEYS)
def test_invalid_key_opens_nothing(served: Site, key: str) -> None:
    assert served.ask("list", {}, Authorization=f"Bearer {key}").status_code == 401


def test_revoked_key_is_refused_on_a_site_without_token(
    team: Server,
    site: Callable[..., Site],  # noqa: F811
) -> None:
    number, key = _key(team, "ben")
    team.open_space("anna")
    open_site = site("--http", "0", "--no-token")
    assert open_site.ask("list").status_code == 200
    assert open_site.ask("list", {}, **key).status_code == 200
    team.open_space("anna").call("keys-revoke", space="ferry-team", id=number)
    assert open_site.ask("store", {"content": _FACT}, **key).status_code == 401
    assert open_site.get("/mcp", **key).status_code == 401


def test_key_cannot_call_operations_of_the_serving_machine(
    team: Server, served: Site, tmp_path: Path
) -> None:
    _, key = _key(team, "anna", role="owner")
    assert served.get("/api/v1/me", **key).status_code == 401
    offered = offered_by(Face.HTTP)
    for name in sorted(name for name in offered if not offered[name].by_key):
        response = served.ask(name, {}, **key)
        assert response.status_code in (400, 403), (name, response.text)
        assert response.json()["code"] in ("invalid_input", "not_allowed", "query_invalid"), (
            name,
            response.text,
        )


def test_operations_allowed_by_key_need_only_the_home() -> None:
    for name, operation in CATALOGUE.items():
        if not operation.by_key:
            continue
        assert operation.needs_home, name
        assert not operation.takes_long, name
