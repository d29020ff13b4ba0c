"""A connection over standard input and output.

Nothing but JSON-RPC reaches standard output: its descriptor is put aside, and whatever prints, in this process or in
one that it starts, prints to standard error. The end of standard input ends the server.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from nacre.mcp.calling import load_operations
from nacre.mcp.face import Face
from nacre.mcp.session import Session

LONGEST_LINE = 16_000_000
"""Bytes; what is longer is refused as no JSON."""


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

    def send(self, message: dict[str, Any]) -> None:
        """Write one message. Raises BrokenPipeError where nobody reads any more."""
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        data = memoryview(text.encode("utf-8", "replace") + b"\n")
        with self._lock:
            while data:
                data = data[self.outgoing.write(data) :]


def serve(face: Face, wire: Wire) -> None:
    """Serve one client until it closes its end, or reads no more."""

    def load() -> None:
        try:
            load_operations(everything=face.everything)
        finally:
            gc.freeze()
            gc.enable()

    gc.disable()  # until all is loaded, which stays: looking through it again and again is a fifth of the work
    threading.Thread(target=load, daemon=True, name="nacre-mcp-load").start()
    session = Session(face, wire.send)
    with suppress(OSError):  # nobody reads any more
        for line in wire.lines():
            session.take(line)
    session.finish()
