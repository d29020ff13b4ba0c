"""A connection over standard input and output: the opening first, the SDK as soon as it is loaded.

Nothing but JSON-RPC reaches standard output: its descriptor is put aside, and whatever prints, in this process or in
one that it starts, prints to standard error. The end of standard input ends the server.
"""

from __future__ import annotations

import gc
import json
import os
import queue
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from nacre.errors import Unavailable
from nacre.mcp.calling import load_operations
from nacre.mcp.face import Face
from nacre.mcp.opening import Opening
from nacre.platform.lazy import Module

if TYPE_CHECKING:
    import anyio
    from mcp.server.lowlevel.server import Server

    from nacre.mcp import carrying
    from nacre.mcp import server as server_maker
else:
    server_maker = Module("nacre.mcp.server")
    anyio = Module("anyio")
    carrying = Module("nacre.mcp.carrying")

LONGEST_LINE = 16_000_000
"""Bytes; what is longer is refused as no JSON."""


class _Loaded:
    """Stands among the lines when the SDK is loaded."""


Lines = queue.SimpleQueue["bytes | _Loaded | None"]
"""What came in; ``None`` is the end of it."""


@dataclass
class Wire:
    """The two ends of a connection: lines that come in, and where answers go. Lines of answers never mix."""

    incoming: BinaryIO
    outgoing: BinaryIO
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def taken(cls) -> Wire:
        """Standard input and output, put aside: from now on nothing else reads or writes them."""
        incoming, outgoing = os.dup(0), os.dup(1)
        os.set_inheritable(incoming, False)
        os.set_inheritable(outgoing, False)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        sys.stdout = sys.stderr
        return cls(os.fdopen(incoming, "rb"), os.fdopen(outgoing, "wb", buffering=0))

    def lines(self) -> Iterator[bytes]:
        """What comes in, line by line; of a line that is too long nothing is kept but a sign of it."""
        while line := self.incoming.readline(LONGEST_LINE):
            if len(line) >= LONGEST_LINE and not line.endswith(b"\n"):
                while (rest := self.incoming.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                    pass
                line = b"!"
            if line.strip():
                yield line

    def send(self, message: str) -> None:
        """Write one message. Raises BrokenPipeError where nobody reads any more."""
        data = memoryview(message.encode("utf-8", "replace") + b"\n")
        with self._lock:
            while data:
                data = data[self.outgoing.write(data) :]


def serve(face: Face, wire: Wire) -> None:
    """Serve one client until it closes its end, or reads no more."""
    lines: Lines = queue.SimpleQueue()
    server: list[Server[Any]] = []

    def read() -> None:
        with suppress(OSError, ValueError):
            for line in wire.lines():
                lines.put(line)
        lines.put(None)

    def load() -> None:
        try:
            server.append(server_maker.make_server(face))
        finally:
            gc.freeze()
            gc.enable()
            lines.put(_Loaded())
        load_operations(everything=face.everything)

    gc.disable()  # until all is loaded, which stays: looking through it again and again is a fifth of the work
    for work in (read, load):
        threading.Thread(target=work, daemon=True, name=f"nacre-mcp-{work.__name__}").start()
    opening = Opening(face)
    with suppress(OSError):  # nobody reads any more
        waiting, is_over = _open(opening, wire, lines)
        if not is_over or any(map(_is_request, waiting)):
            if not server:
                raise Unavailable("the library of the protocol cannot be loaded", hint="install nacre anew")
            _go_on(server[0], opening, waiting, wire, lines, is_over=is_over)


def _open(opening: Opening, wire: Wire, lines: Lines) -> tuple[list[bytes], bool]:
    """Answer what is known until the SDK is there: what waits for it, and whether the input ended meanwhile.

    Where it ended and nothing waits, the SDK is not waited for.
    """
    waiting: list[bytes] = []
    is_over = False
    while not isinstance(line := lines.get(), _Loaded):
        if line is None:
            is_over = True
            if not any(map(_is_request, waiting)):
                break
            continue
        reply = opening.reply(_parsed(line))
        if reply is None:
            waiting.append(line)
        else:
            wire.send(json.dumps(reply, ensure_ascii=False, separators=(",", ":")))
    return waiting, is_over


def _go_on(
    server: Server[Any], opening: Opening, waiting: list[bytes], wire: Wire, lines: Lines, *, is_over: bool
) -> None:  # fmt: skip

    greeting = opening.greeting
    if is_over:
        lines.put(None)
    before = [json.dumps(greeting).encode()] if greeting else []
    carrier = carrying.Carrier(server, wire, [*before, *waiting], lines, greeting["id"] if greeting else None)
    anyio.run(carrier.run)


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_request(line: bytes) -> bool:
    """Whether an answer is due, if only that it makes no sense."""
    message = _parsed(line)
    return not isinstance(message, dict) or ("method" in message and message.get("id") is not None)
