"""JSON lines as they really are: glued objects, lone surrogates, many ways to write a time."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import msgspec

from nacre.base.files import statements
from nacre.base.ids import from_ms
from nacre.base.times import parsed
from nacre.errors import NacreError, TranscriptUnreadable
from nacre.values.session import Cursor, Session, Tally, Turn

T = TypeVar("T")

_RAW_DECODER = json.JSONDecoder()
_MILLISECONDS_FROM = 100_000_000_000
"""Numbers above this are epoch milliseconds, below it seconds (the border is the year 5138, or March 1973)."""


@dataclass(frozen=True, slots=True)
class SplitLine:
    """The objects found on one line, and whether something on it was not JSON."""

    objects: tuple[bytes, ...]
    torn: bool


def split_objects(line: bytes) -> SplitLine:
    """Split a line that may hold several JSON objects glued together."""
    if b"}{" not in line:
        return SplitLine((line,), torn=False)
    try:
        msgspec.json.decode(line)
        return SplitLine((line,), torn=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _split_glued(line.decode("utf-8", errors="replace"))


def _split_glued(text: str) -> SplitLine:
    found: list[bytes] = []
    at = 0
    while at < len(text):
        try:
            _, end = _RAW_DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return SplitLine(tuple(found), torn=True)
        found.append(text[at:end].encode("utf-8", errors="replace"))
        at = end
        while at < len(text) and text[at].isspace():
            at += 1
    return SplitLine(tuple(found), torn=False)


def decode(decoder: msgspec.json.Decoder[T], raw: bytes) -> T | None:
    """Decode one object; ``None`` when it is not valid.

    Lone surrogates in escapes and bytes that are not UTF-8 are replaced rather than refused; NaN and infinities, which
    Python writes, are nothing.
    """
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        value: Any = json.loads(
            raw.decode("utf-8", errors="replace"), parse_constant=lambda _: None
        )
        mended = json.dumps(value, ensure_ascii=False).encode("utf-8", errors="replace")
        return decoder.decode(mended)
    except (ValueError, RecursionError):
        return None


def parse_time(value: object) -> datetime | None:
    """A time as aware UTC, or ``None``: ISO 8601, epoch seconds or milliseconds, as number or digits."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        text = value.strip()
        if not text.replace(".", "", 1).isdigit():
            return parsed(text)
        value = text
    elif not isinstance(value, int | float):
        return None
    try:
        number = float(value)
        return from_ms(round(number if number > _MILLISECONDS_FROM else number * 1000))
    except (OverflowError, ValueError):  # no number, or not a finite one
        return None


# ----------------------------------------------------------------------------
# What an adapter is, and what it is given.


T_ADAPTER = TypeVar("T_ADAPTER")

HEAD_BYTES = 65_536
_ANY = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True)
class Places:
    """Where to look for transcripts: the user's home folder, the environment's variables, ``sys.platform``.

    ``projects`` are the folders in which sessions are known to have worked: some tools keep transcripts there. ``own``
    is nacre's own home, where it is known.
    """

    home: Path
    environ: Mapping[str, str]
    platform: str
    projects: tuple[Path, ...] = ()
    own: Path | None = None


@dataclass(frozen=True, slots=True)
class Root:
    """A folder in which a tool keeps transcripts, and the glob patterns (relative to it) that match them."""

    folder: Path
    patterns: tuple[str, ...]


