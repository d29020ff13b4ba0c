"""Discord, through its gateway (a WebSocket) and version 10 of its HTTP API."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from random import Random
from typing import Any

from nacre import __version__
from nacre.base import json
from nacre.base.plain import mapping, objects
from nacre.base.times import parsed
from nacre.errors import ChannelRefusedError, ChannelUnavailableError, InvalidSettingsError
from nacre.values.gateway import Chat, ChatType, Incoming, Limits, Outgoing, Sender
from nacre_gateway.channels import (
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
    integer,
    number,
    open_socket,
    text,
)

MAX_CHARACTERS = 10_000
"""Maximum length of a received message. Discord's own limit is 4,000 characters."""
_MAX_FILES = 10
_WRITTEN_TYPES = (None, 0, 19)
"""Types of messages that people write. Other types report joins, pins and calls."""
_GROUP_DM = 3


def incoming(channel: str, message: Fields, bot: str) -> Incoming | None:
    """Convert a Discord message, or return ``None`` if it is empty or no person wrote it.

    Raises ValueError for a malformed message.
    """
    author = mapping(message, "author")
    if author.get("bot") or message.get("webhook_id") or message.get("type") not in _WRITTEN_TYPES:
        return None
    sender, own_id = identifier(author, "id"), identifier(message, "id")
    files = tuple(
        attachment(file, "filename", "content_type")
        for file in objects(message, "attachments")[:_MAX_FILES]
    )
    words = text(message, "content", MAX_CHARACTERS)
    words = re.sub(rf"^\s*<@!?{re.escape(bot)}>\s*", "", words) if bot else words
    mentioned = {str(user.get("id")): user for user in objects(message, "mentions")}
    names = {user_id: _name(user, mapping(user, "member")) for user_id, user in mentioned.items()}
    content = re.sub(
        r"<@!?(\d+)>", lambda match: f"@{names.get(match[1]) or match[1]}", words
    ).strip()
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
    return Incoming(
        id=own_id,
        chat=chat,
        sender=Sender(sender, _name(author, mapping(message, "member"))),
        text=content,
        sent=parsed(text(message, "timestamp", 40)),
        attachments=files,
        to_agent=chat.kind is ChatType.DIRECT
        or bot in mentioned
        or mapping(message, "referenced_message", "author").get("id") == bot,
    )


def _name(user: Fields, member: Fields) -> str:
    return text(member, "nick") or text(user, "global_name") or text(user, "username")


# ----------------------------------------------------------------------------
# Stored state.


MAX_CHATS = 200
"""Maximum number of chats, most recently active first, whose missed messages are fetched."""


class Records:
    """The Discord session to resume and the known chats, stored in the inbox."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        session, chats = (decode_object(inbox.state(name) or "{}") for name in ("session", "chats"))
        self.session, self.url = text(session, "id"), text(session, "url", 500)
        self.bot = text(session, "bot")
        self.seq = integer(session.get("seq"))
        self.chats: dict[str, tuple[str, str]] = {
            chat: (str(guild), str(last)) for chat, (guild, last) in chats.items()
        }
        """The server and the last message of each chat. The most recently active chat is last."""

    async def keep(self, messages: Sequence[Incoming], seq: int | None = None) -> None:
        """Store messages with the number of the event that brought them."""
        for message in messages:
            chat = message.chat
            _, last = self.chats.pop(chat.id, ("", ""))
            last = max(last, message.id, key=lambda message_id: (len(message_id), message_id))
            self.chats[chat.id] = chat.account, last
            if len(self.chats) > MAX_CHATS:
                del self.chats[next(iter(self.chats))]
        self.seq = self.seq if seq is None else seq
        if messages:
            await self._store(messages)

    async def begin(self, session: str = "", url: str = "", seq: int | None = None) -> None:
        """Store the session to resume. An empty id means that there is none."""
        self.session, self.url, self.seq = session, url, seq
        await self._store([])

    async def forget(self, chat: str) -> None:
        self.chats.pop(chat, None)
        await self._store([])

    async def _store(self, messages: Sequence[Incoming]) -> None:
        session = {"id": self.session, "url": self.url, "bot": self.bot, "seq": self.seq}
        await self._inbox.receive(
            messages,
            session=json.encode(session).decode(),
            chats=json.encode(self.chats).decode(),
        )


# ----------------------------------------------------------------------------
# The client for Discord's gateway.


INTENTS = (1 << 9) | (1 << 12) | (1 << 15)
"""Intents for messages in servers, direct messages and their text. The owner must enable them."""

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
_HELLO_SECONDS = 20.0
"""Maximum wait for Discord's greeting."""
_PAUSE_SECONDS = 5.0
"""Maximum pause after an invalid session."""
_RESUMABLE = 4000
"""Close code that keeps the session, unlike 1000 and 1001."""
_SESSION_OVER = (4003, 4007, 4009)
_REFUSED = {
    4004: (
        "the token is wrong",
        "copy the bot's token again from the Bot page of the developer portal",
    ),
    4011: ("the bot is in too many servers for one connection", "remove it from some servers"),
    4012: ("version 10 of the gateway is no longer supported", "update nacre"),
    4013: ("the intents are wrong", "update nacre"),
    4014: (
        "an intent is not allowed",
        "turn on Message Content Intent on the Bot page of the developer portal",
    ),
}


