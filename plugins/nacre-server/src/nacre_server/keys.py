"""Lookup of keys, and the open homes of their spaces."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from nacre.base.ids import utc_now
from nacre.errors import NacreError, NotFoundError
from nacre.home.home import Home, open_home
from nacre.memories.usage import fold_usage
from nacre.protocols import Embedder
from nacre.serve.events import Bus, Live
from nacre.serve.homes import Homes
from nacre.settings import Settings
from nacre.values.memory import Bearer, Face, Role
from nacre_server.connection import Registry
from nacre_server.spaces import bearer_of

T = TypeVar("T")

MOST_SPACES = 32
"""Maximum number of accounts with open homes. The least recently used homes are closed."""

_MAX_HOMES_PER_ACCOUNT = 2
"""Maximum number of homes open for an account at the same time."""

_REGISTRY_TIMEOUT_SECONDS = 15.0
"""Maximum wait for the server, because keys are looked up one at a time."""


class Spaces:
    """The open homes of the spaces for which clients have keys. The homes share models."""

    def __init__(self, settings: Settings) -> None:
        self._settings = replace(settings.having("storage.spaces", []), face=Face.DAEMON)
        self._homes: OrderedDict[tuple[str, str], Homes] = OrderedDict()
        self._guard = threading.Lock()
        self._asking = threading.Lock()
        self._registry: Registry | None = None
        self._lives: OrderedDict[str, tuple[Live, threading.Event]] = OrderedDict()
        self._loading = threading.Lock()
        self._embedders: dict[str, Embedder] = {}

    def bearer(self, secret: str) -> Bearer | None:
        """Return the holder of a key, or ``None`` if the key is invalid. Raises NacreError."""
        return self._ask(lambda registry: bearer_of(registry, secret))

    def _ask(self, ask: Callable[[Registry], T]) -> T:
        with self._asking:
            with suppress(NacreError):
                return ask(self._connection())
            self._drop()
            try:
                return ask(self._connection())
            except NacreError:
                self._drop()
                raise

    def homes(self, bearer: Bearer) -> Homes:
        key = bearer.account, bearer.space
        with self._guard:
            homes = self._homes[key] = (
                self._homes.pop(key) if key in self._homes else self._make_homes(bearer)
            )
            evicted = self._homes.popitem(last=False)[1] if len(self._homes) > MOST_SPACES else None
        if evicted:
            evicted.give_way()  # another request might be about to use it
        return homes

    def live(self, bearer: Bearer) -> Live:
        """Return the event stream of a space, whose events contain no text. Raises NacreError.

        If there are too many streams, an idle one is stopped.
        """
        key = bearer.space
        with self._guard:
            if key not in self._lives:
                self._lives[key] = self._start_live(bearer.space)
                idle = [
                    space
                    for space, (live, _) in self._lives.items()
                    if not live.bus.listeners and space != key
                ]
                if len(self._lives) > MOST_SPACES and idle:
                    self._lives.pop(idle[0])[1].set()
            self._lives.move_to_end(key)
            return self._lives[key][0]

    def end_events(self) -> None:
        """Wake all listeners for events, so that their permissions are checked again."""
        with self._guard:
            for live, _ in self._lives.values():
                live.bus.publish("leaving")

    def _start_live(self, space: str) -> tuple[Live, threading.Event]:
        stop = threading.Event()
        live = Live(lambda: open_home(self._settings_of(self.owner_of(space))), Bus(utc_now))
        threading.Thread(target=live.run, args=(stop,), daemon=True, name="looking").start()
        return live, stop

    def owner_of(self, space: str) -> Bearer:
        """Return an owner of a space, in whose name background work runs. Raises NotFoundError."""
        owners = self._ask(lambda registry: registry.all("read_owner", space=space))
        if not owners:
            raise NotFoundError(
                f"the space {space} has no owner",
                hint=f"nacre server spaces members {space} --add NAME --role owner",
            )
        return Bearer(owners[0][0], space, Role.OWNER)

    def is_reachable(self) -> bool:
        try:
            self._ask(lambda registry: registry.all("read_role", space="", account=""))
        except NacreError:
            return False
        return True

    def _connection(self) -> Registry:
        if self._registry is None:
            self._registry = Registry(self._settings.server, _REGISTRY_TIMEOUT_SECONDS)
        return self._registry

    def fold(self) -> None:
        """Store the usage counts of all open homes that are idle."""
        with self._guard:
            open_homes = list(self._homes.values())
        for homes in open_homes:
            with suppress(NacreError), homes.lent(0.0) as home:
                fold_usage(home)

    def close(self) -> None:
        with self._guard:
            for _, stop in self._lives.values():
                stop.set()
            for homes in self._homes.values():
                homes.close()
            self._homes.clear()
        with self._asking:
            self._drop()

    def _drop(self) -> None:
        if self._registry:
            self._registry.close()
        self._registry = None

    def _settings_of(self, bearer: Bearer) -> Settings:
        return self._settings.having("storage.account", bearer.account).having(
            "storage.tenant", bearer.space
        )

    def _make_homes(self, bearer: Bearer) -> Homes:
        settings = self._settings_of(bearer)

        def open_space() -> Home:
            home = open_home(settings)
            return replace(
                home, load_embedder=lambda space_settings: self._embedder(home, space_settings)
            )

        return Homes(open_space, settings.home, settings.config, _MAX_HOMES_PER_ACCOUNT)

    def _embedder(self, home: Home, settings: Settings) -> Embedder:
        name = settings.text("embedding.model")
        with self._loading:
            if name not in self._embedders:
                self._embedders[name] = home.load_embedder(settings)
            return self._embedders[name]
