"""Events about changes in a home, and the thread that finds the changes.

Events are not stored. A client that reconnects reads everything again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import msgspec

from nacre.base.ids import Clock
from nacre.errors import NacreError, StoreBusyError, UnavailableError
from nacre.home.home import Home
from nacre.store.gateway import GatewayStore
from nacre.store.sessions import Changes
from nacre.values.models import DOLLAR
from nacre.values.reports import Progress

MOST_EVENTS = 2_000
"""Maximum number of events queued for a listener. A slower listener gets ``missed`` instead."""

HELLO, MISSED = "hello", "missed"


class Bus:
    """A thread-safe distributor of events to listeners."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._number = 0
        self._listeners: list[Listener] = []

    @property
    def listeners(self) -> int:
        return len(self._listeners)

    def publish(self, kind: str, **fields: Any) -> None:
        with self._guard:
            self._number += 1
            event = self.event(kind, **fields)
            listeners = tuple(self._listeners)
            for listener in listeners:
                listener.add(event)
        for listener in listeners:
            listener.wake()

    def listen(self, wake: Callable[[], None]) -> Listener:
        """Add a listener, which the caller must close. ``wake`` is called in another thread at each
        event.
        """
        with self._guard:
            listener = Listener(self, wake)
            self._listeners.append(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        with self._guard:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def event(self, kind: str, **fields: Any) -> bytes:
        """Encode an event as JSON, with its sequence number and the current time."""
        content = {"seq": self._number, "at": self._clock(), "kind": kind, **fields}
        return msgspec.json.encode(content)


class Listener:
    """A queue of the events for one client. The first event is ``hello``."""

    def __init__(self, bus: Bus, wake: Callable[[], None]) -> None:
        self._bus = bus
        self.wake = wake
        self._events = [bus.event(HELLO)]
        self._guard = threading.Lock()

    def add(self, event: bytes) -> None:
        """Add an event. If the queue is full, its events are replaced with ``missed``."""
        with self._guard:
            if len(self._events) >= MOST_EVENTS:
                self._events = [self._bus.event(MISSED)]
            self._events.append(event)

    def take(self) -> list[bytes]:
        """Return the events since the last call, oldest first."""
        with self._guard:
            events, self._events = self._events, []
        return events

    def close(self) -> None:
        self._bus.leave(self)


# -- Changes in the gateway's conversations --------------------------------------------------------
# Another process can write conversations.


MOST_SESSIONS = 200
"""Maximum number of recent conversations that are checked for changes."""


class ChatLook:
    """Watcher that publishes an event when conversations with nacre's gateway change."""

    def __init__(self, home: Path, bus: Bus) -> None:
        self._home = home
        self._bus = bus
        self._edition: object = None
        self._store: GatewayStore | None = None
        self._state: object = None
        with suppress(NacreError):
            self._edition, self._state = self._read()

    def look(self) -> bool:
        """Publish changes since the last check. Return True if the gateway's database has changed."""
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
"""Maximum number of sessions that a check reports individually."""

_MAX_RECORD_DELAY = timedelta(hours=1)
"""Maximum time from an operation's start to its first write, which records the operation."""


class Look:
    """Watcher that publishes events when a home changes."""

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
        self._candidates = home.reviews.counts()[0]
        self._doubted, self._queued = self._changes.doubted(), self._changes.queued()
        self._day = home.today()
        self._spent = self._spent_by_task(self._day)
        self._changes.free_pages()
        self._chats = ChatLook(home.settings.home, bus)

    def look(self) -> bool:
        """Publish the changes since the last check. Return True if a database has changed."""
        has_talked = self._chats.look()
        edition = self._home.database.edition()
        if edition == self._edition:
            return has_talked
        self._look_at_operations()
        has_changed = self._look_at_memories()
        self._look_at_sessions()
        self._look_at_review(self._changes.doubted() if has_changed else self._doubted)
        self._look_at_spending()
        self._changes.free_pages()
        self._edition = edition
        return True

    def close(self) -> None:
        """Stop watching, but leave the home open."""
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
        candidates, queued = self._home.reviews.counts()[0], self._changes.queued()
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

    def _spent_by_task(self, day: date) -> dict[str, tuple[int, int]]:
        return {
            entry.task: (entry.calls, entry.cost) for entry in self._home.spending.by_task(day, day)
        }


# -- Observation -----------------------------------------------------------------------------------
# While there are listeners, a thread checks for changes a few times per second.


LOOK_SECONDS = 0.2
LEAST_SHARE = 10
"""Minimum ratio of a pause to the duration of the check before it."""

KEEP_SECONDS = 300.0
"""Seconds to keep running without listeners, because they might reconnect."""

_IDLE_SECONDS = 1.0
_RETRY_SECONDS = 5.0
_READY_TIMEOUT_SECONDS = 10.0


class Live:
    """The events of a home. :meth:`run` publishes them."""

    def __init__(self, open_home: Callable[[], Home], bus: Bus) -> None:
        self.bus = bus
        self._open_home = open_home
        self._is_needed = threading.Event()
        self._began = threading.Condition()
        self._is_ready = False
        self._error: NacreError | None = None

    def wait_ready(self) -> None:
        """Wait until listeners are sure to get every later change.

        Raises UnavailableError after ten seconds, and the error that prevents opening the home.
        """
        self._is_needed.set()
        with self._began:
            self._began.wait_for(lambda: self._is_ready or self._error, _READY_TIMEOUT_SECONDS)
            if not self._is_ready:
                raise self._error or UnavailableError(
                    "the event stream is not ready yet", hint="try again in a moment"
                )

    def wake(self) -> None:
        """Make :meth:`run` check its ``stop`` event now."""
        self._is_needed.set()

    def run(self, stop: threading.Event) -> None:
        """Publish changes until ``stop`` is set. After an error, call it again to continue."""
        while not stop.is_set():
            if (self._is_needed.wait(_IDLE_SECONDS) or self.bus.listeners) and not stop.is_set():
                self._follow(stop)

    def _follow(self, stop: threading.Event) -> None:
        try:
            with closing(self._open_home()) as home:
                self._is_needed.clear()
                with closing(Look(home, self.bus)) as look:
                    self.bus.publish(MISSED)  # changes since the last check are unknown
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
                self._is_needed.clear()
                self._is_needed.wait(_IDLE_SECONDS)
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
    """Yield a callback that publishes a task's progress. If it is used, the task's end is published, too."""
    last = None
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
