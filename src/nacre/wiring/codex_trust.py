"""Have Codex trust nacre's hooks, by its own server, as its window does; only where the owner said so."""

from __future__ import annotations

import json
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from nacre.hosts import codex
from nacre.hosts.pieces import OWN_COMMANDS
from nacre.settings import Settings
from nacre.values.wiring import WiringWish
from nacre.wiring.ways import places_of, program_of

_SECONDS = 20.0
_TRUSTED = "trusted"
UNSEEN = "it does not trust the folder; start codex there, and say that it may"
"""Why Codex sees no hook of a project's."""


class _Refusal(Exception):  # noqa: N818 - what is the case
    """Codex did not do it; the message says why."""


@dataclass(frozen=True, slots=True)
class Trust:
    """How many of nacre's hooks Codex sees, and how many of those it does not trust."""

    seen: int
    untrusted: int


def trust_in(settings: Settings, wish: WiringWish) -> Trust | None:
    """How Codex takes nacre's hooks; ``None`` where it cannot be asked."""
    try:
        with _Server(settings, wish) as server:
            hooks = server.own_hooks()
            return Trust(len(hooks), sum(hook.get("trustStatus") != _TRUSTED for hook in hooks))
    except _Refusal:
        return None


def trust_hooks(settings: Settings, wish: WiringWish) -> str | None:
    """Have Codex trust nacre's hooks as they are written; returns what went wrong."""
    try:
        with _Server(settings, wish) as server:
            hooks = {str(hook["key"]): {"trusted_hash": hook["currentHash"]} for hook in server.own_hooks()}
            if not hooks:
                return "it sees no hook of nacre's" + (f": {UNSEEN}" if wish.project else "")
            edit = {"keyPath": "hooks.state", "value": hooks, "mergeStrategy": "upsert"}
            with _mode_kept(config_file(settings)):
                server.ask("config/batchWrite", {"edits": [edit], "reloadUserConfig": True})
            left = [hook for hook in server.own_hooks() if hook.get("trustStatus") != _TRUSTED]
            return "it still does not trust them" if left else None
    except _Refusal as refusal:
        return str(refusal)


class _Server:
    """``codex app-server`` on its standard streams: JSON-RPC, a line a message."""

    def __init__(self, settings: Settings, wish: WiringWish) -> None:
        program = program_of(settings, "codex")
        if program is None:
            raise _Refusal("there is no codex on PATH")
        self._folder = wish.project or settings.user_home
        self._file = codex.hooks_file(places_of(settings, wish.project))
        self._answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._number = 0
        try:
            self._process = subprocess.Popen(
                [program, "app-server"], env=dict(settings.environ), cwd=self._folder, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
            )  # fmt: skip
        except OSError as error:
            raise _Refusal(f"codex cannot be run: {error.strerror}") from error
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> _Server:
        client = {"name": "nacre", "title": "nacre", "version": "0"}
        try:
            self.ask("initialize", {"clientInfo": client, "capabilities": {"experimentalApi": True}})
            self._send({"method": "initialized"})
        except _Refusal:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def own_hooks(self) -> list[dict[str, Any]]:
        """nacre's hooks as Codex sees them in the file that was written."""
        answer = self.ask("hooks/list", {"cwds": [str(self._folder)]})
        return [
            hook for hook in _hooks_in(answer)
            if str(self._file) in str(hook["key"]) and any(name in json.dumps(hook) for name in OWN_COMMANDS)
        ]  # fmt: skip

    def ask(self, method: str, parameters: dict[str, Any]) -> Any:
        """The answer to a request. Raises _Refusal."""
        self._number += 1
        self._send({"id": self._number, "method": method, "params": parameters})
        while True:
            try:
                answer = self._answers.get(timeout=_SECONDS)
            except Empty:
                raise _Refusal("codex app-server does not answer") from None
            if not answer:
                raise _Refusal("codex app-server ended")
            if answer.get("id") == self._number and "method" not in answer:
                if "error" in answer:
                    raise _Refusal(str(answer["error"].get("message", "it refused"))[:200])
                return answer.get("result")

    def _send(self, message: dict[str, Any]) -> None:
        stream = self._process.stdin
        try:
            if stream:
                stream.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
                stream.flush()
        except OSError as error:
            raise _Refusal("codex app-server ended") from error

    def _listen(self) -> None:
        """Only this thread reads the stream, so only it closes it."""
        if self._process.stdout is None:
            return
        with self._process.stdout as lines:
            for line in lines:
                with suppress(ValueError):
                    message = json.loads(line)
                    if isinstance(message, dict):
                        self._answers.put(message)
        self._answers.put({})

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.close()
        self._listener.join(timeout=5)


def _hooks_in(answer: Any) -> Iterator[dict[str, Any]]:
    """All objects of an answer that are hooks: how they are grouped differs between versions."""
    if isinstance(answer, dict):
        if "currentHash" in answer and "key" in answer:
            yield answer
        for value in answer.values():
            yield from _hooks_in(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from _hooks_in(value)


@contextmanager
def _mode_kept(path: Path) -> Iterator[None]:
    """Codex makes its file anew, the owner's alone; a mode that it had stays."""
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    yield
    if mode is not None:
        path.chmod(mode)


def config_file(settings: Settings) -> Path:
    """The file into which Codex writes what it trusts."""
    return codex.users_config(places_of(settings))
