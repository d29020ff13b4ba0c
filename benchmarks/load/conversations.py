"""Run many concurrent conversations through the gateway, with an unreliable channel and a fast agent.

Answers are compared with messages: none may be lost or duplicated, and each conversation must be in
order.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from nacre.base.frozen import frozen
from nacre.base.ids import utc_now, uuid7_source
from nacre.errors import ChannelUnavailableError
from nacre.home.home import open_home
from nacre.redact.redactor import Redactor
from nacre.serve.homes import Homes, memory_mb
from nacre.settings import load_settings
from nacre.store.gateway import GatewayStore
from nacre.values.gateway import Answer, Chat, Incoming, Limits, Outgoing, Sender
from nacre.values.models import Prompt
from nacre_gateway.channels import Inbox
from nacre_gateway.conversation import (
    EVERYONE,
    ChannelOptions,
    OpenChannel,
    Responder,
)
from nacre_gateway.engine import Gateway
from nacre_gateway.sessions import Answering

NAME = "crowd"
_NUMBER = re.compile(r"\bnumber (\d+-\d+)\b")
_DUPLICATES, _REFUSALS, _CUTS = 0.05, 0.03, 0.02
_BATCH, _AROUND = 20, 50
_MOST_ANSWER_SECONDS = 0.02
_SETTINGS = "[gateway]\ndebounce_seconds = 0\n"


@frozen
class GatewayResult:
    """The result of a run.

    ``turns`` counts answers; messages that wait together are answered together. Memory is in MB:
    after half of the messages, at the end, and at the peak.
    """

    messages: int
    conversations: int
    turns: int
    duplicates: int
    refusals: int
    cuts: int
    seconds: float
    messages_per_second: float
    memory_half_mb: float
    memory_end_mb: float
    memory_peak_mb: float
    doubled: int
    wrong: list[str]


class CrowdChannel:
    """A Channel with many people. Messages are repeated, reordered and batched; connections break, and sends fail."""

    def __init__(self, messages: int, conversations: int, seed: int) -> None:
        self.limits = Limits(typing_seconds=5.0)
        self._dice = random.Random(seed)  # noqa: S311 - the same crowd in every run
        self._moods = random.Random(seed + 1)  # noqa: S311 - sends decide how often it is busy
        self.stream = self._shuffled(messages, conversations)
        self.sent: dict[str, list[str]] = defaultdict(list)
        self.wanted, self.answered = messages, 0
        self.refusals = self.cuts = 0
        self.half_mb = self.most_mb = 0.0
        self.done = asyncio.Event()

    async def run(self, inbox: Inbox) -> None:
        """Deliver messages from the confirmed offset on. The connection can break before or after a batch is stored."""
        at = int(inbox.state("offset") or 0)
        while at < len(self.stream):
            batch = self.stream[at : at + self._dice.randint(1, _BATCH)]
            self._cut()
            await inbox.receive([_message(number) for number in batch], offset=str(at + len(batch)))
            self._cut()
            at += len(batch)
        await self.done.wait()

    async def send(self, outgoing: Outgoing) -> str:
        """Accept or refuse a part of an answer."""
        await asyncio.sleep(0)
        if self._moods.random() < _REFUSALS:
            self.refusals += 1
            raise ChannelUnavailableError("too many requests", retry_after=0.02)
        self.sent[outgoing.chat.id].append(outgoing.text)
        self.most_mb = max(self.most_mb, memory_mb() or 0.0)
        self.answered += len(_NUMBER.findall(outgoing.text))
        if not self.half_mb and self.answered >= self.wanted / 2:
            self.half_mb = memory_mb() or 0.0
        if self.answered >= self.wanted:
            self.done.set()
        return outgoing.key

    async def show_typing(self, chat: Chat) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    def arrived(self) -> dict[str, list[str]]:
        """Return each conversation's messages in the order of first arrival."""
        numbers_of: dict[str, list[str]] = defaultdict(list)
        for number in dict.fromkeys(self.stream):
            numbers_of[number.partition("-")[0]].append(number)
        return numbers_of

    def _cut(self) -> None:
        if self._dice.random() < _CUTS:
            self.cuts += 1
            raise ChannelUnavailableError("the connection broke", retry_after=0.01)

    def _shuffled(self, messages: int, conversations: int) -> list[str]:
        dice = self._dice
        counts: dict[int, int] = defaultdict(int)
        places = []
        for at in range(messages):
            who = dice.randrange(conversations)
            places.append((at + dice.uniform(0, _AROUND), f"{who}-{counts[who]}"))
            counts[who] += 1
        again = [
            (place + dice.uniform(0, 10 * _AROUND), number)
            for place, number in places
            if dice.random() < _DUPLICATES
        ]
        return [number for _, number in sorted(places + again)]


