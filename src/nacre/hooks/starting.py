"""What goes on after a hook that no daemon answered."""

from __future__ import annotations

from nacre.link.start import start_chores, start_daemon
from nacre.platform.environment import environment
from nacre.settings import load_settings


def start(home: str, *, has_chores: bool) -> None:
    """Start the daemon, where the settings let hooks do that; else, where there are chores, a process for them.

    Raises SettingsInvalid, OSError.
    """
    if load_settings(home)["daemon.enabled"]:
        start_daemon(home, environment())
    elif has_chores:
        start_chores(home, environment())
