"""What a segment holds: lines of a transcript without secrets, and how long those were that changed."""

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
from nacre.errors import ArchiveDamaged, Unavailable

_SHIFTS = msgspec.json.Decoder(list[tuple[int, int]])


@dataclass(frozen=True, slots=True)
class Payload:
    """Text that was cut at line ends. ``lengths`` has (number, bytes) of lines that were of another length.

    With these, every line keeps the offset that it had in the transcript: some tools' turns are known by it alone.
    """

    text: bytes
    lengths: tuple[tuple[int, int], ...] = ()

    def pack(self) -> bytes:
        """As bytes."""
        return msgspec.json.encode(self.lengths) + b"\n" + self.text

    def lines(self, start: int) -> Iterator[tuple[int, bytes]]:
        """Lines, blank ones too, each with its offset in the transcript; ``start`` is that of the first one."""
        were = dict(self.lengths)
        for number, line in enumerate(self.text.split(b"\n")):
            yield start, line
            start += were.get(number, len(line)) + 1


def unpack(data: bytes) -> Payload:
    """The reverse of :meth:`Payload.pack`. Raises ArchiveDamaged."""
    head, _, text = data.partition(b"\n")
    try:
        return Payload(text, tuple(_SHIFTS.decode(head)))
    except msgspec.DecodeError as error:
        raise ArchiveDamaged(f"a segment cannot be read: {error}") from error


def join(payloads: Sequence[Payload]) -> Payload:
    """Payloads that follow each other, as one."""
    lengths: list[tuple[int, int]] = []
    before = 0
    for payload in payloads:
        lengths += [(number + before, length) for number, length in payload.lengths]
        before += payload.text.count(b"\n")
    return Payload(b"".join(payload.text for payload in payloads), tuple(lengths))


# ----------------------------------------------------------------------------
# What in a value of JSON is looked at for secrets: texts, names, and short texts and numbers with
# their names.


CleanAll = Callable[[Sequence[str]], Sequence[str]]
"""Texts without secrets, in the same order."""

PAIR_CHARACTERS = 400
"""A longer value says itself what it is; a shorter one may be a secret by its name alone."""

FindSuspects = Callable[[Sequence[bytes]], Collection[int]]
"""The numbers of those pieces of text in which a secret may be."""

_DECODER = msgspec.json.Decoder()
ENCODED_CHARACTERS = 1000
_ENCODED = re.compile(r"(?:data:[\w.+/;=-]+,)?[A-Za-z0-9+/_-]+={0,2}")
_SEALED = frozenset({"signature", "thinkingSignature", "thoughtSignature", "encrypted_content"})
"""What a model's maker sealed: no one can read it, and its own tool wants it back."""

_TELLING = re.compile(r"(?i)pass|pwd|pin|secret|token|key|cred|auth|code")


def decoded(line: bytes) -> Any:
    """The object or list in a line; ``None`` where it is none."""
    if line[:1] not in (b"{", b"["):
        return None
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def texts_in(value: Any) -> list[str]:
    """What is looked at: every text and name but encoded bytes, and short ones with the name before them."""
    texts: list[str] = []
    _collect(value, "", texts)
    return texts


def holds_encoded(value: Any, name: str = "") -> bool:
    """Whether any text is bytes that were written as one."""
    if isinstance(value, str):
        return is_encoded(value, name)
    if isinstance(value, dict):
        return any(holds_encoded(item, key) for key, item in value.items())
    return isinstance(value, list) and any(holds_encoded(item, name) for item in value)


def is_telling(value: Any, name: str) -> bool:
    """Whether a number may be a secret by its name."""
    return isinstance(value, int | float) and not isinstance(value, bool) and is_telling_name(name)


def is_telling_name(name: str) -> bool:
    """Whether a number of that name may be a secret."""
    return _TELLING.search(name) is not None


def is_encoded(text: str, name: str) -> bool:
    """Whether a text is bytes that were written as one, and nobody needs back."""
    return (
        len(text) >= ENCODED_CHARACTERS
        and name not in _SEALED
        and _ENCODED.fullmatch(text) is not None
    )


