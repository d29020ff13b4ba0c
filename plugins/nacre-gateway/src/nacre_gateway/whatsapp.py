"""WhatsApp, with Meta's Cloud API: https://developers.facebook.com/docs/whatsapp/cloud-api.

Since 2026, people can hide their number. They then have a separate id for each business (BSUID).
"""

from __future__ import annotations

import asyncio
import hmac
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette import requests, responses, routing

from nacre.base.frozen import frozen
from nacre.base.ids import Clock, utc_now
from nacre.errors import ChannelRefusedError, ChannelUnavailableError, NacreError, UnavailableError
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

_MAX_ITEMS = 1_000
"""Maximum length of each list in a delivery."""
_MAX_ID = 1_000
_FILES = {
    "image": ("photo.jpg", "image/jpeg"),
    "document": ("file", ""),
    "audio": ("audio.ogg", "audio/ogg"),
    "video": ("video.mp4", "video/mp4"),
    "sticker": ("sticker.webp", "image/webp"),
}
"""Message types that contain a file, with default names and media types."""


@frozen
class Number:
    """The agent's business number: its id and, if known, its digits."""

    id: str
    digits: str = ""


@frozen
class Delivery:
    """The messages in a delivery, oldest first, and reports of undelivered answers."""

    messages: tuple[Incoming, ...]
    failures: tuple[str, ...]


def parse_delivery(
    payload: Fields, channel: str, number: Number, skipped: SkippedItems
) -> Delivery:
    """Return the messages and failures in a delivery. Skip entries for the app's other numbers."""
    messages: list[Incoming] = []
    failures: list[str] = []
    for value in _message_changes(payload):
        if text(mapping(value, "metadata"), "phone_number_id") != number.id:
            continue
        names = _names(value)
        for message in mappings(value, "messages", _MAX_ITEMS):
            incoming = skipped.parsed("a message", _incoming, message, channel, number, names)
            messages += [incoming] if incoming else []
        failures += [
            failure
            for status in mappings(value, "statuses", _MAX_ITEMS)
            if (failure := _failure(status))
        ]
    messages.sort(key=lambda message: message.sent.timestamp() if message.sent else 0)
    return Delivery(tuple(messages), tuple(failures))


def _message_changes(payload: Fields) -> Iterator[Fields]:
    if payload.get("object") != "whatsapp_business_account":
        return
    for entry in mappings(payload, "entry", _MAX_ITEMS):
        for change in mappings(entry, "changes", _MAX_ITEMS):
            if change.get("field") == "messages":
                yield mapping(change, "value")


def _names(value: Fields) -> dict[str, str]:
    names: dict[str, str] = {}
    for contact in mappings(value, "contacts", _MAX_ITEMS):
        name = text(mapping(contact, "profile"), "name")
        names |= {
            user: name for key in ("wa_id", "user_id") if (user := text(contact, key, _MAX_ID))
        }
    return names


def _incoming(
    message: Fields, channel: str, number: Number, names: Mapping[str, str]
) -> Incoming | None:
    """Convert a message. Return ``None`` if it has no content, as for reactions and system messages.

    Raises ValueError.
    """
    ids = (text(message, key, _MAX_ID) for key in ("from", "from_user_id"))
    sender_id = next((user_id for user_id in ids if user_id), "")
    own_id, sent = text(message, "id", _MAX_ID), channels.moment(message, "timestamp")
    if not (sender_id and own_id and sent):
        raise ValueError("a message without an id, a time or a sender")
    kind = text(message, "type")
    words = _text(message, kind)
    attachment = (
        _parse_attachment(mapping(message, kind), *_FILES[kind]) if kind in _FILES else None
    )
    if not (words or attachment):
        return None
    group = text(message, "group_id", _MAX_ID)
    replied = re.sub(r"\D", "", text(mapping(message, "context"), "from"))
    return Incoming(
        id=own_id,
        chat=Chat(channel, group or sender_id, ChatType.GROUP if group else ChatType.DIRECT),
        sender=Sender(sender_id, names.get(sender_id, "")),
        text=words,
        sent=sent,
        attachments=(attachment,) if attachment else (),
        to_agent=not group
        or (bool(number.digits) and (replied == number.digits or f"@{number.digits}" in words)),
    )


def _text(message: Fields, kind: str) -> str:
    """Return the text of a message: its words, its caption, or the title of the chosen button or row."""
    content = mapping(message, kind)
    if kind == "text":
        return text(content, "body", MAX_TEXT)
    if kind == "button":
        return text(content, "text", MAX_TEXT)
    if kind == "interactive":
        chosen = mapping(content, text(content, "type"))
        return text(chosen, "title") or text(chosen, "body", MAX_TEXT)
    if kind == "location":
        parts = [text(content, key) for key in ("name", "address")]
        at = (content.get("latitude"), content.get("longitude"))
        parts += [f"{degrees:.5f}" for degrees in at if isinstance(degrees, float)]
        return ", ".join(part for part in parts if part)
    return text(content, "caption", MAX_TEXT) if kind in _FILES else ""


