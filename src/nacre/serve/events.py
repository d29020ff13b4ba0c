"""Events about changes in a home, and the thread that finds the changes.

A listener is a position in a shared list of events, so slow listeners need no extra memory.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import msgspec

from nacre.base.frozen import frozen
from nacre.base.ids import Clock
from nacre.errors import NacreError, StoreBusyError, UnavailableError
from nacre.home.home import Home
from nacre.store.gateway import GatewayStore
from nacre.store.sessions import Changes
from nacre.values.models import DOLLAR
from nacre.values.reports import Progress

MOST_EVENTS = 2_000
"""Maximum number of events kept for listeners that reconnect."""

MOST_BYTES = 4_000_000
"""Maximum total size of kept events in bytes."""

MISSED = "missed"
HELLO = "hello"


@frozen
class Event:
    """A numbered event. ``data``: the whole event as JSON."""

    seq: int
    kind: str
    data: bytes


class Bus:
    """A thread-safe list of events. Event numbers restart with each ``epoch``."""

    def __init__(
        self, clock: Clock, *, most: int = MOST_EVENTS, most_bytes: int = MOST_BYTES
    ) -> None:
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
        """The number of listeners."""
        return len(self._listeners)

    def publish(self, kind: str, **fields: Any) -> None:
        """Send an event to all listeners, and keep it for listeners that reconnect."""
        with self._guard:
            self._seq += 1
            event = self._event(self._seq, kind, fields)
            self._kept.append(event)
            self._bytes += len(event.data)
            while len(self._kept) > self._most or self._bytes > self._most_bytes:
                self._bytes -= len(self._kept.popleft().data)
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener.wake()

    def forget(self) -> None:
        """Drop all events because changes were missed, so that listeners notice the gap."""
        with self._guard:
            self._kept.clear()
            self._bytes = 0
            self._seq += 1
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener.wake()

    def listen(self, wake: Callable[[], None], after: str = "") -> Listener:
        """Add a listener for new events, or for events after ``<epoch>-<seq>``. Close it after use.

        ``wake`` is called from another thread when there are new events.
        """
        with self._guard:
            listener = Listener(self, wake, after)
            self._listeners.append(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Remove a listener."""
        with self._guard:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def after(self, seq: int, most: int) -> list[Event]:
        """Return at most ``most`` events after event number ``seq``.

        If any of these were dropped, return a single ``missed`` event instead.
        """
        with self._guard:
            oldest = self._kept[0].seq if self._kept else self._seq + 1
            if seq + 1 < oldest:
                return [self._event(oldest - 1, MISSED, {"from": seq + 1, "to": oldest - 1})]
            first = len(self._kept) - (self._seq - seq)
            return [self._kept[at] for at in range(first, min(first + most, len(self._kept)))]

    def hello(self, seq: int) -> Event:
        """Return a listener's first event, which tells the listener where its events start."""
        return self._event(seq, HELLO, {"epoch": self.epoch})

    def missed_all(self) -> Event:
        """Return the event for a listener that reconnects from an earlier epoch."""
        return self._event(self._seq, MISSED, {"from": 0, "to": self._seq})

    def _event(self, seq: int, kind: str, fields: Mapping[str, Any]) -> Event:
        content = {"seq": seq, "at": self._clock(), "kind": kind, **fields}
        return Event(seq, kind, msgspec.json.encode(content))


class Listener:
    """A reader of events, with its position in the list of events."""

    def __init__(self, bus: Bus, wake: Callable[[], None], after: str) -> None:
        self._bus = bus
        self.wake = wake
        epoch, _, seq = after.rpartition("-")
        is_back = epoch == bus.epoch and seq.isdecimal() and int(seq) <= bus.seq
        self._seq = int(seq) if is_back else bus.seq
        self._first = [bus.hello(self._seq)] + ([] if is_back or not after else [bus.missed_all()])

    def take(self, most: int = 100) -> list[Event]:
        """Return at most ``most`` new events, oldest first."""
        if self._first:
            events, self._first = self._first, []
            return events
        events = self._bus.after(self._seq, most)
        if events:
            self._seq = events[-1].seq
        return events

    def close(self) -> None:
        """Remove the listener."""
        self._bus.leave(self)


# -- Changes in the gateway's conversations --------------------------------------------------------
# Conversations can be written by a different process.


MOST_SESSIONS = 200
"""Maximum number of recent conversations in which changes are noticed."""


