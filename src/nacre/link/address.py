"""Where a home's daemon listens, and where hooks leave what they note. Standard library only: they pay for imports."""

from __future__ import annotations

import os
import sys
from hashlib import sha256

LOCK = "daemon.lock"
"""In the home: held by its daemon, free as soon as that is gone."""

CHORES_LOCK = "chores.lock"
"""In the home: held by whoever does what hooks left (:mod:`nacre.chores.queue`)."""

_LONGEST = 100
"""A path of a socket holds some 104 bytes at most."""

_LONGEST_NAME = 200


def socket_path(home: str) -> str:
    """The socket of a home: in the home, else, where that path is too long, in a folder of the user's own.

    The home as its real path, so that links to it lead to one daemon.
    """
    inside = os.path.join(os.path.realpath(home), "daemon.sock")
    if len(os.fsencode(inside)) <= _LONGEST:
        return inside
    return os.path.join(run_folder(), f"{_hash(os.fsencode(inside))[:16]}.sock")


def run_folder() -> str:
    """A short folder of the user's own: whoever listens there makes it with mode 0700, and refuses another's."""
    base = "/private/tmp" if sys.platform == "darwin" else "/tmp"  # noqa: S108 - the folder in it is the user's alone
    return os.path.join(base, f"nacre-{os.getuid() if hasattr(os, 'getuid') else 'user'}")


def session_file(home: str, session: str) -> str:
    """Where it is kept what a host's session was given already."""
    return os.path.join(home, "run", "sessions", f"{_name(session)}.json")


def chores_folder(home: str) -> str:
    """Where hooks leave what is to be done, a file each."""
    return os.path.join(home, "run", "chores")


def _name(text: str) -> str:
    """A text as a file's name: no other text has it, and it is not hidden."""
    name = "".join(one if one.isascii() and (one.isalnum() or one in "-_.") else f"={ord(one):x}=" for one in text)
    return name if len(name) <= _LONGEST_NAME and name[:1] != "." else _hash(text.encode("utf-8", "surrogatepass"))


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def is_own(path: str) -> bool:
    """Whether the folder of a socket is the user's alone: who listens where others can put things is told nothing.

    Raises OSError.
    """
    if not hasattr(os, "getuid"):
        return True
    folder = os.path.dirname(path)
    seen, itself = os.stat(folder), os.lstat(folder)
    return seen.st_uid == os.getuid() and itself.st_uid in (os.getuid(), 0) and not seen.st_mode & 0o022
