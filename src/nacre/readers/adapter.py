"""The adapter protocol, and shared code for reading transcripts.

Transcripts are JSON lines, JSON documents or databases.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import msgspec

from nacre.base.frozen import frozen
from nacre.base.ids import from_ms
from nacre.base.lazy import zstd
from nacre.base.plain import JsonObject, Values, objects_in
from nacre.base.sql import statements
from nacre.base.times import in_utc, parsed
from nacre.errors import NacreError, UnreadableTranscriptError
from nacre.values.session import Cursor, Session, Tally, Turn

T = TypeVar("T")

Items = Iterator[Session | Turn]
"""Iterator over sessions, each followed by its turns."""

ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
"""Decoder from JSON to built-in types."""

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RAW_DECODER = json.JSONDecoder()
_MILLISECONDS_FROM = 100_000_000_000
"""Timestamps of at least this size are in milliseconds since 1970; others are in seconds."""


def split_objects(line: bytes) -> tuple[list[bytes], bool]:
    """Return the concatenated JSON objects on a line, and True if part of it is invalid."""
    if b"}{" not in line:
        return [line], False
    try:
        msgspec.json.decode(line)
        return [line], False
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = line.decode("utf-8", errors="replace")
    objects: list[bytes] = []
    at = 0
    while at < len(text):
        try:
            _, end = _RAW_DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return objects, True
        objects.append(_encode(text[at:end]))
        at = len(text) - len(text[end:].lstrip())
    return objects, False


def decode(decoder: msgspec.json.Decoder[T], raw: bytes | msgspec.Raw) -> T | None:
    """Decode a JSON object, or return None if it is invalid.

    Invalid UTF-8 and lone surrogates are replaced. NaN and infinity become null.
    """
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        value: Any = json.loads(
            bytes(raw).decode("utf-8", errors="replace"), parse_constant=lambda _: None
        )
        return decoder.decode(_encode(json.dumps(value, ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None


def plain(raw: bytes | str | msgspec.Raw) -> Any:
    """Decode JSON to built-in types, or return None if it is invalid."""
    return decode(ANY, _encode(raw) if isinstance(raw, str) else raw)


def parse_time(value: object) -> datetime | None:
    """Return the UTC time of an ISO 8601 string, or of a Unix time in seconds or milliseconds.

    Return None for anything else.
    """
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
    except (OverflowError, ValueError):  # not a number, or not finite
        return None


def local_time(value: object) -> datetime | None:
    """Parse a timestamp like :func:`parse_time`, but assume local time if it has no time zone."""
    with suppress(OSError, OverflowError, TypeError, ValueError):
        return in_utc(datetime.fromisoformat(value))  # type: ignore[arg-type]
    return parse_time(value)


# -- Adapters and their input --------------------------------------------------


HEAD_BYTES = 65_536


@frozen
class Places:
    """The folders and environment variables that locate the tools' transcripts.

    ``platform`` is a ``sys.platform`` value. ``projects`` are the folders of known sessions, where
    some tools keep transcripts. ``own`` is nacre's home, if known.
    """

    home: Path
    environ: Mapping[str, str]
    platform: str
    projects: tuple[Path, ...] = ()
    own: Path | None = None

    def folder(self, variable: str, *default: str) -> Path:
        """Return the folder named by a variable, or else ``default`` in the user's home."""
        return Path(self.environ.get(variable) or self.home.joinpath(*default)).expanduser()

    def data(self, *, is_native: bool = False) -> Path:
        """Return the user's application data folder. On macOS, ``is_native`` selects its own."""
        if self.platform == "win32":
            return self.folder("LOCALAPPDATA", "AppData", "Local")
        if self.platform == "darwin" and is_native:
            return self.home / "Library" / "Application Support"
        return self.folder("XDG_DATA_HOME", ".local", "share")


@frozen
class Root:
    """A folder of transcripts, and the glob patterns of the transcript files in it."""

    folder: Path
    patterns: tuple[str, ...]


