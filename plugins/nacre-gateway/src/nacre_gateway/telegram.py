"""Telegram, with long polling of its Bot API: https://core.telegram.org/bots/api."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nacre.base.frozen import frozen
from nacre.base.ids import Clock, utc_now
from nacre.errors import ChannelRefusedError, ChannelUnavailableError, NacreError
from nacre.values.gateway import Attachment, Chat, ChatType, Incoming, Limits, Outgoing, Sender
from nacre_gateway import channels
from nacre_gateway.channels import (
    MAX_TEXT,
    ChannelKind,
    ChannelSetup,
    Fields,
    Inbox,
    Option,
    SkippedItems,
    WebApi,
    decode_object,
    mapping,
    mappings,
    text,
    whole,
)

_KINDS = {"private": ChatType.DIRECT, "group": ChatType.GROUP, "supergroup": ChatType.GROUP}
_MAX_ENTITIES = 100
_MAX_SIZES = 20
_MAX_SOURCE = 1_000
_FILES = {
    "document": ("file", ""),
    "voice": ("voice.ogg", "audio/ogg"),
    "audio": ("audio.mp3", "audio/mpeg"),
    "video": ("video.mp4", "video/mp4"),
    "video_note": ("video.mp4", "video/mp4"),
    "animation": ("animation.mp4", "video/mp4"),
}
"""Message fields with files, and each file's default name and type.

Senders set a document's type.
"""


@frozen
class Bot:
    """The agent's bot at Telegram."""

    id: str
    username: str = ""


def message_id(bot: Bot, chat: str, number: int) -> str:
    """Return the id of a message. Numbers are unique only within a chat of a bot."""
    return f"{bot.id}/{chat}/{number}"


def moved_ids(update: Fields) -> tuple[str, str] | None:
    """Return a group's old and new ids if the update shows that it became a supergroup."""
    message = mapping(update, "message")
    chat = whole(mapping(message, "chat").get("id"))
    target, source = (
        whole(message.get("migrate_to_chat_id")),
        whole(message.get("migrate_from_chat_id")),
    )
    if chat is None or (target is None and source is None):
        return None
    return (str(chat), str(target)) if target is not None else (str(source), str(chat))


def incoming(
    update: Fields, channel: str, bot: Bot, first_ids: Mapping[str, str]
) -> Incoming | None:
    """Convert an update to a message. Return ``None`` if no person wrote it, for example if a member joined.

    ``first_ids`` are the chats' ids before they moved, so that a conversation stays the same.
    Raises ValueError.
    """
    edited = update.get("edited_message")
    message = update.get("message") if edited is None else edited
    if message is None:
        return None
    if not isinstance(message, dict):
        raise ValueError("a message is not an object")
    chat_id, number = whole(mapping(message, "chat").get("id")), whole(message.get("message_id"))
    if chat_id is None or number is None:
        raise ValueError("a message without a number or a chat")
    kind = _KINDS.get(text(message["chat"], "type"))
    sender = _sender(message)
    attachments = []
    # Telegram also sends an animation as a document. The largest size of a photo is used.
    for key, (name, media_type) in _FILES.items():
        if key != "animation" or "document" not in message:
            attachments.append(_parse_attachment(mapping(message, key), name, media_type))
    sizes = mappings(message, "photo", _MAX_SIZES)
    largest = max(sizes, key=lambda size: whole(size.get("width")) or 0, default={})
    attachments.append(_parse_attachment(largest, "photo.jpg", "image/jpeg"))
    files = tuple(attachment for attachment in attachments if attachment)
    words = text(message, "text" if "text" in message else "caption", MAX_TEXT)
    if bot.username:
        name = re.escape(bot.username)
        # ``/new@name`` becomes ``/new``.
        bare = re.sub(rf"\A\s*@{name}\b[\s,:]*", "", words, flags=re.IGNORECASE)
        words = re.sub(rf"\A(/\w{{1,32}})@{name}\b", r"\1", bare, flags=re.IGNORECASE) or words
    words = words or text(mapping(message, "sticker"), "emoji")
    if kind is None or sender is None or not (words or files):
        return None
    own_id = message_id(bot, str(chat_id), number)
    thread = (
        whole(message.get("message_thread_id")) if message.get("is_topic_message") is True else None
    )
    return Incoming(
        id=own_id if edited is None else f"{own_id}/{update.get('update_id')}",
        chat=Chat(
            channel, first_ids.get(str(chat_id), str(chat_id)), kind, thread=str(thread or "")
        ),
        sender=sender,
        text=words,
        sent=channels.moment(message, "date" if edited is None else "edit_date"),
        attachments=files,
        edits="" if edited is None else own_id,
        to_agent=kind is ChatType.DIRECT or _is_addressed(bot, message),
    )


