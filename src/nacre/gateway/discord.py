"""From Discord's messages to nacre's."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from nacre import __version__
from nacre.errors import ChannelRefused, ChannelUnavailable, NacreError, SettingsInvalid
from nacre.gateway.channels import (
    Breaks,
    ChannelKind,
    ChannelSetup,
    Inbox,
    LeftOut,
    Option,
    Reply,
    Socket,
    SocketClosed,
    WebApi,
    decode_object,
    file_name,
    identifier,
    mapping,
    mappings,
    number,
    open_socket,
    split_address,
    text,
)
from nacre.values.gateway import Attachment, Chat, ChatType, Incoming, Limits, Outgoing, Sender

MOST_CHARACTERS = 10_000
"""Of one message; people may write 4,000."""
_MOST_FILES = 10
_WRITTEN = (None, 0, 19)
"""Types of messages that people write: by default, and as a reply. Others tell of joins, pins and calls."""
_GROUP_DM = 3


def incoming(channel: str, message: Mapping[str, Any], bot: str) -> Incoming | None:
    """A message as nacre has it; None for what no person wrote, and for what is empty.

    A message that was edited has an id of its own. Raises ValueError where it is malformed.
    """
    author = mapping(message, "author")
    if author.get("bot") or message.get("webhook_id") or message.get("type") not in _WRITTEN:
        return None
    sender, own_id = identifier(author, "id"), identifier(message, "id")
    files = tuple(_attachment(one) for one in mappings(message, "attachments", _MOST_FILES))
    words = _readable(text(message, "content", MOST_CHARACTERS), message, bot)
    edited = text(message, "edited_timestamp", 40)
    if sender == bot or not (words or files):
        return None
    chat = _chat(channel, message)
    return Incoming(
        id=f"{own_id}:{edited}" if edited else own_id,
        chat=chat,
        sender=Sender(sender, _name(author, mapping(message, "member"))),
        text=words,
        sent=_time(edited or text(message, "timestamp", 40)),
        attachments=files,
        edits=own_id if edited else "",
        to_agent=chat.kind is ChatType.DIRECT or _is_to(message, bot),
    )


def plain_id(message: str) -> str:
    """Discord's own id of a message that nacre has: an edit's is that of the message."""
    return message.partition(":")[0]


def _chat(channel: str, message: Mapping[str, Any]) -> Chat:
    """A thread is a channel of its own to Discord, and so it is a chat of its own here."""
    guild = identifier(message, "guild_id") if message.get("guild_id") else ""
    is_group = bool(guild) or message.get("channel_type") == _GROUP_DM
    return Chat(
        channel,
        identifier(message, "channel_id"),
        ChatType.GROUP if is_group else ChatType.DIRECT,
        account=guild,
    )


def _is_to(message: Mapping[str, Any], bot: str) -> bool:
    mentioned = any(one.get("id") == bot for one in mappings(message, "mentions", 100))
    return mentioned or mapping(mapping(message, "referenced_message"), "author").get("id") == bot


def _readable(words: str, message: Mapping[str, Any], bot: str) -> str:
    """The text with names where Discord writes ids; a mention of the bot at its start says nothing and goes."""
    words = re.sub(rf"^\s*<@!?{re.escape(bot)}>\s*", "", words) if bot else words
    names = {
        str(one.get("id")): _name(one, mapping(one, "member"))
        for one in mappings(message, "mentions", 100)
    }
    return re.sub(r"<@!?(\d+)>", lambda found: f"@{names.get(found[1]) or found[1]}", words).strip()


def _name(user: Mapping[str, Any], member: Mapping[str, Any]) -> str:
    return text(member, "nick") or text(user, "global_name") or text(user, "username")


def _attachment(file: Mapping[str, Any]) -> Attachment:
    size = number(file, "size")
    return Attachment(
        name=file_name(file, "filename", "file"),
        media_type=text(file, "content_type", 100),
        size=None if size is None else int(size),
        source=text(file, "url", 2_000),
    )


def _time(said: str) -> datetime | None:
    try:
        return datetime.fromisoformat(said).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


# ----------------------------------------------------------------------------
# What the channel remembers in its inbox: the session that it resumes, and the last message of each
# chat.


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


# ----------------------------------------------------------------------------
# Discord's gateway: one WebSocket at a time, kept alive, resumed where it breaks.


INTENTS = (1 << 9) | (1 << 12) | (1 << 15)
"""Messages in servers, direct messages, and their content, which the owner has to allow (it is privileged)."""

_DISPATCH, _BEAT, _IDENTIFY, _RESUME, _RECONNECT, _INVALID, _HELLO, _BEAT_HEARD = (
    0,
    1,
    2,
    6,
    7,
    9,
    10,
    11,
)
_FOR_NOW = 4000
"""Any code but 1000 and 1001 leaves the session as it is, so that it can be resumed."""
_SESSION_OVER = (4003, 4007, 4009)
_REFUSED = {
    4004: (
        "the token is wrong",
        "copy the bot's token again from the Bot page of the developer portal",
    ),
    4010: ("the shard is wrong", None),
    4011: ("the bot is in too many servers for one connection", "take it out of some"),
    4012: (
        "version 10 of the gateway is not served any more",
        "a newer nacre may know the next one",
    ),
    4013: ("the intents are wrong", "a newer nacre may know them"),
    4014: (
        "an intent is not allowed",
        "turn on Message Content Intent on the Bot page of the developer portal",
    ),
}


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: the longest wait for the first word, the pause after an invalid session (at most), the pause between
    connections that keep breaking, and how long a connection holds that is not one of them."""

    hello: float = 20.0
    invalid: float = 5.0
    pause: float = 1.0
    steady: float = 60.0


