"""Hooks that ask with ``curl`` (``nacre-hook.sh``): what ``nacre-hook`` does around an answer is done here.

The message is a ``POST`` of what the host handed over to ``/hook/HOST/EVENT``. The answer is what the host is told, or
503 where ``nacre-hook`` is to look by itself.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nacre.daemon.server import Caller
from nacre.hooks import notes
from nacre.hooks.shapes import SHAPES, TELLING, TOOL, Shape, context_of, parsed
from nacre.link.chores import EVENTS
from nacre.link.client import PROTOCOL

_REQUEST = re.compile(rb"POST /hook/(?P<host>[\w-]+)/(?P<event>[\w-]+) HTTP/1\.1\r\n")
_SECONDS = 1.0
"""What nobody could take any more is not begun with."""

_REFUSED = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Hooks:
    """Answers the hooks of a home. ``answer`` makes a line back of a line that asks (:mod:`nacre.link.client`)."""

    def __init__(self, home: Path, answer: Callable[[bytes, Caller], bytes]) -> None:
        self._home = str(home)
        self._answer = answer

    def take(self, message: bytes, caller: Caller) -> None:
        """Have a caller take what its host is told, then keep that it was."""
        began = time.monotonic()
        asked = _REQUEST.match(message)
        host, event = (asked["host"].decode(), asked["event"].decode()) if asked else ("", "")
        shape = SHAPES.get(host)
        if shape is None:
            caller.take(_REFUSED)
            return
        name = shape.name_of(event)
        call = shape.call(host, name, parsed(message.partition(b"\r\n\r\n")[2]) or {})
        how, answer = self._answered(name, call, caller)
        if answer is None:
            caller.take(_REFUSED)
            return
        context = context_of(host, name, answer)
        try:
            caller.take(_told(shape, event, name, context))
        except OSError:  # it has gone, as it does when its time is over
            how, context = "late", ""
        else:
            notes.keep(self._home, call, answer)
        took = round(1000 * (time.monotonic() - began), 1)
        notes.log(self._home, notes.Line(host, event, how, took, len(context)))

    def _answered(self, name: str, call: Mapping[str, Any], caller: Caller) -> tuple[str, dict[str, Any] | None]:
        """How it was answered, and the answer; none where it could not be."""
        if call["is_apart"] or not (name in TELLING or name in EVENTS or name == TOOL):
            return "apart", {}
        asked = {"protocol": PROTOCOL, "operation": "hook", "request": call, "seconds": _SECONDS}
        line = self._answer(json.dumps(asked).encode() + b"\n", caller)
        answer = json.loads(line).get("result") if line else {}
        if answer is not None and name in EVENTS:
            notes.leave_chore(self._home, name, call)
        return "held-out" if answer and answer.get("held_out") else "daemon", answer


def _told(shape: Shape, event: str, name: str, context: str) -> bytes:
    body = shape.output(event, name, context)
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body
