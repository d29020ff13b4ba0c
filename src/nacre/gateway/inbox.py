"""What channels receive: redacted, judged, and on disk before a platform is told that it arrived."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from nacre.gateway.admission import Rules, judge, may_say
from nacre.gateway.files import Cleans
from nacre.gateway.sessions import key_of
from nacre.gateway.transcript import edit_line
from nacre.platform.ids import Clock
from nacre.storage.gateway import GatewayStore
from nacre.text.passages import one_line
from nacre.values.gateway.message import Attachment, Incoming, Outgoing, Received, Sender

HISTORY_KEYS = 1_000
"""Groups of which what was heard is kept (seed facts 4, OpenClaw's MAX_HISTORY_KEYS)."""

MOST_CHARACTERS = 64_000
"""Of one message."""

_MOST_ATTACHMENTS = 10
_NAME_CHARACTERS = 80
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Desk:
    """What all inboxes of a gateway share. ``wake`` is told of conversations in which something waits to be answered,
    ``send`` of those in which something waits to be sent."""

    store: GatewayStore
    redactor: Cleans
    clock: Clock
    new_id: Callable[[], str]
    wake: Callable[[str, str], None]
    send: Callable[[str, str], None]
    most_waiting: int = 10_000
    most_heard: int = 50


class ChannelInbox:
    """The inbox of one channel; implements Inbox."""

    def __init__(self, desk: Desk, rules: Callable[[], Rules]) -> None:
        self._desk = desk
        self._now = rules

    @property
    def _rules(self) -> Rules:
        return self._now()

    def state(self, name: str) -> str:
        """What the channel kept under a name."""
        return self._desk.store.channel_value(self._rules.channel, name)

    async def receive(self, messages: Sequence[Incoming], **state: str) -> int:
        """Keep messages and state; how many did not come before. Waits while too many wait to be answered."""
        while self._desk.store.waiting(self._rules.channel) >= self._desk.most_waiting:
            await asyncio.sleep(_PAUSE_SECONDS)
        # a long text takes seconds, in which all others would wait
        cleaned = await asyncio.to_thread(lambda: [self._cleaned(one) for one in messages])
        kept: list[tuple[Received, str]] = []

        def judged() -> Iterator[tuple[Received, str]]:
            for one in self._judged(cleaned):
                kept.append(one)
                yield one

        new = self._desk.store.receive(self._rules.channel, judged(), state)
        self._tell(new)
        return len(messages) - (len(kept) - len(new))

    def _judged(self, messages: Iterable[Incoming]) -> Iterator[tuple[Received, str]]:
        """What becomes of each. It runs in the transaction that keeps them: an edit may follow its message at once."""
        for message in messages:
            if message.edits:
                yield from self._edit(message)
                continue
            verdict = judge(message, self._rules, self._desk.store, self._desk.clock())
            key = key_of(message)
            if verdict.reply:
                self._reply(key, message, verdict.reply)
            if verdict.state:
                yield Received(0, key, message, self._desk.clock(), verdict.is_owner), verdict.state

    def _tell(self, kept: Sequence[tuple[Received, str]]) -> None:
        desk = self._desk
        for key in {one.key for one, state in kept if state == "heard"}:
            desk.store.trim_heard(key, desk.most_heard, HISTORY_KEYS)
        for key in dict.fromkeys(one.key for one, state in kept if state == "waiting"):
            desk.wake(key, self._rules.channel)

    def _edit(self, message: Incoming) -> Iterator[tuple[Received, str]]:
        """A new text of a message: it is answered as edited, where it still waits; else the transcript says so."""
        store = self._desk.store
        found = store.find(self._rules.channel, message.edits)
        if found is None or found.sender != message.sender.id or store.find(self._rules.channel, message.id):
            return
        if not may_say(message, self._rules, store):
            return
        edited = Received(0, found.key, message, self._desk.clock(), self._rules.is_owner(message.sender))
        if found.message and found.state in ("waiting", "heard"):
            if not _is_before(message, found.message):
                store.replace_text(found.seq, replace(found.message, text=message.text, sent=message.sent))
        elif found.line and (session := store.session_of(found.key, found.line)):
            store.add_lines(session.id, [edit_line(self._desk.new_id(), edited, found.line)])
        yield edited, "done"

    def _reply(self, key: str, message: Incoming, text: str) -> None:
        """A word to somebody who is not let in; it goes the way of all answers."""
        part = Outgoing(f"pairing:{self._desk.new_id()}", message.chat, text, message.id)
        self._desk.store.add_part(key, part, self._desk.clock())
        self._desk.send(key, self._rules.channel)

    def _cleaned(self, message: Incoming) -> Incoming:
        """Without secrets, and within bounds."""
        attachments = tuple(
            Attachment(self._name(one.name), one_line(one.media_type)[:_NAME_CHARACTERS], one.size, one.source)
            for one in message.attachments[:_MOST_ATTACHMENTS]
        )
        return replace(
            message, text=self._desk.redactor.clean(message.text[:MOST_CHARACTERS]), attachments=attachments,
            sender=Sender(message.sender.id, self._name(message.sender.name)),
        )  # fmt: skip

    def _name(self, name: str) -> str:
        """Anybody may choose it: one line, so that nothing in it passes for another's words."""
        return one_line(self._desk.redactor.clean(name))[:_NAME_CHARACTERS]


def _is_before(message: Incoming, other: Incoming) -> bool:
    """Whether a message was written before another: what a platform delivers again may come late."""
    return bool(message.sent and other.sent and message.sent < other.sent)
