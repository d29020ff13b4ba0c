"""What the routes are given: the home's operations, and who may ask for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import anyio

from nacre.events.live import Live
from nacre.serving.guard import NO_KEY, NO_TOKEN, Names, Refusal, shows_token, values_of
from nacre.values.actor import Actor, Bearer, Face
from nacre.web.browsers import Browsers
from nacre.web.limits import Turns

if TYPE_CHECKING:
    from starlette.types import Scope


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
        if (changes and len(keys) != 1) or not set(values_of(scope, b"sec-fetch-site")) <= _OWN_SITES:
            return False
        origins = values_of(scope, b"origin")
        if (scope["type"] == "websocket" and not origins) or not self.names.origins.isdisjoint(origins):
            return False
        return any(self.browsers.knows(one, keys[0] if changes else None) for one in self._cookies(scope))

    def _cookies(self, scope: Scope) -> list[str]:
        """Those of this home; browsers send all of a machine."""
        pairs = (pair.strip().partition("=") for text in values_of(scope, b"cookie") for pair in text.split(";"))
        return [value for name, _, value in pairs if name == self.browsers.cookie]
