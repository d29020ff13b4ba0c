"""Programs and web pages cannot reach the owner's operations or other clients over HTTP."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from nacre.base.locks import FileLock
from nacre.serve.web import MOST_LISTENERS
from tests.cli.conftest import Nacre, learned  # noqa: F401 - a fixture
from tests.daemon.conftest import home
from tests.web_server.conftest import Site

Serve = Callable[..., Site]


@pytest.mark.parametrize(
    ("operation", "request_of"),
    [
        ("forget-plan", {"match": r"(\w+\s*\W*)+$$zz", "regex": True}),
        ("scrub", {"history": True}),
        ("scrub", {"remove_copies": True}),
        ("feedback-judge", {"references": ["tea"], "good": True}),
    ],
)
def test_owner_only_actions_are_refused_to_programs(
    site: Serve, operation: str, request_of: dict[str, Any]
) -> None:
    here = site()
    response = here.ask(operation, request_of, **here.token)
    assert response.status_code == 403
    assert response.json()["code"] == "owner_only"


def test_program_cannot_reset_the_database(site: Serve) -> None:
    here = site()
    assert here.ask("db-reset", {}, **here.token).status_code == 404
    assert list(home().glob("nacre-*.db")) == []


def test_body_with_invalid_unicode_is_a_bad_request(site: Serve) -> None:
    here = site()
    for path in ("/api/v1/edit", "/api/v1/store"):
        headers = {**here.token, "Content-Type": "application/json"}
        answer = here.client.post(here.base + path, content=b'{"content": "\xff"}', headers=headers)
        assert answer.status_code in (400, 422), path


def test_extreme_dates_and_paths_cause_no_server_error(site: Serve) -> None:
    here = site()
    assert here.ask("today", {"since": "0001-01-01"}, **here.token).status_code == 200
    assert here.ask("activity", {"since": "0001-01-01"}, **here.token).status_code == 200
    assert here.ask("did", {"path": "x" * 5_000}, **here.token).status_code == 200


def test_slow_operations_leave_capacity_for_others(site: Serve) -> None:
    here = site()
    body = b'{"patience_seconds": 60}'
    head = (
        f"POST /api/v1/sync HTTP/1.1\r\nHost: {here.base.removeprefix('http://')}\r\n"
        f"Authorization: {here.token['Authorization']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    host, _, port = here.base.removeprefix("http://").partition(":")
    with FileLock(home() / "sync.lock", 5), ExitStack() as stack:
        for _ in range(45):
            stack.enter_context(socket.create_connection((host, int(port)))).sendall(head + body)
        began = time.monotonic()
        assert here.ask("list", **here.token).status_code == 200
        assert time.monotonic() - began < 20


def test_event_listeners_leave_capacity_for_others(site: Serve) -> None:
    here = site()
    host, _, port = here.base.removeprefix("http://").partition(":")
    head = f"GET /api/v1/events HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: {here.token['Authorization']}\r\n\r\n"
    with ExitStack() as stack:
        paths = []
        for _ in range(60):
            link = stack.enter_context(socket.create_connection((host, int(port)), timeout=60))
            link.sendall(head.encode())
            paths.append(link.recv(12))
        assert paths.count(b"HTTP/1.1 200") == MOST_LISTENERS
        assert here.get("/api/v1/me", **here.token).status_code == 200


def test_guessed_codes_give_no_access(site: Serve) -> None:
    here = site()
    page = {"Sec-Fetch-Site": "cross-site"}  # an image in a web page
    assert {here.get("/open?code=guessed", **page).status_code for _ in range(40)} == {403}
    assert here.get("/api/v1/me", **here.browser()).json()["owner"] is True


def test_cookie_does_not_authorise_foreign_origins(site: Serve) -> None:
    here = site()
    browser = {"Origin": "http://127.0.0.1:7999", **here.browser()}
    assert here.get("/api/v1/me", **browser).status_code == 403
