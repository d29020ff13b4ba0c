"""Looks what changed in the gateway's conversations, in whichever process a gateway or a terminal writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nacre.errors import NacreError
from nacre.events.bus import Bus
from nacre.storage.gateway import GatewayStore, OpenState, SessionState
from nacre.values.gateway.conversation import Pairing, Undelivered

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
            {one.id: one for one in store.recent_states(MOST_SESSIONS)}, {one.key: one for one in store.open_states()},
            frozenset(store.pairings()), tuple(store.problems()),
        )  # fmt: skip

    def _tell(self, before: _Seen) -> None:
        now = self._seen
        for one in now.sessions.values():
            known = before.sessions.get(one.id)
            if one != known:
                self._publish("ended" if one.is_closed and known and not known.is_closed else "grew", one)
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
        found = (one.id for one in self._seen.sessions.values() if one.key == key and not one.is_closed)
        return next(found, None)


def _changed(before: Iterable[Undelivered], now: Iterable[Undelivered]) -> list[str]:
    return sorted({one.channel for one in set(before) ^ set(now)})
