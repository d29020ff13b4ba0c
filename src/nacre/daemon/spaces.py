"""Spaces on a server that programs open by their keys, beside the home that is served."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from nacre.daemon.homes import Homes
from nacre.errors import NacreError, NotFound, QuotaSpent
from nacre.events.bus import Bus
from nacre.events.live import Live
from nacre.home.home import Home, open_home
from nacre.memories.usage import fold_usage
from nacre.platform.ids import utc_now
from nacre.platform.lazy import load
from nacre.protocols import Embedder
from nacre.settings import Settings
from nacre.spaces.calls import Calls
from nacre.spaces.keys import bearer_of
from nacre.spending.budget import DAILY
from nacre.values.actor import Bearer, Face, Quota, Role

if TYPE_CHECKING:
    from nacre.storage.postgres.registry import Registry

T = TypeVar("T")

MOST_SPACES = 32
"""So many accounts have their homes open; who asked longest ago gives way."""

_MOST_OPEN = 2
"""Of one account, side by side."""

_SILENT_SECONDS = 15.0
"""Keys are looked up one after the other, and in milliseconds: so long nobody hears from the server."""


class Spaces:
    """Tells whose key a secret is, and lends homes of the spaces that keys open. All share one model."""

    def __init__(self, settings: Settings) -> None:
        self._settings = replace(settings.having("storage.spaces", []), face=Face.DAEMON)
        self._homes: OrderedDict[tuple[str, str, Quota], Homes] = OrderedDict()
        self._guard = threading.Lock()
        self._asking = threading.Lock()
        self._registry: Registry | None = None
        self._lives: OrderedDict[str, tuple[Live, threading.Event]] = OrderedDict()
        self._calls = Calls(utc_now)
        self._loading = threading.Lock()
        self._embedders: dict[str, Embedder] = {}

    def bearer(self, secret: str) -> Bearer | None:
        """Whose key it is; ``None`` where it does not hold. Raises QuotaSpent, and other NacreErrors where
        it cannot be looked up now."""
        return self._asked(lambda registry: self._counted(registry, secret))

    def _counted(self, registry: Registry, secret: str) -> Bearer | None:
        bearer = bearer_of(registry, secret)
        if bearer:
            self._calls.count(registry, bearer)
        return bearer

    def _asked(self, ask: Callable[[Registry], T]) -> T:
        """What the registry answers; a connection that broke is opened again."""
        with self._asking:
            try:
                return ask(self._opened())
            except QuotaSpent:
                raise
            except NacreError:
                self._drop()
            try:
                return ask(self._opened())
            except NacreError:
                self._drop()
                raise

    def homes(self, bearer: Bearer) -> Homes:
        """Homes of an account in a space."""
        key = bearer.account, bearer.space, bearer.quota
        with self._guard:
            found = self._homes[key] = self._homes.pop(key) if key in self._homes else self._made(bearer)
            gone = self._homes.popitem(last=False)[1] if len(self._homes) > MOST_SPACES else None
        if gone:
            gone.give_way()  # somebody may be about to ask there
        return found

    def live(self, bearer: Bearer) -> Live:
        """The events of a space, in a thread of its own that ends when others need the room. They hold ids and no
        texts. Raises NacreError."""
        key = bearer.space
        with self._guard:
            if key not in self._lives:
                self._lives[key] = self._began(bearer.space)
                idle = [one for one, (live, _) in self._lives.items() if not live.bus.listeners and one != key]
                if len(self._lives) > MOST_SPACES and idle:
                    self._lives.pop(idle[0])[1].set()
            self._lives.move_to_end(key)
            return self._lives[key][0]

    def end_events(self) -> None:
        """Wake whoever listens, so that it is seen that they may no more."""
        with self._guard:
            for live, _ in self._lives.values():
                live.bus.publish("leaving")

    def _began(self, space: str) -> tuple[Live, threading.Event]:
        live, stop = Live(lambda: open_home(self._settings_of(self.owner_of(space))), Bus(utc_now)), threading.Event()
        threading.Thread(target=live.run, args=(stop,), daemon=True, name="looking").start()
        return live, stop

    def owner_of(self, space: str) -> Bearer:
        """In whose name this program does something in a space by itself. Raises NacreError, NotFound where nobody owns
        it."""
        found = self._asked(lambda registry: registry.all("read_owner", space=space))
        if not found:
            raise NotFound(f"nobody owns the space {space}", hint=f"nacre spaces add {space} NAME --role owner")
        account, *quota = found[0]
        return Bearer(account, space, Role.OWNER, Quota(*quota))

    def is_reachable(self) -> bool:
        """Whether keys can be looked up now."""
        try:
            self._asked(lambda registry: registry.all("read_role", space="", account=""))
        except NacreError:
            return False
        return True

    def _opened(self) -> Registry:
        if self._registry is None:
            self._registry = load("nacre.storage.postgres.registry:Registry")(self._settings.server, _SILENT_SECONDS)
        return self._registry

    def fold(self) -> None:
        """Count what was noted on the way, as far as nobody is at work there."""
        with suppress(NacreError):
            self._asked(self._calls.fold)
        with self._guard:
            found = list(self._homes.values())
        for homes in found:
            with suppress(NacreError), homes.lent(0.0) as home:
                fold_usage(home)

    def close(self) -> None:
        """Close all homes."""
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
        found = self._settings.having("storage.account", bearer.account).having("storage.tenant", bearer.space)
        if bearer.quota.usd is not None:
            found = found.having(DAILY, min(bearer.quota.usd, found.number(DAILY)))
        return found if bearer.quota.turns is None else found.having("storage.most_turns", bearer.quota.turns)

    def _made(self, bearer: Bearer) -> Homes:
        settings = self._settings_of(bearer)

        def opened() -> Home:
            home = open_home(settings)
            return replace(home, load_embedder=lambda wanted: self._embedder(home, wanted))

        return Homes(opened, settings.home, settings.config, _MOST_OPEN)

    def _embedder(self, home: Home, settings: Settings) -> Embedder:
        name = settings.text("embedding.model")
        with self._loading:
            if name not in self._embedders:
                self._embedders[name] = home.load_embedder(settings)
            return self._embedders[name]
