"""Portions of transcripts without secrets, made here or ahead in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from nacre.packs.lines import Cleaner
from nacre.packs.pack import digest_of
from nacre.packs.payload import Payload
from nacre.parsing.parse import Job
from nacre.transcripts.file_source import MAX_LINE_BYTES, is_complete

SEGMENT_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class Portion:
    """What came of the lines from ``start`` on whose digest is ``of``; no payload where nothing in them changes."""

    path: Path
    start: int
    of: bytes
    payload: Payload | None
    is_last: bool


class Ahead:
    """Portions that come in the order of their files, for whoever asks in that order."""

    def __init__(self, portions: Iterator[Portion], paths: Sequence[Path]) -> None:
        """``paths`` are the files in order."""
        self._portions = portions
        self._order: Mapping[Path, int] = {path: number for number, path in enumerate(paths)}
        self._next: Portion | None = None

    def find(self, path: Path, start: int, raw: bytes) -> Payload | None:
        """What is kept of some lines, if they were cleaned as they are."""
        wanted = self._order.get(path)
        if wanted is None:
            return None
        while self._next is None or (self._order[self._next.path], self._next.start) < (wanted, start):
            self._next = next(self._portions, None)
            if self._next is None:
                return None
        found = self._next
        if (found.path, found.start) != (path, start) or found.of != digest_of(raw):
            return None
        return found.payload or Payload(raw)


def clean(cleaner: Cleaner, raw: bytes) -> Payload:
    """What is kept of some lines."""
    return cleaner.lines(raw) if raw.strip() else Payload(b"\n", ((0, len(raw) - 1),))


def clean_file(job: Job, cleaner: Cleaner) -> Iterator[Portion]:
    """What is kept of a file from where it was archived to; the last portion says so, and is empty."""
    start = job.cursor.offset if job.cursor else 0
    try:
        with job.path.open("rb") as file:
            for at, raw in cut(file, start, job.size):
                payload = clean(cleaner, raw)
                yield Portion(job.path, at, digest_of(raw), None if payload.text is raw else payload, is_last=False)
    except OSError:
        pass  # who archives it says so
    yield Portion(job.path, job.size, b"", None, is_last=True)


def cut(file: BinaryIO, start: int, size: int, cuts: Sequence[int] = ()) -> Iterator[tuple[int, bytes]]:
    """Complete lines from a place on, some megabytes at a time; a line that is too long is blank."""
    while start < size:
        ends = [cut for cut in cuts if start < cut <= size]
        wanted = min(ends[0] if ends else size, start + max(SEGMENT_BYTES, ends[0] - start if ends else 0)) - start
        file.seek(start)
        raw = file.read(min(wanted, MAX_LINE_BYTES))
        kept = raw[: raw.rfind(b"\n") + 1]
        if not kept and len(raw) == wanted < size - start:
            raw += file.readline(MAX_LINE_BYTES)[: size - start - wanted]
            kept = raw[: raw.rfind(b"\n") + 1] or (b" " * len(raw) if len(raw) > MAX_LINE_BYTES else b"")
        if start + len(raw) == size and len(kept) < len(raw) and is_complete(raw[len(kept) :]):
            kept = raw
        if not kept:
            return
        yield start, kept
        start += len(kept)
