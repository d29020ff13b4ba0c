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
"""Iterator over sessions. Each session is followed by its turns."""

ANY: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
"""Decoder for plain JSON values."""

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RAW_DECODER = json.JSONDecoder()
_MILLISECONDS_FROM = 100_000_000_000
"""Greater times are in milliseconds since 1970. Smaller times are in seconds."""


def split_objects(line: bytes) -> tuple[list[bytes], bool]:
    """Split a line that can contain several JSON objects without a separator.

    The flag is True if part of the line is not JSON.
    """
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
    """Decode one object, or return None if it is invalid.

    Lone surrogates in escapes and invalid UTF-8 are replaced. NaN and infinity become null.
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
    """Decode JSON as plain values. Return None if it is invalid."""
    return decode(ANY, _encode(raw) if isinstance(raw, str) else raw)


def parse_time(value: object) -> datetime | None:
    """Return a time in UTC, or None if the value is not a valid time.

    The value can be ISO 8601 text. It can also be the number of seconds or milliseconds since 1970,
    as a number or as digits.
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
    """Return a time in UTC, like :func:`parse_time`. Text without a zone is in the machine's zone."""
    with suppress(OSError, OverflowError, TypeError, ValueError):
        return in_utc(datetime.fromisoformat(value))  # type: ignore[arg-type]
    return parse_time(value)


# -- Adapters and their input --------------------------------------------------


HEAD_BYTES = 65_536


@frozen
class Places:
    """The folders and environment variables that determine where transcripts are stored.

    ``home``: home folder of the user. ``platform``: value of ``sys.platform``. ``projects``:
    folders of known sessions, because some tools keep transcripts there. ``own``: nacre's home
    folder, if known.
    """

    home: Path
    environ: Mapping[str, str]
    platform: str
    projects: tuple[Path, ...] = ()
    own: Path | None = None

    def folder(self, variable: str, *default: str) -> Path:
        """Return the folder named by an environment variable, or by default a folder in the user's home."""
        return Path(self.environ.get(variable) or self.home.joinpath(*default)).expanduser()

    def data(self, *, is_native: bool = False) -> Path:
        """Return the folder for programs' data, on macOS as on Linux unless ``is_native``."""
        if self.platform == "win32":
            return self.folder("LOCALAPPDATA", "AppData", "Local")
        if self.platform == "darwin" and is_native:
            return self.home / "Library" / "Application Support"
        return self.folder("XDG_DATA_HOME", ".local", "share")


@frozen
class Root:
    """A folder in which a tool keeps transcripts, and glob patterns for the files in it."""

    folder: Path
    patterns: tuple[str, ...]


def under(
    variable: str, default: str, folder: str, *patterns: str
) -> Callable[[Places], list[Root]]:
    """Return a function for ``Adapter.roots``: a folder below the one that a variable names.

    Without the variable, ``default`` is a folder in the user's home.
    """
    return lambda places: [Root(places.folder(variable, default) / folder, patterns)]