class Gateway:
    """The gateway's side of the channel. ``take`` is given each event of a message, ``catch_up`` is called where a
    session begins anew, before anything of it is taken; ``left_out`` counts what is malformed."""

    def __init__(
        self,
        token: str,
        records: Records,
        take: Callable[[Mapping[str, Any], int], Awaitable[None]],
        catch_up: Callable[[], Awaitable[None]],
        tell: Callable[[str], None],
        left_out: LeftOut,
        timing: Timing,
    ) -> None:
        self._token = token
        self._records = records
        self._take = take
        self._catch_up = catch_up
        self._tell = tell
        self._left_out = left_out
        self._timing = timing
        self._random = Random()  # noqa: S311 - spreads load, guards nothing
        self._is_heard = True
        self._is_busy = False
        self._seq: int | None = None
        """Of the last event that came, for heartbeats; that of the last one on disk is in the records."""
        self.is_ready = False

    async def connect(self, url: str) -> None:
        """Hold one connection until it ends; what ends it decides whether the session can be resumed.

        Raises ChannelUnavailable where there was none, and ChannelRefused.
        """
        self.is_ready = False
        socket = await open_socket("Discord", url)
        try:
            await self._converse(socket)
        except SocketClosed as closed:
            if closed.close_code in _REFUSED:
                said, hint = _REFUSED[closed.close_code]
                raise ChannelRefused(f"Discord says: {said}", hint=hint) from closed
            if closed.close_code in _SESSION_OVER:
                await self._records.begin("", "", self._records.bot, None)
            elif not self.is_ready:
                raise
        finally:
            await socket.close(_FOR_NOW)

    async def _converse(self, socket: Socket) -> None:
        hello = await self._hello(socket)
        self._is_heard, self._is_busy, self._seq = True, False, self._records.seq
        seconds = max((number(mapping(hello, "d"), "heartbeat_interval") or 41_250) / 1000, 0.01)
        beating = asyncio.create_task(self._beat(socket, seconds))
        try:
            await socket.send(self._greeting())
            while await self._hear(socket):
                pass
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError, ChannelUnavailable):
                await beating

    async def _hello(self, socket: Socket) -> Mapping[str, Any]:
        try:
            hello = await asyncio.wait_for(socket.receive(), self._timing.hello)
        except (TimeoutError, ValueError):
            raise ChannelUnavailable("Discord's gateway does not say hello") from None
        if hello.get("op") != _HELLO:
            raise ChannelUnavailable("Discord's gateway does not say hello")
        return hello

    def _greeting(self) -> dict[str, Any]:
        records = self._records
        if records.session and records.seq is not None:
            return {
                "op": _RESUME,
                "d": {"token": self._token, "session_id": records.session, "seq": records.seq},
            }
        about = {"os": "any", "browser": "nacre", "device": "nacre"}
        return {
            "op": _IDENTIFY,
            "d": {"token": self._token, "intents": INTENTS, "properties": about},
        }

    async def _beat(self, socket: Socket, seconds: float) -> None:
        """Send heartbeats. One that was not answered before the next means that the connection is dead."""
        await asyncio.sleep(seconds * self._random.random())
        while True:
            if not self._is_heard and not self._is_busy:
                self._tell("Discord's gateway stopped answering; it is connected again")
                await socket.close(_FOR_NOW)
                return
            self._is_heard = False
            await socket.send({"op": _BEAT, "d": self._seq})
            await asyncio.sleep(seconds)

    async def _hear(self, socket: Socket) -> bool:
        """Take one frame; whether to go on with this connection."""
        try:
            frame = await socket.receive()
        except ValueError:
            self._left_out.note("a frame of Discord's")
            return True
        op = frame.get("op")
        if op == _BEAT_HEARD:
            self._is_heard = True
        elif op == _BEAT:
            await socket.send({"op": _BEAT, "d": self._seq})
        elif op == _INVALID:
            await self._invalid(may_resume=frame.get("d") is True)
        elif op == _DISPATCH:
            await self._dispatch(frame)
        return op not in (_RECONNECT, _INVALID)

    async def _invalid(self, *, may_resume: bool) -> None:
        self.is_ready = True  # it was heard: the next connection is made at once
        if not may_resume:
            await self._records.begin("", "", self._records.bot, None)
        await asyncio.sleep(self._timing.invalid * self._random.uniform(0.2, 1))

    async def _dispatch(self, frame: Mapping[str, Any]) -> None:
        seq, name, data = number(frame, "s"), text(frame, "t"), mapping(frame, "d")
        if seq is None:
            self._left_out.note("an event of Discord's")
            return
        self._seq = int(seq)
        # while events are stored, answers to heartbeats wait to be read: that is not the connection's fault
        self._is_busy = True
        try:
            await self._event(name, data, int(seq))
        finally:
            self._is_busy, self._is_heard = False, True

    async def _event(self, name: str, data: Mapping[str, Any], seq: int) -> None:
        if name == "READY":
            self._records.bot = text(mapping(data, "user"), "id")
            await self._catch_up()
            url = text(data, "resume_gateway_url", 500)
            await self._records.begin(text(data, "session_id"), url, self._records.bot, seq)
            self.is_ready = True
        elif name == "RESUMED":
            self.is_ready = True
        if name in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
            await self._take(data, seq)
        else:
            self._records.seq = seq


