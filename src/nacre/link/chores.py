"""Leave work for later: one small file a chore. Standard library only: hooks write them, in a millisecond.

Whoever does chores (:mod:`nacre.chores.queue`: the daemon, else ``nacre chores``) takes the files away.
"""

from __future__ import annotations

import itertools
import json
import os
import time

from nacre.link.address import chores_folder

_NAMES = itertools.count()

EVENTS = frozenset({"session-start", "session-end", "pre-compact", "turn-end"})
"""Kinds of chores that hooks leave, named after what happened (:class:`nacre.values.hooks.HookEvent`)."""


def leave_chore(
    home: str, kind: str, *, session: str = "", transcript: str | None = None, folder: str | None = None,
    occasion: str = "", at: float | None = None,
) -> str:  # fmt: skip
    """Leave a chore in a home, whole or not at all; returns its file's path. Raises OSError.

    ``kind`` is one of :data:`EVENTS`, ``session`` is ``<tool>:<the host's own id>``, ``transcript`` the file that it
    writes, ``folder`` where it works, ``at`` when it happened (epoch seconds; now, by default).
    """
    chore = {
        "kind": kind, "session": session, "transcript": transcript, "folder": folder, "occasion": occasion,
        "at": round(time.time() if at is None else at, 3),
    }  # fmt: skip
    folder_path = chores_folder(home)
    for needed in (os.path.dirname(folder_path), folder_path):
        os.makedirs(needed, mode=0o700, exist_ok=True)
    name = f"{time.time_ns():020d}-{os.getpid()}-{next(_NAMES)}.json"
    path, temporary = os.path.join(folder_path, name), os.path.join(folder_path, f".{name}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(chore).encode("utf-8", "surrogatepass"))
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    return path