class ChatLook:
    """A watcher that publishes changes in the gateway's conversations."""

    def __init__(self, home: Path, bus: Bus) -> None:
        self._home = home
        self._bus = bus
        self._edition: object = None
        self._store: GatewayStore | None = None
        self._state: object = None
        with suppress(NacreError):
            self._edition, self._state = self._read()

    def look(self) -> bool:
        """Publish the changes since the last check. Return True if the database was written.

        Return False if it cannot be read. The next check tries again.
        """
        try:
            edition, state = self._read()
        except NacreError:
            self.close()
            return False
        if edition == self._edition:
            return False
        if state != self._state:
            self._bus.publish("chat")
        self._edition, self._state = edition, state
        return True

    def close(self) -> None:
        """Close the connection."""
        if self._store:
            self._store.close()
        self._store, self._edition = None, object()

    def _open(self) -> GatewayStore | None:
        if self._store and not self._store.is_in_place():
            self.close()
        if self._store is None:
            self._store = GatewayStore.open_to_read(self._home)
        return self._store

    def _read(self) -> tuple[object, object]:
        """Return the edition and state of the database. Read the state if the edition is new."""
        store = self._open()
        if store is None:
            return None, None
        edition = store.edition()
        return edition, self._state if edition == self._edition else store.state(MOST_SESSIONS)


# -- Changes in a home -----------------------------------------------------------------------------
# If nothing has changed, a check reads only a single number from SQLite.


MOST_IDS = 100
"""Maximum number of ids in an event. The event's ``total`` counts all ids."""

MAX_WATCHED_SESSIONS = 20
"""Maximum number of sessions that a check reports separately."""

_MAX_RECORD_DELAY = timedelta(hours=1)
"""Maximum delay before an operation is recorded, which happens at its first write."""


class Look:
    """A watcher that publishes changes in a home."""

    def __init__(self, home: Home, bus: Bus) -> None:
        self._home = home
        self._bus = bus
        self._edition = home.database.edition()
        self._changes = Changes(home.database)
        self._turn = self._changes.last_turn()
        self._since = home.now()
        self._operations = {
            operation for operation, _ in self._changes.operations(self._since - _MAX_RECORD_DELAY)
        }
        self._candidates = home.candidates.count()
        self._doubted, self._queued = self._changes.doubted(), self._changes.queued()
        self._trace = self._changes.last_trace()
        self._day = home.today()
        self._spent = self._spent_by_task(self._day)
        self._changes.free_pages()
        self._chats = ChatLook(home.settings.home, bus)

    def look(self) -> bool:
        """Publish the changes since the last check. Return True if the database was written."""
        has_talked = self._chats.look()
        edition = self._home.database.edition()
        if edition == self._edition:
            return has_talked
        self._look_at_operations()
        has_changed = self._look_at_memories()
        self._look_at_sessions()
        self._look_at_review(self._changes.doubted() if has_changed else self._doubted)
        self._look_at_spending()
        self._look_at_traces()
        self._changes.free_pages()
        self._edition = edition
        return True

    def close(self) -> None:
        """Close the connection to the gateway's database. The caller closes the home."""
        self._chats.close()

    def _look_at_operations(self) -> None:
        now = self._home.now()
        operations = self._changes.operations(self._since - _MAX_RECORD_DELAY)
        for operation, name in operations:
            if operation not in self._operations:
                self._bus.publish("operation", id=operation, name=name)
        self._operations = {operation for operation, _ in operations}
        self._since = now

    def _look_at_memories(self) -> bool:
        groups: dict[tuple[str, str | None], list[str]] = {}
        for row in self._changes.memories():
            groups.setdefault((row.change, row.operation), []).append(row.id)
        for (change, operation), ids in groups.items():
            self._bus.publish(
                "memory", change=change, ids=ids[:MOST_IDS], total=len(ids), operation=operation
            )
        return bool(groups)

    def _look_at_sessions(self) -> None:
        last = self._changes.last_turn()
        if last <= self._turn:
            return
        grown = self._changes.grown_sessions(self._turn, MAX_WATCHED_SESSIONS + 1)
        self._turn = last
        for session in reversed(grown[:MAX_WATCHED_SESSIONS]):
            self._bus.publish("session", id=session.id, tool=session.tool, turns=session.turns)
        if len(grown) > MAX_WATCHED_SESSIONS:
            self._bus.publish("session", id=None, tool=None, turns=None)

    def _look_at_review(self, doubted: frozenset[str]) -> None:
        candidates, queued = self._home.candidates.count(), self._changes.queued()
        if candidates != self._candidates:
            self._bus.publish("candidate", waiting=candidates)
        ids = sorted((doubted ^ self._doubted) | (queued ^ self._queued))
        if ids:
            self._bus.publish("doubt", ids=ids[:MOST_IDS], total=len(ids))
        self._candidates, self._doubted, self._queued = candidates, doubted, queued

    def _look_at_spending(self) -> None:
        day = self._home.today()
        before = self._spent if day == self._day else {}
        self._day, self._spent = day, self._spent_by_task(day)
        total = sum(cost for _, cost in self._spent.values())
        for task, spent in self._spent.items():
            if spent != before.get(task):
                self._bus.publish(
                    "cost", task=task, usd=spent[1] / DOLLAR, today_usd=total / DOLLAR
                )

    def _look_at_traces(self) -> None:
        last = self._changes.last_trace()
        if last != self._trace:
            self._bus.publish("trace", id=last)
        self._trace = last

    def _spent_by_task(self, day: date) -> dict[str, tuple[int, int]]:
        """Return each task's number of calls and cost in millionths of a US dollar."""
        return {
            entry.task: (entry.calls, entry.cost) for entry in self._home.spending.by_task(day, day)
        }


