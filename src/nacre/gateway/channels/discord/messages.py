"""From Discord's messages to nacre's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from nacre.gateway.channels.untrusted import file_name, identifier, mapping, mappings, number, text
from nacre.values.gateway.message import Attachment, Chat, ChatType, Incoming, Sender

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
        channel, identifier(message, "channel_id"), ChatType.GROUP if is_group else ChatType.DIRECT, account=guild
    )


def _is_to(message: Mapping[str, Any], bot: str) -> bool:
    mentioned = any(one.get("id") == bot for one in mappings(message, "mentions", 100))
    return mentioned or mapping(mapping(message, "referenced_message"), "author").get("id") == bot


def _readable(words: str, message: Mapping[str, Any], bot: str) -> str:
    """The text with names where Discord writes ids; a mention of the bot at its start says nothing and goes."""
    words = re.sub(rf"^\s*<@!?{re.escape(bot)}>\s*", "", words) if bot else words
    names = {str(one.get("id")): _name(one, mapping(one, "member")) for one in mappings(message, "mentions", 100)}
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
