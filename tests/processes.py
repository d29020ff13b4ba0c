"""Programs that a test starts and goes on beside: none of them outlives the test."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

_OF_A_TERMINAL = (
    (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    if hasattr(signal, "SIGHUP")
    else (signal.SIGINT,)
)


def wait(is_so: Callable[[], object], seconds: float = 60.0) -> None:
    """Wait until a condition holds. It is checked often, with pauses, because asking costs CPU time."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "the condition did not come true"
        time.sleep(0.03)


class Processes:
    """Starts programs; those that still run in the end are killed, and all are waited for."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[Any]] = []

    def start(self, command: list[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a program; ``options`` are those of ``subprocess.Popen``."""
        process = subprocess.Popen(command, **options)
        self._started.append(process)
        return process

    def end(self) -> None:
        """Kill what still runs, close its pipes, wait for all."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    with suppress(BrokenPipeError):
                        stream.close()
            process.wait()


@contextmanager
def signals_of_a_terminal() -> Iterator[None]:
    """Programs that are started meanwhile heed signals as those of a terminal do.

    A process inherits which signals are ignored: a shell without job control starts what runs in the background with
    SIGINT ignored, nohup with SIGHUP ignored. Python heeds only a SIGINT that was not ignored when it started.
    """
    ignored = [item for item in _OF_A_TERMINAL if signal.getsignal(item) == signal.SIG_IGN]
    for item in ignored:
        signal.signal(item, signal.default_int_handler if item == signal.SIGINT else signal.SIG_DFL)
    yield
    for item in ignored:
        signal.signal(item, signal.SIG_IGN)