def _sender(message: Fields) -> Sender | None:
    """Return the author: a person, or the chat in whose name an administrator writes.

    Returns ``None`` for bots, so that two bots do not answer each other forever.
    """
    sender_chat = mapping(message, "sender_chat")
    if (chat := whole(sender_chat.get("id"))) is not None:
        return Sender(str(chat), text(sender_chat, "title"))
    person = mapping(message, "from")
    user = whole(person.get("id"))
    if user is None:
        raise ValueError("a message without an author")
    if person.get("is_bot") is True:
        return None
    names = (text(person, key) for key in ("first_name", "last_name"))
    return Sender(str(user), " ".join(name for name in names if name))


def _entities(message: Fields) -> list[tuple[str, str, Fields]]:
    """Return (type, words, entity) for each marked part of a message, such as a link."""
    words_key, key = ("text", "entities") if "text" in message else ("caption", "caption_entities")
    data = text(message, words_key, MAX_TEXT).encode("utf-16-le")
    entities = []
    for mark in mappings(message, key, _MAX_ENTITIES):
        begin, length = whole(mark.get("offset")), whole(mark.get("length"))
        if begin is not None and length is not None and begin >= 0 and length > 0:
            words = data[2 * begin : 2 * (begin + length)].decode("utf-16-le", "replace")
            entities.append((text(mark, "type"), words, mark))
    return entities


def _is_addressed(bot: Bot, message: Fields) -> bool:
    """Return True if a message in a group mentions the bot, replies to it, or is a command for it."""
    replied = mapping(mapping(message, "reply_to_message"), "from")
    if str(whole(replied.get("id"))) == bot.id:
        return True
    name = f"@{bot.username}".casefold()
    for kind, words, mark in _entities(message):
        if kind == "text_mention" and str(whole(mapping(mark, "user").get("id"))) == bot.id:
            return True
        if kind == "mention" and bot.username and words.casefold() == name:
            return True
        if kind == "bot_command" and bot.username and words.casefold().endswith(name):
            return True
    return False


def _parse_attachment(file: Fields, name: str, media_type: str) -> Attachment | None:
    source = text(file, "file_id", _MAX_SOURCE)
    if not source:
        return None
    return Attachment(
        channels.file_name(file, "file_name", name),
        text(file, "mime_type") or media_type,
        whole(file.get("file_size")),
        source,
    )


# ----------------------------------------------------------------------------
# Long polling works without access to this machine from outside. Telegram keeps updates for a day,
# or until a request for later updates confirms them.


_POLL_SECONDS = 25
_GRACE_SECONDS = 10
_MAX_UPDATES = 100
_ALLOWED = ["message", "edited_message"]
_OFFSET_LASTS = timedelta(days=1)
"""Lifetime of an offset. Telegram can restart update numbers after a week without updates, and
keeps updates for a day."""
_PAUSE_SECONDS = 1.0
"""Pause after an empty response that did not wait for updates."""
_MAX_MOVES = 200
_MAX_DESCRIPTION = 300
_WRONG_TOKEN = (401, 404)
_CONFLICT = 409
_BLOCKED = 403
_TOO_MANY = 429


