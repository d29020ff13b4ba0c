"""Start what goes on after a hook: the daemon, or a process that does what waits. Nobody waits for either."""

from __future__ import annotations

import sys
from pathlib import Path

from nacre.link.address import LOCK
from nacre.link.environment import environment, of_the_owner
from nacre.lock import is_held
from nacre.settings import load_settings

_CHORES_LOCK = "chores.lock"
"""Held by whoever does chores (:mod:`nacre.app.chores`); it takes those that are left meanwhile, too."""


def start(home: str, *, has_chores: bool) -> None:
    """Start the daemon, where the settings let hooks do that; else, where there are chores, a process for them.

    Nothing is started that is there already, and does not answer. Raises SettingsInvalid, OSError.
    """
    if load_settings(home)["daemon.enabled"]:
        if not is_held(Path(home) / LOCK):
            _detached(home, "serve", "--on-demand")
    elif has_chores and not is_held(Path(home) / _CHORES_LOCK):
        _detached(home, "chores")


def _detached(home: str, *arguments: str) -> None:
    """A process of its own, that holds no pipe of the host's and no folder of the project's."""
    import subprocess  # 8 ms that only who starts something pays

    subprocess.Popen(
        [sys.executable, "-P", "-m", "nacre", *arguments],
        env={**of_the_owner(environment()), "NACRE_HOME": home},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd=home,
    )
