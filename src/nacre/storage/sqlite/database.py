"""Open the database, run named queries, hold transactions.

One connection per :class:`FileDatabase`; threads each open their own. WAL lets readers go on while one writer writes.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from nacre.errors import NacreError, StoreBusy, StoreUnusable, Unavailable
from nacre.platform import private_files
from nacre.platform.lazy import load
from nacre.platform.locks import Observe
from nacre.storage.database import Row
from nacre.storage.sqlite.migrate import MAIN, migrate
from nacre.storage.sqlite.queries import query
from nacre.storage.sqlite.read_only import connect_to_read

if TYPE_CHECKING:
    from nacre.storage.sqlite.words import FileWords

BUSY_TIMEOUT_MS = 15_000
_READERS_PATIENCE_MS = 1_000
_CHECKPOINT_PAGES = 1_000
_BREATH_SECONDS = 0.03
_PAUSE_SECONDS = 0.005
_ASK_SECONDS = 0.003
_TOKENS = ["unicode61", "remove_diacritics", "2"]
_LEAST_FREE_BYTES = 65_536
"""SQLite needs a page or two of room even to open; below this an I/O error is a full disk."""


class FileDatabase:
    """A connection to ``nacre.db``, or to another database whose ``migrations`` are named, with the present schema.

    ``observe`` is told how long transactions held the write lock, named ``write``. ``unwritable`` is why nothing can be
    written: then the database is only read, and each write raises it; ``patience_ms`` is how long that may wait.
    """

    is_server = False

    def __init__(
        self, path: Path, observe: Observe | None = None, unwritable: NacreError | None = None,
        patience_ms: int | None = None, migrations: str = MAIN,
    ) -> None:  # fmt: skip
        self.path = path
        self.unwritable = unwritable
        self._since = 0.0
        self._depth = 0
        self._inode = path.stat().st_ino if path.exists() else 0
        if unwritable:
            found = connect_to_read(path, patience_ms, migrations)
            if found is None:
                raise unwritable
            self._connection = found
            self._connection.create_scalar_function("lower", _lower, 1, deterministic=True)
            return
        with _translated(path):
            self._connection = apsw.Connection(str(path))
            try:
                if self._connection.readonly("main"):  # what cannot be opened to be written, SQLite opens to be read
                    raise apsw.ReadOnlyError("it can only be read")
                self._connection.set_busy_handler(_wait_for_lock)
                _keep_a_log(self._connection)
                self._connection.execute(
                    "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;"
                    "PRAGMA cache_size = -32000"
                ).fetchall()  # apsw stops at the first row: without this only the first pragma runs
                migrate(self._connection, path, migrations)
                self._connection.create_scalar_function("lower", _lower, 1, deterministic=True)
            except BaseException:
                self.close()
                raise
        if observe:
            self._measure(observe)

    def close(self) -> None:
        """Close the connection; a second call does nothing.

        It does not fail: what was committed is on disk, and a log that cannot be folded in now waits beside it.
        """
        with contextlib.suppress(apsw.Error):
            self._connection.close()

    @property
    def identity(self) -> object:
        """A number of the file that was opened; another file has another one."""
        return self._inode

    def is_in_place(self) -> bool:
        """Whether the file at the path is still the one that was opened, and no new one took its place."""
        try:
            return not self._inode or self.path.stat().st_ino == self._inode
        except OSError:
            return False

    def all(self, name: str, **parameters: Any) -> list[Row]:
        """All rows of a named query."""
        return self.rows(query(name), parameters)

    def one(self, name: str, **parameters: Any) -> Row | None:
        """The first row of a named query, or ``None``."""
        with _translated(self.path):
            row: Row | None = self._connection.execute(query(name), parameters).fetchone()
        return row

    def run(self, name: str, **parameters: Any) -> int:
        """Run a named statement; returns how many rows it changed."""
        self._begin_alone()
        self._refuse_unwritable()
        with _translated(self.path):
            before: int = self._connection.total_changes()
            self._connection.execute(query(name), parameters)
            return int(self._connection.total_changes()) - before

    def insert(self, table: str, row: Mapping[str, Any], returning: str) -> Any:
        """Insert a row into a table, within a transaction; returns the value of one of its columns."""
        self._refuse_unwritable()
        marks = ", ".join(f":{column}" for column in row)
        statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) RETURNING {returning}"  # noqa: S608 - names of ours
        with _translated(self.path):
            return next(self._connection.execute(statement, row))[0]

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns, in their order."""
        return [name for (name,) in self.rows("SELECT name FROM pragma_table_info(?)", [table])]

    def run_many(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a named statement once for each of ``rows``."""
        self.many(query(name), rows)

    def many(self, sql: str, rows: Sequence[Mapping[str, Any] | Sequence[Any]]) -> None:
        """Run a statement composed in this package once for each of ``rows``."""
        self._begin_alone()
        self._refuse_unwritable()
        with _translated(self.path):
            self._connection.executemany(sql, rows)

    def rows(self, sql: str, parameters: dict[str, Any] | Sequence[Any] = ()) -> list[Row]:
        """All rows of a statement composed in this package; values are always bound."""
        with _translated(self.path):
            return self._connection.execute(sql, parameters).fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """``BEGIN IMMEDIATE`` … ``COMMIT``; rolled back when the block raises. Nested blocks join the outer one."""
        if self._connection.in_transaction:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        self._refuse_unwritable()
        with _translated(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
        self._since = time.monotonic()
        try:
            yield
            with _translated(self.path):
                self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return bool(self._connection.in_transaction)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """One view of the database for all that is read in the block, whatever others write meanwhile."""
        if self._connection.in_transaction:
            yield
            return
        with _translated(self.path):
            self._connection.execute("BEGIN")
        try:
            yield
        finally:
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")

    def yield_write_lock(
        self, first: Callable[[], object] | None = None, between: Callable[[], object] | None = None
    ) -> bool:
        """Between two parts of a long transaction that may each stand alone: commit, and let others write.

        ``first`` makes what was written so far whole; ``between`` runs while no transaction is open. Nothing happens
        until the write lock was held for 30 ms, so that a batch holds it for less than 100 ms at a time, nor in a block
        that joined an outer one. Returns whether another connection wrote: what was read before may have changed then.
        """
        if not self._connection.in_transaction or self._depth or time.monotonic() - self._since < _BREATH_SECONDS:
            return False
        if first:
            first()
        edition = self.edition()
        with _translated(self.path):
            self._connection.execute("COMMIT")
        if between:
            between()
        time.sleep(_PAUSE_SECONDS)  # who waits for the lock asks again every few milliseconds
        with _translated(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
        self._since = time.monotonic()
        return self.edition() != edition

    def edition(self) -> object:
        """A value that is another one when another connection has committed meanwhile."""
        return self._connection.pragma("data_version")

    def state(self) -> object:
        """A value that is another one when anybody has written meanwhile; ``None`` within a transaction."""
        return None if self._connection.in_transaction else (self.edition(), self._connection.total_changes())

    def schema(self) -> int:
        """The number of the last migration that the file went through, by whichever program."""
        with _translated(self.path):
            return int(self._connection.pragma("user_version"))

    def interrupt(self) -> None:
        """End the statement that another thread runs here, if one does: it raises Unavailable there."""
        with contextlib.suppress(apsw.Error):
            self._connection.interrupt()

    def _begin_alone(self) -> None:
        """A statement outside a transaction is one of its own."""
        if not self._connection.in_transaction:
            self._since = time.monotonic()

    def _refuse_unwritable(self) -> None:
        if self.unwritable:
            raise self.unwritable

    def _measure(self, observe: Observe) -> None:
        """Tell of every commit when it has given the lock back, and then checkpoint as SQLite does by itself."""

        def committed(connection: apsw.Connection, _: str, pages: int) -> int:
            if self._since:
                observe("write", time.monotonic() - self._since)
                self._since = 0.0
            if pages >= _CHECKPOINT_PAGES:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            return apsw.SQLITE_OK

        self._connection.set_wal_hook(committed)

    def register_term_counts(self, function: Callable[..., str]) -> None:
        """Let full-text statements call ``term_counts(<table>)``."""
        self._connection.register_fts5_function("term_counts", function)

    def stems(self, text: str) -> list[str]:
        """The words of a text as the full-text tables keep them: diacritics dropped, Porter stems."""
        return self._stem(text)

    @cached_property
    def words(self) -> FileWords:
        """Full text, to be written."""
        made: FileWords = load("nacre.storage.sqlite.words:FileWords")(self)
        return made

    @cached_property
    def _stem(self) -> Callable[[str], list[str]]:
        return stemmer(self._connection)

    def fts_size(self, table: str) -> tuple[int, int]:
        """Rows in a full-text table, and words in all of them."""
        row = self.one(f"{table}_size")
        if row is None or row[0] is None:
            return 0, 0
        return _averages(row[0])

    def relax(self) -> None:
        """Let commits return before the disk confirms them: for what can be read again from transcripts."""
        self._connection.execute("PRAGMA synchronous = NORMAL")

    def tighten(self) -> None:
        """Let commits wait for the disk again."""
        self._connection.execute("PRAGMA synchronous = FULL")

    def fold_log(self) -> None:
        """Bring all that was committed into the file itself, which may be moved then. Raises StoreBusy, Unavailable."""
        with _translated(self.path):
            busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy and busy[0]:
            raise StoreBusy(f"another process reads {self.path}", hint="close it and repeat the command")

    def backup(self, target: Path) -> None:
        """Write a compact, consistent copy of the database to ``target``, whole or not at all, for the owner alone.

        Raises Conflict where the name is taken.
        """
        with _translated(self.path), private_files.new_file(target) as file:
            self._connection.execute("VACUUM INTO ?", (str(file.name),))

    def compact(self) -> bool:
        """Leave no byte of what was deleted in the file or its log; ``False`` while another process still reads it.

        Waits for the writer, and holds the database until it is done: seconds where it is large.
        """
        with _translated(self.path):
            self._connection.execute("PRAGMA secure_delete = ON").fetchall()
            self._since = time.monotonic()
            self._connection.execute("PRAGMA temp_store = FILE")  # a second copy in memory could be too much
            try:
                self._connection.execute("VACUUM")
            finally:
                self._connection.execute("PRAGMA temp_store = MEMORY")
            self._connection.set_busy_timeout(_READERS_PATIENCE_MS)
            row = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        return row is not None and not row[0]

    def is_readable(self, table: str) -> bool:
        """Whether every row of a table can be read; it takes as long as reading them all."""
        try:
            for _ in self._connection.execute(f'SELECT * FROM "{table}"'):  # noqa: S608 - a name from the schema
                pass
        except (UnicodeDecodeError, apsw.Error):
            return False
        return True

    def check(self) -> list[str]:
        """What SQLite's integrity check finds; empty when all is well, and where the database was closed."""
        with _translated(self.path):
            try:
                rows = self._connection.execute("PRAGMA integrity_check").fetchall()
            except apsw.ConnectionClosedError:
                return []
        return [str(text) for (text,) in rows if text != "ok"]


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn apsw's errors into nacre's, with the way out."""
    try:
        yield
    except apsw.BusyError as error:
        raise StoreBusy(f"another process is writing to {path}", hint="try again when it has finished") from error
    except apsw.FullError as error:
        raise _disk_full(path) from error
    except apsw.InterruptError as error:
        raise Unavailable("it was interrupted", hint="ask again") from error
    except apsw.NotADBError as error:
        raise StoreUnusable(
            f"{path} is not a nacre database",
            hint="move it away and run: nacre db rebuild",
        ) from error
    except apsw.CorruptError as error:
        raise damaged(path) from error
    except (apsw.SQLError, apsw.ConstraintError, apsw.MismatchError, UnicodeDecodeError) as error:
        raise damaged(path, str(error)) from error
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.IOError, apsw.PermissionsError) as error:
        if path.parent.exists() and shutil.disk_usage(path.parent).free < _LEAST_FREE_BYTES:
            raise _disk_full(path) from error
        raise StoreUnusable(
            f"cannot use the database {path}: {error}", hint="check that the folder exists and is writable"
        ) from error


def _lower(*told: Any) -> Any:
    """Of all letters: SQLite's own knows those of ASCII only."""
    (text,) = told
    return text.lower() if isinstance(text, str) else text


def damaged(path: Path, why: str = "") -> StoreUnusable:
    """That a database holds what it should not, with the way out."""
    told = f"{path} is damaged{f': {why}' if why else ''}"
    return StoreUnusable(told, hint="the vault still has every memory: nacre db rebuild")


def _wait_for_lock(asked: int) -> bool:
    """Ask for the write lock every 3 milliseconds, for 15 seconds: SQLite's own pauses grow, and others come first."""
    time.sleep(_ASK_SECONDS)
    return asked < BUSY_TIMEOUT_MS / (1000 * _ASK_SECONDS)


def _keep_a_log(connection: apsw.Connection) -> None:
    """Turn the write-ahead log on, which a new database has not.

    Where two processes open a new one at once, SQLite fails the later without asking the busy handler.
    """
    until = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchall()
            return
        except apsw.BusyError:
            if time.monotonic() > until:
                raise
            time.sleep(_ASK_SECONDS)


def _disk_full(path: Path) -> Unavailable:
    return Unavailable(f"the disk that holds {path} is full", hint="free some space; nothing was lost")


def _averages(record: bytes) -> tuple[int, int]:
    """FTS5's averages record: SQLite varints, the number of rows, then the words in each column."""
    values: list[int] = []
    value = 0
    for at, byte in enumerate(record):
        value = (value << 7) | (byte & 0x7F)
        if not byte & 0x80 or at == len(record) - 1:
            values.append(value)
            value = 0
    return (values[0], sum(values[1:])) if values else (0, 0)


def stemmer(connection: apsw.Connection) -> Callable[[str], list[str]]:
    """What makes the stems of a text, with the tokenizer of a connection."""
    tokenize: Any = connection.fts5_tokenizer("porter", _TOKENS)

    def stems(text: str) -> list[str]:
        found: list[str] = tokenize(
            text.encode("utf-8", "replace"), apsw.FTS5_TOKENIZE_DOCUMENT, None,
            include_offsets=False, include_colocated=False,
        )  # fmt: skip
        return found

    return stems


def engine_version() -> str:
    """Which SQLite runs, and through which apsw."""
    return f"{apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})"
