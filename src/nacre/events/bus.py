"""The last events of a home, with numbers: each listener reads them at its own pace, and is told what it missed.

A listener is a place in one row of events, and keeps nothing of its own: however many there are, and however slow they
are, the row alone takes memory.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from nacre.platform.ids import Clock

MOST_EVENTS = 2_000
"""So many are kept for those that were away."""

MOST_BYTES = 4_000_000
"""Of all that are kept."""

MISSED = "missed"
HELLO = "hello"


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its number, its kind, and all of it as JSON."""

    seq: int
    kind: str
    data: bytes


class Bus:
    """Takes events from any thread, and hands them to listeners. Numbers begin anew with each ``epoch``."""

    def __init__(self, clock: Clock, *, most: int = MOST_EVENTS, most_bytes: int = MOST_BYTES) -> None:
        self.epoch = secrets.token_hex(4)
        self._clock = clock
        self._most = most
        self._most_bytes = most_bytes
        self._guard = threading.Lock()
        self._kept: deque[Event] = deque()
        self._bytes = 0
        self._seq = 0
        self._listeners: list[Listener] = []

    @property
    def seq(self) -> int:
        """The number of the last event."""
        return self._seq

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    def publish(self, kind: str, **fields: Any) -> None:
        """Tell all that listen, and keep it for those that come back."""
        with self._guard:
            self._seq += 1
            event = self._event(self._seq, kind, fields)
            self._kept.append(event)
            self._bytes += len(event.data)
            while len(self._kept) > self._most or self._bytes > self._most_bytes:
                self._bytes -= len(self._kept.popleft().data)
            listeners = tuple(self._listeners)
        for one in listeners:
            one.wake()

    def forget(self) -> None:
        """Nobody looked for a while: what happened since is in no event, and whoever listened before missed it."""
        with self._guard:
            self._kept.clear()
            self._bytes = 0
            self._seq += 1
            listeners = tuple(self._listeners)
        for one in listeners:
            one.wake()

    def listen(self, wake: Callable[[], None], after: str = "") -> Listener:
        """Listen from now on, or from after the event with the id ``<epoch>-<seq>``; ``wake`` is called, in any thread,
        when there is something to take. Close it in the end."""
        with self._guard:
            listener = Listener(self, wake, after)
            self._listeners.append(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """It listens no more."""
        with self._guard:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def after(self, seq: int, most: int) -> list[Event]:
        """The events after a number, at most so many; one that says so where some of them are kept no more."""
        with self._guard:
            oldest = self._kept[0].seq if self._kept else self._seq + 1
            if seq + 1 < oldest:
                return [self._event(oldest - 1, MISSED, {"from": seq + 1, "to": oldest - 1})]
            first = len(self._kept) - (self._seq - seq)
            return [self._kept[at] for at in range(first, min(first + most, len(self._kept)))]

    def hello(self, seq: int) -> Event:
        """What a listener hears first: from which number on it is told."""
        return self._event(seq, HELLO, {"epoch": self.epoch})

    def missed_all(self) -> Event:
        """What a listener hears that was here in another epoch."""
        return self._event(self._seq, MISSED, {"from": 0, "to": self._seq})

    def _event(self, seq: int, kind: str, fields: Mapping[str, Any]) -> Event:
        told = {"seq": seq, "at": self._clock(), "kind": kind, **fields}
        return Event(seq, kind, msgspec.json.encode(told))


class Listener:
    """One that listens, at a place in the row of events."""

    def __init__(self, bus: Bus, wake: Callable[[], None], after: str) -> None:
        self._bus = bus
        self.wake = wake
        epoch, _, seq = after.rpartition("-")
        is_back = epoch == bus.epoch and seq.isdecimal() and int(seq) <= bus.seq
        self._seq = int(seq) if is_back else bus.seq
        self._first = [bus.hello(self._seq)] + ([] if is_back or not after else [bus.missed_all()])

    def take(self, most: int = 100) -> list[Event]:
        """What it has not taken yet, the oldest first, at most so many; nothing where there is nothing."""
        if self._first:
            found, self._first = self._first, []
            return found
        found = self._bus.after(self._seq, most)
        if found:
            self._seq = found[-1].seq
        return found

    def close(self) -> None:
        """Listen no more."""
        self._bus.leave(self)
