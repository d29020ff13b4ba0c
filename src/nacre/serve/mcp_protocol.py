"""The Model Context Protocol: messages, sessions, and standard input and output.

Up to revision 2025-11-25, a session starts with a handshake. Since 2026-07-28, each request
contains the same data in an envelope instead. Tests compare this module with the official SDK.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, BinaryIO

import msgspec

from nacre import __version__
from nacre.base import json as json_values
from nacre.base.plain import JsonObject, Values
from nacre.serve.mcp import INSTRUCTIONS, Face, load_usual_operations

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol revisions with a handshake, latest last."""

ENVELOPES = ("2026-07-28",)
"""Protocol revisions in which each request has an envelope."""

ABOUT: Values = {"name": "nacre", "title": "nacre, long-term memory", "version": __version__}
CAPABILITIES: Values = {"tools": {"listChanged": False}}

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
HEADER_MISMATCH, UNSUPPORTED_VERSION = -32020, -32022

VERSION = "io.modelcontextprotocol/protocolVersion"
_CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
_SERVER_INFO = "io.modelcontextprotocol/serverInfo"


class ProtocolError(Exception):
    """An error to return as the response to a request, whose id is ``number`` if it is known."""

    def __init__(
        self, code: int, message: str, data: Any = None, *, number: int | str | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.data, self.number = code, message, data, number

    def answer(self) -> JsonObject:
        """Return the response with this error."""
        error = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return {"jsonrpc": "2.0", "id": self.number, "error": error}


class _Meta(msgspec.Struct, frozen=True):
    progress_token: int | str | None = msgspec.field(name="progressToken", default=None)
    capabilities: JsonObject | None = msgspec.field(name=_CLIENT_CAPABILITIES, default=None)
    client: _Client | None = msgspec.field(name=_CLIENT_INFO, default=None)


class _Client(msgspec.Struct, frozen=True):
    name: str
    version: str


class Parameters(msgspec.Struct, frozen=True):
    """The parameters of a request, such as a list, tool call or handshake."""

    meta: _Meta = msgspec.field(name="_meta", default=_Meta())
    cursor: str | None = None
    name: str = ""
    arguments: JsonObject | None = None
    revision: str = msgspec.field(name="protocolVersion", default="")
    capabilities: JsonObject | None = None
    client: _Client | None = msgspec.field(name="clientInfo", default=None)


_SHARED: dict[str, tuple[str, ...]] = {"tools/list": (), "tools/call": ("name",)}
WITH_HANDSHAKE = {
    **_SHARED,
    "initialize": ("protocolVersion", "capabilities", "clientInfo"),
    "ping": (),
}
WITH_ENVELOPE = {**_SHARED, "server/discover": ()}
"""The required parameters of each method if requests have envelopes."""


def parse_message(line: bytes) -> JsonObject:
    """Parse a JSON-RPC message, replacing lone surrogates. Raises ProtocolError if that fails."""
    try:
        message = json.loads(line)
        if b"\\ud" in line.lower():
            message = json.loads(json.dumps(message, ensure_ascii=False).encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise ProtocolError(PARSE_ERROR, "not valid JSON") from None
    if not _is_message(message):
        problem = "not a JSON-RPC 2.0 message"
        raise ProtocolError(INVALID_REQUEST, problem, number=number_of(message))
    if message.get("id") is not None and number_of(message) is None:
        raise ProtocolError(INVALID_REQUEST, "an id is a string or an integer")
    return dict(message)


def encode_message(message: Mapping[str, Any]) -> bytes:
    """Encode a message as compact JSON, replacing lone surrogates."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def number_of(message: Any) -> int | str | None:
    """Return the id of a message, or ``None`` if it has no valid id."""
    number = message.get("id") if isinstance(message, dict) else None
    return number if isinstance(number, int | str) and not isinstance(number, bool) else None


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return False
    if "method" in message:
        return isinstance(message["method"], str) and isinstance(message.get("params"), dict | None)
    return "id" in message and ("result" in message or "error" in message)


def has_request_envelope(params: Values) -> bool:
    """Return True if a request has an envelope, which states the revision of the protocol."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION in meta


def check_envelope(params: Values, *, is_known: bool = True) -> None:
    """Raise ProtocolError if a request's envelope is incomplete or, with ``is_known``, nacre does
    not know its revision.
    """
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        keys = f"{VERSION!r} and {_CLIENT_CAPABILITIES!r}"
        raise ProtocolError(
            INVALID_PARAMS,
            f"params._meta must be an object carrying the required {keys} envelope keys",
        )
    missing = [key for key in (VERSION, _CLIENT_CAPABILITIES) if key not in meta]
    if missing:
        raise ProtocolError(
            INVALID_PARAMS,
            f"params._meta is missing the required envelope key(s): {', '.join(missing)}",
        )
    revision = meta[VERSION]
    if not is_known:
        return
    if not isinstance(revision, str):
        raise ProtocolError(INVALID_PARAMS, "the protocol-version envelope value must be a string")
    if revision not in ENVELOPES:
        raise ProtocolError(
            UNSUPPORTED_VERSION, "Unsupported protocol version", _version_data(revision)
        )


def handshake_error(params: Values) -> ProtocolError:
    """Return the error for a handshake in a connection that uses envelopes instead."""
    message = f"connection is serving the {ENVELOPES[-1]} protocol; the initialize handshake is not accepted"
    return ProtocolError(UNSUPPORTED_VERSION, message, _version_data(params.get("protocolVersion")))


def _version_data(revision: Any) -> JsonObject:
    return {
        "supported": list(ENVELOPES),
        **({"requested": revision} if isinstance(revision, str) else {}),
    }


def decode_parameters(method: str, params: Values, *, with_envelope: bool) -> Parameters:
    """Decode a request's parameters. Raises ProtocolError if they or the method are invalid."""
    required = WITH_ENVELOPE if with_envelope else WITH_HANDSHAKE
    if method not in required:
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found", method)
    try:
        present = {name: value for name, value in params.items() if value is not None}
        parameters = json_values.convert(present, Parameters)
    except msgspec.ValidationError:
        raise invalid_params() from None
    if not present.keys() >= set(required[method]) or (
        with_envelope and parameters.meta.capabilities is None
    ):
        raise invalid_params()
    return parameters


def invalid_params() -> ProtocolError:
    """Return the error for invalid parameters, or for a request before the handshake."""
    return ProtocolError(INVALID_PARAMS, "Invalid request parameters", "")


def handshake_result(greeting: Parameters) -> JsonObject:
    """Return the server's response to a handshake."""
    revision = greeting.revision if greeting.revision in HANDSHAKES else HANDSHAKES[-1]
    return {
        "protocolVersion": revision,
        "capabilities": CAPABILITIES,
        "serverInfo": ABOUT,
        "instructions": INSTRUCTIONS,
    }


def discovery_result() -> JsonObject:
    """Return the answer to ``server/discover``."""
    return {
        "supportedVersions": list(ENVELOPES),
        "capabilities": CAPABILITIES,
        "instructions": INSTRUCTIONS,
    }


def add_envelope(method: str, result: JsonObject) -> JsonObject:
    """Add the fields to a result that a client with envelopes expects."""
    cache = (
        {"cacheScope": "private", "ttlMs": 0} if method in ("tools/list", "server/discover") else {}
    )
    return {**result, **cache, "resultType": "complete", "_meta": {_SERVER_INFO: ABOUT}}


# -- Sessions --------------------------------------------------------------------------------------
# Long work runs in threads, so that the server can still handle pings and cancellations.


PATIENCE_SECONDS = 5.0
"""Maximum time to finish requests after the end of input, in seconds."""

_PROGRESS_SECONDS = 1.0
_MAX_PARALLEL = 8

Send = Callable[[JsonObject], None]


@dataclass(eq=False)
class _Work:
    number: int | str
    words: str = ""
    is_over: threading.Event = field(default_factory=threading.Event)

    def tell(self, words: str) -> None:
        self.words = words


class Session:
    """The connection to one client.

    ``send`` writes a message, and raises OSError if the client has disconnected. ``with_envelope``:
    whether requests have envelopes; by default, the first one decides. ``slots``: limit of parallel
    work.
    """

    def __init__(
        self,
        face: Face,
        send: Send,
        *,
        with_envelope: bool | None = None,
        slots: threading.BoundedSemaphore | None = None,
    ) -> None:
        self._face = face
        self._send = send
        self._with_envelope = with_envelope
        self._is_greeted = with_envelope is not None
        self._open: dict[int | str, _Work] = {}
        self._changed = threading.Condition()
        self._slots = slots or threading.BoundedSemaphore(_MAX_PARALLEL)

    def take(self, line: bytes) -> None:
        """Handle a line of input. Raises OSError if the client has disconnected."""
        try:
            message = parse_message(line)
        except ProtocolError as error:
            self._send(error.answer())
        else:
            self.answer(message)

    def answer(self, message: JsonObject) -> None:
        """Handle a message. Raises OSError if the client has disconnected."""
        number = number_of(message)
        if "method" in message and number is not None:
            self._request(number, message["method"], message.get("params") or {})
        elif message.get("method") == "notifications/cancelled":
            cancelled = (message.get("params") or {}).get("requestId")
            if isinstance(cancelled, int | str):
                self._close(cancelled)

    def finish(self) -> None:
        """Wait a few seconds until all requests have been answered."""
        with self._changed:
            self._changed.wait_for(lambda: not self._open, PATIENCE_SECONDS)

    def _request(self, number: int | str, method: str, params: JsonObject) -> None:
        try:
            parameters = self._parse(method, params)
            if method == "tools/call":
                self._start(_Work(number), parameters)
            else:
                self._send(self._result(number, method, self._immediate(method, parameters)))
        except ProtocolError as error:
            error.number = number
            self._send(error.answer())

    def _parse(self, method: str, params: JsonObject) -> Parameters:
        is_greeting, has_envelope = method == "initialize", has_request_envelope(params)
        if self._with_envelope is None:
            self._with_envelope = has_envelope and not is_greeting
        if self._with_envelope:
            if is_greeting:
                raise handshake_error(params)
            check_envelope(params)
        elif has_envelope and not is_greeting:
            message = "this connection serves the handshake protocol era; "
            message += f"requests carrying the {ENVELOPES[-1]} envelope are not accepted on it"
            raise ProtocolError(INVALID_REQUEST, message)
        parameters = decode_parameters(method, params, with_envelope=self._with_envelope)
        if not (self._with_envelope or self._is_greeted or method in ("initialize", "ping")):
            raise invalid_params()
        return parameters

    def _immediate(self, method: str, parameters: Parameters) -> JsonObject:
        if method == "initialize":
            self._is_greeted = True
            return handshake_result(parameters)
        return {
            "ping": {},
            "server/discover": discovery_result(),
            "tools/list": {"tools": self._face.tools},
        }[method]

    def _start(self, work: _Work, parameters: Parameters) -> None:
        offer = self._face.named.get(parameters.name)
        if offer is None:
            names = ", ".join(self._face.named)
            raise ProtocolError(
                INVALID_PARAMS, f"there is no tool {parameters.name[:80]!r}; there are {names}"
            )
        with self._changed:
            self._open[work.number] = work
        arguments = parameters.arguments or {}
        self._spawn(self._run, work, partial(self._face.answer, offer, arguments, work.tell))
        if parameters.meta.progress_token is not None:
            self._spawn(self._report, work, parameters.meta.progress_token)

    def _spawn(self, run: Callable[..., None], work: _Work, more: Any) -> None:
        target = partial(copy_context().run, run, work, more)  # the context identifies the caller
        threading.Thread(target=target, daemon=True, name=f"nacre-mcp-{work.number}").start()

    def _run(self, work: _Work, job: Callable[[], JsonObject]) -> None:
        with self._slots:
            result = job()
        self._close(work.number, self._result(work.number, "tools/call", result))

    def _close(self, number: int | str, message: JsonObject | None = None) -> None:
        with self._changed:
            work = self._open.get(number)
        if work is None:
            return
        work.is_over.set()
        try:
            if message is not None:
                self._send(message)
        except OSError:
            pass  # the thread that reads input will end the connection
        finally:
            with self._changed:
                self._open.pop(number, None)
                self._changed.notify_all()

    def _report(self, work: _Work, token: int | str) -> None:
        elapsed = 0.0
        while not work.is_over.wait(_PROGRESS_SECONDS):
            elapsed += _PROGRESS_SECONDS
            progress = {
                "progressToken": token,
                "progress": elapsed,
                "message": work.words or "working",
            }
            try:
                self._send(
                    {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}
                )
            except OSError:
                return

    def _result(self, number: int | str, method: str, result: JsonObject) -> JsonObject:
        shaped = add_envelope(method, result) if self._with_envelope else result
        return {"jsonrpc": "2.0", "id": number, "result": shaped}


# -- Standard input and output ---------------------------------------------------------------------
# Only JSON-RPC messages are written to standard output. Its file descriptor is moved, so that all
# other output of this process and its children goes to standard error. The server ends with its
# input.


LONGEST_LINE = 16_000_000
"""Maximum line length in bytes. Longer lines are rejected."""


@dataclass
class Wire:
    """The input and output of a connection. Threads can write lines at the same time."""

    incoming: BinaryIO
    outgoing: BinaryIO
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def take_over(cls) -> Wire:
        """Claim standard input and output, so that no other code can read or write there."""
        incoming, outgoing = os.dup(0), os.dup(1)
        os.set_inheritable(incoming, False)
        os.set_inheritable(outgoing, False)
        devnull = os.open(os.devnull, os.O_RDONLY)
        os.dup2(devnull, 0)
        os.close(devnull)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        return cls(os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb", buffering=0))

    def lines(self) -> Iterator[bytes]:
        """Yield lines of input. Each line that is too long is replaced with an invalid one."""
        while line := self.incoming.readline(LONGEST_LINE):
            if len(line) >= LONGEST_LINE and not line.endswith(b"\n"):
                while (tail := self.incoming.readline(LONGEST_LINE)) and not tail.endswith(b"\n"):
                    pass
                line = b"!"
            if line.strip():
                yield line

    def send(self, message: JsonObject) -> None:
        """Write a message. Raises BrokenPipeError if the client has disconnected."""
        data = memoryview(encode_message(message) + b"\n")
        with self._lock:
            while data:
                data = data[self.outgoing.write(data) :]


def serve(face: Face, wire: Wire) -> None:
    """Serve a client until it closes the connection."""

    def load() -> None:
        try:
            load_usual_operations()
        finally:
            gc.freeze()
            gc.enable()

    gc.disable()  # loaded modules are permanent, and scanning them takes a fifth of the time
    threading.Thread(target=load, daemon=True, name="nacre-mcp-load").start()
    session = Session(face, wire.send)
    with suppress(OSError):  # the client has disconnected
        for line in wire.lines():
            session.take(line)
    session.finish()
