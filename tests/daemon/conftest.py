"""Daemons like people run them: processes that answer over their sockets."""

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
    dialog_process,
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


def call_daemon(
    operation: str, request: dict[str, Any] | None = None, seconds: float = 20.0
) -> Any:
    """Return an answer of the home's daemon."""
    return ask(str(home()), operation, request or {}, seconds=seconds)


def request_of(operation: str, body: bytes) -> bytes:
    """Return the bytes of a request."""
    return b"POST /call/%b HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (
        operation.encode(),
        len(body),
        body,
    )


def body_of(link: socket.socket) -> dict[str, Any]:
    """Return the body of a response, or an empty object."""
    body: dict[str, Any] = json.loads(link.makefile("rb").read().partition(b"\r\n\r\n")[2] or b"{}")
    return body


def call_raw(
    operation: str, body: bytes, *, half: bool = False, seconds: float = PATIENCE_SECONDS
) -> dict[str, Any]:
    """Send a raw request, and return the response."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(seconds)
        link.connect(socket_path(str(home())))
        link.sendall(request_of(operation, body))
        if half:
            link.shutdown(socket.SHUT_WR)
        return body_of(link)


class Serving:
    """``nacre serve`` as a process, whose output is read line by line."""

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
        self.lines: list[str] = []
        self.unread: list[str] = []

    def until(self, words: str) -> str:
        """Return the next unread line with these words; the daemon's threads print in any order."""
        assert self.process.stdout
        for line in self.unread:
            if words in line:
                self.unread.remove(line)
                return line
        for line in self.process.stdout:
            self.lines.append(line)
            if words in line:
                return line
            self.unread.append(line)
        raise AssertionError(f"the daemon ended before {words!r}: {self.lines}")

    def end(self, with_signal: int = signal.SIGTERM) -> int:
        """End the process, and return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        self.lines.append(self.process.communicate(timeout=PATIENCE_SECONDS)[0])
        return self.process.returncode


@pytest.fixture
def serving(processes: Processes) -> Iterator[Callable[..., Serving]]:
    """``serving()`` starts a daemon and waits until it listens."""
    begun: list[Serving] = []

    def start(*options: str, environ: dict[str, str] | None = None) -> Serving:
        begun.append(Serving(processes, *options, environ=environ))
        begun[-1].until("serves")
        return begun[-1]

    yield start
    for item in begun:
        item.end()


@pytest.fixture
def stopped(nacre: Nacre) -> Iterator[None]:  # noqa: F811 - the fixture
    """Stop any daemon in the background after the test."""
    yield
    nacre("serve", "stop", code=None)
