"""``nacre-hook HOST EVENT``: what a host runs. It answers within 150 ms, whatever happens, and exits with 0.

The work is done in threads, and the process ends without waiting for them: one that hangs in a system call holds up
nobody. The daemon is asked first; where it is away, or has not answered in a moment, the process looks by itself, by
words alone, and whichever answers first is told.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from nacre.hooks.shapes import SHAPES, Shape, event_of
from nacre.link.client import Away, Refused, ask
from nacre.link.environment import environment, home_folder, is_own_call

_BEGAN = time.monotonic()
_ALLOWED_SECONDS = 0.115
"""From the first line of nacre's own on: the interpreter's start and end take some 20 ms more."""

_DAEMON_SECONDS = 0.1
_PATIENCE_SECONDS = 0.04
"""So long the daemon is waited for before the process begins to look by itself."""

_MOST_INPUT = 2_000_000
_MOST_CHARACTERS = 9_900
_LOG_BYTES = 1_000_000
_TELLING = frozenset({"session-start", "prompt"})
"""The events with which a host can be told something."""

Outcome = tuple[str, str]
"""How it was answered (``daemon``, ``alone``, ``late``, ``failed``, ``apart``), and the context."""


def main() -> None:
    """Answer a hook; never returns, never fails."""
    with suppress(BaseException):
        home, host, event = _arguments(sys.argv[1:])
        environ = environment()
        if not is_own_call(environ) and host in SHAPES:
            _run(home_folder(environ, home), SHAPES[host], host, event)
    os._exit(0)  # whatever threads are at, and whatever waits to be written


def _run(home: str, shape: Shape, host: str, event: str) -> None:
    results: SimpleQueue[Outcome] = SimpleQueue()
    name = event_of(shape, event)
    calls: list[dict[str, Any]] = []

    def by_daemon() -> None:
        given = _read_input()
        call = {"host": host, "event": name, **shape.read(given)}
        call["session"] = f"{shape.tool}:{call['session']}" if call["session"] else ""
        calls.append(call)
        if call["is_apart"]:
            results.put(("apart", ""))
            return
        try:
            results.put(("daemon", str(ask(home, "hook", call, seconds=_DAEMON_SECONDS).get("context", ""))))
        except (Away, Refused):
            by_itself()

    def by_itself() -> None:
        from nacre.hooks.alone import answer

        if calls:
            results.put(("alone", answer(home, calls[0])))

    _start(by_daemon)
    how, context = _first(results, by_itself)
    context = context if name in _TELLING and len(context) <= _MOST_CHARACTERS else ""
    _tell(shape.tell(event, context) or shape.silent)
    _log(home, host, event, how, context)


def _first(results: SimpleQueue[Outcome], by_itself: Callable[[], None]) -> Outcome:
    """What is answered first; the process begins to look by itself when the daemon takes its time."""
    try:
        return results.get(timeout=_PATIENCE_SECONDS)
    except Empty:
        _start(by_itself)
    try:
        return results.get(timeout=max(0.0, _BEGAN + _ALLOWED_SECONDS - time.monotonic()))
    except Empty:
        return "late", ""


def _start(work: Callable[[], None]) -> None:
    def guarded() -> None:
        with suppress(BaseException):  # what fails in a thread is nobody's trouble: nothing is told then
            work()

    threading.Thread(target=guarded, daemon=True).start()


def _arguments(arguments: Sequence[str]) -> tuple[str | None, str, str]:
    """The home, if it is named, the host and the event."""
    rest = list(arguments)
    home = None
    if rest and rest[0] == "--home":
        home, rest = rest[1], rest[2:]
    return home, rest[0], rest[1]


def _read_input() -> dict[str, Any]:
    """What the host hands over; an empty object where that is nothing of the kind."""
    if sys.stdin is None or sys.stdin.isatty():
        return {}
    data = bytearray()
    while len(data) <= _MOST_INPUT:
        chunk = os.read(0, 65_536)
        if not chunk:
            break
        data += chunk
    try:
        given = json.loads(data.decode("utf-8", "replace"))
    except ValueError:
        return {}
    return given if isinstance(given, dict) else {}


def _tell(output: str) -> None:
    if output:
        data = output.encode("utf-8", "replace")
        while data:
            data = data[os.write(1, data) :]


def _log(home: str, host: str, event: str, how: str, context: str) -> None:
    """One line about this run, without a word of what was said. It is dropped where it cannot be written."""
    folder = os.path.join(home, "logs")
    if not os.path.isdir(home):
        return
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, "hooks.jsonl")
    took = round(1000 * (time.monotonic() - _BEGAN), 1)
    line = {
        "at": round(time.time(), 3), "host": host, "event": event, "how": how, "ms": took, "characters": len(context),
    }  # fmt: skip
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        os.write(descriptor, json.dumps(line).encode() + b"\n")
        is_full = os.fstat(descriptor).st_size > _LOG_BYTES
    finally:
        os.close(descriptor)
    if is_full:
        os.replace(path, path + ".1")


if __name__ == "__main__":
    main()
