"""Socket Mode: one connection, and a second one while Slack replaces the first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nacre.errors import ChannelRefused, ChannelUnavailable
from nacre.gateway.channels.socket import Breaks, Socket, SocketClosed, open_socket
from nacre.gateway.channels.untrusted import LeftOut, text

_MOST_OLD = 2
"""Connections that Slack said it would close and did not yet; it allows ten."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: the longest wait for the first word, the time between pings (an answer may take as long), the pause
    between connections that keep breaking, and how long a connection holds that is not one of them."""

    hello: float = 20.0
    ping: float = 15.0
    pause: float = 1.0
    steady: float = 60.0


class Connections:
    """``address`` says where to connect, once each time; ``take`` stores what an envelope holds, which is confirmed to
    Slack only then; ``left_out`` counts what is malformed."""

    def __init__(
        self, address: Callable[[], Awaitable[str]], take: Callable[[Mapping[str, Any]], Awaitable[None]],
        left_out: LeftOut, timing: Timing,
    ) -> None:  # fmt: skip
        self._address = address
        self._take = take
        self._left_out = left_out
        self._timing = timing

    async def hold(self) -> None:
        """Receive until cancelled. Raises ChannelUnavailable, ChannelRefused."""
        breaks = Breaks("Slack", self._timing.pause, self._timing.steady)
        old: list[asyncio.Task[bool]] = []
        try:
            while True:
                leaving = asyncio.Event()
                began = asyncio.get_running_loop().time()
                old.append(asyncio.create_task(self._listen(leaving)))
                await _first(old[-1], leaving)
                was_useful = old[-1].done() and old.pop().result()
                await breaks.ended(asyncio.get_running_loop().time() - began, was_useful=was_useful)
                while len(old) > _MOST_OLD:
                    await _end(old.pop(0))
        finally:
            for task in old:
                await _end(task)

    async def _listen(self, leaving: asyncio.Event) -> bool:
        """Take what one connection brings until it ends; whether it brought anything. Sets ``leaving`` as soon as the
        next one is wanted."""
        socket = await open_socket("Slack", await self._address(), self._timing.ping)
        is_ready = was_useful = False
        try:
            while True:
                frame = await self._frame(socket, None if is_ready else self._timing.hello)
                is_ready = True
                if frame.get("type") == "disconnect":
                    _judge(text(frame, "reason"))
                    leaving.set()
                elif envelope := text(frame, "envelope_id"):
                    await self._take(frame)
                    await socket.send({"envelope_id": envelope})
                    was_useful = True
        except SocketClosed:
            if not is_ready:
                raise
            return was_useful
        finally:
            await socket.close()

    async def _frame(self, socket: Socket, seconds: float | None) -> Mapping[str, Any]:
        try:
            return await asyncio.wait_for(socket.receive(), seconds)
        except ValueError:
            self._left_out.note("a frame of Slack's")
            return {}
        except TimeoutError:
            raise ChannelUnavailable("Slack does not say hello") from None


def _judge(reason: str) -> None:
    """Why Slack will close the connection; most often because it is old."""
    if reason == "link_disabled":
        raise ChannelRefused("Socket Mode is turned off", hint="turn it on on the app's page Socket Mode")
    if reason == "too_many_websockets":
        raise ChannelUnavailable("this Slack app has too many connections", hint="it is open ten times at most")


async def _first(task: asyncio.Task[bool], event: asyncio.Event) -> None:
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


async def _end(task: asyncio.Task[bool]) -> None:
    """End a connection. What it raised is of no interest: another one took its place, or nobody listens any more."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
