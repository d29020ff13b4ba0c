"""Requests with keys: the holders of keys, their quotas, and the open homes of their spaces."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from nacre.base.ids import Clock, utc_now
from nacre.errors import NacreError, NotFoundError, QuotaSpentError
from nacre.home.home import Home, open_home
from nacre.home.spending import DAILY
from nacre.memories.store import fold_usage
from nacre.protocols import Embedder
from nacre.serve.events import Bus, Live
from nacre.serve.homes import Homes
from nacre.settings import Settings
from nacre.values.memory import Bearer, Face, Quota, Role
from nacre_server.registry import Registry
from nacre_server.spaces import bearer_of

FOLD_SECONDS = 30.0
"""Interval in seconds at which a process adds its counts to the shared counts.

In between, calls to other processes can exceed a quota.
"""


class Calls:
    """Counts the calls of spaces with a quota.

    Thread-safe, but the caller must have exclusive use of the registry.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._day = ""
        self._known: dict[str, int] = {}
        self._fresh: Counter[str] = Counter()
        self._folded = clock()

    def count(self, registry: Registry, bearer: Bearer) -> None:
        """Count a call. Raises QuotaSpentError if it exceeds the quota."""
        limit = bearer.quota.calls
        if limit is None:
            return
        now = self._clock()
        with self._guard:
            day = now.date().isoformat()
            if day != self._day:
                self._day, self._known = day, {}
                self._fresh.clear()
            if (
                bearer.space not in self._known
                or (now - self._folded).total_seconds() >= FOLD_SECONDS
            ):
                self._fresh[bearer.space] += 0
                self._fold(registry, now)
            if self._known[bearer.space] + self._fresh[bearer.space] >= limit:
                midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(
                    days=1
                )
                seconds = int((midnight - now).total_seconds()) + 1
                hint = "wait until midnight (UTC), or ask for more: nacre server cluster tenants NAME --calls"
                raise QuotaSpentError(
                    f"{bearer.space} has used its {limit:,} requests for today",
                    seconds=seconds,
                    hint=hint,
                )
            self._fresh[bearer.space] += 1

    def fold(self, registry: Registry) -> None:
        with self._guard:
            self._fold(registry, self._clock())

    def _fold(self, registry: Registry, now: datetime) -> None:
        for space, number in self._fresh.items():
            ((total,),) = registry.all("add_calls", space=space, day=self._day, calls=number)
            if space not in self._known:
                registry.run("delete_old_calls", space=space, day=self._day)
            self._known[space] = int(total)
            self._fresh[space] = 0
        self._folded = now


T = TypeVar("T")

MOST_SPACES = 32
"""Maximum number of accounts with open homes. The least recently used home is closed."""

_MAX_HOMES_PER_ACCOUNT = 2
"""Maximum number of homes open for one account at the same time."""

_REGISTRY_TIMEOUT_SECONDS = 15.0
"""Maximum wait for the server's answer. Keys are looked up one at a time, normally in milliseconds."""


class Spaces:
    """Looks up keys, and keeps the homes of their spaces open. All homes share one model."""

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
        """Return the holder of a key, or ``None`` if the key is invalid.

        Raises QuotaSpentError, and other NacreErrors if the lookup fails.
        """
        return self._ask(lambda registry: self._count(registry, secret))

    def _count(self, registry: Registry, secret: str) -> Bearer | None:
        bearer = bearer_of(registry, secret)
        if bearer:
            self._calls.count(registry, bearer)
        return bearer

    def _ask(self, ask: Callable[[Registry], T]) -> T:
        """Call the registry. If the connection is broken, reconnect once."""
        with self._asking:
            try:
                return ask(self._connection())
            except QuotaSpentError:
                raise
            except NacreError:
                self._drop()
            try:
                return ask(self._connection())
            except NacreError:
                self._drop()
                raise

    def homes(self, bearer: Bearer) -> Homes:
        key = bearer.account, bearer.space, bearer.quota
        with self._guard:
            homes = self._homes[key] = (
                self._homes.pop(key) if key in self._homes else self._make_homes(bearer)
            )
            evicted = self._homes.popitem(last=False)[1] if len(self._homes) > MOST_SPACES else None
        if evicted:
            evicted.give_way()  # a caller might be about to use it
        return homes

    def live(self, bearer: Bearer) -> Live:
        """Return the events of a space. If too many spaces have events, the thread of an idle space ends.

        The events contain ids but no texts. Raises NacreError.
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
        """Wake all listeners, so that their permissions are checked again."""
        with self._guard:
            for live, _ in self._lives.values():
                live.bus.publish("leaving")

    def _start_live(self, space: str) -> tuple[Live, threading.Event]:
        live, stop = (
            Live(lambda: open_home(self._settings_of(self.owner_of(space))), Bus(utc_now)),
            threading.Event(),
        )
        threading.Thread(target=live.run, args=(stop,), daemon=True, name="looking").start()
        return live, stop

    def owner_of(self, space: str) -> Bearer:
        """Return the owner of a space, for background work.

        Raises NacreError, and NotFoundError if there is no owner.
        """
        owners = self._ask(lambda registry: registry.all("read_owner", space=space))
        if not owners:
            raise NotFoundError(
                f"the space {space} has no owner",
                hint=f"nacre server spaces members {space} --add NAME --role owner",
            )
        account, *quota = owners[0]
        return Bearer(account, space, Role.OWNER, Quota(*quota))

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
        """Store the counts of calls and usage, except in homes that are in use."""
        with suppress(NacreError):
            self._ask(self._calls.fold)
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
        settings = self._settings.having("storage.account", bearer.account).having(
            "storage.tenant", bearer.space
        )
        if bearer.quota.usd is not None:
            settings = settings.having(DAILY, min(bearer.quota.usd, settings.number(DAILY)))
        return (
            settings
            if bearer.quota.turns is None
            else settings.having("storage.most_turns", bearer.quota.turns)
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
