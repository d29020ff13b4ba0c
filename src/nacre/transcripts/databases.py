"""Databases as transcripts: many sessions in one file that grows in all places.

A reading asks first which sessions changed, by marks that cost an index to look up, and reads those anew, each from its
beginning: turns have the ids of the tool, so that what is known already stays as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from nacre.errors import NacreError, TranscriptUnreadable
from nacre.platform.sql_files import statements
from nacre.transcripts.adapter import Source, Tables
from nacre.values.cursor import Cursor, Tally

MAGIC = b"SQLite format 3\x00"

SUFFIXES = (".db", ".sqlite", ".sqlite3", ".vscdb")
"""How the names of the databases end in which tools keep sessions."""

Look = Callable[[Path], Tables]


def statement(name: str) -> str:
    """A statement of ``transcripts/sql/*.sql``. Raises KeyError."""
    return statements("nacre.transcripts", "sql")[name]


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
    """The :class:`~nacre.transcripts.adapter.Source` of a database. ``look`` opens others beside it.

    The carry of the last reading is handed on as it is: what is new is found out by marks, never by offsets.
    """

    identities: tuple[str, ...] = ()

    def __init__(self, path: Path, database: Tables, look: Look, previous: Cursor | None = None) -> None:
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
            inode=self._seen.st_ino, size=self._seen.st_size, mtime_ns=self._seen.st_mtime_ns, carry=self.carry
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
        self._source.bytes_read += sum(len(value) for row in rows for value in row if isinstance(value, str | bytes))
        return rows


class Part:
    """One session of a source that has several, as a :class:`~nacre.transcripts.adapter.Source` of its own.

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
        digest = hashlib.blake2b("\0".join(map(str, (session, *mark))).encode("utf-8", "replace"), digest_size=7)
        known = int.from_bytes(digest.digest())  # numbers need not be searched for secrets
        self._now[known] = None
        return known not in self._before

    def save(self) -> None:
        """Remember the sessions asked about."""
        self._source.carry["marks"] = list(self._now)
