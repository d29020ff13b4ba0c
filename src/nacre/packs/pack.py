"""A pack: all that the archive has of one transcript, in one file that only grows.

A title, then segments. Each is a line of JSON, which says which bytes of the transcript it stands for and what it
holds, and a Zstandard frame. All that the database knows of a pack can be read from it. A tail that was cut off, by a
crash or a full disk, is recognised by its checksum and written over.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import msgspec

from nacre.errors import ArchiveDamaged, Unavailable
from nacre.packs.payload import Payload, join, unpack
from nacre.packs.zstd import compress, decompress
from nacre.platform import private_files

SUFFIX = ".pack"
VERSION = 1
LINES, TURNS = "lines", "turns"
"""What a pack holds: the transcript's own lines, or the sessions and turns that were read from it."""

MOST_BYTES = 512 * 1024 * 1024
_MOST_HEAD = 65_536
_BASE_BYTES = 256 * 1024
_BLOCK_BYTES = 1024 * 1024
_SMALL_BYTES = 1024 * 1024
_MANY_SMALL = 32

Find = Callable[[bytes], Payload | None]
"""What a segment of that digest holds, from another pack."""


@dataclass(frozen=True, slots=True)
class Title:
    """Whose pack it is: the tool, the transcript's path (as it is kept), what it holds."""

    tool: str
    path: str
    kind: str = LINES


@dataclass(frozen=True, slots=True)
class Segment:
    """Bytes ``start`` to ``until`` of a transcript. ``digest`` names what is kept of them, wherever that is.

    ``position`` is the place of its head in the pack, ``changed`` when the transcript was (ns). A segment without
    ``size`` is a copy: another pack has the bytes.
    """

    start: int
    until: int
    digest: bytes
    length: int = 0
    size: int = 0
    position: int = 0
    body: int = 0
    changed: int = 0

    @property
    def is_copy(self) -> bool:
        """Whether another pack has what it holds."""
        return not self.size


@dataclass(frozen=True, slots=True)
class Fresh:
    """A segment to be written. Without a payload it is a copy of one that another pack has."""

    start: int
    until: int
    digest: bytes
    payload: Payload | None
    changed: int = 0


class _Head(msgspec.Struct, omit_defaults=True):
    """A line of a pack that is not a frame."""

    nacre_archive: int = 0
    tool: str = ""
    path: str = ""
    kind: str = ""
    start: int = 0
    until: int = 0
    digest: str = ""
    length: int = 0
    size: int = 0
    changed: int = 0
    sum: str = ""


_HEAD = msgspec.json.Decoder(_Head)


@dataclass(slots=True)
class Pack:
    """A pack that lies at ``place``: its title, its segments in order, and where the next one goes.

    ``torn`` bytes follow that are no segment: a crash left them, or the pack is damaged there.
    """

    place: Path
    title: Title
    segments: list[Segment] = field(default_factory=list)
    end: int = 0
    torn: int = 0
    _base: bytes | None = None

    def payload(self, segment: Segment, find: Find) -> Payload:
        """What a segment holds. Raises ArchiveDamaged."""
        if segment.is_copy:
            found = find(segment.digest)
            if found is None:
                raise ArchiveDamaged(f"{self.place}: a segment that another pack should have is gone")
            return found
        base = b"" if self._is_first(segment) else self._base_of()
        with _opened(self.place) as file:
            file.seek(segment.body)
            data = decompress(file.read(segment.size), base, segment.length)
        if digest_of(data) != segment.digest:
            raise ArchiveDamaged(f"{self.place}: a segment is not what it was")
        return unpack(data)

    def payloads(self, find: Find) -> Iterator[tuple[Segment, Payload]]:
        """All segments with what they hold. Raises ArchiveDamaged."""
        for segment in self.segments:
            yield segment, self.payload(segment, find)

    def append(self, fresh: Iterable[Fresh], *, durable: bool = True) -> None:
        """Add segments. A torn tail is written over. Raises OSError."""
        with os.fdopen(private_files.open_file(self.place, os.O_RDWR), "r+b") as file:
            file.truncate(self.end)
            file.seek(self.end)
            for item in fresh:
                self._write(file, item)
            file.flush()
            if durable:
                os.fsync(file.fileno())

    def foldable(self) -> list[Segment]:
        """Small segments at the end that would better be one; none while there are few of them."""
        tail: list[Segment] = []
        for segment in reversed(self.segments):
            if segment.is_copy or segment.length > _SMALL_BYTES or (tail and tail[0].start != segment.until):
                break
            tail.insert(0, segment)
        return tail if len(tail) >= _MANY_SMALL else []

    def fold(self, tail: Sequence[Segment], find: Find) -> None:
        """Make one segment of the last ones, in a new file that takes the place of this one."""
        payload = join([self.payload(segment, find) for segment in tail])
        whole = Fresh(tail[0].start, tail[-1].until, digest_of(payload.pack()), payload, tail[-1].changed)
        kept, cut = self.segments[: -len(tail)], tail[0].position
        if not any(not segment.is_copy for segment in kept):
            self._base = None
        with private_files.new_file(self.place, overwrite=True) as file, _opened(self.place) as old:
            for at in range(0, cut, _BLOCK_BYTES):
                file.write(old.read(min(_BLOCK_BYTES, cut - at)))
            self.segments, self.end = kept, cut + file.write(_titled(self.title))
            self._write(file, whole)

    def retitle(self, title: Title) -> None:
        """The transcript goes by another name now."""
        self.title = title
        with os.fdopen(private_files.open_file(self.place, os.O_RDWR), "r+b") as file:
            file.truncate(self.end)
            file.seek(self.end)
            self.end += file.write(_titled(title))
            file.flush()
            os.fsync(file.fileno())

    def _fill(self, file: BinaryIO, fresh: Iterable[Fresh]) -> None:
        self.end = file.write(_titled(self.title))
        for item in fresh:
            self._write(file, item)

    def _write(self, file: BinaryIO, item: Fresh) -> None:
        head = _Head(start=item.start, until=item.until, digest=item.digest.hex(), changed=item.changed)
        frame = b""
        if item.payload is not None:
            data = item.payload.pack()
            frame = compress(data, b"" if self._is_lonely() else self._base_of(file))
            head.length, head.size = len(data), len(frame)
            if self._is_lonely():
                self._base = data[:_BASE_BYTES]
        head.sum = _sum(head, frame)
        line = msgspec.json.encode(head) + b"\n"
        file.write(line + frame)
        self.segments.append(
            Segment(
                item.start,
                item.until,
                item.digest,
                head.length,
                head.size,
                self.end,
                self.end + len(line),
                item.changed,
            )
        )
        self.end += len(line) + len(frame)

    def _is_lonely(self) -> bool:
        return all(segment.is_copy for segment in self.segments)

    def _is_first(self, segment: Segment) -> bool:
        return next(one for one in self.segments if not one.is_copy) is segment

    def _base_of(self, file: BinaryIO | None = None) -> bytes:
        """The beginning of the first segment: what follows looks alike, and what is small has little else."""
        if self._base is None:
            first = next(one for one in self.segments if not one.is_copy)
            with _opened(self.place) as own:
                source = file or own
                place = source.tell()
                source.seek(first.body)
                self._base = decompress(source.read(first.size), b"", first.length)[:_BASE_BYTES]
                source.seek(place)
        return self._base


