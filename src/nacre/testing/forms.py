"""What the kit does with a sample that depends on its form: a file of text, or a database."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol

from nacre.storage.sqlite.foreign import open_foreign
from nacre.transcripts.adapter import Head
from nacre.transcripts.databases import MAGIC, SUFFIXES, DatabaseSource
from nacre.transcripts.file_source import FileSource, read_head
from nacre.values.cursor import Cursor

_NOISE = (b"", b"{", b"[[]]", b'{"type": 7, "role": [], "parts": "x"}', b"\xff\xfe\xed\xa0\x80", None, -1, 3.5)
"""What a column may hold that no adapter expects."""

Value = bytes | str | int | float | None


AnySource = FileSource | DatabaseSource


class Form(Protocol):
    """How a sample is opened, changed and spoiled. ``path`` is where it lies."""

    is_database: bool

    def head(self, path: Path) -> contextlib.AbstractContextManager[Head]:
        """What an adapter recognises it by. Raises NacreError."""

    def source(self, path: Path, cursor: Cursor | None) -> contextlib.AbstractContextManager[AnySource]:
        """What an adapter parses. Raises NacreError."""

    def put(self, path: Path, data: bytes, old: bytes, new: bytes) -> bytes | None:
        """The sample with some words changed wherever they stand; ``None`` where they do not."""

    def spoiled(self, path: Path, data: bytes) -> Iterator[tuple[str, bytes]]:
        """What may lie in a file instead, each with what it is called."""


def form_of(path: Path) -> Form:
    """The form of a file, going by its name, as everywhere."""
    return DatabaseForm() if path.name.endswith(SUFFIXES) else TextForm()


class TextForm:
    """A file of text, mostly of lines."""

    is_database = False

    @contextlib.contextmanager
    def head(self, path: Path) -> Iterator[Head]:
        """The beginning of the file."""
        yield read_head(path)

    def source(self, path: Path, cursor: Cursor | None) -> FileSource:
        """The file, from where the last reading ended."""
        return FileSource(path, cursor)

    def put(self, path: Path, data: bytes, old: bytes, new: bytes) -> bytes | None:  # noqa: ARG002
        """Wherever the words stand."""
        return data.replace(old, new) if old in data else None

    def spoiled(self, path: Path, data: bytes) -> Iterator[tuple[str, bytes]]:  # noqa: ARG002
        """Empty, binary, torn, and written in other ways."""
        half = len(data) // 2
        yield "an empty file", b""
        yield "zero bytes", bytes(4096)
        yield "random bytes", random.Random(1).randbytes(4096)  # noqa: S311 - the same each time
        yield "a torn file", data[:half]
        yield "bytes that are no UTF-8", data[:half] + b"\xff\xfe\xed\xa0\x80" + data[half:]
        yield "a binary tail", data + bytes(range(256)) * 8
        yield "no newline at the end", data.rstrip()
        yield "Windows line ends", data.replace(b"\n", b"\r\n")
        yield "a mark of byte order", b"\xef\xbb\xbf" + data


class DatabaseForm:
    """A SQLite database that its tool closed."""

    is_database = True

    @contextlib.contextmanager
    def head(self, path: Path) -> Iterator[Head]:
        """Its tables."""
        with open_foreign(path) as database:
            yield Head(path, MAGIC, database)

    @contextlib.contextmanager
    def source(self, path: Path, cursor: Cursor | None) -> Iterator[DatabaseSource]:
        """The database, with what the last reading carried over."""
        with contextlib.ExitStack() as stack:
            yield DatabaseSource(
                path, stack.enter_context(open_foreign(path)),
                lambda other: stack.enter_context(open_foreign(other)), cursor,
            )  # fmt: skip

    def put(self, path: Path, data: bytes, old: bytes, new: bytes) -> bytes | None:
        """In every column of every row in which the words stand."""

        def change(value: Value) -> Value:
            if isinstance(value, str):
                return value.replace(old.decode(), new.decode())
            return value.replace(old, new) if isinstance(value, bytes) else value

        changed = _changed(path, data, change)
        return changed if changed != data else None

    def spoiled(self, path: Path, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Every column of every table holding what nobody expects; no rows; half of the file."""
        yield "a torn file", data[: len(data) // 2]
        yield "pages of noise", data[: len(data) // 2] + random.Random(1).randbytes(len(data) // 2)  # noqa: S311
        for table, column in _columns(path, data):
            for noise in _NOISE:
                spoilt = _changed(path, data, partial(_replaced, noise), table, column)
                yield f"{noise!r} in {table}.{column}", spoilt
        yield "tables without rows", _emptied(path, data)


def _replaced(noise: Value, _: Value) -> Value:
    return noise


def _columns(path: Path, data: bytes) -> list[tuple[str, str]]:
    with _open(path, data) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return [
            (table, column)
            for table in tables
            for (column,) in database.execute("SELECT name FROM pragma_table_info(?)", (table,))
        ]


def _changed(
    path: Path, data: bytes, change: Callable[[Value], Value], table: str | None = None, column: str | None = None
) -> bytes:  # fmt: skip
    """A database with changed values, in one column or in all; what its tables do not take stays."""
    wanted = [(table, column)] if table and column else _columns(path, data)
    with _open(path, data) as database:
        for where, name in wanted:
            quoted, of = _quoted(name), _quoted(where)
            for row, value in database.execute(f"SELECT rowid, {quoted} FROM {of}").fetchall():  # noqa: S608 - quoted
                with contextlib.suppress(sqlite3.Error):  # another row has it, or it must be of a type
                    new = change(value)
                    if new != value:
                        database.execute(f"UPDATE {of} SET {quoted} = ? WHERE rowid = ?", (new, row))  # noqa: S608
    return path.read_bytes()


def _emptied(path: Path, data: bytes) -> bytes:
    tables = {table for table, _ in _columns(path, data)}
    with _open(path, data) as database:
        for table in tables:
            database.execute(f"DELETE FROM {_quoted(table)}")  # noqa: S608
    return path.read_bytes()


@contextlib.contextmanager
def _open(path: Path, data: bytes) -> Iterator[sqlite3.Connection]:
    path.write_bytes(data)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
        yield database


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
