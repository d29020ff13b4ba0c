"""Chats that are interrupted: a platform that remembers what it delivered and was sent, whatever becomes of nacre.

Its log lies beside the user's folder, where no fault reaches it: what a platform and an agent know outlives nacre's
process. After any fault the gateway runs again; then every message was answered, and nothing more than once that need
not be.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from nacre.base.ids import utc_now, uuid7_source
from nacre.errors import ChannelRefusedError, UnavailableError
from nacre.home.home import Home, open_home
from nacre.redact.redactor import Redactor
from nacre.serve.homes import Homes
from nacre.settings import load_settings
from nacre.store.gateway import GatewayStore
from nacre.values.gateway import Answer, Attachment, Chat, Incoming, Limits, Outgoing, Sender
from nacre_gateway.channels import Inbox
from nacre_gateway.conversation import ChannelOptions, Open, Question, Rules
from nacre_gateway.engine import Gateway, Parts
from nacre_gateway.sessions import Answering

NAME = "pier"
PATIENCE_SECONDS = 10.0
_BATCHES: Sequence[Sequence[tuple[str, str, str]]] = (
    (("a1", "ada", ""), ("b1", "bo", "")),
    (("a1", "ada", ""), ("a2", "ada", ""), ("e1", "bo", "b1")),
    (("s1", "stranger", ""), ("b2", "bo", "")),
)
"""What comes together: id, sender, and which message it edits."""

_ASKED = {"a1": "ada", "b1": "bo", "a2": "ada", "b2": "bo"}
"""What is to be answered, and where."""

_EXCUSE = "I cannot answer"
_HALVES = ("first half", "second half")


class Log:
    """What the platform and the agent saw, in order."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, **event: Any) -> None:
        """Something happened."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, json.dumps(event).encode() + b"\n")
        os.close(descriptor)

    def events(self) -> list[Mapping[str, Any]]:
        """All of it."""
        return (
            [json.loads(line) for line in self.path.read_text().splitlines()]
            if self.path.exists()
            else []
        )

    def sent(self) -> list[tuple[str, str]]:
        """Keys and texts of the parts that the platform took."""
        return [(one["key"], one["text"]) for one in self.events() if "text" in one]


def log_of(user: Path) -> Log:
    """That of a user's folder."""
    return Log(user.parent / "platform.jsonl")


class Pier:
    """A channel of that platform; implements Channel. What follows an answer comes when that was sent."""

    def __init__(self, log: Log) -> None:
        self.limits = Limits(characters=60)
        self.done = asyncio.Event()
        self._log = log
        self._changed = asyncio.Condition()

    async def run(self, inbox: Inbox) -> None:
        """Deliver batches from where they were confirmed."""
        for number in range(int(inbox.state("offset") or 0), len(_BATCHES)):
            await self._wait_for(one for batch in _BATCHES[:number] for one, _, _ in batch)
            await inbox.receive(
                [_message(*one) for one in _BATCHES[number]], offset=str(number + 1)
            )
        await self._wait_for(one for batch in _BATCHES for one, _, _ in batch)
        self.done.set()

    async def send(self, outgoing: Outgoing) -> str:
        """Take a part."""
        self._log.add(key=outgoing.key, text=outgoing.text, chat=outgoing.chat.id)
        async with self._changed:
            self._changed.notify_all()
        return f"sent-{outgoing.key}"

    async def show_typing(self, chat: Chat) -> None:
        """Nobody looks."""

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """No files come."""
        raise ChannelRefusedError(
            f"{attachment.name}: there are no files ({target.name}, {most_bytes})"
        )

    async def close(self) -> None:
        """Nothing is held."""

    async def _wait_for(self, messages: Iterable[str]) -> None:
        async with self._changed:
            wanted = [one for one in dict.fromkeys(messages) if one in _ASKED]
            await self._changed.wait_for(lambda: not _unsent(wanted, self._log))


def _unsent(messages: Iterable[str], log: Log) -> list[str]:
    """Those of which the platform did not get the whole answer, nor an excuse for one that failed."""
    events = [event for event in log.events() if "text" in event]
    excuses = Counter(
        {
            event["key"]: event["chat"] for event in events if event["text"].startswith(_EXCUSE)
        }.values()
    )
    texts = [event["text"] for event in events]
    missing = []
    for one in messages:
        if all(any(text.startswith(f"{one}: {half}") for text in texts) for half in _HALVES):
            continue
        if excuses[_ASKED[one]]:
            excuses[_ASKED[one]] -= 1
        else:
            missing.append(one)
    return missing


class Clerk:
    """Answers in two parts; implements Responder. What it was asked is in the log."""

    name = "clerk:1"
    window = 1_000_000

    def __init__(self, log: Log) -> None:
        self._log = log

    def answer(self, question: Question, hear: Callable[[str], None] | None = None) -> Answer:
        """An answer to the last message."""
        asked = question.text.rpartition("message ")[2].strip()
        self._log.add(asked=asked)
        return Answer(
            "\n\n".join(f"{asked}: {half} of an answer that is long" for half in _HALVES), self.name
        )

    def close(self) -> None:
        """Nothing is held."""


