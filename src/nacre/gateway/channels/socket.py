"""A platform's WebSocket: JSON objects in both directions, bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from nacre.errors import ChannelUnavailable, SettingsInvalid
from nacre.gateway.channels.untrusted import decode_object
from nacre.gateway.channels.web_api import check_address
from nacre.llm.providers import is_loopback
from nacre.platform.lazy import Module

if TYPE_CHECKING:
    import websockets.asyncio.client as client
    import websockets.exceptions as problems
else:
    client = Module("websockets.asyncio.client")
    problems = Module("websockets.exceptions")

_CONNECT_SECONDS = 15.0
_CLOSE_SECONDS = 1.0
"""How long the other side may take to say goodbye; Slack does not always."""
_MOST_FRAME = 4 << 20
_MOST_FRAMES = 256
"""Bytes of a frame, and frames that wait to be read; then the platform has to wait."""
_MOST_BREAKS = 5


class SocketClosed(ChannelUnavailable):
    """The platform closed its WebSocket, or the connection broke. ``close_code`` is None where none was given."""

    def __init__(self, platform: str, close_code: int | None) -> None:
        super().__init__(f"{platform} closed the connection{f' (code {close_code})' if close_code else ''}")
        self.close_code = close_code


class Socket:
    """One open WebSocket."""

    def __init__(self, platform: str, connection: client.ClientConnection) -> None:
        self._platform = platform
        self._connection = connection

    async def receive(self) -> Mapping[str, Any]:
        """The next object. Raises ValueError where a frame holds none, and SocketClosed."""
        try:
            frame = await self._connection.recv()
        except problems.ConnectionClosed as error:
            raise SocketClosed(self._platform, error.rcvd.code if error.rcvd else None) from None
        return decode_object(frame)

    async def send(self, value: Mapping[str, Any]) -> None:
        """Send an object. Raises SocketClosed."""
        try:
            await self._connection.send(msgspec.json.encode(value).decode())
        except problems.ConnectionClosed as error:
            raise SocketClosed(self._platform, error.rcvd.code if error.rcvd else None) from None

    async def close(self, code: int = 1000) -> None:
        """Close it; nothing happens where it is closed."""
        await self._connection.close(code)


async def open_socket(platform: str, url: str, ping_seconds: float | None = None) -> Socket:
    """Open a WebSocket. With ``ping_seconds`` it pings so often, and breaks where no answer comes within as long.

    Raises ChannelUnavailable, also where the address is neither encrypted nor of this machine.
    """
    try:
        check_address(platform, url)
    except (SettingsInvalid, ValueError):
        raise ChannelUnavailable(f"{platform} names an address that is not safe to connect to") from None
    here = is_loopback(urlsplit(url).hostname or "")
    try:
        connection = await client.connect(
            url, open_timeout=_CONNECT_SECONDS, close_timeout=_CLOSE_SECONDS, ping_interval=ping_seconds,
            ping_timeout=ping_seconds, max_size=_MOST_FRAME, max_queue=_MOST_FRAMES, proxy=None if here else True,
        )  # fmt: skip
    except (OSError, ImportError, problems.WebSocketException) as error:
        # the library's own words may name the address, and with it a ticket; ImportError: it has no SOCKS proxies
        raise ChannelUnavailable(f"{platform} cannot be reached ({type(error).__name__})") from None
    return Socket(platform, connection)


@dataclass(slots=True)
class Breaks:
    """Connections to a platform that ended soon after they began, one after another.

    The first is replaced at once, each later one after a ``pause`` that grows, in seconds. One that lasted ``steady``
    seconds or brought something was none of them.
    """

    platform: str
    pause: float
    steady: float
    count: int = 0

    async def ended(self, seconds: float, *, was_useful: bool) -> None:
        """A connection ended after so long. Raises ChannelUnavailable after too many."""
        self.count = 0 if was_useful or seconds > self.steady else self.count + 1
        if self.count > _MOST_BREAKS:
            raise ChannelUnavailable(f"{self.platform} ends each connection soon after it began")
        await asyncio.sleep(self.pause * max(self.count - 1, 0))
