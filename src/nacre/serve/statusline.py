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
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from nacre.base.environment import environment, home_folder, server_address
from nacre.base.link import session_file
from nacre.errors import UnusableStoreError
from nacre.serve.hook_process import WITHIN_VARIABLE, age, read_input

ALLOWED_MS = 46
"""Time limit in milliseconds since the process started. Exiting takes a few more."""

_START_FACTOR = 2.5
"""Minimum ratio of the time limit to the time that the process took to start."""

_PATIENCE_MS = 5
_MAX_BYTES = 200_000
_TOOL = "claude-code"


def main() -> None:
    """Print the status line. The exit status is always 0."""
    gc.disable()  # in such a short process, collection costs more than it frees
    with suppress(BaseException):
        started = age()
        environ = environment()
        within = max(ALLOWED_MS, int(environ.get(WITHIN_VARIABLE) or 0)) / 1000
        remaining = max(within, _START_FACTOR * started) - started
        os.write(1, f"{line(look(environ, remaining))}\n".encode())
    os._exit(0)  # do not wait for the thread


def look(environ: Mapping[str, str], seconds: float) -> dict[str, int]:
    """Return the counts of the status line that can be read within ``seconds``."""
    home, counts = home_folder(environ), dict[str, int]()

    def count() -> None:
        with suppress(BaseException):  # unreadable counts are omitted
            counts["told"] = _count_given(home)
        with suppress(BaseException):
            counts["to_review"] = _count_pending(environ, home)

    thread = threading.Thread(target=count, daemon=True)
    thread.start()
    thread.join(seconds)
    return dict(counts)


def line(counts: Mapping[str, int]) -> str:
    """Return a status line such as ``nacre: 3 told, 12 to review``."""
    words = {"told": "told", "to_review": "to review"}
    parts = [f"{counts[name]:,} {word}" for name, word in words.items() if counts.get(name)]
    return f"nacre: {', '.join(parts)}" if parts else "nacre"


def _count_given(home: str) -> int:
    session = json.loads(read_input())["session_id"]
    with open(session_file(home, f"{_TOOL}:{session}"), "rb") as file:
        state = json.loads(file.read(_MAX_BYTES))
    return sum("#" not in ref for ref in state["given"])  # references to turns contain "#"


def _count_pending(environ: Mapping[str, str], home: str) -> int:
    if server_address(environ):
        return 0
    from nacre.store.sqlite import FileDatabase  # noqa: PLC0415 - takes 20 ms

    only_read = UnusableStoreError("it is opened to be read")
    database = FileDatabase(
        Path(environ.get("NACRE_DB") or f"{home}/nacre.db").expanduser(),
        unwritable=only_read,
        patience_ms=_PATIENCE_MS,
    )
    return sum(database.one("count_waiting") or ())
