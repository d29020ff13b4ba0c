"""Ask the daemon of a home. Standard library only, and no other module of nacre that is not: hooks pay for imports.

The daemon speaks HTTP on its socket, one request a connection. ``POST /call/OPERATION`` runs an operation of
:mod:`nacre.catalogue`. Its body is ``{"protocol": <number>, "request": {…}}``, the response ``{"result": …}`` or
``{"error": {"code", "message", "hint"}}``. The body may have ``seconds``, for which the answer is waited;
``agent``, the tool whose agent asks by MCP;
``settings``, the mark of those that it has to be given by (``Settings.mark``); ``notes: true`` for what a person should
know beside the answer, which comes back as ``"notes": {"warnings": […], "problems": […]}``.
``POST /hook/HOST/EVENT`` is a hook (:mod:`nacre.daemon.hooks`).
"""

from __future__ import annotations

import json
import os
import re
import socket
import time
from typing import Any

from nacre.link.address import is_own, socket_path

PROTOCOL = 1
_ELSEWHERE = ("other_version", "other_settings", "ending")
_CHUNK = 65_536
MOST_BYTES = 64_000_000
"""Of a request or a response."""

_LENGTH = re.compile(rb"^content-length: *(\d{1,9})\r$", re.IGNORECASE | re.MULTILINE)


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
    """The whole response; ``more`` goes into the request. Raises Away, Refused."""
    asked = {"protocol": PROTOCOL, "request": request, "seconds": seconds, **more}
    body = json.dumps(asked, ensure_ascii=False).encode("utf-8", "replace")  # no daemon reads half a character
    try:
        answer = json.loads(post(home, f"/call/{operation}", body, seconds=seconds)[1])
    except ValueError as error:
        raise Away("the answer is not JSON") from error
    if not isinstance(answer, dict):
        raise Away("the answer has no shape")
    if "error" in answer:
        told = answer["error"] if isinstance(answer["error"], dict) else {}
        if told.get("code") in _ELSEWHERE:
            raise Away(str(told.get("message")))
        raise Refused(told)
    return answer


def post(home: str, target: str, body: bytes, *, seconds: float) -> tuple[int, bytes]:
    """Post a body to the daemon; returns the status and the body of its response. Raises Away."""
    if not hasattr(socket, "AF_UNIX"):
        raise Away("this system has no local sockets")
    path, until = socket_path(home), time.monotonic() + seconds
    head = f"POST {target} HTTP/1.1\r\nHost: nacre\r\nContent-Length: {len(body)}\r\n\r\n"
    received = bytearray()
    try:
        if not is_own(path):
            raise Away("it would be another user's")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(_left(until))
            link.connect(path)
            link.sendall(head.encode() + body)
            while not is_whole(received):
                link.settimeout(_left(until))
                chunk = link.recv(_CHUNK)
                if not chunk or len(received) > MOST_BYTES:
                    raise Away("the answer breaks off")
                received += chunk
        top, _, told = bytes(received).partition(b"\r\n\r\n")
        return int(top.split(b" ", 2)[1]), told
    except (OSError, ValueError, IndexError) as error:
        raise Away(os.fspath(path)) from error


def is_whole(message: bytearray) -> bool:
    """Whether a message of HTTP, of a length that it tells, has arrived."""
    end = message.find(b"\r\n\r\n")
    length = _LENGTH.search(message, 0, end + 2) if end >= 0 else None
    return end >= 0 and len(message) - end - 4 >= (int(length[1]) if length else 0)


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
