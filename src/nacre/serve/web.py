"""The browsers in which the home is the owner's: each got a cookie for a code that ``nacre open`` had made."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import secrets
import threading
import time
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    aclosing,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread
import msgspec
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
from starlette.websockets import WebSocket, WebSocketDisconnect

from nacre import errors
from nacre.base import files, json
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
from nacre.errors import NacreError, NotFound, Unavailable
from nacre.serve.catalogue import CATALOGUE, offered_by
from nacre.serve.events import Bus, Event, Live
from nacre.values.memory import Actor, Bearer, Face

if TYPE_CHECKING:
    from starlette.types import Scope

BROWSERS = "browsers.json"
"""In the home: when each cookie ends, by its hash, so that a restart of the daemon ends none."""

CODE_SECONDS = 60.0
"""So long a code may be turned into a cookie, once."""

COOKIE_SECONDS = 90 * 86_400
_BYTES = 32
_MOST_BYTES = 1_000_000
_MOST = 200
"""So many browsers are kept; of more, those that end first go."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a browser gets: a cookie, which it sends to every port of this machine, and a key, which the dashboard keeps
    for the origin and sends with what changes something. So another server here that sees the cookie can only read."""

    cookie: str
    key: str


class _Browser(msgspec.Struct, frozen=True):
    until: float
    key: str


class _Kept(msgspec.Struct, frozen=True):
    port: int = 0
    cookies: dict[str, _Browser] = {}

    def living(self) -> dict[str, _Browser]:
        now = time.time()
        return {name: one for name, one in self.cookies.items() if one.until > now}


class Browsers:
    """Codes, which this process alone knows, and cookies, of which the home keeps hashes."""

    def __init__(self, home: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._file = home / BROWSERS
        self._guard = threading.Lock()
        self._codes: dict[str, float] = {}
        self.cookie = f"nacre_{_hash(os.path.realpath(home))[:8]}"
        """The name of the cookie: browsers send those of all ports of a host."""

    def make_code(self) -> str:
        """What one browser can turn into a cookie, within a minute."""
        code = secrets.token_urlsafe(_BYTES)
        now = self._clock()
        with self._guard:
            self._codes = {one: until for one, until in self._codes.items() if until > now}
            self._codes[_hash(code)] = now + CODE_SECONDS
        return code

    def redeem(self, code: str, port: int = 0) -> Entry | None:
        """Cookie and key for a code; ``None`` where it is not known, was used or is too old. Raises OSError."""
        with self._guard:
            until = self._codes.pop(_hash(code), 0.0)
            if until <= self._clock():
                return None
            made = Entry(secrets.token_urlsafe(_BYTES), secrets.token_urlsafe(_BYTES))
            living = sorted(self._kept().living().items(), key=lambda one: one[1].until)[
                1 - _MOST :
            ]
            known = _Browser(time.time() + COOKIE_SECONDS, _hash(made.key))
            kept = _Kept(port, {**dict(living), _hash(made.cookie): known})
            files.write_file(self._file, msgspec.json.encode(kept))
            return made

    def knows(self, cookie: str, key: str | None = None) -> bool:
        """Whether it is the cookie of a browser that was not forgotten, and the key, if one is given, the one to it."""
        found = self._kept().living().get(_hash(cookie))
        return found is not None and (key is None or hmac.compare_digest(found.key, _hash(key)))

    @property
    def port(self) -> int | None:
        """The port at which browsers know the home; ``None`` where there are none."""
        kept = self._kept()
        return kept.port if kept.living() else None

    def forget(self) -> bool:
        """End all cookies; returns whether there were any."""
        with self._guard:
            self._codes.clear()
            were = bool(self._kept().cookies)
            self._file.unlink(missing_ok=True)
        return were

    def _kept(self) -> _Kept:
        with (
            suppress(OSError, msgspec.MsgspecError),
            os.fdopen(files.open_file(self._file, os.O_RDONLY), "rb") as file,
        ):
            return json.parse_json_values(file.read(_MOST_BYTES), _Kept)
        return _Kept()


def _hash(text: str | bytes) -> str:
    return hashlib.sha256(
        text.encode("utf-8", "replace") if isinstance(text, str) else text
    ).hexdigest()


# ----------------------------------------------------------------------------
# Answers that are errors: ``application/problem+json`` (RFC 9457), with code and hint.


class Unprocessable(errors.InvalidInput):
    """What was asked can be read, and cannot be."""

    code = "unprocessable"


class TooLarge(errors.InvalidInput):
    """A request has a body that is too large."""

    code = "too_large"


class OtherKind(errors.InvalidInput):
    """A request has a body of another kind."""

    code = "unsupported_media_type"


_STATUS: tuple[tuple[type[errors.NacreError], int], ...] = (
    (TooLarge, 413),
    (OtherKind, 415),
    (Unprocessable, 422),
    (errors.InvalidInput, 400),
    (errors.OwnerOnly, 403),
    (errors.NotAllowed, 403),
    (errors.NotFound, 404),
    (errors.Conflict, 409),
    (errors.SecretFound, 422),
    (errors.Fault, 500),
    (errors.ModelRefused, 502),
    (errors.AnswerUnusable, 502),
    (errors.RemoteRefused, 502),
    (errors.QuotaSpent, 429),
    (errors.SpaceFull, 507),
)
"""The rest is 503: the home, or something that it needs, cannot be used now."""

_COOKIE_HINT = "open the dashboard by nacre open, in a terminal of your own, and do it there"
_HINT = "/api/docs lists the routes, and what may be given"
_RETRY_SECONDS = 1


def problem_response(
    status: int,
    code: str,
    message: str,
    hint: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An answer that says what is wrong, and what to do."""
    return Response(problem(status, code, message, hint), status, headers, PROBLEM)