def _parse_attachment(file: Fields, name: str, media_type: str) -> Attachment | None:
    source = text(file, "id", _MAX_ID)
    if not source:
        return None
    kind = text(file, "mime_type").partition(";")[0] or media_type
    return Attachment(channels.file_name(file, "filename", name), kind, None, source)


def _failure(status: Fields) -> str:
    """Return why an answer was not delivered, or an empty string if the status is no failure."""
    if status.get("status") != "failed":
        return ""
    error = next(iter(mappings(status, "errors", 1)), {})
    reason = text(mapping(error, "error_data"), "details", 300) or text(error, "title", 300)
    return f"WhatsApp did not deliver an answer: {reason} ({channels.whole(error.get('code'))})"


# ----------------------------------------------------------------------------
# Meta delivers messages to the owner's URL and signs them with the app's secret. It repeats each
# delivery for up to seven days until the response is 200.


WINDOW = timedelta(hours=24)
"""Time after a person's last message during which WhatsApp allows free answers.

Older messages are skipped, because an answer could not be delivered. This also makes repeated
deliveries of old messages harmless.
"""

_MAX_BYTES = 3 * 1024 * 1024
"""Meta's maximum size of a delivery."""
_RECEIVE_SECONDS = 10.0
"""Time limit in seconds for receiving a delivery. Meta soon repeats unconfirmed deliveries."""
_MAX_CHATS = 1_000
_MAX_DETAILS = 300
_BUSINESS_SCOPED = re.compile(r"[A-Z]{2}\.")
_MEDIA_HOSTS = ("fbsbx.com", "fbcdn.net", "facebook.com", "whatsapp.net")
"""Meta's hosts for files. The token is not sent to other hosts."""

_TEMPORARY_ERRORS = {1, 2, 4, 80007, 130429, 131000, 131016, 131048, 131056, 131057, 133004}
_TOKEN_ERRORS = {0, 3, 10, 190, *range(200, 300)}
_PAIR_LIMIT, _PAIR_SECONDS = 131056, 6.0
_HINTS = {
    131047: "WhatsApp allows free answers for 24 hours after the person's last message",
    131026: "the number is not on WhatsApp, or accepts no messages from businesses",
    131030: "while the app is in development, add the number to its list of recipients",
    131062: "this message needs the person's number, which is hidden",
}


