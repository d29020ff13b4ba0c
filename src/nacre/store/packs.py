"""The archive of transcripts: removal of secrets, Zstandard compression, and the pack format."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from nacre.base import files
from nacre.base.frozen import frozen
from nacre.base.text import to_bytes, to_text
from nacre.errors import DamagedArchiveError, UnavailableError

_LENGTHS_DECODER = msgspec.json.Decoder(list[tuple[int, int]])


@frozen
class Payload:
    """Cleaned lines of a transcript.

    ``lengths``: line number and original length in bytes of each line whose length changed. They
    locate turns that a tool identifies only by the line's offset in the transcript.
    """

    text: bytes
    lengths: tuple[tuple[int, int], ...] = ()

    def pack(self) -> bytes:
        """Encode the payload."""
        return msgspec.json.encode(self.lengths) + b"\n" + self.text

    def lines(self, start: int) -> Iterator[tuple[int, bytes]]:
        """Yield (offset in the transcript, line), starting with the offset ``start``."""
        original_lengths = dict(self.lengths)
        for number, line in enumerate(self.text.split(b"\n")):
            yield start, line
            start += original_lengths.get(number, len(line)) + 1


def unpack(data: bytes) -> Payload:
    """Decode the output of :meth:`Payload.pack`. Raises DamagedArchiveError."""
    head, _, text = data.partition(b"\n")
    try:
        return Payload(text, tuple(_LENGTHS_DECODER.decode(head)))
    except msgspec.DecodeError as error:
        raise DamagedArchiveError(f"a segment cannot be read: {error}") from error


def join(payloads: Sequence[Payload]) -> Payload:
    """Concatenate consecutive payloads."""
    lengths: list[tuple[int, int]] = []
    before = 0
    for payload in payloads:
        lengths += [(number + before, length) for number, length in payload.lengths]
        before += payload.text.count(b"\n")
    return Payload(b"".join(payload.text for payload in payloads), tuple(lengths))


# -- Text in JSON values that might contain secrets ---------------------------
# Strings and names are examined, and short strings and numbers also together with their names.


CleanAll = Callable[[Sequence[str]], Sequence[str]]
"""Function that removes secrets from texts and keeps the order."""

PAIR_CHARACTERS = 400
"""Maximum length of a value that is examined together with its name."""

FindSuspects = Callable[[Sequence[bytes]], Collection[int]]
"""Function that returns the positions of texts that might contain a secret."""

_DECODER = msgspec.json.Decoder()
ENCODED_CHARACTERS = 1000
_ENCODED = re.compile(r"(?:data:[\w.+/;=-]+,)?[A-Za-z0-9+/_-]+={0,2}")
_SEALED = frozenset({"signature", "thinkingSignature", "thoughtSignature", "encrypted_content"})
"""Names of values encrypted by the model's vendor. They are kept, because tools need them."""

_SECRET_NAME = re.compile(r"(?i)pass|pwd|pin|secret|token|key|cred|auth|code")


def decoded(line: bytes) -> Any:
    """Decode the JSON object or list in a line, or return ``None`` for any other line."""
    if line[:1] not in (b"{", b"["):
        return None
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def texts_in(value: Any) -> list[str]:
    """Return all texts and names in a JSON value, except encoded bytes.

    Short texts are also returned joined with their names.
    """
    texts: list[str] = []
    _collect(value, "", texts)
    return texts


def holds_encoded(value: Any, name: str = "") -> bool:
    """Return True if a value contains encoded binary data."""
    if isinstance(value, str):
        return is_encoded(value, name)
    if isinstance(value, dict):
        return any(holds_encoded(item, key) for key, item in value.items())
    return isinstance(value, list) and any(holds_encoded(item, name) for item in value)


def is_telling(value: Any, name: str) -> bool:
    """Return True if a value is a number whose name suggests a secret."""
    return isinstance(value, int | float) and not isinstance(value, bool) and is_telling_name(name)


def is_telling_name(name: str) -> bool:
    """Return True if a number with this name is probably a secret."""
    return _SECRET_NAME.search(name) is not None


