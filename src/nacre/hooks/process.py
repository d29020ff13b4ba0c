"""``nacre-hook [--home PATH] HOST EVENT``: what a host runs. It ends within 150 ms, at a session's start within
1.5 s, whatever happens, and with 0.

All that may take time is done in threads, and the process ends without waiting for them: one that hangs in a system
call holds up nobody. The daemon is asked first; where it is away, or has not answered in a moment, the process looks by
itself, by words alone, and whichever answers first is told. ``--within MS``, else ``NACRE_HOOK_MS`` in the environment,
gives it another time than that.
"""

from __future__ import annotations

import gc
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
from nacre.hooks.shapes import ASKS, SHAPES, TELLING, TOOL, Shape, context_of, parsed
from nacre.link.chores import EVENTS
from nacre.link.client import Away, Refused, ask
from nacre.platform.environment import environment, home_folder, is_own_call

ALLOWED_MS = 138
"""From the start of the process on; its end takes a few milliseconds more."""

START_ALLOWED_MS = 1_450
"""The same at a session's start, which happens once: a daemon that is just loading has its answer by then."""

WITHIN_VARIABLE = "NACRE_HOOK_MS"
"""Gives hooks a longer time, where nothing on their command line does: on slow machines, or those busy with tests."""

_PRESSED_SHARE = 0.5
"""A process whose start took so much of its time leaves the rest to the daemon."""

_LEAST_SECONDS = 0.04
"""So long it has to itself, also where the machine was so busy that its start alone took that time."""

_SPARED_SECONDS = 0.008
"""Before that the host is told, if only that there is nothing; the rest is for what is noted afterwards."""

_WRITING_SECONDS = 0.01
"""Also past its end, for what is being told already: on a busy machine a thread may wait for its turn to write."""

_PATIENT_SHARE = 0.06
_START_PATIENT_SHARE = 0.2
"""Of that time, for the daemon alone; then the process looks by itself as well."""

_TOOL_PATIENT_SHARE = 0.25
_ASKS_PATIENT_SHARE = 0.5
_DAEMON_SHARE = 0.9
"""Of what is left, at most, for the daemon's whole answer."""

_SWITCH_SECONDS = 0.001
"""So long a thread that loads something keeps one from running that has an end to keep."""

_HELP = b"""Usage: nacre-hook [--home PATH] [--within MS] HOST EVENT

  What an agent's tool runs, as nacre init writes it: it takes the event's JSON on standard input, answers in the tool's
  own shape within 150 ms, at a session's start within 1.5 s, and always ends with 0. logs/hooks.jsonl in the home has a
  line of each run.

Example:
  echo '{"session_id": "a", "cwd": "/code/acme"}' | nacre-hook claude-code SessionStart
"""

_MOST_INPUT = 2_000_000
_URGENT = frozenset({"session-start", "pre-compact", "session-end"})
"""Those after which something is to be done soon; where no daemon may be started, a process is for that."""


class Arguments(NamedTuple):
    """What the host's settings say."""

    home: str | None
    within_ms: int | None
    host: str
    event: str


class HookAnswer(NamedTuple):
    """How a call was answered: by the ``daemon``, ``alone``, ``apart`` (not at all), or not: ``failed``, ``late``."""

    how: str
    answer: dict[str, Any]


