"""The last events of a home, with numbers: each listener reads them at its own pace, and is told what it missed.

A listener is a place in one row of events, and keeps nothing of its own: however many there are, and however slow they
are, the row alone takes memory.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nacre.base.ids import Clock
from nacre.errors import NacreError, StoreBusy, Unavailable
from nacre.home.home import Home
from nacre.store.gateway import GatewayStore, OpenState, SessionState
from nacre.store.sessions import Changes
from nacre.values.gateway import Pairing, Undelivered
from nacre.values.models import DOLLAR
from nacre.values.reports import Progress

if TYPE_CHECKING:
    from nacre.care.watcher import WatchEvent

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


# ----------------------------------------------------------------------------
# Looks what changed in the gateway's conversations, in whichever process a gateway or a terminal
# writes them.


MOST_SESSIONS = 200
"""So many sessions are compared, those that were used last."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was there when it was looked at last."""

    sessions: Mapping[str, SessionState] = field(default_factory=dict)
    open: Mapping[str, OpenState] = field(default_factory=dict)
    pairings: frozenset[Pairing] = frozenset()
    undelivered: tuple[Undelivered, ...] = ()


class ChatLook:
    """Compares conversations with what they were, over a connection that only reads, once there is a database."""

    def __init__(self, home: Path, bus: Bus) -> None:
        self._home = home
        self._bus = bus
        self._edition: object = None
        self._store: GatewayStore | None = None
        self._seen = _Seen()
        with suppress(NacreError):
            store = self._opened()
            self._edition = store.edition() if store else None
            self._seen = self._read()

    def look(self) -> bool:
        """Publish what changed since the last look; returns whether anything was written meanwhile.

        A database that cannot be read just now is looked at again the next time: all else is told nevertheless.
        """
        try:
            store = self._opened()
            edition = store.edition() if store else None
            if edition == self._edition:
                return False
            before, self._seen = self._seen, self._read()
        except NacreError:
            self.close()
            return False
        self._tell(before)
        self._edition = edition
        return True

    def close(self) -> None:
        """Look no more."""
        if self._store:
            self._store.close()
        self._store, self._edition = None, object()

    def _opened(self) -> GatewayStore | None:
        if self._store and not self._store.is_in_place():
            self.close()
        if self._store is None:
            self._store = GatewayStore.open_to_read(self._home)
        return self._store

    def _read(self) -> _Seen:
        store = self._store
        if store is None:
            return _Seen()
        return _Seen(
            {one.id: one for one in store.recent_states(MOST_SESSIONS)},
            {one.key: one for one in store.open_states()},
            frozenset(store.pairings()),
            tuple(store.problems()),
        )

    def _tell(self, before: _Seen) -> None:
        now = self._seen
        for one in now.sessions.values():
            known = before.sessions.get(one.id)
            if one != known:
                self._publish(
                    "ended" if one.is_closed and known and not known.is_closed else "grew", one
                )
        for other in now.open.values():
            was = before.open.get(other.key, OpenState(other.key, other.channel, 0, 0))
            if other.taken and not was.taken:
                self._publish("answering", other)
            elif other.waiting > was.waiting:
                self._publish("waiting", other)
        for channel in sorted({one.channel for one in now.pairings ^ before.pairings}):
            self._bus.publish("chat", change="pairing", channel=channel, key=None, session=None)
        for channel in _changed(before.undelivered, now.undelivered):
            self._bus.publish("chat", change="undelivered", channel=channel, key=None, session=None)

    def _publish(self, change: str, one: SessionState | OpenState) -> None:
        session = one.id if isinstance(one, SessionState) else self._session_of(one.key)
        self._bus.publish("chat", change=change, channel=one.channel, key=one.key, session=session)

    def _session_of(self, key: str) -> str | None:
        found = (
            one.id for one in self._seen.sessions.values() if one.key == key and not one.is_closed
        )
        return next(found, None)


def _changed(before: Iterable[Undelivered], now: Iterable[Undelivered]) -> list[str]:
    return sorted({one.channel for one in set(before) ^ set(now)})


# ----------------------------------------------------------------------------
# Looks what changed in a home, and publishes it: as cheap as one number that SQLite keeps where
# nothing did.


MOST_IDS = 100
"""So many ids are named in one event; ``total`` counts all."""

MOST_SESSIONS_LOOK = 20
"""So many sessions are told of one by one in a look."""

_LATE = timedelta(hours=1)
"""So much later than it began, an operation may be recorded: with its first write."""


