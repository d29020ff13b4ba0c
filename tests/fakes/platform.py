"""Common parts of the platforms on loopback: HTTP and WebSockets in threads, scripted failures, waiting for
conditions."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, RLock, Thread
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from websockets.sync.server import Server, ServerConnection, serve

T = TypeVar("T")
Self = TypeVar("Self", bound="FakePlatform")
WAIT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Request:
    """A received request. Header names are in lower case; ``body`` is its JSON or form."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Response:
    """A response: bytes unchanged, anything else as JSON. ``is_cut`` closes the connection without a response."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_cut: bool = False


class FakePlatform:
    """HTTP at ``url`` and WebSockets at ``socket_url`` within a ``with`` block.

    Subclasses implement ``answer`` and ``converse``. They change state ``with self.changed`` and notify, so that
    ``wait_for`` sees the change.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.connections: list[ServerConnection] = []
        self.changed = Condition(RLock())
        self._failures: list[tuple[str, Response]] = []

    def answer(self, request: Request) -> Response:
        """Answer a request."""
        raise NotImplementedError

    def converse(self, connection: ServerConnection) -> None:
        """Serve a WebSocket until it ends; ConnectionClosed is expected."""
        raise NotImplementedError

    def fail_next(
        self,
        status: int = 500,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        path: str = "",
        times: int = 1,
        is_cut: bool = False,
    ) -> None:
        """Make the next requests fail whose path contains ``path``."""
        with self.changed:
            self._failures += [(path, Response(status, body, headers or {}, is_cut))] * times

    def wait_for(self, condition: Callable[[], T], seconds: float = WAIT_SECONDS) -> T:
        """Wait until a condition holds; return its value. Raises AssertionError."""
        with self.changed:
            assert self.changed.wait_for(condition, seconds), "the condition did not become true"
            return condition()

    def note(self, items: list[T], item: T) -> None:
        """Append to a list and notify waiting threads."""
        with self.changed:
            items.append(item)
            self.changed.notify_all()

    def drop(self, code: int | None = None) -> None:
        """End all WebSockets with a close code, or as abruptly as a cut cable."""
        with self.changed:
            connections = list(self.connections)
        for connection in connections:
            if code is None:
                with suppress(OSError):
                    connection.socket.shutdown(socket.SHUT_RDWR)
            else:
                # the calling thread may also run the client, which has to answer the close frame
                Thread(target=connection.close, args=(code,), daemon=True).start()

    @property
    def url(self) -> str:
        """Return the address of its HTTP interface."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def socket_url(self) -> str:
        """Return the address of its WebSockets."""
        return f"ws://127.0.0.1:{self._sockets.socket.getsockname()[1]}"

    def __enter__(self: Self) -> Self:
        platform = self

        class Handler(_Handler):
            owner = platform

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.block_on_close = False
        self._sockets: Server = serve(
            self._serve, "127.0.0.1", 0, ping_interval=None, close_timeout=1
        )
        self._threads = [
            Thread(target=self._http.serve_forever, args=(0.02,), daemon=True),
            Thread(target=self._sockets.serve_forever, daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.drop()
        self._http.shutdown()
        self._http.server_close()
        self._sockets.shutdown()
        for thread in self._threads:
            thread.join(WAIT_SECONDS)
        self.wait_for(lambda: not self.connections)

    def respond(self, request: Request) -> Response:
        """Return the answer to a request, or the scripted failure."""
        self.note(self.requests, request)
        with self.changed:
            for number, (path, failure) in enumerate(self._failures):
                if path in request.path:
                    del self._failures[number]
                    return failure
            return self.answer(request)

    def _serve(self, connection: ServerConnection) -> None:
        self.note(self.connections, connection)
        try:
            self.converse(connection)
        finally:
            with self.changed:
                self.connections.remove(connection)
                self.changed.notify_all()


class _Handler(BaseHTTPRequestHandler):
    owner: FakePlatform
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):
            super().handle()

    def do_GET(self) -> None:
        self._respond()

    def do_POST(self) -> None:
        self._respond()

    def _respond(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        place = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        is_json = "json" in headers.get("content-type", "")
        body = json.loads(raw) if is_json and raw else dict(parse_qsl(raw.decode()))
        response = self.owner.respond(
            Request(self.command, place.path, dict(parse_qsl(place.query)), headers, body)
        )
        if response.is_cut:
            self.close_connection = True
            return
        data = (
            response.body
            if isinstance(response.body, bytes)
            else json.dumps(response.body).encode()
        )
        self.send_response(response.status)
        for name, value in {**response.headers, "content-length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""
