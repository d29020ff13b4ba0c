"""``nacre statusline``: prints a line about the session for Claude Code.

Claude Code runs this command after every message, with a JSON object on standard input. It ends
within 50 ms with status 0 and omits counts that take longer. It reads a small file and the
database without locks, and writes nothing.
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
from nacre.errors import UnusableStoreError
from nacre.serve.hook_process import WITHIN_VARIABLE, age, read_input

ALLOWED_MS = 46
"""Time limit in milliseconds since the process started. Exiting takes a few more milliseconds."""

_START_FACTOR = 2.5
"""The time limit is at least this multiple of the time that the process took to start."""

_PATIENCE_MS = 5
_WEEK_SECONDS = 7 * 24 * 3600
_MAX_BYTES = 200_000
_TOOL = "claude-code"
_HELD_OUT = -1
"""Value for a session in the control group, which gets no memories."""


def main() -> None:
    """Print the line. Always exit with status 0."""
    gc.disable()  # in a process this short, collection costs more than it frees
    with suppress(BaseException):
        started = age()
        environ = environment()
        within = max(ALLOWED_MS, int(environ.get(WITHIN_VARIABLE) or 0)) / 1000
        remaining = max(within, _START_FACTOR * started) - started
        os.write(1, f"{line(look(environ, remaining))}\n".encode())
    os._exit(0)  # do not wait for the threads


def look(environ: Mapping[str, str], seconds: float) -> dict[str, int]:
    """Return the counts that are available in time.

    ``told``: memories given to the session named on standard input. ``to_review``: pending items.
    ``held_out``: 1 for a session in the control group.
    """
    home, until, counts = home_folder(environ), time.monotonic() + seconds, dict[str, int]()
    looks: dict[str, Callable[[], int]] = {
        "told": lambda: _count_given(home),
        "to_review": lambda: _count_pending(environ, home),
    }

    def note(name: str) -> None:
        with suppress(BaseException):  # unreadable counts are omitted
            counts[name] = looks[name]()

    threads = [threading.Thread(target=note, args=(name,), daemon=True) for name in looks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    known_counts = dict(counts)
    return (
        {**known_counts, "told": 0, "held_out": 1}
        if known_counts.get("told") == _HELD_OUT
        else known_counts
    )


def line(counts: Mapping[str, int]) -> str:
    """Return the text of the status line, such as ``nacre: 3 told, 12 to review``."""
    words = {"told": "told", "to_review": "to review"}
    parts = ["held out"] if counts.get("held_out") else []
    parts += [f"{counts[name]:,} {word}" for name, word in words.items() if counts.get(name)]
    return f"nacre: {', '.join(parts)}" if parts else "nacre"


def _count_given(home: str) -> int:
    """Return how many memories and handoffs the session received, or ``_HELD_OUT``.

    Raises OSError, ValueError, KeyError.
    """
    session = json.loads(read_input())["session_id"]
    with open(session_file(home, f"{_TOOL}:{session}"), "rb") as file:
        state = json.loads(file.read(_MAX_BYTES))
    return (
        _HELD_OUT if state.get("held_out") else sum("#" not in ref for ref in state["given"])
    )  # references to turns contain a number sign


def _count_pending(environ: Mapping[str, str], home: str) -> int:
    """Count offered candidates and pending memories.

    Returns 0 for a database on a server, because the query takes too long. Raises
    UnusableStoreError.
    """
    if server_address(environ):
        return 0
    from nacre.store.sqlite import FileDatabase  # noqa: PLC0415 - takes 20 ms, in parallel to the other count

    only_read = UnusableStoreError("it is opened to be read")
    database = FileDatabase(
        Path(environ.get("NACRE_DB") or f"{home}/nacre.db").expanduser(),
        unwritable=only_read,
        patience_ms=_PATIENCE_MS,
    )
    week_ago = int(time.time() - _WEEK_SECONDS) * 1000
    return sum(database.one("count_waiting", since=week_ago) or ())
