"""Being told to end: by Ctrl-C, by the system, by whoever started this."""

from __future__ import annotations

import signal
import threading
from queue import SimpleQueue

_SIGNALS = ("SIGTERM", "SIGINT", "SIGBREAK", "SIGHUP")


def stopped_by_signals() -> threading.Event:
    """An event that is set when this process is told to end. Call in the main thread.

    A handler of signals must not set it: it may interrupt the main thread while that holds the event's own lock, and
    would wait for it for ever. So it leaves word, and another thread sets the event.
    """
    stop = threading.Event()
    told: SimpleQueue[None] = SimpleQueue()

    def wait() -> None:
        told.get()
        stop.set()

    threading.Thread(target=wait, daemon=True, name="signals").start()
    for name in _SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: told.put(None))
    return stop
