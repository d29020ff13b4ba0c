"""Notices of WhatsApp's Cloud API as messages: https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks.

Since 2026, people may hide their number: then they are known by an id that holds for one business only (BSUID).
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from nacre.base.ids import Clock, utc_now
from nacre.base.lazy import Module
from nacre.errors import ChannelRefused, ChannelUnavailable, NacreError, Unavailable
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
        failures += [
            said for status in mappings(value, "statuses", _MOST) if (said := _failure(status))
        ]
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
        found |= {
            who: name for key in ("wa_id", "user_id") if (who := text(contact, key, _MOST_ID))
        }
    return found


def _incoming(
    message: Mapping[str, Any], channel: str, number: Number, names: Mapping[str, str]
) -> Incoming | None:
    """One message; None for those that say nothing, as reactions and what the system tells. Raises ValueError."""
    ids = (text(message, key, _MOST_ID) for key in ("from", "from_user_id"))
    who = next((one for one in ids if one), "")
    itself, sent = text(message, "id", _MOST_ID), channels.moment(message, "timestamp")
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
    return Attachment(channels.file_name(file, "filename", name), kind, None, source)


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
    return f"WhatsApp did not deliver an answer: {said} ({channels.whole(error.get('code'))})"


# ----------------------------------------------------------------------------
# WhatsApp, by Meta's Cloud API: https://developers.facebook.com/docs/whatsapp/cloud-api.
#
# Meta delivers messages to a URL of the owner's, signed with the app's secret, again and again for up
# to seven days until
# it is answered with 200.


if TYPE_CHECKING:
    from starlette import requests, responses, routing
    from starlette.routing import BaseRoute
else:
    requests = Module("starlette.requests")
    responses = Module("starlette.responses")
    routing = Module("starlette.routing")

WINDOW = timedelta(hours=24)
"""So long after a person's last message WhatsApp allows free answers. What is older is left out: no answer to it could
be delivered, and a delivery that somebody recorded does nothing, however long ids are remembered."""

_MOST_BYTES = 3 * 1024 * 1024
"""Of a delivery; Meta's own limit."""
_RECEIVE_SECONDS = 10.0
"""Meta waits hardly longer; it delivers again what was not confirmed."""
_MOST_CHATS = 1_000
_MOST_SAID = 300
_BUSINESS_SCOPED = re.compile(r"[A-Z]{2}\.")
_MEDIA_HOSTS = ("fbsbx.com", "fbcdn.net", "facebook.com", "whatsapp.net")
"""Where Meta keeps files. The token goes to no other host."""

_LATER = {1, 2, 4, 80007, 130429, 131000, 131016, 131048, 131056, 131057, 133004}
_ACCESS = {0, 3, 10, 190, *range(200, 300)}
_PAIR_LIMIT, _PAIR_SECONDS = 131056, 6.0
_HINTS = {
    131047: "WhatsApp allows free answers for 24 hours after the person's last message",
    131026: "the number is not on WhatsApp, or its owner takes no messages of businesses",
    131030: "while the app is in development, add the number to its list of recipients",
    131062: "this message needs the person's number, which is hidden",
}