def is_encoded(text: str, name: str) -> bool:
    """Return True if a text is encoded binary data that no tool needs."""
    return (
        len(text) >= ENCODED_CHARACTERS
        and name not in _SEALED
        and _ENCODED.fullmatch(text) is not None
    )


def pair(name: str, text: str) -> str:
    """Format a name and a text as in JSON, so that redaction rules match."""
    return f'"{name}": "{text}"'


def changes(texts: dict[str, None], clean_all: CleanAll) -> dict[str, str]:
    """Clean texts, and return a mapping from changed texts to their replacements."""
    originals = list(texts)
    return {
        old: new for old, new in zip(originals, clean_all(originals), strict=True) if old != new
    }


def _collect(value: Any, name: str, texts: list[str]) -> None:
    if isinstance(value, str):
        if not is_encoded(value, name):
            texts.append(value)
            if len(value) <= PAIR_CHARACTERS:
                texts.append(pair(name, value))
    elif isinstance(value, dict):
        for key, item in value.items():
            texts.append(key)
            _collect(item, key, texts)
    elif isinstance(value, list):
        for item in value:
            _collect(item, name, texts)
    elif is_telling(value, name):
        texts.append(pair(name, str(value)))


# -- Fast detection of JSON lines without secrets -----------------------------
# Most lines contain no secrets and must be recognised quickly. A regular expression finds all
# strings with their names, and known strings are skipped. :class:`Cleaner` parses only lines with
# a string that would change, and decides the result.


_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NUMBER = rb"-?[0-9][0-9.eE+-]*+"
_STRINGS = rb"\[\s*+%b(?:\s*+,\s*+%b)*+\s*+\]" % (_STRING, _STRING)
_TOKEN = re.compile(
    rb"%b(?:\s*+:\s*+(?:%b|%b|%b|\[)?)?" % (_STRING, _STRING, _NUMBER, _STRINGS), re.DOTALL
)
"""Pattern for a string, or for a name with the following value or the start of that value."""

_VALIDATOR = msgspec.json.Decoder(msgspec.Raw)
_PLAIN_NUMBER = re.compile(rb":\s*-?[0-9]{1,18}\Z")
"""Pattern for a number that can be written in only one way."""

_PLAIN_BYTES = 400
_SHORT_BYTES = 200
_MAX_KNOWN_TOKENS = 100_000
"""Maximum number of cached tokens, which use about 15 MB."""


@frozen
class Sifted:
    """Lines and texts found by :meth:`Sieve.sift`.

    ``suspects``: numbers of lines to parse. ``sure``: numbers of lines that must change. ``asked``:
    examined texts. ``changed``: replacements, keyed by the original text.
    """

    suspects: list[int]
    sure: set[int]
    asked: dict[str, None]
    changed: dict[str, str]


class Sieve:
    """Fast search for lines that might contain secrets. Short strings without secrets are cached."""

    def __init__(self, clean_all: CleanAll, find_suspects: FindSuspects | None = None) -> None:
        self._clean_all = clean_all
        self._find_suspects = find_suspects
        self._known: set[bytes] = set()

    def sift(self, lines: Sequence[bytes]) -> Sifted:
        """Find the lines that might change. Lines that are not JSON are included."""
        fresh: dict[bytes, list[int]] = {}
        suspects: set[int] = set()
        for number, line in enumerate(lines):
            if _is_json(line):
                for token in set(_TOKEN.findall(line)) - self._known:
                    fresh.setdefault(token, []).append(number)
            elif line and not line.isspace():
                suspects.add(number)
        texts = {token: _texts_of(token) for token in self._to_ask(fresh)}
        examined = {
            text: None for token_texts in texts.values() if token_texts for text in token_texts
        }
        changed = changes(examined, self._clean_all)
        dirty = {
            token
            for token, token_texts in texts.items()
            if token_texts and not changed.keys().isdisjoint(token_texts)
        }
        odd = dirty.union(token for token, token_texts in texts.items() if token_texts is None)
        suspects.update(number for token in odd for number in fresh[token])
        tokens = fresh.keys() - odd
        if len(self._known) > _MAX_KNOWN_TOKENS:
            self._known.clear()
        self._known.update(token for token in tokens if len(token) <= _SHORT_BYTES)
        sure = {number for token in dirty for number in fresh[token]}
        return Sifted(sorted(suspects), sure, examined, changed)

    def _to_ask(self, fresh: Collection[bytes]) -> Iterable[bytes]:
        """Return the tokens whose bytes might contain a secret."""
        if self._find_suspects is None:
            return fresh
        plain = [token for token in fresh if _is_plain(token)]
        if not _is_text(plain):
            return fresh
        suspects = self._find_suspects(plain)
        spared = {token for number, token in enumerate(plain) if number not in suspects}
        return [token for token in fresh if token not in spared]


