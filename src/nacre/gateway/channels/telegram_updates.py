"""Updates of Telegram's Bot API as messages: https://core.telegram.org/bots/api#message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nacre.gateway.channels import untrusted
from nacre.gateway.channels.untrusted import MOST_TEXT, mapping, mappings, text, whole
from nacre.values.gateway.message import Attachment, Chat, ChatType, Incoming, Sender

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
    target, source = whole(message.get("migrate_to_chat_id")), whole(message.get("migrate_from_chat_id"))
    if here is None or (target is None and source is None):
        return None
    return (str(here), str(target)) if target is not None else (str(source), str(here))


def incoming(update: Mapping[str, Any], channel: str, bot: Bot, first_ids: Mapping[str, str]) -> Incoming | None:
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
    thread = whole(message.get("message_thread_id")) if message.get("is_topic_message") is True else None
    return Incoming(
        id=itself if edited is None else f"{itself}/{update.get('update_id')}",
        chat=Chat(channel, first_ids.get(str(chat_id), str(chat_id)), kind, thread=str(thread or "")),
        sender=sender,
        text=said,
        sent=untrusted.moment(message, "date" if edited is None else "edit_date"),
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
        untrusted.file_name(file, "file_name", name),
        text(file, "mime_type") or media_type,
        whole(file.get("file_size")),
        source,
    )
