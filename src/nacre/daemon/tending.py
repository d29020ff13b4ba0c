"""What the daemon does unasked, besides following sessions: vectors, history, chores, giving back memory."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from nacre.chores import queue
from nacre.daemon.footprint import give_back
from nacre.daemon.homes import Homes
from nacre.dream.dream import dream_unasked
from nacre.errors import NacreError
from nacre.indexing.vectors import embed_memories
from nacre.link.start import start_process
from nacre.memories.scan import catch_up
from nacre.settings import Settings
from nacre.spending.spool import fold_notes
from nacre.sync.follow_up import keep_history
from nacre.values.hooks import HookEvent

HISTORY_SECONDS = 10.0
REST_SECONDS = 600.0
"""So long nobody has asked for anything before the daemon dreams."""

_LOOK_SECONDS = 0.5
_LEAST_PAUSE, _MOST_PAUSE = 1.0, 300.0
_GRACE_SECONDS = 1.0


class Tending:
    """Looks after a home until it is told to stop."""

    def __init__(
        self, settings: Settings, homes: Homes, tell: Callable[[str], None], reads: Callable[[Path], bool],
        rested: Callable[[], float],
    ) -> None:  # fmt: skip
        """``reads`` says whether a transcript is followed, and has it read; ``rested`` for how many seconds nobody has
        asked for anything."""
        self._settings = settings
        self._homes = homes
        self._tell = tell
        self._rested = rested
        self._chores = Chores(settings, tell, reads)
        self._embedded: object = None
        self._embeds_at = 0.0
        self._embed_pause = _LEAST_PAUSE

    def run(self, stop: threading.Event) -> None:
        """Until ``stop`` is set."""
        last = time.monotonic()
        is_rested = False
        while not stop.wait(_LOOK_SECONDS):
            self._chores.look()
            self._embed()
            was_rested, is_rested = is_rested, self._rested() >= REST_SECONDS
            if is_rested and not was_rested:
                self._dream()
            if time.monotonic() - last > HISTORY_SECONDS:
                self._keep_history()
                if self._homes.shrink():
                    give_back()
                last = time.monotonic()
        self._chores.end()

    def _embed(self) -> None:
        """Read edits by hand, and embed memories without a vector; while that fails, try ever less often."""
        if time.monotonic() < self._embeds_at:
            return
        is_stuck = False
        with suppress(NacreError), self._homes.lent(0.0) as home:
            catch_up(home, 0.0)
            if home.database.state() != self._embedded:
                newest = home.vectors.memories_to_embed(1)
                if newest:
                    embed_memories(home, begins=True)
                left = home.vectors.memories_to_embed(1)
                is_stuck = bool(left) and left == newest
                self._embedded = None if left else home.database.state()
        self._embed_pause = min(2 * self._embed_pause, _MOST_PAUSE) if is_stuck else _LEAST_PAUSE
        self._embeds_at = time.monotonic() + self._embed_pause

    def _keep_history(self) -> None:
        try:
            with self._homes.lent(0.0) as context:
                keep_history(context)
                fold_notes(context)  # else whoever watches sees no question before somebody asks for traces
        except NacreError:
            return  # all homes are at work, or cannot be opened: the next look, or whoever asks, tells
        except OSError as error:
            self._tell(f"history is not kept: {error}")

    def _dream(self) -> None:
        try:
            with self._homes.lent(0.0) as home:
                report = dream_unasked(home)
        except NacreError as error:
            self._tell(f"no dream: {error.message}")
            return
        if report:
            done = f"memories that end: {report.plan.ending}, links dropped: {report.plan.dropped}"
            self._tell(f"dreamt: {done if report.operation else 'planned, and did nothing'}")
            give_back()


class Chores:
    """What hooks left to be done, by a process of its own: one at a time, seldom where it comes to nothing."""

    def __init__(self, settings: Settings, tell: Callable[[str], None], reads: Callable[[Path], bool]) -> None:
        self._settings = settings
        self._tell = tell
        self._reads = reads
        self._process: subprocess.Popen[bytes] | None = None
        self._not_before = 0.0
        self._pause = _LEAST_PAUSE

    def look(self) -> None:
        """Start the process if something is due."""
        if self._process and self._process.poll() is None:
            return
        if self._process:
            self._ended(self._process.returncode)
        queue.drop(self._settings.home, self._is_needless)
        if time.monotonic() < self._not_before or not queue.is_due(self._settings.home, time.time()):
            return
        try:
            self._process = start_process(str(self._settings.home), self._settings.environ, "chores")
        except OSError as error:
            self._tell(f"no process for chores can be started: {error.strerror}")
            self._not_before = time.monotonic() + _MOST_PAUSE

    def _is_needless(self, chore: queue.Chore) -> bool:
        """After a turn a session is read, no more: of those that are followed no process need be started for that."""
        return chore.kind == HookEvent.TURN_END and bool(chore.transcript) and self._reads(Path(chore.transcript or ""))

    def end(self) -> None:
        """Ask the process to end; what it did not do waits for the next daemon."""
        if self._process and self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_SECONDS)

    def _ended(self, code: int) -> None:
        """It is begun again when something is due; where that is so at once, or it failed, ever later."""
        self._process = None
        goes_wrong = bool(code) or queue.is_due(self._settings.home, time.time())
        self._pause = min(2 * self._pause, _MOST_PAUSE) if goes_wrong else _LEAST_PAUSE
        self._not_before = time.monotonic() + (self._pause if goes_wrong else 0.0)
        if code:
            self._tell(f"chores ended with {code}")
