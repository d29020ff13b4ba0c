"""A lock that one process of a tenant holds at a time, wherever it runs."""

from __future__ import annotations

import time
from pathlib import Path

from nacre.platform.locks import PATIENCE_SECONDS, FileLock
from nacre.storage.postgres.database import PostgresDatabase

_PAUSE_SECONDS = 0.01


class ServerLock(FileLock):
    """A lock on a server, which frees it when the connection ends."""

    def __init__(self, database: PostgresDatabase, name: str, patience_seconds: float = PATIENCE_SECONDS) -> None:
        super().__init__(Path(name), patience_seconds)
        self._db = database
        self._name = name

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