def create(place: Path, title: Title, fresh: Iterable[Fresh], *, durable: bool = True) -> Pack:
    """A new pack with some segments; one that lies there is replaced, whole or not at all.

    Where there was none, a crash may leave the first of its segments. ``durable`` waits for the disk. Raises OSError.
    """
    pack = Pack(place, title)
    if place.exists():
        with private_files.new_file(place, overwrite=True) as file:
            pack._fill(file, fresh)
        return pack
    private_files.make_folder(place.parent)
    try:
        with os.fdopen(private_files.open_file(place, os.O_RDWR | os.O_CREAT | os.O_EXCL), "w+b") as file:
            pack._fill(file, fresh)
            file.flush()
            if durable:
                os.fsync(file.fileno())
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    return pack


def load(place: Path, *, thorough: bool = False) -> Pack:
    """A pack as it lies there, without a torn tail; ``thorough`` compares every checksum, not only the last.

    Raises ArchiveDamaged for what is none or is damaged before its end, Unavailable where it cannot be read.
    """
    pack = Pack(place, Title("", ""))
    with _opened(place) as file:
        size = os.fstat(file.fileno()).st_size
        while (head := _read_head(file)) is not None:
            if head.nacre_archive:
                _refuse_newer(place, head)
                pack.title, pack.end = Title(head.tool, head.path, head.kind), file.tell()
                continue
            body = file.tell()
            is_last = body + head.size >= size
            if (thorough or is_last) and not _is_sound(head, file):
                if not is_last:
                    raise ArchiveDamaged(f"{place}: a segment is damaged")
                break
            segment = Segment(
                head.start, head.until, bytes.fromhex(head.digest), head.length, head.size, pack.end, body,
                head.changed,
            )  # fmt: skip
            pack.segments.append(segment)
            pack.end = body + head.size
            file.seek(pack.end)
        pack.torn = size - pack.end
    if not pack.title.tool:
        raise ArchiveDamaged(f"{place} is no pack of the archive")
    return pack


def digest_of(data: bytes) -> bytes:
    """The name of a segment: 16 bytes of what it holds without secrets, so that it tells nothing about them."""
    return hashlib.blake2b(data, digest_size=16).digest()


def _read_head(file: BinaryIO) -> _Head | None:
    line = file.readline(_MOST_HEAD)
    if not line.endswith(b"\n"):
        return None
    try:
        head = _HEAD.decode(line)
        bytes.fromhex(head.digest)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return head if 0 <= head.size <= MOST_BYTES and 0 <= head.length <= MOST_BYTES else None


def _is_sound(head: _Head, file: BinaryIO) -> bool:
    frame = file.read(head.size)
    return len(frame) == head.size and head.sum == _sum(head, frame)


def _sum(head: _Head, frame: bytes) -> str:
    bare = msgspec.structs.replace(head, sum="")
    return hashlib.blake2b(msgspec.json.encode(bare) + frame, digest_size=8).hexdigest()


def _titled(title: Title) -> bytes:
    return msgspec.json.encode(_Head(VERSION, title.tool, title.path, title.kind)) + b"\n"


def _refuse_newer(place: Path, head: _Head) -> None:
    if head.nacre_archive > VERSION:
        raise ArchiveDamaged(f"{place} was written by a newer nacre", hint="upgrade nacre")


def _opened(place: Path) -> BinaryIO:
    try:
        return os.fdopen(private_files.open_file(place, os.O_RDONLY), "rb")
    except FileNotFoundError as error:
        raise ArchiveDamaged(f"{place} is gone") from error
    except OSError as error:
        hint = "check its permissions, and the disk"
        raise Unavailable(f"cannot read {place}: {error.strerror}", hint=hint) from error
