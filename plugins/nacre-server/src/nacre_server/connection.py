"""Connections to a PostgreSQL server, translation of statements, retries and migrations."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import psycopg
from psycopg import errors, sql
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict

from nacre.base.environment import environment
from nacre.base.sql import statements
from nacre.errors import (
    MissingStoreError,
    NotAllowedError,
    SchemaTooNewError,
    StoreBusyError,
    UnavailableError,
    UnusableStoreError,
)
from nacre.store.schema import Row
from nacre.store.sqlite import with_columns

if TYPE_CHECKING:
    from psycopg.abc import PQGen

Result = TypeVar("Result")

CONNECT_SECONDS = 5
"""Timeout for each of the server's addresses. The URL can override it."""

LOCK_SECONDS = 15
STATEMENT_SECONDS = 60
SILENT_SECONDS = 75.0
"""Seconds without data from the server after which a tenant's statement fails.

The server's own timeout for statements is shorter.
"""

_SERVER_OPTIONS = (
    f"-c statement_timeout={STATEMENT_SECONDS}s -c lock_timeout={LOCK_SECONDS}s"
    f" -c idle_in_transaction_session_timeout={STATEMENT_SECONDS}s -c client_connection_check_interval=5s"
    " -c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
    r" -c default_transaction_isolation=read\ committed -c standard_conforming_strings=on"
    " -c default_transaction_read_only=off"
)
_KEEPALIVE_OPTIONS: dict[str, Any] = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Options that detect a lost connection after half a minute."""

_RIGHTS = (
    "an administrator must run in this database: CREATE EXTENSION IF NOT EXISTS vector; CREATE ROLE nacre_tenant; "
    "GRANT nacre_tenant TO <login>; and the first login needs the right to create schemas"
)


class _NumericLoader(Loader):
    """A loader of whole numerics as int, because PostgreSQL sums integers to numerics."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


class _BoolLoader(Loader):
    """A loader of booleans as 1 or 0, as in SQLite."""

    def load(self, data: Any) -> int:
        return int(bytes(data) == b"t")


class _NoResponseError(psycopg.OperationalError):
    """The server keeps the connection open but sends nothing."""


class _Connection(psycopg.Connection[Row]):
    patience: float | None = None

    def wait(self, gen: PQGen[Result], *args: Any, **options: Any) -> Result:
        return super().wait(
            self._with_timeout(gen, self.patience) if self.patience else gen, *args, **options
        )

    def _with_timeout(self, gen: PQGen[Result], patience: float) -> PQGen[Result]:
        last_data = time.monotonic()
        try:
            wait_for = next(gen)
            while True:
                is_ready = yield wait_for
                if is_ready:
                    last_data = time.monotonic()
                elif time.monotonic() - last_data > patience:
                    self.pgconn.finish()
                    raise _NoResponseError(f"no data for {patience:g} seconds")
                wait_for = gen.send(is_ready)
        except StopIteration as end:
            result: Result = end.value
            return result


def connect(url: str, *, patience: float | None = None) -> psycopg.Connection[Row]:
    """Connect to a server without choosing a tenant.

    A statement waits for data for up to ``patience`` seconds, by default forever. Raises
    UnusableStoreError for an invalid address, and MissingStoreError if the connection fails.
    """
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        parts = {"host": "@"}
    ports = str(parts.get("port") or 0).replace(",", "")
    # Errors show the host and database name. With an unencoded @, / or ? in the password, they would
    # contain a part of it.
    if "@" in f"{parts.get('host')}{parts.get('dbname')}" or not ports.isdigit():
        raise UnusableStoreError(
            "NACRE_DB is not the address of a PostgreSQL server",
            hint="write postgresql://login:password@server:5432/database; in a password, write @ as %40, / as %2F, "
            "? as %3F and % as %25",
        )
    try:
        connection = _Connection.connect(
            url,
            autocommit=True,
            cursor_factory=psycopg.ClientCursor,
            client_encoding="utf8",
            connect_timeout=parts.get("connect_timeout", CONNECT_SECONDS),
            **_KEEPALIVE_OPTIONS,
            options=f"{parts.get('options') or ''} {_SERVER_OPTIONS}",
        )
    except psycopg.Error as error:
        raise MissingStoreError(
            f"cannot connect to the PostgreSQL server: {_first_line(error).removeprefix('connection failed: ')}",
            hint="check that it is running, and server, port, login and database in NACRE_DB",
        ) from error
    connection.patience = patience
    connection.adapters.register_loader("numeric", _NumericLoader)
    connection.adapters.register_loader("bool", _BoolLoader)
    return connection


