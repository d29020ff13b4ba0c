"""A home with a memory in it, and hooks run as hosts run them: as processes, with JSON on their standard input."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import apsw
import pytest

import nacre
from nacre.base.link import socket_path
from nacre.home.home import open_home
from nacre.serve.homes import Answering, Homes
from nacre.serve.server import Caller, Hooks, Server
from nacre.settings import load_settings
from tests.hosts.stage import eventually

DECIDED = "The lighthouse ledger runs on PostgreSQL, for its transactions."
QUESTION = "on which database does the lighthouse ledger run?"
SESSION = "5e55-0001"
PATIENT_MS = 8_000
"""For what is not about time: this machine may be busy."""

_SERVING: dict[Path, Server] = {}


@dataclass(frozen=True)
class Ran:
    """How a hook ended, what it said, and how long that took."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def context(self) -> str:
        """What a host of Claude Code's shape is told; nothing where that has another shape."""
        if not self.out:
            return ""
        ((key, told),) = json.loads(self.out).items()
        assert key == "hookSpecificOutput"
        assert set(told) == {"hookEventName", "additionalContext"}
        return str(told["additionalContext"])


@dataclass(frozen=True)
class Hooked:
    """A nacre home, and the hooks that hosts run on it."""

    home: Path
    folder: Path

    def given(self, **more: object) -> dict[str, object]:
        return {
            "session_id": SESSION,
            "cwd": str(self.folder),
            "transcript_path": str(self.folder / "t.jsonl"),
            "prompt": QUESTION,
            **more,
        }

    def run(
        self,
        event: str,
        given: object = None,
        *,
        host: str = "claude-code",
        within: int | None = PATIENT_MS,
        stdin: bytes | None = None,
        **more: Any,
    ) -> Ran:
        data = (
            json.dumps(self.given() if given is None else given).encode()
            if stdin is None
            else stdin
        )
        began = time.monotonic()
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        ran = subprocess.run(
            self.command(event, host, within), input=data, timeout=60, check=False, **more
        )
        seconds = time.monotonic() - began
        return Ran(
            ran.returncode, (ran.stdout or b"").decode(), (ran.stderr or b"").decode(), seconds
        )

    def command(
        self, event: str, host: str = "claude-code", within: int | None = PATIENT_MS
    ) -> list[str]:
        limit = [] if within is None else ["--within", str(within)]
        return [
            sys.executable,
            "-m",
            "nacre.serve.hook_process",
            "--home",
            str(self.home),
            *limit,
            host,
            event,
        ]

    def log(self) -> list[dict[str, Any]]:
        path = self.home / "logs" / "hooks.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def chores(self) -> list[dict[str, Any]]:
        return [
            json.loads(path.read_bytes())
            for path in sorted((self.home / "run" / "chores").glob("*.json"))
        ]


@pytest.fixture
def hooked(
    user_home: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Hooked:
    """A home that knows one decision, and no daemon: hooks are not to start one either."""
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")
    monkeypatch.setenv("PYTHONPATH", str(Path(nacre.__file__).parents[1]))
    folder, home, made = (
        tmp_path / "work",
        user_home / ".nacre",
        tmp_path_factory.getbasetemp() / "home-of-hooks",
    )
    folder.mkdir()
    if not made.exists():
        with nacre.open_memory(home) as memory:
            memory.store(DECIDED, kind=nacre.Kind.DECISION)
        home.rename(made)
    shutil.copytree(made, home)
    return Hooked(home, folder)


@contextmanager
def serving(home: Path, before: Callable[[], object] = lambda: None) -> Iterator[Server]:
    """A daemon's ear for a home, and its catalogue behind it; ``before`` is done before a hook is answered."""
    settings = load_settings(home)
    homes = Homes(lambda: open_home(settings), home, settings.config)
    answering = Answering(homes, lambda _: None, {})

    def answer(operation: str, body: bytes, caller: Caller) -> tuple[HTTPStatus, bytes]:
        before()
        return answering.answer(operation, body, caller)

    server = Server(home, answering.answer, lambda _: None, Hooks(home, answer).take)
    server.start()
    _SERVING[home] = server
    try:
        yield server
        be_at_rest(home)
    finally:
        del _SERVING[home]
        server.stop()
        homes.close()


def be_at_rest(home: Path) -> None:
    """Wait until the daemon's ear of a home, if there is one, has done all that it was asked.

    A host has its answer a moment before the daemon keeps that it was told.
    """
    server = _SERVING.get(home)
    assert server is None or eventually(lambda: server.at_work == 0)


@contextmanager
def listening(home: Path, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    """Something that listens where the daemon would, and does ``answer`` with whoever comes."""
    path = Path(socket_path(str(home)))
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(8)
    taken: list[socket.socket] = []

    def take() -> None:
        with suppress(OSError):
            while True:
                link, _ = listener.accept()
                taken.append(link)
                with suppress(OSError):
                    answer(link)

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    try:
        yield
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)
        listener.close()
        for link in taken:
            link.close()
        path.unlink()


@contextmanager
def locked_against_readers(home: Path) -> Iterator[None]:
    """Another process keeps everyone out, readers as well."""
    writer = apsw.Connection(str(home / "nacre.db"))
    writer.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    writer.execute("BEGIN EXCLUSIVE; UPDATE memories SET importance = 1")
    try:
        yield
    finally:
        writer.execute("ROLLBACK")
        writer.close()


def hang(_: socket.socket) -> None:
    """Take the question, and never answer."""


def say(data: bytes) -> Callable[[socket.socket], None]:
    """Read the question, answer this, and hang up."""

    def answer(link: socket.socket) -> None:
        link.recv(65_536)
        link.sendall(data)
        link.close()

    return answer


def respond(told: str, status: int = 200) -> Callable[[socket.socket], None]:
    """Answer this, as the daemon would."""
    return say(
        f"HTTP/1.1 {status} Told\r\nContent-Length: {len(told.encode())}\r\n\r\n{told}".encode()
    )


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
