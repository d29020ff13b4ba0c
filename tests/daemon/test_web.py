"""If enabled, the daemon serves agents over HTTP: on this machine only, and with the token."""

from __future__ import annotations

import json
import re
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from nacre.base.serving import names_of, split_place
from nacre.errors import InvalidInputError
from tests.cli.conftest import Nacre, environment
from tests.daemon.conftest import Serving, call_daemon, home

Serve = Callable[..., Serving]
GREETING = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


def post(url: str, token: str | None, body: Any = GREETING) -> tuple[int, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)  # noqa: S310 - loopback
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_local_client_with_the_token_is_served(
    serving: Serve, process: Nacre, learned: Any
) -> None:
    daemon = serving("--no-watch", "--http", "0")
    line = daemon.lines[-1]
    match = re.search(r"http://127\.0\.0\.1:\d+/mcp", line)
    assert match, line
    assert call_daemon("hello")["http"] == match[0]
    assert match[0] in process("serve", "status").out
    file = home() / "http.token"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    token = file.read_text().strip()
    assert len(token) > 30
    assert post(match[0], None)[0] == 401
    assert post(match[0], "another")[0] == 401
    status, text = post(match[0], token)
    assert status == 200
    assert "nacre" in text
    call = {"name": "memory_search", "arguments": {"query": "which database does billing use?"}}
    asking = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}
    assert "PostgreSQL" in post(match[0], token, asking)[1]
    assert daemon.end() == 0
    again = serving("--no-watch", "--http", "0")
    assert file.read_text().strip() == token
    assert again.end() == 0


def test_http_is_off_by_default(serving: Serve) -> None:
    serving("--no-watch")
    assert call_daemon("hello")["http"] is None
    assert not (home() / "http.token").exists()


def test_tokenless_http_is_allowed_only_on_loopback(serving: Serve, process: Nacre) -> None:
    daemon = serving("--no-watch", "--http", "0", "--no-token")
    match = re.search(r"http://127\.0\.0\.1:\d+/mcp", daemon.lines[-1])
    assert match
    assert post(match[0], None)[0] == 200
    assert not (home() / "http.token").exists()
    assert daemon.end() == 0
    error = process("serve", "--no-watch", "--http", "0.0.0.0:0", "--no-token", "--json", code=2)
    assert "needs a token" in error.error["message"]


def test_occupied_port_is_reported(serving: Serve, process: Nacre) -> None:
    daemon = serving("--no-watch", "--http", "0")
    match = re.search(r":(\d+)/mcp", daemon.lines[-1])
    assert match
    error = process(
        "serve",
        "--no-watch",
        "--http",
        match[1],
        "--json",
        environ={"NACRE_HOME": f"{home()}2"},
        code=5,
    )
    assert "cannot listen at 127.0.0.1:" in error.error["message"]


def test_missing_web_dependency_names_the_package_to_install() -> None:
    program = "import sys; sys.modules['starlette'] = None; from nacre.cli.root import cli; cli.main(sys.argv[1:])"
    result = subprocess.run(
        [sys.executable, "-c", program, "serve", "--no-watch", "--http", "0", "--json"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    error = json.loads(result.stdout)["error"]
    assert result.returncode == 5
    assert error["hint"] == "pip install 'nacre-memory[web]'"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("8765", ("127.0.0.1", 8765)),
        ("mill.example:1", ("mill.example", 1)),
        ("[::1]:80", ("::1", 80)),
        (":9", ("127.0.0.1", 9)),
    ],
)
def test_address_is_a_port_or_a_host_and_port(place: str, expected: tuple[str, int]) -> None:
    assert split_place(place) == expected


@pytest.mark.parametrize("place", ["", "here", "localhost", "localhost:", "1:99999", "::1", "٣"])
def test_invalid_address_is_refused(place: str) -> None:
    with pytest.raises(InvalidInputError):
        split_place(place)


def test_allowed_host_names_match_the_listening_address() -> None:
    assert names_of("127.0.0.1") == names_of("::1") == ()
    assert names_of("mill.example") == ("mill.example",)
    assert socket.gethostname() in names_of("0.0.0.0")  # noqa: S104 - nothing listens
