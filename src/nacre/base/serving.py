"""HTTP serving: access checks, connection limits and listening sockets."""

from __future__ import annotations

import hmac
import json
import re
import socket
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING

from nacre.base.frozen import frozen
from nacre.errors import InvalidInputError, UnavailableError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""Names by which a machine can address itself."""

PROBLEM = "application/problem+json"

Shows = Callable[["Scope"], bool]
"""A function that returns True if a request's headers contain a valid credential."""

Lacks = Callable[["Scope"], "Refusal | None"]
"""A function that returns the refusal for a missing credential, or ``None`` if no credential is
needed.
"""

_AUTHORITY = re.compile(
    r"([a-z0-9_][a-z0-9._-]*|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?", re.IGNORECASE
)
_MAX_PORT = 65_535
_PORTS = {"http": 80, "https": 443}


@frozen
class Names:
    """The host names of a server, each with a port, or ``None`` for any port.

    ``further``: names that other machines use, possibly through a TLS proxy.
    """

    own: frozenset[tuple[str, int | None]]
    further: frozenset[tuple[str, int | None]]
    is_tls: bool = False
    """True if the server itself uses TLS."""

    @classmethod
    def of(
        cls,
        own: Sequence[str],
        further: Sequence[str],
        *,
        is_tls: bool = False,
    ) -> Names:
        """Parse names such as ``name`` and ``name:port``, ignoring invalid ones."""
        return cls(
            frozenset(_parse_names(own)),
            frozenset(_parse_names(further)),
            is_tls,
        )

    def accept(self, host: str) -> bool:
        """Return True if a ``Host`` header names this server."""
        place = authority(host)
        return place is not None and _has(self.own | self.further, place)

    def is_same(self, origin: str, host: str) -> bool:
        """Return True if an ``Origin`` header names the same server as ``Host``."""
        scheme, _, place = origin.partition("://")
        of_page, of_server = authority(place), authority(host)
        if of_page is None or of_server is None or scheme not in _PORTS:
            return False
        if scheme != "https" and self.is_tls:
            return False
        if scheme == "https" and not self.is_tls and not _has(self.further, of_server):
            return False
        default = _PORTS[scheme]
        return (of_page[0], of_page[1] or default) == (of_server[0], of_server[1] or default)


class Guard:
    """Middleware that checks the headers of requests.

    It answers 421 for a wrong host, 403 for a wrong origin, and 401 for a missing credential.
    """

    def __init__(self, app: ASGIApp, names: Names, shows: Shows, lacks: Lacks) -> None:
        self._app = app
        self._names = names
        self._shows = shows
        self._lacks = lacks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, headers = refusal.status, refusal.headers
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": refusal.body})

    def _refusal(self, scope: Scope) -> Refusal | None:
        hosts, origins = values_of(scope, b"host"), values_of(scope, b"origin")
        if len(hosts) != 1 or not self._names.accept(hosts[0]):
            return OTHER_HOST
        if len(origins) > 1 or not all(self._names.is_same(origin, hosts[0]) for origin in origins):
            return OTHER_ORIGIN
        return None if self._shows(scope) else self._lacks(scope)


def shows_token(token: str | None) -> Shows:
    """Return a check of a request's bearer token. Without a token, every request fails."""
    expected = (token or "").encode()

    def shows(scope: Scope) -> bool:
        headers = values_of(scope, b"authorization")
        scheme, _, credentials = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
        is_right = hmac.compare_digest(credentials.strip().encode("latin-1"), expected)
        return bool(expected) and is_right and scheme.lower() == "bearer"

    return shows


def problem(status: int, code: str, message: str, hint: str | None) -> bytes:
    """Return an error response's body in the format of RFC 9457."""
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


@frozen
class Refusal:
    """An HTTP response that refuses a request."""

    status: int
    body: bytes
    further: tuple[tuple[bytes, bytes], ...] = ()

    @classmethod
    def of(
        cls, status: int, code: str, message: str, hint: str, *further: tuple[bytes, bytes]
    ) -> Refusal:
        return cls(status, problem(status, code, message, hint), further)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        length = str(len(self.body)).encode()
        return [(b"content-type", PROBLEM.encode()), (b"content-length", length), *self.further]


OTHER_HOST = Refusal.of(
    421, "other_host", "the request names another server", "use the address printed by nacre serve"
)
OTHER_ORIGIN = Refusal.of(
    403, "other_origin", "pages from other origins are not allowed", "call it from a program"
)
NO_TOKEN = Refusal.of(
    401,
    "unauthorized",
    "a token is needed",
    "send Authorization: Bearer with the token from nacre serve",
    (b"www-authenticate", b"Bearer"),
)
NO_KEY = Refusal.of(
    403, "no_key", "the browser's key is needed to change anything", "run nacre open again"
)


def authority(text: str) -> tuple[str, int | None] | None:
    """Parse ``name[:port]``, or return ``None`` if it is invalid or has a user or path."""
    match = _AUTHORITY.fullmatch(text)
    if match is None or match[1].endswith("."):
        return None
    port = int(match[2]) if match[2] else None
    return None if port and port > _MAX_PORT else (match[1].lower(), port)


def _parse_names(names: Iterable[str]) -> Iterable[tuple[str, int | None]]:
    return (place for name in names if (place := authority(name)))


def _has(names: frozenset[tuple[str, int | None]], place: tuple[str, int | None]) -> bool:
    return place in names or (place[0], None) in names


def values_of(scope: Scope, name: bytes) -> list[str]:
    """Return all values of a request header, whose name must be lower case."""
    return [value.decode("latin-1") for header, value in scope["headers"] if header == name]


# -- Listening addresses ---------------------------------------------------------------------------


EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - used only if configured
"""Hosts that mean all addresses of the machine."""


def names_of(host: str) -> tuple[str, ...]:
    """Return the names by which other machines reach a host. A loopback address has none."""
    name = f"[{host}]" if ":" in host else host
    if name in LOOPBACK:
        return ()
    if host not in EVERYWHERE:
        return (name,)
    own = socket.gethostname()
    addresses = set()
    with suppress(OSError):
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(own, None, socket.AF_INET)}
    return (own, f"{own}.local", *sorted(addresses))


def split_place(place: str) -> tuple[str, int]:
    """Split ``[HOST:]PORT`` into host and port. Raises InvalidInputError."""
    host, _, port = place.strip().rpartition(":")
    is_clear = ":" not in host or (host.startswith("[") and host.endswith("]"))
    if not is_clear or not port.isascii() or not port.isdigit() or int(port) > _MAX_PORT:
        raise InvalidInputError(
            f"{place!r} is not a port, or a host and a port", hint="try 8765 or 127.0.0.1:8765"
        )
    return host.strip("[]") or "127.0.0.1", int(port)


def listen_at(host: str, port: int, hint: str) -> socket.socket:
    """Return a socket that listens at an address. Raises UnavailableError if that fails."""
    listening = None
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # With IPPROTO_TCP, asyncio turns off Nagle's algorithm, which costs 40 ms per answer.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen()  # early clients wait until the server starts
    except OSError as error:
        if listening:
            listening.close()
        raise UnavailableError(
            f"cannot listen at {host}:{port}: {error.strerror or error}", hint=hint
        ) from error
    return listening