class WhatsApp(channels.Listening):
    """A business number."""

    def __init__(self, setup: ChannelSetup, clock: Clock = utc_now) -> None:
        # Meta counts characters without defining them. UTF-16 units are never fewer.
        self.limits = Limits(characters=4_096, utf16=True, typing_seconds=25.0)
        self._setup = setup
        self._clock = clock
        self._bearer = {"authorization": f"Bearer {setup.secrets['token']}"}
        self._base = str(setup.options["base_url"]).rstrip("/")
        self._api = WebApi("WhatsApp", self._base, self._bearer)
        self._number = Number(str(setup.options["phone_number_id"]))
        self._last: dict[str, str] = {}
        self.skipped = SkippedItems(setup.log)

    async def run(self, inbox: Inbox) -> None:
        """Receive deliveries until cancelled.

        First check the token by fetching the business number.
        """
        account = await self._call(
            "GET", quote(self._number.id, safe=""), fields="display_phone_number"
        )
        digits = re.sub(r"\D", "", text(account, "display_phone_number"))
        self._number = Number(self._number.id, digits)
        await super().run(inbox)

    def routes(self) -> Sequence[routing.BaseRoute]:
        """Return the routes of the callback URL. Meta verifies the URL with GET and delivers with POST."""
        place = f"/{self._setup.name}"
        return [
            routing.Route(place, self._verify, methods=["GET"]),
            routing.Route(place, self._deliver, methods=["POST"]),
        ]

    async def send(self, outgoing: Outgoing) -> str:
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
        """Mark the last message in the chat as read, and show that an answer is being written."""
        if last := self._last.get(chat.id):
            body = {"messaging_product": "whatsapp", "status": "read", "message_id": last}
            with suppress(NacreError):
                await self._call(
                    "POST", self._messages, {**body, "typing_indicator": {"type": "text"}}
                )

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """Request the file's URL, which is valid for five minutes, and download the file."""
        media = await self._call("GET", quote(attachment.source, safe=""))
        if (whole(media.get("file_size")) or 0) > most_bytes:
            raise ChannelRefusedError(f"the file is larger than {most_bytes} bytes")
        url = text(media, "url", 4_000)
        self._api.require_own(url, "Meta", *_MEDIA_HOSTS)
        await self._api.download(url, target, most_bytes, self._bearer)

    async def close(self) -> None:
        await self._api.close()

    @property
    def _messages(self) -> str:
        return f"{quote(self._number.id, safe='')}/messages"

    async def _verify(self, request: requests.Request) -> responses.Response:
        query = request.query_params
        token = self._setup.secrets["verify_token"].encode()
        is_owner = hmac.compare_digest(
            query.get("hub.verify_token", "").encode("utf-8", "replace"), token
        )
        if query.get("hub.mode") != "subscribe" or not is_owner:
            return responses.Response(status_code=403)
        challenge = query.get("hub.challenge", "")[:_MAX_DETAILS]
        return responses.PlainTextResponse(challenge, headers={"x-content-type-options": "nosniff"})

    async def _deliver(self, request: requests.Request) -> responses.Response:
        """Store the messages in a delivery.

        The status 200 tells Meta not to repeat the delivery.
        """
        body = await _read_body(request)
        if body is None:
            return responses.Response(status_code=413)
        expected = hmac.new(self._setup.secrets["app_secret"].encode(), body, "sha256").hexdigest()
        if not hmac.compare_digest(
            f"sha256={expected}".encode(),
            request.headers.get("x-hub-signature-256", "").encode("utf-8", "replace"),
        ):
            return responses.Response(status_code=401)
        try:
            payload = decode_object(body)
        except ValueError:
            self.skipped.note("a delivery")
            return responses.Response()
        delivery = parse_delivery(payload, self._setup.name, self._number, self.skipped)
        return responses.Response(status_code=200 if await self._receive(delivery) else 503)

    async def _receive(self, delivery: Delivery) -> bool:
        for failure in dict.fromkeys(delivery.failures):
            self._setup.log(failure)
        oldest = self._clock() - WINDOW
        fresh = [
            message for message in delivery.messages if message.sent and message.sent >= oldest
        ]
        if late := len(delivery.messages) - len(fresh):
            self._setup.log(
                f"{late} messages older than a day were skipped: WhatsApp allows no answers to them"
            )
        if not fresh:
            return True
        if self._inbox is None:
            return False
        try:
            async with asyncio.timeout(_RECEIVE_SECONDS):
                await self._inbox.receive(fresh)
        except (TimeoutError, UnavailableError):
            return False
        for message in fresh:
            self._last.pop(message.chat.id, None)
            self._last[message.chat.id] = message.id
        while len(self._last) > _MAX_CHATS:
            del self._last[next(iter(self._last))]
        return True

    async def _call(self, method: str, path: str, body: Any = None, **params: str) -> Fields:
        reply = await self._api.ask(method, f"/{path}", json=body, params=params or None)
        if reply.status < 300 and reply.body:
            return reply.body
        error = mapping(reply.body, "error")
        code = whole(error.get("code"))
        message = text(mapping(error, "error_data"), "details", _MAX_DETAILS) or text(
            error, "message", _MAX_DETAILS
        )
        message = message.replace(self._setup.secrets["token"], "…")
        if code is None:  # not from Meta, but for example from a proxy
            raise ChannelUnavailableError(
                f"WhatsApp answered with status {reply.status}", retry_after=reply.retry_after
            )
        if code in _TEMPORARY_ERRORS or reply.status == 429:
            wait = _PAIR_SECONDS if code == _PAIR_LIMIT else reply.retry_after
            raise ChannelUnavailableError(f"WhatsApp: {message} ({code})", retry_after=wait)
        if code in _TOKEN_ERRORS or reply.status == 401:
            hint = "create a permanent system user token with whatsapp_business_messaging; others expire after a day"
            raise ChannelRefusedError(f"WhatsApp refused the token: {message} ({code})", hint=hint)
        if reply.status >= 500:
            raise ChannelUnavailableError(f"WhatsApp: {message} ({code})")
        raise ChannelRefusedError(f"WhatsApp: {message} ({code})", hint=_HINTS.get(code))


async def _read_body(request: requests.Request) -> bytes | None:
    """Return the unchanged body, or ``None`` if it is too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_BYTES:
            return None
    return bytes(body)


KIND = ChannelKind(
    "whatsapp",
    "WhatsApp",
    WhatsApp,
    options=(
        Option("token", "access token of the app", is_secret=True, is_required=True),
        Option(
            "app_secret", "app secret, which signs deliveries", is_secret=True, is_required=True
        ),
        Option(
            "verify_token",
            "verify token entered with the callback URL",
            is_secret=True,
            is_required=True,
        ),
        Option("phone_number_id", "id of the business number", is_required=True),
        Option(
            "base_url",
            "address of the Graph API, with its version",
            default="https://graph.facebook.com/v25.0",
        ),
    ),
    libraries=("starlette",),
    extra="web",
    identity="digits of a WhatsApp number, without +: 491700000000",
)