class Tables(Protocol):
    """A look into a database that a tool owns, also while the tool writes: nothing in or beside it changes."""

    def columns(self, table: str) -> tuple[str, ...]:
        """The columns of a table; none when it does not exist."""

    def all(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """All rows of a statement. The database is free again when this returns: ask for what one session needs,
        by an index, rather than for everything."""


@dataclass(frozen=True)
class Head:
    """The first bytes of a file, for sniffing: 64 KiB, or the first line where that is longer.

    Of a SQLite database ``database`` is open for the time of sniffing; the data is its first bytes all the same.
    """

    path: Path
    data: bytes
    database: Tables | None = None

    @cached_property
    def text(self) -> str:
        """The head as text; what is not UTF-8 is replaced."""
        return self.data.decode("utf-8", errors="replace")

    @cached_property
    def objects(self) -> tuple[dict[str, Any], ...]:
        """The JSON objects on the first 20 complete lines; lines that are not objects are left out.

        Where most lines are none there are none: a text that quotes a record is not a transcript.
        """
        lines = self.data.split(b"\n")
        if len(self.data) >= HEAD_BYTES and len(lines) > 1:
            lines.pop()
        found: list[dict[str, Any]] = []
        first = [line for line in lines if line.strip()][:20]
        if sum(line.lstrip()[:1] == b"{" for line in first) * 2 < len(first):
            return ()
        for line in first:
            for raw in split_objects(line).objects:
                value = decode(_ANY, raw)
                if isinstance(value, dict):
                    found.append(value)
        return tuple(found)


class Source(Protocol):
    """The transcript an adapter parses; :mod:`nacre.readers.adapter` has the real one.

    ``carry`` survives between two incremental readings of the same file: an adapter puts there what it needs to
    go on in the middle (session id, working directory, model). It holds JSON values only. ``identities`` are the names
    under which the owner writes in chats (``owner.identities``).
    """

    path: Path
    identities: tuple[str, ...]
    carry: dict[str, Any]
    database: Tables | None

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Complete lines, each with its byte offset, from where the last reading ended. Torn last lines wait.

        Blank lines are left out; a line longer than the limit is skipped and counted."""

    def text(self) -> str:
        """The whole file as text, for formats that are not lines of records."""

    def hold(self, offset: int) -> None:
        """Ask that the next reading starts at ``offset`` again, because a message there may still grow."""

    def unknown(self, record: str) -> None:
        """Count a record type or version the adapter does not know."""

    def corrupt(self) -> None:
        """Count a line that cannot be understood."""

    def look(self, path: Path) -> Tables | None:
        """A look into another database of the same tool; ``None`` when there is none that can be read."""


def records(
    source: Source, line: bytes, decoder: msgspec.json.Decoder[T_ADAPTER]
) -> Iterator[T_ADAPTER]:
    """The records on a line, nearly always one; what on it is none is counted."""
    try:
        record = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        yield from _records_apart(source, line, decoder)
    else:
        yield record


def _records_apart(
    source: Source, line: bytes, decoder: msgspec.json.Decoder[T_ADAPTER]
) -> Iterator[T_ADAPTER]:
    split = split_objects(line)
    if split.torn:
        source.corrupt()
    for raw in split.objects:
        record = decode(decoder, raw)
        if record is None:
            source.corrupt()
        else:
            yield record


@dataclass(frozen=True, slots=True)
class Adapter:
    """How to find, recognise and read one tool's transcripts.

    ``parse`` yields a :class:`Session` before its turns, and again whenever more is known of it (a title, a
    model) or when the file turns to another session; every :class:`Turn` belongs to the last session yielded.
    ``whole`` formats are read again from the start whenever the file changed, and what no longer occurs in it is
    forgotten; the others continue. Where such a file is torn, ``parse`` raises TranscriptUnreadable, so that what was
    read of it before stays. Several adapters may read one tool, each a format of its own.
    ``guesses`` formats take nearly anything: whenever a file of theirs changed, it is asked again what it is.
    ``beside`` names the files that belong to one of its transcripts, for any path: where they change, it changed.
    ``environment`` names the variables that ``roots`` reads: a watcher that the system starts is given these alone.

    ``resume`` is the command by which the tool opens a session again, ``{id}`` standing for its id; none where it has
    no such command.

    ``versions``, ``reads`` and ``leaves_out`` are for people (docs/agents.md): the tool's versions of which files were
    read, what is read of them, and what is not.
    """

    tool: str
    label: str
    roots: Callable[[Places], Sequence[Root]]
    sniff: Callable[[Head], bool]
    parse: Callable[[Source], Iterator[Session | Turn]]
    whole: bool = False
    guesses: bool = False
    versions: str = ""
    reads: tuple[str, ...] = ()
    leaves_out: tuple[str, ...] = ()
    beside: Callable[[Path], Iterable[Path]] | None = None
    environment: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()


# ----------------------------------------------------------------------------
# Read a transcript file from where the last reading ended, within bounded memory.


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
        raise TranscriptUnreadable(
            f"cannot read {path}: {error.strerror}", hint=_permission_hint(error)
        ) from error


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
        raise TranscriptUnreadable(
            f"cannot read {path}: {error.strerror}", hint=_permission_hint(error)
        ) from error
    return Head(path, b"".join(found)) if found else None


def is_too_long(path: Path) -> bool:
    """Whether a file may hold records, and all its lines are too long to be read. Raises TranscriptUnreadable."""
    return (
        path.stat().st_size > MAX_LINE_BYTES and ".jsonl" in path.name and read_later(path) is None
    )


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
    """The real :class:`~nacre.readers.adapter.Source`: one file, continued at a cursor.

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
            raise TranscriptUnreadable(
                f"cannot read {path}: {error.strerror}", hint=_permission_hint(error)
            ) from error
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


# ----------------------------------------------------------------------------
# Transcripts that are one JSON document: recognised by their outermost keys, read as a whole.


_ANY_WHOLE_JSON: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_TOKEN = re.compile(r'"((?:[^"\\]++|\\.)*+)("?)|[{}\[\]:]', re.DOTALL)
_MOST_BESIDE = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Shape:
    """What a JSON document looks like from outside: an array or an object, and the keys of its (first) object."""

    is_array: bool
    keys: frozenset[str]


@lru_cache(maxsize=1)
def shape_of(head: Head) -> Shape | None:
    """The shape of the document that a file begins with, as far as the head goes; ``None`` when it is no JSON."""
    text = head.text.lstrip("\ufeff \t\r\n")
    if text[:1] not in ("{", "["):
        return None
    is_array = text[0] == "["
    wanted = 2 if is_array else 1
    keys: set[str] = set()
    depth, last = 0, ""
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth < wanted and (keys or depth < 1):
                break
        elif mark == ":":
            keys |= {last} if depth == wanted else set()
        elif token[2]:
            last = token[1]
    return Shape(is_array, frozenset(keys))


def document(source: Source) -> Any:
    """The JSON document in a file. Raises TranscriptUnreadable when it is not whole, as while a tool writes it:
    then what was read of it before stays.
    """
    value = decode(_ANY_WHOLE_JSON, _encoded(source.text()))
    if value is None:
        raise torn(source.path)
    return value


def documents(source: Source) -> Iterator[dict[str, Any]]:
    """The objects in a file: one document, or one a line. A torn last line waits.

    Raises TranscriptUnreadable when not even the first is whole.
    """
    text = source.text()
    whole = decode(_ANY_WHOLE_JSON, _encoded(text))
    if whole is not None:
        yield from [whole] if isinstance(whole, dict) else ()
        return
    *lines, last = text.split("\n")
    first = split_objects(_encoded(next(filter(str.strip, lines), "")))
    if not any(decode(_ANY_WHOLE_JSON, raw) for raw in first.objects):
        raise torn(source.path)
    lines += [last] if decode(_ANY_WHOLE_JSON, _encoded(last)) is not None else []
    for line in filter(str.strip, lines):
        yield from (
            one for one in records(source, _encoded(line), _ANY_WHOLE_JSON) if isinstance(one, dict)
        )


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")


def torn(path: Path) -> TranscriptUnreadable:
    """The error that says that a document is not whole."""
    return TranscriptUnreadable(
        f"{path} is not a whole JSON document",
        hint="it is read again once the tool has finished writing it",
    )


def beside(path: Path, most: int = _MOST_BESIDE) -> Any:
    """The JSON document in a file beside a transcript; ``None`` when none can be read, or it is larger."""
    try:
        if path.stat().st_size > most:
            return None
        return decode(_ANY_WHOLE_JSON, path.read_bytes())
    except OSError:
        return None


def modified(source: Source) -> datetime | None:
    """When the file was last written, for formats that know no times."""
    try:
        return datetime.fromtimestamp(source.path.stat().st_mtime, UTC)
    except (OSError, OverflowError, ValueError):
        return None


def mapping(value: Any, *keys: str) -> Mapping[str, Any]:
    """The object below some keys; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def objects(value: Any, key: str) -> list[Mapping[str, Any]]:
    """The objects in the list at a key; empty where there is none."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def string(value: Any, *keys: str) -> str | None:
    """The first of some fields that is a text which says something."""
    for key in keys:
        found = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(found, str) and found.strip():
            return found
    return None


def total(values: Mapping[str, Any], *names: str) -> int:
    """The sum of the counts under some names; what is no count is nothing."""
    found = (values.get(name) for name in names)
    return sum(value for value in found if type(value) is int)


# ----------------------------------------------------------------------------
# Databases as transcripts: many sessions in one file that grows in all places.
#
# A reading asks first which sessions changed, by marks that cost an index to look up, and reads those
# anew, each from its
# beginning: turns have the ids of the tool, so that what is known already stays as it is.


MAGIC = b"SQLite format 3\x00"

SUFFIXES = (".db", ".sqlite", ".sqlite3", ".vscdb")
"""How the names of the databases end in which tools keep sessions."""

Look = Callable[[Path], Tables]


def statement(name: str) -> str:
    """A statement of ``readers/sql/*.sql``. Raises KeyError."""
    return statements("nacre.readers", "sql")[name]


def as_bytes(value: object) -> bytes:
    """A value as it is stored, as text or as bytes; nothing where it is neither."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return value if isinstance(value, bytes) else b""


def log_of(path: Path) -> Iterator[Path]:
    """The write-ahead log of a database: what was written last may lie there alone."""
    if path.name.endswith(SUFFIXES):
        yield path.with_name(f"{path.name}-wal")


def tables_of(source: Source) -> Tables:
    """The database that a source is. Raises TranscriptUnreadable when it is none."""
    if source.database is None:
        raise TranscriptUnreadable(f"{source.path} is no database")
    return source.database


class DatabaseSource:
    """The :class:`~nacre.readers.adapter.Source` of a database. ``look`` opens others beside it.

    The carry of the last reading is handed on as it is: what is new is found out by marks, never by offsets.
    """

    identities: tuple[str, ...] = ()

    def __init__(
        self, path: Path, database: Tables, look: Look, previous: Cursor | None = None
    ) -> None:
        self.path = path
        self.database: Tables | None = _Counted(database, self)
        self.carry: dict[str, Any] = dict(previous.carry) if previous else {}
        self.tally = Tally()
        self.bytes_read = 0
        self._look = look
        self._seen = path.stat()

    @property
    def start(self) -> int:
        """As if the file had been read from here on: so that its end less this is what was really read."""
        return self._seen.st_size - self.bytes_read

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """A database has no lines."""
        return iter(())

    def text(self) -> str:
        """A database is no text. Raises TranscriptUnreadable."""
        raise TranscriptUnreadable(f"{self.path} is a database")

    def hold(self, offset: int) -> None:
        """A database has no offsets."""

    def unknown(self, record: str) -> None:
        """Count a record type the adapter does not know."""
        self.tally.unknown[record[:80]] += 1

    def corrupt(self) -> None:
        """Count a row that cannot be understood."""
        self.tally.corrupt += 1

    def look(self, path: Path) -> Tables | None:
        """A look into a database beside this one."""
        try:
            return self._look(path)
        except (NacreError, OSError):
            return None

    def cursor(self) -> Cursor:
        """What the next reading is to know."""
        return Cursor(
            inode=self._seen.st_ino,
            size=self._seen.st_size,
            mtime_ns=self._seen.st_mtime_ns,
            carry=self.carry,
        )


class _Counted:
    """Tables that count what is taken from them."""

    def __init__(self, tables: Tables, source: DatabaseSource) -> None:
        self._tables = tables
        self._source = source

    def columns(self, table: str) -> tuple[str, ...]:
        return self._tables.columns(table)

    def all(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        rows = self._tables.all(statement, **values)
        self._source.bytes_read += sum(
            len(value) for row in rows for value in row if isinstance(value, str | bytes)
        )
        return rows


class Part:
    """One session of a source that has several, as a :class:`~nacre.readers.adapter.Source` of its own.

    It is read from its beginning each time, so nothing is carried over.
    """

    database: Tables | None = None

    def __init__(self, source: Source, records: Iterable[bytes] = ()) -> None:
        self.path = source.path
        self.identities = source.identities
        self.carry: dict[str, Any] = {}
        self._source = source
        self._records = records

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """The records, each with its number."""
        return enumerate(self._records)

    def text(self) -> str:
        """A part is no text. Raises TranscriptUnreadable."""
        raise TranscriptUnreadable(f"{self.path} is a database")

    def hold(self, offset: int) -> None:
        """A part is read from its beginning each time."""

    def unknown(self, record: str) -> None:
        """Count a record type the adapter does not know."""
        self._source.unknown(record)

    def corrupt(self) -> None:
        """Count a record that cannot be understood."""
        self._source.corrupt()

    def look(self, path: Path) -> Tables | None:
        """A look into another database of the same tool."""
        return self._source.look(path)


class Marks:
    """Which sessions of a database were read, and what they looked like then; kept in the carry.

    ``save`` belongs at the end of a reading: one that fails is done again.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._before = frozenset(source.carry.get("marks", ()))
        self._now: dict[int, None] = {}

    def is_new(self, session: str, *mark: object) -> bool:
        """Whether a session looks other than when it was read last, or was never read."""
        digest = hashlib.blake2b(
            "\0".join(map(str, (session, *mark))).encode("utf-8", "replace"), digest_size=7
        )
        known = int.from_bytes(digest.digest())  # numbers need not be searched for secrets
        self._now[known] = None
        return known not in self._before

    def save(self) -> None:
        """Remember the sessions asked about."""
        self._source.carry["marks"] = list(self._now)
