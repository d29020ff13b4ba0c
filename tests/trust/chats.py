"""Interrupted chats: a platform records its deliveries and the received messages, across restarts of nacre.

The log is outside the user's folder, where faults do not reach it: a platform's and an agent's knowledge outlives
nacre's process. After any fault the gateway runs again; then every message has been answered, and repeated only if
necessary.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from nacre.base.ids import utc_now, uuid7_source
from nacre.errors import UnavailableError
from nacre.home.home import Home, open_home
from nacre.redact.redactor import Redactor
from nacre.serve.homes import Homes
from nacre.settings import load_settings
from nacre.store.gateway import GatewayStore
from nacre.values.gateway import Answer, Chat, Incoming, Limits, Outgoing, Sender
from nacre.values.models import Prompt
from nacre_gateway.channels import Inbox
from nacre_gateway.conversation import ChannelOptions, OpenChannel
from nacre_gateway.engine import Gateway
from nacre_gateway.sessions import Answering

NAME = "pier"
PATIENCE_SECONDS = 10.0
_BATCHES: Sequence[Sequence[tuple[str, str]]] = (
    (("a1", "ada"), ("b1", "bo")),
    (("a1", "ada"), ("a2", "ada")),
    (("s1", "stranger"), ("b2", "bo")),
)
"""Batches of messages: id and sender."""

_ASKED = {"a1": "ada", "b1": "bo", "a2": "ada", "b2": "bo"}
"""Messages that need an answer, with their chats."""

_EXCUSE = "I cannot answer"
_HALVES = ("first half", "second half")


class Log:
    """The events that the platform and the agent saw, in order."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, **event: Any) -> None:
        """Append an event."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, json.dumps(event).encode() + b"\n")
        os.close(descriptor)

    def events(self) -> list[Mapping[str, Any]]:
        """Return all events."""
        return (
            [json.loads(line) for line in self.path.read_text().splitlines()]
            if self.path.exists()
            else []
        )

    def sent(self) -> list[tuple[str, str]]:
        """Return keys and texts of the parts that the platform accepted."""
        return [(event["key"], event["text"]) for event in self.events() if "text" in event]


def log_of(user: Path) -> Log:
    """Return the log of a user's folder."""
    return Log(user.parent / "platform.jsonl")


class Pier:
    """A channel of the platform; implements Channel. Each batch waits until the previous one was answered."""

    def __init__(self, log: Log) -> None:
        self.limits = Limits(characters=60)
        self.done = asyncio.Event()
        self._log = log
        self._changed = asyncio.Condition()

    async def run(self, inbox: Inbox) -> None:
        """Deliver the unconfirmed batches."""
        for number in range(int(inbox.state("offset") or 0), len(_BATCHES)):
            await self._wait_for(item for batch in _BATCHES[:number] for item, _ in batch)
            await inbox.receive(
                [_message(*item) for item in _BATCHES[number]], offset=str(number + 1)
            )
        await self._wait_for(item for batch in _BATCHES for item, _ in batch)
        self.done.set()

    async def send(self, outgoing: Outgoing) -> str:
        """Accept a part."""
        self._log.add(key=outgoing.key, text=outgoing.text, chat=outgoing.chat.id)
        async with self._changed:
            self._changed.notify_all()
        return f"sent-{outgoing.key}"

    async def show_typing(self, chat: Chat) -> None:
        """Ignore the indicator."""

    async def close(self) -> None:
        """Do nothing."""

    async def _wait_for(self, messages: Iterable[str]) -> None:
        async with self._changed:
            expected = [fromkey for fromkey in dict.fromkeys(messages) if fromkey in _ASKED]
            await self._changed.wait_for(lambda: not _unsent(expected, self._log))


def _unsent(messages: Iterable[str], log: Log) -> list[str]:
    """Return the messages without a complete answer or an excuse for a failed one."""
    events = [event for event in log.events() if "text" in event]
    excuses = Counter(
        {
            event["key"]: event["chat"] for event in events if event["text"].startswith(_EXCUSE)
        }.values()
    )
    texts = [event["text"] for event in events]
    missing = []
    for message in messages:
        if all(any(text.startswith(f"{message}: {half}") for text in texts) for half in _HALVES):
            continue
        if excuses[_ASKED[message]]:
            excuses[_ASKED[message]] -= 1
        else:
            missing.append(message)
    return missing


class Clerk:
    """Answers in two parts; implements Responder. Its questions are in the log."""

    name = "clerk:1"

    def __init__(self, log: Log) -> None:
        self._log = log

    def answer(self, prompt: Prompt) -> Answer:
        """Answer the last message."""
        message_id = prompt.text.rpartition("message ")[2].strip()
        self._log.add(asked=message_id)
        return Answer(
            "\n\n".join(f"{message_id}: {half} of an answer that is long" for half in _HALVES),
            self.name,
        )

    def close(self) -> None:
        """Do nothing."""


