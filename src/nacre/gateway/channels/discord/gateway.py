"""Discord's gateway: one WebSocket at a time, kept alive, resumed where it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from nacre.errors import ChannelRefused, ChannelUnavailable
from nacre.gateway.channels.discord.records import Records
from nacre.gateway.channels.socket import Socket, SocketClosed, open_socket
from nacre.gateway.channels.untrusted import LeftOut, mapping, number, text

INTENTS = (1 << 9) | (1 << 12) | (1 << 15)
"""Messages in servers, direct messages, and their content, which the owner has to allow (it is privileged)."""

_DISPATCH, _BEAT, _IDENTIFY, _RESUME, _RECONNECT, _INVALID, _HELLO, _BEAT_HEARD = 0, 1, 2, 6, 7, 9, 10, 11
_FOR_NOW = 4000
"""Any code but 1000 and 1001 leaves the session as it is, so that it can be resumed."""
_SESSION_OVER = (4003, 4007, 4009)
_REFUSED = {
    4004: ("the token is wrong", "copy the bot's token again from the Bot page of the developer portal"),
    4010: ("the shard is wrong", None),
    4011: ("the bot is in too many servers for one connection", "take it out of some"),
    4012: ("version 10 of the gateway is not served any more", "a newer nacre may know the next one"),
    4013: ("the intents are wrong", "a newer nacre may know them"),
    4014: ("an intent is not allowed", "turn on Message Content Intent on the Bot page of the developer portal"),
}


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: the longest wait for the first word, the pause after an invalid session (at most), the pause between
    connections that keep breaking, and how long a connection holds that is not one of them."""

    hello: float = 20.0
    invalid: float = 5.0
    pause: float = 1.0
    steady: float = 60.0


class Gateway:
    """The gateway's side of the channel. ``take`` is given each event of a message, ``catch_up`` is called where a
    session begins anew, before anything of it is taken; ``left_out`` counts what is malformed."""

    def __init__(
        self, token: str, records: Records, take: Callable[[Mapping[str, Any], int], Awaitable[None]],
        catch_up: Callable[[], Awaitable[None]], tell: Callable[[str], None], left_out: LeftOut, timing: Timing,
    ) -> None:  # fmt: skip
        self._token = token
        self._records = records
        self._take = take
        self._catch_up = catch_up
        self._tell = tell
        self._left_out = left_out
        self._timing = timing
        self._random = Random()  # noqa: S311 - spreads load, guards nothing
        self._is_heard = True
        self._is_busy = False
        self._seq: int | None = None
        """Of the last event that came, for heartbeats; that of the last one on disk is in the records."""
        self.is_ready = False

    async def connect(self, url: str) -> None:
        """Hold one connection until it ends; what ends it decides whether the session can be resumed.

        Raises ChannelUnavailable where there was none, and ChannelRefused.
        """
        self.is_ready = False
        socket = await open_socket("Discord", url)
        try:
            await self._converse(socket)
        except SocketClosed as closed:
            if closed.close_code in _REFUSED:
                said, hint = _REFUSED[closed.close_code]
                raise ChannelRefused(f"Discord says: {said}", hint=hint) from closed
            if closed.close_code in _SESSION_OVER:
                await self._records.begin("", "", self._records.bot, None)
            elif not self.is_ready:
                raise
        finally:
            await socket.close(_FOR_NOW)

    async def _converse(self, socket: Socket) -> None:
        hello = await self._hello(socket)
        self._is_heard, self._is_busy, self._seq = True, False, self._records.seq
        seconds = max((number(mapping(hello, "d"), "heartbeat_interval") or 41_250) / 1000, 0.01)
        beating = asyncio.create_task(self._beat(socket, seconds))
        try:
            await socket.send(self._greeting())
            while await self._hear(socket):
                pass
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError, ChannelUnavailable):
                await beating

    async def _hello(self, socket: Socket) -> Mapping[str, Any]:
        try:
            hello = await asyncio.wait_for(socket.receive(), self._timing.hello)
        except (TimeoutError, ValueError):
            raise ChannelUnavailable("Discord's gateway does not say hello") from None
        if hello.get("op") != _HELLO:
            raise ChannelUnavailable("Discord's gateway does not say hello")
        return hello

    def _greeting(self) -> dict[str, Any]:
        records = self._records
        if records.session and records.seq is not None:
            return {"op": _RESUME, "d": {"token": self._token, "session_id": records.session, "seq": records.seq}}
        about = {"os": "any", "browser": "nacre", "device": "nacre"}
        return {"op": _IDENTIFY, "d": {"token": self._token, "intents": INTENTS, "properties": about}}

    async def _beat(self, socket: Socket, seconds: float) -> None:
        """Send heartbeats. One that was not answered before the next means that the connection is dead."""
        await asyncio.sleep(seconds * self._random.random())
        while True:
            if not self._is_heard and not self._is_busy:
                self._tell("Discord's gateway stopped answering; it is connected again")
                await socket.close(_FOR_NOW)
                return
            self._is_heard = False
            await socket.send({"op": _BEAT, "d": self._seq})
            await asyncio.sleep(seconds)

    async def _hear(self, socket: Socket) -> bool:
        """Take one frame; whether to go on with this connection."""
        try:
            frame = await socket.receive()
        except ValueError:
            self._left_out.note("a frame of Discord's")
            return True
        op = frame.get("op")
        if op == _BEAT_HEARD:
            self._is_heard = True
        elif op == _BEAT:
            await socket.send({"op": _BEAT, "d": self._seq})
        elif op == _INVALID:
            await self._invalid(may_resume=frame.get("d") is True)
        elif op == _DISPATCH:
            await self._dispatch(frame)
        return op not in (_RECONNECT, _INVALID)

    async def _invalid(self, *, may_resume: bool) -> None:
        self.is_ready = True  # it was heard: the next connection is made at once
        if not may_resume:
            await self._records.begin("", "", self._records.bot, None)
        await asyncio.sleep(self._timing.invalid * self._random.uniform(0.2, 1))

    async def _dispatch(self, frame: Mapping[str, Any]) -> None:
        seq, name, data = number(frame, "s"), text(frame, "t"), mapping(frame, "d")
        if seq is None:
            self._left_out.note("an event of Discord's")
            return
        self._seq = int(seq)
        # while events are stored, answers to heartbeats wait to be read: that is not the connection's fault
        self._is_busy = True
        try:
            await self._event(name, data, int(seq))
        finally:
            self._is_busy, self._is_heard = False, True

    async def _event(self, name: str, data: Mapping[str, Any], seq: int) -> None:
        if name == "READY":
            self._records.bot = text(mapping(data, "user"), "id")
            await self._catch_up()
            url = text(data, "resume_gateway_url", 500)
            await self._records.begin(text(data, "session_id"), url, self._records.bot, seq)
            self.is_ready = True
        elif name == "RESUMED":
            self.is_ready = True
        if name in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
            await self._take(data, seq)
        else:
            self._records.seq = seq
