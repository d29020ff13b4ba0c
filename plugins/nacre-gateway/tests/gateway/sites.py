"""A webhook that is served on loopback, and what programs send to it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from nacre.errors import ChannelUnavailableError
from nacre.values.gateway import Chat, Outgoing
from nacre_gateway.channels import ChannelSetup, ServesHttp
from nacre_gateway.listener import Listener
from nacre_gateway.webhook import KIND, Webhook
from tests.fakes.memory_inbox import MemoryInbox

SECRET = "a secret of the tests"
NOW = 1_800_000_000
T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a test's work, for a minute at most."""
    return asyncio.run(asyncio.wait_for(work, 60))


def hello(**other: Any) -> dict[str, Any]:
    """A message."""
    return {"id": "m1", "text": "Hello", "sender": {"id": "otto", "name": "Otto"}, **other}


def mac(moment: int, data: bytes, secret: str = SECRET) -> str:
    """A signature, made by the book."""
    return hmac.new(secret.encode(), str(moment).encode() + b"." + data, hashlib.sha256).hexdigest()


def signed(data: bytes, moment: int = NOW, secret: str = SECRET) -> dict[str, str]:
    """The header that signs a body."""
    return {"Nacre-Signature": f"t={moment},v1={mac(moment, data, secret)}"}


def client_of(address: str) -> httpx2.AsyncClient:
    """A client of a server on loopback; loading certificates takes 50 ms."""
    return httpx2.AsyncClient(base_url=address, timeout=30, verify=False, trust_env=False)


class Routes:
    """A channel that is nothing but a route."""

    def __init__(
        self, path: str, answer: Callable[[Request], Coroutine[Any, Any, Response]]
    ) -> None:
        self._route = Route(path, answer, methods=["GET", "POST"])

    def routes(self) -> Sequence[BaseRoute]:
        return [self._route]


@asynccontextmanager
async def listening(
    channels: Iterable[ServesHttp], told: list[str] | None = None
) -> AsyncIterator[str]:
    """Serve channels on a free port of loopback; the address."""
    listener = Listener(
        "127.0.0.1:0",
        {str(n): one for n, one in enumerate(channels)},
        (told if told is not None else []).append,
    )
    address = listener.open()
    serving = asyncio.create_task(listener.run())
    try:
        yield address
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


class Site:
    """A webhook called ``hook``, and a program that talks to it."""

    def __init__(
        self, channel: Webhook, inbox: MemoryInbox, address: str, client: httpx2.AsyncClient
    ) -> None:
        self.channel = channel
        self.inbox = inbox
        self.address = address
        self.client = client

    async def post(self, message: Any, moment: int = NOW, **headers: str) -> httpx2.Response:
        """Post a message, or bytes, signed."""
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post("/hook", content=data, headers=signed(data, moment) | named)

    async def answer(
        self,
        text: str = "Hi",
        *,
        chat: str = "otto",
        key: str = "k1",
        attempt: int = 1,
        reply_to: str = "m1",
    ) -> str:
        """Send an answer, as the gateway does."""
        return await self.channel.send(Outgoing(key, Chat("hook", chat), text, reply_to, attempt))

    async def answer_until_heard(self, text: str = "Hi", *, reply_to: str = "m1") -> None:
        """Send an answer as soon as somebody listens."""
        while True:
            try:
                await self.answer(text, reply_to=reply_to)
            except ChannelUnavailableError:
                await self.client.get("/")  # others have their turn
            else:
                return

    @property
    def ids(self) -> list[str]:
        """The ids of the messages that were kept."""
        return [one.id for one in self.inbox.messages]

    async def until_kept(self, message: str) -> None:
        """Until a message is kept."""
        await self.inbox.wait_for(lambda: any(one.id == message for one in self.inbox.messages))


@asynccontextmanager
async def webhook(
    folder: Path,
    *,
    told: list[str] | None = None,
    clock: Callable[[], float] = lambda: NOW,
    **options: Any,
) -> AsyncIterator[Site]:
    """A webhook that is served, and runs."""
    told = told if told is not None else []
    channel = Webhook(setup(folder, told, **options), clock)
    inbox = MemoryInbox()
    async with listening([channel], told) as address, client_of(address) as client:
        running = asyncio.create_task(channel.run(inbox))
        await asyncio.sleep(0)
        try:
            yield Site(channel, inbox, address, client)
        finally:
            running.cancel()
            await channel.close()


def setup(folder: Path, told: list[str], secret: str = SECRET, **options: Any) -> ChannelSetup:
    """What the channel is made from."""
    values = {option.name: option.default for option in KIND.options} | options
    return ChannelSetup("hook", values, {"secret": secret}, folder, told.append)
