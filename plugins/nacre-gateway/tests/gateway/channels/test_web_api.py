"""Requests to a platform's HTTP API have bounds and send the token only to the platform."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from nacre.errors import ChannelUnavailableError
from nacre_gateway import channels
from nacre_gateway.channels import WebApi

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"
SECONDS = 20.0


def ask(serve: Serve, **options: Any) -> Any:
    """Return the parsed answer of a platform at the other end of a socket."""

    async def work() -> Any:
        served: list[asyncio.Task[None]] = []

        async def conversation(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            served.append(asyncio.current_task())  # type: ignore[arg-type] # it runs in one
            try:
                await serve(reader, writer)
            except ConnectionError:
                pass  # the client disconnected
            finally:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()

        server = await asyncio.start_server(conversation, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        api = WebApi("A platform", f"http://127.0.0.1:{port}", {})
        try:
            return await api.ask("GET", "/", **options)
        finally:
            await api.close()
            server.close()
            await asyncio.gather(*served)

    return asyncio.run(asyncio.wait_for(work(), SECONDS))


def test_dripping_response_times_out() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        closed = asyncio.ensure_future(reader.read())
        while not (await asyncio.wait((closed,), timeout=0.01))[0]:
            writer.write(b" ")
        await closed

    with pytest.raises(ChannelUnavailableError, match="in time"):
        ask(drip, seconds=0.2)


def test_oversized_response_is_not_read_completely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "_MAX_ANSWER_BYTES", 1_000)

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b" " * 2_000)
        await reader.read()

    with pytest.raises(ChannelUnavailableError, match="larger than"):
        ask(flood)


def test_redirect_is_not_followed() -> None:
    requests = []

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    assert ask(redirect).status == 302
    assert len(requests) == 1


@pytest.mark.parametrize(
    ("header", "seconds"), [("7", 7.0), ("inf", 86_400.0), ("nan", 0.0), ("-1", 0.0), ("x", None)]
)
def test_retry_wait_is_a_valid_time(header: str, seconds: float | None) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 429 Busy\r\nretry-after: {header}\r\ncontent-length: 0\r\n\r\n"
        writer.write(head.encode())
        await reader.read()

    assert ask(refuse).retry_after == seconds
