"""What the channel remembers in its inbox: the session that it resumes, and the last message of each chat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from nacre.gateway.channels.channel import Inbox
from nacre.gateway.channels.discord.messages import plain_id
from nacre.gateway.channels.untrusted import decode_object, text
from nacre.values.gateway.message import Incoming

MOST_CHATS = 200
"""Chats whose missed messages are fetched; those that were silent longest are left out first."""


class Records:
    """The session's id, address, bot and last number, and the chats, as they are on disk."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        session = _read(inbox.state("session"))
        self.session, self.url = text(session, "id"), text(session, "url", 500)
        self.bot = text(session, "bot")
        seq = inbox.state("seq")
        self.seq = int(seq) if seq.isdecimal() else None
        self.chats = {chat: str(guild) for chat, guild in _read(inbox.state("chats")).items()}
        """Chats to their servers; the one that was heard last stands last."""
        self._last = {chat: inbox.state(f"last_{chat}") for chat in self.chats}

    def last(self, chat: str) -> str:
        """The id of the last message that is kept of a chat."""
        return self._last.get(chat, "")

    async def keep(self, messages: Sequence[Incoming], seq: int | None = None) -> None:
        """Keep messages, and the number of the event that brought them."""
        state = {} if seq is None else {"seq": str(seq)}
        for message in messages:
            state |= self._heard(message)
        if messages:
            await self._inbox.receive(messages, **state)
        if seq is not None:
            self.seq = seq

    async def begin(self, session: str, url: str, bot: str, seq: int | None) -> None:
        """Keep a session to resume; an empty one resumes none."""
        self.session, self.url, self.bot, self.seq = session, url, bot, seq
        kept = msgspec.json.encode({"id": session, "url": url, "bot": bot}).decode()
        await self._inbox.receive([], session=kept, seq="" if seq is None else str(seq))

    async def forget(self, chat: str) -> None:
        """Fetch no more of a chat that is gone."""
        self.chats.pop(chat, None)
        self._last.pop(chat, None)
        await self._inbox.receive([], chats=_chats(self.chats), **{f"last_{chat}": ""})

    def _heard(self, message: Incoming) -> dict[str, str]:
        chat, state = message.chat.id, {}
        is_new = chat not in self.chats
        self.chats[chat] = self.chats.pop(chat, message.chat.account)
        if is_new:
            if len(self.chats) > MOST_CHATS:
                left_out = next(iter(self.chats))
                del self.chats[left_out], self._last[left_out]
                state[f"last_{left_out}"] = ""
            state["chats"] = _chats(self.chats)
        self._last[chat] = state[f"last_{chat}"] = max(
            self._last.get(chat, ""), plain_id(message.id), key=lambda one: (len(one), one)
        )
        return state


def _chats(chats: Mapping[str, str]) -> str:
    return msgspec.json.encode(chats).decode()


def _read(kept: str) -> Mapping[str, object]:
    return decode_object(kept) if kept else {}
