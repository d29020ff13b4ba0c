"""The archive of transcripts: removal of secrets, Zstandard compression, and the pack format."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from nacre.base import files
from nacre.base.frozen import frozen
from nacre.base.ids import bytes_hash
from nacre.base.lazy import zstd
from nacre.base.text import to_bytes, to_text
from nacre.errors import DamagedArchiveError, UnavailableError

_LENGTHS_DECODER = msgspec.json.Decoder(list[tuple[int, int]])


@frozen
class Payload:
    """Cleaned lines of a transcript.

    ``lengths`` contains the number and original length in bytes of each line whose length changed.
    Offsets thus still identify turns.
    """

    text: bytes
    lengths: tuple[tuple[int, int], ...] = ()

    def pack(self) -> bytes:
        """Encode the payload as bytes."""
        return msgspec.json.encode(self.lengths) + b"\n" + self.text

    def lines(self, start: int) -> Iterator[tuple[int, bytes]]:
        """Yield each line with its offset in the transcript, starting at ``start``."""
        original_lengths = dict(self.lengths)
        for number, line in enumerate(self.text.split(b"\n")):
            yield start, line
            start += original_lengths.get(number, len(line)) + 1


def unpack(data: bytes) -> Payload:
    """Decode a payload from :meth:`Payload.pack`. Raises DamagedArchiveError."""
    head, _, text = data.partition(b"\n")
    try:
        return Payload(text, tuple(_LENGTHS_DECODER.decode(head)))
    except msgspec.DecodeError as error:
        raise DamagedArchiveError(f"a segment cannot be read: {error}") from error


# -- Removing secrets from lines of JSON --------------------------------------
# Strings and field names are examined; short strings and numbers also together with their names.


CleanAll = Callable[[Sequence[str]], Sequence[str]]
"""Function that returns strings without secrets, in the same order."""

_PAIR_CHARACTERS = 400
"""Maximum length of a value that is examined together with its name."""

_DECODER = msgspec.json.Decoder()
_ENCODED_CHARACTERS = 1000
_ENCODED = re.compile(r"(?:data:[\w.+/;=-]+,)?[A-Za-z0-9+/_-]+={0,2}")
_SEALED = frozenset({"signature", "thinkingSignature", "thoughtSignature", "encrypted_content"})
"""Fields encrypted by the model's vendor. They are kept, because tools need them."""

_SECRET_NAME = re.compile(r"(?i)pass|pwd|pin|secret|token|key|cred|auth|code")
_SHORT_CHARACTERS = 200
_MAX_KNOWN_TEXTS = 100_000
"""Maximum number of cached texts, which use about 15 MB."""


class Cleaner:
    """A filter that removes secrets from transcripts, and caches short strings that have none."""

    def __init__(self, clean_all: CleanAll) -> None:
        self._clean_all = clean_all
        self._clean_texts: set[str] = set()

    def lines(self, raw: bytes) -> Payload:
        """Remove secrets and encoded data, such as images, from lines of a transcript."""
        lines = raw.split(b"\n")
        cleaned = self.clean(lines)
        if all(new is old for new, old in zip(cleaned, lines, strict=True)):
            return Payload(raw)
        lengths = (
            (number, len(old))
            for number, (new, old) in enumerate(zip(cleaned, lines, strict=True))
            if len(new) != len(old)
        )
        return Payload(b"\n".join(cleaned), tuple(lengths))

    def clean(self, lines: Sequence[bytes]) -> list[bytes]:
        """Remove secrets from lines, and return unchanged lines as the same objects."""
        values = [_decoded(line) for line in lines]
        texts = [_texts_in(*item) for item in zip(lines, values, strict=True)]
        fresh = list(
            dict.fromkeys(text for own in texts for text in own if text not in self._clean_texts)
        )
        pairs = zip(fresh, self._clean_all(fresh), strict=True)
        changed = {old: new for old, new in pairs if old != new}
        if len(self._clean_texts) > _MAX_KNOWN_TEXTS:
            self._clean_texts.clear()
        self._clean_texts.update(
            text for text in fresh if len(text) <= _SHORT_CHARACTERS and text not in changed
        )
        cleaned = []
        for line, value, own in zip(lines, values, texts, strict=True):
            if value is None:
                new = changed.get(own[0]) if own else None
                line = line if new is None else to_bytes(new.replace("\n", " "))
            elif not changed.keys().isdisjoint(own) or _hides_text(line, value):
                line = msgspec.json.encode(self._value(value, "", changed))
            cleaned.append(line)
        return cleaned

    def _value(self, value: Any, name: str, changed: Mapping[str, str]) -> Any:
        if isinstance(value, dict):
            return {
                changed.get(key, key): self._value(item, key, changed)
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._value(item, name, changed) for item in value]
        paired = changed.get(_pair(name, value))
        if isinstance(value, str):
            if _is_encoded(value, name):
                return f"[{len(value):,} characters of encoded bytes were left out]"
            if paired is None or len(value) > _PAIR_CHARACTERS:
                return changed.get(value, value)
            return self._clean_all([_value_of(paired, name)])[0]
        is_kept = paired is None or not _is_telling(value, name)
        return value if is_kept else _value_of(paired or "", name)


