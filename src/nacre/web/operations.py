"""Every operation at ``POST /api/v1/<operation>``: its request is the body, in JSON, and its result the answer."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass

import anyio
import anyio.to_thread
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response

from nacre.catalogue import CATALOGUE, offered_by
from nacre.errors import NacreError, NotFound
from nacre.values.actor import Actor, Face
from nacre.web.problems import OtherKind, TooLarge
from nacre.web.served import A_PROGRAM, Served

MOST_BYTES = 4_000_000
"""Of one request."""

OFFERED = offered_by(Face.HTTP)
_JSON = "application/json"


@dataclass(slots=True)
class _Client:
    """Whoever asks over HTTP."""

    actor: Actor
    left: bool = False

    def has_left(self) -> bool:
        return self.left

    def agent(self) -> str | None:
        return self.actor.agent


async def post_operation(request: Request) -> Response:
    """``POST /api/v1/{operation}``."""
    name = request.path_params["operation"]
    if name not in OFFERED:
        raise NotFound(f"there is no operation {name!r} over HTTP", hint="docs/rest.md lists the operations")
    return Response(await answer_of(request, name, await json_body(request)), media_type=_JSON)


async def get_me(request: Request) -> Response:
    """``GET /api/v1/me``: who asks, and of what."""
    facts = await anyio.to_thread.run_sync(served_by(request).facts)
    return JSONResponse({"owner": not actor_of(request).is_agent, **facts})


def served_by(request: HTTPConnection) -> Served:
    """The home that is served."""
    served: Served = request.app.state.served
    return served


def actor_of(request: Request) -> Actor:
    """Who asks; whoever gets here was let in."""
    return served_by(request).actor(request.scope) or Actor(Face.HTTP, A_PROGRAM)


async def answer_of(request: Request, operation: str, asked: bytes) -> bytes:
    """The result of an operation in JSON, for whoever asks; what only reads ends when that one leaves.

    Raises NacreError.
    """
    client = _Client(actor_of(request))
    served = served_by(request)
    room = served.room if CATALOGUE[operation].takes_long else None
    found: bytes | NacreError = b""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_note_leaving, request, client)
        try:
            async with _turn(served, client.actor, room):
                found = await anyio.to_thread.run_sync(served.run, operation, asked, client.actor, client, limiter=room)
        except NacreError as error:
            found = error  # raised within the group it would come out as a group of errors
        tasks.cancel_scope.cancel()
    if isinstance(found, NacreError):
        raise found
    return found


def _turn(served: Served, actor: Actor, room: anyio.CapacityLimiter | None) -> AbstractAsyncContextManager[None]:
    """When it is a space's turn; what takes long has threads of its own."""
    return served.turns.turn(actor.bearer.space) if actor.bearer and room is None else nullcontext()


async def _note_leaving(request: Request, client: _Client) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    client.left = True


async def json_body(request: Request) -> bytes:
    """The body, ``{}`` where there is none. Raises TooLarge, OtherKind."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise TooLarge(f"a request may have {MOST_BYTES:,} bytes", hint="send it in parts")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != _JSON:
        raise OtherKind("a request is JSON", hint=f"send Content-Type: {_JSON}")
    return bytes(body) or b"{}"
