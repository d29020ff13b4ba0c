"""Notices of WhatsApp's Cloud API as messages: https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks.

Since 2026, people may hide their number: then they are known by an id that holds for one business only (BSUID).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nacre.gateway.channels import untrusted
from nacre.gateway.channels.untrusted import MOST_TEXT, LeftOut, mapping, mappings, text
from nacre.values.gateway.message import Attachment, Chat, ChatType, Incoming, Sender

_MOST = 1_000
"""Of each list in a notice."""
_MOST_ID = 1_000
_FILES = {
    "image": ("photo.jpg", "image/jpeg"),
    "document": ("file", ""),
    "audio": ("audio.ogg", "audio/ogg"),
    "video": ("video.mp4", "video/mp4"),
    "sticker": ("sticker.webp", "image/webp"),
}
"""Types of messages that hold a file, with the name and media type of one that has none."""


@dataclass(frozen=True, slots=True)
class Number:
    """The business number that the agent answers at: its id, and itself where it is known."""

    id: str
    digits: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """What one delivery holds: messages, oldest first, and what WhatsApp says of answers that it did not deliver."""

    messages: tuple[Incoming, ...]
    failures: tuple[str, ...]


def read(payload: Mapping[str, Any], channel: str, number: Number, left_out: LeftOut) -> Notice:
    """What a delivery holds for one number; those for other numbers of the app are passed over."""
    messages: list[Incoming] = []
    failures: list[str] = []
    for value in _values(payload):
        if text(mapping(value, "metadata"), "phone_number_id") != number.id:
            continue
        names = _names(value)
        for message in mappings(value, "messages", _MOST):
            try:
                found = _incoming(message, channel, number, names)
            except ValueError:
                left_out.note("a message")
            else:
                messages += [found] if found else []
        failures += [said for status in mappings(value, "statuses", _MOST) if (said := _failure(status))]
    messages.sort(key=lambda message: message.sent.timestamp() if message.sent else 0)
    return Notice(tuple(messages), tuple(failures))


def _values(payload: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if payload.get("object") != "whatsapp_business_account":
        return
    for entry in mappings(payload, "entry", _MOST):
        for change in mappings(entry, "changes", _MOST):
            if change.get("field") == "messages":
                yield mapping(change, "value")


def _names(value: Mapping[str, Any]) -> dict[str, str]:
    """What people call themselves, by each of their ids."""
    found: dict[str, str] = {}
    for contact in mappings(value, "contacts", _MOST):
        name = text(mapping(contact, "profile"), "name")
        found |= {who: name for key in ("wa_id", "user_id") if (who := text(contact, key, _MOST_ID))}
    return found


def _incoming(message: Mapping[str, Any], channel: str, number: Number, names: Mapping[str, str]) -> Incoming | None:
    """One message; None for those that say nothing, as reactions and what the system tells. Raises ValueError."""
    ids = (text(message, key, _MOST_ID) for key in ("from", "from_user_id"))
    who = next((one for one in ids if one), "")
    itself, sent = text(message, "id", _MOST_ID), untrusted.moment(message, "timestamp")
    if not (who and itself and sent):
        raise ValueError("a message without an id, a time or a sender")
    kind = text(message, "type")
    said = _text(message, kind)
    attachment = _attachment(mapping(message, kind), *_FILES[kind]) if kind in _FILES else None
    if not (said or attachment):
        return None
    group = text(message, "group_id", _MOST_ID)
    return Incoming(
        id=itself,
        chat=Chat(channel, group or who, ChatType.GROUP if group else ChatType.DIRECT),
        sender=Sender(who, names.get(who, "")),
        text=said,
        sent=sent,
        attachments=(attachment,) if attachment else (),
        to_agent=not group or _is_to(message, said, number),
    )


def _text(message: Mapping[str, Any], kind: str) -> str:
    """The words of a message: what was written, a caption, the title of the button or the row that was chosen."""
    content = mapping(message, kind)
    if kind == "text":
        return text(content, "body", MOST_TEXT)
    if kind == "button":
        return text(content, "text", MOST_TEXT)
    if kind == "interactive":
        chosen = mapping(content, text(content, "type"))
        return text(chosen, "title") or text(chosen, "body", MOST_TEXT)
    if kind == "location":
        parts = [text(content, key) for key in ("name", "address")]
        at = (content.get("latitude"), content.get("longitude"))
        parts += [f"{degrees:.5f}" for degrees in at if isinstance(degrees, float)]
        return ", ".join(part for part in parts if part)
    return text(content, "caption", MOST_TEXT) if kind in _FILES else ""


def _attachment(file: Mapping[str, Any], name: str, media_type: str) -> Attachment | None:
    source = text(file, "id", _MOST_ID)
    if not source:
        return None
    kind = text(file, "mime_type").partition(";")[0] or media_type
    return Attachment(untrusted.file_name(file, "filename", name), kind, None, source)


def _is_to(message: Mapping[str, Any], said: str, number: Number) -> bool:
    """Whether a message in a group replies to the agent, or names its number."""
    replied = re.sub(r"\D", "", text(mapping(message, "context"), "from"))
    return bool(number.digits) and (replied == number.digits or f"@{number.digits}" in said)


def _failure(status: Mapping[str, Any]) -> str:
    """Why an answer that was sent was not delivered after all; empty for every other status."""
    if status.get("status") != "failed":
        return ""
    error = next(iter(mappings(status, "errors", 1)), {})
    said = text(mapping(error, "error_data"), "details", 300) or text(error, "title", 300)
    return f"WhatsApp did not deliver an answer: {said} ({untrusted.whole(error.get('code'))})"
