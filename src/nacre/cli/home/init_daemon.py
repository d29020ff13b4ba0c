"""What becomes of the daemon when hosts are wired, or no more.

It is there for the first session; one of another nacre, or one that nobody needs, ends.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from nacre import __version__
from nacre.daemon import greeting
from nacre.link import start
from nacre.platform import ids
from nacre.watching import status

if TYPE_CHECKING:
    from nacre.settings import Settings


_START_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class DaemonMet:
    """A daemon that was started; or one, or a watcher, that nobody needs or that is of another nacre; whether it ended.

    One that the system or a person started is theirs to end.
    """

    version: str
    state: Literal["started", "ended", "runs"]
    told: str


def start_for_hosts(settings: Settings) -> DaemonMet | None:
    """Start the daemon, so that the first session finds it warm; ``None`` where one runs, or none may be started."""
    try:
        started = start.start_daemon(str(settings.home), settings.environ) if settings.flag("daemon.enabled") else None
    except OSError:
        return None  # hooks do without, and try again
    if started is None:
        return None
    until = time.monotonic() + _START_SECONDS
    while not (found := greeting.greet(settings.home)) or not found.is_warm:
        if started.poll() is not None or time.monotonic() > until:
            return None  # its log says why; hooks try again
        time.sleep(0.05)
    told = "nacre serve runs in the background now: sessions are answered at once. Unasked for a while, it ends."
    return DaemonMet(__version__, "started", told)


def end_unneeded(home: Path) -> DaemonMet | None:
    """With the last host, end the daemon that was started for them; ``None`` where nothing follows sessions."""
    found = greeting.greet(home)
    if found is None:
        return _watcher(home)
    if found.on_demand and greeting.ask_to_stop(home):
        told = "The daemon ended, and no session is read any more: nacre ingest reads them, when you like."
        return _watcher(home) or DaemonMet(found.version, "ended", told)
    reads = " and reads your agents' sessions" if found.follows else ""
    ends = "nacre serve stop ends it, nacre watcher uninstall for good"
    return DaemonMet(found.version, "runs", f"The daemon goes on{reads}: {ends}.")


def end_other_version(home: Path) -> DaemonMet | None:
    """End a daemon of another nacre than this one; ``None`` where none of that kind runs."""
    found, own = greeting.greet(home), __version__
    if found is None or found.version == own:
        return None
    if found.on_demand and greeting.ask_to_stop(home):
        told = f"The daemon of nacre {found.version} ended; that of {own} answers the next session."
        return DaemonMet(found.version, "ended", told)
    told = f"The daemon is nacre {found.version}, this is {own}: nacre serve stop, then start it as you did."
    return DaemonMet(found.version, "runs", told)


def _watcher(home: Path) -> DaemonMet | None:
    found = status.standing(home, ids.utc_now())
    if not found.lives:
        return None
    told = "The watcher goes on and reads your agents' sessions: nacre watcher uninstall ends it."
    return DaemonMet(found.health.version if found.health else "", "runs", told)
