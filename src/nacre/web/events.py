"""``/api/v1/events``: what changes in the home, as server-sent events and over a WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress

import anyio
import anyio.to_thread
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from nacre.errors import NacreError, Unavailable
from nacre.events.bus import Bus, Event
from nacre.events.live import Live
from nacre.web.operations import served_by
from nacre.web.problems import of_error

BEAT_SECONDS = 15.0
"""So long nothing happens before a comment tells that the connection is alive."""

MOST_LISTENERS = 50
"""Each holds a connection open, of the 64 at which requests are answered: others have to find room beside them."""

_RETRY = b"retry: 2000\n\n"
_BEAT = b":\n\n"
_REFUSED = 1008

Permit = Callable[[], Awaitable[bool]]


async def get_events(request: Request) -> Response:
    """``GET /api/v1/events``: server-sent events, from now on or after ``Last-Event-ID``. Raises NacreError."""
    live = await _ready(request)
    after = request.headers.get("last-event-id") or request.query_params.get("after", "")
    return StreamingResponse(_stream(live.bus, after, _permit(request)), media_type="text/event-stream")


async def socket(websocket: WebSocket) -> None:
    """``/api/v1/events/ws``: an event a message, from now on or after ``?after=``; what comes in is not heard."""
    try:
        live = await _ready(websocket)
    except NacreError as error:
        await websocket.send_denial_response(of_error(error))
        return
    await websocket.accept()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_send, websocket, live.bus)
        with suppress(WebSocketDisconnect):
            while True:
                await websocket.receive_text()
        tasks.cancel_scope.cancel()


async def _ready(connection: HTTPConnection) -> Live:
    live = await anyio.to_thread.run_sync(served_by(connection).live_for, connection.scope)
    if live.bus.listeners >= MOST_LISTENERS:
        raise Unavailable("too many listen to events", hint="close some pages, or come again later")
    await anyio.to_thread.run_sync(live.wait_ready)
    return live


async def _send(websocket: WebSocket, bus: Bus) -> None:
    with suppress(WebSocketDisconnect):
        async with aclosing(_events(bus, websocket.query_params.get("after", ""), _permit(websocket))) as events:
            async for event in events:
                if event:
                    await websocket.send_text(event.data.decode())
        await websocket.close(_REFUSED)


async def _stream(bus: Bus, after: str, permit: Permit) -> AsyncGenerator[bytes]:
    yield _RETRY
    async with aclosing(_events(bus, after, permit)) as events:
        async for event in events:
            yield _BEAT if event is None else b"id: %b-%d\nevent: %b\ndata: %b\n\n" % (
                bus.epoch.encode(), event.seq, event.kind.encode(), event.data,
            )  # fmt: skip


def _permit(connection: HTTPConnection) -> Permit:
    """Whether whoever listens still may: ``nacre open --forget`` ends that, and the end of a key."""
    served, scope = served_by(connection), connection.scope
    actor, key, bearer_of = served.actor(scope), served.given_key(scope), served.bearer

    async def may() -> bool:
        if served.traffic.is_leaving:
            return False
        if key and bearer_of and actor:
            return await anyio.to_thread.run_sync(bearer_of, key) == actor.bearer
        return served.actor(scope) == actor

    return may


async def _events(bus: Bus, after: str, permit: Permit) -> AsyncGenerator[Event | None]:
    """Events as they come, as long as they may be told; ``None`` where none came for a while."""
    loop, woken = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        if not woken.is_set():
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(woken.set)

    listener = bus.listen(wake, after)
    due = loop.time() + BEAT_SECONDS
    try:
        while True:
            woken.clear()
            found = listener.take()
            if found or loop.time() >= due:
                if not await permit():
                    return
                for event in found or (None,):
                    yield event
                due = loop.time() + BEAT_SECONDS
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(due):
                        await woken.wait()
    finally:
        listener.close()
