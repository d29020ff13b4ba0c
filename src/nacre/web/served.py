"""What the routes are given: the home's operations, and who may ask for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from nacre.events.live import Live
from nacre.mcp.guard import shows_token, values_of
from nacre.values.actor import Actor, Face
from nacre.web.browsers import Browsers

if TYPE_CHECKING:
    from starlette.types import Scope

A_PROGRAM = "a program"
"""The agent that asks where a request shows the token and no cookie."""

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_HEADER = b"x-nacre"
"""Pages of other origins cannot send it: without it no cookie counts where something may change."""


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
    """One home, as it is served. ``facts`` are told to whoever may ask, ``token`` is ``None`` where none is asked."""

    home: Path
    run: Run
    facts: Callable[[], Mapping[str, object]]
    browsers: Browsers
    live: Live
    token: str | None
    hosts: tuple[str, ...] = ()
    is_tls: bool = False
    traffic: Traffic = field(default_factory=Traffic)

    def actor(self, scope: Scope) -> Actor | None:
        """Who asks: the owner by a cookie, a program by the token (which counts as an agent), or nobody known."""
        if self._is_owner(scope):
            return Actor(Face.HTTP)
        if self.token is None or shows_token(self.token)(scope):
            return Actor(Face.HTTP, A_PROGRAM)
        return None

    def _is_owner(self, scope: Scope) -> bool:
        cookies = [one for text in values_of(scope, b"cookie") for one in _cookies(text, self.browsers.cookie)]
        changes = scope["type"] == "http" and scope["method"] not in SAFE
        if not cookies or (changes and not values_of(scope, OWN_HEADER)):
            return False
        return any(self.browsers.knows(one) for one in cookies)


def _cookies(text: str, name: str) -> list[str]:
    try:
        return [morsel.value for key, morsel in SimpleCookie(text).items() if key == name]
    except CookieError:
        return []
