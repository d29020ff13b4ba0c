"""Numbered, forward-only migrations: ``sql/migrations/NNNN_name.sql``, and those of the gateway in ``sql/gateway``."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_origin, get_type_hints
from urllib import parse

import apsw

from nacre.base import files
from nacre.base.files import statements
from nacre.base.ids import at_ms, from_ms, to_ms
from nacre.base.lazy import load
from nacre.base.locks import Observe
from nacre.errors import NacreError, SchemaTooNew, StoreBusy, StoreUnusable, Unavailable
from nacre.store.schema import Row
from nacre.values.memory import Memory

if TYPE_CHECKING:
    from nacre.store.search import FileWords

_FOLDERS = Path(__file__).parent / "sql"
MAIN = "migrations"
"""The folder of those of ``nacre.db``."""
_NAME = re.compile(r"^(\d{4})_\w+\.sql$")


@cache
def migrations(folder: str = MAIN) -> dict[int, str]:
    """Return the SQL of each migration by its number, in order."""
    found = {}
    for file in (_FOLDERS / folder).iterdir():
        match = _NAME.match(file.name)
        if match:
            found[int(match.group(1))] = file.read_text(encoding="utf-8")
    return dict(sorted(found.items()))


@cache
def newest(folder: str = MAIN) -> int:
    """Return the number of the present schema, by the files' names alone."""
    names = (_NAME.match(file.name) for file in (_FOLDERS / folder).iterdir())
    return max(int(name.group(1)) for name in names if name)


