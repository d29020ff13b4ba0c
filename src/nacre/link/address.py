"""Where the daemon of a home listens. Standard library only: hooks pay for every import."""

from __future__ import annotations

import hashlib
import os
import sys

LOCK = "daemon.lock"
"""In the home: held by its daemon, free as soon as that is gone."""

_LONGEST = 100
"""A path of a socket holds some 104 bytes at most."""


def socket_path(home: str) -> str:
    """The socket of a home: in the home, else, where that path is too long, in a folder of the user's own.

    The home as its real path, so that links to it lead to one daemon.
    """
    inside = os.path.join(os.path.realpath(home), "daemon.sock")
    if len(os.fsencode(inside)) <= _LONGEST:
        return inside
    name = hashlib.sha256(os.fsencode(inside)).hexdigest()[:16]
    return os.path.join(run_folder(), f"{name}.sock")


def run_folder() -> str:
    """A short folder of the user's own: whoever listens there makes it with mode 0700, and refuses another's."""
    base = "/private/tmp" if sys.platform == "darwin" else "/tmp"  # noqa: S108 - the folder in it is the user's alone
    return os.path.join(base, f"nacre-{os.getuid() if hasattr(os, 'getuid') else 'user'}")


def is_own(path: str) -> bool:
    """Whether the folder of a socket is the user's: what another one listens at is told nothing. Raises OSError."""
    return not hasattr(os, "getuid") or os.stat(os.path.dirname(path)).st_uid == os.getuid()
