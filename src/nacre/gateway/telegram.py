"""Updates of Telegram's Bot API as messages: https://core.telegram.org/bots/api#message."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nacre.base.ids import Clock, utc_now
from nacre.errors import ChannelRefused, ChannelUnavailable, NacreError
from nacre.gateway import channels
from nacre.gateway.channels import (
    MOST_TEXT,
    ChannelKind,
    ChannelSetup,
    Inbox,
    LeftOut,
    Option,
    Reply,
    WebApi,
    decode_object,
    mapping,
    mappings,
    text,
    whole,
)
from nacre.values.gateway import Attachment, Chat, ChatType, Incoming, Limits, Outgoing, Sender

_KINDS = {"private": ChatType.DIRECT, "group": ChatType.GROUP, "supergroup": ChatType.GROUP}
_MOST_ENTITIES = 100
_MOST_SIZES = 20
_MOST_SOURCE = 1_000
_FILES = {
    "document": ("file", ""),
    "voice": ("voice.ogg", "audio/ogg"),
    "audio": ("audio.mp3", "audio/mpeg"),
    "video": ("video.mp4", "video/mp4"),
    "video_note": ("video.mp4", "video/mp4"),
    "animation": ("animation.mp4", "video/mp4"),
}
"""Fields that hold a file, with the name and type of one that has none. The type of a document is the sender's word."""


@dataclass(frozen=True, slots=True)
class Bot:
    """Who the agent is at Telegram."""

    id: str
    username: str = ""


def message_id(bot: Bot, chat: str, number: int) -> str:
    """The id of a message. Numbers are unique in one chat of one bot only."""
    return f"{bot.id}/{chat}/{number}"


def number_in(of_message: str, chat: str) -> int | None:
    """The number of a message in that chat; None where it is a message of another."""
    parts = of_message.split("/")
    return whole(parts[2]) if len(parts) >= 3 and parts[1] == chat else None


def moved(update: Mapping[str, Any]) -> tuple[str, str] | None:
    """The old and the new id of a group that this update says became a supergroup."""
    message = mapping(update, "message")
    here = whole(mapping(message, "chat").get("id"))
    target, source = (
        whole(message.get("migrate_to_chat_id")),
        whole(message.get("migrate_from_chat_id")),
    )
    if here is None or (target is None and source is None):
        return None
    return (str(here), str(target)) if target is not None else (str(source), str(here))


def incoming(
    update: Mapping[str, Any], channel: str, bot: Bot, first_ids: Mapping[str, str]
) -> Incoming | None:
    """The message of an update; None where it holds nothing that somebody said, as when a member joined.

    ``first_ids`` are those that chats had before they moved: a conversation stays one. Raises ValueError.
    """
    edited = update.get("edited_message")
    message = update.get("message") if edited is None else edited
    if message is None:
        return None
    if not isinstance(message, dict):
        raise ValueError("a message is no object")
    chat_id, number = whole(mapping(message, "chat").get("id")), whole(message.get("message_id"))
    if chat_id is None or number is None:
        raise ValueError("a message without a number or a chat")
    kind = _KINDS.get(text(message["chat"], "type"))
    sender = _sender(message)
    said, attachments = _text(message, bot), _attachments(message)
    if kind is None or sender is None or not (said or attachments):
        return None
    itself = message_id(bot, str(chat_id), number)
    thread = (
        whole(message.get("message_thread_id")) if message.get("is_topic_message") is True else None
    )
    return Incoming(
        id=itself if edited is None else f"{itself}/{update.get('update_id')}",
        chat=Chat(
            channel, first_ids.get(str(chat_id), str(chat_id)), kind, thread=str(thread or "")
        ),
        sender=sender,
        text=said,
        sent=channels.moment(message, "date" if edited is None else "edit_date"),
        attachments=attachments,
        edits="" if edited is None else itself,
        to_agent=kind is ChatType.DIRECT or _is_to(bot, message),
    )


