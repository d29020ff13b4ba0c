"""``nacre-hook [--home PATH] HOST EVENT``: what a host runs. It ends within 150 ms, whatever happens, and with 0.

All that may take time is done in threads, and the process ends without waiting for them: one that hangs in a system
call holds up nobody. The daemon is asked first; where it is away, or has not answered in a moment, the process looks by
itself, by words alone, and whichever answers first is told. ``--within MS`` gives it another time than that.
"""

from __future__ import annotations

import gc
import json
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from nacre.hooks import notes
from nacre.hooks.shapes import SHAPES, Shape
from nacre.link.client import Away, Refused, ask
from nacre.link.environment import environment, home_folder, is_own_call

ALLOWED_MS = 130
"""From the start of the process on; its end takes a few milliseconds more."""

_SPARED_SECONDS = 0.012
"""Before that the host is told, if only that there is nothing; the rest is for what is noted afterwards."""

_PATIENCE_SECONDS = 0.03
"""So long the daemon is waited for before the process begins to look by itself."""

_DAEMON_SHARE = 0.9
_MOST_INPUT = 2_000_000
_MOST_CHARACTERS = 9_900
"""Hosts cut what is longer than 10,000."""

_TELLING = frozenset({"session-start", "prompt"})
"""The events with which a host can be told something."""

_ENDING = frozenset({"turn-end", "pre-compact", "session-end"})
"""Those after which there is something to do that no host waits for."""


class Arguments(NamedTuple):
    """What the host's settings say."""

    home: str | None
    within_ms: int
    host: str
    event: str


class Outcome(NamedTuple):
    """How a call was answered: by the ``daemon``, ``alone``, for one ``apart`` not at all, or too ``late``."""

    how: str
    answer: dict[str, Any]


def main() -> None:
    """Answer a hook; never returns, never fails."""
    gc.disable()  # a process of a tenth of a second collects nothing worth the time
    with suppress(BaseException):
        began = time.monotonic() - _age()
        arguments = _arguments(sys.argv[1:])
        shape = SHAPES.get(arguments.host)
        if shape:
            _Run(arguments, shape, began).answer()
    os._exit(0)  # whatever threads are at, and whatever waits to be written


