"""The daemon's HTTP handlers: errors, limits, callers, operations, events and dashboard."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.staticfiles import StaticFiles

from nacre import errors
from nacre.base import plugins
from nacre.base.serving import (
    NO_KEY,
    NO_TOKEN,
    PROBLEM,
    Names,
    Refusal,
    problem,
    shows_token,
    values_of,
)
from nacre.errors import NacreError, NotFoundError, UnavailableError
from nacre.serve.browsers import COOKIE_SECONDS
from nacre.serve.catalogue import CATALOGUE, find_operation
from nacre.serve.events import Bus, Live
from nacre.serve.homes import Site, trace_of
from nacre.values.memory import Actor, Bearer, Face

if TYPE_CHECKING:
    from starlette.types import Scope


# -- Errors ----------------------------------------------------------------------------------------
# Errors are sent as ``application/problem+json`` (RFC 9457), with a code and a hint.


class UnprocessableError(errors.InvalidInputError):
    """The request is well-formed but cannot be processed."""

    code = "unprocessable"


class TooLargeError(errors.InvalidInputError):
    """The body of a request is too large."""

    code = "too_large"


class OtherKindError(errors.InvalidInputError):
    """The body of a request has an unsupported type."""

    code = "unsupported_media_type"


_STATUS: tuple[tuple[type[errors.NacreError], int], ...] = (
    (TooLargeError, 413),
    (OtherKindError, 415),
    (UnprocessableError, 422),
    (errors.InvalidInputError, 400),
    (errors.OwnerOnlyError, 403),
    (errors.NotAllowedError, 403),
    (errors.NotFoundError, 404),
    (errors.ConflictError, 409),
    (errors.SecretFoundError, 422),
    (errors.InternalError, 500),
    (errors.ModelRefusedError, 502),
    (errors.UnusableAnswerError, 502),
    (errors.RemoteRefusedError, 502),
)
"""HTTP status for each error class. Other errors get 503 (unavailable)."""

_COOKIE_HINT = "run nacre open in your own terminal and do it in the dashboard"
_HINT = "/api/openapi.json lists the routes and their fields"


def problem_response(
    status: int,
    code: str,
    message: str,
    hint: str | None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a response that describes an error and suggests a remedy."""
    return Response(problem(status, code, message, hint), status, headers, PROBLEM)


def of_error(error: errors.NacreError) -> Response:
    """Return the response for one of nacre's errors."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 503)
    headers = {"Retry-After": "1"} if status == 503 else None
    hint = _COOKIE_HINT if isinstance(error, errors.OwnerOnlyError) else error.hint or _HINT
    return problem_response(status, error.code, error.message, hint, headers)


async def of_nacre(_: Request, error: Exception) -> Response:
    """Answer a request that has raised one of nacre's errors."""
    assert isinstance(error, errors.NacreError)  # noqa: S101 - registered for this class
    return of_error(error)


async def of_http(_: Request, error: Exception) -> Response:
    """Answer a request that has raised an HTTP error, such as one for an unknown route."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class
    code = HTTPStatus(error.status_code).name.lower()
    return problem_response(
        error.status_code, code, error.detail, "docs/rest.md lists the routes", error.headers
    )


async def of_fault(request: Request, error: Exception) -> Response:
    """Log an unexpected error and answer the request."""
    served_by(request).tell(trace_of(error))
    message = f"{type(error).__name__} in the daemon"
    return problem_response(500, "internal", message, "see logs/daemon.log")


# -- Limits on requests ----------------------------------------------------------------------------


_MAX_REQUESTS_PER_SPACE = 4


class Turns:
    """A limit on each space's parallel requests, so that none can use all threads. Use it only in the event loop."""

    def __init__(self, at_once: int = _MAX_REQUESTS_PER_SPACE) -> None:
        self._at_once = at_once
        self._rooms: dict[str, anyio.CapacityLimiter] = {}

    @asynccontextmanager
    async def turn(self, space: str) -> AsyncIterator[None]:
        """Wait for a free slot of the space, and occupy it during the ``with`` block."""
        room = self._rooms.setdefault(space, anyio.CapacityLimiter(self._at_once))
        try:
            async with room:
                yield
        finally:
            statistics = room.statistics()
            if not statistics.borrowed_tokens and not statistics.tasks_waiting:
                self._rooms.pop(space, None)


