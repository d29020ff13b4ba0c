"""A daemon for as long as wirings are proved: the first session of a host starts it, and what comes after is proved."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from nacre.link.client import Away, Refused, ask
from nacre.link.start import start_daemon
from nacre.settings import Settings

_WARM_SECONDS = 30.0
_END_SECONDS = 5.0
_LOOK_SECONDS = 0.05
_ASK_SECONDS = 2.0


@contextmanager
def warmed(settings: Settings) -> Iterator[None]:
    """Have the home's daemon up within, where hooks may start one; it ends afterwards, unless it was there before."""
    home = str(settings.home)
    daemon = None
    with suppress(OSError):
        daemon = start_daemon(home, settings.environ, "--no-watch") if settings.flag("daemon.enabled") else None
    if daemon is None:
        yield
        return
    try:
        until = time.monotonic() + _WARM_SECONDS
        while daemon.poll() is None and not _is_warm(home) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        yield
    finally:
        _end(daemon, home)


def _end(daemon: subprocess.Popen[bytes], home: str) -> None:
    """End it; where another one was faster, it ended by itself, and that one stays."""
    if daemon.poll() is None:
        with suppress(Away, Refused):
            ask(home, "stop", {}, seconds=_ASK_SECONDS)
    try:
        daemon.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def _is_warm(home: str) -> bool:
    try:
        return bool(ask(home, "hello", {}, seconds=_ASK_SECONDS)["is_warm"])
    except (Away, Refused, KeyError, TypeError):
        return False