def _is_json(line: bytes) -> bool:
    """Return True if a line is a JSON object or list. Strings in the line are not checked."""
    if line[:1] not in (b"{", b"["):
        return False
    try:
        _VALIDATOR.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _is_plain(token: bytes) -> bool:
    """Return True if the text of a token is written without JSON escapes."""
    if len(token) > _PLAIN_BYTES or b"\\" in token:
        return False
    last = token[-1:]
    if last == b'"':
        return token.find(b'"', 1) != len(token) - 1
    return last == b"]" or _PLAIN_NUMBER.search(token) is not None


def _is_text(tokens: Sequence[bytes]) -> bool:
    try:
        b"\n".join(tokens).decode()
    except UnicodeDecodeError:
        return False
    return True


def _texts_of(token: bytes) -> list[str] | None:
    """Return the texts in a token, or ``None`` if the whole line must be parsed."""
    last = token.rstrip()[-1:]
    if last in b":[":
        name = decoded(b"[" + token[: token.rindex(b":")] + b"]")
        return None if name is None or (last == b"[" and is_telling_name(name[0])) else list(name)
    value = decoded(b"{" + token + b"}")
    if value is None or (len(token) > ENCODED_CHARACTERS and holds_encoded(value)):
        return None
    return texts_in(value)


# -- Removing secrets from lines of JSON --------------------------------------


class Cleaner:
    """Removes secrets from transcripts, with a cache shared between calls."""

    def __init__(self, clean_all: CleanAll, find_suspects: FindSuspects | None = None) -> None:
        """Create a cleaner. ``find_suspects`` selects the texts that ``clean_all`` receives."""
        self._clean_all = clean_all
        self._sieve = Sieve(clean_all, find_suspects)

    def lines(self, raw: bytes) -> Payload:
        """Clean lines of a transcript for the archive.

        Each text is examined and, if short, examined again together with its name. Images and other
        encoded bytes are removed.
        """
        lines = raw.split(b"\n")
        sifted = self._sieve.sift(lines)
        if not sifted.suspects:
            return Payload(raw)
        suspects = [lines[number] for number in sifted.suspects]
        values = [decoded(line) for line in suspects]
        cleaned = _Cleaned(values, suspects, self._clean_all, sifted)
        lengths: list[tuple[int, int]] = []
        for number, line, value in zip(sifted.suspects, suspects, values, strict=True):
            lines[number] = cleaned.line(line, value)
            if lines[number] is line and number in sifted.sure:
                # The secret was in a duplicate key, which was dropped by encoding.
                lines[number] = msgspec.json.encode(value)
            if len(lines[number]) != len(line):
                lengths.append((number, len(line)))
        return Payload(b"\n".join(lines), tuple(lengths))


def clean_lines(raw: bytes, clean_all: CleanAll) -> Payload:
    """Clean lines as :meth:`Cleaner.lines` does, without a cache."""
    return Cleaner(clean_all).lines(raw)


def texts_of(line: bytes) -> Iterator[str]:
    """Yield all texts and names in a line, or the line itself if it is not JSON."""
    value = decoded(line)
    yield from (to_text(line),) if value is None else texts_in(value)


