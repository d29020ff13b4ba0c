"""Who is let in over HTTP: requests for a name of this server, from no page of another origin, with the token."""

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
"""In the state of a request: asks whether there is room to answer it; ``True`` tells that it brought the token."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""The names of this machine, to itself."""

RETRY_SECONDS = 1
"""So soon may come again who found no room."""

PROBLEM = "application/problem+json"

Admit = Callable[[bool], bool]
Shows = Callable[["Scope"], bool]
"""Whether a request, by its head, shows what lets it in."""

Lacks = Callable[["Scope"], "Refusal | None"]
"""How a request that shows nothing is refused; ``None`` where it needs to show nothing."""

_AUTHORITY = re.compile(
    r"([a-z0-9_][a-z0-9._-]*|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?", re.IGNORECASE
)
_LARGEST_PORT = 65_535
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Names:
    """The names by which a server may be called, each with a port or ``None`` for any.

    ``further`` are those by which others reach it, perhaps through what speaks TLS for it.
    """

    own: frozenset[tuple[str, int | None]]
    further: frozenset[tuple[str, int | None]]
    origins: frozenset[str] = frozenset()
    """Pages of these may ask, too."""

    is_tls: bool = False
    """Whether the server speaks TLS itself."""

    @classmethod
    def of(
        cls,
        own: Sequence[str],
        further: Sequence[str],
        origins: Sequence[str] = (),
        *,
        is_tls: bool = False,
    ) -> Names:
        """From ``name`` and ``name:port``; what is neither is no name."""
        return cls(frozenset(_parsed(own)), frozenset(_parsed(further)), frozenset(origins), is_tls)

    def knows(self, host: str) -> bool:
        """Whether a ``Host`` names this server."""
        place = authority(host)
        return place is not None and _has(self.own | self.further, place)

    def is_same(self, origin: str, host: str) -> bool:
        """Whether a page of this origin is one of the server that the ``Host`` names, or may ask it all the same."""
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
    """Refuses what is not for this server (421), from a page of another origin (403), without the token (401), or one
    too many (503). All of it is told by a request's head: nothing of its body is read before.

    ``lacks`` says how requests are refused that do not show what ``shows`` looks for.
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
        is_known = self._shows(scope)
        if not is_known and (refusal := self._lacks(scope)):
            return refusal
        admit = cast("Admit | None", scope.get("state", {}).get(ADMIT))
        return TOO_MANY if admit and not admit(is_known) else None


def shows_token(token: str | None) -> Shows:
    """Whether a request brings ``Authorization: Bearer`` and this token; without one none does."""
    expected = (token or "").encode()

    def shows(scope: Scope) -> bool:
        given = values_of(scope, b"authorization")
        scheme, _, credentials = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        is_right = hmac.compare_digest(credentials.strip().encode("latin-1"), expected)
        return bool(expected) and is_right and scheme.lower() == "bearer"

    return shows


def problem(status: int, code: str, message: str, hint: str | None) -> bytes:
    """What an answer says that is an error, as RFC 9457 has it."""
    title = HTTPStatus(status).phrase
    told = {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": message,
        "code": code,
        "hint": hint,
    }
    return json.dumps(told).encode()


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that says no."""

    status: int
    body: bytes
    further: tuple[tuple[bytes, bytes], ...] = ()

    @classmethod
    def of(
        cls, status: int, code: str, message: str, hint: str, *further: tuple[bytes, bytes]
    ) -> Refusal:
        """With the body that all errors have."""
        return cls(status, problem(status, code, message, hint), further)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """What goes before the body."""
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
    """Name and port of ``name[:port]``, and of nothing else: no user, no path, no dot at the end, no odd port."""
    match = _AUTHORITY.fullmatch(text)
    if match is None or match[1].endswith("."):
        return None
    port = int(match[2]) if match[2] else None
    return None if port and port > _LARGEST_PORT else (match[1].lower(), port)


def _parsed(names: Iterable[str]) -> Iterable[tuple[str, int | None]]:
    return (place for name in names if (place := authority(name)))


def _has(names: frozenset[tuple[str, int | None]], place: tuple[str, int | None]) -> bool:
    return place in names or (place[0], None) in names


def values_of(scope: Scope, name: bytes) -> list[str]:
    """The headers of this name, which is in small letters."""
    return [value.decode("latin-1") for header, value in scope["headers"] if header == name]


# ----------------------------------------------------------------------------
# How HTTP is listened to: anybody on the machine can open connections, with a token or without, and
# must not be able
# to take all files that the process may open, nor the room of those who have the token.


_GRACE_SECONDS = 1
_MOST_MESSAGE = 65_536
_BACKLOG = 32
"""So many connections are also taken in one go, before the first of them is looked at."""


_MOST_LEAVING = 32
_LEAVE_SECONDS = 1.0
_GO = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\n%b\r\n%b" % (
    b"".join(b"%b: %b\r\n" % header for header in TOO_MANY.headers),
    TOO_MANY.body,
)


