"""What a hook leaves in the home: what a session was given, what is to be done, and a line about its run.

Standard library only, and nothing of it is waited for: where the disk does not take it, it is lost. A home that is not
there is not made.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from nacre.link import chores
from nacre.link.address import session_file

_LOG_BYTES = 1_000_000
_SAFE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


def keep(home: str, call: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """Keep what a session was given, once it was, and leave what is to be done because of that."""
    session, state = call.get("session", ""), answer.get("state")
    if session and isinstance(state, dict):
        _replace(home, session_file(home, session), state)
    for kind in answer.get("chores") or ():
        if kind != call.get("event"):
            leave_chore(home, str(kind), call)


def owe_start(home: str, session: str, occasion: str) -> None:
    """A session was not told what it starts with: its next prompt is.

    What was given before it began anew is out of sight. One that is gone on with has it in sight, and is owed nothing.
    """
    if session and (occasion != "resume" or not os.path.exists(session_file(home, session))):
        _replace(home, session_file(home, session), {"owed": occasion})


def leave_chore(home: str, kind: str, call: Mapping[str, Any]) -> None:
    """Leave what is to be done for whoever has the time; a home that is not there is not made."""
    if os.path.isdir(home):
        with suppress(OSError):
            chores.leave_chore(
                home, kind, session=str(call.get("session") or ""), transcript=call.get("transcript"),
                folder=call.get("folder"), occasion=str(call.get("occasion") or ""),
            )  # fmt: skip


class Line(NamedTuple):
    """What is noted of a run: ``ms`` since its process started, or since the daemon heard of it where that answers the
    host itself; and how many characters were told."""

    host: str
    event: str
    how: str
    ms: float
    characters: int


def log(home: str, line: Line) -> None:
    """One line about a run, without a word of what was said."""
    data = json.dumps({"at": round(time.time(), 3), **line._asdict()}).encode() + b"\n"
    with suppress(OSError):
        path = os.path.join(_folder(home, "logs"), "hooks.jsonl")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _SAFE, 0o600)
        try:
            os.write(descriptor, data)
            is_full = os.fstat(descriptor).st_size > _LOG_BYTES
        finally:
            os.close(descriptor)
        if is_full:
            os.replace(path, path + ".1")


def _replace(home: str, path: str, value: dict[str, Any]) -> None:
    """Write a file whole or not at all."""
    with suppress(OSError):
        folder = _folder(home, "run", os.path.basename(os.path.dirname(path)))
        fresh = os.path.join(folder, f".{os.getpid()}-{threading.get_ident()}.tmp")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _SAFE, 0o600)
        try:
            os.write(descriptor, json.dumps(value).encode())
        finally:
            os.close(descriptor)
        os.replace(fresh, path)


def _folder(home: str, *names: str) -> str:
    """A folder of the home, for the owner alone. Raises OSError."""
    folder = os.path.abspath(home)
    for name in names:
        folder = os.path.join(folder, name)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
    return folder
