"""How often one client may ask, and how much of it is done at once: so that who asks much leaves room for others."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

_WINDOW_SECONDS = 60.0
_MOST_CLIENTS = 1_000
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Limit:
    """So many requests a minute, of all that have the same name."""

    name: str
    a_minute: int


ASKING = Limit("asking", 3_000)
"""For what is answered at once."""

LONG = Limit("long", 60)
"""For operations that may take minutes."""

AGENT_KNOWLEDGE = Limit("agent-knowledge", 100)
"""For agent-knowledge's routes, as it has it (seed facts 2.8)."""

AGENT_KNOWLEDGE_HEAVY = Limit("agent-knowledge, at length", 20)
"""For those that search or analyse."""


class Limits:
    """Counts requests of each client, in windows of a minute. For any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._windows: dict[tuple[str, str], tuple[float, int]] = {}

    def wait(self, client: str, limit: Limit) -> float:
        """Count one more; returns for how many seconds it has to wait, which is 0 where it may be answered now."""
        now, key = self._clock(), (client, limit.name)
        with self._guard:
            ends, count = self._windows.get(key, (0.0, 0))
            if ends <= now:
                ends, count = now + _WINDOW_SECONDS, 0
                self._make_room(now)
            self._windows[key] = ends, count + 1
        return ends - now if count >= limit.a_minute else 0.0

    def _make_room(self, now: float) -> None:
        if len(self._windows) >= _MOST_CLIENTS:
            living = {key: window for key, window in self._windows.items() if window[0] > now}
            self._windows = living if len(living) < _MOST_CLIENTS else {}


class Turns:
    """Few requests for one space are done at once; its others wait for their turn, and take no thread from the requests
    for other spaces. In the event loop alone."""

    def __init__(self, at_once: int = _AT_ONCE) -> None:
        self._at_once = at_once
        self._rooms: dict[str, anyio.CapacityLimiter] = {}

    @asynccontextmanager
    async def turn(self, space: str) -> AsyncIterator[None]:
        """Wait for a turn; it lasts as long as the block."""
        room = self._rooms.setdefault(space, anyio.CapacityLimiter(self._at_once))
        try:
            async with room:
                yield
        finally:
            seen = room.statistics()
            if not seen.borrowed_tokens and not seen.tasks_waiting:
                self._rooms.pop(space, None)
