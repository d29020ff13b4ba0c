"""What programs send and are sent, as JSON."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from nacre.errors import InvalidInput
from nacre.platform import json_values
from nacre.values.gateway.message import Attachment, Chat, ChatType, Incoming, Outgoing, Sender

MOST_BYTES = 262_144
"""The largest body of a request, and the largest message over a WebSocket."""

_NO_CONTROLS = r"\A[^\x00-\x1f\x7f]*\Z"
_PLAIN = r"\A(?!\s)[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+(?<!\s)\Z"
"""An id is what it looks like: the owner reads it and types it."""

_MOST_TOLD = 200

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=_PLAIN)]
Name = Annotated[str, msgspec.Meta(max_length=200, pattern=_NO_CONTROLS)]
Url = Annotated[str, msgspec.Meta(min_length=1, max_length=2_000, pattern=_NO_CONTROLS)]
Text = Annotated[str, msgspec.Meta(max_length=32_000)]

T = TypeVar("T")


class _Object(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fields that are not known are refused, so that nothing lies deeper than what is listed here."""


class SenderFields(_Object, frozen=True):
    """Who wrote: an id that the program vouches for."""

    id: Id
    name: Name = ""


class ChatFields(_Object, frozen=True):
    """Where it was written."""

    id: Id
    kind: ChatType = ChatType.DIRECT
    thread: Name = ""


class AttachmentFields(_Object, frozen=True):
    """A file that lies at a URL."""

    name: Id
    url: Url
    media_type: Name = ""


class Message(_Object, frozen=True):
    """One message. Without ``chat`` it is the sender's own, direct one."""

    id: Id
    text: Text
    sender: SenderFields
    chat: ChatFields | None = None
    attachments: Annotated[tuple[AttachmentFields, ...], msgspec.Meta(max_length=10)] = ()
    to_agent: bool = True

    def incoming(self, channel: str) -> Incoming:
        """The message as channels hand it over."""
        chat = self.chat or ChatFields(self.sender.id)
        return Incoming(
            self.id, Chat(channel, chat.id, chat.kind, thread=chat.thread), Sender(self.sender.id, self.sender.name),
            self.text, to_agent=self.to_agent,
            attachments=tuple(Attachment(one.name, one.media_type, source=one.url) for one in self.attachments),
        )  # fmt: skip


class AuthFrame(_Object, frozen=True, tag_field="type", tag="auth"):
    """The first frame of a connection."""

    t: Annotated[int, msgspec.Meta(ge=0, le=10**12)]
    v1: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class MessageFrame(Message, frozen=True, tag_field="type", tag="message"):
    """A message over a WebSocket."""


class ReceivedFrame(_Object, frozen=True, tag_field="type", tag="received"):
    """The program has the answer of that key."""

    key: Id


def decode(data: bytes, kind: type[T] | Any) -> T:
    """What was sent, checked. Raises InvalidInput."""
    try:
        found: T = json_values.parse(data, kind)
        return found
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput(str(error)[:_MOST_TOLD], hint="docs/gateway-channels.md has the fields") from error


def answer_of(outgoing: Outgoing) -> dict[str, Any]:
    """A part of an answer, as programs are sent it."""
    return {
        "key": outgoing.key, "chat": chat_of(outgoing.chat), "text": outgoing.text, "reply_to": outgoing.reply_to,
    }  # fmt: skip


def chat_of(chat: Chat) -> dict[str, str]:
    """A chat, as programs know it."""
    return {"id": chat.id, "kind": chat.kind.value, "thread": chat.thread}
