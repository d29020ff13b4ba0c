"""Start what goes on after a hook: the daemon, or a process that does what waits. Nobody waits for either."""

from __future__ import annotations

import os
import subprocess
import sys

from nacre.link.environment import environment, of_the_owner
from nacre.settings import load_settings


def start(home: str, *, has_chores: bool) -> None:
    """Start the daemon, where the settings let hooks do that; else, where there are chores, a process for them.

    Raises SettingsInvalid, OSError.
    """
    if load_settings(home)["daemon.enabled"]:
        _detached(home, "serve", "--on-demand")
    elif has_chores:
        _detached(home, "chores")


def _detached(home: str, *arguments: str) -> None:
    """A process of its own, that holds no pipe of the host's and no folder of the project's."""
    subprocess.Popen(
        [sys.executable, "-P", "-m", "nacre", *arguments],
        env={**of_the_owner(environment()), "NACRE_HOME": home},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=home if os.path.isdir(home) else None,
    )