def main() -> None:
    """Answer a hook; never returns, never fails."""
    gc.disable()  # a process of a tenth of a second collects nothing worth the time
    sys.setswitchinterval(_SWITCH_SECONDS)
    with suppress(BaseException):
        began = time.monotonic() - age()
        if {"-h", "--help"}.intersection(sys.argv[1:]):
            os.write(1, _HELP)
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
        self.name = shape.name_of(self.event)
        self.home = home_folder(environ, arguments.home)
        self.is_own = is_own_call(environ)
        self.shape = shape
        self.began = began
        is_start = self.name == "session-start"
        allowed = START_ALLOWED_MS if is_start else ALLOWED_MS
        within = (arguments.within_ms or max(allowed, int(environ.get(WITHIN_VARIABLE) or 0))) / 1000
        self.is_pressed = time.monotonic() - began > _PRESSED_SHARE * within
        """The machine is so busy that the process's start took most of its time: to load more would not end in time."""
        self.until = max(began + within, time.monotonic() + _LEAST_SECONDS)
        self.may_ask = (self.host, self.name) == ASKS
        self.patience = within * (
            _START_PATIENT_SHARE if is_start
            else _ASKS_PATIENT_SHARE if self.may_ask
            else _TOOL_PATIENT_SHARE if self.name == TOOL
            else _PATIENT_SHARE
        )  # fmt: skip
        self.call: dict[str, Any] = {}
        self.is_heard = threading.Event()
        """The host has handed over what it had to say, and ``call`` is that."""
        self.was_away = False
        self.outcomes: SimpleQueue[HookAnswer | None] = SimpleQueue()
        """What the daemon and the process itself come to; ``None`` for who has no answer."""
        self.ended: SimpleQueue[None] = SimpleQueue()
        self.how, self.characters = "late", 0
        """How it went, for the log: the host was not told in time until it was."""
        self.is_there = False
        """The home is, and its disk answers."""
        self.is_noted = False
        self._telling = threading.Lock()
        self._noting = threading.Lock()
        self._is_told = threading.Event()

    def answer(self) -> None:
        """Tell the host what there is, and end in time."""
        outcome = HookAnswer("apart", {})
        if not self.is_own and self._is_known():
            self._begin(self._ask_daemon)
            outcome = self._first()
        threading.Thread(target=self._finish, args=(outcome,), daemon=True).start()
        with suppress(Empty):
            self.ended.get(timeout=self._left(_SPARED_SECONDS))
            return
        self._tell("")  # what came to be told meanwhile stands
        self._is_told.wait(_WRITING_SECONDS)  # who began to tell may not have come to write it
        with suppress(Empty):
            self.ended.get(timeout=self._left())
            return
        if self.is_there:  # no thread comes to anything any more, on a machine that busy
            self._note()

    def _is_known(self) -> bool:
        return self.name in TELLING or self.name in EVENTS or self.name == TOOL

    def _first(self) -> HookAnswer:
        """What is answered first; the process looks by itself when the daemon is away, or takes its time."""
        patience, at_work, is_looking = self._left() if self.is_pressed else self.patience, 1, False
        while True:
            try:
                outcome = self.outcomes.get(timeout=min(patience, self._left(2 * _SPARED_SECONDS)))
            except Empty:
                if is_looking:
                    return HookAnswer("late", {})
            else:
                at_work -= 1
                if outcome:
                    return outcome
            if self.is_pressed:
                return HookAnswer("late", {})
            if not is_looking:
                patience, at_work, is_looking = self._left(), at_work + 1, True
                self._begin(self._look_alone)
            elif not at_work:
                return HookAnswer("failed", {})

    def _begin(self, work: Callable[[], HookAnswer | None]) -> None:
        """Have a thread come to an answer, or to none."""

        def guarded() -> None:
            outcome = None
            with suppress(BaseException):  # what fails in a thread is nobody's trouble: it has no answer then
                outcome = work()
            self.outcomes.put(outcome)

        threading.Thread(target=guarded, daemon=True).start()

    def _left(self, spared: float = 0.0) -> float:
        return max(0.0, self.until - spared - time.monotonic())

    def _ask_daemon(self) -> HookAnswer | None:
        """The daemon's answer. What is to be done later is noted before anything else."""
        self.is_there = os.path.isdir(self.home)
        call = self.shape.call(self.host, self.name, read_input())
        if call["is_apart"]:
            return HookAnswer("apart", {})
        self.call = call
        self.is_heard.set()
        if self.name in EVENTS:
            notes.leave_chore(self.home, self.name, call)
        try:
            answer = ask(self.home, "hook", call, seconds=self._left() * _DAEMON_SHARE)
            return HookAnswer("daemon", answer) if _is_answer(answer) else None
        except (Away, Refused):
            self.was_away = True
            return None

    def _look_alone(self) -> HookAnswer | None:
        if self.name not in TELLING:
            self.is_heard.wait()
            return HookAnswer("alone", {})
        self.is_there = os.path.isdir(self.home)
        if not self.is_there:
            return None
        from nacre.hooks.alone import answer  # noqa: PLC0415 - 150 ms that the daemon spares

        self.is_heard.wait()
        return HookAnswer("alone", answer(self.home, self.call))

    def _finish(self, outcome: HookAnswer) -> None:
        with suppress(BaseException):
            self._deliver(outcome)
        with suppress(BaseException):
            if not self.is_noted:  # the host did not take it
                self._note()
        self.ended.put(None)

    def _deliver(self, outcome: HookAnswer) -> None:
        """Tell the host; then keep what was told, start what is to go on, and note the run."""
        how = "held-out" if outcome.answer.get("held_out") else outcome.how
        if self._tell(context_of(self.host, self.name, outcome.answer), how):
            notes.keep(self.home, self.call, outcome.answer)
        self._note()
        if self.was_away:
            self._start_what_goes_on(has_chores=self.name in _URGENT or bool(outcome.answer.get("chores")))

    def _note(self) -> None:
        """Note the run, once: by who is done with it, else by who ends it. A start that was missed is owed."""
        if self.how in ("late", "failed") and self.name == "session-start" and self.is_heard.is_set():
            notes.owe_start(self.home, self.call["session"], self.call["occasion"])
        took = round(1000 * (time.monotonic() - self.began), 1)
        line = notes.Line(self.host, self.event, self.how, took, self.characters)
        notes.log(self.home, line, lambda: self._noting.acquire(blocking=False))
        self.is_noted = True

    def _start_what_goes_on(self, *, has_chores: bool) -> None:
        """A daemon for the hooks to come, where it may be started; else one process that does what waits."""
        if self.name in ("prompt", TOOL) or not os.path.isdir(self.home):
            return
        from nacre.hooks import starting  # noqa: PLC0415 - few runs start anything

        starting.start(self.home, has_chores=has_chores)

    def _tell(self, context: str, how: str = "late") -> bool:
        """Write the one answer to the host; returns whether it is this one. ``how`` it was come to is for the log.

        An answer of nothing is written only where it waits for nobody: who does not read has no use for it.
        """
        if not self._telling.acquire(blocking=False):
            return False
        self.how, self.characters = how, len(context)  # before the rest, which there may be no time for
        data = self.shape.output(self.event, self.name, context)
        try:
            while data and (context or _takes_output()):
                data = data[os.write(1, data) :]
        except OSError:
            self.how, self.characters = "late", 0  # the host is gone, or has closed its ear
            raise
        self._is_told.set()
        return True