class Bounded(H11Protocol):
    """A connection that makes room for others, and that is ended where its request does not arrive whole in time.

    Whoever has shown no token and whose request is not there yet, is a stranger. Of too many strangers the one that has
    been there longest is turned away with ``503``, never the one that just came: it may be about to show the token.
    """

    most_strangers = 64
    """So many are open at once; with those that are answered it stays below the 256 files of some systems."""

    most_strangers_of_peer = 48
    """Of them, from one address."""

    most_served = 64
    """So many with the token, or with a request that is there whole, are open at once."""

    patience_seconds = 10.0
    """So long, and at most twice as long, a request may take to arrive, and its answer to be taken."""

    _timer: asyncio.TimerHandle | None = None
    _is_known = False
    _is_leaving = False
    _since = 0.0

    def connection_made(self, transport: Any) -> None:
        """See asyncio.Protocol."""
        super().connection_made(transport)
        self._since = time.monotonic()
        self.app_state = {**self.app_state, ADMIT: self._admit}
        self._look_later()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if not self._is_leaving:
            super().data_received(data)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """See uvicorn: another protocol has the connection from now on."""
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
        """Whether it waits for the other side: for the rest of a request, or to be rid of an answer."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused

    @property
    def _is_stranger(self) -> bool:
        return self._is_held_up and not self._is_known and not self._is_leaving

    @property
    def _peer(self) -> str:
        return self.client[0] if self.client else ""

    def _open(self) -> list[Bounded]:
        """All that are open, this one too."""
        return [
            one
            for one in self.connections
            if isinstance(one, Bounded) and not one.transport.is_closing()
        ]

    def _make_room(self) -> None:
        strangers = sorted(
            (one for one in self._open() if one._is_stranger), key=lambda one: one._since
        )
        held = Counter(one._peer for one in strangers)
        if held[self._peer] > self.most_strangers_of_peer:
            peer = self._peer
        elif len(strangers) > self.most_strangers:
            peer = held.most_common(1)[0][0]
        else:
            return
        next(one for one in strangers if one._peer == peer)._turn_away()

    def _turn_away(self) -> None:
        """Say that there is no room, where no answer is under way, and end it once that was heard."""
        self._is_leaving = True
        if self.flow.write_paused or sum(one._is_leaving for one in self._open()) > _MOST_LEAVING:
            self.transport.abort()
            return
        if self.cycle is None or (self.cycle.more_body and not self.cycle.response_started):
            self.transport.write(_GO)
        if not self.transport.can_write_eof():  # as over TLS
            self.transport.close()
            return
        self.transport.write_eof()  # closing now would reset it, if more of its request is on the way
        if self._timer:
            self._timer.cancel()
        self._timer = self.loop.call_later(_LEAVE_SECONDS, self.transport.abort)

    def _admit(self, has_token: bool) -> bool:
        """Whether there is room to answer its request; who is let in with the token stays so. Where there is none, the
        request whose body is awaited longest makes room: one that has the token may be slow on purpose."""
        served = [
            one
            for one in self._open()
            if one is not self and not one._is_stranger and not one._is_leaving
        ]
        if len(served) >= self.most_served and not self._is_known:
            slow = [one for one in served if one.cycle is not None and one.cycle.more_body]
            if not slow:
                return False
            min(slow, key=lambda one: one._since)._turn_away()
        self._is_known = has_token
        return True

    def _look_later(self) -> None:
        self._timer = self.loop.call_later(self.patience_seconds, self._look, self.cycle)

    def _look(self, before: object) -> None:
        """End it if it is held up by the same request as when it was looked at last."""
        if self._is_held_up and self.cycle is before:
            self.transport.abort()
        else:
            self._look_later()


def listening_config(
    app: ASGIApp, cert: str = "", key: str = "", *, most_message: int = _MOST_MESSAGE, room: int = 0
) -> uvicorn.Config:
    """How uvicorn serves an app of nacre's; encrypted, where a certificate is named.

    ``most_message``: the largest message over a WebSocket that is taken, in bytes. ``room``: so many clients are served
    at once, if not as many as usual: where a balancer stands before it, all come from its address.
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


# ----------------------------------------------------------------------------
# Where a server listens: a host and a port, and who can reach it there.


EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - served only where somebody says so
"""Hosts that stand for all addresses of the machine."""

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def names_of(host: str) -> tuple[str, ...]:
    """The names by which others may call a server there; none where only this machine can."""
    if host in _LOOPBACK:
        return ()
    if host not in EVERYWHERE:
        return (f"[{host}]" if ":" in host else host,)
    own = socket.gethostname()
    with suppress(OSError):
        found = {str(info[4][0]) for info in socket.getaddrinfo(own, None, socket.AF_INET)}
        return (own, f"{own}.local", *sorted(found))
    return (own, f"{own}.local")


def split_place(place: str) -> tuple[str, int]:
    """The host and the port of ``[HOST:]PORT``. Raises InvalidInput."""
    host, _, port = place.strip().rpartition(":")
    is_clear = ":" not in host or (host.startswith("[") and host.endswith("]"))
    if not is_clear or not port.isascii() or not port.isdigit() or int(port) > _LARGEST_PORT:
        raise InvalidInput(
            f"{place!r} is no port, nor a host and a port", hint="8765, or 127.0.0.1:8765"
        )
    return host.strip("[]") or "127.0.0.1", int(port)


def listen_at(host: str, port: int, hint: str) -> socket.socket:
    """A socket that listens. Raises Unavailable, with the hint, where that port is taken."""
    listening = None
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # named TCP, as asyncio else leaves Nagle's algorithm on: 40 ms for each answer of a kept connection
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()  # who comes before the server is there waits for it
    except OSError as error:
        if listening:
            listening.close()
        raise Unavailable(
            f"cannot listen at {host}:{port}: {error.strerror or error}", hint=hint
        ) from error
    return listening