class Telegram:
    """A bot."""

    def __init__(self, setup: ChannelSetup, clock: Clock = utc_now) -> None:
        self.limits = Limits(characters=4_096, utf16=True, seconds_between=1.0, typing_seconds=5.0)
        self._setup = setup
        self._clock = clock
        self._token = setup.secrets["token"]
        self._path_token = quote(self._token, safe=":")
        self._base = str(setup.options["base_url"]).rstrip("/")
        self._api = WebApi("Telegram", self._base, {})
        self._bot = Bot(self._token.partition(":")[0])
        self._first_ids: dict[str, str] = {}
        self.skipped = SkippedItems(setup.log)

    async def run(self, inbox: Inbox) -> None:
        """Poll for updates until cancelled. A failed poll is retried immediately, and a second failure is raised."""
        me = await self._call("getMe")
        self._bot = Bot(self._bot.id, text(me, "username"))
        if (
            self._setup.options.get("groups") == "all"
            and me.get("can_read_all_group_messages") is not True
        ):
            self._setup.log(
                "in groups the bot only sees messages addressed to it; change this in @BotFather with /setprivacy"
            )
        self._first_ids = _read_moves(inbox.state("moved"))
        value = whole(inbox.state(self._offset_name).partition(" ")[0])
        offset = None if value is None or self._is_old(inbox) else value
        has_failed = False
        while True:
            began = asyncio.get_running_loop().time()
            try:
                updates = await self._poll(offset)
            except _ConflictError:
                raise
            except ChannelUnavailableError as error:
                if has_failed or error.retry_after is not None:
                    raise
                has_failed = True
                continue
            has_failed = False
            if updates:
                offset = await self._receive(inbox, updates, offset)
            elif asyncio.get_running_loop().time() - began < _PAUSE_SECONDS:
                await asyncio.sleep(_PAUSE_SECONDS)
            if self._is_old(inbox):
                offset = None

    async def send(self, outgoing: Outgoing) -> str:
        """Send a text unchanged, in groups as a reply. If the group has moved, send it to the new id."""
        chat = self._present_id(outgoing.chat.id)
        try:
            sent = await self._call("sendMessage", **_send_request(outgoing, chat))
        except _MovedError as error:
            self._note_move(chat, error.target)
            chat = error.target
            sent = await self._call("sendMessage", **_send_request(outgoing, chat))
        return message_id(self._bot, chat, whole(sent.get("message_id")) or 0)

    async def show_typing(self, chat: Chat) -> None:
        request = {"chat_id": whole(self._present_id(chat.id)), "action": "typing"} | _thread(chat)
        with suppress(NacreError):
            await self._call("sendChatAction", **request)

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """Download a file. Bots cannot download files over 20 MB."""
        file = await self._call("getFile", file_id=attachment.source)
        if (whole(file.get("file_size")) or 0) > most_bytes:
            raise ChannelRefusedError(f"the file is larger than {most_bytes} bytes")
        path = quote(text(file, "file_path", 1_000))
        if not path or ".." in path.split("/"):
            raise ChannelRefusedError("Telegram returned no path for the file")
        await self._api.download(
            f"{self._base}/file/bot{self._path_token}/{path}", target, most_bytes, {}
        )

    async def close(self) -> None:
        await self._api.close()

    async def _poll(self, offset: int | None) -> list[Fields]:
        request: dict[str, Any] = {
            "timeout": _POLL_SECONDS,
            "limit": _MAX_UPDATES,
            "allowed_updates": _ALLOWED,
        }
        if offset is not None:
            request["offset"] = offset
        answer = await self._request("getUpdates", request, _POLL_SECONDS + _GRACE_SECONDS)
        if not isinstance(answer.get("result"), list):
            raise _invalid_updates()
        return [update if isinstance(update, dict) else {} for update in answer["result"]]

    async def _receive(self, inbox: Inbox, updates: Sequence[Fields], offset: int | None) -> int:
        """Store a batch in the order it was written and return the offset that confirms it."""
        numbered: dict[int, Fields] = {}
        for update in updates:
            if (number := whole(update.get("update_id"))) is None:
                self.skipped.note("an update without a number")
            else:
                numbered[number] = update
        if not numbered:
            raise _invalid_updates()
        messages = [
            message for _, update in sorted(numbered.items()) if (message := self._incoming(update))
        ]
        after = max(*numbered, (offset or 0) - 1) + 1
        state = {
            self._offset_name: f"{after} {int(self._clock().timestamp())}",
            "moved": json.dumps(self._first_ids),
        }
        await inbox.receive(messages, **state)
        return after

    def _incoming(self, update: Fields) -> Incoming | None:
        if move := moved_ids(update):
            self._note_move(*move)
        arguments = update, self._setup.name, self._bot, self._first_ids
        return self.skipped.parsed("an update", incoming, *arguments)

    @property
    def _offset_name(self) -> str:
        return f"offset_{self._bot.id}"  # update numbers differ between bots

    def _is_old(self, inbox: Inbox) -> bool:
        at = whole(inbox.state(self._offset_name).partition(" ")[2])
        return at is not None and self._clock() - datetime.fromtimestamp(at, UTC) > _OFFSET_LASTS

    def _note_move(self, old: str, new: str) -> None:
        self._first_ids[new] = self._first_ids.get(old, old)
        while len(self._first_ids) > _MAX_MOVES:
            del self._first_ids[next(iter(self._first_ids))]

    def _present_id(self, first_id: str) -> str:
        places = [new for new, first in self._first_ids.items() if first == first_id]
        return places[-1] if places else first_id

    async def _call(self, method: str, **request: Any) -> Fields:
        return mapping(await self._request(method, request), "result")

    async def _request(self, method: str, request: Any, seconds: float = 30.0) -> Fields:
        reply = await self._api.ask(
            "POST", f"/bot{self._path_token}/{method}", json=request, seconds=seconds
        )
        if reply.status < 300 and reply.body.get("ok") is True:
            return reply.body
        description = text(reply.body, "description", _MAX_DESCRIPTION).replace(self._token, "…")
        if reply.body.get("ok") is not False:  # not from Telegram, but for example from a proxy
            raise ChannelUnavailableError(
                f"Telegram answered with status {reply.status}", retry_after=reply.retry_after
            )
        parameters = mapping(reply.body, "parameters")
        if reply.status in _WRONG_TOKEN:
            hint = f"set gateway.channels.{self._setup.name}.token to the token from @BotFather: <number>:<letters>"
            raise ChannelRefusedError("Telegram refused the token", hint=hint)
        if reply.status == _CONFLICT:
            if "webhook" in description.casefold():
                hint = (
                    "remove it: curl https://api.telegram.org/bot$TELEGRAM_BOT_TOKEN/deleteWebhook"
                )
                raise _ConflictError(
                    "Telegram delivers this bot's messages to a webhook", hint=hint
                )
            hint = "stop the other program or create another bot; renew a leaked token with /revoke in @BotFather"
            raise _ConflictError("another program receives this bot's messages", hint=hint)
        if reply.status == _TOO_MANY:
            wait = whole(parameters.get("retry_after"))
            raise ChannelUnavailableError(
                f"Telegram: {description}", retry_after=reply.retry_after if wait is None else wait
            )
        if (target := whole(parameters.get("migrate_to_chat_id"))) is not None:
            raise _MovedError(str(target))
        if reply.status == _BLOCKED:
            raise ChannelRefusedError(
                f"Telegram: {description}",
                hint="the bot was blocked, or is not a member of the group",
            )
        raise (ChannelRefusedError if reply.status < 500 else ChannelUnavailableError)(
            f"Telegram: {description}"
        )


