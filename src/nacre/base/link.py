"""Where a home's daemon listens, and where hooks leave what they note. Standard library only: they pay for imports."""

from __future__ import annotations

import itertools
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from nacre.base.environment import of_the_owner, server_address
from nacre.base.locks import is_held

LOCK = "daemon.lock"
"""In the home: held by its daemon, free as soon as that is gone."""

CHORES_LOCK = "chores.lock"
"""In the home: held by whoever does what hooks left (:mod:`nacre.setup.chores`)."""

_LONGEST = 100
"""A path of a socket holds some 104 bytes at most."""

_LONGEST_NAME = 200


def socket_path(home: str) -> str:
    """The socket of a home: in the home, else, where that path is too long, in a folder of the user's own.

    The home as its real path, so that links to it lead to one daemon.
    """
    inside = os.path.join(os.path.realpath(home), "daemon.sock")
    if len(os.fsencode(inside)) <= _LONGEST:
        return inside
    return os.path.join(run_folder(), f"{_hash(os.fsencode(inside))[:16]}.sock")


def run_folder() -> str:
    """A short folder of the user's own: whoever listens there makes it with mode 0700, and refuses another's."""
    base = "/private/tmp" if sys.platform == "darwin" else "/tmp"  # noqa: S108 - the folder in it is the user's alone
    return os.path.join(base, f"nacre-{os.getuid() if hasattr(os, 'getuid') else 'user'}")


def session_file(home: str, session: str) -> str:
    """Where it is kept what a host's session was given already."""
    return os.path.join(home, "run", "sessions", f"{_name(session)}.json")


def chores_folder(home: str) -> str:
    """Where hooks leave what is to be done, a file each."""
    return os.path.join(home, "run", "chores")


def _name(text: str) -> str:
    """A text as a file's name: no other text has it, and it is not hidden."""
    name = "".join(
        one if one.isascii() and (one.isalnum() or one in "-_.") else f"={ord(one):x}="
        for one in text
    )
    return (
        name
        if len(name) <= _LONGEST_NAME and name[:1] != "."
        else _hash(text.encode("utf-8", "surrogatepass"))
    )


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def is_own(path: str) -> bool:
    """Whether the folder of a socket is the user's alone: who listens where others can put things is told nothing.

    Raises OSError.
    """
    if not hasattr(os, "getuid"):
        return True
    folder = os.path.dirname(path)
    seen, itself = os.stat(folder), os.lstat(folder)
    return (
        seen.st_uid == os.getuid()
        and itself.st_uid in (os.getuid(), 0)
        and not seen.st_mode & 0o022
    )


# ----------------------------------------------------------------------------
# Ask the daemon of a home. Standard library only, and no other module of nacre that is not: hooks pay
# for imports.
#
# The daemon speaks HTTP on its socket, one request a connection. ``POST /call/OPERATION`` runs an
# operation of
# :mod:`nacre.serve.catalogue`. Its body is ``{"protocol": <number>, "request": {…}}``, the response
# ``{"result": …}`` or
# ``{"error": {"code", "message", "hint"}}``. The body may have ``seconds``, for which the answer is
# waited;
# ``agent``, the tool whose agent asks by MCP;
# ``settings``, the mark of those that it has to be given by (``Settings.mark``); ``notes: true`` for
# what a person should
# know beside the answer, which comes back as ``"notes": {"warnings": […], "problems": […]}``.
# ``POST /hook/HOST/EVENT`` is a hook (:mod:`nacre.serve.server`).


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
) -> dict[str, Any]:
    """The whole response; ``more`` goes into the request. Raises Away, Refused."""
    asked = {"protocol": PROTOCOL, "request": request, "seconds": seconds, **more}
    body = json.dumps(asked, ensure_ascii=False).encode(
        "utf-8", "replace"
    )  # no daemon reads half a character
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


# ----------------------------------------------------------------------------
# Start a process of nacre's that goes on by itself: the daemon, or one for work that waits. Nobody
# waits for it.
#
# Standard library only, as hooks do it.


_FILES = ("NACRE_CONFIG", "NACRE_DB")


def start_daemon(
    home: str, environ: Mapping[str, str], *options: str
) -> subprocess.Popen[bytes] | None:
    """Start the daemon of a home, until nobody asks it any more; nothing where one is there, also a silent one.

    Raises OSError.
    """
    if is_held(Path(home) / LOCK):
        return None
    return start_process(home, environ, "serve", "--log", "--idle", *options)


def start_chores(home: str, environ: Mapping[str, str]) -> None:
    """Start a process that does what hooks left, unless one is at it: that one takes what is left meanwhile, too.

    Raises OSError.
    """
    if not is_held(Path(home) / CHORES_LOCK):
        start_process(home, environ, "chores")


def start_process(
    home: str, environ: Mapping[str, str], *arguments: str
) -> subprocess.Popen[bytes]:
    """Start ``nacre <arguments>`` for a home: it holds no pipe, no terminal and no folder of whoever starts it.

    It is the owner's, also where an agent starts it. Raises OSError.
    """
    flags = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(
        subprocess, "CREATE_NEW_PROCESS_GROUP", 0
    )
    return subprocess.Popen(
        [*program(), *arguments],
        env=of_the_owner(environment_of(home, environ)),
        cwd=home if os.path.isdir(home) else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=flags,
    )


def program() -> list[str]:
    """The words that start nacre, with absolute paths: services and programs with windows have another PATH."""
    return [sys.executable, "-P", "-m", "nacre"]


def environment_of(home: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables for a process that works on the same home, whichever folder it is started in."""
    found = {**environ, "NACRE_HOME": os.path.abspath(home)}
    found |= {
        name: os.path.abspath(os.path.expanduser(found[name])) for name in _FILES if found.get(name)
    }
    if address := server_address(environ):
        found["NACRE_DB"] = address
    if modules := found.get("PYTHONPATH"):
        found["PYTHONPATH"] = os.pathsep.join(
            os.path.abspath(part) for part in modules.split(os.pathsep) if part
        )
    return found


# ----------------------------------------------------------------------------
# Leave work for later: one small file a chore. Standard library only: hooks write them, in a
# millisecond.
#
# Whoever does chores (:mod:`nacre.setup.chores`: the daemon, else ``nacre chores``) takes the files
# away.


_NAMES = itertools.count()

EVENTS = frozenset({"session-start", "session-end", "pre-compact", "turn-end"})
"""Kinds of chores that hooks leave, named after what happened (:class:`nacre.values.context.HookEvent`)."""


def leave_chore(
    home: str,
    kind: str,
    *,
    session: str = "",
    transcript: str | None = None,
    folder: str | None = None,
    occasion: str = "",
    at: float | None = None,
) -> str:
    """Leave a chore in a home, whole or not at all; returns its file's path. Raises OSError.

    ``kind`` is one of :data:`EVENTS`, ``session`` is ``<tool>:<the host's own id>``, ``transcript`` the file that it
    writes, ``folder`` where it works, ``at`` when it happened (epoch seconds; now, by default).
    """
    chore = {
        "kind": kind,
        "session": session,
        "transcript": transcript,
        "folder": folder,
        "occasion": occasion,
        "at": round(time.time() if at is None else at, 3),
    }
    folder_path = chores_folder(home)
    for needed in (os.path.dirname(folder_path), folder_path):
        os.makedirs(needed, mode=0o700, exist_ok=True)
    name = f"{time.time_ns():020d}-{os.getpid()}-{next(_NAMES)}.json"
    path, temporary = os.path.join(folder_path, name), os.path.join(folder_path, f".{name}")
    descriptor = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(chore).encode("utf-8", "surrogatepass"))
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    return path
