"""Start a process of nacre's that goes on by itself: the daemon, or one for work that waits. Nobody waits for it.

Standard library only, as hooks do it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from nacre.link.address import CHORES_LOCK, LOCK
from nacre.platform.environment import of_the_owner, server_address
from nacre.platform.locks import is_held

_FILES = ("NACRE_CONFIG", "NACRE_DB")


def start_daemon(home: str, environ: Mapping[str, str], *options: str) -> subprocess.Popen[bytes] | None:
    """Start the daemon of a home, until nobody asks it any more; nothing where one is there, also a silent one.

    Raises OSError.
    """
    if is_held(Path(home) / LOCK):
        return None
    return start_process(home, environ, "serve", "--log", "--idle", *options)


def start_chores(home: str, environ: Mapping[str, str]) -> None:
    """Start a process that does what hooks left, unless one is at it: that one takes what is left meanwhile, too.

    Raises OSError.
    """
    if not is_held(Path(home) / CHORES_LOCK):
        start_process(home, environ, "chores")


def start_process(home: str, environ: Mapping[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    """Start ``nacre <arguments>`` for a home: it holds no pipe, no terminal and no folder of whoever starts it.

    It is the owner's, also where an agent starts it. Raises OSError.
    """
    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
    return subprocess.Popen(
        [*program(), *arguments], env=of_the_owner(environment_of(home, environ)),
        cwd=home if os.path.isdir(home) else None, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True, creationflags=flags,
    )  # fmt: skip


def program() -> list[str]:
    """The words that start nacre, with absolute paths: services and programs with windows have another PATH."""
    return [sys.executable, "-P", "-m", "nacre"]


def environment_of(home: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables for a process that works on the same home, whichever folder it is started in."""
    found = {**environ, "NACRE_HOME": os.path.abspath(home)}
    found |= {name: os.path.abspath(os.path.expanduser(found[name])) for name in _FILES if found.get(name)}
    if address := server_address(environ):
        found["NACRE_DB"] = address
    if modules := found.get("PYTHONPATH"):
        found["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in modules.split(os.pathsep) if part)
    return found
