"""Open homes for threads that answer side by side: each has its own database connection, all share one model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from queue import Empty, LifoQueue

from nacre.app.context import Context
from nacre.protocols import Embedder
from nacre.settings import Settings

MOST = 4
"""So many answer at once; more wait for one of them."""


class Homes:
    """Lends an open home to one thread at a time, and keeps it open for the next."""

    def __init__(self, open_home: Callable[[], Context], most: int = MOST) -> None:
        self._open_home = open_home
        self._free: LifoQueue[Context] = LifoQueue()
        self._room = threading.BoundedSemaphore(most)
        self._loading = threading.Lock()
        self._embedders: dict[str, Embedder] = {}
        self._is_closed = False

    @contextmanager
    def lent(self) -> Iterator[Context]:
        """A home of one's own for the block. Raises what opening one raises."""
        with self._room:
            try:
                context = self._free.get_nowait()
            except Empty:
                context = self._opened()
            try:
                yield context
            finally:
                context.problems.clear()
                if self._is_closed or not context.database.is_in_place():
                    context.database.close()
                else:
                    self._free.put(context)

    def are_in_place(self) -> bool:
        """Whether the database is still the one that was opened, and no rebuild put another in its place."""
        with self.lent() as context:
            return context.database.is_in_place()

    def close(self) -> None:
        """Close all homes; those that are lent close when they come back."""
        self._is_closed = True
        while True:
            try:
                self._free.get_nowait().database.close()
            except Empty:
                return

    def _opened(self) -> Context:
        context = self._open_home()
        return replace(context, load_embedder=lambda settings: self._embedder(context, settings))

    def _embedder(self, context: Context, settings: Settings) -> Embedder:
        """One model for all threads, loaded by the first that needs it."""
        name = str(settings["embedding.model"])
        with self._loading:
            if name not in self._embedders:
                self._embedders[name] = context.load_embedder(settings)
            return self._embedders[name]
