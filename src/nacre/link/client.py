"""Ask the daemon of a home. Standard library only, and no other module of nacre that is not: hooks pay for imports.

One question a connection: a line of JSON there, a line of JSON back. The line there is ``{"protocol": <number>,
"operation": <name>, "request": {…}}``, as :mod:`nacre.catalogue` names them; the line back is ``{"result": …}`` or
``{"error": {"code", "message", "hint"}}``. May be added there: ``seconds``, for which the answer is waited;
``agent``, the tool whose agent asks by MCP;
``settings``, the mark of those that it has to be given by (``Settings.mark``); ``notes: true`` for what a person should
know beside the answer, which comes back as ``"notes": {"warnings": […], "problems": […]}``.
"""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any

from nacre.link.address import is_own, socket_path

PROTOCOL = 1
_ELSEWHERE = ("other_version", "other_settings", "ending")
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

    ``seconds`` bounds the whole exchange; the daemon does not begin with what nobody waits for any more.
    """
    return ask_whole(home, operation, request, seconds=seconds).get("result")


def ask_whole(
    home: str, operation: str, request: dict[str, Any], *, seconds: float, **more: Any
) -> dict[str, Any]:  # fmt: skip
    """The whole line back; ``more`` goes into the line there. Raises Away, Refused."""
    asked = {"protocol": PROTOCOL, "operation": operation, "request": request, "seconds": seconds, **more}
    line = json.dumps(asked, ensure_ascii=False).encode("utf-8", "replace") + b"\n"  # no daemon reads half a character
    answer = _exchange(socket_path(home), line, time.monotonic() + seconds)
    if "error" in answer:
        error = answer["error"] if isinstance(answer["error"], dict) else {}
        if error.get("code") in _ELSEWHERE:
            raise Away(str(error.get("message")))
        raise Refused(error)
    return answer


def _exchange(path: str, line: bytes, until: float) -> dict[str, Any]:
    if not hasattr(socket, "AF_UNIX"):
        raise Away("this system has no local sockets")
    try:
        if not is_own(path):
            raise Away("it would be another user's")
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