class _Cleaned:
    """Applies replacements to lines."""

    def __init__(
        self,
        values: Sequence[Any],
        lines: Sequence[bytes],
        clean_all: CleanAll,
        sifted: Sifted | None = None,
    ) -> None:
        self._clean_all = clean_all
        texts: dict[str, None] = {}
        for line, value in zip(lines, values, strict=True):
            if value is not None:
                texts.update(dict.fromkeys(texts_in(value)))
            elif line and not line.isspace():
                texts[to_text(line)] = None
        if sifted is None:
            self._changed = changes(texts, clean_all)
        else:
            rest = {text: None for text in texts if text not in sifted.asked}
            self._changed = sifted.changed | changes(rest, clean_all)

    def line(self, line: bytes, value: Any) -> bytes:
        """Return the cleaned line, or the same object if unchanged."""
        if value is None:
            new = self._changed.get(to_text(line))
            return line if new is None else to_bytes(new.replace("\n", " "))
        cleaned = self._value(value, "")
        return line if cleaned is value else msgspec.json.encode(cleaned)

    def _value(self, value: Any, name: str) -> Any:
        """Return a value without secrets, or the same object if unchanged."""
        if isinstance(value, str):
            return self._text(value, name)
        if isinstance(value, dict):
            pairs = [
                (self._changed.get(key, key), self._value(item, key)) for key, item in value.items()
            ]
            is_same = all(
                old[0] is new[0] and old[1] is new[1]
                for old, new in zip(value.items(), pairs, strict=True)
            )
            return value if is_same else dict(pairs)
        if isinstance(value, list):
            items = [self._value(item, name) for item in value]
            return (
                value if all(old is new for old, new in zip(value, items, strict=True)) else items
            )
        if is_telling(value, name):
            new = self._changed.get(pair(name, str(value)))
            return value if new is None else _value_of(new, name)
        return value

    def _text(self, text: str, name: str) -> str:
        if is_encoded(text, name):
            return f"[{len(text):,} characters of encoded bytes were left out]"
        paired = self._changed.get(pair(name, text)) if len(text) <= PAIR_CHARACTERS else None
        if paired is not None:
            return self._clean_all([_value_of(paired, name)])[0]
        return self._changed.get(text, text)


def _value_of(paired: str, name: str) -> str:
    """Return the value in a cleaned :func:`pair`, or a placeholder if the form changed."""
    before = f'"{name}": "'
    return (
        paired[len(before) : -1]
        if paired.startswith(before) and paired.endswith('"')
        else "[REDACTED:value]"
    )


def clean_whole(raw: bytes, clean_all: CleanAll) -> Payload | None:
    """Clean a transcript that is plain text or one JSON value, or return ``None`` if it is not text."""
    bare = raw.strip()
    value = decoded(bare)
    if value is None:
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
        return Payload(raw) if (clean := clean_all([text])[0]) == text else Payload(to_bytes(clean))
    cleaned = _Cleaned([value], [bare], clean_all).line(bare, value)
    return Payload(raw if cleaned is bare else cleaned)


# -- Zstandard ----------------------------------------------------------------
# Zstandard is included in Python since 3.14. Earlier versions need a backport.


LEVEL = 9
"""Compression level. Output is a tenth smaller than at level 3. Level 19 is ten times slower."""

_PACKAGE = "compression" if sys.version_info >= (3, 14) else "backports"


def is_installed() -> bool:
    """Return True if Zstandard is available."""
    return find_spec(_PACKAGE) is not None and find_spec(f"{_PACKAGE}.zstd") is not None


def compress(data: bytes, base: bytes) -> bytes:
    """Compress data. ``base`` is similar data, which is also needed for decompression."""
    return bytes(_zstd().compress(data, level=LEVEL, zstd_dict=_prefix(base)))


