"""Calls to a home's daemon, and the queue of chores that hooks leave for it.

This module uses only the standard library, because hooks must start fast.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import socket
import sys
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nacre.base import environment, files, locks

if TYPE_CHECKING:
    import subprocess

StrPath = str | os.PathLike[str]

LOCK = "daemon.lock"
"""Name of the lock file that a home's daemon holds while it runs."""

CHORES_LOCK = "chores.lock"
"""Name of the lock file that the process doing a home's chores holds (:mod:`nacre.setup.chores`).
"""

_MAX_SOCKET_PATH_BYTES = 100
"""Maximum length of a socket path in bytes. Systems allow about 104."""

_MAX_NAME_CHARACTERS = 200
_CHORE_NUMBERS = itertools.count()


def socket_path(home: StrPath) -> str:
    """Return the path of the daemon's socket in the home or, if it is too long, in
    :func:`run_folder`.
    """
    inside = os.path.join(os.path.realpath(home), "daemon.sock")
    if len(os.fsencode(inside)) <= _MAX_SOCKET_PATH_BYTES:
        return inside
    return os.path.join(run_folder(), f"{_hash(os.fsencode(inside))[:16]}.sock")


def run_folder() -> str:
    """Return the user's folder for sockets whose paths in the home would be too long."""
    base = "/private/tmp" if sys.platform == "darwin" else "/tmp"  # noqa: S108 - the subfolder belongs only to the user
    return os.path.join(base, f"nacre-{os.getuid() if hasattr(os, 'getuid') else 'user'}")


def session_file(home: StrPath, session: str) -> str:
    """Return the path of the file that records the context a session has already received."""
    return os.path.join(home, "run", "sessions", f"{_name(session)}.json")


def delivery_file(home: StrPath, memory: str) -> str:
    """Return the path of a file that grows by a byte each time a limited memory is delivered."""
    return os.path.join(home, "run", "intents", _name(memory))


def deliveries(home: StrPath, memory: str) -> int:
    """Return how often a limited memory was delivered, or 0 for other memories."""
    try:
        return os.stat(delivery_file(home, memory)).st_size
    except OSError:
        return 0


def chores_folder(home: StrPath) -> str:
    """Return the path of the folder with one file for each chore."""
    return os.path.join(home, "run", "chores")


def chore_file(home: StrPath) -> str:
    """Return a path for a new chore's file. These paths sort by time."""
    name = f"{time.time_ns():020d}-{os.getpid()}-{next(_CHORE_NUMBERS)}.json"
    return os.path.join(chores_folder(home), name)


def write_session(home: StrPath, session: str, state: Mapping[str, Any]) -> None:
    """Save a session's state after a delivery, and count deliveries of limited memories.

    Disk errors are ignored: at worst, the session gets the same context again.
    """
    with contextlib.suppress(OSError):
        for memory in state.get("limited", ()):
            append(home, delivery_file(home, memory), b".")
        write_json(home, session_file(home, session), {**state, "limited": ()})


def write_json(home: StrPath, path: str, value: Mapping[str, Any]) -> None:
    """Atomically write a JSON file in a home. Raises OSError."""
    os.stat(home)  # a missing home is not created
    files.write_file(Path(path), json.dumps(value), durable=False)


def append(home: StrPath, path: str, data: bytes) -> int:
    """Append data to a file in a home, and return the file's new size. Raises OSError."""
    os.stat(home)
    files.make_folder(Path(path).parent)
    with files.open_to_append(path) as file:
        file.write(data)
        return file.tell()