def of_error(error: errors.NacreError) -> Response:
    """The answer for an error of nacre's."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 503)
    wait = (
        error.seconds
        if isinstance(error, errors.QuotaSpent)
        else _RETRY_SECONDS
        if status == 503
        else None
    )
    headers = {"Retry-After": str(wait)} if wait is not None else None
    hint = _COOKIE_HINT if isinstance(error, errors.OwnerOnly) else error.hint or _HINT
    return problem_response(status, error.code, error.message, hint, headers)


async def of_nacre(_: Request, error: Exception) -> Response:
    """As Starlette has errors handled: those of nacre's."""
    assert isinstance(error, errors.NacreError)  # noqa: S101 - the table of handlers says so
    return of_error(error)


async def of_http(_: Request, error: Exception) -> Response:
    """As Starlette has errors handled: no such route, another method."""
    assert isinstance(error, HTTPException)  # noqa: S101 - the table of handlers says so
    code = HTTPStatus(error.status_code).name.lower()
    return problem_response(
        error.status_code, code, error.detail, "docs/rest.md lists the routes", error.headers
    )


async def of_fault(request: Request, error: Exception) -> Response:
    """As Starlette has errors handled: what nobody foresaw."""
    request.app.state.served.tell("".join(traceback.format_exception(error)).rstrip())
    message = f"{type(error).__name__} in the daemon"
    return problem_response(500, "internal", message, "logs/daemon.log tells more")


# ----------------------------------------------------------------------------
# How often one client may ask, and how much of it is done at once: so that who asks much leaves room
# for others.


_WINDOW_SECONDS = 60.0
_MOST_CLIENTS = 1_000
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Limit:
    """So many requests a minute, of all that have the same name."""

    name: str
    a_minute: int


ASKING = Limit("asking", 3_000)
"""For what is answered at once."""

LONG = Limit("long", 60)
"""For operations that may take minutes."""

AGENT_KNOWLEDGE = Limit("agent-knowledge", 100)
"""For agent-knowledge's routes, as it has it (seed facts 2.8)."""

AGENT_KNOWLEDGE_HEAVY = Limit("agent-knowledge, at length", 20)
"""For those that search or analyse."""


class Limits:
    """Counts requests of each client, in windows of a minute. For any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._windows: dict[tuple[str, str], tuple[float, int]] = {}

    def wait(self, client: str, limit: Limit) -> float:
        """Count one more; returns for how many seconds it has to wait, which is 0 where it may be answered now."""
        now, key = self._clock(), (client, limit.name)
        with self._guard:
            ends, count = self._windows.get(key, (0.0, 0))
            if ends <= now:
                ends, count = now + _WINDOW_SECONDS, 0
                self._make_room(now)
            self._windows[key] = ends, count + 1
        return ends - now if count >= limit.a_minute else 0.0

    def _make_room(self, now: float) -> None:
        if len(self._windows) >= _MOST_CLIENTS:
            living = {key: window for key, window in self._windows.items() if window[0] > now}
            self._windows = living if len(living) < _MOST_CLIENTS else {}


class Turns:
    """Few requests for one space are done at once; its others wait for their turn, and take no thread from the requests
    for other spaces. In the event loop alone."""

    def __init__(self, at_once: int = _AT_ONCE) -> None:
        self._at_once = at_once
        self._rooms: dict[str, anyio.CapacityLimiter] = {}

    @asynccontextmanager
    async def turn(self, space: str) -> AsyncIterator[None]:
        """Wait for a turn; it lasts as long as the block."""
        room = self._rooms.setdefault(space, anyio.CapacityLimiter(self._at_once))
        try:
            async with room:
                yield
        finally:
            seen = room.statistics()
            if not seen.borrowed_tokens and not seen.tasks_waiting:
                self._rooms.pop(space, None)


# ----------------------------------------------------------------------------
# What the routes are given: the home's operations, and who may ask for them.


A_PROGRAM = "a program"
"""The agent that asks where a request shows the token and no cookie."""

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
BEARER = "nacre.bearer"
"""In the state of a request: whose key to a space it shows, if it shows one that holds."""

KEYS = "Bearer nacre_"
"""How the authorization of such a request begins."""

OWN_HEADER = b"x-nacre"
"""The browser's key: pages of other origins know none, and could not send it."""