class WhatsApp:
    """One business number."""

    def __init__(self, setup: ChannelSetup, clock: Clock = utc_now) -> None:
        # Meta counts characters and does not say which; UTF-16 units are never fewer.
        self.limits = Limits(characters=4_096, utf16=True, typing_seconds=25.0)
        self._setup = setup
        self._clock = clock
        self._bearer = {"authorization": f"Bearer {setup.secrets['token']}"}
        self._base = str(setup.options["base_url"]).rstrip("/")
        self._api = WebApi("WhatsApp", self._base, self._bearer)
        self._number = Number(str(setup.options["phone_number_id"]))
        self._inbox: Inbox | None = None
        self._last: dict[str, str] = {}
        self.left_out = LeftOut(setup.tell)

    async def run(self, inbox: Inbox) -> None:
        """Ask for the number, which tries the token, then take what is delivered until cancelled."""
        shown = await self._call(
            "GET", quote(self._number.id, safe=""), fields="display_phone_number"
        )
        digits = re.sub(r"\D", "", text(shown, "display_phone_number"))
        self._number = Number(self._number.id, digits)
        self._inbox = inbox
        try:
            await asyncio.Event().wait()
        finally:
            self._inbox = None

    def routes(self) -> Sequence[BaseRoute]:
        """The callback URL: Meta asks with GET whether it is the owner's, and delivers with POST."""
        place = f"/{self._setup.name}"
        return [
            routing.Route(place, self._verify, methods=["GET"]),
            routing.Route(place, self._deliver, methods=["POST"]),
        ]

    async def send(self, outgoing: Outgoing) -> str:
        """Send a text, in groups as a reply."""
        is_group = outgoing.chat.kind is ChatType.GROUP
        to = "recipient" if not is_group and _BUSINESS_SCOPED.match(outgoing.chat.id) else "to"
        body: dict[str, Any] = {
            "messaging_product": "whatsapp",
            "recipient_type": "group" if is_group else "individual",
            to: outgoing.chat.id,
            "type": "text",
            "text": {"body": outgoing.text, "preview_url": False},
        }
        if is_group and outgoing.reply_to:
            body["context"] = {"message_id": outgoing.reply_to}
        sent = await self._call("POST", self._messages, body)
        return text(next(iter(mappings(sent, "messages", 1)), {}), "id", 1_000)

    async def show_typing(self, chat: Chat) -> None:
        """Mark the last message of the chat as read, and show that an answer is being written."""
        if last := self._last.get(chat.id):
            body = {"messaging_product": "whatsapp", "status": "read", "message_id": last}
            with suppress(NacreError):
                await self._call(
                    "POST", self._messages, {**body, "typing_indicator": {"type": "text"}}
                )

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """Ask where the file is, which holds for five minutes, and fetch it."""
        media = await self._call("GET", quote(attachment.source, safe=""))
        if (whole(media.get("file_size")) or 0) > most_bytes:
            raise ChannelRefused(f"the file is larger than {most_bytes} bytes")
        url = text(media, "url", 4_000)
        if not self._is_metas(url):
            raise ChannelRefused("WhatsApp named a place for the file that is not Meta's")
        await self._api.download(url, target, most_bytes, self._bearer)

    async def close(self) -> None:
        """Let go of connections."""
        await self._api.close()

    @property
    def _messages(self) -> str:
        return f"{quote(self._number.id, safe='')}/messages"

    def _is_metas(self, url: str) -> bool:
        try:
            asked, own = urlsplit(url), urlsplit(self._base)
            host = asked.hostname or ""
        except ValueError:
            return False
        if (asked.scheme, asked.netloc) == (own.scheme, own.netloc):
            return True
        return asked.scheme == "https" and any(
            host == name or host.endswith(f".{name}") for name in _MEDIA_HOSTS
        )

    async def _verify(self, request: requests.Request) -> responses.Response:
        asked = request.query_params
        token = self._setup.secrets["verify_token"].encode()
        is_owners = hmac.compare_digest(
            asked.get("hub.verify_token", "").encode("utf-8", "replace"), token
        )
        if asked.get("hub.mode") != "subscribe" or not is_owners:
            return responses.Response(status_code=403)
        challenge = asked.get("hub.challenge", "")[:_MOST_SAID]
        return responses.PlainTextResponse(challenge, headers={"x-content-type-options": "nosniff"})

    async def _deliver(self, request: requests.Request) -> responses.Response:
        """200 says that it is kept, or that delivering it again would not help."""
        body = await _body(request)
        if body is None:
            return responses.Response(status_code=413)
        if not self._is_signed(body, request.headers.get("x-hub-signature-256", "")):
            return responses.Response(status_code=401)
        try:
            payload = decode_object(body)
        except ValueError:
            self.left_out.note("a delivery")
            return responses.Response()
        notice = read(payload, self._setup.name, self._number, self.left_out)
        return responses.Response(status_code=200 if await self._receive(notice) else 503)

    def _is_signed(self, body: bytes, signature: str) -> bool:
        expected = hmac.new(self._setup.secrets["app_secret"].encode(), body, "sha256").hexdigest()
        return hmac.compare_digest(
            f"sha256={expected}".encode(), signature.encode("utf-8", "replace")
        )

    async def _receive(self, notice: Notice) -> bool:
        """Keep the messages; whether they are kept."""
        for failure in dict.fromkeys(notice.failures):
            self._setup.tell(failure)
        oldest = self._clock() - WINDOW
        fresh = [message for message in notice.messages if message.sent and message.sent >= oldest]
        if late := len(notice.messages) - len(fresh):
            self._setup.tell(
                f"{late} messages older than a day were left out: WhatsApp allows no answer to them"
            )
        if not fresh:
            return True
        if self._inbox is None:
            return False
        try:
            async with asyncio.timeout(_RECEIVE_SECONDS):
                await self._inbox.receive(fresh)
        except (TimeoutError, Unavailable):
            return False
        for message in fresh:
            self._last.pop(message.chat.id, None)
            self._last[message.chat.id] = message.id
        while len(self._last) > _MOST_CHATS:
            del self._last[next(iter(self._last))]
        return True

    async def _call(
        self, method: str, path: str, body: Any = None, **asked: str
    ) -> Mapping[str, Any]:
        reply = await self._api.ask(method, f"/{path}", json=body, params=asked or None)
        if reply.status < 300 and reply.body:
            return reply.body
        raise self._error(reply)

    def _error(self, reply: Reply) -> NacreError:
        error = mapping(reply.body, "error")
        code = whole(error.get("code"))
        said = text(mapping(error, "error_data"), "details", _MOST_SAID) or text(
            error, "message", _MOST_SAID
        )
        said = said.replace(self._setup.secrets["token"], "…")
        if code is None:  # a proxy's page, whatever its status: no word of Meta's
            return ChannelUnavailable(
                f"WhatsApp answered with status {reply.status}", retry_after=reply.retry_after
            )
        if code in _LATER or reply.status == 429:
            wait = _PAIR_SECONDS if code == _PAIR_LIMIT else reply.retry_after
            return ChannelUnavailable(f"WhatsApp: {said} ({code})", retry_after=wait)
        if code in _ACCESS or reply.status == 401:
            hint = "make a lasting token of a system user, with whatsapp_business_messaging; others end after a day"
            return ChannelRefused(f"WhatsApp refuses the token: {said} ({code})", hint=hint)
        if reply.status >= 500:
            return ChannelUnavailable(f"WhatsApp: {said} ({code})")
        return ChannelRefused(f"WhatsApp: {said} ({code})", hint=_HINTS.get(code))


async def _body(request: requests.Request) -> bytes | None:
    """The body, byte for byte; None where it is too large."""
    held = bytearray()
    async for chunk in request.stream():
        held += chunk
        if len(held) > _MOST_BYTES:
            return None
    return bytes(held)


KIND = ChannelKind(
    "whatsapp",
    "WhatsApp",
    WhatsApp,
    options=(
        Option("token", "the app's access token", is_secret=True, is_required=True),
        Option(
            "app_secret",
            "the app's secret, by which deliveries are signed",
            is_secret=True,
            is_required=True,
        ),
        Option(
            "verify_token",
            "what you wrote beside the callback URL",
            is_secret=True,
            is_required=True,
        ),
        Option("phone_number_id", "the id of the business number", is_required=True),
        Option(
            "base_url",
            "where the Graph API is, with its version",
            default="https://graph.facebook.com/v25.0",
        ),
    ),
    libraries=("starlette",),
    extra="web",
    identity="digits of a WhatsApp number, without +: 491700000000",
)
