"""From Slack's events to nacre's messages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from nacre.gateway.channels.slack.mrkdwn import readable
from nacre.gateway.channels.untrusted import file_name, identifier, mapping, mappings, number, text
from nacre.values.gateway.message import Attachment, Chat, ChatType, Incoming, Sender

MOST_CHARACTERS = 40_000
"""Of one message: Slack takes no more."""
_MOST_FILES = 10
_WRITTEN = ("", "file_share", "thread_broadcast", "me_message")
"""Subtypes of messages that people write."""


def incoming(channel: str, payload: Mapping[str, Any], bot: str) -> Incoming | None:
    """The message of an event; None for what no person wrote, for what is empty, and for other events.

    A mention comes as two events of one message, which have one id. An edit has an id of its own. Raises ValueError
    where it is malformed.
    """
    event = mapping(payload, "event")
    if event.get("type") not in ("message", "app_mention"):
        return None
    subtype, message = text(event, "subtype"), event
    if subtype == "message_changed":
        message = mapping(event, "message")
        if not _is_edited(message, mapping(event, "previous_message")):
            return None
        subtype = text(message, "subtype")
    if subtype not in _WRITTEN or message.get("bot_id") or message.get("user") in (None, bot):
        return None
    return _incoming(channel, text(payload, "team_id"), event, message, bot)


def time_of(message: str) -> str:
    """Slack's own name of a message that nacre has: its time in its channel."""
    return message.split(":")[1]


def _incoming(
    channel: str, team: str, event: Mapping[str, Any], message: Mapping[str, Any], bot: str
) -> Incoming | None:  # fmt: skip
    raw = text(message, "text", MOST_CHARACTERS)
    files = tuple(_attachment(one) for one in mappings(message, "files", _MOST_FILES))
    words = readable(raw, bot)
    if not (words or files):
        return None
    place, ts = identifier(event, "channel"), identifier(message, "ts")
    is_direct = event.get("channel_type") == "im" or ("channel_type" not in event and place.startswith("D"))
    thread = identifier(message, "thread_ts") if message.get("thread_ts") else ""
    edited = "" if message is event else identifier(mapping(message, "edited"), "ts")
    return Incoming(
        id=f"{place}:{ts}:{edited}" if edited else f"{place}:{ts}",
        chat=Chat(
            channel, place, ChatType.DIRECT if is_direct else ChatType.GROUP, team, "" if thread == ts else thread
        ),
        sender=Sender(_sender(team, message)),
        text=words,
        sent=_time(edited or ts),
        attachments=files,
        edits=f"{place}:{ts}" if edited else "",
        to_agent=is_direct or f"<@{bot}" in raw or (bool(bot) and message.get("parent_user_id") == bot),
    )


def _is_edited(message: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether a person changed the text: Slack tells of previews of links, too."""
    return bool(mapping(message, "edited")) and message.get("text") != before.get("text")


def _sender(team: str, message: Mapping[str, Any]) -> str:
    """Ids are unique in a workspace only: that of a guest from another one is told with it."""
    user = identifier(message, "user")
    home = text(message, "user_team") or text(message, "team")
    return user if not home or home == team else f"{identifier({'team': home}, 'team')}.{user}"


def _attachment(file: Mapping[str, Any]) -> Attachment:
    size = number(file, "size")
    return Attachment(
        name=file_name(file, "name", "file"),
        media_type=text(file, "mimetype", 100),
        size=None if size is None else int(size),
        source=text(file, "url_private_download", 2_000) or text(file, "url_private", 2_000),
    )


def _time(ts: str) -> datetime | None:
    try:
        return datetime.fromtimestamp(float(ts), UTC)
    except (ValueError, OverflowError, OSError):
        return None