def pair(name: str, text: str) -> str:
    """A text with its name, as rules know it."""
    return f'"{name}": "{text}"'


def changes(texts: dict[str, None], clean_all: CleanAll) -> dict[str, str]:
    """The texts that become others, and which."""
    wanted = list(texts)
    return {old: new for old, new in zip(wanted, clean_all(wanted), strict=True) if old != new}


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


# ----------------------------------------------------------------------------
# Tell from the bytes of lines of JSON which of them nothing has to be taken out of: nearly all, and
# at little cost.
#
# Strings are found by one regular expression, each with its name. What was looked at once is not
# looked at again, and
# only a line with a string that changes is taken apart, by :mod:`nacre.store.packs`, which alone says
# what is kept.


_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_NUMBER = rb"-?[0-9][0-9.eE+-]*+"
_STRINGS = rb"\[\s*+%b(?:\s*+,\s*+%b)*+\s*+\]" % (_STRING, _STRING)
_TOKENS = re.compile(
    rb"%b(?:\s*+:\s*+(?:%b|%b|%b|\[)?)?" % (_STRING, _STRING, _NUMBER, _STRINGS), re.DOTALL
)
"""A name with its string, number or strings, or with whatever else it names; or a string in a list of other things."""

_VALID = msgspec.json.Decoder(msgspec.Raw)
_WHOLE = re.compile(rb":\s*-?[0-9]{1,18}\Z")
"""A number that is written in one way only."""

_PLAIN_BYTES = 400
_SHORT_BYTES = 200
_MOST_KNOWN = 100_000
"""About 15 MB."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """What sifting some lines told.

    ``suspects`` are the numbers of lines that are to be taken apart, ``sure`` those in which something changes;
    ``asked`` are texts that were looked at, and ``changed`` those of them that become others.
    """

    suspects: list[int]
    sure: set[int]
    asked: dict[str, None]
    changed: dict[str, str]


class Sieve:
    """Sifts lines; remembers, within bounds, short strings in which nothing changes."""

    def __init__(self, clean_all: CleanAll, find_suspects: FindSuspects | None = None) -> None:
        self._clean_all = clean_all
        self._find_suspects = find_suspects
        self._known: set[bytes] = set()

    def sift(self, lines: Sequence[bytes]) -> Sifted:
        """Which of some lines may change. Lines that are no JSON are among them."""
        fresh: dict[bytes, list[int]] = {}
        suspects: set[int] = set()
        for number, line in enumerate(lines):
            if _is_json(line):
                for token in set(_TOKENS.findall(line)) - self._known:
                    fresh.setdefault(token, []).append(number)
            elif line and not line.isspace():
                suspects.add(number)
        texts = {token: _texts_of(token) for token in self._to_ask(fresh)}
        asked = {text: None for found in texts.values() if found for text in found}
        changed = changes(asked, self._clean_all)
        dirty = {
            token
            for token, found in texts.items()
            if found and not changed.keys().isdisjoint(found)
        }
        odd = dirty.union(token for token, found in texts.items() if found is None)
        suspects.update(number for token in odd for number in fresh[token])
        self._remember(fresh.keys() - odd)
        sure = {number for token in dirty for number in fresh[token]}
        return Sifted(sorted(suspects), sure, asked, changed)

    def _to_ask(self, fresh: Collection[bytes]) -> Iterable[bytes]:
        """All but the tokens that say by their bytes that nothing in them is a secret, under whichever mark."""
        if self._find_suspects is None:
            return fresh
        plain = [token for token in fresh if _is_plain(token)]
        if not _is_text(plain):
            return fresh
        suspects = self._find_suspects(plain)
        spared = {token for number, token in enumerate(plain) if number not in suspects}
        return [token for token in fresh if token not in spared]

    def _remember(self, tokens: set[bytes]) -> None:
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        self._known.update(token for token in tokens if len(token) <= _SHORT_BYTES)


def _is_json(line: bytes) -> bool:
    """Whether a line is one value of JSON, if all of its strings are."""
    if line[:1] not in (b"{", b"["):
        return False
    try:
        _VALID.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _is_plain(token: bytes) -> bool:
    """Whether what is looked at in a token stands there as it is, but for the marks between."""
    if len(token) > _PLAIN_BYTES or b"\\" in token:
        return False
    last = token[-1:]
    if last == b'"':
        return token.find(b'"', 1) != len(token) - 1
    return last == b"]" or _WHOLE.search(token) is not None


def _is_text(tokens: Sequence[bytes]) -> bool:
    try:
        b"\n".join(tokens).decode()
    except UnicodeDecodeError:
        return False
    return True


def _texts_of(token: bytes) -> list[str] | None:
    """What is to be looked at in a token; ``None`` where the line must be taken apart to know."""
    last = token.rstrip()[-1:]
    if last in b":[":
        name = decoded(b"[" + token[: token.rindex(b":")] + b"]")
        return None if name is None or (last == b"[" and is_telling_name(name[0])) else list(name)
    value = decoded(b"{" + token + b"}")
    if value is None or (len(token) > ENCODED_CHARACTERS and holds_encoded(value)):
        return None
    return texts_in(value)


# ----------------------------------------------------------------------------
# Take secrets out of lines of JSON, whoever reads them or not, so that they stay JSON.


class Cleaner:
    """Cleans transcripts, one part after another; what it learned of one helps with the next."""

    def __init__(self, clean_all: CleanAll, find_suspects: FindSuspects | None = None) -> None:
        """``find_suspects`` spares ``clean_all`` most of the texts."""
        self._clean_all = clean_all
        self._sieve = Sieve(clean_all, find_suspects)

    def lines(self, raw: bytes) -> Payload:
        """Lines of a transcript as the archive keeps them.

        Every text in them is looked at by itself and, where it is short, together with its name. Images and other
        bytes that were written as text are left out.
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
                lines[number] = msgspec.json.encode(
                    value
                )  # what changed stood under a name that comes twice: it goes
            if len(lines[number]) != len(line):
                lengths.append((number, len(line)))
        return Payload(b"\n".join(lines), tuple(lengths))


