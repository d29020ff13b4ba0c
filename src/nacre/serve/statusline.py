"""``nacre statusline``: a line for Claude Code to show: what a session was told, and what waits for a person.

Claude Code runs it after every message, with an object on standard input. It ends within 50 ms of its start and with 0,
whatever happens: what is not known by then is left out. It reads one small file and counts in the database as it is;
it waits for no lock, and writes nothing.
"""

from __future__ import annotations

import gc
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from nacre.base.environment import environment, home_folder, server_address
from nacre.base.link import session_file
from nacre.errors import StoreUnusable
from nacre.serve.hook_process import WITHIN_VARIABLE, age, read_input

ALLOWED_MS = 46
"""From the start of the process on; its end takes a few milliseconds more."""

_TIMES_ITS_START = 2.5
"""Where the machine is so busy that its start alone took long, so many times that."""

_PATIENCE_MS = 5
_MOST_BYTES = 200_000
_TOOL = "claude-code"
_HELD_OUT = -1
"""Told memories of a session that is told nothing, to see what telling does."""


def main() -> None:
    """Print the line; never returns, never fails."""
    gc.disable()  # a process of a twentieth of a second collects nothing worth the time
    with suppress(BaseException):
        started = age()
        environ = environment()
        within = max(ALLOWED_MS, int(environ.get(WITHIN_VARIABLE) or 0)) / 1000
        left = max(within, _TIMES_ITS_START * started) - started
        os.write(1, f"{line(look(environ, left))}\n".encode())
    os._exit(0)  # whatever threads are at


def look(environ: Mapping[str, str], seconds: float) -> dict[str, int]:
    """``told`` memories in the session that standard input names, whether it is ``held_out``, and how many wait
    ``to_review``, as far as that is known in time."""
    home, until, found = home_folder(environ), time.monotonic() + seconds, dict[str, int]()
    looks: dict[str, Callable[[], int]] = {
        "told": lambda: _told(home),
        "to_review": lambda: _to_review(environ, home),
    }

    def note(name: str) -> None:
        with suppress(BaseException):  # what cannot be read is not known
            found[name] = looks[name]()

    threads = [threading.Thread(target=note, args=(name,), daemon=True) for name in looks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    told = dict(found)
    return {**told, "told": 0, "held_out": 1} if told.get("told") == _HELD_OUT else told


def line(found: Mapping[str, int]) -> str:
    """The line: ``nacre: 3 told, 12 to review``, without what is none; ``held out`` where a session is told nothing."""
    words = {"told": "told", "to_review": "to review"}
    parts = ["held out"] if found.get("held_out") else []
    parts += [f"{found[name]:,} {word}" for name, word in words.items() if found.get(name)]
    return f"nacre: {', '.join(parts)}" if parts else "nacre"


def _told(home: str) -> int:
    """How many memories and handoffs the session was given (:class:`nacre.values.context.SessionState`). Raises
    OSError, ValueError, KeyError."""
    session = json.loads(read_input())["session_id"]
    with open(session_file(home, f"{_TOOL}:{session}"), "rb") as file:
        state = json.loads(file.read(_MOST_BYTES))
    return (
        _HELD_OUT if state.get("held_out") else sum("#" not in ref for ref in state["given"])
    )  # turns have one


def _to_review(environ: Mapping[str, str], home: str) -> int:
    """How many candidates and memories wait; nobody waits for a server. Raises StoreUnusable and its kin."""
    if server_address(environ):
        return 0
    from nacre.store.sqlite import FileDatabase  # noqa: PLC0415 - 20 ms in which the other is looked up

    only_read = StoreUnusable("it is opened to be read")
    opened = FileDatabase(
        Path(environ.get("NACRE_DB") or f"{home}/nacre.db").expanduser(),
        unwritable=only_read,
        patience_ms=_PATIENCE_MS,
    )
    return sum(opened.one("count_waiting") or ())
