"""The daemon's ear: a local socket, one question a connection, answered by the catalogue in a thread of its own."""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from nacre import private
from nacre.app.catalogue import CATALOGUE, Entry
from nacre.daemon.homes import Homes
from nacre.errors import InvalidInput, NacreError, OtherVersion, StoreUnusable
from nacre.link.address import socket_path
from nacre.link.client import PROTOCOL

_MOST_BYTES = 64_000_000
_CHUNK = 65_536
_PATIENCE_SECONDS = 10.0
"""So long a caller may take to ask, and to take the answer."""

_MOST_CALLERS = 64

Tell = Callable[[str], None]


class _Asked(msgspec.Struct, frozen=True):
    operation: str
    request: msgspec.Raw = msgspec.Raw(b"{}")
    protocol: int = 0


class Server:
    """Listens on a home's socket, from ``start`` until ``stop``.

    ``own`` are operations of the daemon itself, by name: they get no home. ``tell`` writes to its log.
    """

    def __init__(
        self, home: Path, homes: Homes, tell: Tell, own: Mapping[str, Callable[[], object]] | None = None,
        catalogue: Mapping[str, Entry[Any, Any]] = CATALOGUE,
    ) -> None:  # fmt: skip
        self.path = socket_path(str(home))
        self._homes = homes
        self._tell = tell
        self._own = dict(own or {})
        self._catalogue = catalogue
        self._callers = threading.BoundedSemaphore(_MOST_CALLERS)
        self._socket: socket.socket | None = None
        self._counting = threading.Lock()
        self._at_work = 0
        self.asked_at = time.monotonic()
        """When the last question came (``time.monotonic``)."""

    @property
    def at_work(self) -> int:
        """How many questions are being answered."""
        return self._at_work

    def start(self) -> None:
        """Listen; who asked an earlier daemon's socket finds this one. Raises StoreUnusable."""
        folder = os.path.dirname(self.path)
        try:
            private.make_folder(Path(folder))
            private.refuse_unsafe(Path(folder))
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            fresh = f"{self.path}.{os.getpid()}"
            with suppress(FileNotFoundError):
                os.unlink(fresh)
            listening.bind(fresh)
            os.chmod(fresh, stat.S_IRUSR | stat.S_IWUSR)
            listening.listen(128)
            os.replace(fresh, self.path)
        except OSError as error:
            raise StoreUnusable(f"cannot listen at {self.path}: {error.strerror}") from error
        self._socket = listening
        threading.Thread(target=self._accept, args=(listening,), daemon=True, name="accepting").start()

    def stop(self) -> None:
        """Listen no more; what is being answered goes on."""
        if self._socket:
            with suppress(OSError):
                os.unlink(self.path)
            self._socket.close()
            self._socket = None

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                link, _ = listening.accept()
            except OSError:
                return
            self._callers.acquire()
            threading.Thread(target=self._serve, args=(link,), daemon=True, name="answering").start()

    def _serve(self, link: socket.socket) -> None:
        with self._counting:
            self._at_work += 1
        self.asked_at = time.monotonic()
        try:
            with link, suppress(OSError):
                link.settimeout(_PATIENCE_SECONDS)
                line = _line(link)
                if line:
                    link.sendall(self._answer(line) + b"\n")
        finally:
            with self._counting:
                self._at_work -= 1
            self._callers.release()

    def _answer(self, line: bytes) -> bytes:
        try:
            return b'{"result":' + self._result(line) + b"}"
        except NacreError as error:
            return _refusal(error.code, error.message, error.hint)
        except Exception as error:  # noqa: BLE001 - a question that breaks an answer must not break the daemon
            self._tell("".join(traceback.format_exception(error)))
            return _refusal("internal", f"{type(error).__name__} in the daemon", "logs/daemon.log tells more")

    def _result(self, line: bytes) -> bytes:
        try:
            asked = msgspec.json.decode(line, type=_Asked)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise InvalidInput(f"no question: {error}") from error
        if asked.operation in self._own:
            return msgspec.json.encode(self._own[asked.operation]())
        if asked.protocol != PROTOCOL:
            raise OtherVersion(f"this daemon speaks protocol {PROTOCOL}, not {asked.protocol}")
        entry = self._catalogue.get(asked.operation)
        if entry is None:
            raise InvalidInput(
                f"there is no operation {asked.operation!r}", hint=f"one of {', '.join(self._catalogue)}"
            )
        with self._homes.lent() as context:
            return entry.answer(context, asked.request)


def _line(link: socket.socket) -> bytes:
    """What a caller asks, up to the end of its line; nothing where it left or asks too much."""
    received = bytearray()
    while not received.endswith(b"\n"):
        chunk = link.recv(_CHUNK)
        if not chunk or len(received) > _MOST_BYTES:
            return b""
        received += chunk
    return bytes(received)


def _refusal(code: str, message: str, hint: str | None) -> bytes:
    return msgspec.json.encode({"error": {"code": code, "message": message, "hint": hint}})
