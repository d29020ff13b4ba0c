"""``Idempotency-Key``: a write that is sent again, because its answer did not arrive, is not done again.

Answers are kept in memory alone: they hold words of memories, and what lies in a home has to be found again by whoever
forgets. That a key was used is kept in the home; decision 95 says what is answered after the daemon ended.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from anyio import to_thread

from nacre.errors import NacreError
from nacre.web.problems import of_error, problem_response
from nacre.web.used_keys import LIFE_SECONDS, UsedKey, UsedKeys

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_KEPT = 1_000
"""Answers that are kept at once, the latest."""

MOST_KEPT_BYTES = 16_000_000
"""Of all answers that are kept at once."""

MOST_BYTES = 256_000
"""Of an answer that is kept; a longer one is sent and not kept."""

_LONGEST_KEY = 255
_HEADER = b"idempotency-key"
_WHO = (b"authorization", b"cookie")
_NOT_DONE = frozenset({401, 403, 413, 421, 429})


@dataclass(slots=True)
class _Kept:
    """What a key was used for; ``ready`` is set once it is answered."""

    body: bytes
    at: float
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    answer: tuple[Message, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the answer."""
        return _size(self.answer)


class Once:
    """Answers a write again that has the key and the body of one before; other requests pass.

    A key belongs to who sends it, a method and a path. While the first is at work, others wait for its answer. ``used``
    knows those whose answers are gone.
    """

    def __init__(self, app: ASGIApp, most_body: int, used: UsedKeys) -> None:
        self._app = app
        self._most_body = most_body
        self._used = used
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        key = _key_of(scope)
        if key is None:
            await self._app(scope, receive, send)
        elif not 0 < len(key) <= _LONGEST_KEY:
            hint = f"1 to {_LONGEST_KEY} characters, another one for each write"
            await problem_response(400, "invalid_input", "Idempotency-Key is empty or too long", hint)(
                scope, receive, send
            )
        else:
            await self._once(_identity(scope, key), scope, receive, send)

    async def _once(self, identity: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        messages, body = await self._body(receive)
        digest = hashlib.sha256(body).digest()
        while (kept := self._known(identity)) is not None:
            if kept.body != digest:
                return await _reused()(scope, receive, send)
            await kept.ready.wait()
            if kept.answer:
                return await _replay(kept.answer, send)
            if self._kept.get(identity) is kept:  # it was not done, or not kept: this one does it
                del self._kept[identity]
        kept = self._kept[identity] = _Kept(digest, time.monotonic())
        try:
            if refusal := await to_thread.run_sync(self._refusal, identity.hex(), digest.hex()):
                return await refusal(scope, receive, send)
            sent = await self._answered(scope, _replayed(messages, receive), send)
            kept.answer = _to_keep(sent)
            with suppress(NacreError):  # the answer is on its way
                await to_thread.run_sync(self._used.settle, identity.hex(), *_outcome(sent))
        finally:
            kept.ready.set()
            if not kept.answer and self._kept.get(identity) is kept:
                del self._kept[identity]
            self._make_room()

    def _refusal(self, key: str, body: str) -> Response | None:
        """Claim a key; an answer where that cannot be."""
        try:
            used = self._used.claim(key, body)
        except NacreError as error:
            return of_error(error)
        if used is None:
            return None
        return _reused() if used.body != body else _done_already(used)

    def _make_room(self) -> None:
        size = sum(one.size for one in self._kept.values())
        while len(self._kept) > MOST_KEPT or size > MOST_KEPT_BYTES:
            size -= self._kept.popitem(last=False)[1].size

    def _known(self, identity: bytes) -> _Kept | None:
        kept = self._kept.get(identity)
        if kept is not None and time.monotonic() - kept.at > LIFE_SECONDS:
            del self._kept[identity]
            return None
        return kept

    async def _body(self, receive: Receive) -> tuple[list[Message], bytes]:
        """The messages of a request's body, as far as it may be read; what is longer is refused further in."""
        messages: list[Message] = []
        body = b""
        while not messages or messages[-1].get("more_body"):
            messages.append(await receive())
            body += messages[-1].get("body", b"")
            if messages[-1]["type"] != "http.request" or len(body) > self._most_body:
                break
        return messages, body

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> tuple[Message, ...]:
        """Send the answer, and return it."""
        sent: list[Message] = []

        async def keep(message: Message) -> None:
            sent.append(message)
            await send(message)

        await self._app(scope, receive, keep)
        return tuple(sent)


def _to_keep(sent: tuple[Message, ...]) -> tuple[Message, ...]:
    """The answer, where it is to be kept; an empty one is none: nobody waited for it."""
    status = _status(sent)
    return sent if status < 500 and status not in _NOT_DONE and 0 < _size(sent) <= MOST_BYTES else ()


def _outcome(sent: tuple[Message, ...]) -> tuple[str, str]:
    """Whether a write was done, and where its result is."""
    if not _size(sent) or _status(sent) >= 300:
        return "free", ""
    return "done", next((value.decode() for name, value in sent[0]["headers"] if name == b"location"), "")


def _status(sent: tuple[Message, ...]) -> int:
    return int(sent[0]["status"]) if sent else 500


def _reused() -> Response:
    return problem_response(422, "key_reused", "this Idempotency-Key was used for another request", "use a new key")


def _done_already(used: UsedKey) -> Response:
    at = datetime.fromtimestamp(used.at, UTC).isoformat(timespec="seconds")
    if used.state == "done":
        told, hint = f"this write was done at {at}; its answer is not kept any more", "nacre log has it"
    else:
        told, hint = f"this write began at {at}; whether it was done is not known", "look, and use a new key if not"
    return problem_response(409, "already_done", told, hint, {"Location": used.location} if used.location else None)


def _size(messages: Iterable[Message]) -> int:
    return sum(len(one.get("body", b"")) for one in messages)


def _key_of(scope: Scope) -> bytes | None:
    if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
        return None
    return next((value for name, value in scope["headers"] if name == _HEADER), None)


def _identity(scope: Scope, key: bytes) -> bytes:
    who = [value for name, value in scope["headers"] if name in _WHO]
    parts = [key, scope["method"].encode(), scope["path"].encode(), scope["query_string"], *who]
    return hashlib.sha256(b"\0".join(parts)).digest()


def _replayed(messages: list[Message], receive: Receive) -> Receive:
    left = iter(messages)

    async def again() -> Message:
        return next(left, None) or await receive()

    return again


async def _replay(answer: tuple[Message, ...], send: Send) -> None:
    head, *rest = answer
    await send({**head, "headers": [*head["headers"], (b"idempotency-replayed", b"true")]})
    for message in rest:
        await send(message)
