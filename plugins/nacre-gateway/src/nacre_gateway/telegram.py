"""Telegram, by long polling of its Bot API (https://core.telegram.org/bots/api)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from nacre.base.frozen import frozen
from nacre.base.plain import mapping, objects
from nacre.errors import ChannelRefusedError, ChannelUnavailableError
from nacre.values.gateway import Chat, ChatType, Incoming, Limits, Outgoing, Sender
from nacre_gateway.channels import (
    MAX_TEXT,
    ChannelKind,
    ChannelSetup,
    Fields,
    Inbox,
    Option,
    SkippedItems,
    WebApi,
    attachment,
    integer,
    moment,
    number,
    text,
)

_KINDS = {"private": ChatType.DIRECT, "group": ChatType.GROUP, "supergroup": ChatType.GROUP}
_FILES = {
    "document": ("file", ""),
    "voice": ("voice.ogg", "audio/ogg"),
    "audio": ("audio.mp3", "audio/mpeg"),
    "video": ("video.mp4", "video/mp4"),
    "video_note": ("video.mp4", "video/mp4"),
    "animation": ("animation.mp4", "video/mp4"),
}
"""Fields for attached files, with each file's default name and media type."""


@frozen
class Bot:
    """The bot's id and username."""

    id: str
    username: str = ""


def message_id(bot: Bot, chat: str, number: int) -> str:
    """Return a message id that is unique across chats and bots."""
    return f"{bot.id}/{chat}/{number}"


def incoming(update: Fields, channel: str, bot: Bot) -> Incoming | None:
    """Convert an update from Telegram, or return ``None`` if it is not a person's message.

    Raises ValueError for a malformed message.
    """
    message = update.get("message")
    if message is None:
        return None
    if not isinstance(message, dict):
        raise ValueError("a message is not an object")
    chat = mapping(message, "chat")
    chat_id, number = integer(chat.get("id")), integer(message.get("message_id"))
    if chat_id is None or number is None:
        raise ValueError("a message without a number or a chat")
    kind = _KINDS.get(text(chat, "type"))
    sender = _sender(message)
    # Telegram also sends an animation as a document. The largest size of a photo is used.
    found = [
        (mapping(message, key), defaults)
        for key, defaults in _FILES.items()
        if key != "animation" or "document" not in message
    ]
    sizes = objects(message, "photo")
    largest = max(sizes, key=lambda size: integer(size.get("width")) or 0, default={})
    files = tuple(
        attachment(file, "file_name", "mime_type", "file_size", defaults)
        for file, defaults in (*found, (largest, ("photo.jpg", "image/jpeg")))
        if text(file, "file_id")
    )
    words = text(message, "text" if "text" in message else "caption", MAX_TEXT)
    is_named = False
    if bot.username:
        at = rf"@{re.escape(bot.username)}\b"
        is_named = bool(re.search(rf"(?:\A/\w+|(?<!\w)){at}", words, re.IGNORECASE))
        # ``/new@name`` becomes ``/new``.
        bare = re.sub(rf"\A\s*{at}[\s,:]*", "", words, flags=re.IGNORECASE)
        words = re.sub(rf"\A(/\w{{1,32}}){at}", r"\1", bare, flags=re.IGNORECASE) or words
    words = words or text(mapping(message, "sticker"), "emoji")
    if kind is None or sender is None or not (words or files):
        return None
    entities = objects(message, "entities" if "text" in message else "caption_entities")
    users = [mapping(entity, "user") for entity in entities]
    users.append(mapping(message, "reply_to_message", "from"))
    thread = (
        integer(message.get("message_thread_id"))
        if message.get("is_topic_message") is True
        else None
    )
    return Incoming(
        id=message_id(bot, str(chat_id), number),
        chat=Chat(channel, str(chat_id), kind, thread=str(thread or "")),
        sender=sender,
        text=words,
        sent=moment(integer(message.get("date"))),
        attachments=files,
        to_agent=kind is ChatType.DIRECT
        or is_named
        or any(str(integer(user.get("id"))) == bot.id for user in users),
    )


def _sender(message: Fields) -> Sender | None:
    """Return the author, or ``None`` for bots, which might otherwise answer each other forever."""
    sender_chat = mapping(message, "sender_chat")
    if (chat := integer(sender_chat.get("id"))) is not None:
        return Sender(str(chat), text(sender_chat, "title"))
    person = mapping(message, "from")
    user = integer(person.get("id"))
    if user is None:
        raise ValueError("a message without an author")
    if person.get("is_bot") is True:
        return None
    names = (text(person, key) for key in ("first_name", "last_name"))
    return Sender(str(user), " ".join(name for name in names if name))


# ----------------------------------------------------------------------------
# Long polling. Telegram keeps updates for a day, or until a request with a higher offset.


_POLL_SECONDS = 25
_GRACE_SECONDS = 10
_MAX_UPDATES = 100
_PAUSE_SECONDS = 1.0
"""Pause after an empty response that arrived without waiting."""
_MAX_DESCRIPTION = 300
_CONFLICT = 409


