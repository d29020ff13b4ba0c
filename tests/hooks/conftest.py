"""A home with a memory, and hooks run like hosts run them: as processes with JSON on standard input."""

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
"""A generous limit for tests that do not measure time on a busy machine."""

_SERVING: dict[Path, Server] = {}


@dataclass(frozen=True)
class HookResult:
    """A hook's exit code, output and duration."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def context(self) -> str:
        """Return the context in Claude Code's format; empty without output."""
        if not self.out:
            return ""
        ((key, output),) = json.loads(self.out).items()
        assert key == "hookSpecificOutput"
        assert set(output) == {"hookEventName", "additionalContext"}
        return str(output["additionalContext"])


@dataclass(frozen=True)
class Hooked:
    """A nacre home, and the hooks that hosts run on it."""

    home: Path
    folder: Path

    def hook_input(self, **more: object) -> dict[str, object]:
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
        value: object = None,
        *,
        host: str = "claude-code",
        within: int | None = PATIENT_MS,
        stdin: bytes | None = None,
        **more: Any,
    ) -> HookResult:
        data = (
            json.dumps(self.hook_input() if value is None else value).encode()
            if stdin is None
            else stdin
        )
        began = time.monotonic()
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        result = subprocess.run(
            self.command(event, host, within), input=data, timeout=60, check=False, **more
        )
        seconds = time.monotonic() - began
        return HookResult(
            result.returncode,
            (result.stdout or b"").decode(),
            (result.stderr or b"").decode(),
            seconds,
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
    """A home with one decision and no daemon; hooks do not start one."""
    monkeypatch.setenv("NACRE_DAEMON_ENABLED", "false")
    monkeypatch.setenv("PYTHONPATH", str(Path(nacre.__file__).parents[1]))
    folder, home, existing = (
        tmp_path / "work",
        user_home / ".nacre",
        tmp_path_factory.getbasetemp() / "home-of-hooks",
    )
    folder.mkdir()
    if not existing.exists():
        with nacre.open_memory(home) as memory:
            memory.store(DECIDED, kind=nacre.Kind.DECISION)
        home.rename(existing)
    shutil.copytree(existing, home)
    return Hooked(home, folder)


@contextmanager
def serving(home: Path, before: Callable[[], object] = lambda: None) -> Iterator[Server]:
    """Run a daemon's socket server for a home; ``before`` runs before each answer to a hook."""
    settings = load_settings(home)
    homes = Homes(lambda: open_home(settings), home, settings.config)
    answering = Answering(homes, lambda _: None, {})

    def answer(operation: str, body: bytes, caller: Caller) -> tuple[HTTPStatus, bytes]:
        before()
        return answering.answer(operation, body, caller)

    server = Server(home, answering.answer, lambda _: None, Hooks(str(home), answer).take)
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
    """Wait until the home's daemon in this process, if any, is idle.

    The host gets its answer shortly before the daemon records it.
    """
    server = _SERVING.get(home)
    assert server is None or eventually(lambda: server.at_work == 0)


@contextmanager
def listening(home: Path, answer: Callable[[socket.socket], None]) -> Iterator[None]:
    """Listen on the daemon's socket, and call ``answer`` with each connection."""
    path = Path(socket_path(str(home)))
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with suppress(FileNotFoundError):
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(8)
    connections: list[socket.socket] = []

    def take() -> None:
        with suppress(OSError):
            while True:
                link, _ = listener.accept()
                connections.append(link)
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
        for link in connections:
            link.close()
        path.unlink()


@contextmanager
def locked_against_readers(home: Path) -> Iterator[None]:
    """Lock the database against all other processes, including readers."""
    writer = apsw.Connection(str(home / "nacre.db"))
    writer.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    writer.execute("BEGIN EXCLUSIVE; UPDATE memories SET importance = 1")
    try:
        yield
    finally:
        writer.execute("ROLLBACK")
        writer.close()


def hang(_: socket.socket) -> None:
    """Accept the request, and never answer."""


def say(data: bytes) -> Callable[[socket.socket], None]:
    """Read the request, send data, and close the connection."""

    def answer(link: socket.socket) -> None:
        link.recv(65_536)
        link.sendall(data)
        link.close()

    return answer


def respond(text: str, status: int = 200) -> Callable[[socket.socket], None]:
    """Send a response like the daemon."""
    return say(
        f"HTTP/1.1 {status} Told\r\nContent-Length: {len(text.encode())}\r\n\r\n{text}".encode()
    )


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
