"""What becomes of the daemon when hosts are wired, or no more: one of another nacre, or one that nobody needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class DaemonMet:
    """A daemon that had to end, and whether it did; one that the system or a person started is theirs to end."""

    version: str
    state: Literal["ended", "runs"]
    told: str


def end_unneeded(home: Path) -> DaemonMet | None:
    """With the last host, end the daemon that was started for them: it follows sessions. ``None`` where none runs."""
    from nacre.daemon.greeting import ask_to_stop, greet

    found = greet(home)
    if found is None:
        return None
    if found.on_demand and ask_to_stop(home):
        told = "The daemon ended: no session is read any more, until something of nacre's starts it again."
        return DaemonMet(found.version, "ended", told)
    reads = " and reads your agents' sessions" if found.follows else ""
    told = (
        f"The daemon goes on{reads}: nacre serve stop ends it, nacre watcher uninstall ends one that comes with login."
    )
    return DaemonMet(found.version, "runs", told)


def end_other_version(home: Path) -> DaemonMet | None:
    """End a daemon of another nacre than this one; ``None`` where none of that kind runs."""
    from nacre.cli.installed import installed_version
    from nacre.daemon.greeting import ask_to_stop, greet

    found, own = greet(home), installed_version()
    if found is None or found.version == own:
        return None
    who = f"The daemon was nacre {found.version}, this is {own}"
    if found.on_demand and ask_to_stop(home):
        return DaemonMet(found.version, "ended", f"{who}: it ended, and the next session starts this one's.")
    return DaemonMet(found.version, "runs", f"{who}: it goes on. nacre serve stop, then start it as you did.")
