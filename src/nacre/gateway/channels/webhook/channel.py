"""The channel: messages come by signed requests, answers go to whoever listens and to a URL of the owner's."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

from nacre.errors import ChannelUnavailable, InvalidInput, NacreError, SettingsInvalid
from nacre.gateway.channels.channel import ChannelSetup, Inbox
from nacre.gateway.channels.fetching import fetch_public
from nacre.gateway.channels.webhook.connections import Connections
from nacre.gateway.channels.webhook.delivery import Delivery
from nacre.gateway.channels.webhook.listeners import Listeners, Waiter
from nacre.gateway.channels.webhook.messages import MOST_BYTES, Message, answer_of, decode
from nacre.gateway.channels.webhook.signatures import HEADER, Signatures, stamp_of
from nacre.serving.guard import Refusal
from nacre.values.gateway.message import Attachment, Chat, Incoming, Limits, Outgoing

_LEAST_SECRET = 16
_KEEP_SECONDS = 20.0
_SOON_SECONDS, _LATER_SECONDS = 15.0, 300.0
_MOST_SOON = 240
"""An answer for which nobody comes is offered every 15 seconds for an hour, then every 5 minutes; the gateway gives it
up after a day."""

_MOST_WAIT = 120
_WAIT = re.compile(r"(?:^|[,;\s])wait=([0-9]{1,6})(?=$|[,;\s])", re.IGNORECASE)

UNSIGNED = Refusal.of(
    401, "unsigned", "the signature is missing, wrong, or of another time", f"sign with {HEADER}: t=…,v1=…"
)  # fmt: skip
TOO_LARGE = Refusal.of(
    413, "too_large", f"a message has at most {MOST_BYTES:,} bytes", "send files as attachments",
    (b"connection", b"close"),  # what comes yet is not read
)  # fmt: skip


class Webhook:
    """See Channel and ServesHttp. An answer is one part, so that a request that waits gets all of it; its length stays
    below the megabyte that WebSocket clients take."""

    limits = Limits(characters=200_000, typing_seconds=5.0, is_idempotent=True, always_replies=True)

    def __init__(self, setup: ChannelSetup, clock: Callable[[], float] = time.time) -> None:
        """``clock``: Unix time. Raises SettingsInvalid for a weak secret, or a URL that is not encrypted."""
        secret = setup.secrets["secret"]
        if len(secret) < _LEAST_SECRET:
            told = f"gateway.channels.{setup.name}.secret is too short"
            raise SettingsInvalid(told, hint=f"at least {_LEAST_SECRET} characters that nobody can guess")
        self._setup = setup
        self._signatures = Signatures(secret, clock)
        self._listeners = Listeners()
        self._connections = Connections(setup.name, self._signatures, self._listeners, self._keep)
        target = str(setup.options["deliver_to"])
        self._delivery = Delivery(target, self._signatures) if target else None
        self._inbox: Inbox | None = None
        self._told: set[int] = set()

    async def run(self, inbox: Inbox) -> None:
        """See Channel: requests bring the messages."""
        self._inbox = inbox
        try:
            await asyncio.Event().wait()
        finally:
            self._inbox = None

    def routes(self) -> Sequence[BaseRoute]:
        """See ServesHttp."""
        name = self._setup.name
        return [
            Route(f"/{name}", self._post, methods=["POST"]),
            WebSocketRoute(f"/{name}/ws", self._connections.serve),
        ]

    async def send(self, outgoing: Outgoing) -> str:
        """See Channel: to all who listen to the chat, and to ``deliver_to``, which alone counts where it is set."""
        answer = answer_of(outgoing)
        was_taken = await self._listeners.give(outgoing.chat, answer)
        if self._delivery:
            await self._delivery.post(answer)
        elif not was_taken:
            after = _SOON_SECONDS if outgoing.attempt <= _MOST_SOON else _LATER_SECONDS
            hint = "it is sent once a program writes in the chat again"
            raise ChannelUnavailable("nobody listens to the chat", hint=hint, retry_after=after)
        return outgoing.key

    async def show_typing(self, chat: Chat) -> None:
        """See Channel."""
        await self._listeners.show(chat, {"type": "typing"})

    async def show_piece(self, chat: Chat, piece: str) -> None:
        """See ShowsPieces."""
        await self._listeners.show(chat, {"type": "piece", "text": piece})

    async def fetch(self, attachment: Attachment, target: Path, most_bytes: int) -> None:
        """See Channel."""
        may_be_private = bool(self._setup.options["fetch_private"])
        await fetch_public(attachment.source, target, most_bytes, may_be_private=may_be_private)

    async def close(self) -> None:
        """See Channel."""
        if self._delivery:
            await self._delivery.close()

    async def _post(self, request: Request) -> Response:
        try:
            signed = await self._signed_body(request)
            if isinstance(signed, Refusal):
                return self._refused(signed)
            body, is_first = signed
            asked: Message = decode(body, Message)
            return await self._accept(request, asked.incoming(self._setup.name), _wait_of(request) if is_first else 0)
        except InvalidInput as error:
            return self._refused(Refusal.of(400, error.code, str(error), error.hint or ""))
        except NacreError as error:
            further = (b"retry-after", b"%d" % _SOON_SECONDS)
            return self._refused(Refusal.of(503, error.code, str(error), error.hint or "", further))
        except ClientDisconnect:
            return Response(status_code=400)

    async def _signed_body(self, request: Request) -> tuple[bytes, bool] | Refusal:
        """The body, and whether its signature comes for the first time."""
        stamp = stamp_of(request.headers.getlist(HEADER))
        if stamp is None:
            return UNSIGNED
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                return TOO_LARGE
        if not self._signatures.is_right(stamp, body):
            return UNSIGNED
        return body, self._signatures.is_first(stamp)

    async def _accept(self, request: Request, message: Incoming, wait: int) -> Response:
        with self._listeners.waiting(message.chat, wanted=wait > 0) as waiter:
            is_new = await self._keep(message)
            if waiter and await _is_answered(request, waiter, wait):
                return _Answered(waiter)
        return JSONResponse({"accepted": True} | ({} if is_new else {"duplicate": True}), 202)

    async def _keep(self, message: Incoming) -> bool:
        if self._inbox is None:
            raise ChannelUnavailable("the gateway is starting or stopping", hint="send it again later")
        try:
            async with asyncio.timeout(_KEEP_SECONDS):
                return await self._inbox.receive([message]) > 0
        except TimeoutError as error:
            raise ChannelUnavailable("too many messages wait to be answered", hint="send it again later") from error

    def _refused(self, refusal: Refusal) -> Response:
        if refusal.status not in self._told:
            self._told.add(refusal.status)
            phrase = HTTPStatus(refusal.status).phrase
            self._setup.tell(f"the first request was refused with {refusal.status} {phrase}")
        return Response(refusal.body, refusal.status, {k.decode(): v.decode() for k, v in refusal.headers})


class _Answered(JSONResponse):
    """An answer that counts as taken once it is written."""

    def __init__(self, waiter: Waiter) -> None:
        answer: Mapping[str, Any] = waiter.answer.result()
        super().__init__({"parts": [answer]})
        self._waiter = waiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        was_taken = False
        try:
            await super().__call__(scope, receive, send)
            was_taken = True
        finally:
            self._waiter.settle(was_taken=was_taken)


async def _is_answered(request: Request, waiter: Waiter, seconds: int) -> bool:
    """Whether an answer came in time, to somebody who is still there. Raises ClientDisconnect."""
    gone: asyncio.Future[Any] = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({gone, waiter.answer}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not gone.done():
            return waiter.answer.done()
    finally:
        gone.cancel()
    if waiter.answer.done():
        waiter.settle(was_taken=False)
    raise ClientDisconnect


def _wait_of(request: Request) -> int:
    """For how many seconds a program wants to wait (RFC 7240), as far as it may."""
    found = _WAIT.search(", ".join(request.headers.getlist("prefer")))
    return min(int(found[1]), _MOST_WAIT) if found else 0
