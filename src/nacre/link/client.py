"""Ask the daemon of a home. Standard library only, and no other module of nacre that is not: hooks pay for imports.

One question a connection: a line of JSON there, a line of JSON back. The line there is ``{"protocol": <number>,
"operation": <name>, "request": {…}}``, as :mod:`nacre.app.catalogue` names them; the line back is ``{"result": …}`` or
``{"error": {"code", "message", "hint"}}``.
"""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any

from nacre.link.address import socket_path

PROTOCOL = 1
_CHUNK = 65_536
_MOST_BYTES = 64_000_000


class Away(Exception):  # noqa: N818 - what is the case
    """No daemon answers: none runs, or not in time, or one of another version."""


class Refused(Exception):  # noqa: N818 - what is the case
    """The daemon answered that it could not: ``error`` has its code, message and hint."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.error = error


def ask(home: str, operation: str, request: dict[str, Any], *, seconds: float) -> Any:
    """The result of an operation in the daemon, as JSON has it. Raises Away, Refused.

    ``seconds`` bounds the whole exchange; what the daemon is at by then goes on without us.
    """
    line = json.dumps({"protocol": PROTOCOL, "operation": operation, "request": request}).encode() + b"\n"
    answer = _exchange(socket_path(home), line, time.monotonic() + seconds)
    if "error" in answer:
        error = answer["error"] if isinstance(answer["error"], dict) else {}
        if error.get("code") == "other_version":
            raise Away("the daemon is of another version")
        raise Refused(error)
    return answer.get("result")


def _exchange(path: str, line: bytes, until: float) -> dict[str, Any]:
    if not hasattr(socket, "AF_UNIX"):
        raise Away("this system has no local sockets")
    try:
        if os.stat(path).st_uid != os.geteuid():
            raise Away(f"{path} belongs to another user")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(_left(until))
            link.connect(path)
            link.sendall(line)
            received = bytearray()
            while not received.endswith(b"\n"):
                link.settimeout(_left(until))
                chunk = link.recv(_CHUNK)
                if not chunk or len(received) > _MOST_BYTES:
                    break
                received += chunk
        answer = json.loads(received)
    except (OSError, ValueError) as error:
        raise Away(os.fspath(path)) from error
    if not isinstance(answer, dict):
        raise Away("the answer has no shape")
    return answer


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
