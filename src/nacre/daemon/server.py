"""The daemon's ear: a local socket, one question a connection, each answered in a thread of its own.

A question is a line, or what ``curl`` posts for a hook: a message of HTTP/1.1 whose length it tells.
"""

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
from pathlib import Path

from nacre.errors import StoreUnusable, Unavailable
from nacre.link.address import socket_path
from nacre.platform import private_files
from nacre.platform.ancestry import agent_of_process, is_orphan

_MOST_BYTES = 64_000_000
_CHUNK = 65_536
_PATIENCE_SECONDS = 5.0
"""So long a caller may take to ask, and to take the answer."""

_MOST_CALLERS = 64
_MOST_WAITING = 1024
"""So many may connect before the first of them is looked at."""

_PAUSE_SECONDS = 0.1

_POST = b"POST "
_LENGTH = re.compile(rb"^content-length: *(\d{1,9})\r$", re.IGNORECASE | re.MULTILINE)

Tell = Callable[[str], None]


def is_message(question: bytes | bytearray) -> bool:
    """Whether a question, or its beginning, is a message of HTTP, and not a line."""
    return question.startswith(_POST)


class Caller:
    """Whoever asks, over one connection."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self.is_held_up = True
        """Whether it is waited for: until it has asked, and while it takes the answer."""

    def turn_away(self) -> None:
        """Wait for it no longer."""
        with suppress(OSError):
            self._link.shutdown(socket.SHUT_RDWR)  # which wakes the thread that waits

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
        """What it asks, up to the end of its line or message; nothing where it left or asks too much.

        Raises OSError.
        """
        until = time.monotonic() + _PATIENCE_SECONDS
        received = bytearray()
        while not _is_whole(received):
            self._link.settimeout(max(0.001, until - time.monotonic()))
            chunk = self._link.recv(_CHUNK)
            if not chunk or len(received) > _MOST_BYTES:
                return b""
            received += chunk
        return bytes(received)

    def take(self, answer: bytes) -> None:
        """Send it the answer. Raises OSError."""
        self.is_held_up = True
        self._link.settimeout(_PATIENCE_SECONDS)
        self._link.sendall(answer)


def _is_whole(received: bytearray) -> bool:
    if not is_message(received):
        return received.endswith(b"\n")
    end = received.find(b"\r\n\r\n")
    length = _LENGTH.search(received, 0, end + 2) if end >= 0 else None
    return end >= 0 and len(received) - end - 4 >= (int(length[1]) if length else 0)


class Server:
    """Listens on a home's socket, from ``start`` until ``stop``.

    ``answer`` makes a line back of a line there, in as many threads as there are callers; nothing where nobody waits
    for it. ``tell`` writes to the daemon's log. ``hook`` is given messages, and has the caller take what it answers.
    """

    def __init__(
        self, home: Path, answer: Callable[[bytes, Caller], bytes], tell: Tell,
        hook: Callable[[bytes, Caller], None] = lambda _message, _caller: None,
    ) -> None:  # fmt: skip
        self.path = socket_path(str(home))
        self._answer = answer
        self._hook = hook
        self._tell = tell
        self._room = threading.Condition()
        self._callers: list[Caller] = []
        self._socket: socket.socket | None = None
        self._made: os.stat_result | None = None
        self.answered = 0
        """How many were answered."""
        self.asked_at = time.monotonic()
        """When the last question came or was answered (``time.monotonic``)."""

    @property
    def at_work(self) -> int:
        """How many callers there are now."""
        with self._room:
            return len(self._callers)

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
                caller = Caller(link)
                self._let_in(caller)
                self._begin(link, caller)
            except (OSError, RuntimeError) as error:  # no more files or threads: others may be free in a moment
                if self._socket is listening:
                    self._tell(f"a caller was turned away: {error}")
                    time.sleep(_PAUSE_SECONDS)

    def _begin(self, link: socket.socket, caller: Caller) -> None:
        try:
            threading.Thread(target=self._serve, args=(link, caller), daemon=True, name="answering").start()
        except RuntimeError:
            self._let_out(caller)
            raise

    def _let_in(self, caller: Caller) -> None:
        """Count it among the callers; where there are too many, the one that is waited for longest makes room."""
        with self._room:
            while len(self._callers) >= _MOST_CALLERS:
                held_up = next((one for one in self._callers if one.is_held_up), None)
                if held_up is None:
                    self._room.wait()
                else:
                    self._callers.remove(held_up)
                    held_up.turn_away()
            self._callers.append(caller)
            self.asked_at = time.monotonic()

    def _serve(self, link: socket.socket, caller: Caller) -> None:
        try:
            with link, suppress(OSError):
                question = caller.question() if caller.is_allowed() else b""
                caller.is_held_up = False
                if is_message(question):
                    self._count_answer()
                    self._hook(question, caller)
                elif question and (answer := self._answer(question, caller)):
                    self._count_answer()
                    caller.take(answer + b"\n")
        except Exception as error:  # noqa: BLE001 - whatever a caller brings about, the next one is answered
            self._tell("".join(traceback.format_exception(error)).rstrip())
        finally:
            self._let_out(caller)

    def _let_out(self, caller: Caller) -> None:
        with self._room:
            if caller in self._callers:
                self._callers.remove(caller)
            self.asked_at = time.monotonic()
            self._room.notify_all()

    def _count_answer(self) -> None:
        with self._room:
            self.answered += 1
            self.asked_at = time.monotonic()
