"""Hooks answered by the daemon: what the host handed over is posted to ``/hook/HOST/EVENT``.

The response is what the host is told, in its own shape, or 503 where whoever asked is to look elsewhere.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from nacre.daemon.server import Answer, Caller
from nacre.hooks import notes
from nacre.hooks.shapes import SHAPES, TELLING, TOOL, context_of, parsed
from nacre.link.chores import EVENTS
from nacre.link.client import PROTOCOL

_SECONDS = 1.0
"""What nobody could take any more is not begun with."""


class Hooks:
    """Answers the hooks of a home; ``answer`` runs an operation."""

    def __init__(self, home: Path, answer: Answer) -> None:
        self._home = str(home)
        self._answer = answer

    def take(self, host: str, event: str, body: bytes, caller: Caller) -> None:
        """Have a caller take what its host is told, then keep that it was."""
        began = time.monotonic()
        shape = SHAPES.get(host)
        if shape is None:
            caller.take(HTTPStatus.NOT_FOUND, b"")
            return
        name = shape.name_of(event)
        call = shape.call(host, name, parsed(body) or {})
        how, answer = self._answered(name, call, caller)
        if answer is None:
            caller.take(HTTPStatus.SERVICE_UNAVAILABLE, b"")
            return
        context = context_of(host, name, answer)
        try:
            caller.take(HTTPStatus.OK, shape.output(event, name, context))
        except OSError:  # it has gone, as it does when its time is over
            how, context = "late", ""
            if name == "session-start":
                notes.owe_start(self._home, call["session"], call["occasion"])
        else:
            notes.keep(self._home, call, answer)
        took = round(1000 * (time.monotonic() - began), 1)
        notes.log(self._home, notes.Line(host, event, how, took, len(context)))

    def _answered(self, name: str, call: Mapping[str, Any], caller: Caller) -> tuple[str, dict[str, Any] | None]:
        """How it was answered, and the answer; none where it could not be."""
        if call["is_apart"] or not (name in TELLING or name in EVENTS or name == TOOL):
            return "apart", {}
        asked = {"protocol": PROTOCOL, "request": call, "seconds": _SECONDS}
        body = self._answer("hook", json.dumps(asked).encode(), caller)[1]
        answer = json.loads(body).get("result") if body else {}
        if answer is not None and name in EVENTS:
            notes.leave_chore(self._home, name, call)
        return "held-out" if answer and answer.get("held_out") else "daemon", answer