def clean_whole(raw: bytes, clean_all: CleanAll) -> Payload | None:
    """Clean a transcript of plain text or one JSON value. Return ``None`` for binary data."""
    bare = raw.strip()
    if _decoded(bare) is None:
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
        return Payload(raw) if (clean := clean_all([text])[0]) == text else Payload(to_bytes(clean))
    (cleaned,) = Cleaner(clean_all).clean([bare])
    return Payload(raw if cleaned is bare else cleaned)


def texts_of(line: bytes) -> list[str]:
    """Return all strings and field names in a JSON line; any other line is one string."""
    return _texts_in(line, _decoded(line))


def _decoded(line: bytes) -> Any:
    if line[:1] not in (b"{", b"["):
        return None
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _texts_in(line: bytes, value: Any) -> list[str]:
    texts: list[str] = []
    if value is not None:
        _collect(value, "", texts)
    elif line and not line.isspace():
        texts.append(to_text(line))
    return texts


def _collect(value: Any, name: str, texts: list[str]) -> None:
    if isinstance(value, str):
        if not _is_encoded(value, name):
            texts.append(value)
            if len(value) <= _PAIR_CHARACTERS:
                texts.append(_pair(name, value))
    elif isinstance(value, dict):
        for key, item in value.items():
            texts.append(key)
            _collect(item, key, texts)
    elif isinstance(value, list):
        for item in value:
            _collect(item, name, texts)
    elif _is_telling(value, name):
        texts.append(_pair(name, value))


def _hides_text(line: bytes, value: Any) -> bool:
    """Return True if a line has text that decoding drops, such as the first value of a repeated
    key.
    """
    if b"\\u0022" in line or msgspec.json.encode(value).count(b'"') != line.count(b'"'):
        return True
    return len(line) > _ENCODED_CHARACTERS and _holds_encoded(value)


def _holds_encoded(value: Any, name: str = "") -> bool:
    if isinstance(value, dict):
        return any(_holds_encoded(item, key) for key, item in value.items())
    if isinstance(value, list):
        return any(_holds_encoded(item, name) for item in value)
    return isinstance(value, str) and _is_encoded(value, name)


def _is_telling(value: Any, name: str) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and _SECRET_NAME.search(name) is not None


def _is_encoded(text: str, name: str) -> bool:
    return (
        len(text) >= _ENCODED_CHARACTERS
        and name not in _SEALED
        and _ENCODED.fullmatch(text) is not None
    )


def _pair(name: str, value: object) -> str:
    """Format a name and its value as in JSON, which redaction rules match."""
    return f'"{name}": "{value}"'


def _value_of(paired: str, name: str) -> str:
    before = _pair(name, "")[:-1]
    if paired.startswith(before) and paired.endswith('"'):
        return paired[len(before) : -1]
    return "[REDACTED:value]"


# -- Zstandard ----------------------------------------------------------------


LEVEL = 9
"""Compression level. Output is a tenth smaller than at level 3. Level 19 is ten times slower."""


