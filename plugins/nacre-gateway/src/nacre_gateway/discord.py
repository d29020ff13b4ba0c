"""Discord: its gateway (a WebSocket) and version 10 of its HTTP interface."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from nacre import __version__
from nacre.base.frozen import frozen
from nacre.errors import (
    ChannelRefusedError,
    ChannelUnavailableError,
    InvalidSettingsError,
    NacreError,
)
from nacre.values.gateway import Attachment, Chat, ChatType, Incoming, Limits, Outgoing, Sender
from nacre_gateway.channels import (
    Breaks,
    ChannelKind,
    ChannelSetup,
    Fields,
    Inbox,
    Option,
    Reply,
    SkippedItems,
    Socket,
    SocketClosedError,
    WebApi,
    attachment,
    decode_object,
    identifier,
    mapping,
    mappings,
    number,
    open_socket,
    text,
)

MAX_CHARACTERS = 10_000
"""Maximum length of a message. People can write 4,000 characters."""
_MAX_FILES = 10
_WRITTEN_TYPES = (None, 0, 19)
"""Types of messages that people write: default and reply. Other types report joins, pins and calls."""
_GROUP_DM = 3


def incoming(channel: str, message: Fields, bot: str) -> Incoming | None:
    """Convert a Discord message. Return ``None`` if it is empty or no person wrote it.

    An edited message gets a separate id. Raises ValueError for a malformed message.
    """
    author = mapping(message, "author")
    if author.get("bot") or message.get("webhook_id") or message.get("type") not in _WRITTEN_TYPES:
        return None
    sender, own_id = identifier(author, "id"), identifier(message, "id")
    files = tuple(
        attachment(file, "filename", "content_type", "url")
        for file in mappings(message, "attachments", _MAX_FILES)
    )
    words = text(message, "content", MAX_CHARACTERS)
    words = re.sub(rf"^\s*<@!?{re.escape(bot)}>\s*", "", words) if bot else words
    names = {
        str(user.get("id")): _name(user, mapping(user, "member"))
        for user in mappings(message, "mentions", 100)
    }
    content = re.sub(
        r"<@!?(\d+)>", lambda match: f"@{names.get(match[1]) or match[1]}", words
    ).strip()
    edited = text(message, "edited_timestamp", 40)
    if sender == bot or not (content or files):
        return None
    # Discord treats a thread as a channel, so it is a separate chat.
    guild = identifier(message, "guild_id") if message.get("guild_id") else ""
    is_group = bool(guild) or message.get("channel_type") == _GROUP_DM
    chat = Chat(
        channel,
        identifier(message, "channel_id"),
        ChatType.GROUP if is_group else ChatType.DIRECT,
        account=guild,
    )
    mentioned = any(user.get("id") == bot for user in mappings(message, "mentions", 100))
    return Incoming(
        id=f"{own_id}:{edited}" if edited else own_id,
        chat=chat,
        sender=Sender(sender, _name(author, mapping(message, "member"))),
        text=content,
        sent=_parse_time(edited or text(message, "timestamp", 40)),
        attachments=files,
        edits=own_id if edited else "",
        to_agent=chat.kind is ChatType.DIRECT
        or (
            mentioned or mapping(mapping(message, "referenced_message"), "author").get("id") == bot
        ),
    )


def plain_id(message: str) -> str:
    """Return Discord's id of a message. An edit has the id of the edited message."""
    return message.partition(":")[0]


def _name(user: Fields, member: Fields) -> str:
    return text(member, "nick") or text(user, "global_name") or text(user, "username")


def _parse_time(value: str) -> datetime | None:
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


# ----------------------------------------------------------------------------
# The channel's state in its inbox: the session to resume, and the last message of each chat


MAX_CHATS = 200
"""Maximum number of chats whose missed messages are fetched. The least recently active chats are dropped first."""