# ----------------------------------------------------------------------------
# The channel: receives through the gateway, sends and fetches over HTTP.


ADDRESS = "https://discord.com/api/v10"
_FILES = ("cdn.discordapp.com", "media.discordapp.net")
_NO_EMBEDS = 1 << 2
"""A link in an answer is not looked up by Discord: its address may tell what only the conversation knows."""
_NONCE = 25
"""The longest nonce that Discord takes."""
_PAGE, _MOST_PAGES = 100, 50
_MOST_WAIT = 60.0
_MOST_OWN = 1_000
_DEFAULT_WAIT = 5.0


class Discord:
    """A bot of the owner's. Discord makes one of two messages with one nonce for a few minutes: ``is_idempotent`` holds
    so long. A part that is sent again later appears twice, unless the gateway told of the first meanwhile."""

    limits = Limits(characters=2_000, seconds_between=1.0, typing_seconds=10.0, is_idempotent=True)

    def __init__(self, setup: ChannelSetup, timing: Timing | None = None) -> None:
        """Raises SettingsInvalid."""
        self.name = setup.name
        self._token = setup.secrets["token"]
        self.tell = setup.tell
        self._timing = timing or Timing()
        agent = f"DiscordBot (nacre, {__version__})"
        headers = {"authorization": f"Bot {self._token}", "user-agent": agent}
        if not (self._token.isascii() and self._token.isprintable()):
            raise SettingsInvalid("the token of the Discord bot holds characters that no token has")
        self._api = WebApi("Discord", str(setup.options["base_url"]), headers)
        self.left_out = LeftOut(setup.tell)
        self._own: dict[str, str] = {}

    async def run(self, inbox: Inbox) -> None:
        """Receive until cancelled; see :class:`~nacre.gateway.channels.Channel`."""
        records = Records(inbox)
        intake = _Intake(self, records)
        gateway = Gateway(
            self._token,
            records,
            intake.take,
            intake.catch_up,
            self.tell,
            self.left_out,
            self._timing,
        )
        breaks = Breaks("Discord", self._timing.pause, self._timing.steady)
        while True:
            began, kept = _now(), intake.kept
            try:
                await gateway.connect(await self._address(records))
            except ChannelUnavailable:
                if records.url and not gateway.is_ready:  # the session may be resumed, if not there
                    await records.begin(records.session, "", records.bot, records.seq)
                raise
            await breaks.ended(_now() - began, was_useful=intake.kept > kept)

    async def send(self, outgoing: Outgoing) -> str:
        """Send one part; nobody is notified by what stands in it, and no link in it is looked up."""
        nonce = sha256(outgoing.key.encode()).hexdigest()[:_NONCE]
        if outgoing.attempt > 1 and nonce in self._own:
            return self._own[nonce]
        body: dict[str, Any] = {
            "content": outgoing.text,
            "nonce": nonce,
            "enforce_nonce": True,
            "allowed_mentions": {"parse": []},
            "flags": _NO_EMBEDS,
        }
        if outgoing.reply_to:
            body["message_reference"] = {
                "message_id": plain_id(outgoing.reply_to),
                "fail_if_not_exists": False,
            }
        reply = await self.ask("POST", f"/channels/{outgoing.chat.id}/messages", json=body)
        return text(reply.body, "id")

    async def show_typing(self, chat: Chat) -> None:
        """Show that an answer is being written, for ten seconds."""
        with suppress(NacreError):
            await self.ask("POST", f"/channels/{chat.id}/typing")

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """Write a file that came with a message; its address holds for about a day."""
        found = split_address(attachment.source)
        is_discords = found.scheme == "https" and found.netloc in _FILES
        if not is_discords and found.netloc != self._api.place:
            raise ChannelRefused("the file does not lie with Discord")
        await self._api.download(attachment.source, target, most_bytes, {})

    async def close(self) -> None:
        """Let go of connections."""
        await self._api.close()

    async def _address(self, records: Records) -> str:
        """Where to connect: to the session that is resumed, else where Discord says."""
        url = records.url if records.session else ""
        if not url:
            found = (await self.ask("GET", "/gateway/bot")).body
            url, starts = text(found, "url", 500), mapping(found, "session_start_limit")
            if starts.get("remaining") == 0:
                wait = (number(starts, "reset_after") or 0) / 1000
                raise ChannelUnavailable(
                    "Discord allows no more connections of this bot today", retry_after=wait
                )
        return f"{url.rstrip('/')}/?v=10&encoding=json"

    async def ask(self, method: str, path: str, **more: Any) -> Reply:
        """The answer to a request that Discord granted. Raises ChannelUnavailable, ChannelRefused."""
        reply = await self._api.ask(method, path, **more)
        if reply.status < 300:
            return reply
        if reply.status == 429:
            raise ChannelUnavailable(
                "Discord wants to be asked less often", retry_after=_wait(reply)
            )
        if reply.status >= 500:
            raise ChannelUnavailable(f"Discord cannot answer now (status {reply.status})")
        code = reply.body.get("code")
        said = f"Discord says: {text(reply.body, 'message') or 'no'} (status {reply.status}, code {code})"
        raise ChannelRefused(said, hint=_HINTS.get(code if isinstance(code, int) else reply.status))

    def note_own(self, message: Mapping[str, Any]) -> None:
        """Remember that a message of the bot's appeared, which its nonce tells."""
        nonce = text(message, "nonce", _NONCE)
        if nonce:
            self._own[nonce] = text(message, "id")
            if len(self._own) > _MOST_OWN:
                del self._own[next(iter(self._own))]


