"""Processes of a cluster, and keys to the spaces that they serve."""

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
from nacre_server.cluster import Api as RunningApi
from servers.spaces.conftest import Server, server, team  # noqa: F401 - fixtures
from tests.cli.conftest import command, environment, nacre, process  # noqa: F401 - fixtures
from tests.processes import Processes

PATIENCE_SECONDS = 60
_PAUSE_SECONDS = 0.02


class Api:
    """``nacre server cluster api`` as a process."""

    def __init__(self, processes: Processes, *options: str) -> None:
        self.process = processes.start(
            command("server", "cluster", "api", "--http", "0", *options),
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout
        said = self.process.stdout.readline()
        found = re.search(r"at (http\S+),", said)
        assert found, said + self.process.stdout.read()
        self.base = found[1]

    def post(self, operation: str, asked: Any, key: dict[str, str]) -> httpx.Response:
        """``POST /api/v1/<operation>``, over a connection of its own."""
        return httpx.post(
            f"{self.base}/api/v1/{operation}",
            json=asked,
            headers=key,
            timeout=PATIENCE_SECONDS,
            trust_env=False,
            verify=False,
        )

    def tool(self, name: str, arguments: dict[str, Any], key: dict[str, str]) -> dict[str, Any]:
        """What an agent's tool answers at ``/mcp``."""
        asked = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }
        told = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-06-18",
            **key,
        }
        answer = httpx.post(
            f"{self.base}/mcp",
            json=asked,
            headers=told,
            timeout=PATIENCE_SECONDS,
            trust_env=False,
            verify=False,
        )
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()["result"]
        return found

    def get(self, path: str, key: dict[str, str] | None = None) -> httpx.Response:
        """``GET``."""
        return httpx.get(
            self.base + path,
            headers=key or {},
            timeout=PATIENCE_SECONDS,
            trust_env=False,
            verify=False,
        )

    def end(self) -> int:
        """SIGTERM; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode


@contextmanager
def serving_here(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve keys in a thread of this process: the address, and what the API says."""
    told: list[str] = []
    listens, stop = Event(), Event()

    def tell(line: str) -> None:
        told.append(line)
        listens.set()

    settings = load_settings()
    api = RunningApi(settings, folder, Door.of(settings, "0"), tell)
    running = Thread(target=api.run, args=(stop, 0.0))
    running.start()
    try:
        assert listens.wait(PATIENCE_SECONDS)
        found = re.search(r"at (http\S+),", told[0])
        assert found, told
        yield found[1], told
    finally:
        stop.set()
        running.join()


class Balancer:
    """A client that asks one process after the other. Where nobody listens, where the answer breaks off, or where it is
    told to come again, it sends the same once more to the next one; what is stored already is "known" there."""

    def __init__(self, key: dict[str, str]) -> None:
        self._key = key
        self.processes: list[Api] = []
        self.answered: list[str] = []
        self.broken: list[str] = []
        """What went wrong on the way, before something was answered."""
        self.errors: list[str] = []

    def store(self, stop: Event, name: str) -> None:
        """Store until told to stop; each text once."""
        for number in count():
            if stop.is_set():
                return
            text = f"Berth {name}{number} belongs to the boat {name}{number * 7}."
            status = self._asked(number, text)
            if status == 200:
                self.answered.append(text)
            else:
                self.errors.append(str(status))

    def _asked(self, number: int, text: str) -> int:
        for more in count():
            one = self.processes[(number + more) % len(self.processes)]
            try:
                answer = one.post("store", {"content": text}, self._key)
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
    """``api("--linger", "1")`` is a process that answers."""
    return lambda *options: Api(processes, *options)


def key_of(team: Server, account: str, **fields: Any) -> dict[str, str]:  # noqa: F811
    """What a program of an account sends to get into the team's space."""
    made = team.opened("anna").call("keys-create", space="ferry-team", account=account, **fields)
    return {"Authorization": f"Bearer {made.secret}"}
