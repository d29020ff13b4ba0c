"""One daemon a home, from its start to its end: it answers, follows sessions, and leaves when it is not needed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import nacre
from nacre.app.context import Context
from nacre.app.watching import standing
from nacre.daemon.homes import Homes
from nacre.daemon.server import Server
from nacre.errors import Conflict, NacreError
from nacre.link.client import PROTOCOL, Away, ask
from nacre.lock import FileLock, is_held

if TYPE_CHECKING:
    from nacre.app.watching.watcher import WatchEvent

LOCK = "daemon.lock"
_LOOK_SECONDS = 1.0
_END_SECONDS = 2.0
_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class DaemonOptions:
    """``idle_minutes`` without a question end it, where set; ``watches`` says whether it follows sessions."""

    idle_minutes: float | None = None
    watches: bool = True
    version: str = ""


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a daemon says of itself. ``at_work`` counts the questions it is answering, this one left out."""

    pid: int
    version: str
    protocol: int
    seconds: float
    at_work: int
    watches: bool


class Daemon:
    """Serves one home until it is told to stop, or has no reason to stay. Not to be run twice."""

    def __init__(
        self, home: Path, open_home: Callable[[], Context], options: DaemonOptions, tell: Callable[[str], None]
    ) -> None:
        self._home = home
        self._open_home = open_home
        self._options = options
        self._tell = tell
        self._homes = Homes(open_home)
        self._stop = threading.Event()
        self._began = time.monotonic()
        self._program = _program()
        self._watching: threading.Thread | None = None
        self._server = Server(home, self._homes, tell, {"hello": self._greeting, "stop": self._asked_to_stop})

    def run(self, stop: threading.Event) -> str:
        """Serve until ``stop`` is set; returns why it ended. Raises Conflict where a daemon serves this home."""
        self._stop = stop
        lock = FileLock(self._home / LOCK)
        if not lock.acquire():
            raise Conflict(f"a daemon serves {self._home} already", hint="nacre serve status tells how it is")
        try:
            with self._homes.lent():
                pass  # a home that cannot be opened is told to whoever starts it
            self._server.start()
            self._watch()
            self._tell(f"serves {self._home}, process {os.getpid()}")
            why = self._wait()
            self._tell(f"ends: {why}")
            return why
        finally:
            self._end()
            lock.release()

    def _wait(self) -> str:
        while not self._stop.wait(_LOOK_SECONDS):
            if self._is_idle():
                return f"nobody asked for {self._options.idle_minutes:g} minutes"
            if _program() != self._program:
                return "nacre was changed on disk"
        return "it was asked to"

    def _is_idle(self) -> bool:
        minutes = self._options.idle_minutes
        if minutes is None or self._server.at_work:
            return False
        return time.monotonic() - self._server.asked_at > minutes * _MINUTE

    def _end(self) -> None:
        self._stop.set()
        self._server.stop()
        until = time.monotonic() + _END_SECONDS
        while self._server.at_work and time.monotonic() < until:
            time.sleep(0.01)
        if self._watching:
            self._watching.join(max(0.0, until - time.monotonic()))
        self._homes.close()

    def _watch(self) -> None:
        """Follow sessions, unless a watcher does."""
        if not self._options.watches:
            return
        self._watching = threading.Thread(target=self._follow, daemon=True, name="watching")
        self._watching.start()

    def _follow(self) -> None:
        from nacre.app.watching.watcher import Watcher, WatchOptions

        def tell(event: WatchEvent) -> None:
            if event.kind in ("problem", "learned", "read"):
                self._tell(f"{event.kind}: {event.note or f'{event.turns} turns, {event.memories} memories'}")

        try:
            Watcher(self._open_home, WatchOptions(), tell, self._options.version).run(self._stop)
        except Conflict:
            self._tell("a watcher follows the sessions already")
        except NacreError as error:
            self._tell(f"sessions are not followed: {error.message}")

    def _greeting(self) -> Greeting:
        watches = standing.standing(self._home, _now(self._homes)).lives
        return Greeting(
            os.getpid(), self._options.version, PROTOCOL, round(time.monotonic() - self._began, 1),
            self._server.at_work - 1, watches,
        )  # fmt: skip

    def _asked_to_stop(self) -> None:
        self._stop.set()


def greet(home: Path, seconds: float = 1.0) -> dict[str, object] | None:
    """What the daemon of a home says of itself; ``None`` where none answers."""
    try:
        told = ask(str(home), "hello", {}, seconds=seconds)
    except Away:
        return None
    return told if isinstance(told, dict) else None


def ask_to_stop(home: Path, seconds: float = 5.0) -> bool:
    """Have the daemon of a home finish and end; returns whether there was one, and it is gone."""
    try:
        ask(str(home), "stop", {}, seconds=1.0)
    except Away:
        return False
    until = time.monotonic() + seconds
    while is_held(home / LOCK) and time.monotonic() < until:
        time.sleep(0.02)
    return not is_held(home / LOCK)


def _now(homes: Homes) -> datetime:
    with homes.lent() as context:
        return context.now()


def _program() -> tuple[int, int]:
    """What changes when another nacre is installed in the place of this one."""
    with suppress(OSError):
        seen = os.stat(nacre.__file__)
        return seen.st_mtime_ns, seen.st_ino
    return 0, 0
