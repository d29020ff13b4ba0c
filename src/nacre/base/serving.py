"""HTTP serving: access checks, connection limits and listening sockets."""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from nacre.errors import InvalidInput, Unavailable

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

ADMIT = "nacre.admit"
"""Key in a request state: a function of "has the token" that returns True if there is room."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Host names of this machine for itself."""

RETRY_SECONDS = 1
"""``Retry-After`` of a server without room."""

PROBLEM = "application/problem+json"

Admit = Callable[[bool], bool]
Shows = Callable[["Scope"], bool]
"""Return True if the request's head has a valid credential."""

Lacks = Callable[["Scope"], "Refusal | None"]
"""Return the refusal of a request without a credential; ``None`` if it needs none."""

_AUTHORITY = re.compile(
    r"([a-z0-9_][a-z0-9._-]*|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?", re.IGNORECASE
)
_MAX_PORT = 65_535
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Names:
    """Host names of a server, each with a port or ``None`` for any.

    ``further`` are the names for other machines, which may go through a TLS proxy.
    """

    own: frozenset[tuple[str, int | None]]
    further: frozenset[tuple[str, int | None]]
    origins: frozenset[str] = frozenset()
    """Other origins whose pages may call the server."""

    is_tls: bool = False
    """True if the server itself uses TLS."""

    @classmethod
    def of(
        cls,
        own: Sequence[str],
        further: Sequence[str],
        origins: Sequence[str] = (),
        *,
        is_tls: bool = False,
    ) -> Names:
        """Parse ``name`` and ``name:port``; ignore anything else."""
        return cls(frozenset(_parsed(own)), frozenset(_parsed(further)), frozenset(origins), is_tls)

    def knows(self, host: str) -> bool:
        """Return True if a ``Host`` header names this server."""
        place = authority(host)
        return place is not None and _has(self.own | self.further, place)

    def is_same(self, origin: str, host: str) -> bool:
        """Return True if an origin is the server that ``Host`` names, or an allowed origin."""
        if origin in self.origins:
            return True
        scheme, _, rest = origin.partition("://")
        of_page, of_server = authority(rest), authority(host)
        if of_page is None or of_server is None or scheme not in _PORTS:
            return False
        if scheme != "https" and self.is_tls:
            return False
        if scheme == "https" and not self.is_tls and not _has(self.further, of_server):
            return False
        default = _PORTS[scheme]
        return (of_page[0], of_page[1] or default) == (of_server[0], of_server[1] or default)


class Guard:
    """Middleware that refuses requests by their head, before reading the body.

    The status is 421 for another server, 403 for a page of another origin, 401 without a credential
    (as ``lacks`` returns if ``shows`` finds none), and 503 without room.
    """

    def __init__(self, app: ASGIApp, names: Names, shows: Shows, lacks: Lacks) -> None:
        self._app = app
        self._names = names
        self._shows = shows
        self._lacks = lacks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        kind = "http.response" if scope["type"] == "http" else "websocket.http.response"
        await send({"type": f"{kind}.start", "status": refusal.status, "headers": refusal.headers})
        await send({"type": f"{kind}.body", "body": refusal.body})

    def _refusal(self, scope: Scope) -> Refusal | None:
        hosts, origins = values_of(scope, b"host"), values_of(scope, b"origin")
        if len(hosts) != 1 or not self._names.knows(hosts[0]):
            return OTHER_HOST
        if len(origins) > 1 or not all(self._names.is_same(origin, hosts[0]) for origin in origins):
            return OTHER_ORIGIN
        has_credential = self._shows(scope)
        if not has_credential and (refusal := self._lacks(scope)):
            return refusal
        admit = cast("Admit | None", scope.get("state", {}).get(ADMIT))
        return TOO_MANY if admit and not admit(has_credential) else None


def shows_token(token: str | None) -> Shows:
    """Return a check for ``Authorization: Bearer`` with this token; without one it fails."""
    expected = (token or "").encode()

    def shows(scope: Scope) -> bool:
        headers = values_of(scope, b"authorization")
        scheme, _, credentials = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
        is_right = hmac.compare_digest(credentials.strip().encode("latin-1"), expected)
        return bool(expected) and is_right and scheme.lower() == "bearer"

    return shows


def problem(status: int, code: str, message: str, hint: str | None) -> bytes:
    """Return an error body according to RFC 9457."""
    title = HTTPStatus(status).phrase
    body = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": message,
        "code": code,
        "hint": hint,
    }
    return json.dumps(body).encode()


