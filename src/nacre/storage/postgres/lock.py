"""A lock that one process of a tenant holds at a time, wherever it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from nacre.errors import StoreBusy
from nacre.platform.locks import PATIENCE_SECONDS
from nacre.storage.postgres.database import PostgresDatabase

_PAUSE_SECONDS = 0.01


class ServerLock:
    """What :class:`~nacre.platform.locks.FileLock` does. The server frees it when the connection ends."""

    def __init__(self, database: PostgresDatabase, name: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._db = database
        self._name = name
        self._patience = patience_seconds
        self._depth = 0

    def __enter__(self) -> None:
        if not self.acquire(self._patience):
            raise StoreBusy(
                f"another process has held {self._name} for {self._patience:.0f} seconds",
                hint="wait for it, or end it, then try again",
            )

    def __exit__(self, *_: object) -> None:
        self.release()

    def acquire(self, patience_seconds: float = 0.0) -> bool:
        """Take the lock, waiting so long at most; returns whether it was to be had."""
        give_up = time.monotonic() + patience_seconds
        while self._depth == 0 and not self._db.hold(self._name):
            if time.monotonic() >= give_up:
                return False
            time.sleep(_PAUSE_SECONDS)
        self._depth += 1
        return True

    def release(self) -> None:
        """Give it back, once for every time it was taken."""
        self._depth = max(0, self._depth - 1)
        if self._depth == 0:
            self._db.let_go(self._name)

    def is_wanted(self) -> bool:
        """Whether somebody waits for it: that is not to be seen, as who waits tries again and again."""
        return False

    def let_others(self) -> None:
        """Give it to whoever waits for it, and take it again, unless somebody further out relies on it."""
        if self._depth == 1:
            self.release()
            self.give_way()
            self.__enter__()

    def give_way(self) -> None:
        """Before taking the lock again: let those who wait for it take it first."""
        if self._depth == 0:
            time.sleep(2 * _PAUSE_SECONDS)

    @contextmanager
    def if_free(self, patience_seconds: float = 0.0) -> Iterator[bool]:
        """Hold the lock if it is free, or becomes free in time; yields whether it is held."""
        is_held = self.acquire(patience_seconds)
        try:
            yield is_held
        finally:
            if is_held:
                self.release()
