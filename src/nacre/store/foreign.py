"""Read-only access to other programs' SQLite databases, even while they write.

No files are created next to the databases. SQL statements are fixed, or composed from the table and
column names in the file. How a file is opened depends on its state:

- With a rollback journal: read-only, with SQLite's own locks, only while a statement runs.
- With a write-ahead log that is in use or left by a crash: read-only, with a read-only log index
  (``-shm``), so that readers only take locks.
- With a missing or empty log and no index: no process has the file open. Only the file is read, and
  results are returned only if no process has opened it since.
- With a log but no index (as in a copy), or a journal to roll back: a copy of limited size is read.

See decision 7.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from nacre.base.sql import quoted
from nacre.errors import InvalidInputError

PATIENCE_MS = 500
"""How long a statement waits for a writer, in milliseconds."""

MAX_COPY_BYTES = 512 * 1024 * 1024

MAX_SECONDS = 120.0
"""Total time limit for all statements on one file, in seconds."""

_INSTRUCTIONS_PER_CHECK = 10_000

_HEADER_BYTES = 100
_WAL_VERSIONS = b"\x02\x02"
_ATTEMPTS = 3
_VECTOR_FUNCTIONS = ("libsql_vector_idx", "vector", "vector32", "vector64", "vector_distance_cos")
"""libSQL functions that can occur in index definitions. nacre never calls them."""

_HARMLESS = apsw.SQLITE_DETERMINISTIC | apsw.SQLITE_INNOCUOUS

Signature = tuple[tuple[int, int] | None, ...]


class ForeignDatabase:
    """Another program's SQLite database, as opened by :func:`open_foreign`."""

    def __init__(
        self,
        path: Path,
        clean: Callable[[str], str] = str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._clock = clock
        self._until = clock() + MAX_SECONDS
        self._clean = clean
        self._stack = contextlib.ExitStack()
        self._sealed: Signature | None = None
        try:
            self._connection = self._open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the database and delete its temporary copy, if any."""
        self._stack.close()

    def columns(self, table: str) -> tuple[str, ...]:
        """Return the column names of a table, or an empty tuple if the table is missing."""
        return tuple(
            str(name)
            for (name,) in self.all("SELECT name FROM pragma_table_info(:table)", table=table)
        )

    def all(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run a statement and return all rows.

        Raises InvalidInputError if the file is locked, damaged or keeps changing.
        """
        for _ in range(_ATTEMPTS):
            with _translate_errors(self._path):
                rows = self._connection.execute(statement, values).fetchall()
            if self._sealed is None or self._sealed == _signature(self._path):
                return rows
            self.close()
            self._connection = self._open()
        raise InvalidInputError(f"{self._path} keeps changing", hint="try again")

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table as dicts, leaving out columns that do not exist."""
        existing = self.columns(table)
        names = [name for name in columns if name in existing]
        if not names:
            return
        listed = ", ".join(quoted(name) for name in names)
        with _translate_errors(self._path):
            for row in self._connection.execute(
                f"SELECT {listed} FROM {quoted(table)} ORDER BY rowid"  # noqa: S608
            ):
                values = (self._clean(value) if isinstance(value, str) else value for value in row)
                yield dict(zip(names, values, strict=True))

    def _open(self) -> apsw.Connection:
        before = _signature(self._path)
        options = _options(self._path, before)
        self._sealed = before if options and "immutable" in options else None
        try:
            if options:
                return self._connect(self._path, options)
        except apsw.Error as error:
            if not _must_roll_back(error, before):
                raise _explain(self._path, error) from error
        with _translate_errors(self._path):
            return self._connect(self._copy(), "")

    def _connect(self, path: Path, options: str) -> apsw.Connection:
        mode = apsw.SQLITE_OPEN_READONLY if options else apsw.SQLITE_OPEN_READWRITE
        connection = apsw.Connection(
            f"file:{quote(os.fsencode(path))}?{options}", flags=apsw.SQLITE_OPEN_URI | mode
        )
        try:
            connection.set_busy_timeout(PATIENCE_MS)
            for name in _VECTOR_FUNCTIONS:
                connection.create_scalar_function(name, lambda *_: None, flags=_HARMLESS)
            connection.execute("PRAGMA query_only = ON; PRAGMA trusted_schema = OFF").fetchall()
            connection.set_progress_handler(
                lambda: self._clock() > self._until, _INSTRUCTIONS_PER_CHECK
            )
            connection.set_authorizer(_only_tables(connection))
        except BaseException:
            connection.close()
            raise
        self._stack.callback(connection.close)
        return connection

    def _copy(self) -> Path:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="nacre-look-")))
        for _ in range(_ATTEMPTS):
            before = _signature(self._path)
            if sum(size_and_time[0] for size_and_time in before if size_and_time) > MAX_COPY_BYTES:
                hint = "start and quit the program that wrote it, to clean it up"
                raise InvalidInputError(
                    f"{self._path} was not closed properly and is too large to copy", hint=hint
                )
            for suffix, size_and_time in zip(_SUFFIXES, before, strict=True):
                (folder / f"copy.db{suffix}").unlink(missing_ok=True)
                if size_and_time and suffix != "-shm":
                    shutil.copyfile(f"{self._path}{suffix}", folder / f"copy.db{suffix}")
            if before == _signature(self._path):
                return folder / "copy.db"
        raise InvalidInputError(f"{self._path} keeps changing", hint="try again")


@contextlib.contextmanager
def open_foreign(path: Path, clean: Callable[[str], str] = str) -> Iterator[ForeignDatabase]:
    """Open another program's database read-only. ``clean`` filters the text of rows.

    Raises InvalidInputError if the file is not a SQLite database, or is empty, encrypted, locked or
    damaged.
    """
    database = ForeignDatabase(path, clean)
    try:
        yield database
    finally:
        database.close()


_SUFFIXES = ("", "-wal", "-shm", "-journal")


def _signature(path: Path) -> Signature:
    signature: list[tuple[int, int] | None] = []
    for suffix in _SUFFIXES:
        try:
            status = os.stat(f"{path}{suffix}")
            signature.append((0, 0) if suffix == "-shm" else (status.st_size, status.st_mtime_ns))
        except FileNotFoundError:
            signature.append(None)
        except OSError as error:
            raise InvalidInputError(
                f"cannot read {path}: {error.strerror}", hint="check its permissions"
            ) from error
    return tuple(signature)


def _options(path: Path, signature: Signature) -> str:
    """Return the URI options for opening a file, or "" if it must be copied first."""
    main, log, index, _ = signature
    if main is None:
        raise InvalidInputError(f"{path} does not exist", hint="check the path")
    if main[0] == 0:  # SQLite would delete the log of an empty file
        raise InvalidInputError(
            f"{path} is empty: it has no sessions yet, or has lost them", hint=None
        )
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except OSError as error:
        raise InvalidInputError(
            f"cannot read {path}: {error.strerror}", hint="check its permissions"
        ) from error
    if log and log[0] and not index:
        return ""
    if header[18:20] != _WAL_VERSIONS:
        return "mode=ro"
    return "mode=ro&readonly_shm=1" if log and index else "mode=ro&immutable=1"


def _must_roll_back(error: apsw.Error, signature: Signature) -> bool:
    # Another program has crashed while it was writing, and left a journal.
    journal = signature[-1]
    return bool(journal and journal[0]) and isinstance(
        error, apsw.ReadOnlyError | apsw.CantOpenError
    )


def _only_tables(connection: apsw.Connection) -> Callable[..., int]:
    """Return an authorizer that rejects virtual tables and views. Querying them might never end."""
    unsafe = {
        str(name).lower()
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND rootpage = 0"
        )
    }

    def allow(_: int, first: str | None, __: str | None, ___: str | None, view: str | None) -> int:
        names = {(first or "").lower(), (view or "").lower()}
        return apsw.SQLITE_OK if unsafe.isdisjoint(names) else apsw.SQLITE_DENY

    return allow


@contextlib.contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (apsw.Error, UnicodeDecodeError) as error:
        raise _explain(path, error) from error


def _explain(path: Path, error: apsw.Error | UnicodeDecodeError) -> InvalidInputError:
    if isinstance(error, apsw.NotADBError | apsw.CorruptError | UnicodeDecodeError):
        return InvalidInputError(
            f"{path} cannot be read as a SQLite database: it is encrypted, damaged or something else",
            hint="have the program that wrote it export or decrypt it first",
        )
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return InvalidInputError(
            f"{path} is locked by the program that uses it",
            hint="close that program, and try again",
        )
    if isinstance(error, apsw.InterruptError):
        return InvalidInputError(
            f"{path} takes longer than {MAX_SECONDS:.0f} seconds to read", hint=None
        )
    if isinstance(error, apsw.AuthError) or "not authorized" in str(error):
        return InvalidInputError(
            f"{path} has a view or virtual table in place of a table", hint=None
        )
    return InvalidInputError(
        f"cannot read {path}: {error}", hint="close the program that uses it, and try again"
    )