class Tables(Protocol):
    """A read-only view of a tool's database. Reading changes no file, even while the tool writes."""

    def columns(self, table: str) -> tuple[str, ...]:
        """Return a table's columns. A missing table has no columns."""

    def all(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a statement.

        The database is locked for reading until this method returns. To read one session, use an
        index instead of reading whole tables.
        """


@dataclass(frozen=True)
class Head:
    """The start of a file, for recognising its format: 64 KiB, or the first line if that is longer.

    For a SQLite database, ``database`` is open during recognition, and ``data`` contains the first
    bytes.
    """

    path: Path
    data: bytes
    database: Tables | None = None

    @cached_property
    def text(self) -> str:
        """The start of the file as text. Invalid UTF-8 is replaced."""
        return self.data.decode("utf-8", errors="replace")

    @cached_property
    def objects(self) -> tuple[JsonObject, ...]:
        """JSON objects on the first 20 complete lines. Other lines are skipped.

        The result is empty if most lines are not objects, because text that quotes a record is not
        a transcript.
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
        """The first JSON object, or an empty one."""
        return next(iter(self.objects), {})


class Source:
    """A transcript that an adapter parses, such as :class:`FileSource`.

    ``carry``: JSON values that the adapter keeps for the next time, such as the session id and the
    model. ``identities``: the user's names in chats, from the setting ``owner.identities``.
    ``fields``: the known fields of a line, if they are checked.
    """

    path: Path
    identities: tuple[str, ...] = ()
    carry: JsonObject
    tally: Tally
    fields: frozenset[str] = frozenset()
    database: Tables | None = None

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield complete lines with their byte offsets, starting where the last reading ended.

        An incomplete last line is left for the next reading. Blank lines are skipped. Overlong
        lines are skipped and counted.
        """
        return iter(())

    def text(self) -> str:
        """Return the whole file as text, for formats without lines of records. Invalid UTF-8 is
        replaced.
        """
        raise UnreadableTranscriptError(f"{self.path} is a database")

    def hold(self, offset: int) -> None:
        """Start the next reading at ``offset``, because the message there can still grow.

        A database has no offsets, so nothing happens.
        """

    def unknown(self, record: str) -> None:
        """Count a record type or version that the adapter does not know."""
        self.tally.unknown[record[:_MAX_RECORD_TYPE_CHARACTERS]] += 1

    def corrupt(self) -> None:
        """Count a line that cannot be parsed."""
        self.tally.corrupt += 1

    def look(self, path: Path) -> Tables | None:
        """Open another database of the same tool, or return None if it cannot be read."""


def records(source: Source, line: bytes, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
    """Yield the records on a line, usually only one. Invalid parts are counted as corrupt."""
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
    """An adapter that finds, recognises and reads a tool's transcripts.

    ``parse`` yields a :class:`Session` before the turns of the session. ``parse`` yields a session
    again if it learns a fact, such as the title, or if the file switches to another session. Each
    :class:`Turn` belongs to the last session yielded.

    ``whole``: True if a changed file is read from the start. Content that disappeared from the file
    is then forgotten. If the file is incomplete, ``parse`` raises UnreadableTranscriptError, so
    that earlier content is kept.

    ``guesses``: True if the adapter accepts nearly any file, so that the format of a changed file
    is checked again.

    ``beside``: function that yields a transcript's other files. A change to such a file counts as a
    change to the transcript.

    ``fields``: names of all known fields of a line, if the format has lines of objects. Lines with
    other fields are counted. By default, fields are not checked.

    ``resume``: command that reopens a session, with ``{id}`` for the session's id, or empty.

    For docs/agents.md, ``versions``: the tool's versions, with a star if only documentation was
    examined. ``reads`` and ``leaves_out``: content that the adapter reads in addition to the usual
    content, and content that it skips, each separated by semicolons.
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
    """Return the name under which a transcript is stored, whether or not the file is compressed."""
    return path.with_suffix("") if path.name.endswith(f".jsonl{_PACKED}") else path


def on_disk(path: Path) -> Path:
    """Return the existing file of a transcript: the plain file, or else its compressed copy."""
    path = plain_path(path)
    packed = path.with_name(path.name + _PACKED)
    return packed if packed.exists() and not path.exists() else path


def open_file(path: Path) -> BinaryIO:
    """Open a transcript, which can be compressed.

    Raises OSError. Raises UnavailableError if nothing can decompress the file.
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
        raise OSError(0, f"not a complete compressed file: {error}") from error
    return packed


def read_head(path: Path) -> Head:
    """Read the start of a file to recognise its format.

    Read 64 KiB, or up to 4 MiB if the first line is longer. Raises UnreadableTranscriptError if the
    file cannot be opened.
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
    """Return the beginning of a file with a long first line, or None if no line is readable.

    Use this if the first 64 KiB do not show the format. Raises UnreadableTranscriptError.
    """
    try:
        with open_file(path) as file:
            if file.read(1) != b"{":
                return None
            file.seek(0)
            lines = list(islice(_lines(file, MAX_LINE_BYTES), 1))
            lines += islice(_lines(file, HEAD_BYTES), _SNIFFED_LINES)
    except OSError as error:
        raise _unreadable(path, error) from error
    return Head(path, b"".join(lines)) if lines else None


def is_too_long(path: Path) -> bool:
    """Return True if a file might contain records but every line is too long.

    Raises UnreadableTranscriptError.
    """
    return (
        on_disk(path).stat().st_size > MAX_LINE_BYTES
        and ".jsonl" in path.name
        and read_later(path) is None
    )


def _lines(file: BinaryIO, max_bytes: int) -> Iterator[bytes]:
    while line := file.readline(max_bytes):
        if line.endswith(b"\n"):
            yield line
        elif len(line) == max_bytes:
            while (part := file.readline(_BLOCK_BYTES)) and not part.endswith(b"\n"):
                pass
        elif is_complete(line):
            yield line + b"\n"


class FileSource(Source):
    """A :class:`Source` that reads one file from a cursor.

    Use it as a context manager. After parsing, ``cursor()`` returns the position for the next
    reading.
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
                    found = decode(_FIELDS, line) if self.fields else None
                    for name in (found or {}).keys() - self.fields:
                        self.unknown(f"field {name}")
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
    """Return a hash of a file's first ``length`` bytes. It changes when the file is replaced."""
    file.seek(0)
    return f"{length}:{hashlib.blake2b(file.read(length), digest_size=8).hexdigest()}"


def is_complete(line: bytes) -> bool:
    """Return True if a last line without a newline is a complete object.

    Some tools omit the final newline.
    """
    stripped = line.strip()
    if not stripped.endswith(b"}"):
        return False
    try:
        json.loads(stripped.decode("utf-8", errors="replace"))
    except (ValueError, RecursionError):
        return False
    return True


def _unreadable(path: Path, error: OSError) -> UnreadableTranscriptError:
    hint = "check the file's permissions" if isinstance(error, PermissionError) else None
    return UnreadableTranscriptError(f"cannot read {path}: {error.strerror}", hint=hint)


# -- Transcripts that are one JSON document ------------------------------------


_TOKEN = re.compile(r'"((?:[^"\\]++|\\.)*+)("?)|[{}\[\]:]', re.DOTALL)
_MAX_SIDE_FILE_BYTES = 16 * 1024 * 1024


@lru_cache(maxsize=1)
def shape_of(head: Head) -> tuple[bool, frozenset[str]]:
    """Return whether a JSON document is an array, and the keys of its first object.

    Only the beginning of the document is examined.
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
    """Return the keys at the start of a JSON object. Other documents have no keys."""
    is_array, keys = shape_of(head)
    return frozenset() if is_array else keys


def document(source: Source) -> Any:
    """Return the JSON document in a file.

    Raises UnreadableTranscriptError if it is incomplete, for example because the tool is writing
    it. Earlier content is then kept.
    """
    value = plain(source.text())
    if value is None:
        raise torn(source.path)
    return value


def documents(source: Source) -> Iterator[JsonObject]:
    """Yield the objects in a file, either one document or one object per line.

    An incomplete last line is ignored. Raises UnreadableTranscriptError if even the first object is
    incomplete.
    """
    text = source.text()
    whole = plain(text)
    if whole is not None:
        yield from [whole] if isinstance(whole, dict) else ()
        return
    *lines, last = text.split("\n")
    first, _ = split_objects(_encode(next(filter(str.strip, lines), "")))
    if not any(map(plain, first)):
        raise torn(source.path)
    lines += [last] if plain(last) is not None else []
    for line in filter(str.strip, lines):
        yield from (
            record for record in records(source, _encode(line), ANY) if isinstance(record, dict)
        )


def _encode(text: str) -> bytes:
    return text.encode("utf-8", errors="replace")


def torn(path: Path) -> UnreadableTranscriptError:
    """Return the error for an incomplete document."""
    return UnreadableTranscriptError(
        f"{path} is not a whole JSON document",
        hint="it is read again once the tool has finished writing it",
    )


def beside(path: Path, most: int = _MAX_SIDE_FILE_BYTES) -> Any:
    """Return the JSON document in another file of a transcript.

    Return None if it cannot be read or is larger than ``most`` bytes.
    """
    try:
        if path.stat().st_size > most:
            return None
        return plain(path.read_bytes())
    except OSError:
        return None


def modified(source: Source) -> datetime | None:
    """Return the file's modification time, for formats that record no times."""
    try:
        return datetime.fromtimestamp(source.path.stat().st_mtime, UTC)
    except (OSError, OverflowError, ValueError):
        return None


def content_blocks(message: Values) -> list[Values]:
    """Return the blocks of a message. A string becomes one text block."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects_in(content)


# -- Databases as transcripts --------------------------------------------------
# A database contains many sessions and can change anywhere. Each session has a mark, which needs
# one index lookup. Sessions with a new mark are read from the start. Their turns have the tool's
# ids, so known turns stay.


MAGIC = b"SQLite format 3\x00"

SUFFIXES = (".db", ".sqlite", ".sqlite3", ".vscdb")
"""File name extensions of the databases in which tools keep sessions."""

Look = Callable[[Path], Tables]


def statement(name: str) -> str:
    """Return the named statement from ``readers/sql/*.sql``. Raises KeyError."""
    return statements("nacre.readers", "sql")[name]


def has_columns(tables: Tables | None, required: Mapping[str, Set[str]]) -> bool:
    """Return True if a database has the required columns in each table."""
    return tables is not None and all(
        columns <= set(tables.columns(name)) for name, columns in required.items()
    )


def with_columns(required: Mapping[str, Set[str]]) -> Callable[[Head], bool]:
    """Return a function that recognises a database by its columns."""
    return lambda head: has_columns(head.database, required)


def as_bytes(value: object) -> bytes:
    """Return stored text or a blob as bytes, or empty bytes for other types."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    return value if isinstance(value, bytes) else b""


def log_of(path: Path) -> Iterator[Path]:
    """Yield the path of a database's write-ahead log, which can contain the latest changes."""
    if path.name.endswith(SUFFIXES):
        yield path.with_name(f"{path.name}-wal")


def tables_of(source: Source) -> Tables:
    """Return the database of a source. Raises UnreadableTranscriptError if there is none."""
    if source.database is None:
        raise UnreadableTranscriptError(f"{source.path} is no database")
    return source.database


class DatabaseSource(Source):
    """A :class:`Source` for a database.

    ``look``: function that opens related databases. :class:`Marks` show what is new, because a
    database has no offsets.
    """

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
    """A :class:`Source` for one of the sessions in a file. It is always read from the start."""

    def __init__(self, source: Source, records: Iterable[bytes] = ()) -> None:
        self.path = source.path
        self.identities = source.identities
        self.carry: JsonObject = {}
        self.tally = source.tally
        self._records = records

    def lines(self) -> Iterator[tuple[int, bytes]]:
        return enumerate(self._records)


class Marks:
    """Marks that show whether a session in a database has changed.

    The marks are kept in ``carry``. Call ``save`` only after all sessions have been read, so that
    the sessions are read again after a failure.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._before = frozenset(source.carry.get("marks", ()))
        self._now: dict[int, None] = {}

    def is_new(self, session: str, *mark: object) -> bool:
        """Return True if a session is new or has changed since the last reading."""
        digest = hashlib.blake2b(
            "\0".join(map(str, (session, *mark))).encode("utf-8", "replace"), digest_size=7
        )
        number = int.from_bytes(digest.digest())  # numbers are not searched for secrets
        self._now[number] = None
        return number not in self._before

    def save(self) -> None:
        """Store the marks for the next reading."""
        self._source.carry["marks"] = list(self._now)


def changed(
    source: Source, table: str, sessions: str, session: str
) -> Iterator[tuple[str, JsonObject]]:
    """Yield the ids and rows of a database's new and changed sessions.

    ``sessions``: a statement whose rows contain a session's id and then its mark. ``session``: the
    ``SELECT *`` statement for the session ``:name`` in ``table``.
    """
    marks = Marks(source)
    for name, *mark in tables_of(source).all(sessions):
        if isinstance(name, str) and name and marks.is_new(name, *mark):
            yield from ((name, row) for row in rows_of(source, table, session, name=name))
    marks.save()


def rows_of(source: Source, table: str, query: str, **values: Any) -> list[JsonObject]:
    """Return the rows of a ``SELECT *`` statement by column, because columns differ between versions."""
    tables = tables_of(source)
    names = tables.columns(table)
    return [dict(zip(names, row, strict=True)) for row in tables.all(query, **values)]
