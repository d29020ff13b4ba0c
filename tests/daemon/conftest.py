"""Daemons as people run them: processes, asked over their sockets."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nacre.base.link import ask, socket_path
from tests.cli.conftest import (  # noqa: F401 - fixtures
    Nacre,
    command,
    environment,
    learned,
    nacre,
    process,
    transcript,
)
from tests.processes import Processes

PATIENCE_SECONDS = 60


def home() -> Path:
    return Path(os.environ["NACRE_HOME"])


def asked(operation: str, request: dict[str, Any] | None = None, seconds: float = 20.0) -> Any:
    """What the daemon of the home answers."""
    return ask(str(home()), operation, request or {}, seconds=seconds)


def request_of(operation: str, body: bytes) -> bytes:
    """A request, as it is sent."""
    return b"POST /call/%b HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (
        operation.encode(),
        len(body),
        body,
    )


def body_of(link: socket.socket) -> dict[str, Any]:
    """What a response holds; nothing where none comes."""
    told: dict[str, Any] = json.loads(link.makefile("rb").read().partition(b"\r\n\r\n")[2] or b"{}")
    return told


def sent(
    operation: str, body: bytes, *, half: bool = False, seconds: float = PATIENCE_SECONDS
) -> dict[str, Any]:
    """What comes back for a request, as a stranger would send it."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(seconds)
        link.connect(socket_path(str(home())))
        link.sendall(request_of(operation, body))
        if half:
            link.shutdown(socket.SHUT_WR)
        return body_of(link)


class Serving:
    """``nacre serve`` as a process; what it says is read line by line."""

    def __init__(
        self, processes: Processes, *options: str, environ: dict[str, str] | None = None
    ) -> None:
        self.process = processes.start(
            command("serve", *options),
            env=environment(environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said: list[str] = []
        self.passed_over: list[str] = []

    def until(self, words: str) -> str:
        """A line with these words that no earlier call returned; the daemon's threads print in any order."""
        assert self.process.stdout
        for line in self.passed_over:
            if words in line:
                self.passed_over.remove(line)
                return line
        for line in self.process.stdout:
            self.said.append(line)
            if words in line:
                return line
            self.passed_over.append(line)
        raise AssertionError(f"it ended before {words!r}: {self.said}")

    def end(self, with_signal: int = signal.SIGTERM) -> int:
        """Ask it to end; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        self.said.append(self.process.communicate(timeout=PATIENCE_SECONDS)[0])
        return self.process.returncode


@pytest.fixture
def serving(processes: Processes) -> Iterator[Callable[..., Serving]]:
    """``serving()`` is a daemon that listens."""
    begun: list[Serving] = []

    def start(*options: str, environ: dict[str, str] | None = None) -> Serving:
        begun.append(Serving(processes, *options, environ=environ))
        begun[-1].until("serves")
        return begun[-1]

    yield start
    for one in begun:
        one.end()


@pytest.fixture
def stopped(nacre: Nacre) -> Iterator[None]:  # noqa: F811 - the fixture
    """Whatever daemon runs in the background when the test ends is ended."""
    yield
    nacre("serve", "stop", code=None)
