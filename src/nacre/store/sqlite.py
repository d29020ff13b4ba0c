"""The SQLite engine: migrations, named statements, connections and snapshots.

Migrations are numbered and forward-only. They are in ``sql/migrations/NNNN_name.sql``, or in
``sql/gateway`` for the gateway's database.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib import parse

import apsw

from nacre.base import files
from nacre.base.lazy import load
from nacre.base.locks import Observe
from nacre.base.sql import Queries, bind, statements
from nacre.base.text import to_bytes
from nacre.errors import (
    DiskFullError,
    NacreError,
    SchemaTooNewError,
    StoreBusyError,
    UnavailableError,
    UnusableStoreError,
)
from nacre.store import schema

if TYPE_CHECKING:
    from nacre.store.schema import Row
    from nacre.store.search import FileWords

_FOLDERS = Path(__file__).parent / "sql"
MAIN = "migrations"
"""Folder with the migrations of ``nacre.db``."""
_NAME = re.compile(r"^(\d{4})_\w+\.sql$")


@cache
def migrations(folder: str = MAIN) -> dict[int, Path]:
    """Return the script of each migration by number, in ascending order."""
    scripts = ((_NAME.match(file.name), file) for file in (_FOLDERS / folder).iterdir())
    return dict(sorted((int(match[1]), file) for match, file in scripts if match))


def newest(folder: str = MAIN) -> int:
    """Return the number of the newest migration."""
    return max(migrations(folder))


def migrate(connection: apsw.Connection, path: Path, folder: str = MAIN) -> None:
    """Migrate a database to the current schema, and keep a copy of the old one in its folder.

    Raises SchemaTooNewError if a newer nacre has written it.
    """
    version = _version(connection)
    if version == newest(folder):
        return
    if version > newest(folder):
        raise SchemaTooNewError(
            f"{path} has schema {version}, but this nacre supports only {newest(folder)}",
            hint="upgrade nacre, or point NACRE_HOME at another folder",
        )
    if version:
        _keep_copy(connection, path.with_name(f"{path.name}.before-{newest(folder):04d}"))
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, script in migrations(folder).items():
            if number > _version(connection):
                connection.execute(script.read_text(encoding="utf-8"))
                connection.execute(f"PRAGMA user_version = {number}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _version(connection: apsw.Connection) -> int:
    row = connection.execute("PRAGMA user_version").fetchone()
    return int(row[0]) if row else 0


def _keep_copy(connection: apsw.Connection, target: Path) -> None:
    if target.exists() and target.stat().st_size:
        return
    with files.new_file(target, overwrite=True) as file:
        connection.execute("VACUUM INTO ?", (str(file.name),))


# -- Named SQL statements, from ``sql/queries/*.sql`` -------------------------


_ALL_MEMORY_COLUMNS = re.compile(r"SELECT (?:m\.)?\* (?=FROM (?:active_|past_)?memories\b)")


@cache
def query(name: str) -> str:
    """Return a statement by name. Raises KeyError."""
    return with_columns(statements("nacre.store", "sql/queries")[name])


def with_columns(statement: str) -> str:
    """Replace ``SELECT *`` from memories by :func:`nacre.store.schema.memory_columns`."""
    if not _ALL_MEMORY_COLUMNS.search(statement):
        return statement
    return _ALL_MEMORY_COLUMNS.sub(f"SELECT {', '.join(schema.memory_columns())} ", statement)


# -- Read-only connections, for full and read-only disks ----------------------
# SQLite keeps a log and a log index next to a database. Reading without these files is possible
# only while no process writes.


_BUSY_MS = 1_000


def connect_to_read(path: Path, patience_ms: int | None, migrations: str) -> apsw.Connection | None:
    """Connect read-only to a database with the current schema, or return ``None``.

    ``patience_ms`` limits the wait for a lock. If ``None``, an exclusive connection, which briefly
    blocks other processes, is also tried.
    """
    for connection in _connections(path, patience_ms):
        try:
            connection.execute(
                "PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32000"
            ).fetchall()
            if _version(connection) == newest(migrations):
                return connection
        except apsw.Error:
            pass
        with contextlib.suppress(apsw.Error):
            connection.close()
    return None


def _connections(path: Path, patience_ms: int | None) -> Iterator[apsw.Connection]:
    with contextlib.suppress(apsw.Error):
        shared = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        shared.set_busy_timeout(_BUSY_MS if patience_ms is None else patience_ms)
        yield shared
    with contextlib.suppress(apsw.Error):
        if patience_ms is None:
            exclusive = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            exclusive.set_busy_timeout(_BUSY_MS)
            exclusive.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
            yield exclusive
    if not _is_writable(path.parent) and not _has_log(path):
        with contextlib.suppress(apsw.Error):
            name = f"file:{parse.quote(os.path.realpath(path))}?immutable=1"
            yield apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _is_writable(folder: Path) -> bool:
    if hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY:
        return False
    return os.access(folder, os.W_OK)


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


# -- Database: named queries and transactions ---------------------------------
# A :class:`FileDatabase` has one connection, and each thread needs its own. With WAL, a writer does
# not block readers.


BUSY_TIMEOUT_MS = 15_000
_READERS_PATIENCE_MS = 1_000
_CHECKPOINT_PAGES = 1_000
_MIN_LOCK_SECONDS = 0.03
_PAUSE_SECONDS = 0.005
_LOCK_RETRY_SECONDS = 0.003
_TOKENIZER = ["unicode61", "remove_diacritics", "2"]
_MIN_FREE_BYTES = 65_536
"""Free space in bytes below which an I/O error counts as a full disk."""


class FileDatabase(Queries):
    """A :class:`~nacre.store.schema.Database` in a file, migrated to the current schema.

    ``observe`` is called with ``write`` and how long a transaction held the write lock. With
    ``unwritable``, the file is read-only and writes raise this error. ``patience_ms`` limits the
    wait for a lock on a read-only database.
    """

    server = None

    def __init__(
        self,
        path: Path,
        observe: Observe | None = None,
        unwritable: NacreError | None = None,
        patience_ms: int | None = None,
        migrations: str = MAIN,
    ) -> None:
        self.path = path
        self.unwritable = unwritable
        self._since = 0.0
        self._depth = 0
        self._inode = path.stat().st_ino if path.exists() else 0
        if unwritable:
            connection = connect_to_read(path, patience_ms, migrations)
            if connection is None:
                raise unwritable
            self._connection = connection
            self._connection.create_scalar_function("lower", _lower, 1, deterministic=True)
            return
        with _translate_errors(path):
            self._connection = apsw.Connection(str(path))
            try:
                # SQLite opens a file read-only if it cannot be opened for writing.
                if self._connection.readonly("main"):
                    raise apsw.ReadOnlyError("it is read-only")
                self._connection.set_busy_handler(_wait_for_lock)
                _keep_a_log(self._connection)
                self._connection.execute(
                    "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;"
                    "PRAGMA cache_size = -32000"
                ).fetchall()  # without fetchall, apsw runs only the first pragma
                migrate(self._connection, path, migrations)
                self._connection.create_scalar_function("lower", _lower, 1, deterministic=True)
            except BaseException:
                self.close()
                raise
        if observe:
            self._measure(observe)

    def close(self) -> None:
        """Close the connection; further calls do nothing."""
        with contextlib.suppress(apsw.Error):
            self._connection.close()

    @property
    def identity(self) -> object:
        """The inode of the open file."""
        return self._inode

    def is_in_place(self) -> bool:
        """Return True if the opened file is still in place."""
        try:
            return not self._inode or self.path.stat().st_ino == self._inode
        except OSError:
            return False

    def all(self, name: str, /, **parameters: Any) -> list[Row]:
        return self.rows(query(name), parameters)

    def one(self, name: str, /, **parameters: Any) -> Row | None:
        with _translate_errors(self.path):
            row: Row | None = self._connection.execute(query(name), bind(parameters)).fetchone()
        return row

    def run(self, name: str, /, **parameters: Any) -> int:
        self._begin_alone()
        with _translate_errors(self.path):
            before: int = self._connection.total_changes()
            self._connection.execute(query(name), bind(parameters))
            return int(self._connection.total_changes()) - before

    def insert(self, table: str, row: Mapping[str, Any], returning: str) -> Any:
        self._refuse_unwritable()
        marks = ", ".join(f":{column}" for column in row)
        statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) RETURNING {returning}"  # noqa: S608 - internal names
        with _translate_errors(self.path):
            return next(self._connection.execute(statement, bind(row)))[0]

    def columns(self, table: str) -> list[str]:
        return [name for (name,) in self.rows("SELECT name FROM pragma_table_info(?)", [table])]

    def run_many(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        self.many(query(name), rows)

    def many(self, sql: str, rows: Sequence[Mapping[str, Any] | Sequence[Any]]) -> None:
        self._begin_alone()
        with _translate_errors(self.path):
            self._connection.executemany(sql, map(bind, rows))

    def rows(self, sql: str, parameters: dict[str, Any] | Sequence[Any] = ()) -> list[Row]:
        with _translate_errors(self.path):
            return self._connection.execute(sql, bind(parameters)).fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction that is rolled back on exceptions.

        Nested blocks join the outer transaction.
        """
        if self._connection.in_transaction:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        self._refuse_unwritable()
        with _translate_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
        self._since = time.monotonic()
        try:
            yield
            with _translate_errors(self.path):
                self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @property
    def is_in_transaction(self) -> bool:
        return bool(self._connection.in_transaction)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        if self._connection.in_transaction:
            yield
            return
        with _translate_errors(self.path):
            self._connection.execute("BEGIN")
        try:
            yield
        finally:
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")

    def yield_write_lock(
        self, first: Callable[[], object] | None = None, between: Callable[[], object] | None = None
    ) -> bool:
        if (
            not self._connection.in_transaction
            or self._depth
            or time.monotonic() - self._since < _MIN_LOCK_SECONDS
        ):
            return False
        if first:
            first()
        edition = self.edition()
        with _translate_errors(self.path):
            self._connection.execute("COMMIT")
        if between:
            between()
        time.sleep(_PAUSE_SECONDS)  # waiting processes retry every few milliseconds
        with _translate_errors(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
        self._since = time.monotonic()
        return self.edition() != edition

    def edition(self) -> object:
        return self._connection.pragma("data_version")

    def state(self) -> object:
        return (
            None
            if self._connection.in_transaction
            else (self.edition(), self._connection.total_changes())
        )

    def schema(self) -> int:
        """Return the number of the last migration of this file."""
        with _translate_errors(self.path):
            return int(self._connection.pragma("user_version"))

    def interrupt(self) -> None:
        with contextlib.suppress(apsw.Error):
            self._connection.interrupt()

    def _begin_alone(self) -> None:
        self._refuse_unwritable()
        if not self._connection.in_transaction:
            self._since = time.monotonic()

    def _refuse_unwritable(self) -> None:
        if self.unwritable:
            raise self.unwritable

    def _measure(self, observe: Observe) -> None:
        """Report write times in a hook. It replaces SQLite's own hook, so it must also checkpoint
        the log.
        """

        def committed(connection: apsw.Connection, _: str, pages: int) -> int:
            if self._since:
                observe("write", time.monotonic() - self._since)
                self._since = 0.0
            if pages >= _CHECKPOINT_PAGES:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            return apsw.SQLITE_OK

        self._connection.set_wal_hook(committed)

    def register_term_counts(self, function: Callable[..., str]) -> None:
        """Register ``term_counts(<table>)`` as an SQL function for full-text queries."""
        self._connection.register_fts5_function("term_counts", function)

    def stems(self, text: str) -> list[str]:
        """Return a text's Porter stems without diacritics, as in full-text tables."""
        return self._stem(text)

    @cached_property
    def words(self) -> FileWords:
        index: FileWords = load("nacre.store.search:FileWords")(self)
        return index

    @cached_property
    def _stem(self) -> Callable[[str], list[str]]:
        return stemmer(self._connection)

    def fts_size(self, table: str) -> tuple[int, int]:
        """Return the numbers of rows and words in a full-text table."""
        row = self.one(f"{table}_size")
        if row is None or row[0] is None:
            return 0, 0
        return _averages(row[0])

    def relax(self) -> None:
        self._connection.execute("PRAGMA synchronous = NORMAL")

    def tighten(self) -> None:
        self._connection.execute("PRAGMA synchronous = FULL")

    def fold_log(self) -> None:
        """Write the log back into the database, so that the file can be moved.

        Raises UnavailableError, or StoreBusyError if another process is reading.
        """
        with _translate_errors(self.path):
            busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy and busy[0]:
            raise StoreBusyError(
                f"another process is reading {self.path}",
                hint="end that process and repeat the command",
            )

    def backup(self, target: Path) -> None:
        """Write a compact, consistent and private copy to ``target``.

        Raises ConflictError if ``target`` exists.
        """
        with _translate_errors(self.path), files.new_file(target) as file:
            self._connection.execute("VACUUM INTO ?", (str(file.name),))

    def compact(self) -> bool:
        """Erase deleted data from the file and its log, which can lock the database for seconds.

        Return False if another process is still reading.
        """
        with _translate_errors(self.path):
            self._connection.execute("PRAGMA secure_delete = ON").fetchall()
            self._since = time.monotonic()
            # In memory, the temporary copy could be too large.
            self._connection.execute("PRAGMA temp_store = FILE")
            try:
                self._connection.execute("VACUUM")
            finally:
                self._connection.execute("PRAGMA temp_store = MEMORY")
            self._connection.set_busy_timeout(_READERS_PATIENCE_MS)
            row = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        return row is not None and not row[0]

    def is_readable(self, table: str) -> bool:
        """Return True if all rows of a table can be read."""
        try:
            for _ in self._connection.execute(f'SELECT * FROM "{table}"'):  # noqa: S608 - a name from the schema
                pass
        except (UnicodeDecodeError, apsw.Error):
            return False
        return True

    def check(self) -> list[str]:
        """Return the problems that SQLite's integrity check finds, or none if the connection is
        closed.
        """
        with _translate_errors(self.path):
            try:
                rows = self._connection.execute("PRAGMA integrity_check").fetchall()
            except apsw.ConnectionClosedError:
                return []
        return [str(text) for (text,) in rows if text != "ok"]


@contextlib.contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except apsw.BusyError as error:
        raise StoreBusyError(
            f"another process is writing to {path}", hint="try again when it has finished"
        ) from error
    except apsw.FullError as error:
        raise _disk_full(path) from error
    except apsw.InterruptError as error:
        raise UnavailableError("the query was interrupted", hint="try again") from error
    except apsw.NotADBError as error:
        raise UnusableStoreError(
            f"{path} is not a nacre database",
            hint="move it away and run: nacre admin db rebuild",
        ) from error
    except apsw.CorruptError as error:
        raise damaged(path) from error
    except (apsw.SQLError, apsw.ConstraintError, apsw.MismatchError, UnicodeDecodeError) as error:
        raise damaged(path, str(error)) from error
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.IOError, apsw.PermissionsError) as error:
        if path.parent.exists() and shutil.disk_usage(path.parent).free < _MIN_FREE_BYTES:
            raise _disk_full(path) from error
        raise UnusableStoreError(
            f"cannot use the database {path}: {error}",
            hint="check that the folder exists and is writable",
        ) from error


