"""Calls that can be cut off: each runs in a thread of its own, and whoever asked waits no longer than its time."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

R = TypeVar("R")


class CutOff(Exception):  # noqa: N818 - named for what is the case
    """The model was closed while the call ran, or before it began."""


class _Call(Generic[R]):
    def __init__(self, work: Callable[[], R]) -> None:
        self.done = Event()
        self.answer: R
        self.error: BaseException | None = None
        self.is_cut = False
        self._work = work

    def run(self) -> None:
        try:
            self.answer = self._work()
        except BaseException as error:  # noqa: BLE001 - carried over to whoever waits, and raised there
            self.error = error
        self.done.set()


class Calls:
    """The calls of one model. A library that waits for bytes cannot be woken, so that its thread is left behind.

    It ends by the library's own timeout, and holds up neither an answer nor the end of the process.
    """

    def __init__(self) -> None:
        self.closed = Event()
        self._running: set[_Call] = set()  # type: ignore[type-arg]
        self._lock = Lock()

    def run(self, work: Callable[[], R], seconds: float) -> R:
        """What ``work`` returns or raises. Raises TimeoutError after ``seconds``, CutOff when the model is closed."""
        call = _Call(work)
        with self._lock:
            if self.closed.is_set():
                raise CutOff
            self._running.add(call)
        try:
            Thread(target=call.run, name="nacre-model", daemon=True).start()
            if not call.done.wait(seconds):
                raise TimeoutError
        finally:
            with self._lock:
                self._running.discard(call)
        if call.is_cut:  # whatever the work came to: what it ran on was taken from it
            raise CutOff
        if call.error is not None:
            raise call.error
        return call.answer

    def close(self) -> None:
        """Cut off what runs."""
        with self._lock:
            self.closed.set()
            for call in self._running:
                call.is_cut = True
                call.done.set()
