"""The channel for any program that knows a secret, over HTTP."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from nacre.base import json as json_values
from nacre.base.frozen import frozen
from nacre.base.serving import Refusal
from nacre.errors import (
    ChannelRefusedError,
    ChannelUnavailableError,
    InvalidInputError,
    InvalidSettingsError,
    NacreError,
)
from nacre.values.gateway import Attachment, Chat, ChatType, Incoming, Limits, Outgoing, Sender
from nacre_gateway.channels import (
    ChannelKind,
    ChannelSetup,
    Fields,
    Listening,
    Option,
    WebApi,
)

TAKE_SECONDS = 10.0
"""Maximum time for a program to receive an answer, in seconds."""

_MAX_WAITING = 50
"""Maximum number of waiting requests. The server handles 64 requests at a time."""


class Waiters:
    """The requests that wait for an answer, by chat."""

    def __init__(self) -> None:
        self._by_chat: dict[tuple[str, str], list[Waiter]] = {}

    async def give(self, chat: Chat, answer: Fields) -> bool:
        """Give an answer to all requests that wait in the chat. Return True if one received it."""
        waiters = self._by_chat.get((chat.id, chat.thread), ())
        return any(await asyncio.gather(*(waiter.give(answer) for waiter in tuple(waiters))))

    @contextmanager
    def waiting(self, chat: Chat, *, should_wait: bool) -> Iterator[Waiter | None]:
        """Yield a new request that waits for an answer.

        Yields ``None`` if ``should_wait`` is False or too many requests are waiting.
        """
        if not should_wait or sum(map(len, self._by_chat.values())) >= _MAX_WAITING:
            yield None
            return
        waiter, place = Waiter(), (chat.id, chat.thread)
        self._by_chat.setdefault(place, []).append(waiter)
        try:
            yield waiter
        finally:
            self._by_chat[place].remove(waiter)
            if not self._by_chat[place]:
                del self._by_chat[place]


class Waiter:
    """A request that waits for an answer."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Fields] = loop.create_future()
        self._was_taken: asyncio.Future[bool] = loop.create_future()

    async def give(self, answer: Fields) -> bool:
        if self.answer.done():
            return False
        self.answer.set_result(answer)
        done, _ = await asyncio.wait({self._was_taken}, timeout=TAKE_SECONDS)
        return bool(done) and self._was_taken.result()

    def settle(self, *, was_taken: bool) -> None:
        self._was_taken.set_result(was_taken)


# ----------------------------------------------------------------------------
# The JSON exchanged with programs


MAX_BYTES = 262_144
"""Maximum size of a request's body, in bytes."""

_NO_CONTROLS = r"\A[^\x00-\x1f\x7f]*\Z"
_PLAIN = r"\A(?!\s)[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+(?<!\s)\Z"
"""Pattern for ids. The owner reads and types ids, so invisible characters are excluded."""

_MAX_ERROR_CHARACTERS = 200

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=_PLAIN)]
Name = Annotated[str, msgspec.Meta(max_length=200, pattern=_NO_CONTROLS)]
Text = Annotated[str, msgspec.Meta(max_length=32_000)]