class Gateway:
    """A connection to Discord's gateway that stores the messages it receives."""

    def __init__(self, channel: Discord, records: Records) -> None:
        self._channel = channel
        self._records = records
        self._random = Random()  # noqa: S311 - spreads load, guards nothing
        self._is_acknowledged = True
        self._is_busy = False
        self._seq = records.seq
        """Number of the last received event, for heartbeats. The stored number can be lower."""
        self.is_ready = False

    async def connect(self, url: str) -> None:
        """Receive messages until the connection ends.

        Raises ChannelUnavailableError, or ChannelRefusedError if Discord rejects the bot.
        """
        socket = await open_socket("Discord", url)
        try:
            hello: Fields = {}
            with suppress(TimeoutError, ValueError):
                hello = await asyncio.wait_for(socket.receive(), _HELLO_SECONDS)
            if hello.get("op") != _HELLO:
                raise ChannelUnavailableError("Discord's gateway sent no greeting")
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
                await self._records.begin()
            elif not self.is_ready:
                raise
        finally:
            await socket.close(_RESUMABLE)

    def _greeting(self) -> dict[str, Any]:
        records = self._records
        if records.session and records.seq is not None:
            token = self._channel.token
            resumed = {"token": token, "session_id": records.session, "seq": records.seq}
            return {"op": _RESUME, "d": resumed}
        about = {"os": "any", "browser": "nacre", "device": "nacre"}
        identity = {"token": self._channel.token, "intents": INTENTS, "properties": about}
        return {"op": _IDENTIFY, "d": identity}

    async def _beat(self, socket: Socket, seconds: float) -> None:
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
                await self._records.begin()
            await asyncio.sleep(_PAUSE_SECONDS * self._random.uniform(0.2, 1))
        elif op == _DISPATCH:
            await self._dispatch(frame)
        return op not in (_RECONNECT, _INVALID)

    async def _dispatch(self, frame: Fields) -> None:
        seq, name, data = integer(frame.get("s")), text(frame, "t"), mapping(frame, "d")
        if seq is None:
            self._channel.skipped.note("an event from Discord")
            return
        self._seq = seq
        # no acknowledgements are read while an event is stored, so a missing one means nothing
        self._is_busy = True
        try:
            await self._event(name, data, seq)
        finally:
            self._is_busy, self._is_acknowledged = False, True

    async def _event(self, name: str, data: Fields, seq: int) -> None:
        if name == "READY":
            self._records.bot = text(mapping(data, "user"), "id")
            await self._catch_up()
            url = text(data, "resume_gateway_url", 500)
            await self._records.begin(text(data, "session_id"), url, seq)
            self.is_ready = True
        elif name == "RESUMED":
            self.is_ready = True
        if name == "MESSAGE_CREATE":
            message = self._convert(data)
            await self._records.keep([message] if message else [], seq)
        else:
            self._records.seq = seq

    async def _catch_up(self) -> None:
        for chat, (guild, last) in list(self._records.chats.items()):
            try:
                await self._fetch(chat, guild, last)
            except ChannelRefusedError:
                await self._records.forget(chat)

    async def _fetch(self, chat: str, guild: str, after: str) -> None:
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
# The channel.


