"""Which ``Idempotency-Key`` was used for what, also after a restart: a file of hashes in the home, or a table of the
server for processes that keep nothing.

Neither holds a word of an answer, so that there is nothing in it to forget.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from pathlib import Path
from typing import Protocol

import msgspec

from nacre.platform import json_values, private_files

FILE = "used-keys.jsonl"
LIFE_SECONDS = 86_400.0
_MOST = 10_000


class UsedKey(msgspec.Struct, array_like=True):
    """A write by the hashes of its key and of its body. ``at`` is in seconds since 1970; ``location`` is of its result.

    ``state`` is ``begun``, ``done``, or ``free``: it was not done, and the key may be used again.
    """

    key: str
    body: str
    at: float
    state: str
    location: str = ""


class UsedKeys(Protocol):
    """Keys of a day. Both methods block, for any thread; they may raise NacreError."""

    def claim(self, key: str, body: str) -> UsedKey | None:
        """Note that a write begins; what the key was used for where it was, and nothing is noted then."""

    def settle(self, key: str, state: str, location: str = "") -> None:
        """Note how the write stands that claimed a key."""


class KeysInFile:
    """Implements :class:`UsedKeys`: 10,000 at most. Each is written down before its write begins."""

    def __init__(self, home: Path) -> None:
        self._file = home / FILE
        self._guard = threading.Lock()
        self._used: dict[str, UsedKey] = {}
        for one in self._read():
            self._used[one.key] = one
        living = [one for one in self._used.values() if self._holds(one)][-_MOST:]
        self._used = {one.key: one for one in living}
        if self._file.exists():
            private_files.write_file(self._file, b"".join(map(_line, living)))

    def claim(self, key: str, body: str) -> UsedKey | None:
        """See :class:`UsedKeys`. Where the disk takes nothing more, the write itself will say so."""
        with self._guard:
            found = self._used.get(key)
            if found and self._holds(found):
                return found
            self._note(UsedKey(key, body, time.time(), "begun"))
            return None

    def settle(self, key: str, state: str, location: str = "") -> None:
        """See :class:`UsedKeys`."""
        with self._guard:
            known = self._used[key]
            self._note(UsedKey(key, known.body, time.time(), state, location))

    def _note(self, one: UsedKey) -> None:
        with (
            contextlib.suppress(OSError),
            os.fdopen(private_files.open_file(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "wb") as file,
        ):
            file.write(_line(one))
            file.flush()
            os.fsync(file.fileno())
        self._used.pop(one.key, None)
        self._used[one.key] = one
        while len(self._used) > _MOST:
            del self._used[next(iter(self._used))]

    def _holds(self, one: UsedKey) -> bool:
        return one.state != "free" and 0 <= time.time() - one.at < LIFE_SECONDS

    def _read(self) -> list[UsedKey]:
        found: list[UsedKey] = []
        with (
            contextlib.suppress(OSError),
            os.fdopen(private_files.open_file(self._file, os.O_RDONLY), "rb") as file,
        ):
            for line in file:
                with contextlib.suppress(msgspec.MsgspecError):  # the last one may be cut short
                    found.append(json_values.decode(line, UsedKey))
        return found


def _line(one: UsedKey) -> bytes:
    return msgspec.json.encode(one) + b"\n"
