"""Signals that end a command."""

from __future__ import annotations

import signal
import threading
from queue import SimpleQueue

_SIGNALS = ("SIGTERM", "SIGINT", "SIGBREAK", "SIGHUP")


def stopped_by_signals() -> threading.Event:
    """Return an event that is set when a signal ends this process. Call this in the main thread."""
    stop = threading.Event()
    signals: SimpleQueue[None] = SimpleQueue()

    def wait() -> None:
        signals.get()
        stop.set()

    # Another thread sets the event: a signal handler would wait forever if the main thread held the
    # event's lock at that moment.
    threading.Thread(target=wait, daemon=True, name="signals").start()
    for name in _SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: signals.put(None))
    return stop