def migrate(connection: apsw.Connection, path: Path, folder: str = MAIN) -> None:
    """Bring a database to the present schema in one transaction, and keep a copy of one that has data.

    Raises SchemaTooNew when a newer nacre wrote it.
    """
    version = _version(connection)
    if version == newest(folder):
        return
    if version > newest(folder):
        raise SchemaTooNew(
            f"{path} has schema {version}, this nacre knows up to {newest(folder)}",
            hint="upgrade nacre, or point NACRE_HOME at another folder",
        )
    if version:
        _keep_copy(connection, path.with_name(f"{path.name}.before-{newest(folder):04d}"))
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, sql in migrations(folder).items():
            if number > _version(connection):
                connection.execute(sql)
                connection.execute(f"PRAGMA user_version = {number}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def is_present_schema(connection: apsw.Connection, folder: str = MAIN) -> bool:
    """Return whether a database needs no migration."""
    return _version(connection) == newest(folder)


def _version(connection: apsw.Connection) -> int:
    row = connection.execute("PRAGMA user_version").fetchone()
    return int(row[0]) if row else 0


def _keep_copy(connection: apsw.Connection, target: Path) -> None:
    if target.exists() and target.stat().st_size:
        return
    with files.new_file(target, overwrite=True) as file:
        connection.execute("VACUUM INTO ?", (str(file.name),))


# ----------------------------------------------------------------------------
# A value as the row of its table, and back: a field is listed in its dataclass, and has a column of
# its name.
#
# Days are ISO texts, times milliseconds, lists and mappings JSON. The fields of a small value within
# it have columns of
# their own: ``valid_since`` for ``valid.since``.


T = TypeVar("T")
_Read = Callable[[Any], Any]


class RowCodec(Generic[T]):
    """Rows of a frozen dataclass.

    ``elsewhere`` are fields that other tables hold. ``renamed`` are columns with another name than the rule gives.
    ``columns`` are those to select: the number of a row, then one for each field, in the order in which they are read.
    """

    def __init__(
        self, kind: type[T], *, elsewhere: Collection[str], renamed: Mapping[str, str]
    ) -> None:
        self._kind = kind
        self.columns = ["row"]
        self._single: list[_Column] = []
        self._nested: list[_Nested] = []
        for name, type_ in _types(kind).items():
            bare, is_optional = _required(type_)
            if name in elsewhere:
                continue
            if not is_dataclass(bare):
                self._single.append(self._column(name, renamed.get(name, name), type_))
                continue
            inner = {one: f"{name}_{one}" for one in _types(bare)}
            parts = [
                self._column(one, renamed.get(at, at), _types(bare)[one])
                for one, at in inner.items()
            ]
            self._nested.append(_Nested(name, bare, is_optional, parts))

    def _column(self, field: str, name: str, kind: Any) -> _Column:
        self.columns.append(name)
        return _Column(field, name, len(self.columns) - 1, _reader(kind))

    def encode(self, value: T) -> dict[str, object]:
        """The columns of a value."""
        row = {column.name: _stored(getattr(value, column.field)) for column in self._single}
        for part in self._nested:
            held = getattr(value, part.field)
            row |= {
                column.name: _stored(getattr(held, column.field, None)) for column in part.columns
            }
        return row

    def decode(self, row: Row, **others: Any) -> T:
        """The value of a row of ``columns``, with the fields that other tables hold."""
        for column in self._single:
            others[column.field] = column.value_in(row)
        for part in self._nested:
            others[part.field] = part.value_in(row)
        return self._kind(**others)


@dataclass(frozen=True, slots=True)
class _Column:
    """A field's column: its name, its number, and what reads it where that is not the value itself."""

    field: str
    name: str
    at: int
    read: _Read | None

    def value_in(self, row: Row) -> Any:
        held = row[self.at]
        return held if self.read is None or held is None else self.read(held)


@dataclass(frozen=True, slots=True)
class _Nested:
    """A field that is a small value; an optional one is there where its first column is."""

    field: str
    kind: Any
    is_optional: bool
    columns: list[_Column]

    def value_in(self, row: Row) -> Any:
        if self.is_optional and row[self.columns[0].at] is None:
            return None
        return self.kind(*[column.value_in(row) for column in self.columns])


@cache
def memory_rows() -> RowCodec[Memory]:
    """The rows of ``memories``, on both engines. Tags, links, confirmations and the claim have tables of their own."""
    renamed = {"source_session": "session", "source_turns": "turns"}
    return RowCodec(Memory, elsewhere=("tags", "links", "confirmed", "claim"), renamed=renamed)


def noted_pair(text: str | None, default: tuple[Any, Any]) -> tuple[Any, Any]:
    """Two values that were noted as JSON, of the types of those that count where nothing is, or no such thing."""
    try:
        one, other = json.loads(text or "null")
    except (TypeError, ValueError, RecursionError):
        return default
    return (
        (one, other)
        if (type(one), type(other)) == (type(default[0]), type(default[1]))
        else default
    )


def _types(kind: Any) -> dict[str, Any]:
    types = get_type_hints(kind)
    return {field.name: types[field.name] for field in fields(kind)}


def _required(kind: Any) -> tuple[Any, bool]:
    """A type without ``None``, and whether it had it."""
    is_optional = type(None) in get_args(kind)
    return (
        (next(one for one in get_args(kind) if one is not type(None)), True)
        if is_optional
        else (kind, False)
    )


def _stored(value: Any) -> object:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return to_ms(value)
    if isinstance(value, date):
        return value.isoformat()
    return json.dumps(value) if isinstance(value, (tuple, dict)) else value


def _reader(kind: Any) -> _Read | None:
    """What makes a value of a column's; ``None`` where they are the same."""
    kind, is_optional = _required(kind)
    origin = get_origin(kind) or kind
    if origin in (str, int, float):
        return None
    if origin is tuple:
        return lambda text: () if text == "[]" else tuple(json.loads(text))
    reads: dict[Any, _Read] = {
        dict: json.loads,
        datetime: from_ms if is_optional else at_ms,
        date: date.fromisoformat,
    }
    made: _Read = origin
    return reads.get(origin, made)


# ----------------------------------------------------------------------------
# nacre's own SQL statements, from ``sql/queries/*.sql``.
#
# Vectors are there twice: those in use, and those of another model, in tables of the same shape whose
# names begin with
# ``other_``. Each statement about the former stands in the files; the same about the latter is read
# off it.


OTHER = "other_"
_WHOLE = re.compile(r"SELECT (?:m\.)?\* (?=FROM (?:active_|past_)?memories\b)")
_VECTOR_TABLES = re.compile(
    r"(?<!other_)\b(passages|turn_passages|passage_bits|memory_vectors|embedding)\b"
)


@cache
def query(name: str) -> str:
    """The statement of that name. Raises KeyError."""
    found = _load().get(
        name
    )  # those about other vectors are read off the rest, which few processes need
    return with_columns(_all()[name] if found is None else found)


def with_columns(statement: str) -> str:
    """A statement that selects whole memories, with the columns that :func:`memory_rows` reads, in their order."""
    if not _WHOLE.search(statement):
        return statement
    return _WHOLE.sub(f"SELECT {', '.join(memory_rows().columns)} ", statement)


@cache
def about_other(name: str) -> str:
    """The name of the same statement about the vectors of another model; its own where it is about other tables."""
    return OTHER + name if OTHER + name in _all() else name


@cache
def _all() -> dict[str, str]:
    return with_other(_load())


def with_other(statements: Mapping[str, str]) -> dict[str, str]:
    """Statements, and those about the vectors of another model that are read off them."""
    found = dict(statements)
    for name, statement in statements.items():
        if _VECTOR_TABLES.search(statement) and OTHER not in statement:
            found[OTHER + name] = _VECTOR_TABLES.sub(rf"{OTHER}\1", statement)
    return found


def _load() -> dict[str, str]:
    return statements("nacre.store", "sql/queries")


# ----------------------------------------------------------------------------
# A connection that only reads, where nothing can be written: on a full disk, on a read-only one.
#
# SQLite keeps a log and an index of it beside a database, and cannot read without them, unless it
# knows that nobody
# writes.


_BUSY_MS = 1_000


def connect_to_read(
    path: Path, patience_ms: int | None = None, migrations: str = MAIN
) -> apsw.Connection | None:
    """A connection to a database of the present schema; ``None`` where it cannot be read, either.

    With ``patience_ms`` it waits for no lock longer than that, and takes none that others would wait for.

    Three ways, the first that works: beside others; as the only one, which needs no index, while others wait for the
    moment that takes; as a file that nobody can change, where the folder is read-only and nothing is left in a log.
    """
    for connection in _ways(path, patience_ms):
        try:
            connection.execute(
                "PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32000"
            ).fetchall()
            if is_present_schema(connection, migrations):
                return connection
        except apsw.Error:
            pass
        with contextlib.suppress(apsw.Error):
            connection.close()
    return None


def _ways(path: Path, patience_ms: int | None) -> Iterator[apsw.Connection]:
    with contextlib.suppress(apsw.Error):
        beside = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        beside.set_busy_timeout(_BUSY_MS if patience_ms is None else patience_ms)
        yield beside
    with contextlib.suppress(apsw.Error):
        if patience_ms is None:
            alone = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            alone.set_busy_timeout(_BUSY_MS)
            alone.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
            yield alone
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


# ----------------------------------------------------------------------------
# Open the database, run named queries, hold transactions.
#
# One connection per :class:`FileDatabase`; threads each open their own. WAL lets readers go on while
# one writer writes.


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
            found = connect_to_read(path, patience_ms, migrations)
            if found is None:
                raise unwritable
            self._connection = found
            self._connection.create_scalar_function("lower", _lower, 1, deterministic=True)
            return
        with _translated(path):
            self._connection = apsw.Connection(str(path))
            try:
                if self._connection.readonly(
                    "main"
                ):  # what cannot be opened to be written, SQLite opens to be read
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
        if (
            not self._connection.in_transaction
            or self._depth
            or time.monotonic() - self._since < _BREATH_SECONDS
        ):
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
        return (
            None
            if self._connection.in_transaction
            else (self.edition(), self._connection.total_changes())
        )

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
        made: FileWords = load("nacre.store.search:FileWords")(self)
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
            raise StoreBusy(
                f"another process reads {self.path}", hint="close it and repeat the command"
            )

    def backup(self, target: Path) -> None:
        """Write a compact, consistent copy of the database to ``target``, whole or not at all, for the owner alone.

        Raises Conflict where the name is taken.
        """
        with _translated(self.path), files.new_file(target) as file:
            self._connection.execute("VACUUM INTO ?", (str(file.name),))

    def compact(self) -> bool:
        """Leave no byte of what was deleted in the file or its log; ``False`` while another process still reads it.

        Waits for the writer, and holds the database until it is done: seconds where it is large.
        """
        with _translated(self.path):
            self._connection.execute("PRAGMA secure_delete = ON").fetchall()
            self._since = time.monotonic()
            self._connection.execute(
                "PRAGMA temp_store = FILE"
            )  # a second copy in memory could be too much
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
        raise StoreBusy(
            f"another process is writing to {path}", hint="try again when it has finished"
        ) from error
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
            f"cannot use the database {path}: {error}",
            hint="check that the folder exists and is writable",
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
    return Unavailable(
        f"the disk that holds {path} is full", hint="free some space; nothing was lost"
    )


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
            text.encode("utf-8", "replace"),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return found

    return stems


def engine_version() -> str:
    """Which SQLite runs, and through which apsw."""
    return f"{apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})"


# ----------------------------------------------------------------------------
# Open a home's database: to be written, or only to be read where nothing can be written now.


_SPOILED = (apsw.CorruptError, apsw.NotADBError)


def open_database(
    path: Path, observe: Observe | None = None, migrations: str = MAIN
) -> FileDatabase:
    """Open a database, making it where there is none.

    One on a full or read-only disk, or that this user may only read, is opened to be read. Raises StoreUnusable,
    StoreBusy, SchemaTooNew, Unavailable.
    """
    try:
        _create_private(path)
        return FileDatabase(path, observe, migrations=migrations)
    except (SchemaTooNew, StoreBusy):
        raise
    except (StoreUnusable, Unavailable) as error:
        if isinstance(error.__cause__, _SPOILED) or not path.is_file():
            raise
        return FileDatabase(path, unwritable=error, migrations=migrations)


def _create_private(path: Path) -> None:
    """An empty file that only the owner can read: SQLite gives its side files the same mode.

    The file may be a link to where the owner keeps large things.
    """
    try:
        os.close(files.open_file(os.path.realpath(path), os.O_WRONLY | os.O_CREAT))
    except OSError as error:
        told, hint = error.strerror or str(error), "check that the folder exists and is writable"
        if error.errno == errno.EROFS:
            told, hint = (
                "it is on a read-only disk",
                "make that writable, or set NACRE_HOME to another folder",
            )
        raise StoreUnusable(f"cannot use the database {path}: {told}", hint=hint) from error


# ----------------------------------------------------------------------------
# One moment of the database, held while others go on writing, and copied at leisure.


_PAGES = 4_000
"""So many pages are copied between two words on how far it is."""


class Snapshot:
    """The database as it is when this is made; use as a context manager. Writers are not kept waiting."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = apsw.Connection(str(path))
        self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        self._connection.execute("BEGIN")
        self._connection.execute(
            "SELECT count(*) FROM sqlite_schema"
        ).fetchall()  # the first look is the moment

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def copy(self, target: Path, on_progress: Callable[[int, int], None]) -> None:
        """Write it to a file that does not exist yet; tells pages done and in all. Raises StoreUnusable."""
        try:
            copy = apsw.Connection(str(target))
            try:
                with copy.backup("main", self._connection, "main") as work:
                    while not work.done:
                        work.step(_PAGES)
                        on_progress(work.page_count - work.remaining, work.page_count)
                copy.execute("PRAGMA journal_mode = DELETE").fetchall()
            finally:
                copy.close()
        except apsw.Error as error:
            raise StoreUnusable(
                f"{self._path} cannot be copied: {error}", hint="nacre doctor --deep looks at it"
            ) from error