class Telegram:
    """The owner's bot on Telegram."""

    def __init__(self, setup: ChannelSetup) -> None:
        self.limits = Limits(characters=4_096, utf16=True, seconds_between=1.0, typing_seconds=5.0)
        self._setup = setup
        self._token = setup.secrets["token"]
        self._path_token = quote(self._token, safe=":")
        self._api = WebApi("Telegram", str(setup.options["base_url"]), {})
        self._bot = Bot(self._token.partition(":")[0])
        self.skipped = SkippedItems(setup.log)

    async def run(self, inbox: Inbox) -> None:
        """Poll for updates until a poll fails.

        Each offset is sent only once, because Telegram can restart the numbering of updates after a
        week without any.
        """
        me = await self._call("getMe")
        self._bot = Bot(self._bot.id, text(me, "username"))
        if (
            self._setup.options.get("groups") == "all"
            and me.get("can_read_all_group_messages") is not True
        ):
            self._setup.log(
                "in groups the bot only sees messages addressed to it; change this in @BotFather with /setprivacy"
            )
        offset = None
        while True:
            began = asyncio.get_running_loop().time()
            updates = await self._poll(offset)
            offset = await self._receive(inbox, updates) if updates else None
            if not updates and asyncio.get_running_loop().time() - began < _PAUSE_SECONDS:
                await asyncio.sleep(_PAUSE_SECONDS)

    async def send(self, outgoing: Outgoing) -> str:
        """Send a message, as a reply in groups."""
        chat = outgoing.chat
        request: dict[str, Any] = {
            "chat_id": integer(chat.id),
            "text": outgoing.text,
            "link_preview_options": {"is_disabled": True},
        }
        replied = integer(outgoing.reply_to.split("/")[2]) if outgoing.reply_to else None
        if chat.kind is ChatType.GROUP and replied is not None:
            request["reply_parameters"] = {
                "message_id": replied,
                "allow_sending_without_reply": True,
            }
        sent = await self._call("sendMessage", **request, **_thread(chat))
        return message_id(self._bot, chat.id, integer(sent.get("message_id")) or 0)

    async def show_typing(self, chat: Chat) -> None:
        await self._call(
            "sendChatAction", chat_id=integer(chat.id), action="typing", **_thread(chat)
        )

    async def close(self) -> None:
        await self._api.close()

    async def _poll(self, offset: int | None) -> list[Fields]:
        request = {
            "timeout": _POLL_SECONDS,
            "limit": _MAX_UPDATES,
            "allowed_updates": ["message"],
            **({} if offset is None else {"offset": offset}),
        }
        answer = await self._request("getUpdates", request, _POLL_SECONDS + _GRACE_SECONDS)
        if not isinstance(answer.get("result"), list):
            raise _invalid_updates()
        return [mapping(update) for update in answer["result"]]

    async def _receive(self, inbox: Inbox, updates: Sequence[Fields]) -> int:
        numbered: dict[int, Fields] = {}
        for update in updates:
            if (number := integer(update.get("update_id"))) is None:
                self.skipped.note("an update without a number")
            else:
                numbered[number] = update
        if not numbered:
            raise _invalid_updates()
        parsed = [
            self.skipped.parsed("an update", incoming, update, self._setup.name, self._bot)
            for _, update in sorted(numbered.items())
        ]
        await inbox.receive([message for message in parsed if message])
        return max(numbered) + 1

    async def _call(self, method: str, **request: Any) -> Fields:
        return mapping(await self._request(method, request), "result")

    async def _request(self, method: str, request: Any, seconds: float = 30.0) -> Fields:
        reply = await self._api.ask(
            "POST", f"/bot{self._path_token}/{method}", body=request, seconds=seconds
        )
        if reply.status < 300 and reply.body.get("ok") is True:
            return reply.body
        description = text(reply.body, "description", _MAX_DESCRIPTION).replace(self._token, "…")
        if reply.body.get("ok") is not False:  # not from Telegram, but for example from a proxy
            raise ChannelUnavailableError(
                f"Telegram answered with status {reply.status}", retry_after=reply.retry_after
            )
        if reply.status in (401, 404):
            hint = f"set gateway.channels.{self._setup.name}.token to the token from @BotFather: <number>:<letters>"
            raise ChannelRefusedError("Telegram refused the token", hint=hint)
        if reply.status == _CONFLICT and "webhook" in description.casefold():
            raise ChannelUnavailableError(
                "Telegram delivers this bot's messages to a webhook",
                hint="remove it: curl https://api.telegram.org/bot$TELEGRAM_BOT_TOKEN/deleteWebhook",
            )
        if reply.status == _CONFLICT:
            hint = "stop the other program or create another bot; renew a leaked token with /revoke in @BotFather"
            raise ChannelUnavailableError("another program receives this bot's messages", hint=hint)
        if reply.status == 429 or reply.status >= 500:
            wait = number(mapping(reply.body, "parameters"), "retry_after")
            raise ChannelUnavailableError(
                f"Telegram: {description}", retry_after=wait or reply.retry_after
            )
        raise ChannelRefusedError(
            f"Telegram: {description}",
            hint="the bot was blocked, or is not a member of the group"
            if reply.status == 403
            else None,
        )


def _invalid_updates() -> ChannelUnavailableError:
    return ChannelUnavailableError("Telegram's response is not a list of updates")


def _thread(chat: Chat) -> dict[str, Any]:
    number = integer(chat.thread)
    return {} if number is None else {"message_thread_id": number}


KIND = ChannelKind(
    "telegram",
    Telegram,
    options=(
        Option("token", "bot token from @BotFather", is_secret=True, is_required=True),
        Option("base_url", "address of the Bot API", default="https://api.telegram.org"),
    ),
)