def _takes_output() -> bool:
    """Whether a few bytes for the host wait for nobody; Windows does not tell."""
    return os.name == "nt" or bool(select.select([], [1], [], 0)[1])


def _is_answer(answer: object) -> bool:
    return isinstance(answer, dict) and isinstance(answer.get("context"), str)


def _arguments(arguments: Sequence[str]) -> Arguments:
    """Options stand anywhere, as ``--home PATH`` or ``--home=PATH``. Raises ValueError, IndexError."""
    words: list[str] = []
    named = {"--home": "", "--within": "0"}
    waiting = iter(arguments)
    for word in waiting:
        name, has_value, value = word.partition("=")
        if name in named:
            named[name] = value if has_value else next(waiting, "")
        elif not word.startswith("-"):
            words.append(word)
    return Arguments(named["--home"] or None, int(named["--within"]) or None, words[0], words[1])


def read_input() -> dict[str, Any]:
    """What the host hands over; an empty object where that is nothing of the kind.

    A host that keeps its end open is not waited for once an object is whole.
    """
    data = bytearray()
    while len(data) <= _MOST_INPUT and not os.isatty(0):
        chunk = os.read(0, 65_536)
        data += chunk
        is_end = not chunk or chunk.rstrip().endswith(b"}")
        if is_end and (given := parsed(bytes(data))) is not None:
            return given
        if not chunk:
            break
    return {}


def age() -> float:
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