def answer_chats(context: Home) -> None:
    """Run the gateway until all chats are answered. Raises UnavailableError with its first report."""
    settings = context.settings
    log = log_of(settings.user_home)
    reports = asyncio.run(
        _serve(
            Homes(lambda: open_home(load_settings()), settings.home, settings.config), context, log
        )
    )
    if reports:
        raise UnavailableError(reports[0], hint="the gateway tries again by and by")


async def _serve(homes: Homes, context: Home, log: Log) -> list[str]:
    settings = context.settings
    stop, reports = asyncio.Event(), []  # type: tuple[asyncio.Event, list[str]]

    def report(line: str) -> None:
        reports.append(line)
        stop.set()

    with closing(homes), closing(GatewayStore.open(settings.home)) as store:
        channel = Pier(log)
        options = ChannelOptions(NAME, allow=frozenset(("ada", "bo")))
        answering = Answering(settings, homes.lent, lambda *_: Clerk(log))
        redactor = Redactor(*settings.redaction)
        gateway = Gateway(
            settings,
            store,
            {NAME: OpenChannel(channel, options)},
            answering,
            redactor,
            utc_now,
            uuid7_source(),
            report,
        )
        running = asyncio.create_task(gateway.run(stop))
        ends = [asyncio.create_task(channel.done.wait()), asyncio.create_task(stop.wait()), running]
        finished, _ = await asyncio.wait(
            ends, timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        assert finished, f"the gateway is idle: {log.events()}"
        stop.set()
        await running
        for end in ends:
            end.cancel()
    return reports


def answered(user: Path) -> Mapping[str, Any]:
    """Run the gateway until it is idle, and return the faults; every interruption has the same result."""
    settings = load_settings()
    log = log_of(user)
    home = open_home(settings)
    try:
        answer_chats(home)
    finally:
        home.database.close()
    with closing(GatewayStore.open(settings.home)) as store:
        traffic = store.traffic()
        waits = [item for item in traffic if item.waiting or item.sending or item.failed]
        may_be_doubled = sum(item.doubled for item in traffic)
    return {
        "wrong": [
            *map(str, waits),
            *_duplicates(log, may_be_doubled),
            *_transcripts(settings.home, log.sent()),
        ]
    }


def _duplicates(log: Log, may_be_doubled: int) -> list[str]:
    """Return messages that were not sent, sent twice without being counted, or answered twice unnecessarily."""
    events, parts = log.events(), log.sent()
    texts = [text for _, text in dict.fromkeys(parts)]
    answers = Counter(text for text in texts if not text.startswith(_EXCUSE))
    wrong = [f"sent {count} times: {text}" for text, count in answers.items() if count > 1]
    wrong += [f"not sent: {item}" for item in _unsent(_ASKED, log)]
    wrong += [] if any("Your code" in text for text in texts) else ["no code was sent"]
    doubled = sum(count - 1 for count in Counter(parts).values())
    wrong += (
        [f"{doubled} parts came twice, {may_be_doubled} are counted"]
        if doubled > may_be_doubled
        else []
    )
    for item in _ASKED:
        places = [at for at, event in enumerate(events) if event.get("asked") == item]
        first = next(
            (at for at, event in enumerate(events) if event.get("text", "").startswith(item)),
            len(events),
        )
        wrong += [f"asked {len(places)} times: {item}"] if len(places) > 2 else []
        wrong += (
            [f"asked after it was answered: {item}"] if any(at > first for at in places) else []
        )
    return wrong


def _transcripts(home: Path, sent: Sequence[tuple[str, str]]) -> list[str]:
    """Return the differences between the transcripts and the messages and answers sent (each once)."""
    questions: dict[str, list[str]] = {}
    answers: list[str] = []
    ids: list[str] = []
    for path in (home / "gateway/sessions").glob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        ids += [line["id"] for line in lines]
        messages = [line["message"] for line in lines if line["type"] == "message"]
        questions[lines[0]["key"]] = [
            item["content"].split()[-1] for item in messages if item["role"] == "user"
        ]
        answers += [
            item["content"].partition(":")[0] for item in messages if item["role"] == "assistant"
        ]
    expected = {f"{NAME}:ada": ["a1", "a2"], f"{NAME}:bo": ["b1", "b2"]}
    answered = {message_id for _, text in sent if (message_id := text.partition(":")[0]) in _ASKED}
    wrong = (
        []
        if questions == expected and sorted(answers) == sorted(answered)
        else [f"transcripts: {questions}, {answers}"]
    )
    return wrong + [
        f"twice in transcripts: {item}" for item, count in Counter(ids).items() if count > 1
    ]


def _message(number: str, sender: str) -> Incoming:
    return Incoming(number, Chat(NAME, sender), Sender(sender), f"This is message {number}")
