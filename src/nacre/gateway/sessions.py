"""Conversations: which one a message belongs to, when a new one begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from nacre.gateway.transcript import Transcripts, session_line
from nacre.platform.ids import Clock
from nacre.storage.gateway import GatewayStore
from nacre.values.gateway.conversation import ChatSession
from nacre.values.gateway.message import Chat, ChatType, Incoming

AGENT = "main"
"""The agent's name in keys that tell it."""

RESETS = ("/new", "/reset")
"""Whoever writes this begins a new conversation (seed facts 4)."""

STARTS = "/start"
"""Telegram writes this for whoever opens the chat."""

_NAME_CHARACTERS = 80


def key_of(message: Incoming) -> str:
    """The conversation that a message belongs to: ``{channel}:{user}`` where one person writes to the agent, and the
    platform tells no more; else ``agent:{agent}:{channel}:{account}:{chat type}:{user or group}``."""
    chat = message.chat
    if chat.kind is ChatType.DIRECT and not chat.account and not chat.thread:
        return f"{chat.channel}:{_part(message.sender.id)}"
    whom = message.sender.id if chat.kind is ChatType.DIRECT else chat.id
    thread = f":{_part(chat.thread)}" if chat.thread else ""
    account = _part(chat.account) or "-"
    return f"agent:{AGENT}:{chat.channel}:{account}:{chat.kind.value}:{_part(whom)}{thread}"


def _part(platforms_id: str) -> str:
    """An id as a part of a key: no two conversations have one key, whatever their ids hold."""
    return platforms_id.replace("%", "%25").replace(":", "%3A")


def command_in(text: str) -> str:
    """The command that a message is, alone and also as ``/new@bot``; empty where it is none of ours."""
    word = text.strip().partition("@")[0].casefold()
    return word if word in (*RESETS, STARTS) else ""


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of a home's gateway."""

    store: GatewayStore
    transcripts: Transcripts
    clock: Clock
    new_id: Callable[[], str]

    def current(self, key: str, chat: Chat, name: str, hours: float) -> ChatSession:
        """The session that goes on, or a new one where there is none, or nobody wrote for so many hours."""
        now = self.clock()
        found = self.store.open_session(key)
        if found and now - found.updated < timedelta(hours=hours):
            return found
        return self.begin(key, chat, name, found)

    def begin(self, key: str, chat: Chat, name: str, previous: ChatSession | None) -> ChatSession:
        """A new session; the one before is closed, and its count of compactions goes on."""
        now = self.clock()
        if previous:
            self.store.close_session(previous.id, now)
        compactions = previous.compactions if previous else 0
        made = ChatSession(self.new_id(), key, chat, name[:_NAME_CHARACTERS], now, now, compactions=compactions)
        self.store.begin_session(made, session_line(made, previous.id if previous else None))
        return self.store.open_session(key) or made

    def reset(self, key: str) -> ChatSession | None:
        """Begin a new session in place of the one that goes on, if one does."""
        found = self.store.open_session(key)
        return self.begin(key, found.chat, found.name, found) if found else None

    def close_stale(self, channel: str, hours: float) -> list[ChatSession]:
        """Close the sessions in which nobody wrote for so long; which they were."""
        now: datetime = self.clock()
        found = self.store.stale_sessions(channel, now - timedelta(hours=hours))
        return [one for one in found if self.store.close_session(one.id, now)]