_MOST_LONG = 4
_OWN_SITES = frozenset({"same-origin", "none"})


def program_of(bearer: Bearer) -> str:
    """The agent that asks where a request shows a key."""
    return f"{bearer.account}'s program"


class Asking(Protocol):
    """Whoever waits for an answer."""

    def has_left(self) -> bool:
        """Whether nobody does any more."""
        ...

    def agent(self) -> str | None:
        """The agent that asks, where one does."""
        ...


class Run(Protocol):
    """Runs an operation of the home, in this process, on a request in JSON; the result in JSON. Raises NacreError."""

    def __call__(self, operation: str, request: bytes, actor: Actor, caller: Asking) -> bytes:
        """Blocks until the operation's turn has come and it is done; nothing comes where ``caller`` has left."""
        ...


@dataclass(slots=True)
class Traffic:
    """What goes on at the port: how many are answered (a page that is open listens to events), and when the last one
    was (``time.monotonic``)."""

    at_work: int = 0
    asked_at: float = field(default_factory=time.monotonic)
    is_leaving: bool = False
    """Whether clients are to go elsewhere, as the process is about to end."""

    @contextmanager
    def one(self) -> Iterator[None]:
        """While somebody is answered. In the event loop alone."""
        self.at_work += 1
        try:
            yield
        finally:
            self.at_work -= 1
            self.asked_at = time.monotonic()


@dataclass(frozen=True, slots=True)
class Served:
    """One home, as it is served. ``facts`` are told to whoever may ask, ``token`` is ``None`` where none is asked,
    ``tell`` writes to the daemon's log."""

    home: Path
    run: Run
    facts: Callable[[], Mapping[str, object]]
    browsers: Browsers
    live: Live
    token: str | None
    names: Names
    tell: Callable[[str], None]
    bearer: Callable[[str], Bearer | None] | None = None
    """Whose key a secret is, where the memory is on a server; blocks."""

    live_of: Callable[[Bearer], Live] | None = None
    """The events of the space that a key opens."""

    is_ready: Callable[[], bool] = lambda: True
    """Whether what answers need is there; blocks."""

    traffic: Traffic = field(default_factory=Traffic)
    room: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_MOST_LONG))
    """For operations that take long: else those that wait for their turn would take the threads of all others."""

    turns: Turns = field(default_factory=Turns)
    """For what keys ask of a space."""

    def actor(self, scope: Scope) -> Actor | None:
        """Who asks: the owner by a cookie, a program by the token or by a key to a space (it counts as an agent), or
        nobody known."""
        if self._is_owner(scope):
            return Actor(Face.HTTP)
        if given := self.given_key(scope):
            bearer = scope.get("state", {}).get(BEARER)
            return Actor(Face.HTTP, program_of(bearer), bearer) if given and bearer else None
        if self.token is None or shows_token(self.token)(scope):
            return Actor(Face.HTTP, A_PROGRAM)
        return None

    def live_for(self, scope: Scope) -> Live:
        """The events for whoever asks: of the home, or of the space whose key is shown."""
        bearer = scope.get("state", {}).get(BEARER)
        return self.live_of(bearer) if bearer and self.live_of else self.live

    def given_key(self, scope: Scope) -> str:
        """The key to a space that a request shows; empty where it shows none, or none is asked for."""
        given = values_of(scope, b"authorization")
        is_one = self.bearer is not None and len(given) == 1 and given[0].startswith(KEYS)
        return given[0].partition(" ")[2].strip() if is_one else ""

    def lacks(self, scope: Scope) -> Refusal:
        """How somebody is refused who is nobody known."""
        return NO_KEY if any(self.browsers.knows(one) for one in self._cookies(scope)) else NO_TOKEN

    def _is_owner(self, scope: Scope) -> bool:
        """By a cookie; with the key where something may change, and not where a page of another origin is behind it: to
        cookies all ports of a machine are one site."""
        keys = values_of(scope, OWN_HEADER)
        changes = scope["type"] == "http" and scope["method"] not in SAFE
        if (changes and len(keys) != 1) or not set(
            values_of(scope, b"sec-fetch-site")
        ) <= _OWN_SITES:
            return False
        origins = values_of(scope, b"origin")
        if (scope["type"] == "websocket" and not origins) or not self.names.origins.isdisjoint(
            origins
        ):
            return False
        return any(
            self.browsers.knows(one, keys[0] if changes else None) for one in self._cookies(scope)
        )

    def _cookies(self, scope: Scope) -> list[str]:
        """Those of this home; browsers send all of a machine."""
        pairs = (
            pair.strip().partition("=")
            for text in values_of(scope, b"cookie")
            for pair in text.split(";")
        )
        return [value for name, _, value in pairs if name == self.browsers.cookie]


