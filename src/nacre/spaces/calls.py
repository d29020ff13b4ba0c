"""How often a space was asked today, over all processes that answer."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from nacre.errors import QuotaSpent
from nacre.platform.ids import Clock
from nacre.values.actor import Bearer

if TYPE_CHECKING:
    from nacre.storage.postgres.registry import Registry

FOLD_SECONDS = 30.0
"""So often a process adds what it counted to what all count: what others answered meanwhile may go beyond a quota."""


class Calls:
    """Counts requests of spaces whose quota bounds them. For any thread; who asks has the registry to itself."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._day = ""
        self._known: dict[str, int] = {}
        self._fresh: Counter[str] = Counter()
        self._folded = clock()

    def count(self, registry: Registry, bearer: Bearer) -> None:
        """Count one more. Raises QuotaSpent where it is one too many."""
        most = bearer.quota.calls
        if most is None:
            return
        now = self._clock()
        with self._guard:
            self._begin_day(now)
            if bearer.space not in self._known or (now - self._folded).total_seconds() >= FOLD_SECONDS:
                self._fresh[bearer.space] += 0
                self._fold(registry, now)
            if self._known[bearer.space] + self._fresh[bearer.space] >= most:
                raise _spent(bearer.space, most, now)
            self._fresh[bearer.space] += 1

    def fold(self, registry: Registry) -> None:
        """Add what was counted here to what all processes count."""
        with self._guard:
            self._fold(registry, self._clock())

    def _begin_day(self, now: datetime) -> None:
        day = now.date().isoformat()
        if day != self._day:
            self._day, self._known = day, {}
            self._fresh.clear()

    def _fold(self, registry: Registry, now: datetime) -> None:
        for space, number in self._fresh.items():
            ((total,),) = registry.all("add_calls", space=space, day=self._day, calls=number)
            if space not in self._known:
                registry.run("delete_old_calls", space=space, day=self._day)
            self._known[space] = int(total)
            self._fresh[space] = 0
        self._folded = now


def _spent(space: str, most: int, now: datetime) -> QuotaSpent:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    seconds = int((midnight - now).total_seconds()) + 1
    hint = "it is asked again after midnight (UTC); who manages the server says how often: nacre cluster tenants limit"
    return QuotaSpent(f"{space} was asked {most:,} times today, which is all that it may", seconds=seconds, hint=hint)
