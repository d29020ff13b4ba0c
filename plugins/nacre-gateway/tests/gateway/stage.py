"""A ``nacre gateway run`` process with a local fake Telegram and model provider."""

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
"""Identities of the owner; each test has a separate conversation."""

SECONDS = 20.0
_LOOK_SECONDS = 0.05


class Agent:
    """The model's answers.

    ``rules`` maps a word of a new message to its answer: a text, a reply, or a function of the request. Without a rule
    the answer is ``Answer to`` and the first new line. ``running`` contains the new messages in progress and ``most``
    their maximum number.
    """

    def __init__(self) -> None:
        self.rules: dict[str, Any] = {}
        self.prompts: list[tuple[str, str]] = []
        self.running: list[str] = []
        self.most = 0
        self.changed = Condition()

    def __call__(self, request: Request) -> Any:
        prompt = "\n".join(str(message["content"]) for message in request.body["messages"])
        _, is_chat, rest = prompt.rpartition("## New message")
        new = rest.partition("\n")[2] if is_chat else ""
        with self.changed:
            self.prompts.append((prompt, new))
            self.running.append(new)
            self.most = max(self.most, len(self.running))
            self.changed.notify_all()
        try:
            rule = next(
                (answer for word, answer in self.rules.items() if word in (new or prompt)), None
            )
            return (
                rule(request)
                if callable(rule)
                else rule or f"Answer to {new.partition(chr(10))[0][:80] or 'all'}"
            )
        finally:
            with self.changed:
                self.running.remove(new)
                self.changed.notify_all()

    def hold(self, word: str) -> Callable[[], None]:
        """Delay answers to messages with this word until the returned function is called."""
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
        """Poll until a condition holds, such as a condition on files."""
        until = monotonic() + seconds
        with self.changed:
            while not condition():
                assert monotonic() < until, "the condition did not hold in time"
                self.changed.wait(_LOOK_SECONDS)

    def prompt(self, word: str) -> str:
        """Return the last prompt in which a message with this word was new."""
        return [prompt for prompt, new in self.prompts if word in new][-1]

    def count(self, word: str) -> int:
        """Return how often a message with this word was to be answered."""
        return sum(word in new for _, new in self.prompts)


class Stage:
    """A home, its gateway and the services around it. ``telegram`` and ``club`` are two channels."""

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
            "TZ": "UTC",
            "BOT": TOKEN,
        }

    def __enter__(self) -> Stage:
        for item in (self.telegram, self.club, self.provider):
            item.__enter__()
        self.home.mkdir()
        self.configure(self._settings)
        return self

    def __exit__(self, *_: object) -> None:
        self._processes.end()
        for item in (self.provider, self.club, self.telegram):
            item.__exit__(None, None, None)

    def configure(self, settings: str = "", channel: str = "", club: str = "") -> None:
        """Write the config file: the lines of ``[gateway]`` and of the two channels."""
        identities = ", ".join(f'"telegram:{owner}"' for owner in OWNERS)
        (self.home / "config.toml").write_text(f"""{self.provider.config()}
[models.capabilities."fake:m"]
price = {{ input = 1.0, output = 1.0 }}
[owner]
identities = [{identities}]
[gateway]
debounce_seconds = 0.2
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
        """Start the gateway. It may be killed and started again."""
        with self._log.open("a") as log:
            return self._processes.start(
                [sys.executable, "-m", "nacre", "gateway", "run"],
                env=self._environ,
                stdout=log,
                stderr=log,
                text=True,
            )

    def stop(self, process: subprocess.Popen[str], by: signal.Signals = signal.SIGINT) -> int:
        """Stop the gateway as a terminal does and return its exit code."""
        process.send_signal(by)
        return process.wait(SECONDS)

    @property
    def log(self) -> str:
        return self._log.read_text()

    def nacre(self, *arguments: str) -> str:
        result = CliRunner().invoke(
            cli, arguments, env={**self._environ, "HOME": str(self.home.parent)}
        )
        assert result.exit_code == 0, result.output
        return result.stdout

    def ask(self, user: int, text: str, chat: int = 0, **fields: Any) -> str:
        """Send a message and return the answer: the next text sent to the chat."""
        before = len(self.answers(chat or user))
        self.telegram.say(chat or user, user, text, **fields)
        return self.answers(chat or user, before + 1)[before]

    def answers(self, chat: int, count: int = 0, server: FakeTelegram | None = None) -> list[str]:
        """Return the texts sent to a chat once there are ``count`` of them."""
        telegram = server or self.telegram

        def sent_texts() -> list[str]:
            return [item["text"] for item in telegram.sent if item["chat_id"] == chat]

        telegram.wait_for(lambda: len(sent_texts()) >= count)
        return sent_texts()

    def session(self, key: str | int) -> ChatSession:
        """Return the open conversation of a key; a number is a person in Telegram."""
        with closing(GatewayStore.open(self.home)) as store:
            chat = store.open_session(f"telegram:{key}" if isinstance(key, int) else key)
        assert chat, f"there is no session {key}"
        return chat

    def transcript(self, key: str | int) -> list[Mapping[str, Any]]:
        """Return the lines of the conversation's transcript."""
        path = self.home / f"gateway/sessions/{self.session(key).id}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    def messages(self, key: str | int) -> list[Mapping[str, Any]]:
        """Return the messages of the conversation's transcript."""
        return [line["message"] for line in self.transcript(key) if line["type"] == "message"]


def running(folder: Path, settings: str = "") -> Iterator[Stage]:
    """A stage with a running gateway."""
    with Stage(folder, settings) as stage:
        stage.nacre("store", "The build uses bazel.", "--kind", "fact", "--subject", "Build")
        stage.start()
        yield stage