# ----------------------------------------------------------------------------
# Every operation at ``POST /api/v1/<operation>``: its request is the body, in JSON, and its result
# the answer.


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
        raise NotFound(
            f"there is no operation {name!r} over HTTP", hint="docs/rest.md lists the operations"
        )
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
                found = await anyio.to_thread.run_sync(
                    served.run, operation, asked, client.actor, client, limiter=room
                )
        except NacreError as error:
            found = error  # raised within the group it would come out as a group of errors
        tasks.cancel_scope.cancel()
    if isinstance(found, NacreError):
        raise found
    return found


def _turn(
    served: Served, actor: Actor, room: anyio.CapacityLimiter | None
) -> AbstractAsyncContextManager[None]:
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


# ----------------------------------------------------------------------------
# ``/api/v1/events``: what changes in the home, as server-sent events and over a WebSocket.


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
    return StreamingResponse(
        _stream(live.bus, after, _permit(request)), media_type="text/event-stream"
    )


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
        async with aclosing(
            _events(bus, websocket.query_params.get("after", ""), _permit(websocket))
        ) as events:
            async for event in events:
                if event:
                    await websocket.send_text(event.data.decode())
        await websocket.close(_REFUSED)


async def _stream(bus: Bus, after: str, permit: Permit) -> AsyncGenerator[bytes]:
    yield _RETRY
    async with aclosing(_events(bus, after, permit)) as events:
        async for event in events:
            yield (
                _BEAT
                if event is None
                else b"id: %b-%d\nevent: %b\ndata: %b\n\n"
                % (
                    bus.epoch.encode(),
                    event.seq,
                    event.kind.encode(),
                    event.data,
                )
            )


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


# ----------------------------------------------------------------------------
# Whether a process lives, and whether it is to be sent requests: asked by what starts and balances
# processes.


async def get_live(_: Request) -> Response:
    """``GET /health/live``: 200 as long as the process answers."""
    return JSONResponse({"status": "ok"})


async def get_ready(request: Request) -> Response:
    """``GET /health/ready``: 503 where the process is about to end, or the memory is away."""
    served = served_by(request)
    if served.traffic.is_leaving:
        return JSONResponse({"status": "leaving"}, 503)
    is_ready = await anyio.to_thread.run_sync(served.is_ready)
    return JSONResponse({"status": "ok" if is_ready else "no memory"}, 200 if is_ready else 503)


# ----------------------------------------------------------------------------
# The dashboard's files, and the door through which ``nacre open`` sends a browser.


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
"""What every answer says to browsers."""

API = ("/api/", "/clawxmemory/api/")
_FOREVER = "public, max-age=31536000, immutable"
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>nacre</title><h1>nacre</h1><p>{}</p></html>
"""


class Assets(StaticFiles):
    """Files that have a hash of what they hold in their names: they never change."""

    def file_response(self, *given: object, **named: object) -> Response:
        """See StaticFiles."""
        answer = super().file_response(*given, **named)  # type: ignore[arg-type]
        answer.headers["Cache-Control"] = _FOREVER
        return answer

    async def check_config(self) -> None:
        """See StaticFiles: they may not have been built."""


async def get_page(request: Request) -> Response:
    """The dashboard, which finds out by itself which page of it was asked for."""
    if request.url.path.startswith(API):
        raise HTTPException(404)
    index = STATIC / "index.html"
    if not index.is_file():
        return HTMLResponse(
            _PAGE.format("The dashboard was not built here: <code>make web</code> builds it.")
        )
    return FileResponse(index, headers={"Cache-Control": "no-cache"})


async def get_open(request: Request) -> Response:
    """``GET /open?code=…``: the browser's cookie for a code of ``nacre open``."""
    served = served_by(request)
    entry = served.browsers.redeem(request.query_params.get("code", ""), request.scope["server"][1])
    if entry is None:
        told = (
            "This address was used, or is older than a minute. Run <code>nacre open</code> again."
        )
        return HTMLResponse(_PAGE.format(told), 403)
    answer = RedirectResponse(f"/#key={entry.key}", 303)  # what stands after # is sent to no server
    answer.set_cookie(
        served.browsers.cookie,
        entry.cookie,
        COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=served.names.is_tls,
    )
    return answer
