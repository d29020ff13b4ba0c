"""Who is let in over HTTP: requests for a name of this server, from no page of another origin, with the token."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

ADMIT = "nacre.admit"
"""In the state of a request: asks whether there is room to answer it; ``True`` tells that it brought the token."""

RETRY_SECONDS = 1
"""So soon may come again who found no room."""

Admit = Callable[[bool], bool]
_AUTHORITY = re.compile(r"([a-z0-9_][a-z0-9._-]*|\[[0-9a-f:.]+\])(?::([1-9][0-9]{0,4}))?", re.IGNORECASE)
_LARGEST_PORT = 65_535
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Names:
    """The names by which a server may be called, each with a port or ``None`` for any.

    ``further`` are those by which others reach it, perhaps through what speaks TLS for it.
    """

    own: frozenset[tuple[str, int | None]]
    further: frozenset[tuple[str, int | None]]

    @classmethod
    def of(cls, own: Sequence[str], further: Sequence[str]) -> Names:
        """From ``name`` and ``name:port``; what is neither is no name."""
        return cls(frozenset(_parsed(own)), frozenset(_parsed(further)))

    def knows(self, host: str) -> bool:
        """Whether a ``Host`` names this server."""
        place = authority(host)
        return place is not None and _has(self.own | self.further, place)

    def is_same(self, origin: str, host: str) -> bool:
        """Whether a page of this origin is one of the server that the ``Host`` names."""
        scheme, _, rest = origin.partition("://")
        of_page, of_server = authority(rest), authority(host)
        if of_page is None or of_server is None or scheme not in _PORTS:
            return False
        if scheme == "https" and not _has(self.further, of_server):
            return False
        default = _PORTS[scheme]
        return (of_page[0], of_page[1] or default) == (of_server[0], of_server[1] or default)


class Guard:
    """Refuses what is not for this server (421), from a page of another origin (403), without the token (401), or one
    too many (503). All of it is told by a request's head: nothing of its body is read before."""

    def __init__(self, app: ASGIApp, names: Names, token: str | None) -> None:
        self._app = app
        self._names = names
        self._expected = token.encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": refusal.status, "headers": refusal.headers})
        await send({"type": "http.response.body", "body": refusal.body})

    def _refusal(self, scope: Scope) -> Refusal | None:
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        if len(hosts) != 1 or not self._names.knows(hosts[0]):
            return OTHER_HOST
        if len(origins) > 1 or not all(self._names.is_same(origin, hosts[0]) for origin in origins):
            return OTHER_ORIGIN
        if self._expected is not None and not self._is_token(_values(scope, b"authorization")):
            return NO_TOKEN
        admit = cast("Admit | None", scope.get("state", {}).get(ADMIT))
        return TOO_MANY if admit and not admit(self._expected is not None) else None

    def _is_token(self, given: Sequence[str]) -> bool:
        scheme, _, credentials = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        is_right = hmac.compare_digest(credentials.strip().encode("latin-1"), self._expected or b"")
        return is_right and scheme.lower() == "bearer"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that says no."""

    status: int
    body: bytes
    further: tuple[tuple[bytes, bytes], ...] = ()

    @classmethod
    def of(cls, status: int, code: str, message: str, hint: str, *further: tuple[bytes, bytes]) -> Refusal:
        """With the body that all errors have."""
        return cls(status, json.dumps({"error": {"code": code, "message": message, "hint": hint}}).encode(), further)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """What goes before the body."""
        length = str(len(self.body)).encode()
        return [(b"content-type", b"application/json"), (b"content-length", length), *self.further]


OTHER_HOST = Refusal.of(421, "other_host", "this server is not called that", "use the address nacre serve told")
OTHER_ORIGIN = Refusal.of(403, "other_origin", "a page of another origin may not ask", "ask from a program")
NO_TOKEN = Refusal.of(
    401, "unauthorized", "a token is needed", "send Authorization: Bearer and the token that nacre serve made",
    (b"www-authenticate", b"Bearer"),
)  # fmt: skip
TOO_MANY = Refusal.of(
    503, "busy", "too many connections are open", "come again in a second",
    (b"retry-after", str(RETRY_SECONDS).encode()),
)  # fmt: skip


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


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for header, value in scope["headers"] if header == name]