# -- Observation -----------------------------------------------------------------------------------
# While there are listeners, a thread checks for changes a few times per second.


LOOK_SECONDS = 0.2
LEAST_SHARE = 10
"""A pause lasts at least this many times as long as the preceding check."""

KEEP_SECONDS = 300.0
"""How long to continue without listeners, in seconds, because they might reconnect."""

_IDLE_SECONDS = 1.0
_RETRY_SECONDS = 5.0
_READY_TIMEOUT_SECONDS = 10.0


class Live:
    """A home's events, and the thread that publishes them.

    ``open_home``: opens the home for the thread.
    """

    def __init__(self, open_home: Callable[[], Home], bus: Bus) -> None:
        self.bus = bus
        self._open_home = open_home
        self._wanted = threading.Event()
        self._began = threading.Condition()
        self._is_ready = False
        self._error: NacreError | None = None

    def wait_ready(self) -> None:
        """Wait until the thread has read the home's state, so that listeners get every later change.

        Raises any error from opening the home, and UnavailableError if it takes too long.
        """
        self._wanted.set()
        with self._began:
            self._began.wait_for(lambda: self._is_ready or self._error, _READY_TIMEOUT_SECONDS)
            if not self._is_ready:
                raise self._error or UnavailableError(
                    "events are not ready", hint="try again in a moment"
                )

    def wake(self) -> None:
        """Wake :meth:`run`, so that it checks the ``stop`` event."""
        self._wanted.set()

    def run(self, stop: threading.Event) -> None:
        """Publish changes until ``stop`` is set. Can be called again after an error."""
        while not stop.is_set():
            if (self._wanted.wait(_IDLE_SECONDS) or self.bus.listeners) and not stop.is_set():
                self._follow(stop)

    def _follow(self, stop: threading.Event) -> None:
        """Publish changes until there are no listeners for a while, or the database was replaced."""
        try:
            with closing(self._open_home()) as home:
                self._wanted.clear()
                with closing(Look(home, self.bus)) as look:
                    self.bus.forget()
                    self._set_ready(is_ready=True)
                    try:
                        self._look_repeatedly(home, look, stop)
                    finally:
                        self._set_ready(is_ready=False)
        except NacreError as error:
            self._set_ready(is_ready=False, error=error)
            stop.wait(_RETRY_SECONDS)
            self._error = None

    def _look_repeatedly(self, home: Home, look: Look, stop: threading.Event) -> None:
        last_listener, pause = time.monotonic(), LOOK_SECONDS
        while not stop.wait(pause) and home.database.is_in_place():
            began = time.monotonic()
            if self.bus.listeners:
                last_listener = began
                with suppress(StoreBusyError):  # the next check finds the change
                    look.look()
            elif began - last_listener > KEEP_SECONDS:
                return
            else:
                self._wanted.clear()
                self._wanted.wait(_IDLE_SECONDS)
            pause = (
                max(LOOK_SECONDS, LEAST_SHARE * (time.monotonic() - began))
                if self.bus.listeners
                else 0.0
            )

    def _set_ready(self, *, is_ready: bool, error: NacreError | None = None) -> None:
        with self._began:
            self._is_ready, self._error = is_ready, error
            self._began.notify_all()


# -- Progress --------------------------------------------------------------------------------------


LEAST_SECONDS = 0.2
"""Minimum time between two progress events of a task, in seconds."""


@contextmanager
def published(bus: Bus, task: str) -> Iterator[Callable[[Progress], None]]:
    """Yield a callback that publishes a task's progress.

    If the callback was called, the end of the task is also published.
    """
    last: Progress | None = None
    due = 0.0

    def publish(progress: Progress) -> None:
        nonlocal last, due
        is_new = last is None or progress.stage != last.stage
        last = progress
        now = time.monotonic()
        if is_new or now >= due:
            due = now + LEAST_SECONDS
            _publish(bus, task, progress, ended=False)

    try:
        yield publish
    finally:
        if last:
            _publish(bus, task, last, ended=True)


def _publish(bus: Bus, task: str, progress: Progress, *, ended: bool) -> None:
    bus.publish(
        "progress",
        task=task,
        stage=progress.stage,
        text=progress.note,
        done=progress.done,
        total=progress.total,
        ended=ended,
    )