def is_installed() -> bool:
    """Return True if Zstandard is available."""
    try:
        return bool(zstd())
    except UnavailableError:
        return False


def compress(data: bytes, base: bytes) -> bytes:
    """Compress data with similar data as a dictionary, which decompression also needs."""
    return bytes(zstd().compress(data, level=LEVEL, zstd_dict=_prefix(base)))


def decompress(frame: bytes, base: bytes, most: int) -> bytes:
    """Decompress a frame that contains exactly ``most`` bytes. Raises DamagedArchiveError."""
    library = zstd()
    reader = library.ZstdDecompressor(zstd_dict=_prefix(base))
    try:
        data = reader.decompress(frame, max_length=most + 1)
    except (library.ZstdError, EOFError) as error:
        raise DamagedArchiveError(f"a segment cannot be unpacked: {error}") from error
    if len(data) != most or not reader.eof:
        raise DamagedArchiveError("a segment does not have its stated number of bytes")
    return bytes(data)


def _prefix(base: bytes) -> Any:
    return zstd().ZstdDict(base, is_raw=True).as_prefix if len(base) >= _MIN_BASE_BYTES else None


_MIN_BASE_BYTES = 8
"""Minimum size of a Zstandard dictionary in bytes."""


# -- Packs --------------------------------------------------------------------
# A pack is an append-only file with the archived content of one transcript: a title, then segments.
# A segment is a line of JSON (its header), which has the byte range in the transcript and
# describes the contents, followed by a Zstandard frame. The database's rows about a pack can be
# restored from the pack. A tail truncated by a crash or a full disk has a wrong checksum and is
# overwritten.


SUFFIX = ".pack"
VERSION = 1
LINES, TURNS = "lines", "turns"
"""Contents of a pack: the transcript's lines, or the sessions and turns read from it."""

MOST_BYTES = 512 * 1024 * 1024
_MAX_HEAD_BYTES = 65_536
_BASE_BYTES = 256 * 1024
_MANY_SEGMENTS = 32
_SEGMENT_BYTES = 1024 * 1024


@frozen
class Title:
    """A pack's header: the transcript's tool and path, and the kind of contents."""

    tool: str
    path: str
    kind: str = LINES


@frozen
class Segment:
    """The part of a pack that holds a transcript's bytes from ``start`` to ``until``.

    ``digest`` and ``length`` are the payload's hash and size in bytes, ``size`` and ``body`` its
    frame's size and offset in the pack, and ``changed`` the transcript's modification time in
    nanoseconds.
    """

    start: int
    until: int
    digest: bytes
    length: int
    size: int
    body: int
    changed: int


@frozen
class Fresh:
    """A segment that is still to be written."""

    start: int
    until: int
    payload: Payload
    changed: int = 0


