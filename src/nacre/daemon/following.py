"""The watcher in the daemon: it follows sessions unless another watcher does, and takes over when that ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from nacre.errors import Conflict, NacreError
from nacre.home.home import Home
from nacre.watching import status
from nacre.watching.watcher import Watcher, WatchEvent, WatchOptions

_PAUSE_SECONDS = 60.0


class Following:
    """Follows sessions in a thread, from ``run`` until ``stop``. ``nacre watcher stop`` ends it until ``again``."""

    def __init__(
        self, home: Path, open_home: Callable[[], Home], watched: Callable[[WatchEvent], None],
        tell: Callable[[str], None], version: str,
    ) -> None:  # fmt: skip
        self._home = home
        self._open_home = open_home
        self._watched = watched
        self._tell = tell
        self._version = version
        self._wanted = threading.Event()
        self._told: str | None = None
        self._watcher: Watcher | None = None
        self.follows = False
        """Whether it does now."""

    def run(self, stop: threading.Event) -> None:
        """Until ``stop`` is set. What fails is told once, and tried again."""
        self._wanted.set()
        while not stop.is_set():
            if self._wanted.is_set():
                self._wanted.clear()
                self._follow_once(stop)
            if stop.is_set():
                return
            self._wanted.wait(1.0)

    def again(self) -> None:
        """Follow now, where that was ended, or another one did."""
        self._wanted.set()

    def reads(self, path: Path) -> bool:
        """Whether a transcript is followed: it is read soon then."""
        return self.follows and self._watcher is not None and self._watcher.reads(path)

    def _follow_once(self, stop: threading.Event) -> None:
        try:
            self._watcher = Watcher(self._open_home, WatchOptions(), self._hear, self._version)
            self._watcher.run(stop)  # which also ends when somebody asks the watcher to
        except Conflict:
            self._say("another watcher follows the sessions")
            self._later(stop)
        except NacreError as error:
            self._say(f"sessions are not followed: {error.message}")
            self._later(stop)
        else:
            self._told = None
        finally:
            self.follows = False

    def _hear(self, event: WatchEvent) -> None:
        self.follows = self.follows or event.kind == "started"
        self._watched(event)

    def _later(self, stop: threading.Event) -> None:
        """Try again in a minute, or at once when the other watcher ended, or somebody wants it."""
        for _ in range(int(_PAUSE_SECONDS)):
            if self._wanted.is_set() or stop.wait(1.0):
                break
        if not stop.is_set() and not status.is_asked_to_end(self._home):
            self._wanted.set()

    def _say(self, line: str) -> None:
        if line != self._told:
            self._told = line
            self._tell(line)