_HINTS = {
    401: "copy the bot's token again from the Bot page of the developer portal",
    0: "copy the bot's token again from the Bot page of the developer portal",
    50001: "invite the bot to the server, and let it view the channel",
    50007: "this person takes no direct messages from the bot: they share no server, or turned them off",
    50013: "let the bot send messages in this channel",
}
"""By Discord's code, else by the status."""


class _Intake:
    """What becomes of events: messages on disk."""

    def __init__(self, channel: Discord, records: Records) -> None:
        self._channel = channel
        self._records = records
        self.kept = 0

    async def take(self, data: Mapping[str, Any], seq: int) -> None:
        if mapping(data, "author").get("id") == self._records.bot:
            self._channel.note_own(data)
        message = self._converted(data)
        await self._records.keep([message] if message else [], seq)
        self.kept += message is not None

    async def catch_up(self) -> None:
        """Fetch what was written in known chats while no session could be resumed."""
        for chat, guild in list(self._records.chats.items()):
            try:
                await self._fetch(chat, guild)
            except ChannelRefused:
                await self._records.forget(chat)

    async def _fetch(self, chat: str, guild: str) -> None:
        after = self._records.last(chat)
        for _ in range(_MOST_PAGES if after else 0):
            found = await self._page(chat, after)
            rows = sorted(found, key=lambda one: (len(text(one, "id")), text(one, "id")))
            if not rows:
                return
            messages = (
                self._converted({**row, "channel_id": chat, "guild_id": guild}) for row in rows
            )
            await self._records.keep([message for message in messages if message])
            after = text(rows[-1], "id")
            if len(rows) < _PAGE:
                return
        if after:
            missed = _PAGE * _MOST_PAGES
            self._channel.tell(
                f"over {missed} messages were missed in a chat of Discord: those after them are lost"
            )

    async def _page(self, chat: str, after: str) -> tuple[Mapping[str, Any], ...]:
        while True:
            try:
                reply = await self._channel.ask(
                    "GET",
                    f"/channels/{chat}/messages",
                    params={"after": after, "limit": str(_PAGE)},
                )
            except ChannelUnavailable as error:
                if error.retry_after is None or error.retry_after > _MOST_WAIT:
                    raise
                await asyncio.sleep(error.retry_after)
            else:
                return reply.rows

    def _converted(self, data: Mapping[str, Any]) -> Incoming | None:
        try:
            return incoming(self._channel.name, data, self._records.bot)
        except ValueError:
            self._channel.left_out.note("a message of Discord's")
            return None


def _wait(reply: Reply) -> float:
    """Seconds that Discord asks to wait: in the answer, or where a proxy of theirs answered, in a header."""
    said = number(reply.body, "retry_after")
    if said is None:
        said = reply.retry_after
    if said is None:
        with suppress(ValueError):
            said = float(reply.headers.get("x-ratelimit-reset-after", ""))
    return _DEFAULT_WAIT if said is None else said


def _now() -> float:
    return asyncio.get_running_loop().time()


KIND = ChannelKind(
    "discord",
    "Discord",
    Discord,
    options=(
        Option("token", "the bot's token: env:NAME or file:PATH", is_secret=True, is_required=True),
        Option("base_url", "where Discord's HTTP interface is", default=ADDRESS),
    ),
    libraries=("websockets",),
    extra="web",
    identity="the number of a user: 80351110224678912",
)


# ----------------------------------------------------------------------------
# Discord: its gateway over a WebSocket, and its HTTP interface, version 10.


__all__ = ["KIND"]