class Records:
    """The stored session (id, address, bot and last event number) and the stored chats."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        session = _decode_record(inbox.state("session"))
        self.session, self.url = text(session, "id"), text(session, "url", 500)
        self.bot = text(session, "bot")
        seq = inbox.state("seq")
        self.seq = int(seq) if seq.isdecimal() else None
        self.chats = {
            chat: str(guild) for chat, guild in _decode_record(inbox.state("chats")).items()
        }
        """The server of each chat. The most recently active chat is last."""
        self._last = {chat: inbox.state(f"last_{chat}") for chat in self.chats}

    def last(self, chat: str) -> str:
        return self._last.get(chat, "")

    async def keep(self, messages: Sequence[Incoming], seq: int | None = None) -> None:
        """Store messages and the number of the event that contained them."""
        state = {} if seq is None else {"seq": str(seq)}
        for message in messages:
            state |= self._note(message)
        if messages:
            await self._inbox.receive(messages, **state)
        if seq is not None:
            self.seq = seq

    async def begin(self, session: str, url: str, bot: str, seq: int | None) -> None:
        """Store a session to resume. If it is empty, no session is resumed."""
        self.session, self.url, self.bot, self.seq = session, url, bot, seq
        record = msgspec.json.encode({"id": session, "url": url, "bot": bot}).decode()
        await self._inbox.receive([], session=record, seq="" if seq is None else str(seq))

    async def forget(self, chat: str) -> None:
        self.chats.pop(chat, None)
        self._last.pop(chat, None)
        await self._inbox.receive([], chats=_encode_chats(self.chats), **{f"last_{chat}": ""})

    def _note(self, message: Incoming) -> dict[str, str]:
        chat, state = message.chat.id, {}
        is_new = chat not in self.chats
        self.chats[chat] = self.chats.pop(chat, message.chat.account)
        if is_new:
            if len(self.chats) > MAX_CHATS:
                oldest = next(iter(self.chats))
                del self.chats[oldest], self._last[oldest]
                state[f"last_{oldest}"] = ""
            state["chats"] = _encode_chats(self.chats)
        self._last[chat] = state[f"last_{chat}"] = max(
            self._last.get(chat, ""),
            plain_id(message.id),
            key=lambda message_id: (len(message_id), message_id),
        )
        return state


def _encode_chats(chats: Mapping[str, str]) -> str:
    return msgspec.json.encode(chats).decode()


def _decode_record(record: str) -> Mapping[str, object]:
    return decode_object(record) if record else {}


# ----------------------------------------------------------------------------
# Discord's gateway. It has one WebSocket at a time, which is kept alive and resumed after it
# breaks.


INTENTS = (1 << 9) | (1 << 12) | (1 << 15)
"""Intents for server messages, direct messages and their text, which the owner must allow."""

_DISPATCH, _BEAT, _IDENTIFY, _RESUME, _RECONNECT, _INVALID, _HELLO, _BEAT_ACKNOWLEDGED = (
    0,
    1,
    2,
    6,
    7,
    9,
    10,
    11,
)
_RESUMABLE = 4000
"""Code for closing a connection without losing the session. Only 1000 and 1001 end the session."""
_SESSION_OVER = (4003, 4007, 4009)
_REFUSED = {
    4004: (
        "the token is wrong",
        "copy the bot's token again from the Bot page of the developer portal",
    ),
    4010: ("the shard is wrong", None),
    4011: ("the bot is in too many servers for one connection", "remove it from some servers"),
    4012: ("version 10 of the gateway is no longer supported", "update nacre"),
    4013: ("the intents are wrong", "update nacre"),
    4014: (
        "an intent is not allowed",
        "turn on Message Content Intent on the Bot page of the developer portal",
    ),
}


@frozen
class Timing:
    """Times in seconds.

    ``hello``: maximum wait for Discord's greeting. ``invalid``: maximum pause after an invalid
    session. ``pause``: pause after each broken connection. ``steady``: minimum duration of a stable
    connection.
    """

    hello: float = 20.0
    invalid: float = 5.0
    pause: float = 1.0
    steady: float = 60.0


class Gateway:
    """The channel's connection to Discord's gateway. It stores the messages that it receives."""

    def __init__(self, channel: Discord, records: Records) -> None:
        self._channel = channel
        self._records = records
        self._timing = channel.timing
        self.stored = 0
        self._random = Random()  # noqa: S311 - spreads load, guards nothing
        self._is_acknowledged = True
        self._is_busy = False
        self._seq: int | None = None
        """Number of the last received event, for heartbeats. The stored number can be lower."""
        self.is_ready = False

    async def connect(self, url: str) -> None:
        """Keep one connection until it ends. The reason for its end decides whether the session can be resumed.

        Raises ChannelUnavailableError if it cannot connect, and ChannelRefusedError.
        """
        self.is_ready = False
        socket = await open_socket("Discord", url)
        try:
            try:
                hello = await asyncio.wait_for(socket.receive(), self._timing.hello)
            except (TimeoutError, ValueError):
                raise ChannelUnavailableError("Discord's gateway sent no greeting") from None
            if hello.get("op") != _HELLO:
                raise ChannelUnavailableError("Discord's gateway sent no greeting")
            self._is_acknowledged, self._is_busy, self._seq = True, False, self._records.seq
            seconds = max(
                (number(mapping(hello, "d"), "heartbeat_interval") or 41_250) / 1000, 0.01
            )
            beating = asyncio.create_task(self._beat(socket, seconds))
            try:
                await socket.send(self._greeting())
                while await self._hear(socket):
                    pass
            finally:
                beating.cancel()
                with suppress(asyncio.CancelledError, ChannelUnavailableError):
                    await beating
        except SocketClosedError as closed:
            if closed.close_code in _REFUSED:
                reason, hint = _REFUSED[closed.close_code]
                raise ChannelRefusedError(
                    f"Discord refused the connection: {reason}", hint=hint
                ) from closed
            if closed.close_code in _SESSION_OVER:
                await self._records.begin("", "", self._records.bot, None)
            elif not self.is_ready:
                raise
        finally:
            await socket.close(_RESUMABLE)

    def _greeting(self) -> dict[str, Any]:
        records = self._records
        if records.session and records.seq is not None:
            return {
                "op": _RESUME,
                "d": {
                    "token": self._channel.token,
                    "session_id": records.session,
                    "seq": records.seq,
                },
            }
        about = {"os": "any", "browser": "nacre", "device": "nacre"}
        return {
            "op": _IDENTIFY,
            "d": {"token": self._channel.token, "intents": INTENTS, "properties": about},
        }

    async def _beat(self, socket: Socket, seconds: float) -> None:
        """Send heartbeats. If one is not acknowledged before the next, the connection is dead."""
        await asyncio.sleep(seconds * self._random.random())
        while True:
            if not self._is_acknowledged and not self._is_busy:
                self._channel.tell("Discord's gateway stopped responding; reconnecting")
                await socket.close(_RESUMABLE)
                return
            self._is_acknowledged = False
            await socket.send({"op": _BEAT, "d": self._seq})
            await asyncio.sleep(seconds)

    async def _hear(self, socket: Socket) -> bool:
        """Handle a frame. Return True if the connection continues."""
        try:
            frame = await socket.receive()
        except ValueError:
            self._channel.skipped.note("a frame from Discord")
            return True
        op = frame.get("op")
        if op == _BEAT_ACKNOWLEDGED:
            self._is_acknowledged = True
        elif op == _BEAT:
            await socket.send({"op": _BEAT, "d": self._seq})
        elif op == _INVALID:
            self.is_ready = True  # it responded, so connect again immediately
            if frame.get("d") is not True:
                await self._records.begin("", "", self._records.bot, None)
            await asyncio.sleep(self._timing.invalid * self._random.uniform(0.2, 1))
        elif op == _DISPATCH:
            await self._dispatch(frame)
        return op not in (_RECONNECT, _INVALID)

    async def _dispatch(self, frame: Fields) -> None:
        seq, name, data = number(frame, "s"), text(frame, "t"), mapping(frame, "d")
        if seq is None:
            self._channel.skipped.note("an event from Discord")
            return
        self._seq = int(seq)
        # acknowledgements are not read while events are stored, so their absence does not prove a
        # dead connection
        self._is_busy = True
        try:
            await self._event(name, data, int(seq))
        finally:
            self._is_busy, self._is_acknowledged = False, True

    async def _event(self, name: str, data: Fields, seq: int) -> None:
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

    async def _take(self, data: Fields, seq: int) -> None:
        if mapping(data, "author").get("id") == self._records.bot:
            self._channel.note_own(data)
        message = self._convert(data)
        await self._records.keep([message] if message else [], seq)
        self.stored += message is not None

    async def _catch_up(self) -> None:
        """Fetch messages that were written in known chats while no session could be resumed."""
        for chat, guild in list(self._records.chats.items()):
            try:
                await self._fetch(chat, guild)
            except ChannelRefusedError:
                await self._records.forget(chat)

    async def _fetch(self, chat: str, guild: str) -> None:
        after = self._records.last(chat)
        for _ in range(_MAX_PAGES if after else 0):
            page = await self._page(chat, after)
            rows = sorted(page, key=lambda row: (len(text(row, "id")), text(row, "id")))
            if not rows:
                return
            messages = (
                self._convert({**row, "channel_id": chat, "guild_id": guild}) for row in rows
            )
            await self._records.keep([message for message in messages if message])
            after = text(rows[-1], "id")
            if len(rows) < _PAGE:
                return
        if after:
            missed = _PAGE * _MAX_PAGES
            self._channel.tell(
                f"more than {missed} messages were missed in a Discord chat; messages beyond this number are lost"
            )

    async def _page(self, chat: str, after: str) -> tuple[Fields, ...]:
        while True:
            try:
                reply = await self._channel.ask(
                    "GET",
                    f"/channels/{chat}/messages",
                    params={"after": after, "limit": str(_PAGE)},
                )
            except ChannelUnavailableError as error:
                if error.retry_after is None or error.retry_after > _MAX_WAIT:
                    raise
                await asyncio.sleep(error.retry_after)
            else:
                return reply.rows

    def _convert(self, data: Fields) -> Incoming | None:
        skipped, name = self._channel.skipped, self._channel.name
        return skipped.parsed("a message from Discord", incoming, name, data, self._records.bot)


# ----------------------------------------------------------------------------
# The channel, which receives through the gateway, and sends and fetches over HTTP


ADDRESS = "https://discord.com/api/v10"
_FILES = ("cdn.discordapp.com", "media.discordapp.net")
_NO_EMBEDS = 1 << 2
"""Flag that stops Discord from fetching links in answers, because an address can reveal the conversation."""
_MAX_NONCE = 25
"""Maximum length of a nonce in Discord."""
_PAGE, _MAX_PAGES = 100, 50
_MAX_WAIT = 60.0
_MAX_OWN = 1_000
_DEFAULT_WAIT = 5.0


class Discord:
    """The owner's bot on Discord.

    Discord drops repeated messages with the same nonce for a few minutes. After that, a message
    that is sent again can appear twice.
    """

    limits = Limits(characters=2_000, seconds_between=1.0, typing_seconds=10.0, is_idempotent=True)

    def __init__(self, setup: ChannelSetup, timing: Timing | None = None) -> None:
        """Raises InvalidSettingsError."""
        self.name = setup.name
        self.token = setup.secrets["token"]
        self.tell = setup.log
        self.timing = timing or Timing()
        agent = f"DiscordBot (nacre, {__version__})"
        headers = {"authorization": f"Bot {self.token}", "user-agent": agent}
        if not (self.token.isascii() and self.token.isprintable()):
            raise InvalidSettingsError("the token of the Discord bot has invalid characters")
        self._api = WebApi("Discord", str(setup.options["base_url"]), headers)
        self.skipped = SkippedItems(setup.log)
        self._own: dict[str, str] = {}

    async def run(self, inbox: Inbox) -> None:
        records = Records(inbox)
        gateway = Gateway(self, records)
        breaks = Breaks("Discord", self.timing.pause, self.timing.steady)
        while True:
            began, stored = _now(), gateway.stored
            try:
                await gateway.connect(await self._address(records))
            except ChannelUnavailableError:
                if records.url and not gateway.is_ready:  # try to resume at another address
                    await records.begin(records.session, "", records.bot, records.seq)
                raise
            await breaks.ended(_now() - began, was_useful=gateway.stored > stored)

    async def send(self, outgoing: Outgoing) -> str:
        """Send one part. Its mentions notify no one, and its links have no previews."""
        nonce = sha256(outgoing.key.encode()).hexdigest()[:_MAX_NONCE]
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
        with suppress(NacreError):
            await self.ask("POST", f"/channels/{chat.id}/typing")

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """Download a message's file. The address is valid for about a day."""
        self._api.require_own(attachment.source, "Discord", *_FILES)
        await self._api.download(attachment.source, target, most_bytes, {})

    async def close(self) -> None:
        await self._api.close()

    async def _address(self, records: Records) -> str:
        """Return the address to connect to, from the session to resume or else from Discord."""
        url = records.url if records.session else ""
        if not url:
            gateway = (await self.ask("GET", "/gateway/bot")).body
            url, starts = text(gateway, "url", 500), mapping(gateway, "session_start_limit")
            if starts.get("remaining") == 0:
                wait = (number(starts, "reset_after") or 0) / 1000
                raise ChannelUnavailableError(
                    "Discord allows no more connections of this bot today", retry_after=wait
                )
        return f"{url.rstrip('/')}/?v=10&encoding=json"

    async def ask(self, method: str, path: str, **more: Any) -> Reply:
        """Send a request and return the response. Raises ChannelUnavailableError, ChannelRefusedError."""
        reply = await self._api.ask(method, path, **more)
        if reply.status < 300:
            return reply
        if reply.status == 429:
            seconds = number(reply.body, "retry_after")
            if seconds is None:
                seconds = reply.retry_after
            if seconds is None:
                with suppress(ValueError):
                    seconds = float(reply.headers.get("x-ratelimit-reset-after", ""))
            raise ChannelUnavailableError(
                "Discord limits the rate of requests",
                retry_after=_DEFAULT_WAIT if seconds is None else seconds,
            )
        if reply.status >= 500:
            raise ChannelUnavailableError(f"Discord cannot answer now (status {reply.status})")
        code, reason = reply.body.get("code"), text(reply.body, "message") or "no reason"
        problem = f"Discord refused the request: {reason} (status {reply.status}, code {code})"
        raise ChannelRefusedError(
            problem, hint=_HINTS.get(code if isinstance(code, int) else reply.status)
        )

    def note_own(self, message: Fields) -> None:
        """Record that the bot's own message appeared. Its nonce identifies it."""
        nonce = text(message, "nonce", _MAX_NONCE)
        if nonce:
            self._own[nonce] = text(message, "id")
            if len(self._own) > _MAX_OWN:
                del self._own[next(iter(self._own))]


_HINTS = {
    401: "copy the bot's token again from the Bot page of the developer portal",
    0: "copy the bot's token again from the Bot page of the developer portal",
    50001: "invite the bot to the server, and let it view the channel",
    50007: "this person does not accept the bot's direct messages (no common server, or turned off)",
    50013: "let the bot send messages in this channel",
}
"""Hints for Discord's codes and HTTP statuses."""


def _now() -> float:
    return asyncio.get_running_loop().time()


KIND = ChannelKind(
    "discord",
    "Discord",
    Discord,
    options=(
        Option("token", "bot token: env:NAME or file:PATH", is_secret=True, is_required=True),
        Option("base_url", "address of Discord's HTTP interface", default=ADDRESS),
    ),
    libraries=("websockets",),
    extra="web",
    identity="a user's number: 80351110224678912",
)


__all__ = ["KIND"]