@dataclass(eq=False)
class QuickAgent:
    """A Responder that answers within 20 ms with the messages' numbers."""

    name: str = "quick:1"
    turns: int = 0
    dice: random.Random = field(default_factory=lambda: random.Random(7))  # noqa: S311 - the same pauses in every run

    def answer(self, prompt: Prompt) -> Answer:
        self.turns += 1
        time.sleep(self.dice.uniform(0, _MOST_ANSWER_SECONDS))
        _, _, new = prompt.text.rpartition("## New message")
        return Answer(" ".join(f"number {number}" for number in _NUMBER.findall(new)), self.name)

    def close(self) -> None:
        """Do nothing."""


def measure_gateway(
    place: Path,
    *,
    messages: int,
    conversations: int,
    patience: float = 3600.0,
) -> GatewayResult:
    """Simulate many people who use the gateway of a new home."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.toml").write_text(_SETTINGS, encoding="utf-8")
    settings = load_settings(place)
    agent = QuickAgent()
    with closing(Homes(lambda: open_home(settings), place, settings.config)) as homes:
        return asyncio.run(
            _play(
                homes, agent, CrowdChannel(messages, conversations, seed=1), conversations, patience
            )
        )


async def _play(
    homes: Homes, agent: QuickAgent, channel: CrowdChannel, conversations: int, patience: float
) -> GatewayResult:
    with homes.lent() as home:
        settings = home.settings
    options = ChannelOptions(NAME, allow=frozenset((EVERYONE,)))
    answering = Answering(settings, homes.lent, lambda *_: cast(Responder, agent))
    messages: list[str] = []
    with closing(GatewayStore.open(settings.home)) as store:
        gateway = Gateway(
            settings,
            store,
            {NAME: OpenChannel(channel, options)},
            answering,
            Redactor(*settings.redaction),
            utc_now,
            uuid7_source(),
            messages.append,
        )
        stop = asyncio.Event()
        began = time.perf_counter()
        running = asyncio.create_task(gateway.run(stop))
        waiting = asyncio.create_task(channel.done.wait())
        await asyncio.wait(
            (running, waiting), timeout=patience, return_when=asyncio.FIRST_COMPLETED
        )
        seconds = time.perf_counter() - began
        stop.set()
        await running
        doubled = sum(traffic.doubled for traffic in store.traffic())
    return GatewayResult(
        channel.wanted,
        conversations,
        agent.turns,
        len(channel.stream) - channel.wanted,
        channel.refusals,
        channel.cuts,
        round(seconds, 1),
        round(channel.answered / seconds, 1),
        channel.half_mb,
        memory_mb() or 0.0,
        channel.most_mb,
        doubled,
        _wrong(channel, settings.home, messages),
    )


def _message(number: str) -> Incoming:
    who = number.partition("-")[0]
    return Incoming(
        number, Chat(NAME, who), Sender(who, f"Person {who}"), f"Is this number {number}?"
    )


def _wrong(channel: CrowdChannel, home: Path, messages: list[str]) -> list[str]:
    """Return messages that were lost, duplicated or reordered, and the gateway's messages except broken connections."""
    wrong = [line for line in messages if "the connection broke" not in line][:5]
    kept = _transcripts(home)
    for who, numbers in channel.arrived().items():
        answers = [number for text in channel.sent[who] for number in _NUMBER.findall(text)]
        if answers != numbers:
            wrong.append(f"{who}: {len(numbers)} messages received, answers name {answers[:50]}")
        if kept[who] != numbers:
            wrong.append(
                f"{who}: {len(numbers)} messages received, the transcript has {kept[who][:50]}"
            )
    return wrong


def _transcripts(home: Path) -> dict[str, list[str]]:
    numbers_of: dict[str, list[str]] = defaultdict(list)
    for path in (home / "gateway/sessions").glob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        messages = [
            line["message"]
            for line in lines
            if line["type"] == "message" and line["message"]["role"] == "user"
        ]
        who = lines[0]["key"].partition(":")[2]
        numbers_of[who] += [
            number for message in messages for number in _NUMBER.findall(message["content"])
        ]
    return numbers_of