def under(
    variable: str, default: str, folder: str, *patterns: str
) -> Callable[[Places], list[Root]]:
    """Return a function for ``Adapter.roots`` of a tool with one data folder.

    An environment variable names that folder, or else it is ``default`` in the user's home.
    """
    return lambda places: [Root(places.folder(variable, default) / folder, patterns)]


class Tables(Protocol):
    """A read-only view of a tool's database."""

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the names of a table's columns, or none if it does not exist."""

    def all(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run a query and return all its rows.

        The query should use an index, because it locks the tool's database for reading.
        """


@dataclass(frozen=True)
class Head:
    """The start of a file: the first 64 KiB, or the whole first line if that is longer.

    ``database`` is open only while the format of a SQLite file is being detected.
    """

    path: Path
    data: bytes
    database: Tables | None = None

    @cached_property
    def text(self) -> str:
        return self.data.decode("utf-8", errors="replace")

    @cached_property
    def objects(self) -> tuple[JsonObject, ...]:
        """The JSON objects on the first 20 complete lines.

        This is empty if most lines are not objects, because any text can quote a record.
        """
        lines = self.data.split(b"\n")
        if len(self.data) >= HEAD_BYTES and len(lines) > 1:
            lines.pop()
        objects: list[JsonObject] = []
        candidates = [line for line in lines if line.strip()][:20]
        if sum(line.lstrip()[:1] == b"{" for line in candidates) * 2 < len(candidates):
            return ()
        for line in candidates:
            values = map(plain, split_objects(line)[0])
            objects += [value for value in values if isinstance(value, dict)]
        return tuple(objects)

    @property
    def first(self) -> Values:
        return next(iter(self.objects), {})


class Source:
    """A transcript that an adapter parses.

    ``carry`` holds JSON values that are kept for the next read, such as the session id.
    ``identities`` are the user's names in chats (setting ``owner.identities``). ``fields`` are the
    known field names of a line. If empty, all are accepted.
    """

    path: Path
    identities: tuple[str, ...] = ()
    carry: JsonObject
    tally: Tally
    fields: frozenset[str] = frozenset()
    database: Tables | None = None

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield each new complete line with its byte offset.

        Blank and overlong lines are skipped. An incomplete last line is left for the next read.
        """
        return iter(())

    def text(self) -> str:
        """Return the whole file as text, replacing invalid UTF-8."""
        raise UnreadableTranscriptError(f"{self.path} is a database, not a text file")

    def hold(self, offset: int) -> None:
        """Make the next read start at ``offset``, where a message may still grow.

        Databases ignore this.
        """

    def unknown(self, record: str) -> None:
        """Count an unknown type or version of a record."""
        self.tally.unknown[record[:_MAX_RECORD_TYPE_CHARACTERS]] += 1

    def check(self, record: Values) -> None:
        """Count the fields of a record that are not in ``fields``."""
        for name in record.keys() - (self.fields or record.keys()):
            self.unknown(f"field {name}")

    def corrupt(self) -> None:
        """Count a line that cannot be parsed."""
        self.tally.corrupt += 1

    def look(self, path: Path) -> Tables | None:
        """Open another database of the same tool, or return None if it cannot be read."""


def records(source: Source, line: bytes, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
    """Decode the records on a line (usually one), and count invalid JSON as corrupt."""
    try:
        yield decoder.decode(line)
        return
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        objects, is_torn = split_objects(line)
    if is_torn:
        source.corrupt()
    for raw in objects:
        record = decode(decoder, raw)
        if record is None:
            source.corrupt()
        else:
            yield record


@frozen
class Adapter:
    """A set of functions that find, recognise and read a tool's transcripts.

    ``parse`` yields each :class:`Session` before its turns, and again when its fields change.

    ``whole``: nacre reads a changed file from the start, and forgets what the file no longer
    contains. ``parse`` must then raise UnreadableTranscriptError for an incomplete file.

    ``guesses``: the adapter accepts almost any file, so the format is detected again after a
    change.

    ``beside`` yields a transcript's side files. If one changes, the transcript is read again.

    ``fields`` are the known field names of a JSON line. Others are counted, unless this is empty.

    ``resume`` is the command that reopens a session, with ``{id}`` in place of the session id.

    ``versions``, ``reads`` and ``leaves_out`` are shown in docs/agents.md. A star marks versions
    known only from documentation.
    """

    tool: str
    label: str
    sniff: Callable[[Head], bool]
    parse: Callable[[Source], Iterable[Session | Turn]]
    roots: Callable[[Places], Sequence[Root]] = lambda _: ()
    whole: bool = False
    guesses: bool = False
    versions: str = ""
    reads: str = ""
    leaves_out: str = ""
    beside: Callable[[Path], Iterable[Path]] | None = None
    fields: frozenset[str] = frozenset()
    resume: tuple[str, ...] = ()


# -- Incremental reading of a file, in bounded memory --------------------------


MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_WHOLE_BYTES = 256 * 1024 * 1024
_LONG_HEAD_BYTES = 4 * 1024 * 1024
_SNIFFED_LINES = 20
_BLOCK_BYTES = 1024 * 1024
FINGERPRINT_BYTES = 256
_MAX_RECORD_TYPE_CHARACTERS = 2000


_PACKED = ".zst"


def plain_path(path: Path) -> Path:
    """Return a transcript's path without ``.zst``, the suffix of compressed copies."""
    return path.with_suffix("") if path.name.endswith(f".jsonl{_PACKED}") else path


def on_disk(path: Path) -> Path:
    """Return a transcript's path, or that of its compressed copy if only the copy exists."""
    path = plain_path(path)
    packed = path.with_name(path.name + _PACKED)
    return packed if packed.exists() and not path.exists() else path


def open_file(path: Path) -> BinaryIO:
    """Open a transcript, decompressing it if necessary.

    Raises OSError, or UnavailableError if no zstd library is installed.
    """
    file = on_disk(path)
    if file.suffix != _PACKED:
        return file.open("rb")
    library = zstd()
    packed: BinaryIO = library.open(file)
    try:
        packed.seek(0, os.SEEK_END)
        packed.seek(0)
    except (EOFError, library.ZstdError) as error:
        packed.close()
        raise OSError(0, f"the compressed file is incomplete: {error}") from error
    return packed


def read_head(path: Path) -> Head:
    """Read the start of a file to detect its format.

    Raises UnreadableTranscriptError if the file cannot be opened.
    """
    try:
        with open_file(path) as file:
            data = file.read(HEAD_BYTES)
            if len(data) == HEAD_BYTES and b"\n" not in data:
                data += file.readline(_LONG_HEAD_BYTES)
            return Head(path, data)
    except OSError as error:
        raise _unreadable(path, error) from error


def read_later(path: Path) -> Head | None:
    """Return a file's first 20 lines that are not too long, or None if all are too long.

    Raises UnreadableTranscriptError if the file cannot be read.
    """
    with FileSource(path) as source:
        lines = [line + b"\n" for _, line in islice(source.lines(), _SNIFFED_LINES)]
    return Head(path, b"".join(lines)) if lines else None


def is_too_long(path: Path) -> bool:
    """Return True if every line of a JSON Lines file is too long to read.

    Raises UnreadableTranscriptError if the file cannot be opened.
    """
    return (
        on_disk(path).stat().st_size > MAX_LINE_BYTES
        and ".jsonl" in path.name
        and read_later(path) is None
    )


class FileSource(Source):
    """A context manager for a :class:`Source` that reads a file, starting at a cursor.

    After parsing, ``cursor()`` returns where the next read starts.
    """

    def __init__(self, path: Path, previous: Cursor | None = None) -> None:
        self.path = path
        self.tally = Tally()
        try:
            self._file = open_file(path)
            self._size = self._file.seek(0, os.SEEK_END)
        except OSError as error:
            raise _unreadable(path, error) from error
        self._stat = os.fstat(self._file.fileno())
        self._fingerprint_of = min(FINGERPRINT_BYTES, self._size)
        start = previous if previous and self._continues(previous) else Cursor()
        self.carry: JsonObject = dict(start.carry)
        self.start = start.offset
        self._offset = start.offset
        self._held: int | None = None
        self._counted = previous.size if previous and start.offset else 0

    def __enter__(self) -> FileSource:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def lines(self) -> Iterator[tuple[int, bytes]]:
        self._file.seek(self._offset)
        while line := self._read_line(MAX_LINE_BYTES + 1):
            start, length = self._offset, len(line)
            is_long = length > MAX_LINE_BYTES
            if is_long:
                self.tally.oversized += not self._was_counted()
            while is_long and not line.endswith(b"\n") and (part := self._read_line(_BLOCK_BYTES)):
                length, line = length + len(part), part
            is_ended = line.endswith(b"\n")
            if is_ended or (not is_long and is_complete(line)):
                self._offset += length
                if not (is_long or line.isspace()):
                    if self.fields:
                        fields = decode(_FIELDS, line)
                        self.check(fields or {})
                    yield start, line.removesuffix(b"\n")
            if not is_ended:
                return  # the line can still grow

    def text(self) -> str:
        if self._size > MAX_WHOLE_BYTES:
            raise UnreadableTranscriptError(
                f"{self.path} is larger than {MAX_WHOLE_BYTES // 1_000_000} MB",
                hint="split it into smaller files",
            )
        self._file.seek(0)
        data = self._file.read()
        self._offset = len(data)
        return data.decode("utf-8-sig", errors="replace")

    def hold(self, offset: int) -> None:
        self._held = offset

    def unknown(self, record: str) -> None:
        if not self._was_counted():
            super().unknown(record)

    def corrupt(self) -> None:
        if not self._was_counted():
            super().corrupt()

    def _was_counted(self) -> bool:
        return bool(self._counted) and self._offset <= self._counted

    def cursor(self) -> Cursor:
        return Cursor(
            inode=self._stat.st_ino,
            offset=self._offset if self._held is None else min(self._held, self._offset),
            size=self._size,
            mtime_ns=self._stat.st_mtime_ns,
            fingerprint=fingerprint_of(self._file, self._fingerprint_of),
            carry=self.carry,
        )

    def _continues(self, previous: Cursor) -> bool:
        length = int(previous.fingerprint.split(":")[0] or 0) if previous.fingerprint else 0
        return (
            previous.offset <= self._size
            and length <= self._size
            and previous.fingerprint == fingerprint_of(self._file, length)
        )

    def _read_line(self, most: int) -> bytes:
        try:
            return self._file.readline(most)
        except OSError as error:
            raise UnreadableTranscriptError(f"cannot read {self.path}: {error.strerror}") from error


def fingerprint_of(file: BinaryIO, length: int) -> str:
    """Return a hash of a file's first ``length`` bytes, which shows if the file was replaced."""
    file.seek(0)
    return f"{length}:{hashlib.blake2b(file.read(length), digest_size=8).hexdigest()}"


def is_complete(line: bytes) -> bool:
    """Return True if a file's unterminated last line is a complete JSON object."""
    stripped = line.strip()
    return stripped.endswith(b"}") and plain(stripped) is not None


def _unreadable(path: Path, error: OSError) -> UnreadableTranscriptError:
    hint = "check the file's permissions" if isinstance(error, PermissionError) else None
    return UnreadableTranscriptError(f"cannot read {path}: {error.strerror}", hint=hint)


# -- Transcripts that are one JSON document ------------------------------------


_TOKEN = re.compile(r'"((?:[^"\\]++|\\.)*+)("?)|[{}\[\]:]', re.DOTALL)
_MAX_SIDE_FILE_BYTES = 16 * 1024 * 1024


@lru_cache(maxsize=1)
def shape_of(head: Head) -> tuple[bool, frozenset[str]]:
    """Return whether a JSON document is an array, and the keys of its first object.

    Only the start of the document is examined.
    """
    text = head.text.lstrip("\ufeff \t\r\n")
    if text[:1] not in ("{", "["):
        return False, frozenset()
    is_array = text[0] == "["
    key_depth = 2 if is_array else 1
    keys: set[str] = set()
    depth, last = 0, ""
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
            if depth < key_depth and (keys or depth < 1):
                break
        elif mark == ":":
            keys |= {last} if depth == key_depth else set()
        elif token[2]:
            last = token[1]
    return is_array, frozenset(keys)


def keys_of(head: Head) -> frozenset[str]:
    """Return the keys at the start of a JSON object, or an empty set for any other document."""
    is_array, keys = shape_of(head)
    return frozenset() if is_array else keys


def document(source: Source) -> Any:
    """Parse a file as one JSON document.

    Raises UnreadableTranscriptError if it is incomplete, for example while the tool writes it.
    """
    value = plain(source.text())
    if value is None:
        raise torn(source.path)
    return value


def documents(source: Source) -> Iterator[JsonObject]:
    """Yield the objects of a JSON or JSON Lines file, ignoring an incomplete last line.

    Raises UnreadableTranscriptError if even the first object is incomplete.
    """
    text = source.text()
    value = plain(text)
    if value is not None:
        if isinstance(value, dict):
            source.check(value)
            yield value
        return
    *lines, last = text.split("\n")
    first, _ = split_objects(_encode(next(filter(str.strip, lines), "")))
    if not any(map(plain, first)):
        raise torn(source.path)
    lines += [last] if plain(last) is not None else []
    for line in filter(str.strip, lines):
        for record in records(source, _encode(line), ANY):
            if isinstance(record, dict):
                source.check(record)
                yield record


def _encode(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")


def torn(path: Path) -> UnreadableTranscriptError:
    """Return the error to raise for an incomplete JSON document."""
    return UnreadableTranscriptError(
        f"{path} is an incomplete JSON document",
        hint="nacre reads it again once its tool has finished writing it",
    )


def beside(path: Path, most: int = _MAX_SIDE_FILE_BYTES) -> Any:
    """Parse a JSON file that a tool keeps next to a transcript.

    Return None if it cannot be read or exceeds ``most`` bytes.
    """
    try:
        if path.stat().st_size > most:
            return None
        return plain(path.read_bytes())
    except OSError:
        return None


def modified(source: Source) -> datetime | None:
    """Return the file's modification time, for formats without times."""
    try:
        return datetime.fromtimestamp(source.path.stat().st_mtime, UTC)
    except (OSError, OverflowError, ValueError):
        return None


def content_blocks(message: Values) -> list[Values]:
    """Return the content blocks of a message. A string becomes one text block."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects_in(content)


# -- Databases as transcripts --------------------------------------------------
# A database contains many sessions and can change anywhere. Each session has a mark, found with one
# index lookup. If the mark has changed, the session is read from the start. Its turns have the
# tool's ids, so known turns are kept.


MAGIC = b"SQLite format 3\x00"

SUFFIXES = (".db", ".sqlite", ".sqlite3", ".vscdb")
"""Suffixes of the databases in which tools keep sessions."""

Look = Callable[[Path], Tables]


def statement(name: str) -> str:
    """Return the SQL statement with this name from ``readers/sql/*.sql``."""
    return statements("nacre.readers", "sql")[name]


def has_columns(tables: Tables | None, required: Mapping[str, Set[str]]) -> bool:
    """Return True if a database has all the required tables and columns."""
    return tables is not None and all(
        columns <= set(tables.columns(name)) for name, columns in required.items()
    )


def with_columns(required: Mapping[str, Set[str]]) -> Callable[[Head], bool]:
    """Return an ``Adapter.sniff`` function that recognises a database by its tables' columns."""
    return lambda head: has_columns(head.database, required)


def as_bytes(value: object) -> bytes:
    """Return the bytes of a database's text or blob, or no bytes for any other value."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return value if isinstance(value, bytes) else b""


def log_of(path: Path) -> Iterator[Path]:
    """Yield the path of a database's write-ahead log, which can hold the latest changes."""
    if path.name.endswith(SUFFIXES):
        yield path.with_name(f"{path.name}-wal")


def value_of(tables: Tables, query: str, **values: Any) -> Any:
    """Run a query and return the first column of its first row, or None if it finds no row."""
    rows = tables.all(query, **values)
    return rows[0][0] if rows else None


def tables_of(source: Source) -> Tables:
    """Return a source's database. Raises UnreadableTranscriptError if it has none."""
    if source.database is None:
        raise UnreadableTranscriptError(f"{source.path} is not a database")
    return source.database


class DatabaseSource(Source):
    """A :class:`Source` that reads a tool's database."""

    def __init__(
        self, path: Path, database: Tables, look: Look, previous: Cursor | None = None
    ) -> None:
        self.path = path
        self.database = _Counted(database, self)
        self.carry: JsonObject = dict(previous.carry) if previous else {}
        self.tally = Tally()
        self.bytes_read = 0
        self._look = look
        self._seen = path.stat()

    @property
    def start(self) -> int:
        """The file size minus the number of bytes read."""
        return self._seen.st_size - self.bytes_read

    def look(self, path: Path) -> Tables | None:
        try:
            return self._look(path)
        except (NacreError, OSError):
            return None

    def cursor(self) -> Cursor:
        return Cursor(
            inode=self._seen.st_ino,
            size=self._seen.st_size,
            mtime_ns=self._seen.st_mtime_ns,
            carry=self.carry,
        )


class _Counted:
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


class Part(Source):
    """A :class:`Source` for one session of a file that nacre always reads from the start."""

    def __init__(self, source: Source, records: Iterable[bytes] = ()) -> None:
        self.path = source.path
        self.identities = source.identities
        self.carry: JsonObject = {}
        self.tally = source.tally
        self._records = records

    def lines(self) -> Iterator[tuple[int, bytes]]:
        return enumerate(self._records)


class Marks:
    """A record that shows which sessions in a database changed since the last read.

    Call ``save`` only after all sessions are read, so that a failure does not hide changes.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._before = frozenset(source.carry.get("marks", ()))
        self._now: dict[int, None] = {}

    def is_new(self, session: str, *mark: object) -> bool:
        """Return True if a session is new or its ``mark`` has changed since the last read."""
        digest = hashlib.blake2b(
            "\0".join(map(str, (session, *mark))).encode("utf-8", "replace"), digest_size=7
        )
        number = int.from_bytes(digest.digest())  # numbers are not searched for secrets
        self._now[number] = None
        return number not in self._before

    def save(self) -> None:
        """Store the marks for the next read."""
        self._source.carry["marks"] = list(self._now)


def changed(
    source: Source, table: str, sessions: str, session: str
) -> Iterator[tuple[str, JsonObject]]:
    """Yield the id and row of each session that is new or has changed since the last read.

    The query ``sessions`` returns ids and marks, and the ``SELECT *`` query ``session`` returns the
    session ``:name`` from ``table``.
    """
    marks = Marks(source)
    for name, *mark in tables_of(source).all(sessions):
        if isinstance(name, str) and name and marks.is_new(name, *mark):
            yield from ((name, row) for row in rows_of(source, table, session, name=name))
    marks.save()


def rows_of(source: Source, table: str, query: str, **values: Any) -> list[JsonObject]:
    """Run a ``SELECT *`` query, and return each row as a mapping from column names."""
    tables = tables_of(source)
    names = tables.columns(table)
    return [dict(zip(names, row, strict=True)) for row in tables.all(query, **values)]