def decompress(frame: bytes, base: bytes, most: int) -> bytes:
    """Decompress a frame to exactly ``most`` bytes. Raises DamagedArchiveError."""
    zstd = _zstd()
    reader = zstd.ZstdDecompressor(zstd_dict=_prefix(base))
    try:
        data = reader.decompress(frame, max_length=most + 1)
    except (zstd.ZstdError, EOFError) as error:
        raise DamagedArchiveError(f"a segment cannot be unpacked: {error}") from error
    if len(data) != most or not reader.eof:
        raise DamagedArchiveError("a segment does not have its stated number of bytes")
    return bytes(data)


def _prefix(base: bytes) -> Any:
    return _zstd().ZstdDict(base, is_raw=True).as_prefix if len(base) >= _MIN_BASE_BYTES else None


_MIN_BASE_BYTES = 8
"""Minimum size of a Zstandard dictionary in bytes."""


@cache
def _zstd() -> Any:
    try:
        return import_module(f"{_PACKAGE}.zstd")
    except ImportError as error:
        raise UnavailableError("Zstandard is missing", hint="pip install backports.zstd") from error


# -- Packs --------------------------------------------------------------------
# A pack is an append-only file with the archived content of one transcript: a title, then segments.
# A segment is a line of JSON (its head), which contains the byte range in the transcript and
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
_BLOCK_BYTES = 1024 * 1024
_SMALL_SEGMENT_BYTES = 1024 * 1024
_MIN_SEGMENTS_TO_FOLD = 32

Find = Callable[[bytes], Payload | None]
"""Function that finds a payload in another pack by its digest."""


@frozen
class Title:
    """Head of a pack: the transcript's tool and path, and the kind of contents."""

    tool: str
    path: str
    kind: str = LINES


@frozen
class Segment:
    """A section of a pack with the transcript's bytes from ``start`` to ``until``.

    ``digest``: hash of the payload. ``size``: 0 if another pack stores the payload. ``position``:
    offset in the pack. ``changed``: the transcript's modification time in nanoseconds.
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
        """True if another pack stores this segment's payload."""
        return not self.size


@frozen
class Fresh:
    """A segment to write. ``payload`` is ``None`` if another pack stores it."""

    start: int
    until: int
    digest: bytes
    payload: Payload | None
    changed: int = 0


