"""What the daemon does unasked, besides following sessions: history, chores, giving back memory."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from nacre.app.afterwards import keep_history
from nacre.app.watching.rounds import environment, program
from nacre.daemon.homes import Homes
from nacre.errors import NacreError
from nacre.settings import Settings

HISTORY_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_LEAST_PAUSE, _MOST_PAUSE = 1.0, 300.0
_GRACE_SECONDS = 1.0


class Tending:
    """Looks after a home until it is told to stop."""

    def __init__(self, settings: Settings, homes: Homes, tell: Callable[[str], None]) -> None:
        self._settings = settings
        self._homes = homes
        self._tell = tell
        self._chores = Chores(settings, tell)

    def run(self, stop: threading.Event) -> None:
        """Until ``stop`` is set."""
        last = time.monotonic()
        while not stop.wait(_LOOK_SECONDS):
            self._chores.look()
            if time.monotonic() - last > HISTORY_SECONDS:
                self._keep_history()
                self._homes.shrink()
                last = time.monotonic()
        self._chores.end()

    def _keep_history(self) -> None:
        try:
            with self._homes.lent(0.0) as context:
                keep_history(context)
        except NacreError:
            return  # all homes are at work, or cannot be opened: the next look, or whoever asks, tells
        except OSError as error:
            self._tell(f"history is not kept: {error}")


class Chores:
    """What hooks left to be done, in a process of its own: one at a time, later each time it leaves the same behind."""

    def __init__(self, settings: Settings, tell: Callable[[str], None]) -> None:
        self._settings = settings
        self._tell = tell
        self._process: subprocess.Popen[bytes] | None = None
        self._given: frozenset[str] = frozenset()
        self._pause = _LEAST_PAUSE
        self._not_before = 0.0

    def look(self) -> None:
        """Start the process if there is something to do, and it is time."""
        if self._process and self._process.poll() is None:
            return
        if self._process:
            self._ended(self._process.returncode)
        waiting = waiting_chores(self._settings.home)
        if not waiting or (waiting <= self._given and time.monotonic() < self._not_before):
            return
        self._pause = min(2 * self._pause, _MOST_PAUSE) if waiting <= self._given else _LEAST_PAUSE
        self._given = waiting
        try:
            self._process = subprocess.Popen(
                [*program(), "chores"], env=environment(self._settings), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self._tell(f"no process for chores can be started: {error.strerror}")
            self._not_before = time.monotonic() + _MOST_PAUSE

    def end(self) -> None:
        """Ask the process to end; what it did not do waits for the next daemon."""
        if self._process and self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_SECONDS)

    def _ended(self, code: int) -> None:
        self._process = None
        self._not_before = time.monotonic() + self._pause
        if code:
            self._tell(f"chores ended with {code}")


def waiting_chores(home: Path) -> frozenset[str]:
    """The names of the chores that wait in a home."""
    try:
        with os.scandir(home / "run" / "chores") as found:
            return frozenset(entry.name for entry in found if entry.name.endswith(".json"))
    except OSError:
        return frozenset()