def _name(text: str) -> str:
    name = "".join(
        character
        if character.isascii() and (character.isalnum() or character in "-_.")
        else f"={ord(character):x}="
        for character in text
    )
    return (
        name
        if len(name) <= _MAX_NAME_CHARACTERS and name[:1] != "."
        else _hash(text.encode("utf-8", "surrogatepass"))
    )


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def is_own(path: str) -> bool:
    """Return True if only this user can write to a socket's folder. Raises OSError."""
    if not hasattr(os, "getuid"):
        return True
    folder = os.path.dirname(path)
    target, itself = os.stat(folder), os.lstat(folder)
    return (
        target.st_uid == os.getuid()
        and itself.st_uid in (os.getuid(), 0)
        and not target.st_mode & 0o022
    )


# -- Calls to the daemon ---------------------------------------------------------------------------
# The daemon speaks HTTP on its socket, with one request per connection. ``POST /call/OPERATION``
# runs an operation from :mod:`nacre.serve.catalogue`. The body is ``{"protocol": <number>,
# "request": {…}}``, the response ``{"result": …}`` or ``{"error": {"code", "message", "hint"}}``.
# Optional body keys: ``seconds``, how long the caller waits; ``agent``, the tool that calls through
# MCP; ``settings``, the ``Settings.mark`` that the daemon must have; ``notes: true``, which adds
# ``"notes": {"warnings": […], "problems": […]}`` to the response. ``POST /hook/HOST/EVENT`` runs a
# hook (:mod:`nacre.serve.server`).


PROTOCOL = 1
_NOT_THIS_DAEMON = ("other_version", "other_settings", "ending")
_CHUNK = 65_536
MOST_BYTES = 64_000_000
"""Maximum size of a request or response in bytes."""

_STOP_SECONDS = 5.0
_STOP_POLL_SECONDS = 0.02
_LENGTH = re.compile(rb"^content-length: *(\d{1,9})\r$", re.IGNORECASE | re.MULTILINE)


class DaemonAwayError(Exception):
    """Raised if no compatible daemon answered in time."""


class DaemonRefusedError(Exception):
    """Raised if the daemon answered with an error. ``error`` has its code, message and hint."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error.get("message", "")))
        self.error = error


def ask(home: StrPath, operation: str, request: dict[str, Any], *, seconds: float) -> Any:
    """Run an operation in the daemon and return its result as parsed JSON.

    ``seconds`` limits the whole call. Raises DaemonAwayError or, if the operation fails,
    DaemonRefusedError.
    """
    return ask_whole(home, operation, request, seconds=seconds).get("result")


def ask_whole(
    home: StrPath, operation: str, request: dict[str, Any], *, seconds: float, **more: Any
) -> dict[str, Any]:
    """Run an operation as :func:`ask` does, but return the whole response.

    ``more``: further fields of the message.
    """
    message = {"protocol": PROTOCOL, "request": request, "seconds": seconds, **more}
    # Daemons reject unpaired surrogates.
    body = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
    try:
        answer = json.loads(post(home, f"/call/{operation}", body, seconds=seconds)[1])
    except ValueError as error:
        raise DaemonAwayError("the answer is not JSON") from error
    if not isinstance(answer, dict):
        raise DaemonAwayError("the answer is malformed")
    if "error" in answer:
        error_fields = answer["error"] if isinstance(answer["error"], dict) else {}
        if error_fields.get("code") in _NOT_THIS_DAEMON:
            raise DaemonAwayError(str(error_fields.get("message")))
        raise DaemonRefusedError(error_fields)
    return answer


def post(home: StrPath, target: str, body: bytes, *, seconds: float) -> tuple[int, bytes]:
    """Send a POST request to the daemon and return the status and body. Raises DaemonAwayError."""
    if not hasattr(socket, "AF_UNIX"):
        raise DaemonAwayError("this system has no local sockets")
    path, until = socket_path(home), time.monotonic() + seconds
    head = f"POST {target} HTTP/1.1\r\nHost: nacre\r\nContent-Length: {len(body)}\r\n\r\n"
    received = bytearray()
    try:
        if not is_own(path):
            raise DaemonAwayError("another user could have created it")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(_remaining(until))
            link.connect(path)
            link.sendall(head.encode() + body)
            while not is_whole(received):
                link.settimeout(_remaining(until))
                chunk = link.recv(_CHUNK)
                if not chunk or len(received) > MOST_BYTES:
                    raise DaemonAwayError("the answer is incomplete")
                received += chunk
        top, _, payload = bytes(received).partition(b"\r\n\r\n")
        return int(top.split(b" ", 2)[1]), payload
    except (OSError, ValueError, IndexError) as error:
        raise DaemonAwayError(os.fspath(path)) from error


def is_whole(message: bytearray) -> bool:
    """Return True if an HTTP message is as long as its Content-Length says."""
    end = message.find(b"\r\n\r\n")
    length = _LENGTH.search(message, 0, end + 2) if end >= 0 else None
    return end >= 0 and len(message) - end - 4 >= (int(length[1]) if length else 0)


def _remaining(until: float) -> float:
    seconds = until - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def ask_to_stop(home: Path) -> bool:
    """Ask a home's daemon to stop, and return True if it did so in time."""
    with contextlib.suppress(DaemonAwayError, DaemonRefusedError):
        ask(home, "stop", {}, seconds=1.0)
    until = time.monotonic() + _STOP_SECONDS
    while locks.is_held(home / LOCK):
        if time.monotonic() > until:
            return False
        time.sleep(_STOP_POLL_SECONDS)
    return True


