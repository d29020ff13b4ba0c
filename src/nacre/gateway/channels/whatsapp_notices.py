"""Notices of WhatsApp's Cloud API as messages: https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks.

Since 2026, people may hide their number: then they are known by an id that holds for one business only (BSUID).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nacre.gateway.channels import untrusted
from nacre.gateway.channels.untrusted import LeftOut, mapping, sequence, text
from nacre.values.gateway.message import Attachment, Chat, ChatType, Incoming, Sender

_MOST = 1_000
"""Of each list in a notice."""
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


def read(payload: object, channel: str, number: Number, left_out: LeftOut) -> Notice:
    """What a delivery holds for one number; those for other numbers of the app are passed over."""
    messages: list[Incoming] = []
    failures: list[str] = []
    for value in _values(payload):
        if text(mapping(value.get("metadata")).get("phone_number_id")) != number.id:
            continue
        names = _names(value)
        for message in sequence(value.get("messages"), _MOST):
            try:
                found = _incoming(message, channel, number, names)
            except ValueError:
                left_out.note("a message")
            else:
                messages += [found] if found else []
        failures += [said for status in sequence(value.get("statuses"), _MOST) if (said := _failure(mapping(status)))]
    messages.sort(key=lambda message: message.sent.timestamp() if message.sent else 0)
    return Notice(tuple(messages), tuple(failures))


def _values(payload: object) -> Iterator[Mapping[str, Any]]:
    if mapping(payload).get("object") != "whatsapp_business_account":
        return
    for entry in sequence(mapping(payload).get("entry"), _MOST):
        for change in sequence(mapping(entry).get("changes"), _MOST):
            if mapping(change).get("field") == "messages":
                yield mapping(change.get("value"))


def _names(value: Mapping[str, Any]) -> dict[str, str]:
    """What people call themselves, by each of their ids."""
    found: dict[str, str] = {}
    for contact in map(mapping, sequence(value.get("contacts"), _MOST)):
        name = text(mapping(contact.get("profile")).get("name"), untrusted.MOST_NAME)
        found |= {who: name for key in ("wa_id", "user_id") if (who := text(contact.get(key), untrusted.MOST_ID))}
    return found


def _incoming(value: object, channel: str, number: Number, names: Mapping[str, str]) -> Incoming | None:
    """One message; None for those that say nothing, as reactions and what the system tells. Raises ValueError."""
    message = mapping(value)
    ids = (text(message.get(key), untrusted.MOST_ID) for key in ("from", "from_user_id"))
    who = next((one for one in ids if one), "")
    itself, sent = text(message.get("id"), untrusted.MOST_ID), untrusted.moment(message.get("timestamp"))
    if not (who and itself and sent):
        raise ValueError("a message without an id, a time or a sender")
    kind = text(message.get("type"), untrusted.MOST_NAME)
    said = _text(message, kind)
    attachment = _attachment(mapping(message.get(kind)), *_FILES[kind]) if kind in _FILES else None
    if not (said or attachment):
        return None
    group = text(message.get("group_id"), untrusted.MOST_ID)
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
    content = mapping(message.get(kind))
    if kind == "text":
        return text(content.get("body"))
    if kind == "button":
        return text(content.get("text"))
    if kind == "interactive":
        chosen = mapping(content.get(text(content.get("type"), untrusted.MOST_NAME)))
        return text(chosen.get("title")) or text(chosen.get("body"))
    if kind == "location":
        place = ", ".join(text(content.get(key), untrusted.MOST_NAME) for key in ("name", "address") if key in content)
        at = ", ".join(text(str(content.get(key)), 20) for key in ("latitude", "longitude"))
        return f"{place} ({at})".strip()
    return text(content.get("caption")) if kind in _FILES else ""


def _attachment(file: Mapping[str, Any], name: str, media_type: str) -> Attachment | None:
    source = text(file.get("id"), untrusted.MOST_ID)
    if not source:
        return None
    kind = text(file.get("mime_type"), untrusted.MOST_NAME).partition(";")[0] or media_type
    return Attachment(untrusted.file_name(file.get("filename"), name), kind, None, source)


def _is_to(message: Mapping[str, Any], said: str, number: Number) -> bool:
    """Whether a message in a group replies to the agent, or names its number."""
    replied = re.sub(r"\D", "", text(mapping(message.get("context")).get("from"), untrusted.MOST_NAME))
    return bool(number.digits) and (replied == number.digits or f"@{number.digits}" in said)


def _failure(status: Mapping[str, Any]) -> str:
    """Why an answer that was sent was not delivered after all; empty for every other status."""
    if status.get("status") != "failed":
        return ""
    error = mapping(next(iter(sequence(status.get("errors"), 1)), None))
    said = text(mapping(error.get("error_data")).get("details"), 300) or text(error.get("title"), 300)
    return f"WhatsApp did not deliver an answer: {said} ({untrusted.whole(error.get('code'))})"