def clean_lines(raw: bytes, clean_all: CleanAll) -> Payload:
    """What :meth:`Cleaner.lines` says of some lines."""
    return Cleaner(clean_all).lines(raw)


def texts_of(line: bytes) -> Iterator[str]:
    """Every text and name in a line; the line itself where it is no JSON."""
    value = decoded(line)
    yield from (line.decode("utf-8", "replace"),) if value is None else texts_in(value)


class _Cleaned:
    """What the texts of some lines are to be; those that stay as they are are not in it."""

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
                texts[line.decode("utf-8", "replace")] = None
        if sifted is None:
            self._changed = changes(texts, clean_all)
        else:
            rest = {text: None for text in texts if text not in sifted.asked}
            self._changed = sifted.changed | changes(rest, clean_all)

    def line(self, line: bytes, value: Any) -> bytes:
        """A line as it is kept: untouched, where nothing in it changes."""
        if value is None:
            new = self._changed.get(line.decode("utf-8", "replace"))
            return line if new is None else new.replace("\n", " ").encode("utf-8", "replace")
        kept = self._value(value, "")
        return line if kept is value else msgspec.json.encode(kept)

    def _value(self, value: Any, name: str) -> Any:
        """A value without secrets; the same object where there are none."""
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
    """The value in a pair that was cleaned; where that cannot be told, nothing of it."""
    before = f'"{name}": "'
    return (
        paired[len(before) : -1]
        if paired.startswith(before) and paired.endswith('"')
        else "[REDACTED:value]"
    )


def clean_whole(raw: bytes, clean_all: CleanAll) -> Payload | None:
    """A transcript that is one text, or one value of JSON over many lines; ``None`` where it is no text."""
    bare = raw.strip()
    value = decoded(bare)
    if value is None:
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None
        return (
            Payload(raw)
            if (clean := clean_all([text])[0]) == text
            else Payload(clean.encode("utf-8", "replace"))
        )
    kept = _Cleaned([value], [bare], clean_all).line(bare, value)
    return Payload(raw if kept is bare else kept)


