"""The events of a home while somebody listens: a thread looks a few times a second, and rests where nobody does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress

from nacre.errors import NacreError, StoreBusy, Unavailable
from nacre.events.bus import Bus
from nacre.events.look import Look
from nacre.home.home import Home

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
                raise self._error or Unavailable("events are not ready", hint="ask again in a moment")

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
            pause = max(LOOK_SECONDS, LEAST_SHARE * (time.monotonic() - began)) if self.bus.listeners else 0.0

    def _tell(self, *, is_ready: bool, error: NacreError | None = None) -> None:
        with self._began:
            self._is_ready, self._error = is_ready, error
            self._began.notify_all()