class _Run:
    """One run of a hook. ``answer`` bounds it; everything else is done in threads."""

    def __init__(self, arguments: Arguments, shape: Shape, began: float) -> None:
        environ = environment()
        self.host, self.event = arguments.host, arguments.event
        self.name = shape.events.get(self.event, "") if shape.events else self.event
        self.home = home_folder(environ, arguments.home)
        self.is_own = is_own_call(environ)
        self.shape = shape
        self.began = began
        self.until = began + arguments.within_ms / 1000
        self.call: dict[str, Any] = {}
        self.was_away = False
        self.outcomes: SimpleQueue[Outcome] = SimpleQueue()
        self.ended: SimpleQueue[None] = SimpleQueue()
        self._telling = threading.Lock()

    def answer(self) -> None:
        """Tell the host what there is, and end in time."""
        if self.is_own or not self._is_known():
            self._tell("")
            return
        _start(self._ask_daemon)
        outcome = self._first()
        _start(lambda: self._finish(outcome))
        with suppress(Empty):
            self.ended.get(timeout=self._left(_SPARED_SECONDS))
            return
        if self._tell(""):  # what came to be told meanwhile stands
            outcome = Outcome("late", {})
        with suppress(Empty):
            self.ended.get(timeout=self._left())

    def _is_known(self) -> bool:
        return self.name in _TELLING or self.name in _ENDING or self.name == "tool"

    def _first(self) -> Outcome:
        """What is answered first; the process begins to look by itself when the daemon takes its time."""
        with suppress(Empty):
            return self.outcomes.get(timeout=min(_PATIENCE_SECONDS, self._left(_SPARED_SECONDS)))
        _start(self._look_alone)
        with suppress(Empty):
            return self.outcomes.get(timeout=self._left(2 * _SPARED_SECONDS))
        return Outcome("late", {})

    def _left(self, spared: float = 0.0) -> float:
        return max(0.0, self.until - spared - time.monotonic())

    def _ask_daemon(self) -> None:
        """The daemon's answer, else one's own. What is to be done later is noted before anything else."""
        given = _read_input()
        call = {"host": self.host, "event": self.name, **self.shape.read(given)}
        call["session"] = f"{self.shape.tool}:{call['session']}" if call["session"] else ""
        if call["is_apart"]:
            self.outcomes.put(Outcome("apart", {}))
            return
        self.call = call
        if self.name in _ENDING or call["occasion"] == "clear":
            notes.leave_chore(self.home, self.name, call)
        try:
            answer = ask(self.home, "hook", call, seconds=self._left() * _DAEMON_SHARE)
            if not _is_answer(answer):
                raise Away("it answers something else")
            self.outcomes.put(Outcome("daemon", answer))
        except (Away, Refused):
            self.was_away = True
            self._look_alone()

    def _look_alone(self) -> None:
        if not self.call:
            return
        if self.name not in _TELLING:
            self.outcomes.put(Outcome("alone", {}))
            return
        from nacre.hooks.alone import answer  # what the daemon spares us

        self.outcomes.put(Outcome("alone", answer(self.home, self.call)))

    def _finish(self, outcome: Outcome) -> None:
        """Tell the host; then keep what was told, start what is to go on, and note the run."""
        context = outcome.answer.get("context", "") if self.name in _TELLING else ""
        told = context if len(context) <= _MOST_CHARACTERS else ""
        if not self._tell(told):
            outcome, told = Outcome("late", {}), ""
        else:
            notes.keep_state(self.home, self.call.get("session", ""), outcome.answer.get("state"))
            for kind in outcome.answer.get("chores") or ():
                notes.leave_chore(self.home, str(kind), self.call)
        took = round(1000 * (time.monotonic() - self.began), 1)
        notes.log(self.home, self.host, self.event, outcome.how, took, len(told))
        if self.was_away:
            self._start_what_goes_on()
        self.ended.put(None)

    def _start_what_goes_on(self) -> None:
        """A daemon for the hooks to come, where it may be started; else one process that does what waits."""
        if self.name == "prompt" or not os.path.isdir(self.home):
            return
        from nacre.hooks import starting  # few runs start anything

        starting.start(self.home, has_chores=self.name in _ENDING)

    def _tell(self, context: str) -> bool:
        """Write the one answer to the host; returns whether it is this one.

        An answer of nothing is written only where it waits for nobody: who does not read has no use for it.
        """
        if not self._telling.acquire(blocking=False):
            return False
        output = self.shape.tell(self.event, self.name, context) if context else self.shape.silent
        data = output.encode("utf-8", "replace")
        if not context and data and not select.select([], [1], [], 0)[1]:
            return True
        while data:
            data = data[os.write(1, data) :]
        return True


def _start(work: Callable[[], None]) -> None:
    def guarded() -> None:
        with suppress(BaseException):  # what fails in a thread is nobody's trouble: nothing is told then
            work()

    threading.Thread(target=guarded, daemon=True).start()


def _is_answer(answer: object) -> bool:
    return isinstance(answer, dict) and isinstance(answer.get("context"), str)


def _arguments(arguments: Sequence[str]) -> Arguments:
    rest, named = list(arguments), {}
    while rest and rest[0] in ("--home", "--within"):
        named[rest[0]] = rest[1]
        del rest[:2]
    return Arguments(named.get("--home"), int(named.get("--within", ALLOWED_MS)), rest[0], rest[1])


def _read_input() -> dict[str, Any]:
    """What the host hands over; an empty object where that is nothing of the kind.

    A host that keeps its end open is not waited for once an object is whole.
    """
    data = bytearray()
    while len(data) <= _MOST_INPUT and not os.isatty(0):
        chunk = os.read(0, 65_536)
        data += chunk
        if not chunk or chunk.rstrip().endswith(b"}"):
            with suppress(ValueError):
                given = json.loads(data.decode("utf-8", "replace"))
                return given if isinstance(given, dict) else {}
        if not chunk:
            break
    return {}


def _age() -> float:
    """For how many seconds this process has run; on systems that do not tell, what Python's start takes."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.03
    return max(0.0, age)


if __name__ == "__main__":
    main()