class _Object(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An object without unknown fields, so that it cannot be nested deeper than the fields listed here."""


class SenderFields(_Object, frozen=True):
    """The sender, with an id for which the program vouches."""

    id: Id
    name: Name = ""


class ChatFields(_Object, frozen=True):
    """The chat of a message."""

    id: Id
    kind: ChatType = ChatType.DIRECT
    thread: Name = ""


class Message(_Object, frozen=True):
    """A message. Without ``chat``, it belongs to the sender's direct chat."""

    id: Id
    text: Text
    sender: SenderFields
    chat: ChatFields | None = None
    to_agent: bool = True

    def incoming(self, channel: str) -> Incoming:
        """Return the message in the form that all channels use."""
        chat = self.chat or ChatFields(self.sender.id)
        return Incoming(
            self.id,
            Chat(channel, chat.id, chat.kind, thread=chat.thread),
            Sender(self.sender.id, self.sender.name),
            self.text,
            to_agent=self.to_agent,
        )


def decode(data: bytes) -> Message:
    """Decode and check a message from a program. Raises InvalidInputError."""
    try:
        return json_values.parse_json_tree(data, Message)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInputError(
            str(error)[:_MAX_ERROR_CHARACTERS], hint="docs/gateway-channels.md has the fields"
        ) from error


def answer_of(outgoing: Outgoing) -> dict[str, Any]:
    """Return a part of an answer as JSON fields for programs."""
    chat = outgoing.chat
    return {
        "key": outgoing.key,
        "chat": {"id": chat.id, "kind": chat.kind.value, "thread": chat.thread},
        "text": outgoing.text,
        "reply_to": outgoing.reply_to,
    }


# ----------------------------------------------------------------------------
# ``Nacre-Signature: t=<unix time>,v1=<HMAC-SHA256>`` proves that the sender knows the secret.


HEADER = "Nacre-Signature"

WINDOW_SECONDS = 300
"""Maximum difference between a signature's time and the current time, in seconds."""

_FORM = re.compile(r"t=([0-9]{1,12}),v1=([0-9a-f]{64})")


@frozen
class Stamp:
    """A received signature: Unix time and value in hexadecimal."""

    moment: int
    mac: str


class Signatures:
    """Signs with a secret, and checks signatures."""

    def __init__(self, secret: str, clock: Callable[[], float]) -> None:
        self._secret = secret.encode()
        self._clock = clock
        self._began = int(clock())
        self._seen: dict[str, int] = {}

    def header(self, body: bytes) -> str:
        """Return the header's value for a body that is sent now."""
        moment = int(self._clock())
        return f"t={moment},v1={self._mac(moment, body)}"

    def is_valid(self, stamp: Stamp, message: bytes) -> bool:
        """Return True if a message was signed with the secret and its time is within the window."""
        is_now = abs(self._clock() - stamp.moment) <= WINDOW_SECONDS
        return (
            hmac.compare_digest(self._mac(stamp.moment, message).encode(), stamp.mac.encode())
            and is_now
        )

    def is_first(self, stamp: Stamp) -> bool:
        """Return True if a valid signature is new and later than the gateway's start."""
        now = self._clock()
        while self._seen and (oldest := next(iter(self._seen.items())))[1] < now - WINDOW_SECONDS:
            del self._seen[oldest[0]]
        is_first = stamp.mac not in self._seen and stamp.moment >= self._began
        self._seen.setdefault(stamp.mac, stamp.moment)
        return is_first

    def _mac(self, moment: int, message: bytes) -> str:
        return hmac.digest(self._secret, b"%d.%b" % (moment, message), "sha256").hex()


# ----------------------------------------------------------------------------
# Answers that are posted to the owner's URL


_SECONDS = 10.0
_RETRIED = frozenset({408, 409, 425, 429})


class Delivery:
    """Posts answers, each with its key, so that duplicates can be detected."""

    def __init__(self, url: str, signatures: Signatures) -> None:
        """Raises InvalidSettingsError for a URL that is not encrypted."""
        try:
            address = urlsplit(url)
            self._api = WebApi(
                "deliver_to", f"{address.scheme}://{address.netloc}", {"user-agent": "nacre"}
            )
        except ValueError as error:
            raise InvalidSettingsError(
                "deliver_to is not a valid URL", hint="use https://host/path"
            ) from error
        self._path = address._replace(scheme="", netloc="", fragment="").geturl()
        self._signatures = signatures

    async def post(self, answer: Fields) -> None:
        """Post an answer. Errors omit the URL, which can contain a token.

        Raises ChannelUnavailableError, ChannelRefusedError.
        """
        body = json.dumps(answer).encode()
        headers = {
            "content-type": "application/json",
            "idempotency-key": answer["key"],
            HEADER: self._signatures.header(body),
        }
        reply = await self._api.ask(
            "POST", self._path, content=body, headers=headers, seconds=_SECONDS
        )
        if reply.status in _RETRIED or reply.status >= 500:
            problem = f"deliver_to returned status {reply.status}"
            raise ChannelUnavailableError(
                problem, hint="check that server; sending is retried", retry_after=reply.retry_after
            )
        if not 200 <= reply.status < 300:
            raise ChannelRefusedError(
                f"deliver_to returned status {reply.status}",
                hint="check the channel's option deliver_to",
            )

    async def close(self) -> None:
        await self._api.close()


# ----------------------------------------------------------------------------
# The channel. Messages arrive in signed requests, and answers go to listeners and the owner's URL.


_MIN_SECRET = 16
_KEEP_SECONDS = 20.0
_SOON_SECONDS, _LATER_SECONDS = 15.0, 300.0
_MAX_SOON_ATTEMPTS = 240
"""Number of early attempts to send an answer that no program receives.

These attempts are 15 seconds apart. Later attempts are 5 minutes apart and end after a day.
"""

_MAX_WAIT_SECONDS = 120
_WAIT = re.compile(r"(?:^|[,;\s])wait=([0-9]{1,6})(?=$|[,;\s])", re.IGNORECASE)

UNSIGNED = Refusal.of(
    401, "unsigned", "the signature is missing, wrong or expired", f"sign with {HEADER}: t=…,v1=…"
)
TOO_LARGE = Refusal.of(
    413,
    "too_large",
    f"a message may have at most {MAX_BYTES:,} bytes",
    "send a shorter text",
    (b"connection", b"close"),  # the remaining body is not read
)


class Webhook(Listening):
    """Implements Channel and ServesHttp.

    Answers are not split, so that a waiting request receives the whole answer.
    """

    limits = Limits(characters=200_000, is_idempotent=True, always_replies=True)

    def __init__(self, setup: ChannelSetup, clock: Callable[[], float] = time.time) -> None:
        """``clock`` returns Unix time. Raises InvalidSettingsError for a weak secret or a URL that is not encrypted."""
        secret = setup.secrets["secret"]
        if len(secret) < _MIN_SECRET:
            problem = f"gateway.channels.{setup.name}.secret is too short"
            raise InvalidSettingsError(
                problem, hint=f"use at least {_MIN_SECRET} random characters"
            )
        self._setup = setup
        self._signatures = Signatures(secret, clock)
        self._waiters = Waiters()
        target = str(setup.options["deliver_to"])
        self._delivery = Delivery(target, self._signatures) if target else None
        self._logged_statuses: set[int] = set()

    def routes(self) -> Sequence[BaseRoute]:
        return [Route(f"/{self._setup.name}", self._post, methods=["POST"])]

    async def send(self, outgoing: Outgoing) -> str:
        """Give the answer to all waiting requests, and post it to ``deliver_to``.

        If ``deliver_to`` is set, only a failed post raises an error.
        """
        answer = answer_of(outgoing)
        was_taken = await self._waiters.give(outgoing.chat, answer)
        if self._delivery:
            await self._delivery.post(answer)
        elif not was_taken:
            after = _SOON_SECONDS if outgoing.attempt <= _MAX_SOON_ATTEMPTS else _LATER_SECONDS
            hint = "it is sent after a program writes in the chat"
            raise ChannelUnavailableError(
                "no program listens to the chat", hint=hint, retry_after=after
            )
        return outgoing.key

    async def show_typing(self, chat: Chat) -> None:
        """Do nothing, because a waiting request cannot show progress."""

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """Do nothing, because messages have no attachments."""

    async def close(self) -> None:
        if self._delivery:
            await self._delivery.close()

    async def _post(self, request: Request) -> Response:
        try:
            signed = await self._signed_body(request)
            if isinstance(signed, Refusal):
                return self._refused(signed)
            body, is_first = signed
            return await self._accept(
                request,
                decode(body).incoming(self._setup.name),
                _wait_seconds(request) if is_first else 0,
            )
        except InvalidInputError as error:
            return self._refused(Refusal.of(400, error.code, str(error), error.hint or ""))
        except NacreError as error:
            headers = (b"retry-after", b"%d" % _SOON_SECONDS)
            return self._refused(Refusal.of(503, error.code, str(error), error.hint or "", headers))
        except ClientDisconnect:
            return Response(status_code=400)

    async def _signed_body(self, request: Request) -> tuple[bytes, bool] | Refusal:
        """Return the body, and True if its signature is new."""
        headers = request.headers.getlist(HEADER)
        match = _FORM.fullmatch(headers[0]) if len(headers) == 1 else None
        stamp = Stamp(int(match[1]), match[2]) if match else None
        if stamp is None:
            return UNSIGNED
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_BYTES:
                return TOO_LARGE
        if not self._signatures.is_valid(stamp, body):
            return UNSIGNED
        return body, self._signatures.is_first(stamp)

    async def _accept(self, request: Request, message: Incoming, wait: int) -> Response:
        with self._waiters.waiting(message.chat, should_wait=wait > 0) as waiter:
            is_new = await self._keep(message)
            if waiter and await _await_answer(request, waiter, wait):
                return _Answer(waiter)
        return JSONResponse({"accepted": True} | ({} if is_new else {"duplicate": True}), 202)

    async def _keep(self, message: Incoming) -> bool:
        if self._inbox is None:
            raise ChannelUnavailableError(
                "the gateway is starting or stopping", hint="send it again later"
            )
        try:
            async with asyncio.timeout(_KEEP_SECONDS):
                return await self._inbox.receive([message]) > 0
        except TimeoutError as error:
            raise ChannelUnavailableError(
                "too many messages are waiting for answers", hint="send it again later"
            ) from error

    def _refused(self, refusal: Refusal) -> Response:
        if refusal.status not in self._logged_statuses:
            self._logged_statuses.add(refusal.status)
            phrase = HTTPStatus(refusal.status).phrase
            self._setup.log(f"the first request was refused with {refusal.status} {phrase}")
        return Response(
            refusal.body, refusal.status, {k.decode(): v.decode() for k, v in refusal.headers}
        )


class _Answer(JSONResponse):
    """A response that tells the waiter whether the client received it."""

    def __init__(self, waiter: Waiter) -> None:
        answer: Fields = waiter.answer.result()
        super().__init__({"parts": [answer]})
        self._waiter = waiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        was_taken = False
        try:
            await super().__call__(scope, receive, send)
            was_taken = True
        finally:
            self._waiter.settle(was_taken=was_taken)


async def _await_answer(request: Request, waiter: Waiter, seconds: int) -> bool:
    """Return True if an answer was ready in time, while the client was connected. Raises ClientDisconnect."""
    disconnect: asyncio.Future[Any] = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait(
            {disconnect, waiter.answer}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if not disconnect.done():
            return waiter.answer.done()
    finally:
        disconnect.cancel()
    if waiter.answer.done():
        waiter.settle(was_taken=False)
    raise ClientDisconnect


def _wait_seconds(request: Request) -> int:
    """Return the number of seconds that a program wants to wait (RFC 7240), within the limit."""
    match = _WAIT.search(", ".join(request.headers.getlist("prefer")))
    return min(int(match[1]), _MAX_WAIT_SECONDS) if match else 0


# ----------------------------------------------------------------------------
# The kind ``webhook``.


KIND = ChannelKind(
    name="webhook",
    label="Webhook",
    make=Webhook,
    options=(
        Option(
            "secret",
            "secret that signs messages, at least 16 characters",
            is_secret=True,
            is_required=True,
        ),
        Option("deliver_to", "URL to which answers are also posted", default=""),
    ),
    libraries=("starlette", "uvicorn"),
    extra="web",
    identity="the sender's id as given by the program",
)
