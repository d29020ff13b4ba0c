"""The ``nacre-hook`` process."""

from __future__ import annotations

import gc
import os
import select
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, NamedTuple

from nacre import settings
from nacre.base import link
from nacre.base.environment import environment, home_folder, is_own_call
from nacre.serve import hook_alone, hook_shapes
from nacre.serve.hook_shapes import SHAPES, TELLING, TOOL, Shape, context_of, parse_input

# -- The command that hosts run --------------------------------------------------------------------
# ``nacre-hook [--home PATH] HOST EVENT`` ends within 150 ms (1.5 s at a session's start), always
# with status 0. A thread does the work, and the process can exit before the thread ends. The hook
# asks the daemon first. If there is no answer, it reads the database itself at a session's start
# (and at a prompt, if the settings forbid a daemon) and starts the daemon. ``--within MS`` or
# ``NACRE_HOOK_MS`` changes the limit.


ALLOWED_MS = 138
"""Time limit in milliseconds since the process started. Exiting takes a few more."""

START_ALLOWED_MS = 1_450
"""Time limit at a session's start, in milliseconds."""

WITHIN_VARIABLE = "NACRE_HOOK_MS"
"""Environment variable that sets a longer limit, for slow machines and tests.

The option ``--within`` overrides the variable.
"""

_MIN_WORK_SECONDS = 0.04
"""Minimum time in seconds for the work, even if the process starts slowly."""

_RESERVED_SECONDS = 0.008
"""Time reserved for sending an empty answer and logging the run, in seconds."""

_WRITING_SECONDS = 0.01
"""Extra time to finish writing an answer, in seconds, because the thread can start late."""

_DAEMON_SHARE = {"session-start": 0.3, "prompt": 0.9, TOOL: 0.9}
"""Fraction of the remaining time for which a hook waits for the daemon, by default 0.5.

It is smaller at a session's start, because a new daemon might still be loading.
"""

_SWITCH_SECONDS = 0.001
"""Thread switch interval in seconds. With the default, imports in a thread delay the timer."""

_HELP = b"""Usage: nacre-hook [--home PATH] [--within MS] HOST EVENT

  Agents run this command, as nacre init configures it. It reads an event as JSON from standard input, answers in the
  agent's format within 150 ms (1.5 s when a session starts), and always exits with 0. Each run adds a line to
  logs/hooks.jsonl in the home.

Example:
  echo '{"session_id": "a", "cwd": "/code/acme"}' | nacre-hook claude-code SessionStart
"""

_MAX_INPUT_BYTES = 2_000_000
_URGENT = frozenset({"session-start", "pre-compact", "session-end"})
"""Events whose chores are urgent. If no daemon can be started, another process does them."""


class Arguments(NamedTuple):
    """The command-line arguments of a hook."""

    home: str | None
    within_ms: int | None
    host: str
    event: str


def main() -> None:
    """Run a hook. The exit status is always 0, so that the host never fails because of it."""
    gc.disable()  # in such a short process, collection costs more than it frees
    sys.setswitchinterval(_SWITCH_SECONDS)
    with suppress(BaseException):
        began = time.monotonic() - age()
        if {"-h", "--help"}.intersection(sys.argv[1:]):
            os.write(1, _HELP)
        arguments = _arguments(sys.argv[1:])
        shape = SHAPES.get(arguments.host)
        if shape:
            _Run(arguments, shape, began).answer()
    os._exit(0)  # do not wait for the thread or for buffered output


