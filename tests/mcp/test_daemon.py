"""Tool answers are the same with and without the daemon; every operation passes the socket completely."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nacre.base.link import is_whole, socket_path
from nacre.errors import NacreError
from nacre.home.home import open_home
from nacre.serve.catalogue import CATALOGUE
from nacre.serve.mcp import HomeCalls
from nacre.settings import load_settings
from tests.mcp.conftest import SESSION, Server

pytestmark = pytest.mark.anyio

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("memory_search", {"query": "which database does billing use?"}),
    ("memory_search", {"query": "which database does billing use?", "deep": True}),
    (
        "memory_search",
        {"project": "*", "kinds": ["decision", "preference"], "since": "2020-01-01", "turns": 0},
    ),
    ("memory_search", {"query": "x", "project": "atlantis"}),
    ("memory_list", {"min_importance": 3}),
    ("memory_get", {"ids": ["nowhere-to-be-found"]}),
    ("memory_sessions", {}),
    ("memory_sessions", {"action": "read", "session": SESSION, "from_turn": 0}),
    ("memory_sessions", {"action": "summary", "session": SESSION}),
    ("memory_sessions", {"action": "search", "query": "accounts charged at once"}),
    ("memory_extract", {"session": f"claude-code:{SESSION}", "by_model": False}),
    ("memory_analyze", {"about": "brief"}),
    ("memory_analyze", {"about": "gaps"}),
    ("memory_analyze", {"about": "review"}),
    ("memory_analyze", {"about": "review"}),
    ("memory_analyze", {"about": "file", "subject": "ledger.py"}),
    (
        "memory_analyze",
        {"about": "error", "subject": "ModuleNotFoundError: no module named ledger"},
    ),
    ("memory_admin", {"action": "overview"}),
    ("memory_retire", {"ids": ["nowhere-to-be-found"]}),
]


class Daemon:
    """Answers the catalogue on the home's socket like the daemon, and records the requests."""

    def __init__(self) -> None:
        settings = load_settings()
        self._context = open_home(settings)
        self.asked: list[str] = []
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(socket_path(str(settings.home)))
        self._socket.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            link, _ = self._socket.accept()
            with link:
                message = bytearray()
                while not is_whole(message):
                    chunk = link.recv(65_536)
                    if not chunk:
                        return
                    message += chunk
                operation = message.split(b" ", 2)[1].decode().rpartition("/")[2]
                body = self._answer(operation, json.loads(message.partition(b"\r\n\r\n")[2]))
                link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    def _answer(self, operation: str, question: dict[str, Any]) -> bytes:
        self.asked.append(operation)
        try:
            request = json.dumps(question["request"]).encode()
            return b'{"result": ' + CATALOGUE[operation].answer(self._context, request) + b"}"
        except NacreError as error:
            details = {"code": error.code, "message": error.message, "hint": error.hint}
            return msgspec.json.encode({"error": details})

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(self._socket.getsockname())
        self._thread.join(timeout=30)
        self._socket.close()
        self._context.close()


@pytest.fixture
def daemon(home: Path) -> Iterator[Daemon]:
    running = Daemon()
    yield running
    running.close()
    (home / "daemon.sock").unlink(missing_ok=True)


async def without(server: Server, tool: str, arguments: dict[str, Any]) -> str:
    place = Path(socket_path(str(server.home)))
    aside = place.with_suffix(".aside")
    place.rename(aside)
    try:
        return (await server.ask(tool, **arguments)).text
    finally:
        aside.rename(place)


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_answer_is_identical_with_and_without_the_daemon(
    tool: str, arguments: dict[str, Any], home: Path, daemon: Daemon
) -> None:
    server = Server(home)
    alone = await without(server, tool, arguments)
    assert not daemon.asked
    assert (await server.ask(tool, **arguments)).text == alone
    assert daemon.asked


async def test_missing_daemon_is_started_once_without_waiting(
    home: Path,
) -> None:
    started: list[str] = []
    calls = HomeCalls(home, start=lambda: started.append("nacre serve"))
    for _ in range(3):
        assert calls("place", name="acme-billing").is_known
    assert started == ["nacre serve"]
    calls.close()


async def test_memory_stored_by_the_daemon_is_visible_to_all(home: Path, daemon: Daemon) -> None:
    server = Server(home)
    answer = await server.ask(
        "memory_store", entries=[{"content": "The bell rings at noon.", "kind": "fact"}]
    )
    assert "Stored" in answer.text
    memory = answer.text.partition("[")[2].partition("]")[0]
    assert "bell rings at noon" in await without(server, "memory_get", {"ids": [memory]})
    assert "bell rings" in (await server.ask("memory_graph", id=memory)).text
    assert memory in (await server.ask("memory_retire", ids=[memory])).text
    assert "store" in daemon.asked
    assert "retire" in daemon.asked
