"""What a hook answers where no daemon does: by words alone, from the database as it is; nothing is written."""

from __future__ import annotations

import gc
import os
import select
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from http import HTTPStatus
from typing import Any, NamedTuple

from nacre import settings
from nacre.base import link
from nacre.base.environment import environment, home_folder, is_own_call
from nacre.base.link import EVENTS, Away, post
from nacre.context.build import answer as answer_call
from nacre.home.home import open_to_read
from nacre.serve import hook_shapes
from nacre.serve.hook_shapes import SHAPES, TELLING, TOOL, Shape, context_of, parsed
from nacre.settings import load_settings
from nacre.values.context import HookCall, HookEvent, Occasion, SignalLimits

PATIENCE_MS = 40
"""So long a lock of the database's is waited for."""


def answer_alone(home: str, call: dict[str, Any]) -> dict[str, Any]:
    """A :class:`nacre.values.context.HookAnswer` to a call, as the daemon would send it; empty where there is no home.

    Raises NacreError.
    """
    if not os.path.isdir(home):
        return {}
    limits = SignalLimits(**call["signals"]) if call.get("signals") else None
    event, occasion = HookEvent(call["event"]), Occasion(call["occasion"])
    known = {**call, "event": event, "occasion": occasion, "signals": limits, "alone": True}
    return asdict(
        answer_call(open_to_read(load_settings(home), patience_ms=PATIENCE_MS), HookCall(**known))
    )


# ----------------------------------------------------------------------------
# ``nacre-hook [--home PATH] HOST EVENT``: what a host runs. It ends within 150 ms, at a session's
# start within
# 1.5 s, whatever happens, and with 0.
#
# The work is done in a thread, and the process ends without waiting for it. The daemon is asked
# first. Where it does not
# answer, the start of a session is told from the database, and the daemon is started for what comes
# next; a prompt is
# told nothing then, unless no daemon may be started. ``--within MS``, else ``NACRE_HOOK_MS`` in the
# environment, gives it
# another time than that.


ALLOWED_MS = 138
"""From the start of the process on; its end takes a few milliseconds more."""

START_ALLOWED_MS = 1_450
"""The same at a session's start, which happens once."""

WITHIN_VARIABLE = "NACRE_HOOK_MS"
"""Gives hooks a longer time, where nothing on their command line does: on slow machines, or those busy with tests."""

_LEAST_SECONDS = 0.04
"""So long it has to itself, also where the machine was so busy that its start alone took that time."""

_SPARED_SECONDS = 0.008
"""Before that the host is told, if only that there is nothing; the rest is for what is noted afterwards."""

_WRITING_SECONDS = 0.01
"""Also past its end, for what is being told already: on a busy machine a thread may wait for its turn to write."""

_DAEMON_SHARE = {"session-start": 0.3, "prompt": 0.9, TOOL: 0.9}
"""Of what is left, for the daemon's answer; half of it with other events. A daemon that was just started is loading."""

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
    os._exit(0)  # whatever the thread is at, and whatever waits to be written


