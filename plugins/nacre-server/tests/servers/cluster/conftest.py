"""Cluster processes and keys to the spaces that they serve."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import httpx2 as httpx
import pytest

from nacre.serve.server_web import Door
from nacre.settings import load_settings
from nacre_server.cluster import serve_api
from servers.spaces.conftest import Server, server, team  # noqa: F401 - fixtures
from tests.cli.conftest import command, environment, nacre, process  # noqa: F401 - fixtures
from tests.processes import Processes

PATIENCE_SECONDS = 60
_PAUSE_SECONDS = 0.02


class Api:
    """A ``nacre server cluster api`` process."""

    def __init__(self, processes: Processes, *options: str) -> None:
        self.process = processes.start(
            command("server", "cluster", "api", "--http", "0", *options),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout
        line = self.process.stdout.readline()
        match = re.search(r"at (http\S+),", line)
        assert match, line + self.process.stdout.read()
        self.base = match[1]

    def post(self, operation: str, body: Any, key: dict[str, str]) -> httpx.Response:
        """Send ``POST /api/v1/<operation>`` over a new connection."""
        return httpx.post(
            f"{self.base}/api/v1/{operation}",
            json=body,
            headers=key,
            timeout=PATIENCE_SECONDS,
            trust_env=False,
            verify=False,
        )

    def tool(self, name: str, arguments: dict[str, Any], key: dict[str, str]) -> dict[str, Any]:
        """Return the result of an agent's tool call at ``/mcp``."""
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-06-18",
            **key,
        }
        answer = httpx.post(
            f"{self.base}/mcp",
            json=body,
            headers=headers,
            timeout=PATIENCE_SECONDS,
            trust_env=False,
            verify=False,
        )
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()["result"]
        return result

    def get(self, path: str, key: dict[str, str] | None = None) -> httpx.Response:
        return httpx.get(
            self.base + path,
            headers=key or {},
            timeout=PATIENCE_SECONDS,
            trust_env=False,
            verify=False,
        )

    def end(self) -> int:
        """Send SIGTERM and return the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode


@contextmanager
def serving_here(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve keys in a thread of this process and yield the address and the API's log lines."""
    logged: list[str] = []
    listens, stop = Event(), Event()

    def tell(line: str) -> None:
        logged.append(line)
        listens.set()

    settings = load_settings()
    door = Door.of(settings, "0")
    running = Thread(target=serve_api, args=(settings, folder, door, tell, stop, 0.0))
    running.start()
    try:
        assert listens.wait(PATIENCE_SECONDS)
        match = re.search(r"at (http\S+),", logged[0])
        assert match, logged
        yield match[1], logged
    finally:
        stop.set()
        running.join()


class Balancer:
    """A client that sends requests to the processes in turn.

    After a refused connection, a broken answer or a request to retry, it sends the same request to the next process,
    where a text that is already stored is "known".
    """

    def __init__(self, key: dict[str, str]) -> None:
        self._key = key
        self.processes: list[Api] = []
        self.answered: list[str] = []
        self.broken: list[str] = []
        """Failures of requests that were answered later."""
        self.errors: list[str] = []

    def store(self, stop: Event, name: str) -> None:
        """Store each text once until ``stop`` is set."""
        for number in count():
            if stop.is_set():
                return
            text = f"Berth {name}{number} belongs to the boat {name}{number * 7}."
            status = self._send_store(number, text)
            if status == 200:
                self.answered.append(text)
            else:
                self.errors.append(str(status))

    def _send_store(self, number: int, text: str) -> int:
        for more in count():
            api = self.processes[(number + more) % len(self.processes)]
            try:
                answer = api.post("store", {"content": text}, self._key)
            except httpx.ConnectError:
                time.sleep(_PAUSE_SECONDS)
                continue
            except httpx.HTTPError as error:
                self.broken.append(repr(error))
                continue
            if answer.status_code != 503:
                return answer.status_code
            self.broken.append(answer.text)
            time.sleep(_PAUSE_SECONDS)
        raise AssertionError


@pytest.fixture
def api(processes: Processes) -> Callable[..., Api]:
    """``api("--linger", "1")`` starts a process that answers."""
    return lambda *options: Api(processes, *options)


def key_of(team: Server, account: str, **fields: Any) -> dict[str, str]:  # noqa: F811
    """Return the headers of an account's program for the team's space."""
    created = team.open_space("anna").call(
        "keys-create", space="ferry-team", account=account, **fields
    )
    return {"Authorization": f"Bearer {created.secret}"}