@contextmanager
def translated_errors() -> Iterator[None]:
    """Convert psycopg errors in the block to nacre's errors with hints."""
    try:
        yield
    except (errors.LockNotAvailable, errors.SerializationFailure, errors.DeadlockDetected) as error:
        raise StoreBusyError(
            "another process is writing to this memory", hint="try again in a moment"
        ) from error
    except errors.QueryCanceled as error:
        raise UnavailableError(
            f"the request was interrupted: {_first_line(error)}", hint="try again"
        ) from error
    except errors.DiskFull as error:
        raise UnavailableError(
            "the disk of the PostgreSQL server is full", hint="free some space; nothing was lost"
        ) from error
    except errors.InsufficientPrivilege as error:
        raise UnusableStoreError(
            f"the PostgreSQL server refused the request: {_first_line(error)}", hint=_RIGHTS
        ) from error
    except (errors.FeatureNotSupported, errors.UndefinedFile) as error:
        raise UnusableStoreError(
            f"the PostgreSQL server cannot do this: {_first_line(error)}",
            hint="nacre needs PostgreSQL 16 or newer with pgvector (the extension vector)",
        ) from error
    except _NoResponseError as error:
        raise UnavailableError(
            f"the PostgreSQL server does not answer: {error}",
            hint="the request might have succeeded: check before you repeat it",
        ) from error
    except (psycopg.OperationalError, errors.IdleInTransactionSessionTimeout) as error:
        raise MissingStoreError(
            f"the PostgreSQL server does not answer: {_first_line(error)}",
            hint="start it, and repeat the command",
        ) from error
    except psycopg.Error as error:
        raise UnusableStoreError(
            f"the PostgreSQL server cannot do this: {_first_line(error)}"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# -- Statements for PostgreSQL ------------------------------------------------
# Most statements are in ``sql/queries`` of the core and work on both engines. Those in ``sql/queries``
# of this package override them.


_COMMENT = re.compile(r"--[^\n]*")
_QUOTED_OR_NAME = re.compile(r"('(?:[^']|'')*')|(?<![:\w]):([a-z_]\w*)|\?")
_WRITES = re.compile(r"\b(?:INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b")
_CONFLICT_TARGET = re.compile(r"\bON CONFLICT \(")
_LIST = re.compile(r"(FROM json_each\((?::\w+|\?)\))\)")
_LIMIT = re.compile(r"\bLIMIT (:\w+|\?|-1)")


@cache
def query(name: str) -> str:
    """Return a named statement with psycopg's placeholders. Raises KeyError."""
    return translated(with_columns(statement(name)))


def statement(name: str) -> str:
    """Return a named statement as its file contains it. Raises KeyError."""
    own = statements("nacre_server", "sql/queries")
    return own.get(name) or statements("nacre.store", "sql/queries")[name]


@cache
def translated(sql: str) -> str:
    """Convert a statement for psycopg and PostgreSQL.

    The tenant is added to conflict targets, and a negative limit means no limit.
    """
    bare = _LIMIT.sub(r"LIMIT nacre.most(\1)", _COMMENT.sub("", sql).replace("%", "%%"))
    # PostgreSQL then casts a list's values before the comparison. Otherwise, row-level security would
    # prevent the use of an index, because a cast can reveal its argument.
    bare = _LIST.sub(r"\1 OFFSET 0)", bare)
    return _CONFLICT_TARGET.sub("ON CONFLICT (tenant, ", _QUOTED_OR_NAME.sub(_placeholder, bare))


@cache
def writes(sql: str) -> bool:
    """Return True if a statement changes data."""
    return _WRITES.search(sql) is not None


def _placeholder(match: re.Match[str]) -> str:
    quoted, name = match.groups()
    return quoted or (f"%({name})s" if name else "%s")


# -- Retries of transactions that the server rolled back ----------------------


ResultT = TypeVar("ResultT")

TIMES = 4
"""Maximum number of attempts."""

_FIRST_DELAY_SECONDS = 0.05
_ROLLED_BACK = (errors.DeadlockDetected, errors.SerializationFailure)


def pause(done: int) -> None:
    """Sleep 50 ms, doubled for each earlier attempt, times a random factor from 0.5 to 1."""
    time.sleep(_FIRST_DELAY_SECONDS * 2**done * random.uniform(0.5, 1))  # noqa: S311 - avoids simultaneous retries


def repeated(work: Callable[[], ResultT]) -> ResultT:
    """Run a whole transaction, and repeat it after deadlocks and serialization failures.

    Raises StoreBusyError if all attempts fail, and other errors of ``work``.
    """
    for done in range(TIMES - 1):
        try:
            return work()
        except StoreBusyError as error:
            if not isinstance(error.__cause__, _ROLLED_BACK):
                raise
        pause(done)
    return work()


# -- Local time zone ----------------------------------------------------------


def local_zone() -> str:
    """Return the name of the local time zone, or its offset from UTC if the name is unknown.

    The server applies daylight saving time only to named zones.
    """
    now = datetime.now(UTC)
    offset = now.astimezone().utcoffset() or timedelta()
    for name in (
        environment().get("TZ", "").removeprefix(":"),
        os.path.realpath("/etc/localtime").partition("zoneinfo/")[2],
    ):
        try:
            if name and now.astimezone(ZoneInfo(name)).utcoffset() == offset:
                return name
        except (ValueError, LookupError, OSError):
            continue
    minutes = offset // timedelta(minutes=1)
    hours_and_minutes = f"{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    return f"<local>{'-' if minutes >= 0 else '+'}{hours_and_minutes}"


# -- Server migrations --------------------------------------------------------
# Each file ``sql/migrations/NNNN_name.sql`` is one transaction. Programs of different versions share a
# server, so a change takes two migrations. The first adds new objects and declares ``-- needs N``, the
# oldest schema whose programs still work. A later one removes the old objects without this
# declaration, and so locks out older programs.


_FOLDER = Path(__file__).parent / "sql" / "migrations"
_NAME = re.compile(r"^(\d{4})_\w+\.sql$")
_NEEDS = re.compile(r"^-- needs (\d+)$", re.MULTILINE)
_SELECT_VERSION_TABLE = """
SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'nacre_rows' AND c.relname = 'schema_version'
"""
"""Query for the version table.

``to_regclass`` can miss a table that another connection has just created.
"""

_MIGRATION_LOCK = 0x6E61637265
"""Number of the advisory lock for migrations, which spells ``nacre``."""

_MIGRATION_LOCK_SECONDS = 3
"""Maximum wait for a table's lock. Meanwhile, other statements queue behind the migration."""


class State(NamedTuple):
    """The number of a database's last migration, and the oldest schema whose programs can use it."""

    number: int
    needs: int


@cache
def migrations() -> dict[int, str]:
    """Return the SQL of each migration by number."""
    return {
        int(file.name[:4]): file.read_text("utf-8")
        for file in sorted(_FOLDER.iterdir())
        if _NAME.match(file.name)
    }


def migrate(connection: psycopg.Connection[Any]) -> None:
    """Migrate a server's database to the current schema, after other processes have finished doing
    so.

    The role must be allowed to create schemas, roles and the extension ``vector``. Raises
    SchemaTooNewError or psycopg.Error.
    """
    newest = max(migrations())
    for done in range(TIMES):
        try:
            if not _is_current(state(connection), newest):
                _migrate_once(connection, newest)
            return
        except (errors.DeadlockDetected, errors.LockNotAvailable):
            if done == TIMES - 1:
                raise
        pause(done)


def _migrate_once(connection: psycopg.Connection[Any], newest: int) -> None:
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
        current = state(connection)
        if _is_current(current, newest):
            return
        connection.execute(f"SET LOCAL lock_timeout = '{_MIGRATION_LOCK_SECONDS}s'".encode())
        insert = b"INSERT INTO nacre_rows.schema_version (number, needs) VALUES (%s, %s)"
        for number, sql in migrations().items():
            if number > current.number:
                connection.execute(sql.encode())
                needs = _NEEDS.search(sql)
                connection.execute(insert, (number, int(needs[1]) if needs else number))


def _is_current(server: State, newest: int) -> bool:
    if server.needs > newest:
        raise SchemaTooNewError(
            f"the server has schema {server.number}, but this nacre supports only {newest}",
            hint="upgrade nacre on this machine",
        )
    return server.number >= newest


def state(connection: psycopg.Connection[Any]) -> State:
    """Return the schema state of a database. Both numbers are 0 for an empty database."""
    if connection.execute(_SELECT_VERSION_TABLE).fetchone() is None:
        return State(0, 0)
    select = (
        "SELECT coalesce(max(number), 0), coalesce(max(needs), 0) FROM nacre_rows.schema_version"
    )
    row = connection.execute(select).fetchone()
    return State(int(row[0]), int(row[1])) if row else State(0, 0)


# -- Administration without a tenant -----------------------------------------


class Registry:
    """A connection for administration, without a tenant and for one thread at a time.

    Methods raise NotAllowedError, UnusableStoreError, or UnavailableError if the server sends
    nothing for ``patience`` seconds.
    """

    def __init__(self, url: str, patience: float | None = None) -> None:
        self._connection = connect(url, patience=patience)
        with translated_errors():
            migrate(self._connection)

    def all(self, name: str, **values: Any) -> list[Row]:
        """Run a statement from ``sql/spaces``, and return its rows."""
        return self._execute(name, values).fetchall()

    def run(self, name: str, **values: Any) -> int:
        """Run a statement from ``sql/spaces``, and return the number of rows that it changed."""
        return self._execute(name, values).rowcount

    def _execute(self, name: str, values: dict[str, Any]) -> psycopg.Cursor[Row]:
        statement = translated(statements("nacre_server", "sql/spaces")[name])
        with _refusals():
            return self._connection.execute(statement, values)

    def is_used(self, tenant: str) -> bool:
        with self.transaction():
            self.run("name_tenant", space=tenant)
            return bool(self.all("read_use"))

    def count_rows(self, tenant: str) -> int:
        """Count a tenant's rows in all tables."""
        with self.transaction():
            self.run("name_tenant", space=tenant)
            self.run("wait_long")
            return sum(
                self._of_rows("SELECT count(*)", table, tenant)[0][0]
                for (table,) in self.all("list_tables")
            )

    def delete_rows(self, tenant: str) -> int:
        """Delete all rows of a tenant, including those that triggers insert, and return their
        number.

        The caller must have opened a transaction.
        """
        self.run("name_tenant", space=tenant)
        self.run("wait_long")
        tables, deleted = [table for (table,) in self.all("list_tables")], 0
        while done := sum(
            len(self._of_rows("DELETE", table, tenant, " RETURNING 1")) for table in tables
        ):
            deleted += done
        return deleted

    def _of_rows(self, what: str, table: str, tenant: str, then: str = "") -> list[Row]:
        with _refusals():
            statement = sql.SQL("{} FROM nacre_rows.{} t WHERE tenant = %s{}").format(
                sql.SQL(what), sql.Identifier(table), sql.SQL(then)
            )
            return self._connection.execute(statement, (tenant,)).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with translated_errors(), self._connection.transaction():
            yield

    def close(self) -> None:
        self._connection.close()


@contextmanager
def _refusals() -> Iterator[None]:
    with translated_errors():
        try:
            yield
        except errors.InsufficientPrivilege as error:
            raise NotAllowedError(
                "this login at the server does not manage its spaces",
                hint="use the one that owns the database, or have it grant the schema nacre_spaces and its tables",
            ) from error
