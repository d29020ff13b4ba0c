"""A conversation in a terminal: the same sessions, memory and answers as in channels, without a channel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from nacre.errors import ChannelRefused
from nacre.gateway.admission import Rules
from nacre.gateway.answering import Answering, Lend, Respond, Work
from nacre.gateway.channel_options import ChannelOptions, Open
from nacre.gateway.channels.channel import Inbox
from nacre.gateway.inbox import MOST_CHARACTERS
from nacre.gateway.sessions import Sessions
from nacre.gateway.transcript import Transcripts, bounded
from nacre.gateway.turns import Turns
from nacre.platform.ids import utc_now, uuid7_source
from nacre.platform.lazy import load
from nacre.platform.locks import FileLock
from nacre.settings import Settings
from nacre.storage.gateway import FOLDER, GatewayStore
from nacre.values.gateway.conversation import ChatSession
from nacre.values.gateway.message import Answer, Attachment, Chat, Incoming, Limits, Outgoing, Received, Sender

NAME = "terminal"
_OWNER, _INPUT = "owner", "standard input"


class TerminalChat:
    """One person at a terminal. ``is_owner``: no agent runs the terminal; what is said counts as the owner's then."""

    def __init__(self, settings: Settings, lend: Lend, respond: Respond, *, is_owner: bool, model: str = "") -> None:
        self._settings = settings
        self._store = GatewayStore.open(settings.home)
        self._redactor = load("nacre.redact.redactor:Redactor")(*settings.redaction)
        self._new_id = uuid7_source()
        self._answering = Answering(settings, lend, respond)
        self._sessions = Sessions(self._store, Transcripts(settings.home), utc_now, self._new_id)
        self._turns = Turns(self._sessions, settings, self._redactor)
        who = _OWNER if is_owner else "agent"
        self.number = next(number for number in count(1) if self._takes(f"{who}-{number}"))
        """Which of the conversations that go on at once this is: 1 where it is the only one."""
        self._chat = Chat(NAME, who if self.number == 1 else f"{who}-{self.number}")
        self._is_owner = is_owner
        self._key = f"{NAME}:{self._chat.id}"
        options = ChannelOptions(
            Rules(NAME), memories="all", model=model, instructions=settings.text("gateway.instructions"),
            hours=settings.number("gateway.session_hours"),
        )  # fmt: skip
        self._open = Open(_Screen(), options)

    def _takes(self, name: str) -> bool:
        self._lock = FileLock(self._settings.home / FOLDER / f"terminal-{name}.lock")
        return self._lock.acquire()

    @property
    def session(self) -> ChatSession:
        """The conversation that goes on."""
        return self._sessions.current(self._key, self._chat, NAME, self._open.options.hours)

    def said(self, limit: int) -> Sequence[tuple[str, str]]:
        """The last messages of it: role and text."""
        return [(one.role, one.text) for one in self._sessions.transcripts.recent(self.session.id, limit).messages]

    def ask(self, text: str, hear: Callable[[str], None] | None = None, *, piped: str = "") -> Answer:
        """Answer a message. What another program wrote (``piped``) is not the owner's word. Raises ModelUnavailable,
        ModelRefused, BudgetSpent; the message is kept, and is answered with the next one."""
        said = [(piped, Sender(_INPUT), False), (text, Sender(self._chat.id), self._is_owner)]
        messages = [self._received(*one) for one in said if one[0].strip()]
        self._store.receive(NAME, [(one, "waiting") for one in messages], {})
        taken = asyncio.run(self._turns.take(self._key, self._open))
        if taken is None:
            return Answer("A new conversation.")
        answer = self._answering.answer(Work(taken.session, self._open.options, taken.turn), hear)
        self._turns.finish(taken, answer, self._open.channel.limits, is_silent=True)
        return answer

    def _received(self, text: str, sender: Sender, is_owner: bool) -> Received:
        message = Incoming(self._new_id(), self._chat, sender, self._redactor.clean(bounded(text, MOST_CHARACTERS)))
        return Received(0, self._key, message, utc_now(), is_owner)

    def begin(self) -> None:
        """A new conversation."""
        before = self._store.open_session(self._key)
        self._sessions.reset(self._key)
        if before and before.messages > before.indexed:
            self._index(before)

    def close(self) -> None:
        """Make what was said searchable, and let go."""
        session = self._store.open_session(self._key)
        if session and session.messages > session.indexed:
            self._index(session)
        self._answering.close()
        self._store.close()
        self._lock.release()

    def _index(self, session: ChatSession) -> None:
        self._answering.index(session)
        self._store.note_indexed(session.id, session.messages)


class _Screen:
    """What shows the answers; implements Channel. They are printed as they come, so nothing is ever sent here."""

    limits = Limits(characters=1_000_000)

    async def run(self, inbox: Inbox) -> None:
        """Nothing comes by itself."""

    async def send(self, outgoing: Outgoing) -> str:
        """Nothing is sent."""
        raise ChannelRefused(f"nothing is sent to a terminal: {outgoing.key}")

    async def show_typing(self, chat: Chat) -> None:
        """The terminal shows progress by itself."""

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """No files come."""
        raise ChannelRefused(
            f"{attachment.name} cannot be {target.name} of {most_bytes}: no files come from a terminal"
        )

    async def close(self) -> None:
        """Nothing is held."""
