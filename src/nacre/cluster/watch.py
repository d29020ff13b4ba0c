"""What a process does, told to whoever counts it: by its name, how it ended and how long it took; never what about."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Protocol

from nacre.errors import NacreError
from nacre.values.actor import Actor
from nacre.web.served import Asking, Run

OK = "ok"
FAULT = "fault"
"""How it ended where nobody foresaw it; else it is ``ok`` or the code of an error."""

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0, 600.0)
"""The bounds of histograms."""

Note = Callable[[str, float], None]
"""Takes how something ended, and its seconds."""


class Observer(Protocol):
    """Counts."""

    def observed(self, name: str) -> AbstractContextManager[Note]:
        """Something of that name is done in the block; how it ended is told within."""
        ...


class Watch:
    """Tells observers of all that is done in its blocks."""

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = tuple(observers)

    @contextmanager
    def counted(self, name: str) -> Iterator[None]:
        """Something of that name is done in the block."""
        began, outcome = time.perf_counter(), FAULT
        with ExitStack() as stack:
            notes = [stack.enter_context(one.observed(name)) for one in self._observers]
            try:
                yield
                outcome = OK
            except NacreError as error:
                outcome = error.code
                raise
            finally:
                seconds = time.perf_counter() - began
                for note in notes:
                    note(outcome, seconds)

    def measured(self, run: Run) -> Run:
        """The same, and it is counted."""

        def counted(operation: str, request: bytes, actor: Actor, caller: Asking) -> bytes:
            with self.counted(operation):
                return run(operation, request, actor, caller)

        return counted
