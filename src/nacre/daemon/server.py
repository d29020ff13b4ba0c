"""The daemon's server: HTTP on a local socket, one request a connection, each answered in a thread of its own."""

from __future__ import annotations

import os
import re
import select
import socket
import stat
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

from nacre.errors import StoreUnusable, Unavailable
from nacre.link.address import socket_path
from nacre.link.client import MOST_BYTES, is_whole
from nacre.platform import private_files
from nacre.platform.ancestry import agent_of_process, is_orphan

_CHUNK = 65_536
_PATIENCE_SECONDS = 5.0
"""So long a caller may take to ask, and to take the answer."""

_MOST_WAITING = 1024
"""So many may connect before the first of them is looked at."""

_PAUSE_SECONDS = 0.1

_REQUEST = re.compile(rb"POST /(call/(?P<operation>[\w-]+)|hook/(?P<host>[\w-]+)/(?P<event>[\w-]+)) HTTP/1\.1\r\n")

Tell = Callable[[str], None]
Answer = Callable[[str, bytes, "Caller"], tuple[HTTPStatus, bytes]]


class Caller:
    """Whoever asks, over one connection."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link

    def has_left(self) -> bool:
        """Whether nobody is there any more to take an answer. Only Linux tells that from one who has said all."""
        if sys.platform != "linux":
            return False
        poll = select.poll()
        poll.register(self._link, 0)
        return any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))

    def is_allowed(self) -> bool:
        """Whether it is a process of this user, or of the system's."""
        if sys.platform != "linux":
            return True  # the folder and the socket are the user's alone
        return self._credentials()[1] in (os.getuid(), 0)

    def agent(self) -> str | None:
        """The agent that runs the process that asks; only Linux tells which process that is."""
        return agent_of_process(self._credentials()[0]) if sys.platform == "linux" else None

    def is_orphan(self) -> bool:
        """Whether nothing tells who started the process that asks; only Linux tells which process that is."""
        return sys.platform == "linux" and is_orphan(self._credentials()[0])

    def _credentials(self) -> tuple[int, int, int]:
        """Process, user and group of who asks, as Linux tells them."""
        told = self._link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        process, user, group = struct.unpack("3i", told)
        return process, user, group

    def question(self) -> bytes:
        """Its request; nothing where it left or asks too much. Raises OSError."""
        until = time.monotonic() + _PATIENCE_SECONDS
        received = bytearray()
        while not is_whole(received):
            self._link.settimeout(max(0.001, until - time.monotonic()))
            chunk = self._link.recv(_CHUNK)
            if not chunk or len(received) > MOST_BYTES:
                return b""
            received += chunk
        return bytes(received)

    def take(self, status: HTTPStatus, body: bytes) -> None:
        """Send it the response. Raises OSError."""
        head = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self._link.settimeout(_PATIENCE_SECONDS)
        self._link.sendall(head.encode() + body)


class Server:
    """Listens on a home's socket, from ``start`` until ``stop``.

    ``answer`` makes a status and a body of an operation's name and the body of a request; no body where nobody waits
    for it. ``tell`` writes to the daemon's log. ``hook`` is given the host, the event and the body of a hook, and has
    the caller take what it answers. Both run in as many threads as there are callers.
    """

    def __init__(
        self, home: Path, answer: Answer, tell: Tell,
        hook: Callable[[str, str, bytes, Caller], None] = lambda *_: None,
    ) -> None:  # fmt: skip
        self.path = socket_path(str(home))
        self._answer = answer
        self._hook = hook
        self._tell = tell
        self._guard = threading.Lock()
        self.at_work = 0
        """How many callers there are now."""
        self._socket: socket.socket | None = None
        self._made: os.stat_result | None = None
        self.answered = 0
        """How many were answered."""
        self.asked_at = time.monotonic()
        """When the last question came or was answered (``time.monotonic``)."""

    def start(self) -> None:
        """Listen; who asked an earlier daemon's socket finds this one. Raises StoreUnusable, Unavailable."""
        if not hasattr(socket, "AF_UNIX"):
            raise Unavailable("this system has no local sockets", hint="everything works without a daemon")
        folder = Path(self.path).parent
        try:
            private_files.make_folder(folder)
            private_files.refuse_unsafe(folder)
            for left in folder.glob(f"{Path(self.path).name}.*"):
                left.unlink(missing_ok=True)  # of one that was killed as it began
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            fresh = f"{self.path}.{os.getpid()}"
            listening.bind(fresh)
            os.chmod(fresh, stat.S_IRUSR | stat.S_IWUSR)
            listening.listen(_MOST_WAITING)
            os.replace(fresh, self.path)
            self._made = os.stat(self.path)
        except OSError as error:
            told = f"cannot listen at {self.path}: {error.strerror or error}"
            raise StoreUnusable(told, hint="is the home on a disk that knows sockets?") from error
        self._socket = listening
        threading.Thread(target=self._accept, args=(listening,), daemon=True, name="accepting").start()

    def is_in_place(self) -> bool:
        """Whether callers still find this server: the home was not moved or deleted."""
        with suppress(OSError):
            seen = os.stat(self.path)
            return self._made is not None and (seen.st_ino, seen.st_dev) == (self._made.st_ino, self._made.st_dev)
        return False

    def stop(self) -> None:
        """Listen no more; what is being answered goes on."""
        listening, self._socket = self._socket, None
        if listening is None:
            return
        if self.is_in_place():
            with suppress(OSError):
                os.unlink(self.path)
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)  # which wakes the thread that accepts
        listening.close()

    def _accept(self, listening: socket.socket) -> None:
        while self._socket is listening:
            try:
                link, _ = listening.accept()
                self._begin(link)
            except (OSError, RuntimeError) as error:  # no more files or threads: others may be free in a moment
                if self._socket is listening:
                    self._tell(f"a caller was turned away: {error}")
                    time.sleep(_PAUSE_SECONDS)

    def _begin(self, link: socket.socket) -> None:
        self._note(1)
        try:
            threading.Thread(target=self._serve, args=(link,), daemon=True, name="answering").start()
        except RuntimeError:
            self._note(-1)
            raise

    def _serve(self, link: socket.socket) -> None:
        try:
            with link, suppress(OSError):
                self._respond(Caller(link))
        except Exception as error:  # noqa: BLE001 - whatever a caller brings about, the next one is answered
            self._tell("".join(traceback.format_exception(error)).rstrip())
        finally:
            self._note(-1)

    def _respond(self, caller: Caller) -> None:
        message = caller.question() if caller.is_allowed() else b""
        if not message:
            return
        body = message.partition(b"\r\n\r\n")[2]
        asked = _REQUEST.match(message)
        if asked is None:
            caller.take(HTTPStatus.NOT_FOUND, b"")
        elif asked["operation"]:
            status, answer = self._answer(asked["operation"].decode(), body, caller)
            if answer:
                self._note(0, answered=1)
                caller.take(status, answer)
        else:
            self._note(0, answered=1)
            self._hook(asked["host"].decode(), asked["event"].decode(), body, caller)

    def _note(self, callers: int, *, answered: int = 0) -> None:
        with self._guard:
            self.at_work += callers
            self.answered += answered
            self.asked_at = time.monotonic()