class _ConflictError(ChannelUnavailableError):
    """Another program receives the bot's updates."""


class _MovedError(ChannelRefusedError):
    """A group became a supergroup, which has another id."""

    def __init__(self, target: str) -> None:
        super().__init__("the group moved")
        self.target = target


def _invalid_updates() -> ChannelUnavailableError:
    return ChannelUnavailableError("Telegram's response is not a list of updates")


def _send_request(outgoing: Outgoing, chat: str) -> dict[str, Any]:
    number = whole(chat)
    if number is None:
        raise ChannelRefusedError(f"Telegram has no chat {chat!r}")
    request = {
        "chat_id": number,
        "text": outgoing.text,
        "link_preview_options": {"is_disabled": True},
    }
    parts = outgoing.reply_to.split("/")
    replied = whole(parts[2]) if len(parts) >= 3 and parts[1] == chat else None
    if outgoing.chat.kind is ChatType.GROUP and replied is not None:
        request["reply_parameters"] = {"message_id": replied, "allow_sending_without_reply": True}
    return request | _thread(outgoing.chat)


def _thread(chat: Chat) -> dict[str, Any]:
    number = whole(chat.thread)
    return {} if number is None else {"message_thread_id": number}


def _read_moves(state: str) -> dict[str, str]:
    with suppress(ValueError):
        return {str(new): str(first) for new, first in decode_object(state).items()}
    return {}


KIND = ChannelKind(
    "telegram",
    "Telegram",
    Telegram,
    options=(
        Option("token", "bot token from @BotFather", is_secret=True, is_required=True),
        Option("base_url", "address of the Bot API", default="https://api.telegram.org"),
    ),
    identity="a Telegram user's number: 5054",
)
