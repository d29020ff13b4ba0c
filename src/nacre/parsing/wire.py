"""What goes over the pipes of a reading process: frames of msgpack, each with its length and what it holds.

Paths travel as bytes, for they need not be text; what an adapter carries over travels as the JSON that it is.
"""

from __future__ import annotations

import json
import os
import struct
from collections import Counter
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import IO, Any

import msgspec

from nacre.packs.payload import Payload
from nacre.parsing.parse import Batch, Event, FileDone, FileFailed, Job
from nacre.parsing.redaction import Portion
from nacre.values.cursor import Cursor, Tally
from nacre.values.reports import Problem
from nacre.values.session import Session, Turn

_HEAD = struct.Struct("<IB")
_ENCODER = msgspec.msgpack.Encoder()


class Kind(IntEnum):
    """What a frame holds."""

    SETUP = 1
    READY = 2
    LOAD = 3
    BATCH = 4
    DONE = 5
    FAILED = 6
    PORTION = 7
    LAST_PORTION = 8


PARTS = frozenset({Kind.BATCH, Kind.PORTION})
"""After these, more comes of the same file."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a process must know before it reads: the owner's patterns, what is no secret, what else
    goes, excluded tools.

    With ``cleans`` it takes secrets out of files for the archive, and understands nothing of them.
    """

    patterns: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    excluded_tools: tuple[str, ...] = ()
    cleans: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """One message."""

    kind: Kind
    body: bytes


@dataclass(frozen=True, slots=True)
class _Job:
    path: bytes
    size: int
    tool: str | None
    cursor: Cursor | None
    carry: str
    is_named: bool
    is_expected: bool
    mtime_ns: int
    identities: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Done:
    tool: str
    cursor: Cursor
    carry: str
    unknown: dict[str, int]
    corrupt: int
    oversized: int
    bytes_read: int
    present: dict[str, list[str]] | None


@dataclass(frozen=True, slots=True)
class _Portion:
    start: int
    of: bytes
    text: bytes | None
    lengths: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class _Failed:
    message: bytes | None
    hint: bytes | None
    is_excluded: bool
    is_empty: bool
    is_own: bool


_SETUP = msgspec.msgpack.Decoder(Setup)
_JOBS = msgspec.msgpack.Decoder(list[_Job])
_BATCH = msgspec.msgpack.Decoder(tuple[Session, tuple[Turn, ...]])
_DONE = msgspec.msgpack.Decoder(_Done)
_PORTION = msgspec.msgpack.Decoder(_Portion)
_FAILED = msgspec.msgpack.Decoder(_Failed)


def write(file: IO[bytes], frame: Frame) -> None:
    """Write a frame. Raises OSError when nobody reads any more."""
    file.write(_HEAD.pack(len(frame.body), frame.kind))
    file.write(frame.body)


def read(file: IO[bytes]) -> Frame | None:
    """Read a frame; ``None`` at the end, which may come in the middle of one."""
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, kind = _HEAD.unpack(head)
    body = file.read(length)
    return Frame(Kind(kind), body) if len(body) == length else None


def pack_setup(setup: Setup) -> Frame:
    """What a process is to know."""
    return Frame(Kind.SETUP, _ENCODER.encode(setup))


def unpack_setup(frame: Frame) -> Setup:
    """The reverse of :func:`pack_setup`."""
    return _SETUP.decode(frame.body)


def pack_jobs(jobs: list[Job]) -> Frame:
    """Files to read."""
    return Frame(Kind.LOAD, _ENCODER.encode([_packed(job) for job in jobs]))


def unpack_jobs(frame: Frame) -> list[Job]:
    """The reverse of :func:`pack_jobs`."""
    return [_unpacked(job) for job in _JOBS.decode(frame.body)]


def pack(event: Event | Portion) -> Frame:
    """What came of reading."""
    match event:
        case Portion():
            text, lengths = (event.payload.text, event.payload.lengths) if event.payload else (None, ())
            kind = Kind.LAST_PORTION if event.is_last else Kind.PORTION
            return Frame(kind, _ENCODER.encode(_Portion(event.start, event.of, text, lengths)))
        case Batch():
            return Frame(Kind.BATCH, _ENCODER.encode((event.session, event.turns)))
        case FileDone():
            return Frame(Kind.DONE, _ENCODER.encode(_packed_done(event)))
        case FileFailed():
            problem = event.problem
            texts = (_bytes(problem.message), _bytes(problem.hint)) if problem else (None, None)
            flags = (event.is_excluded, event.is_empty, event.is_own)
            return Frame(Kind.FAILED, _ENCODER.encode(_Failed(*texts, *flags)))


def unpack(frame: Frame, job: Job) -> Event | Portion:
    """The reverse of :func:`pack`, for what came of a job."""
    if frame.kind in (Kind.PORTION, Kind.LAST_PORTION):
        part = _PORTION.decode(frame.body)
        payload = None if part.text is None else Payload(part.text, part.lengths)
        return Portion(job.path, part.start, part.of, payload, frame.kind is Kind.LAST_PORTION)
    if frame.kind is Kind.BATCH:
        return Batch(job.path, *_BATCH.decode(frame.body))
    if frame.kind is Kind.FAILED:
        failed = _FAILED.decode(frame.body)
        message = _text(failed.message)
        problem = None if message is None else Problem(str(job.path), message, _text(failed.hint))
        flags = (failed.is_excluded, failed.is_empty, failed.is_own)
        return FileFailed(job.path, job.size, problem, *flags)
    done = _DONE.decode(frame.body)
    tally = Tally(Counter(done.unknown), done.corrupt, done.oversized)
    cursor = replace(done.cursor, carry=json.loads(done.carry))
    return FileDone(job.path, job.size, done.tool, cursor, tally, done.bytes_read, done.present)


def _packed(job: Job) -> _Job:
    bare = replace(job.cursor, carry={}) if job.cursor else None
    return _Job(
        os.fsencode(job.path), job.size, job.tool, bare, _carry_of(job.cursor), job.is_named, job.is_expected,
        job.mtime_ns, job.identities,
    )  # fmt: skip


def _unpacked(job: _Job) -> Job:
    return Job(
        Path(os.fsdecode(job.path)), job.size, job.tool, _carrying(job.cursor, job.carry), job.is_named,
        job.is_expected, job.mtime_ns, job.identities,
    )  # fmt: skip


def _packed_done(done: FileDone) -> _Done:
    present = None if done.present is None else {session: list(turns) for session, turns in done.present.items()}
    return _Done(
        done.tool, replace(done.cursor, carry={}), _carry_of(done.cursor), dict(done.tally.unknown),
        done.tally.corrupt, done.tally.oversized, done.bytes_read, present,
    )  # fmt: skip


def _carry_of(cursor: Cursor | None) -> str:
    return json.dumps(cursor.carry) if cursor else "{}"


def _carrying(cursor: Cursor | None, carry: str) -> Cursor | None:
    carried: dict[str, Any] = json.loads(carry)
    return replace(cursor, carry=carried) if cursor else None


def _bytes(text: str | None) -> bytes | None:
    """A message may name a path that is no text."""
    return None if text is None else text.encode("utf-8", "surrogatepass")


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogatepass")