class _Run:
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
        self.until = max(began + within, time.monotonic() + _MIN_WORK_SECONDS)
        self.call: dict[str, Any] = {}
        """The host's call, empty until it has been received."""
        self.how, self.characters = "late", 0
        """The outcome and the length of the answer, for the log."""
        self.is_there = False
        """True if the home exists on a disk that responds."""
        self._sending = threading.Lock()
        self._noting = threading.Lock()
        self._is_sent = threading.Event()

    def answer(self) -> None:
        worker = threading.Thread(target=self._work, daemon=True)
        worker.start()
        worker.join(self._remaining(_RESERVED_SECONDS))
        if not worker.is_alive():
            return
        self._send(self._output(""))  # no effect if the worker has already answered
        self._is_sent.wait(_WRITING_SECONDS)  # the worker might still be writing
        worker.join(self._remaining())
        if self.is_there:
            self._note()

    def _remaining(self, reserved: float = 0.0) -> float:
        return max(0.0, self.until - reserved - time.monotonic())

    def _work(self) -> None:
        with suppress(BaseException):  # after a failure, the host gets an empty answer
            self._answer()
        with suppress(BaseException):
            self._send(self._output(""), "failed")
        with suppress(BaseException):
            self._note()

    def _answer(self) -> None:
        is_known = self.name in TELLING or self.name in link.EVENTS or self.name == TOOL
        if is_own_call(self.environ) or not is_known:
            self._send(self._output(""), "apart")
            return
        self.is_there = os.path.isdir(self.home)
        data = read_input()
        call = self.shape.call(self.host, self.name, parse_input(data) or {})
        if call["is_apart"]:
            self._send(self._output(""), "apart")
            return
        self.call = call
        try:
            seconds = self._remaining(_RESERVED_SECONDS) * _DAEMON_SHARE.get(self.name, 0.5)
            status, answer = link.post(
                self.home, f"/hook/{self.host}/{self.event}", data, seconds=seconds
            )
        except link.DaemonAwayError:
            self._answer_alone()
            return
        if status != HTTPStatus.OK:
            self._answer_alone()
        elif self._send(answer, "daemon", len(answer)):
            self._noting.acquire(blocking=False)  # the daemon has already logged the run

    def _answer_alone(self) -> None:
        if self.name in link.EVENTS:
            hook_shapes.leave_chore(self.home, self.name, self.call)
        if not self.is_there or self.name == TOOL:
            self._send(self._output(""), "alone")
            return
        starts = bool(settings.load_settings(self.home)["daemon.enabled"]) and os.name != "nt"
        answer = {}
        if self.name == "session-start" or (self.name in TELLING and not starts):
            answer = hook_alone.answer_alone(self.home, self.call)
        context = context_of(self.name, answer)
        if self._send(self._output(context), "alone", len(context)):
            hook_shapes.keep(self.home, self.call, answer)
        self._note()
        if starts:
            link.start_daemon(self.home, self.environ)
        elif self.name in _URGENT or answer.get("chores"):
            link.start_chores(self.home, self.environ)

    def _note(self) -> None:
        if not self._noting.acquire(blocking=False):
            return
        if self.how in ("late", "failed") and self.name == "session-start" and self.call:
            hook_shapes.owe_start(self.home, self.call["session"], self.call["occasion"])
        took = round(1000 * (time.monotonic() - self.began), 1)
        hook_shapes.log(self.home, self.host, self.event, self.how, took, self.characters)

    def _output(self, context: str) -> bytes:
        return self.shape.output(self.event, self.name, context)

    def _send(self, data: bytes, how: str = "late", characters: int = 0) -> bool:
        """Write the answer unless one was written before. An empty answer is dropped if the host does not read."""
        if not self._sending.acquire(blocking=False):
            return False
        self.how, self.characters = (
            how,
            characters,
        )  # set first, because the time can run out while writing
        try:
            while data and (characters or os.name == "nt" or select.select([], [1], [], 0)[1]):
                data = data[os.write(1, data) :]
        except OSError:
            self.how, self.characters = "late", 0  # the host has ended or closed the pipe
            raise
        self._is_sent.set()
        return True


def _arguments(arguments: Sequence[str]) -> Arguments:
    words = []
    options = {"--home": "", "--within": "0"}
    remaining = iter(arguments)
    for word in remaining:
        name, has_value, value = word.partition("=")
        if name in options:
            options[name] = value if has_value else next(remaining, "")
        elif not word.startswith("-"):
            words.append(word)
    return Arguments(
        options["--home"] or None, int(options["--within"]) or None, words[0], words[1]
    )


def read_input() -> bytes:
    """Read a JSON object from standard input, even if the host keeps the pipe open. Return nothing
    if it is too long.
    """
    data = bytearray()
    while len(data) <= _MAX_INPUT_BYTES and not os.isatty(0):
        chunk = os.read(0, 65_536)
        data += chunk
        is_end = not chunk or chunk.rstrip().endswith(b"}")
        if not chunk or (is_end and parse_input(bytes(data)) is not None):
            return bytes(data)
    return b""


def age() -> float:
    """Return this process's age in seconds, or a typical one if it is unknown."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.03
    return max(0.0, age)


if __name__ == "__main__":
    main()