@dataclass(frozen=True, slots=True)
class Refusal:
    """A response that refuses a request."""

    status: int
    body: bytes
    further: tuple[tuple[bytes, bytes], ...] = ()

    @classmethod
    def of(
        cls, status: int, code: str, message: str, hint: str, *further: tuple[bytes, bytes]
    ) -> Refusal:
        """Build a refusal with the common error body."""
        return cls(status, problem(status, code, message, hint), further)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers."""
        length = str(len(self.body)).encode()
        return [(b"content-type", PROBLEM.encode()), (b"content-length", length), *self.further]


OTHER_HOST = Refusal.of(
    421, "other_host", "this server is not called that", "use the address nacre serve told"
)
OTHER_ORIGIN = Refusal.of(
    403, "other_origin", "a page of another origin may not ask", "ask from a program"
)
NO_TOKEN = Refusal.of(
    401,
    "unauthorized",
    "a token is needed",
    "send Authorization: Bearer and the token that nacre serve made",
    (b"www-authenticate", b"Bearer"),
)
NO_KEY = Refusal.of(
    403, "no_key", "the browser's key is needed to change anything", "run nacre open again"
)
TOO_MANY = Refusal.of(
    503,
    "busy",
    "too many connections are open",
    "come again in a second",
    (b"retry-after", str(RETRY_SECONDS).encode()),
)


def authority(text: str) -> tuple[str, int | None] | None:
    """Parse ``name[:port]`` strictly: no user, path, final dot or invalid port."""
    match = _AUTHORITY.fullmatch(text)
    if match is None or match[1].endswith("."):
        return None
    port = int(match[2]) if match[2] else None
    return None if port and port > _MAX_PORT else (match[1].lower(), port)


def _parsed(names: Iterable[str]) -> Iterable[tuple[str, int | None]]:
    return (place for name in names if (place := authority(name)))


def _has(names: frozenset[tuple[str, int | None]], place: tuple[str, int | None]) -> bool:
    return place in names or (place[0], None) in names


def values_of(scope: Scope, name: bytes) -> list[str]:
    """Return the values of a header, named in lower case."""
    return [value.decode("latin-1") for header, value in scope["headers"] if header == name]


# -- Connection limits -----------------------------------------------------------------------------
# Any process on the machine can open connections. They must not use up the file descriptors or the
# room of callers with the token.


_GRACE_SECONDS = 1
_MAX_MESSAGE_BYTES = 65_536
_BACKLOG = 32
"""Connections accepted in one batch, before the first is handled."""


_MAX_LEAVING = 32
_LEAVE_SECONDS = 1.0
_BUSY_RESPONSE = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n%b\r\n%b" % (
    b"".join(b"%b: %b\r\n" % header for header in TOO_MANY.headers),
    TOO_MANY.body,
)


class Bounded(H11Protocol):
    """A connection with a time limit, which makes room for other connections.

    A stranger is a connection without a valid token whose request is incomplete. If there are too
    many, the oldest gets ``503``. The newest stays, as it may be about to send the token.
    """

    most_strangers = 64
    """Maximum of strangers; with all others it stays below 256, the file limit of some systems."""

    most_strangers_of_peer = 48
    """Maximum of strangers from the same address."""

    most_served = 64
    """Maximum of open connections with the token or a complete request."""

    patience_seconds = 10.0
    """Time limit for receiving a request and for sending its answer; may take twice as long."""

    _timer: asyncio.TimerHandle | None = None
    _is_known = False
    _is_leaving = False
    _since = 0.0

    def connection_made(self, transport: Any) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self._since = time.monotonic()
        self.app_state = {**self.app_state, ADMIT: self._admit}
        self._check_later()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if not self._is_leaving:
            super().data_received(data)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """See uvicorn: another protocol takes over the connection."""
        if self._timer:
            self._timer.cancel()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        if self._timer:
            self._timer.cancel()
        super().connection_lost(exc)

    @property
    def _is_held_up(self) -> bool:
        """Return True if it waits for the client to send a request or receive an answer."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused

    @property
    def _is_stranger(self) -> bool:
        return self._is_held_up and not self._is_known and not self._is_leaving

    @property
    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    def _open(self) -> list[Bounded]:
        """Return all open connections, including this one."""
        return [
            connection
            for connection in self.connections
            if isinstance(connection, Bounded) and not connection.transport.is_closing()
        ]

    def _make_room(self) -> None:
        strangers = sorted(
            (connection for connection in self._open() if connection._is_stranger),
            key=lambda connection: connection._since,
        )
        per_peer = Counter(connection._peer for connection in strangers)
        if per_peer[self._peer] > self.most_strangers_of_peer:
            peer = self._peer
        elif len(strangers) > self.most_strangers:
            peer = per_peer.most_common(1)[0][0]
        else:
            return
        next(connection for connection in strangers if connection._peer == peer)._turn_away()

    def _turn_away(self) -> None:
        """Send ``503`` unless an answer has started, then close the connection."""
        self._is_leaving = True
        if (
            self.flow.write_paused
            or sum(connection._is_leaving for connection in self._open()) > _MAX_LEAVING
        ):
            self.transport.abort()
            return
        if self.cycle is None or (self.cycle.more_body and not self.cycle.response_started):
            self.transport.write(_BUSY_RESPONSE)
        if not self.transport.can_write_eof():  # as over TLS
            self.transport.close()
            return
        self.transport.write_eof()  # close() would reset the connection if more of the request arrives
        if self._timer:
            self._timer.cancel()
        self._timer = self.loop.call_later(_LEAVE_SECONDS, self.transport.abort)

    def _admit(self, has_token: bool) -> bool:
        """Return True if there is room for this request; a connection with the token stays.

        If there is no room, drop the connection that has waited longest for its body: even one with
        the token may be slow on purpose.
        """
        served = [
            connection
            for connection in self._open()
            if connection is not self and not connection._is_stranger and not connection._is_leaving
        ]
        if len(served) >= self.most_served and not self._is_known:
            slow = [
                connection
                for connection in served
                if connection.cycle is not None and connection.cycle.more_body
            ]
            if not slow:
                return False
            min(slow, key=lambda connection: connection._since)._turn_away()
        self._is_known = has_token
        return True

    def _check_later(self) -> None:
        self._timer = self.loop.call_later(self.patience_seconds, self._check, self.cycle)

    def _check(self, before: object) -> None:
        """Abort the connection if the same request has blocked it since the last check."""
        if self._is_held_up and self.cycle is before:
            self.transport.abort()
        else:
            self._check_later()


