"""A gateway that runs: ``nacre gateway run`` as a process, Telegram and a provider of models on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from threading import Condition
from time import monotonic
from typing import Any

from click.testing import CliRunner

from nacre.cli.root import cli
from nacre.store.gateway import GatewayStore
from nacre.values.gateway import ChatSession
from tests.cli.conftest import SOURCE
from tests.fakes.provider import FakeProvider, Request
from tests.fakes.telegram import TOKEN, FakeTelegram
from tests.processes import Processes

OWNERS = range(5001, 5041)
"""Identities of the owner's: each test has a conversation of its own."""

SECONDS = 20.0
_LOOK_SECONDS = 0.05


class Agent:
    """What models answer. ``rules`` are words of a new message, and what is answered to it: a text, a reply, or what a
    function makes of the request; without a rule it is ``Answer to`` and the first new line. ``running`` are the new
    messages that are being answered, ``most`` how many there were at once."""

    def __init__(self) -> None:
        self.rules: dict[str, Any] = {}
        self.asked: list[tuple[str, str]] = []
        self.running: list[str] = []
        self.most = 0
        self.changed = Condition()

    def __call__(self, request: Request) -> Any:
        prompt = "\n".join(str(one["content"]) for one in request.body["messages"])
        _, is_chat, rest = prompt.rpartition("## New message")
        new = rest.partition("\n")[2] if is_chat else ""
        with self.changed:
            self.asked.append((prompt, new))
            self.running.append(new)
            self.most = max(self.most, len(self.running))
            self.changed.notify_all()
        try:
            found = next(
                (answer for word, answer in self.rules.items() if word in (new or prompt)), None
            )
            return (
                found(request)
                if callable(found)
                else found or f"Answer to {new.partition(chr(10))[0][:80] or 'all'}"
            )
        finally:
            with self.changed:
                self.running.remove(new)
                self.changed.notify_all()

    def hold(self, word: str) -> Callable[[], None]:
        """Keep answers to messages with this word back, until what is returned is called."""
        is_free = False

        def wait(_: Request) -> str:
            with self.changed:
                assert self.changed.wait_for(lambda: is_free, SECONDS)
            return f"Held back: {word}"

        def release() -> None:
            nonlocal is_free
            with self.changed:
                is_free = True
                self.changed.notify_all()

        self.rules[word] = wait
        return release

    def wait_for(self, condition: Callable[[], bool], seconds: float = SECONDS) -> None:
        """Wait until a condition holds, be it one of files; it is looked at often."""
        until = monotonic() + seconds
        with self.changed:
            while not condition():
                assert monotonic() < until, "what was waited for did not happen"
                self.changed.wait(_LOOK_SECONDS)

    def prompt(self, word: str) -> str:
        """What was asked when a message with this word was new; the last time."""
        return [prompt for prompt, new in self.asked if word in new][-1]

    def count(self, word: str) -> int:
        """How often a message with this word was to be answered."""
        return sum(word in new for _, new in self.asked)


class Stage:
    """One home, its gateway, and those around it. ``telegram`` and ``club`` are two channels."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.home = folder / ".nacre"
        self.telegram, self.club, self.agent = FakeTelegram(), FakeTelegram(), Agent()
        self.provider = FakeProvider(self.agent)
        self._settings = settings
        self._processes = Processes()
        self._log = folder / "gateway.log"
        self._environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(SOURCE),
            "HOME": str(folder),
            "NACRE_HOME": str(self.home),
            "NACRE_EMBEDDING_MODEL": "none",
            "NACRE_GIT_BACKGROUND": "false",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            "TZ": "UTC",
            "BOT": TOKEN,
        }

    def __enter__(self) -> Stage:
        for one in (self.telegram, self.club, self.provider):
            one.__enter__()
        self.home.mkdir()
        self.configure(self._settings)
        return self

    def __exit__(self, *_: object) -> None:
        self._processes.end()
        for one in (self.provider, self.club, self.telegram):
            one.__exit__(None, None, None)

    def configure(self, settings: str = "", channel: str = "", club: str = "") -> None:
        """Write the config file: ``settings`` are lines of ``[gateway]``, the others of the two channels."""
        identities = ", ".join(f'"telegram:{one}"' for one in OWNERS)
        (self.home / "config.toml").write_text(f"""{self.provider.config()}
[models.capabilities."fake:m"]
price = {{ input = 1.0, output = 1.0 }}
[models.capabilities."fake:small"]
window = 8000
[owner]
identities = [{identities}]
[gateway]
debounce_seconds = 0.2
answers_a_minute = 1000
{settings}
[gateway.channels.telegram]
token = "env:BOT"
base_url = "{self.telegram.url}"
{channel}
[gateway.channels.club]
kind = "telegram"
token = "env:BOT"
base_url = "{self.club.url}"
hears = "all"
model = "fake:small"
{club}
""")

    def start(self) -> subprocess.Popen[str]:
        """Run the gateway. It may be killed and started again."""
        with self._log.open("a") as log:
            return self._processes.start(
                [sys.executable, "-m", "nacre", "gateway", "run"],
                env=self._environ,
                stdout=log,
                stderr=log,
                text=True,
            )

    def stop(self, process: subprocess.Popen[str], by: signal.Signals = signal.SIGINT) -> int:
        """End the gateway as a terminal does; its exit code."""
        process.send_signal(by)
        return process.wait(SECONDS)

    @property
    def log(self) -> str:
        """What the gateway told."""
        return self._log.read_text()

    def nacre(self, *arguments: str) -> str:
        """What a command prints."""
        result = CliRunner().invoke(
            cli, arguments, env={**self._environ, "HOME": str(self.home.parent)}
        )
        assert result.exit_code == 0, result.output
        return result.stdout

    def ask(self, user: int, text: str, chat: int = 0, **fields: Any) -> str:
        """Say something, and wait for the answer: the next text that is sent there."""
        before = len(self.answers(chat or user))
        self.telegram.say(chat or user, user, text, **fields)
        return self.answers(chat or user, before + 1)[before]

    def answers(self, chat: int, count: int = 0, server: FakeTelegram | None = None) -> list[str]:
        """Texts that were sent to a chat, once there are so many."""
        telegram = server or self.telegram

        def sent() -> list[str]:
            return [one["text"] for one in telegram.sent if one["chat_id"] == chat]

        telegram.wait_for(lambda: len(sent()) >= count)
        return sent()

    def session(self, key: str | int) -> ChatSession:
        """The conversation that goes on; of a number, with that person in Telegram."""
        with closing(GatewayStore.open(self.home)) as store:
            found = store.open_session(f"telegram:{key}" if isinstance(key, int) else key)
        assert found, f"there is no session {key}"
        return found

    def transcript(self, key: str | int) -> list[Mapping[str, Any]]:
        """The lines of its transcript."""
        path = self.home / f"gateway/sessions/{self.session(key).id}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def said(self, key: str | int) -> list[Mapping[str, Any]]:
        """The messages of its transcript."""
        return [line["message"] for line in self.transcript(key) if line["type"] == "message"]


def running(folder: Path, settings: str = "") -> Iterator[Stage]:
    """A stage whose gateway runs."""
    with Stage(folder, settings) as stage:
        stage.nacre("store", "The build uses bazel.", "--kind", "fact", "--subject", "Build")
        stage.start()
        yield stage