# -- Callers and the served home -------------------------------------------------------------------


A_PROGRAM = "a program"
"""Agent name for a request that has the token but no cookie."""

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
BEARER = "nacre.bearer"
"""Name under which the request's state stores the holder of a valid key."""

KEYS = "Bearer nacre_"
"""Start of an Authorization header that contains a key."""

OWN_HEADER = b"x-nacre"
"""Header with the browser's key, which pages from other origins do not know."""

_MAX_LONG_REQUESTS = 4
_OWN_SITES = frozenset({"same-origin", "none"})


def program_of(bearer: Bearer) -> str:
    """Return the agent name for requests with this holder's key."""
    return f"{bearer.account}'s program"


@dataclass(slots=True)
class Traffic:
    """The number of requests in progress and the time of the last one (``time.monotonic``), without event streams."""

    at_work: int = 0
    asked_at: float = field(default_factory=time.monotonic)
    is_leaving: bool = False
    """True if the process is about to end, so that clients should use another server."""

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a request during the ``with`` block. Use it only in the event loop."""
        self.at_work += 1
        try:
            yield
        finally:
            self.at_work -= 1
            self.asked_at = time.monotonic()


@dataclass(frozen=True)
class Served(Site):
    """A home served over HTTP. ``token`` is ``None`` if clients need no token."""

    token: str | None = None
    names: Names = field(kw_only=True)
    traffic: Traffic = field(default_factory=Traffic)
    room: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(_MAX_LONG_REQUESTS)
    )
    """Limit on long operations, which could otherwise use all threads."""

    turns: Turns = field(default_factory=Turns)
    """Limits on parallel requests with keys."""

    def actor(self, scope: Scope) -> Actor | None:
        """Return who sent a request: the owner, a program or, without a valid login, ``None``."""
        if self._is_owner(scope):
            return Actor(Face.HTTP)
        if key := self.given_key(scope):
            bearer = scope.get("state", {}).get(BEARER)
            return Actor(Face.HTTP, program_of(bearer), bearer) if key and bearer else None
        if self.token is None or shows_token(self.token)(scope):
            return Actor(Face.HTTP, A_PROGRAM)
        return None

    def live_for(self, scope: Scope) -> Live:
        """Return the events that the sender of a request may see."""
        bearer = scope.get("state", {}).get(BEARER)
        return self.spaces.live(bearer) if bearer and self.spaces else self.live

    def given_key(self, scope: Scope) -> str:
        """Return the key in a request's ``Authorization`` header, or ""."""
        headers = values_of(scope, b"authorization")
        has_key = self.spaces is not None and len(headers) == 1 and headers[0].startswith(KEYS)
        return headers[0].partition(" ")[2].strip() if has_key else ""

    def lacks(self, scope: Scope) -> Refusal:
        """Return the error for a request without a valid login."""
        return (
            NO_KEY
            if any(self.browsers.is_valid(cookie) for cookie in self._cookies(scope))
            else NO_TOKEN
        )

    def _is_owner(self, scope: Scope) -> bool:
        """Return True for the owner's cookie. Changes also need the browser's key, because servers
        at other ports of this machine can see the cookie.
        """
        keys = values_of(scope, OWN_HEADER)
        changes = scope["method"] not in SAFE
        if (changes and len(keys) != 1) or not set(
            values_of(scope, b"sec-fetch-site")
        ) <= _OWN_SITES:
            return False
        return any(
            self.browsers.is_valid(cookie, keys[0] if changes else None)
            for cookie in self._cookies(scope)
        )

    def _cookies(self, scope: Scope) -> list[str]:
        pairs = (
            pair.strip().partition("=")
            for text in values_of(scope, b"cookie")
            for pair in text.split(";")
        )
        return [value for name, _, value in pairs if name == self.browsers.cookie]