class _Run:
    """One run of a hook. ``answer`` bounds it; the work is done in a thread."""

    def __init__(self, arguments: Arguments, shape: Shape, began: float) -> None:
        self.environ = environment()
        self.host, self.event = arguments.host, arguments.event
        self.name = shape.name_of(self.event)
        self.home = home_folder(self.environ, arguments.home)
        self.shape = shape
        self.began = began
        allowed = START_ALLOWED_MS if self.name == "session-start" else ALLOWED_MS
        within = (
            arguments.within_ms or max(allowed, int(self.environ.get(WITHIN_VARIABLE) or 0))
        ) / 1000
        self.until = max(began + within, time.monotonic() + _LEAST_SECONDS)
        self.call: dict[str, Any] = {}
        """What the host had to say, once it has."""
        self.how, self.characters = "late", 0
        """How it went, for the log."""
        self.is_there = False
        """The home is, and its disk answers."""
        self._telling = threading.Lock()
        self._noting = threading.Lock()
        self._is_told = threading.Event()

    def answer(self) -> None:
        """Tell the host what there is, and end in time."""
        worker = threading.Thread(target=self._work, daemon=True)
        worker.start()
        worker.join(self._left(_SPARED_SECONDS))
        if not worker.is_alive():
            return
        self._tell(self._output(""))  # what came to be told meanwhile stands
        self._is_told.wait(_WRITING_SECONDS)  # the worker may not have come to write it
        worker.join(self._left())
        if self.is_there:
            self._note()

    def _left(self, spared: float = 0.0) -> float:
        return max(0.0, self.until - spared - time.monotonic())

    def _work(self) -> None:
        with suppress(BaseException):  # what fails here is nobody's trouble: nothing is told then
            self._answer()
        with suppress(BaseException):
            self._tell(self._output(""), "failed")
        with suppress(BaseException):
            self._note()

    def _answer(self) -> None:
        is_known = self.name in TELLING or self.name in EVENTS or self.name == TOOL
        if is_own_call(self.environ) or not is_known:
            self._tell(self._output(""), "apart")
            return
        self.is_there = os.path.isdir(self.home)
        data = read_input()
        call = self.shape.call(self.host, self.name, parsed(data) or {})
        if call["is_apart"]:
            self._tell(self._output(""), "apart")
            return
        self.call = call
        try:
            seconds = self._left(_SPARED_SECONDS) * _DAEMON_SHARE.get(self.name, 0.5)
            status, told = post(self.home, f"/hook/{self.host}/{self.event}", data, seconds=seconds)
        except Away:
            self._answer_alone()
            return
        if status != HTTPStatus.OK:
            self._answer_alone()
        elif self._tell(told, "daemon", len(told)):
            self._noting.acquire(blocking=False)  # the daemon has noted it

    def _answer_alone(self) -> None:
        """Tell what a session starts with, leave what is to be done, and start who does it."""
        if self.name in EVENTS:
            hook_shapes.leave_chore(self.home, self.name, self.call)
        if not self.is_there or self.name == TOOL:
            self._tell(self._output(""), "alone")
            return
        starts = bool(settings.load_settings(self.home)["daemon.enabled"]) and os.name != "nt"
        answer: dict[str, Any] = {}
        if self.name == "session-start" or (self.name in TELLING and not starts):
            answer = answer_alone(self.home, self.call)
        context = context_of(self.host, self.name, answer)
        how = "held-out" if answer.get("held_out") else "alone"
        if self._tell(self._output(context), how, len(context)):
            hook_shapes.keep(self.home, self.call, answer)
        self._note()
        if starts:
            link.start_daemon(self.home, self.environ)
        elif self.name in _URGENT or answer.get("chores"):
            link.start_chores(self.home, self.environ)

    def _note(self) -> None:
        """Note the run, once. A start that was missed is owed."""
        if not self._noting.acquire(blocking=False):
            return
        if self.how in ("late", "failed") and self.name == "session-start" and self.call:
            hook_shapes.owe_start(self.home, self.call["session"], self.call["occasion"])
        took = round(1000 * (time.monotonic() - self.began), 1)
        hook_shapes.log(
            self.home, hook_shapes.Line(self.host, self.event, self.how, took, self.characters)
        )

    def _output(self, context: str) -> bytes:
        return self.shape.output(self.event, self.name, context)

    def _tell(self, data: bytes, how: str = "late", characters: int = 0) -> bool:
        """Write the one answer to the host; returns whether it is this one. ``how`` it was come to is for the log.

        An answer of nothing is written only where it waits for nobody: who does not read has no use for it.
        """
        if not self._telling.acquire(blocking=False):
            return False
        self.how, self.characters = (
            how,
            characters,
        )  # before the rest, which there may be no time for
        try:
            while data and (characters or _takes_output()):
                data = data[os.write(1, data) :]
        except OSError:
            self.how, self.characters = "late", 0  # the host is gone, or has closed its ear
            raise
        self._is_told.set()
        return True


def _takes_output() -> bool:
    """Whether a few bytes for the host wait for nobody; Windows does not tell."""
    return os.name == "nt" or bool(select.select([], [1], [], 0)[1])


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


def read_input() -> bytes:
    """What the host hands over; nothing where that is more than any host has to say.

    A host that keeps its end open is not waited for once an object is whole.
    """
    data = bytearray()
    while len(data) <= _MOST_INPUT and not os.isatty(0):
        chunk = os.read(0, 65_536)
        data += chunk
        is_end = not chunk or chunk.rstrip().endswith(b"}")
        if not chunk or (is_end and parsed(bytes(data)) is not None):
            return bytes(data)
    return b""


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
