"""``/<name>/ws``: messages and answers as frames of a WebSocket."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from nacre.errors import ChannelUnavailable, InvalidInput, NacreError
from nacre.gateway.channels.webhook.listeners import TAKE_SECONDS, Listeners
from nacre.gateway.channels.webhook.messages import AuthFrame, MessageFrame, ReceivedFrame, chat_of, decode
from nacre.gateway.channels.webhook.signatures import Signatures, Stamp
from nacre.values.gateway.message import Chat, Incoming

MOST_CONNECTIONS = 50
"""With the secret; so many more may be about to show it."""

_PATIENCE_SECONDS = 10.0
_TYPING_SECONDS = 1.0
_MOST_CHATS = 1_000
_MOST_UNKEPT = 10
_POLICY, _TRY_LATER = 1008, 1013

Keep = Callable[[Incoming], Awaitable[bool]]
"""Keeps a message; whether it is new. Raises NacreError."""


class Connections:
    """The WebSockets of a channel: who shows that it knows the secret writes, and hears the chats that it wrote in."""

    def __init__(self, name: str, signatures: Signatures, listeners: Listeners, keep: Keep) -> None:
        self._name = name
        self._signatures = signatures
        self._listeners = listeners
        self._keep = keep
        self._open = 0
        self._strangers: deque[asyncio.Timeout] = deque()

    async def serve(self, websocket: WebSocket) -> None:
        """One connection, from its start to its end."""
        with suppress(WebSocketDisconnect):
            await websocket.accept()
            if not await self._knows_secret(websocket):
                await websocket.close(_POLICY)
            elif self._open >= MOST_CONNECTIONS:
                await websocket.close(_TRY_LATER)
            else:
                await self._serve_known(websocket)

    async def _serve_known(self, websocket: WebSocket) -> None:
        connection = _Connection(websocket, self._name, self._listeners, self._keep)
        self._open += 1
        try:
            await connection.run()
        finally:
            self._open -= 1
            connection.leave()

    async def _knows_secret(self, websocket: WebSocket) -> bool:
        """Whether it signs a number that nobody saw before; of too many who have not, the first is turned away."""
        nonce = secrets.token_urlsafe(16)
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS) as patience:
                self._strangers.append(patience)
                if len(self._strangers) > MOST_CONNECTIONS:
                    self._strangers[0].reschedule(0)
                await websocket.send_json({"type": "hello", "nonce": nonce})
                auth: AuthFrame = decode(await _next_frame(websocket), AuthFrame)
        except (TimeoutError, InvalidInput):
            return False
        finally:
            self._strangers.remove(patience)
        return self._signatures.is_right(Stamp(auth.t, auth.v1), f"ws.{self._name}.{nonce}".encode())


class _Connection:
    """A program that is connected. Frames are read while messages are kept: answers wait for what is read."""

    def __init__(self, websocket: WebSocket, name: str, listeners: Listeners, keep: Keep) -> None:
        self._websocket = websocket
        self._name = name
        self._listeners = listeners
        self._keep = keep
        self._chats: dict[tuple[str, str], Chat] = {}
        self._unkept: asyncio.Queue[Incoming] = asyncio.Queue(_MOST_UNKEPT)
        self._given: dict[str, asyncio.Future[bool]] = {}

    async def run(self) -> None:
        """Until the program goes. Raises WebSocketDisconnect."""
        await self._send({"type": "ready"})
        tasks = {asyncio.create_task(self._read_all()), asyncio.create_task(self._keep_all())}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        done.pop().result()

    def leave(self) -> None:
        """Hear nothing more."""
        for chat in self._chats.values():
            self._listeners.remove(chat, self)
        for given in self._given.values():
            if not given.done():
                given.set_result(False)

    async def give(self, answer: Mapping[str, Any]) -> bool:
        """See Listener."""
        given: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._given[answer["key"]] = given
        try:
            async with asyncio.timeout(TAKE_SECONDS):
                await self._send({"type": "answer", **answer})
                return await given
        except (TimeoutError, WebSocketDisconnect):
            return False
        finally:
            self._given.pop(answer["key"], None)

    async def show(self, chat: Chat, what: Mapping[str, Any]) -> None:
        """See Listener."""
        with suppress(TimeoutError, WebSocketDisconnect):
            async with asyncio.timeout(_TYPING_SECONDS):
                await self._send({**what, "chat": chat_of(chat)})

    async def _read_all(self) -> None:
        while True:
            frame = await _next_frame(self._websocket)
            try:
                await self._take(decode(frame, MessageFrame | ReceivedFrame))
            except InvalidInput as error:
                await self._refuse(error)

    async def _take(self, frame: MessageFrame | ReceivedFrame) -> None:
        if isinstance(frame, ReceivedFrame):
            given = self._given.get(frame.key)
            if given and not given.done():
                given.set_result(True)
            return
        message = frame.incoming(self._name)
        try:
            self._unkept.put_nowait(message)
        except asyncio.QueueFull:
            hint = "send it again once another is accepted"
            await self._refuse(ChannelUnavailable("too many messages wait to be accepted", hint=hint), message.id)

    async def _keep_all(self) -> None:
        while True:
            message = await self._unkept.get()
            try:
                self._listen(message.chat)
                is_new = await self._keep(message)
            except NacreError as error:
                await self._refuse(error, message.id)
            else:
                accepted = {"type": "accepted", "id": message.id, "duplicate": not is_new}
                await self._send(accepted)

    def _listen(self, chat: Chat) -> None:
        if (chat.id, chat.thread) in self._chats:
            return
        if len(self._chats) >= _MOST_CHATS:
            raise InvalidInput(f"a connection writes in at most {_MOST_CHATS:,} chats", hint="open another connection")
        self._chats[chat.id, chat.thread] = chat
        self._listeners.add(chat, self)

    async def _send(self, frame: Mapping[str, Any]) -> None:
        try:
            await self._websocket.send_json(frame)
        except RuntimeError as error:  # the server is closing it
            raise WebSocketDisconnect from error

    async def _refuse(self, error: NacreError, message: str = "") -> None:
        told = {"type": "error", "code": error.code, "message": str(error), "hint": error.hint}
        await self._send(told | ({"id": message} if message else {}))


async def _next_frame(websocket: WebSocket) -> bytes:
    received = await websocket.receive()
    if received["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(received.get("code", 1005))
    return (received.get("text") or "").encode() or received.get("bytes") or b""