class _Head(msgspec.Struct, omit_defaults=True):
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
    """An archived transcript.

    ``place`` is the archive file's path, ``end`` the next segment's offset, and ``torn`` the number
    of damaged bytes at the end, for example after a crash.
    """

    place: Path
    title: Title
    segments: list[Segment] = field(default_factory=list)
    end: int = 0
    torn: int = 0
    _base: bytes | None = None

    @property
    def is_fragmented(self) -> bool:
        """True if the pack has too many segments and only one version of its transcript."""
        raw = self.segments[-1].until
        starts = [segment.start for segment in self.segments]
        return starts.count(0) == 1 and len(starts) > _MANY_SEGMENTS + raw // _SEGMENT_BYTES

    def payload(self, segment: Segment) -> Payload:
        """Return the payload of a segment. Raises DamagedArchiveError."""
        base = b"" if segment is self.segments[0] else self._base_of()
        with _open_pack(self.place) as file:
            file.seek(segment.body)
            data = decompress(file.read(segment.size), base, segment.length)
        if bytes_hash(data) != segment.digest:
            raise DamagedArchiveError(f"{self.place}: a segment has changed")
        return unpack(data)

    def payloads(self) -> Iterator[tuple[Segment, Payload]]:
        """Yield each segment with its payload. Raises DamagedArchiveError."""
        for segment in self.segments:
            yield segment, self.payload(segment)

    def append(self, fresh: Iterable[Fresh]) -> None:
        """Append segments, after removing incomplete data at the end. Raises OSError."""
        with os.fdopen(files.open_file(self.place, os.O_RDWR), "r+b") as file:
            file.truncate(self.end)
            file.seek(self.end)
            for item in fresh:
                self._write(file, item)
            file.flush()
            os.fsync(file.fileno())

    def _fill(self, file: BinaryIO, fresh: Iterable[Fresh]) -> None:
        head = _Head(VERSION, self.title.tool, self.title.path, self.title.kind)
        self.end = file.write(msgspec.json.encode(head) + b"\n")
        for item in fresh:
            self._write(file, item)

    def _write(self, file: BinaryIO, item: Fresh) -> None:
        data = item.payload.pack()
        digest = bytes_hash(data)
        frame = compress(data, self._base_of(file) if self.segments else b"")
        if not self.segments:
            self._base = data[:_BASE_BYTES]
        head = _Head(
            start=item.start,
            until=item.until,
            digest=digest.hex(),
            length=len(data),
            size=len(frame),
            changed=item.changed,
        )
        head.sum = _sum(head, frame)
        line = msgspec.json.encode(head) + b"\n"
        file.write(line + frame)
        self.segments.append(_segment(head, self.end + len(line)))
        self.end += len(line) + len(frame)

    def _base_of(self, file: BinaryIO | None = None) -> bytes:
        """Return the start of the first segment, the dictionary for all later ones."""
        if self._base is None:
            first = self.segments[0]
            with _open_pack(self.place) as own:
                source = file or own
                place = source.tell()
                source.seek(first.body)
                self._base = decompress(source.read(first.size), b"", first.length)[:_BASE_BYTES]
                source.seek(place)
        return self._base


def _segment(head: _Head, body: int) -> Segment:
    digest = bytes.fromhex(head.digest)
    return Segment(head.start, head.until, digest, head.length, head.size, body, head.changed)


def create(place: Path, title: Title, fresh: Iterable[Fresh]) -> Pack:
    """Write segments to a new pack, atomically replacing any old one. Raises OSError."""
    pack = Pack(place, title)
    if place.exists():
        with files.new_file(place, overwrite=True) as file:
            pack._fill(file, fresh)
        return pack
    files.make_folder(place.parent)
    try:
        with os.fdopen(files.open_file(place, os.O_RDWR | os.O_CREAT | os.O_EXCL), "w+b") as file:
            pack._fill(file, fresh)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    return pack


def load(place: Path, *, thorough: bool = False) -> Pack:
    """Load a pack, ignoring incomplete data at its end.

    With ``thorough``, all checksums are verified, not only the last. Raises DamagedArchiveError, or
    UnavailableError if the file cannot be read.
    """
    pack = Pack(place, Title("", ""))
    with _open_pack(place) as file:
        size = os.fstat(file.fileno()).st_size
        while (head := _read_head(file)) is not None:
            if head.nacre_archive:
                if head.nacre_archive > VERSION:
                    raise DamagedArchiveError(
                        f"{place} was written by a newer nacre", hint="upgrade nacre"
                    )
                pack.title, pack.end = Title(head.tool, head.path, head.kind), file.tell()
                continue
            body = file.tell()
            is_last = body + head.size >= size
            if (thorough or is_last) and not _is_sound(head, file):
                if not is_last:
                    raise DamagedArchiveError(f"{place}: a segment is damaged")
                break
            pack.segments.append(_segment(head, body))
            pack.end = body + head.size
            file.seek(pack.end)
        pack.torn = size - pack.end
    if not pack.title.tool:
        raise DamagedArchiveError(f"{place} is not a nacre archive")
    return pack


def _read_head(file: BinaryIO) -> _Head | None:
    line = file.readline(_MAX_HEAD_BYTES)
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


def _open_pack(place: Path) -> BinaryIO:
    try:
        return files.open_to_read(place)
    except FileNotFoundError as error:
        raise DamagedArchiveError(f"{place} is gone") from error
    except OSError as error:
        hint = "check its permissions, and the disk"
        raise UnavailableError(f"cannot read {place}: {error.strerror}", hint=hint) from error
