"""Open homes for threads that answer side by side: each has its own database connection, all share one model."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.errors import Ending, SchemaTooNew, Unavailable
from nacre.home.home import Home
from nacre.protocols import Embedder, RemoteEmbedder
from nacre.settings import Settings
from nacre.vault.watch import VaultWatch

if TYPE_CHECKING:
    from nacre.storage.search.quantised import Kept

MOST = 6
"""So many are open at once; who comes then waits for one of them."""

_KEPT_SECONDS = 60.0
_PATIENCE_SECONDS = 30.0

_Stamp = tuple[int, int, int]


@dataclass(slots=True)
class _Open:
    """An open home, how its settings' file and its database's schema were then, and when it was last needed."""

    home: Home
    stamp: _Stamp | None
    schema: int
    freed: float = 0.0


class Homes:
    """Lends an open home to one thread at a time, and keeps it open for the next.

    One that is not what is on disk any more, as its database was made anew or its settings changed, is opened again.
    """

    def __init__(self, open_home: Callable[[], Home], home: Path, config: Path, most: int = MOST) -> None:
        self._open_home = open_home
        self._home = home
        self._config = config
        self._was_there = False
        self._room = threading.BoundedSemaphore(most)
        self._guard = threading.Lock()
        self._free: list[_Open] = []
        self._loading = threading.Lock()
        self._embedders: dict[str, Embedder] = {}
        self._kept: tuple[object, Kept | None] = 0, None
        self._watch: VaultWatch | None = None
        self._stamp: _Stamp | None = None
        self._is_closed = False
        self._keeps_none = False
        self.writing = threading.BoundedSemaphore(1)
        """Who holds it writes there: one at a time."""
        self.outdated: str | None = None
        """Why this program cannot work with the home any more."""

    @contextmanager
    def lent(self, seconds: float = _PATIENCE_SECONDS) -> Iterator[Home]:
        """A home of one's own for the block. Raises what opening one raises, Unavailable where all are in use."""
        if not self._room.acquire(timeout=max(0.0, seconds)):
            raise Unavailable("the daemon is busy", hint="ask again")
        try:
            found = self._taken() or self._opened()
            self._share_with(found.home)
            try:
                yield found.home
            finally:
                self._give_back(found)
        finally:
            self._room.release()

    def shrink(self) -> bool:
        """Close those that nobody needed for a minute, but one; returns whether there were any."""
        now = time.monotonic()
        with self._guard:
            kept = [one for one in self._free if now - one.freed < _KEPT_SECONDS] or self._free[-1:]
            old = [one for one in self._free if one not in kept]
            self._free = kept
        for one in old:
            one.home.disconnect()
        return bool(old)

    def give_way(self) -> None:
        """Keep no home open any more: those that are lent close when they come back, and so do those that somebody asks
        for yet who came before."""
        with self._guard:
            self._keeps_none = True
            free, self._free = self._free, []
            self._unwatch()
        for one in free:
            one.home.disconnect()

    def close(self) -> None:
        """Close all homes; those that are lent close when they come back, and none is opened any more."""
        self._is_closed = True
        self.give_way()
        for embedder in self._embedders.values():
            if isinstance(embedder, RemoteEmbedder):
                embedder.close()

    def _taken(self) -> _Open | None:
        """The home that was used last, if it still is what is on disk."""
        while True:
            with self._guard:
                if not self._free:
                    return None
                found = self._free.pop()
            if self._is_good(found):
                return found
            found.home.disconnect()

    def _is_good(self, one: _Open) -> bool:
        home = one.home
        if not home.database.is_in_place() or home.database.unwritable:
            return False
        if home.database.schema() != one.schema:
            self.outdated = "another version of nacre changed the database"
            raise Ending(self.outdated)
        return one.stamp == _stamp(self._config)

    def _opened(self) -> _Open:
        if self._is_closed:
            raise Ending("the daemon is about to end")
        if self._was_there and not self._home.is_dir():
            raise Ending("the home was moved or deleted")  # and is not made anew
        stamp = _stamp(self._config)
        try:
            home = self._open_home()
        except SchemaTooNew as error:
            self.outdated = error.message
            raise
        self._was_there = True
        with self._guard:  # not the one that is held while a model is loaded: who opens a home waits for no model
            if stamp != self._stamp:
                self._embedders, self._stamp = {}, stamp
                self._unwatch()
            self._watch = self._watch or VaultWatch(home.vault)
        shared = replace(home, load_embedder=lambda settings: self._embedder(home, settings))
        shared.vault.watch = self._watch
        return _Open(shared, stamp, shared.database.schema())

    def _share_with(self, home: Home) -> None:
        """What one home has in memory of the vectors, the others need not load: it may be a hundred megabytes."""
        file, kept = self._kept
        if kept and file == home.database.identity:
            home.vectors.begin_with(kept)

    def _give_back(self, one: _Open) -> None:
        one.home.problems.clear()
        one.freed = time.monotonic()
        with self._guard:
            if "vectors" in one.home.__dict__:
                self._kept = one.home.database.identity, one.home.vectors.kept()
            if not self._keeps_none:
                self._free.append(one)
                return
        one.home.disconnect()

    def _unwatch(self) -> None:
        if self._watch:
            self._watch.close()
        self._watch = None

    def _embedder(self, home: Home, settings: Settings) -> Embedder:
        """One model for all threads, loaded by the first that needs it."""
        name = str(settings.text("embedding.model"))
        with self._loading:
            known = self._embedders
            if name not in known:
                known[name] = home.load_embedder(settings)
            return known[name]


def _stamp(path: Path) -> _Stamp | None:
    with suppress(OSError):
        seen = os.stat(path)
        return seen.st_mtime_ns, seen.st_size, seen.st_ino
    return None