class _Head(msgspec.Struct, omit_defaults=True):
    """JSON header of a pack or segment."""

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

    ``place``: path of the archive. ``end``: offset of the next segment. ``torn``: number of invalid
    bytes at the end after a crash or damage.
    """

    place: Path
    title: Title
    segments: list[Segment] = field(default_factory=list)
    end: int = 0
    torn: int = 0
    _base: bytes | None = None

    def payload(self, segment: Segment, find: Find) -> Payload:
        """Return the payload of a segment. Raises DamagedArchiveError."""
        if segment.is_copy:
            payload = find(segment.digest)
            if payload is None:
                raise DamagedArchiveError(f"{self.place}: a segment is missing from another pack")
            return payload
        first = next(item for item in self.segments if not item.is_copy)
        base = b"" if segment is first else self._base_of()
        with _open_pack(self.place) as file:
            file.seek(segment.body)
            data = decompress(file.read(segment.size), base, segment.length)
        if digest_of(data) != segment.digest:
            raise DamagedArchiveError(f"{self.place}: a segment has changed")
        return unpack(data)

    def payloads(self, find: Find) -> Iterator[tuple[Segment, Payload]]:
        """Yield all segments with their payloads. Raises DamagedArchiveError."""
        for segment in self.segments:
            yield segment, self.payload(segment, find)

    def append(self, fresh: Iterable[Fresh], *, durable: bool = True) -> None:
        """Append segments, and overwrite incomplete data at the end. Raises OSError."""
        with os.fdopen(files.open_file(self.place, os.O_RDWR), "r+b") as file:
            file.truncate(self.end)
            file.seek(self.end)
            for item in fresh:
                self._write(file, item)
            file.flush()
            if durable:
                os.fsync(file.fileno())

    def foldable(self) -> list[Segment]:
        """Return the small segments at the end of the pack, if there are enough to merge."""
        tail: list[Segment] = []
        for segment in reversed(self.segments):
            if (
                segment.is_copy
                or segment.length > _SMALL_SEGMENT_BYTES
                or (tail and tail[0].start != segment.until)
            ):
                break
            tail.insert(0, segment)
        return tail if len(tail) >= _MIN_SEGMENTS_TO_FOLD else []

    def fold(self, tail: Sequence[Segment], find: Find) -> None:
        """Merge the last segments into one segment. A new file replaces the pack."""
        payload = join([self.payload(segment, find) for segment in tail])
        merged = Fresh(
            tail[0].start, tail[-1].until, digest_of(payload.pack()), payload, tail[-1].changed
        )
        remaining, cut = self.segments[: -len(tail)], tail[0].position
        if not any(not segment.is_copy for segment in remaining):
            self._base = None
        with files.new_file(self.place, overwrite=True) as file, _open_pack(self.place) as old:
            for at in range(0, cut, _BLOCK_BYTES):
                file.write(old.read(min(_BLOCK_BYTES, cut - at)))
            self.segments, self.end = remaining, cut + file.write(_encode_title(self.title))
            self._write(file, merged)

    def retitle(self, title: Title) -> None:
        """Record a new path for the transcript."""
        self.title = title
        with os.fdopen(files.open_file(self.place, os.O_RDWR), "r+b") as file:
            file.truncate(self.end)
            file.seek(self.end)
            self.end += file.write(_encode_title(title))
            file.flush()
            os.fsync(file.fileno())

    def _fill(self, file: BinaryIO, fresh: Iterable[Fresh]) -> None:
        self.end = file.write(_encode_title(self.title))
        for item in fresh:
            self._write(file, item)

    def _write(self, file: BinaryIO, item: Fresh) -> None:
        head = _Head(
            start=item.start, until=item.until, digest=item.digest.hex(), changed=item.changed
        )
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

    def _base_of(self, file: BinaryIO | None = None) -> bytes:
        """Return the start of the first segment. Later segments are compressed relative to it."""
        if self._base is None:
            first = next(segment for segment in self.segments if not segment.is_copy)
            with _open_pack(self.place) as own:
                source = file or own
                place = source.tell()
                source.seek(first.body)
                self._base = decompress(source.read(first.size), b"", first.length)[:_BASE_BYTES]
                source.seek(place)
        return self._base


def create(place: Path, title: Title, fresh: Iterable[Fresh], *, durable: bool = True) -> Pack:
    """Create a pack with some segments, atomically replacing any existing pack.

    A crash can leave an incomplete pack. ``durable``: wait for the disk. Raises OSError.
    """
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
            if durable:
                os.fsync(file.fileno())
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    return pack


def load(place: Path, *, thorough: bool = False) -> Pack:
    """Load a pack. Incomplete data at its end is ignored.

    With ``thorough``, all checksums are verified, not only the last. Raises DamagedArchiveError if
    the pack is invalid or damaged before its end, and UnavailableError if it cannot be read.
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
            segment = Segment(
                head.start,
                head.until,
                bytes.fromhex(head.digest),
                head.length,
                head.size,
                pack.end,
                body,
                head.changed,
            )
            pack.segments.append(segment)
            pack.end = body + head.size
            file.seek(pack.end)
        pack.torn = size - pack.end
    if not pack.title.tool:
        raise DamagedArchiveError(f"{place} is not a pack of the archive")
    return pack


def digest_of(data: bytes) -> bytes:
    """Return a segment's id, a 16-byte hash of its cleaned content."""
    return hashlib.blake2b(data, digest_size=16).digest()


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


def _encode_title(title: Title) -> bytes:
    return msgspec.json.encode(_Head(VERSION, title.tool, title.path, title.kind)) + b"\n"


def _open_pack(place: Path) -> BinaryIO:
    try:
        return os.fdopen(files.open_file(place, os.O_RDONLY), "rb")
    except FileNotFoundError as error:
        raise DamagedArchiveError(f"{place} is gone") from error
    except OSError as error:
        hint = "check its permissions, and the disk"
        raise UnavailableError(f"cannot read {place}: {error.strerror}", hint=hint) from error