# -- Background processes --------------------------------------------------------------------------


_PATH_VARIABLES = ("NACRE_CONFIG", "NACRE_DB")


def start_daemon(
    home: StrPath, environ: Mapping[str, str], *options: str
) -> subprocess.Popen[bytes] | None:
    """Start the home's daemon unless it is running or the system has no local sockets.

    Raises OSError.
    """
    if not hasattr(socket, "AF_UNIX") or locks.is_held(Path(home) / LOCK):
        return None
    return start_process(home, environ, "serve", "--idle", *options)


def start_chores(home: StrPath, environ: Mapping[str, str]) -> None:
    """Start a process that does the pending chores, unless one is running. Raises OSError."""
    if not locks.is_held(Path(home) / CHORES_LOCK):
        start_process(home, environ, "chores")


def start_process(
    home: StrPath, environ: Mapping[str, str], *arguments: str
) -> subprocess.Popen[bytes]:
    """Start ``nacre <arguments>`` for a home in the background, without agents' variables.

    Raises OSError.
    """
    import subprocess  # noqa: PLC0415 - every hook loads this module

    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(
        subprocess, "CREATE_NEW_PROCESS_GROUP", 0
    )
    return subprocess.Popen(
        [*program(), *arguments],
        env=environment.of_the_owner(environment_of(home, environ)),
        cwd=home if os.path.isdir(home) else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=flags,
    )


def program() -> list[str]:
    """Return a command that starts nacre even if PATH is not set."""
    return [sys.executable, "-P", "-m", "nacre"]


def environment_of(home: StrPath, environ: Mapping[str, str]) -> dict[str, str]:
    """Return environment variables, with absolute paths, for a process that uses the same home."""
    variables = {**environ, "NACRE_HOME": os.path.abspath(home)}
    variables |= {
        name: os.path.abspath(os.path.expanduser(variables[name]))
        for name in _PATH_VARIABLES
        if variables.get(name)
    }
    if address := environment.server_address(environ):
        variables["NACRE_DB"] = address
    if modules := variables.get("PYTHONPATH"):
        variables["PYTHONPATH"] = os.pathsep.join(
            os.path.abspath(part) for part in modules.split(os.pathsep) if part
        )
    return variables


# -- Chores ----------------------------------------------------------------------------------------
# A chore is a small file. The daemon or ``nacre chores`` does the chore
# (:mod:`nacre.setup.chores`).


EVENTS = frozenset({"session-start", "session-end", "pre-compact", "turn-end"})
"""Kinds of chores, named after the events that cause them
(:class:`nacre.values.context.HookEvent`).
"""