def _lower(*arguments: Any) -> Any:
    """Lowercase all letters in SQL. SQLite's own ``lower`` handles only ASCII."""
    (text,) = arguments
    return text.lower() if isinstance(text, str) else text


def damaged(path: Path, why: str = "") -> UnusableStoreError:
    """Return the error for a damaged database."""
    message = f"{path} is damaged{f': {why}' if why else ''}"
    return UnusableStoreError(
        message, hint="the vault still has every memory: nacre admin db rebuild"
    )


def _wait_for_lock(attempts: int) -> bool:
    """Retry every 3 ms, because SQLite's growing delays would let other processes go first."""
    time.sleep(_LOCK_RETRY_SECONDS)
    return attempts < BUSY_TIMEOUT_MS / (1000 * _LOCK_RETRY_SECONDS)


def _keep_a_log(connection: apsw.Connection) -> None:
    """Enable the write-ahead log, with retries because SQLite does not call the busy handler
    here.
    """
    until = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except apsw.BusyError:
            if time.monotonic() > until:
                raise
            time.sleep(_LOCK_RETRY_SECONDS)


def _disk_full(path: Path) -> DiskFullError:
    return DiskFullError(
        f"the disk that holds {path} is full", hint="free some space; nothing was lost"
    )


def _averages(record: bytes) -> tuple[int, int]:
    """Decode FTS5's averages record: varints with the row count and each column's word count."""
    values: list[int] = []
    value = 0
    for at, byte in enumerate(record):
        value = (value << 7) | (byte & 0x7F)
        if not byte & 0x80 or at == len(record) - 1:
            values.append(value)
            value = 0
    return (values[0], sum(values[1:])) if values else (0, 0)