# -- Operations ------------------------------------------------------------------------------------
# Operations are at ``POST /api/v1/<operation>``, with requests and results as JSON.


MOST_BYTES = 4_000_000
"""Maximum size of a request body in bytes."""

_JSON = "application/json"


async def post_operation(request: Request) -> Response:
    """``POST /api/v1/{operation}``."""
    name = request.path_params["operation"]
    if find_operation(name, Face.HTTP) is None:
        raise NotFoundError(
            f"there is no operation {name!r} over HTTP", hint="docs/rest.md lists the operations"
        )
    return Response(await answer_of(request, name, await json_body(request)), media_type=_JSON)


async def get_me(request: Request) -> Response:
    """``GET /api/v1/me``: returns the caller's rights, facts about the home, and the plugins."""
    facts = await anyio.to_thread.run_sync(served_by(request).facts)
    installed = [*plugins.load_usable_plugins(plugins.RESOURCES)]
    return JSONResponse({"owner": not actor_of(request).is_agent, "plugins": installed, **facts})


def served_by(request: HTTPConnection) -> Served:
    """Return the home to which a connection belongs."""
    served: Served = request.app.state.served
    return served


def actor_of(request: Request) -> Actor:
    """Return who sent a request that has passed the access check."""
    return served_by(request).actor(request.scope) or Actor(Face.HTTP, A_PROGRAM)


async def answer_of(request: Request, operation: str, body: bytes) -> bytes:
    """Run an operation and return its result as JSON. If the caller leaves, a read-only operation is interrupted."""
    actor, left, served = actor_of(request), threading.Event(), served_by(request)
    room = served.room if CATALOGUE[operation].takes_long else None
    outcome: bytes | NacreError = b""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_note_leaving, request, left)
        try:
            bearer = actor.bearer if room is None else None  # long operations have other threads
            async with served.turns.turn(bearer.space) if bearer else nullcontext():
                outcome = await anyio.to_thread.run_sync(
                    served.run, operation, body, actor, left.is_set, limiter=room
                )
        except NacreError as error:
            outcome = error  # raising here would wrap the error in an ExceptionGroup
        tasks.cancel_scope.cancel()
    if isinstance(outcome, NacreError):
        raise outcome
    return outcome