def _sender(message: Mapping[str, Any]) -> Sender | None:
    """Who wrote it: a person, or the chat in whose name an administrator writes; None for other bots, lest two bots
    answer each other for ever."""
    behalf = mapping(message, "sender_chat")
    if (chat := whole(behalf.get("id"))) is not None:
        return Sender(str(chat), text(behalf, "title"))
    person = mapping(message, "from")
    who = whole(person.get("id"))
    if who is None:
        raise ValueError("a message that nobody wrote")
    if person.get("is_bot") is True:
        return None
    names = (text(person, key) for key in ("first_name", "last_name"))
    return Sender(str(who), " ".join(name for name in names if name))


def _entities(message: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """The parts of the text that Telegram marked: kind, words, and the mark. Offsets count UTF-16 units."""
    words_key, key = ("text", "entities") if "text" in message else ("caption", "caption_entities")
    data = text(message, words_key, MOST_TEXT).encode("utf-16-le")
    found = []
    for mark in mappings(message, key, _MOST_ENTITIES):
        begin, length = whole(mark.get("offset")), whole(mark.get("length"))
        if begin is not None and length is not None and begin >= 0 and length > 0:
            words = data[2 * begin : 2 * (begin + length)].decode("utf-16-le", "replace")
            found.append((text(mark, "type"), words, mark))
    return found


def _is_to(bot: Bot, message: Mapping[str, Any]) -> bool:
    """Whether a message in a group mentions the bot, replies to it, or is a command for it."""
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


def _text(message: Mapping[str, Any], bot: Bot) -> str:
    """What was said, without the bot's name where it begins with that: ``/new@name`` is ``/new``."""
    said = text(message, "text" if "text" in message else "caption", MOST_TEXT)
    if bot.username:
        name = re.escape(bot.username)
        bare = re.sub(rf"\A\s*@{name}\b[\s,:]*", "", said, flags=re.IGNORECASE)
        said = re.sub(rf"\A(/\w{{1,32}})@{name}\b", r"\1", bare, flags=re.IGNORECASE) or said
    return said or text(mapping(message, "sticker"), "emoji")


def _attachments(message: Mapping[str, Any]) -> tuple[Attachment, ...]:
    """Its files. An animation comes as a document, too; of a photo the largest size is taken."""
    found = []
    for key, (name, media_type) in _FILES.items():
        if key != "animation" or "document" not in message:
            found.append(_attachment(mapping(message, key), name, media_type))
    sizes = mappings(message, "photo", _MOST_SIZES)
    largest = max(sizes, key=lambda size: whole(size.get("width")) or 0, default={})
    found.append(_attachment(largest, "photo.jpg", "image/jpeg"))
    return tuple(one for one in found if one)


def _attachment(file: Mapping[str, Any], name: str, media_type: str) -> Attachment | None:
    source = text(file, "file_id", _MOST_SOURCE)
    if not source:
        return None
    return Attachment(
        channels.file_name(file, "file_name", name),
        text(file, "mime_type") or media_type,
        whole(file.get("file_size")),
        source,
    )


# ----------------------------------------------------------------------------
# Telegram, by long polling: https://core.telegram.org/bots/api. Nothing of this machine need be
# reached from outside.
#
# Telegram keeps updates for a day until they are confirmed, which is what asking for those after them
# does.


_POLL_SECONDS = 25
_GRACE_SECONDS = 10
_MOST_UPDATES = 100
_ALLOWED = ["message", "edited_message"]
_OFFSET_LASTS = timedelta(days=1)
"""Telegram may begin anew with the numbers of updates after a week without any; it keeps none for longer than a day."""
_PAUSE_SECONDS = 1.0
"""Before asking again, where an answer without updates came at once."""
_MOST_MOVES = 200
_MOST_SAID = 300
_WRONG_TOKEN = (401, 404)
_CONFLICT = 409
_BLOCKED = 403
_TOO_MANY = 429


class Telegram:
    """One bot."""

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
        self.left_out = LeftOut(setup.tell)

    async def run(self, inbox: Inbox) -> None:
        """Ask for updates for ever. A poll that fails is tried again at once; if that fails, it is the gateway's."""
        await self._introduce()
        self._first_ids = _read_moves(inbox.state("moved"))
        offset = self._kept_offset(inbox)
        has_failed = False
        while True:
            began = asyncio.get_running_loop().time()
            try:
                updates = await self._poll(offset)
            except _Conflict:
                raise
            except ChannelUnavailable as error:
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
        """Send a text as it is, in groups as a reply. A group that has moved gets it where it is now."""
        chat = self._present_id(outgoing.chat.id)
        try:
            sent = await self._call("sendMessage", **_message(outgoing, chat))
        except _Moved as error:
            self._note_move(chat, error.target)
            chat = error.target
            sent = await self._call("sendMessage", **_message(outgoing, chat))
        return message_id(self._bot, chat, whole(sent.get("message_id")) or 0)

    async def show_typing(self, chat: Chat) -> None:
        """Five seconds of typing."""
        asked = {"chat_id": whole(self._present_id(chat.id)), "action": "typing"} | _thread(chat)
        with suppress(NacreError):
            await self._call("sendChatAction", **asked)

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """Fetch a file; bots get none of more than 20 MB."""
        file = await self._call("getFile", file_id=attachment.source)
        if (whole(file.get("file_size")) or 0) > most_bytes:
            raise ChannelRefused(f"the file is larger than {most_bytes} bytes")
        path = quote(text(file, "file_path", 1_000))
        if not path or ".." in path.split("/"):
            raise ChannelRefused("Telegram named no place of the file")
        await self._api.download(
            f"{self._base}/file/bot{self._path_token}/{path}", target, most_bytes, {}
        )

    async def close(self) -> None:
        """Let go of connections."""
        await self._api.close()

    async def _introduce(self) -> None:
        me = await self._call("getMe")
        self._bot = Bot(self._bot.id, text(me, "username"))
        if (
            self._setup.options.get("groups") == "all"
            and me.get("can_read_all_group_messages") is not True
        ):
            self._setup.tell(
                "in groups Telegram shows the bot only what is said to it: @BotFather, /setprivacy"
            )

    async def _poll(self, offset: int | None) -> list[Mapping[str, Any]]:
        asked: dict[str, Any] = {
            "timeout": _POLL_SECONDS,
            "limit": _MOST_UPDATES,
            "allowed_updates": _ALLOWED,
        }
        if offset is not None:
            asked["offset"] = offset
        answer = await self._request("getUpdates", asked, _POLL_SECONDS + _GRACE_SECONDS)
        if not isinstance(answer.get("result"), list):
            raise _strange()
        return [one if isinstance(one, dict) else {} for one in answer["result"]]

    async def _receive(
        self, inbox: Inbox, updates: Sequence[Mapping[str, Any]], offset: int | None
    ) -> int:
        """Keep a batch in the order in which it was written; the offset that confirms it."""
        numbered: dict[int, Mapping[str, Any]] = {}
        for update in updates:
            if (number := whole(update.get("update_id"))) is None:
                self.left_out.note("an update without a number")
            else:
                numbered[number] = update
        if not numbered:
            raise _strange()
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

    def _incoming(self, update: Mapping[str, Any]) -> Incoming | None:
        if move := moved(update):
            self._note_move(*move)
        try:
            return incoming(update, self._setup.name, self._bot, self._first_ids)
        except ValueError:
            self.left_out.note("an update")
            return None

    @property
    def _offset_name(self) -> str:
        return f"offset_{self._bot.id}"  # another bot's updates have other numbers

    def _kept_offset(self, inbox: Inbox) -> int | None:
        value = whole(inbox.state(self._offset_name).partition(" ")[0])
        return None if value is None or self._is_old(inbox) else value

    def _is_old(self, inbox: Inbox) -> bool:
        at = whole(inbox.state(self._offset_name).partition(" ")[2])
        return at is not None and self._clock() - datetime.fromtimestamp(at, UTC) > _OFFSET_LASTS

    def _note_move(self, old: str, new: str) -> None:
        self._first_ids[new] = self._first_ids.get(old, old)
        while len(self._first_ids) > _MOST_MOVES:
            del self._first_ids[next(iter(self._first_ids))]

    def _present_id(self, first_id: str) -> str:
        """Where a chat is now: the last place it moved to."""
        places = [new for new, first in self._first_ids.items() if first == first_id]
        return places[-1] if places else first_id

    async def _call(self, method: str, **asked: Any) -> Mapping[str, Any]:
        return mapping(await self._request(method, asked), "result")

    async def _request(self, method: str, asked: Any, seconds: float = 30.0) -> Mapping[str, Any]:
        reply = await self._api.ask(
            "POST", f"/bot{self._path_token}/{method}", json=asked, seconds=seconds
        )
        if reply.status < 300 and reply.body.get("ok") is True:
            return reply.body
        raise self._error(
            reply, text(reply.body, "description", _MOST_SAID).replace(self._token, "…")
        )

    def _error(self, reply: Reply, said: str) -> NacreError:
        if (
            reply.body.get("ok") is not False
        ):  # a proxy's page, whatever its status: no word of Telegram's
            return ChannelUnavailable(
                f"Telegram answered with status {reply.status}", retry_after=reply.retry_after
            )
        parameters = mapping(reply.body, "parameters")
        if reply.status in _WRONG_TOKEN:
            hint = f"gateway.channels.{self._setup.name}.token is what @BotFather gave: <number>:<letters>"
            return ChannelRefused("Telegram does not know the token", hint=hint)
        if reply.status == _CONFLICT:
            return _conflict(said)
        if reply.status == _TOO_MANY:
            wait = whole(parameters.get("retry_after"))
            return ChannelUnavailable(
                f"Telegram: {said}", retry_after=reply.retry_after if wait is None else wait
            )
        if (target := whole(parameters.get("migrate_to_chat_id"))) is not None:
            return _Moved(str(target))
        if reply.status == _BLOCKED:
            return ChannelRefused(
                f"Telegram: {said}", hint="the bot was blocked, or is no member of the group"
            )
        return (ChannelRefused if reply.status < 500 else ChannelUnavailable)(f"Telegram: {said}")


class _Conflict(ChannelUnavailable):
    """Somebody else gets the bot's updates."""


class _Moved(ChannelRefused):
    """The group is a supergroup now, with another id."""

    def __init__(self, target: str) -> None:
        super().__init__("the group moved")
        self.target = target


def _conflict(said: str) -> ChannelUnavailable:
    if "webhook" in said.casefold():
        hint = "remove it: curl https://api.telegram.org/bot$TELEGRAM_BOT_TOKEN/deleteWebhook"
        return _Conflict("Telegram delivers this bot's messages to a webhook", hint=hint)
    hint = "stop the other program, or make another bot; a token that leaked is renewed by @BotFather: /revoke"
    return _Conflict("another program receives this bot's messages", hint=hint)


def _strange() -> ChannelUnavailable:
    return ChannelUnavailable("Telegram answered what is no list of updates")


def _message(outgoing: Outgoing, chat: str) -> dict[str, Any]:
    number = whole(chat)
    if number is None:
        raise ChannelRefused(f"Telegram has no chat {chat!r}")
    asked = {
        "chat_id": number,
        "text": outgoing.text,
        "link_preview_options": {"is_disabled": True},
    }
    replied = number_in(outgoing.reply_to, chat)
    if outgoing.chat.kind is ChatType.GROUP and replied is not None:
        asked["reply_parameters"] = {"message_id": replied, "allow_sending_without_reply": True}
    return asked | _thread(outgoing.chat)


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
        Option("token", "the bot's token, from @BotFather", is_secret=True, is_required=True),
        Option("base_url", "where the Bot API is", default="https://api.telegram.org"),
    ),
    identity="the number of a Telegram user: 5054",
)
