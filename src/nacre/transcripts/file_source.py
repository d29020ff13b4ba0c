"""Read a transcript file from where the last reading ended, within bounded memory."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from nacre.errors import TranscriptUnreadable
from nacre.transcripts.adapter import HEAD_BYTES, Head, Tables
from nacre.values.cursor import Cursor, Tally

MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_WHOLE_BYTES = 256 * 1024 * 1024
_LONG_HEAD_BYTES = 4 * 1024 * 1024
_SNIFFED_LINES = 20
_BLOCK_BYTES = 1024 * 1024
FINGERPRINT_BYTES = 256
_LONGEST_TYPE = 2000


def read_head(path: Path) -> Head:
    """Read the first 64 KiB of a file for sniffing, or up to 4 MiB when the first line is longer.

    Raises TranscriptUnreadable when the file cannot be opened.
    """
    try:
        with path.open("rb") as file:
            data = file.read(HEAD_BYTES)
            if len(data) == HEAD_BYTES and b"\n" not in data:
                data += file.readline(_LONG_HEAD_BYTES)
            return Head(path, data)
    except OSError as error:
        raise TranscriptUnreadable(f"cannot read {path}: {error.strerror}", hint=_permission_hint(error)) from error


def read_later(path: Path) -> Head | None:
    """The first line of a file that can be read, and those after it that are short enough to tell what it is, wherever
    they stand; ``None`` where there are none. For files whose beginning does not tell.

    Raises TranscriptUnreadable when the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            if file.read(1) != b"{":
                return None
            file.seek(0)
            found = list(islice(_lines(file, MAX_LINE_BYTES), 1))
            found += islice(_lines(file, HEAD_BYTES), _SNIFFED_LINES)
    except OSError as error:
        raise TranscriptUnreadable(f"cannot read {path}: {error.strerror}", hint=_permission_hint(error)) from error
    return Head(path, b"".join(found)) if found else None


def is_too_long(path: Path) -> bool:
    """Whether a file may hold records, and all its lines are too long to be read. Raises TranscriptUnreadable."""
    return path.stat().st_size > MAX_LINE_BYTES and ".jsonl" in path.name and read_later(path) is None


def _lines(file: BinaryIO, most: int) -> Iterator[bytes]:
    """The lines of so many bytes at most; no more of a longer one is in memory at a time."""
    while line := file.readline(most):
        if line.endswith(b"\n"):
            yield line
        elif len(line) == most:
            while (part := file.readline(_BLOCK_BYTES)) and not part.endswith(b"\n"):
                pass
        elif is_complete(line):
            yield line + b"\n"


class FileSource:
    """The real :class:`~nacre.transcripts.adapter.Source`: one file, continued at a cursor.

    Use as a context manager; ``cursor()`` gives the place for the next reading once parsing is done.
    """

    database: Tables | None = None
    identities: tuple[str, ...] = ()

    def __init__(self, path: Path, previous: Cursor | None = None) -> None:
        self.path = path
        self.tally = Tally()
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise TranscriptUnreadable(f"cannot read {path}: {error.strerror}", hint=_permission_hint(error)) from error
        self._stat = os.fstat(self._file.fileno())
        self._fingerprint_of = min(FINGERPRINT_BYTES, self._stat.st_size)
        start = previous if previous and self._continues(previous) else Cursor()
        self.carry: dict[str, Any] = dict(start.carry)
        self.start = start.offset
        self._offset = start.offset
        self._held: int | None = None
        self._counted = previous.size if previous and start.offset else 0

    def __enter__(self) -> FileSource:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Complete lines with their byte offsets; see the protocol."""
        self._file.seek(self._offset)
        rest: list[bytes] = []
        held, start, skipping = 0, self._offset, False
        while block := self._read_block():
            *parts, tail = block.split(b"\n")
            for part in parts:
                line, is_kept = b"".join((*rest, part)), not skipping
                self._offset += held + len(part) + 1
                at, start = start, self._offset
                rest, held, skipping = [], 0, False
                if is_kept and line and not line.isspace():
                    yield at, line
            rest.append(tail)
            held += len(tail)
            if skipping or held > MAX_LINE_BYTES:
                self.tally.oversized += not (skipping or self._was_counted())
                self._offset += held
                rest, held, skipping = [], 0, True
        if skipping:
            self._offset = start  # it may go on
        elif held and is_complete(last := b"".join(rest)):
            self._offset += held
            yield start, last

    def text(self) -> str:
        """The whole file as text; bytes that are not UTF-8 are replaced."""
        if self._stat.st_size > MAX_WHOLE_BYTES:
            raise TranscriptUnreadable(
                f"{self.path} is larger than {MAX_WHOLE_BYTES // 1_000_000} MB",
                hint="split it into smaller files",
            )
        self._file.seek(0)
        data = self._file.read()
        self._offset = len(data)
        return data.decode("utf-8-sig", errors="replace")

    def hold(self, offset: int) -> None:
        """Start the next reading at ``offset`` again."""
        self._held = offset

    def unknown(self, record: str) -> None:
        """Count a record type the adapter does not know."""
        if not self._was_counted():
            self.tally.unknown[record[:_LONGEST_TYPE]] += 1

    def corrupt(self) -> None:
        """Count a line that cannot be understood."""
        if not self._was_counted():
            self.tally.corrupt += 1

    def _was_counted(self) -> bool:
        """Whether the line at hand was met before: what was held is read again."""
        return bool(self._counted) and self._offset <= self._counted

    def look(self, path: Path) -> Tables | None:
        """Nothing: what lies in lines is not looked up in databases."""

    def cursor(self) -> Cursor:
        """Where the next reading starts."""
        return Cursor(
            inode=self._stat.st_ino,
            offset=self._offset if self._held is None else min(self._held, self._offset),
            size=self._stat.st_size,
            mtime_ns=self._stat.st_mtime_ns,
            fingerprint=self._fingerprint(self._fingerprint_of),
            carry=self.carry,
        )

    def _continues(self, previous: Cursor) -> bool:
        length = int(previous.fingerprint.split(":")[0] or 0) if previous.fingerprint else 0
        return (
            previous.offset <= self._stat.st_size
            and length <= self._stat.st_size
            and previous.fingerprint == self._fingerprint(length)
        )

    def _fingerprint(self, length: int) -> str:
        return fingerprint_of(self._file, length)

    def _read_block(self) -> bytes:
        try:
            return self._file.read(_BLOCK_BYTES)
        except OSError as error:
            raise TranscriptUnreadable(f"cannot read {self.path}: {error.strerror}") from error


def fingerprint_of(file: BinaryIO, length: int) -> str:
    """What tells a file from one that took its place: how many bytes, and a hash of them."""
    file.seek(0)
    return f"{length}:{hashlib.blake2b(file.read(length), digest_size=8).hexdigest()}"


def is_complete(line: bytes) -> bool:
    """A last line without its newline counts when it is a whole object: some tools end files that way."""
    stripped = line.strip()
    if not stripped.endswith(b"}"):
        return False
    try:
        json.loads(stripped.decode("utf-8", errors="replace"))
    except (ValueError, RecursionError):
        return False
    return True


def _permission_hint(error: OSError) -> str | None:
    return "check the file's permissions" if isinstance(error, PermissionError) else None