async def _note_leaving(request: Request, left: threading.Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    left.set()


async def json_body(request: Request) -> bytes:
    """Return a request's body, or ``{}`` if it is empty. Raises TooLargeError, and OtherKindError
    if it is not JSON.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise TooLargeError(
                f"a request can have at most {MOST_BYTES:,} bytes", hint="send it in smaller parts"
            )
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != _JSON:
        raise OtherKindError("the request must be JSON", hint=f"send Content-Type: {_JSON}")
    return bytes(body) or b"{}"


# -- Events ----------------------------------------------------------------------------------------
# ``/api/v1/events`` sends changes in the home as server-sent events.


BEAT_SECONDS = 15.0
"""Idle time in seconds after which a comment is sent to keep the connection open."""

MOST_LISTENERS = 50
"""Maximum number of listeners. Each listener uses one of the 128 connections."""


Permit = Callable[[], Awaitable[bool]]


async def get_events(request: Request) -> Response:
    """``GET /api/v1/events``: streams new events."""
    live = await anyio.to_thread.run_sync(served_by(request).live_for, request.scope)
    if live.bus.listeners >= MOST_LISTENERS:
        raise UnavailableError(
            "too many event listeners", hint="close some pages, or try again later"
        )
    await anyio.to_thread.run_sync(live.wait_ready)
    return StreamingResponse(_stream(live.bus, _permit(request)), media_type="text/event-stream")


async def _stream(bus: Bus, permit: Permit) -> AsyncGenerator[bytes]:
    yield b"retry: 2000\n\n"
    async with aclosing(_events(bus, permit)) as events:
        async for event in events:
            yield b"data: %b\n\n" % event if event else b":\n\n"


def _permit(connection: HTTPConnection) -> Permit:
    served, scope = served_by(connection), connection.scope
    actor, key, spaces = served.actor(scope), served.given_key(scope), served.spaces

    async def may() -> bool:
        if served.traffic.is_leaving:
            return False
        if key and spaces and actor:
            return await anyio.to_thread.run_sync(spaces.bearer, key) == actor.bearer
        return served.actor(scope) == actor

    return may


async def _events(bus: Bus, permit: Permit) -> AsyncGenerator[bytes | None]:
    loop, woken = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        if not woken.is_set():
            with suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(woken.set)

    listener = bus.listen(wake)
    due = loop.time() + BEAT_SECONDS
    try:
        while True:
            woken.clear()
            events = listener.take()
            if events or loop.time() >= due:
                if not await permit():
                    return
                for event in events or (None,):
                    yield event
                due = loop.time() + BEAT_SECONDS
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(due):
                        await woken.wait()
    finally:
        listener.close()


# -- Health checks ---------------------------------------------------------------------------------


async def get_live(_: Request) -> Response:
    """``GET /health/live``: returns 200 as long as the process responds."""
    return JSONResponse({"status": "ok"})


async def get_ready(request: Request) -> Response:
    """``GET /health/ready``: returns 503 if the process is ending or cannot reach the database."""
    served = served_by(request)
    if served.traffic.is_leaving:
        return JSONResponse({"status": "leaving"}, 503)
    spaces = served.spaces
    is_ready = await anyio.to_thread.run_sync(spaces.is_reachable) if spaces else True
    return JSONResponse({"status": "ok" if is_ready else "no memory"}, 200 if is_ready else 503)


# -- Dashboard -------------------------------------------------------------------------------------


STATIC = Path(__file__).parent / "static"
POLICY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every response."""

API = re.compile(r"(?:/[\w-]+)?/api/")
"""Pattern for paths that require an access check, including the paths of plugins."""

_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>nacre</title><h1>nacre</h1><p>{}</p></html>
"""


class Assets(StaticFiles):
    """Static files that browsers can cache forever, because their names contain a hash."""

    def file_response(self, *args: object, **kwargs: object) -> Response:
        answer = super().file_response(*args, **kwargs)  # type: ignore[arg-type]
        answer.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return answer

    async def check_config(self) -> None:
        """Accept a missing folder, because the dashboard might not have been built."""


async def get_page(request: Request) -> Response:
    """Return the dashboard's HTML, which is the same for all pages."""
    if API.match(request.url.path):
        raise HTTPException(404)
    index = STATIC / "index.html"
    if not index.is_file():
        return HTMLResponse(_PAGE.format("The dashboard is not built: run <code>make web</code>."))
    return FileResponse(index, headers={"Cache-Control": "no-cache"})


async def get_open(request: Request) -> Response:
    """``GET /open?code=…``: exchanges a login code for a cookie."""
    served = served_by(request)
    entry = served.browsers.redeem(request.query_params.get("code", ""), request.scope["server"][1])
    if entry is None:
        message = (
            "This address was used before or is older than a minute. Run <code>nacre open</code> "
            "again."
        )
        return HTMLResponse(_PAGE.format(message), 403)
    answer = RedirectResponse(f"/#key={entry.key}", 303)  # browsers do not send the part after #
    answer.set_cookie(
        served.browsers.cookie,
        entry.cookie,
        COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=served.names.is_tls,
    )
    return answer