def answer_chats(context: Home) -> None:
    """Run the gateway until everybody is answered. Raises UnavailableError with the first thing that it tells."""
    settings = context.settings
    log = log_of(settings.user_home)
    told = asyncio.run(
        _serve(
            Homes(lambda: open_home(load_settings()), settings.home, settings.config), context, log
        )
    )
    if told:
        raise UnavailableError(told[0], hint="the gateway tries again by and by")


async def _serve(homes: Homes, context: Home, log: Log) -> list[str]:
    settings = context.settings
    stop, told = asyncio.Event(), []  # type: tuple[asyncio.Event, list[str]]

    def tell(line: str) -> None:
        told.append(line)
        stop.set()

    with closing(homes), closing(GatewayStore.open(settings.home)) as store:
        channel = Pier(log)
        options = ChannelOptions(Rules(NAME, allow=frozenset(("ada", "bo"))))
        answering = Answering(settings, homes.lent, lambda *_: Clerk(log))
        redactor = Redactor(*settings.redaction)
        parts = Parts(
            settings,
            store,
            {NAME: Open(channel, options)},
            answering,
            redactor,
            utc_now,
            uuid7_source(),
            tell,
        )
        running = asyncio.create_task(Gateway(parts).run(stop))
        ends = [asyncio.create_task(channel.done.wait()), asyncio.create_task(stop.wait()), running]
        done, _ = await asyncio.wait(
            ends, timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        assert done, f"nothing happens: {log.events()}"
        stop.set()
        await running
        for one in ends:
            one.cancel()
    return told


def answered(user: Path) -> Mapping[str, Any]:
    """What is amiss once the gateway ran again and has nothing left to do; the same whatever happened before."""
    settings = load_settings()
    log = log_of(user)
    home = open_home(settings)
    try:
        answer_chats(home)
    finally:
        home.database.close()
    with closing(GatewayStore.open(settings.home)) as store:
        traffic = store.traffic()
        waits = [one for one in traffic if one.waiting or one.sending or one.failed]
        may_be_doubled = sum(one.doubled for one in traffic)
    return {
        "wrong": [
            *map(str, waits),
            *_told_twice(log, may_be_doubled),
            *_transcripts(settings.home, log.sent()),
        ]
    }


def _told_twice(log: Log, may_be_doubled: int) -> list[str]:
    """What was not sent, was sent twice and is not counted, or was answered twice without need."""
    events, sent = log.events(), log.sent()
    texts = [text for _, text in dict.fromkeys(sent)]
    answers = Counter(text for text in texts if not text.startswith(_EXCUSE))
    wrong = [f"sent {count} times: {text}" for text, count in answers.items() if count > 1]
    wrong += [f"not sent: {one}" for one in _unsent(_ASKED, log)]
    wrong += [] if any("Your code" in text for text in texts) else ["no code was sent"]
    doubled = sum(count - 1 for count in Counter(sent).values())
    wrong += (
        [f"{doubled} parts came twice, {may_be_doubled} are counted"]
        if doubled > may_be_doubled
        else []
    )
    for one in _ASKED:
        places = [at for at, event in enumerate(events) if event.get("asked") == one]
        first = next(
            (at for at, event in enumerate(events) if event.get("text", "").startswith(one)),
            len(events),
        )
        wrong += [f"asked {len(places)} times: {one}"] if len(places) > 2 else []
        wrong += [f"asked after it was answered: {one}"] if any(at > first for at in places) else []
    return wrong


def _transcripts(home: Path, sent: Sequence[tuple[str, str]]) -> list[str]:
    """What transcripts hold beside each message, each edit and each answer that was sent, once."""
    found: dict[str, list[str]] = {}
    answers: list[str] = []
    ids: list[str] = []
    for path in (home / "gateway/sessions").glob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        ids += [line["id"] for line in lines]
        said = [line["message"] for line in lines if line["type"] == "message"]
        found[lines[0]["key"]] = [
            one["content"].split()[-1] for one in said if one["role"] == "user"
        ]
        answers += [one["content"].partition(":")[0] for one in said if one["role"] == "assistant"]
    wanted = {f"{NAME}:ada": ["a1", "a2"], f"{NAME}:bo": ["b1", "e1", "b2"]}
    answered = {one for _, text in sent if (one := text.partition(":")[0]) in _ASKED}
    wrong = (
        []
        if found == wanted and sorted(answers) == sorted(answered)
        else [f"transcripts: {found}, {answers}"]
    )
    return wrong + [
        f"twice in transcripts: {one}" for one, count in Counter(ids).items() if count > 1
    ]


def _message(number: str, sender: str, edits: str) -> Incoming:
    return Incoming(
        number, Chat(NAME, sender), Sender(sender), f"This is message {number}", edits=edits
    )
