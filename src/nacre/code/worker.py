"""A process that reads code: a root and paths come in on its standard input, facts go out on its standard output.

A parser written in C may crash on a file, or a file of brackets within brackets may take it hours; then only this
process ends.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import struct
import sys
from pathlib import Path
from typing import IO

import msgspec

from nacre.code.facts import Facts
from nacre.code.languages.table import language_of
from nacre.code.reading import read_code
from nacre.code.repository import read_file
from nacre.platform.lazy import Module

SECONDS_A_FILE = 10
"""Of the processor's time: who made a file that takes longer did not mean it to be read."""

MOST_MEMORY = 2**31

resource = Module("resource")  # Windows has no such module

_SIZE = struct.Struct("<I")


class Read(msgspec.Struct, frozen=True, array_like=True):
    """A file that was read; ``facts`` is ``None`` if it could not be."""

    path: str
    language: str
    facts: Facts | None


_encode = msgspec.msgpack.Encoder().encode
_of_paths = msgspec.msgpack.Decoder(list[str])
_of_read = msgspec.msgpack.Decoder(Read)


def main() -> None:
    """Read files until standard input ends or nobody takes the results."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    gc.freeze()
    gc.set_threshold(50_000)
    _limit_memory()
    with contextlib.suppress(OSError):
        _serve(sys.stdin.buffer, out)
    os._exit(0)


def read_one(root: Path, path: str) -> Read:
    """Read one file."""
    language = language_of(path) or ""
    data = read_file(root, path)
    return Read(path, language, read_code(language, data) if data is not None and language else None)


def send(stream: IO[bytes], value: object) -> None:
    """Write a value, preceded by its size."""
    packed = _encode(value)
    stream.write(_SIZE.pack(len(packed)) + packed)


def receive_read(stream: IO[bytes]) -> Read | None:
    """The next file that was read; ``None`` at the end. Raises OSError where the stream ends within one."""
    packed = _receive(stream)
    return _of_read.decode(packed) if packed is not None else None


def _receive(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    packed = stream.read(size)
    return packed if len(packed) == size else None


def _serve(told: IO[bytes], out: IO[bytes]) -> None:
    first = _receive(told)
    if first is None:
        return
    root = Path(_of_paths.decode(first)[0])
    while (packed := _receive(told)) is not None:
        for path in _of_paths.decode(packed):
            _limit_time(SECONDS_A_FILE)
            read = read_one(root, path)
            _limit_time(0)
            send(out, read)
            out.flush()


def _limit_memory() -> None:
    """End this process, and not others, where a file takes too much; not on Windows."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


def _limit_time(seconds: int) -> None:
    """End this process so much later, whatever it does then, also in C; 0: do not. Not on Windows."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, seconds)