ADDRESS = "https://discord.com/api/v10"
_NO_EMBEDS = 1 << 2
"""Flag for no link previews. Fetching a link could reveal the conversation."""
_MAX_NONCE = 25
"""Discord's maximum length of a nonce."""
_PAGE, _MAX_PAGES = 100, 50
_MAX_WAIT = 60.0
_DEFAULT_WAIT = 5.0


class Discord:
    """The owner's bot on Discord.

    Discord recognises a repeated message by its nonce for only a few minutes, so a message that is
    sent again later can appear twice.
    """

    limits = Limits(characters=2_000, seconds_between=1.0, typing_seconds=10.0, is_idempotent=True)

    def __init__(self, setup: ChannelSetup) -> None:
        """Prepare the connection to Discord. Raises InvalidSettingsError."""
        self.name = setup.name
        self.token = setup.secrets["token"]
        self.tell = setup.log
        agent = f"DiscordBot (nacre, {__version__})"
        headers = {"authorization": f"Bot {self.token}", "user-agent": agent}
        if not (self.token.isascii() and self.token.isprintable()):
            raise InvalidSettingsError("the token of the Discord bot has invalid characters")
        self._api = WebApi("Discord", str(setup.options["base_url"]), headers)
        self.skipped = SkippedItems(setup.log)

    async def run(self, inbox: Inbox) -> None:
        records = Records(inbox)
        gateway = Gateway(self, records)
        try:
            await gateway.connect(await self._address(records))
        except ChannelUnavailableError:
            if records.url and not gateway.is_ready:  # try to resume at another address
                await records.begin(records.session, seq=records.seq)
            raise

    async def send(self, outgoing: Outgoing) -> str:
        """Send a message without notifying the people it mentions."""
        nonce = sha256(outgoing.key.encode()).hexdigest()[:_MAX_NONCE]
        body: dict[str, Any] = {
            "content": outgoing.text,
            "nonce": nonce,
            "enforce_nonce": True,
            "allowed_mentions": {"parse": []},
            "flags": _NO_EMBEDS,
        }
        if outgoing.reply_to:
            body["message_reference"] = {
                "message_id": outgoing.reply_to,
                "fail_if_not_exists": False,
            }
        reply = await self.ask("POST", f"/channels/{outgoing.chat.id}/messages", body=body)
        return text(reply.body, "id")

    async def show_typing(self, chat: Chat) -> None:
        await self.ask("POST", f"/channels/{chat.id}/typing")

    async def close(self) -> None:
        await self._api.close()

    async def _address(self, records: Records) -> str:
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
        """Send a request and return the response.

        Raises ChannelUnavailableError if a retry can help, and otherwise ChannelRefusedError.
        """
        reply = await self._api.ask(method, path, **more)
        if reply.status < 300:
            return reply
        if reply.status == 429:
            seconds = number(reply.body, "retry_after") or reply.retry_after or _DEFAULT_WAIT
            raise ChannelUnavailableError(
                "Discord limits the rate of requests", retry_after=seconds
            )
        if reply.status >= 500:
            raise ChannelUnavailableError(f"Discord cannot answer now (status {reply.status})")
        code, reason = reply.body.get("code"), text(reply.body, "message") or "no reason"
        problem = f"Discord refused the request: {reason} (status {reply.status}, code {code})"
        raise ChannelRefusedError(
            problem, hint=_HINTS.get(code if isinstance(code, int) else reply.status)
        )


_HINTS = {
    401: "copy the bot's token again from the Bot page of the developer portal",
    0: "copy the bot's token again from the Bot page of the developer portal",
    50001: "invite the bot to the server, and let it view the channel",
    50007: "this person does not accept the bot's direct messages (no common server, or turned off)",
    50013: "let the bot send messages in this channel",
}
"""Hints for error codes and HTTP statuses."""


KIND = ChannelKind(
    "discord",
    Discord,
    options=(
        Option("token", "bot token: env:NAME or file:PATH", is_secret=True, is_required=True),
        Option("base_url", "address of Discord's HTTP interface", default=ADDRESS),
    ),
)