def stemmer(connection: apsw.Connection) -> Callable[[str], list[str]]:
    """Return a function that splits text into stems with SQLite's tokenizer."""
    tokenize: Any = connection.fts5_tokenizer("porter", _TOKENIZER)

    def stems(text: str) -> list[str]:
        words: list[str] = tokenize(
            to_bytes(text),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return words

    return stems


def engine_version() -> str:
    """Return the versions of SQLite and apsw."""
    return f"{apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})"


# -- Opening a database -------------------------------------------------------


_CORRUPTION_ERRORS = (apsw.CorruptError, apsw.NotADBError)


def open_database(
    path: Path, observe: Observe | None = None, migrations: str = MAIN
) -> FileDatabase:
    """Open a database, and create it if needed. Without write access, open it read-only.

    Raises UnusableStoreError, StoreBusyError, UnavailableError, or SchemaTooNewError for a newer
    nacre's database.
    """
    try:
        _create_private(path)
        return FileDatabase(path, observe, migrations=migrations)
    except (SchemaTooNewError, StoreBusyError):
        raise
    except (UnusableStoreError, UnavailableError) as error:
        if isinstance(error.__cause__, _CORRUPTION_ERRORS) or not path.is_file():
            raise
        return FileDatabase(path, unwritable=error, migrations=migrations)


def _create_private(path: Path) -> None:
    """Create an empty file with mode 0600, which SQLite also gives to its log files."""
    try:
        os.close(files.open_file(os.path.realpath(path), os.O_WRONLY | os.O_CREAT))
    except OSError as error:
        reason, hint = error.strerror or str(error), "check that the folder exists and is writable"
        if error.errno == errno.EROFS:
            reason, hint = (
                "it is on a read-only disk",
                "make it writable, or set NACRE_HOME to another folder",
            )
        raise UnusableStoreError(f"cannot use the database {path}: {reason}", hint=hint) from error


# -- Snapshots ----------------------------------------------------------------


_PAGES_PER_STEP = 4_000
"""Number of pages copied between progress reports."""


class Snapshot:
    """A consistent view of a database for copying, which does not block writers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = apsw.Connection(str(path))
        self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        self._connection.execute("BEGIN")
        # The transaction's first read fixes the snapshot.
        self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()

    def copy(self, target: Path, on_progress: Callable[[int, int], None]) -> None:
        """Write the snapshot to a new file, and report the copied and total pages. Raises
        UnusableStoreError.
        """
        try:
            copy = apsw.Connection(str(target))
            try:
                with copy.backup("main", self._connection, "main") as work:
                    while not work.done:
                        work.step(_PAGES_PER_STEP)
                        on_progress(work.page_count - work.remaining, work.page_count)
                copy.execute("PRAGMA journal_mode = DELETE").fetchall()
            finally:
                copy.close()
        except apsw.Error as error:
            raise UnusableStoreError(
                f"{self._path} cannot be copied: {error}",
                hint="check it with nacre admin doctor --deep",
            ) from error
        finally:
            self._connection.close()
