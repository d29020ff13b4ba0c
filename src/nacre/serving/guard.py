"""Who is let in over HTTP: requests for a name of this server, from no page of another origin, with the token."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, cast

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
    origins: frozenset[str] = frozenset()
    """Pages of these may ask, too."""

    is_tls: bool = False
    """Whether the server speaks TLS itself."""

    @classmethod
    def of(
        cls, own: Sequence[str], further: Sequence[str], origins: Sequence[str] = (), *, is_tls: bool = False
    ) -> Names:  # fmt: skip
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
    told = {"type": "about:blank", "title": title, "status": status, "detail": message, "code": code, "hint": hint}
    return json.dumps(told).encode()


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that says no."""

    status: int
    body: bytes
    further: tuple[tuple[bytes, bytes], ...] = ()

    @classmethod
    def of(cls, status: int, code: str, message: str, hint: str, *further: tuple[bytes, bytes]) -> Refusal:
        """With the body that all errors have."""
        return cls(status, problem(status, code, message, hint), further)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """What goes before the body."""
        length = str(len(self.body)).encode()
        return [(b"content-type", PROBLEM.encode()), (b"content-length", length), *self.further]


OTHER_HOST = Refusal.of(421, "other_host", "this server is not called that", "use the address nacre serve told")
OTHER_ORIGIN = Refusal.of(403, "other_origin", "a page of another origin may not ask", "ask from a program")
NO_TOKEN = Refusal.of(
    401, "unauthorized", "a token is needed", "send Authorization: Bearer and the token that nacre serve made",
    (b"www-authenticate", b"Bearer"),
)  # fmt: skip
NO_KEY = Refusal.of(403, "no_key", "the browser's key is needed to change anything", "run nacre open again")
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


def values_of(scope: Scope, name: bytes) -> list[str]:
    """The headers of this name, which is in small letters."""
    return [value.decode("latin-1") for header, value in scope["headers"] if header == name]