def listening_config(
    app: ASGIApp,
    cert: str = "",
    key: str = "",
    *,
    most_message: int = _MAX_MESSAGE_BYTES,
    room: int = 0,
) -> uvicorn.Config:
    """Return uvicorn's configuration for an app, with TLS if ``cert`` is given.

    ``most_message`` is the maximum size of a WebSocket message in bytes. ``room`` replaces the
    limits on connections: behind a load balancer, all come from the same address.
    """
    return uvicorn.Config(
        app,
        http=_roomy(room) if room else Bounded,
        ws="websockets-sansio",
        ws_max_size=most_message,
        log_level="critical",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        backlog=max(_BACKLOG, room),
        server_header=False,
        proxy_headers=False,
        ssl_certfile=cert or None,
        ssl_keyfile=key or None,
    )


def _roomy(room: int) -> type[Bounded]:
    return type(
        "Roomy",
        (Bounded,),
        dict.fromkeys(("most_served", "most_strangers", "most_strangers_of_peer"), room),
    )


# -- Listening addresses ---------------------------------------------------------------------------


EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - used only if configured
"""Hosts that mean all addresses of the machine."""

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def names_of(host: str) -> tuple[str, ...]:
    """Return the names by which other machines reach a host; empty for a loopback address."""
    if host in _LOOPBACK:
        return ()
    if host not in EVERYWHERE:
        return (f"[{host}]" if ":" in host else host,)
    own = socket.gethostname()
    with suppress(OSError):
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(own, None, socket.AF_INET)}
        return (own, f"{own}.local", *sorted(addresses))
    return (own, f"{own}.local")


def split_place(place: str) -> tuple[str, int]:
    """Return the host and the port of ``[HOST:]PORT``. Raises InvalidInput."""
    host, _, port = place.strip().rpartition(":")
    is_clear = ":" not in host or (host.startswith("[") and host.endswith("]"))
    if not is_clear or not port.isascii() or not port.isdigit() or int(port) > _MAX_PORT:
        raise InvalidInput(
            f"{place!r} is no port, nor a host and a port", hint="8765, or 127.0.0.1:8765"
        )
    return host.strip("[]") or "127.0.0.1", int(port)


def listen_at(host: str, port: int, hint: str) -> socket.socket:
    """Return a listening socket. Raises Unavailable, with the hint, if the port is in use."""
    listening = None
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # With IPPROTO_TCP, asyncio turns off Nagle's algorithm, which costs 40 ms per answer.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()  # early clients wait for the server
    except OSError as error:
        if listening:
            listening.close()
        raise Unavailable(
            f"cannot listen at {host}:{port}: {error.strerror or error}", hint=hint
        ) from error
    return listening