class Look:
    """Compares a home with what it was, over a connection that nobody else writes with."""

    def __init__(self, home: Home, bus: Bus) -> None:
        self._home = home
        self._bus = bus
        self._edition = home.database.edition()
        self._changes = Changes(home.database)
        self._turn = self._changes.last_turn()
        self._since = home.now()
        self._operations = {one for one, _ in self._changes.operations(self._since - _LATE)}
        self._waiting = home.candidates.count()
        self._doubted, self._queued = self._changes.doubted(), self._changes.queued()
        self._trace = self._changes.last_trace()
        self._day = home.today()
        self._spent = self._spent_by_task(self._day)
        self._changes.free_pages()
        self._chats = ChatLook(home.settings.home, bus)

    def look(self) -> bool:
        """Publish what changed since the last look; returns whether anything was written meanwhile."""
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
        """Look no more; the home is closed by who opened it."""
        self._chats.close()

    def _look_at_operations(self) -> None:
        now = self._home.now()
        found = self._changes.operations(self._since - _LATE)
        for one, name in found:
            if one not in self._operations:
                self._bus.publish("operation", id=one, name=name)
        self._operations = {one for one, _ in found}
        self._since = now

    def _look_at_memories(self) -> bool:
        found: dict[tuple[str, str | None], list[str]] = {}
        for one in self._changes.memories():
            found.setdefault((one.change, one.operation), []).append(one.id)
        for (change, operation), ids in found.items():
            self._bus.publish(
                "memory", change=change, ids=ids[:MOST_IDS], total=len(ids), operation=operation
            )
        return bool(found)

    def _look_at_sessions(self) -> None:
        last = self._changes.last_turn()
        if last <= self._turn:
            return
        found = self._changes.grown_sessions(self._turn, MOST_SESSIONS_LOOK + 1)
        self._turn = last
        for one in reversed(found[:MOST_SESSIONS_LOOK]):
            self._bus.publish("session", id=one.id, tool=one.tool, turns=one.turns)
        if len(found) > MOST_SESSIONS_LOOK:
            self._bus.publish("session", id=None, tool=None, turns=None)

    def _look_at_review(self, doubted: frozenset[str]) -> None:
        waiting, queued = self._home.candidates.count(), self._changes.queued()
        if waiting != self._waiting:
            self._bus.publish("candidate", waiting=waiting)
        ids = sorted((doubted ^ self._doubted) | (queued ^ self._queued))
        if ids:
            self._bus.publish("doubt", ids=ids[:MOST_IDS], total=len(ids))
        self._waiting, self._doubted, self._queued = waiting, doubted, queued

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
        """Calls, and what they cost in millionths of a US dollar."""
        spent: dict[str, tuple[int, int]] = {}
        for one in self._home.spending.since(day):
            calls, cost = spent.get(one.task, (0, 0))
            spent[one.task] = calls + one.calls, cost + one.cost
        return spent


# ----------------------------------------------------------------------------
# The events of a home while somebody listens: a thread looks a few times a second, and rests where
# nobody does.


LOOK_SECONDS = 0.2
LEAST_SHARE = 10
"""So many times longer than a look took, the next one waits: it takes a tenth of a core at most."""

KEEP_SECONDS = 300.0
"""So long after the last listener left, it is remembered how the home was: who comes back by then missed nothing."""

_IDLE_SECONDS = 1.0
_RETRY_SECONDS = 5.0
_BEGIN_SECONDS = 10.0


class Live:
    """The bus of a home, and who looks what to publish there. ``open_home`` opens a home of its own."""

    def __init__(self, open_home: Callable[[], Home], bus: Bus) -> None:
        self.bus = bus
        self._open_home = open_home
        self._wanted = threading.Event()
        self._began = threading.Condition()
        self._is_ready = False
        self._error: NacreError | None = None

    def wait_ready(self) -> None:
        """Return once it is known how the home is: whoever listens then is told of every change.

        Raises what opening the home raises, Unavailable where that takes too long.
        """
        self._wanted.set()
        with self._began:
            self._began.wait_for(lambda: self._is_ready or self._error, _BEGIN_SECONDS)
            if not self._is_ready:
                raise self._error or Unavailable(
                    "events are not ready", hint="ask again in a moment"
                )

    def wake(self) -> None:
        """Have :meth:`run` look at once whether it should stop."""
        self._wanted.set()

    def run(self, stop: threading.Event) -> None:
        """Look until ``stop`` is set. Raises what looking raises: it may be begun again."""
        while not stop.is_set():
            if (self._wanted.wait(_IDLE_SECONDS) or self.bus.listeners) and not stop.is_set():
                self._follow(stop)

    def _follow(self, stop: threading.Event) -> None:
        """Look until nobody has listened for a while, or the database is another file."""
        try:
            with closing(self._open_home()) as home:
                self._wanted.clear()
                with closing(Look(home, self.bus)) as look:
                    self.bus.forget()
                    self._tell(is_ready=True)
                    try:
                        self._look_on(home, look, stop)
                    finally:
                        self._tell(is_ready=False)
        except NacreError as error:
            self._tell(is_ready=False, error=error)
            stop.wait(_RETRY_SECONDS)
            self._error = None

    def _look_on(self, home: Home, look: Look, stop: threading.Event) -> None:
        heard, pause = time.monotonic(), LOOK_SECONDS
        while not stop.wait(pause) and home.database.is_in_place():
            began = time.monotonic()
            if self.bus.listeners:
                heard = began
                with suppress(StoreBusy):  # the next look sees it
                    look.look()
            elif began - heard > KEEP_SECONDS:
                return
            else:
                self._wanted.clear()
                self._wanted.wait(_IDLE_SECONDS)
            pause = (
                max(LOOK_SECONDS, LEAST_SHARE * (time.monotonic() - began))
                if self.bus.listeners
                else 0.0
            )

    def _tell(self, *, is_ready: bool, error: NacreError | None = None) -> None:
        with self._began:
            self._is_ready, self._error = is_ready, error
            self._began.notify_all()


# ----------------------------------------------------------------------------
# How far what the daemon does is, as events: few a second, however often it is told.


LEAST_SECONDS = 0.2
"""Between two events of a task."""

_TOLD = ("read", "learned", "problem")


@contextmanager
def published(bus: Bus, task: str) -> Iterator[Callable[[Progress], None]]:
    """What takes the progress of a task while the block runs; that it ended is an event where any was."""
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


def publish_watched(bus: Bus, event: WatchEvent) -> None:
    """What the watcher in the daemon read and learned, and what it could not read."""
    if event.kind in _TOLD:
        done = event.turns if event.kind == "read" else event.memories
        text = event.note or ", ".join(event.tools)
        bus.publish(
            "progress", task="watch", stage=event.kind, text=text, done=done, total=None, ended=True
        )


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
