"""Looks what changed in a home, and publishes it: as cheap as one number that SQLite keeps where nothing did."""

from __future__ import annotations

from datetime import date, timedelta

from nacre.events.bus import Bus
from nacre.events.chats import ChatLook
from nacre.home.home import Home
from nacre.storage.changes import Changes
from nacre.values.spending import DOLLAR

MOST_IDS = 100
"""So many ids are named in one event; ``total`` counts all."""

MOST_SESSIONS = 20
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
            self._bus.publish("memory", change=change, ids=ids[:MOST_IDS], total=len(ids), operation=operation)
        return bool(found)

    def _look_at_sessions(self) -> None:
        last = self._changes.last_turn()
        if last <= self._turn:
            return
        found = self._changes.grown_sessions(self._turn, MOST_SESSIONS + 1)
        self._turn = last
        for one in reversed(found[:MOST_SESSIONS]):
            self._bus.publish("session", id=one.id, tool=one.tool, turns=one.turns)
        if len(found) > MOST_SESSIONS:
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
                self._bus.publish("cost", task=task, usd=spent[1] / DOLLAR, today_usd=total / DOLLAR)

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