# ----------------------------------------------------------------------------
# Zstandard: part of Python from 3.14 on, its backport before that. Loaded when something is packed or
# unpacked.


LEVEL = 9
"""A tenth smaller than what level 3 makes; level 19 gains less than that and takes ten times as long."""

_PACKAGE = "compression" if sys.version_info >= (3, 14) else "backports"


def is_installed() -> bool:
    """Whether there is anything to pack with."""
    return find_spec(_PACKAGE) is not None and find_spec(f"{_PACKAGE}.zstd") is not None


def compress(data: bytes, base: bytes) -> bytes:
    """One frame. ``base`` is text that looks alike, and must be given again to read it; it may be empty."""
    return bytes(_zstd().compress(data, level=LEVEL, zstd_dict=_prefix(base)))


def decompress(frame: bytes, base: bytes, most: int) -> bytes:
    """What a frame holds, at most so many bytes. Raises ArchiveDamaged."""
    zstd = _zstd()
    reader = zstd.ZstdDecompressor(zstd_dict=_prefix(base))
    try:
        data = reader.decompress(frame, max_length=most + 1)
    except (zstd.ZstdError, EOFError) as error:
        raise ArchiveDamaged(f"a segment cannot be unpacked: {error}") from error
    if len(data) != most or not reader.eof:
        raise ArchiveDamaged("a segment holds another number of bytes than it says")
    return bytes(data)


def _prefix(base: bytes) -> Any:
    return _zstd().ZstdDict(base, is_raw=True).as_prefix if len(base) >= _LEAST_BASE else None


_LEAST_BASE = 8
"""Zstandard takes no shorter one."""


@cache
def _zstd() -> Any:
    try:
        return import_module(f"{_PACKAGE}.zstd")
    except ImportError as error:
        raise Unavailable("Zstandard is missing", hint="pip install backports.zstd") from error


# ----------------------------------------------------------------------------
# A pack: all that the archive has of one transcript, in one file that only grows.
#
# A title, then segments. Each is a line of JSON, which says which bytes of the transcript it stands
# for and what it
# holds, and a Zstandard frame. All that the database knows of a pack can be read from it. A tail that
# was cut off, by a
# crash or a full disk, is recognised by its checksum and written over.


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
                raise ArchiveDamaged(
                    f"{self.place}: a segment that another pack should have is gone"
                )
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
        with os.fdopen(files.open_file(self.place, os.O_RDWR), "r+b") as file:
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
            if (
                segment.is_copy
                or segment.length > _SMALL_BYTES
                or (tail and tail[0].start != segment.until)
            ):
                break
            tail.insert(0, segment)
        return tail if len(tail) >= _MANY_SMALL else []

    def fold(self, tail: Sequence[Segment], find: Find) -> None:
        """Make one segment of the last ones, in a new file that takes the place of this one."""
        payload = join([self.payload(segment, find) for segment in tail])
        whole = Fresh(
            tail[0].start, tail[-1].until, digest_of(payload.pack()), payload, tail[-1].changed
        )
        kept, cut = self.segments[: -len(tail)], tail[0].position
        if not any(not segment.is_copy for segment in kept):
            self._base = None
        with files.new_file(self.place, overwrite=True) as file, _opened(self.place) as old:
            for at in range(0, cut, _BLOCK_BYTES):
                file.write(old.read(min(_BLOCK_BYTES, cut - at)))
            self.segments, self.end = kept, cut + file.write(_titled(self.title))
            self._write(file, whole)

    def retitle(self, title: Title) -> None:
        """The transcript goes by another name now."""
        self.title = title
        with os.fdopen(files.open_file(self.place, os.O_RDWR), "r+b") as file:
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
        return os.fdopen(files.open_file(place, os.O_RDONLY), "rb")
    except FileNotFoundError as error:
        raise ArchiveDamaged(f"{place} is gone") from error
    except OSError as error:
        hint = "check its permissions, and the disk"
        raise Unavailable(f"cannot read {place}: {error.strerror}", hint=hint) from error
