"""A tenant's rows on a PostgreSQL server: the same named queries and transactions as of a database file.

One connection a :class:`PostgresDatabase`; threads each open their own. Who writes holds the tenant's lock until the
transaction ends, as who writes to a file holds the file's.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import apsw
import psycopg
from psycopg import errors
from psycopg.adapt import Loader
from psycopg.pq import TransactionStatus

from nacre.errors import InvalidInput, NacreError, StoreBusy, StoreUnusable, Unavailable
from nacre.storage.database import Row
from nacre.storage.postgres.dialect import query, translated
from nacre.storage.postgres.migrate import migrate, version
from nacre.storage.postgres.words import ServerWords
from nacre.storage.postgres.zone import local_zone
from nacre.storage.sqlite.stemming import stemmer

ROLE = "nacre_tenant"
"""What a connection becomes: it sees one tenant's rows, whoever signed in."""

CONNECT_SECONDS = 10
LOCK_SECONDS = 15
STATEMENT_SECONDS = 60
_TENANT = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_BREATH_SECONDS = 0.03


class _Whole(Loader):
    """Sums of whole numbers come as numerics, which are floats only where they have a fraction."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


class _Truth(Loader):
    """Truth is 1 or 0, as in a database file."""

    def load(self, data: Any) -> int:
        return int(bytes(data) == b"t")


def connect(url: str, *, read_only: bool = False) -> psycopg.Connection[Row]:
    """A connection without a tenant, for who migrates or looks after the server. Raises StoreUnusable."""
    try:
        connection = psycopg.connect(
            url, autocommit=True, cursor_factory=psycopg.ClientCursor, connect_timeout=CONNECT_SECONDS,
            options=f"-c statement_timeout={STATEMENT_SECONDS}s -c lock_timeout={LOCK_SECONDS}s"
            f" -c idle_in_transaction_session_timeout={STATEMENT_SECONDS}s"
            f" -c default_transaction_read_only={'on' if read_only else 'off'}",
        )  # fmt: skip
    except psycopg.Error as error:
        raise StoreUnusable(
            f"cannot connect to the PostgreSQL server: {_first_line(error)}",
            hint="is it running, and is the address in storage.url (or NACRE_DB) right?",
        ) from error
    connection.adapters.register_loader("numeric", _Whole)
    connection.adapters.register_loader("bool", _Truth)
    return connection


class PostgresDatabase:
    """A connection to one tenant's rows, with the present schema. ``tenant`` is 1 to 64 letters, digits, ``._-``."""

    is_server = True

    def __init__(self, url: str, tenant: str) -> None:
        """Connect, and migrate an older server. Raises StoreUnusable, StoreBusy, SchemaTooNew, InvalidInput."""
        if not _TENANT.fullmatch(tenant):
            raise InvalidInput(f"{tenant!r} cannot name a tenant", hint="use up to 64 lower-case letters and digits")
        self.tenant = tenant
        self.unwritable: NacreError | None = None
        self._depth = 0
        self._since = 0.0
        self._connection = connect(url)
        try:
            with _translated():
                migrate(self._connection)
                self._connection.execute("SELECT set_config('nacre.tenant', %s, false)", (tenant,))
                self._connection.execute(f"SET ROLE {ROLE}")
                self._connection.execute("SET search_path = nacre, pg_catalog, public, pg_temp")
                self._connection.execute("SELECT set_config('TimeZone', %s, false)", (local_zone(),))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._connection.close()

    def all(self, name: str, **parameters: Any) -> list[Row]:
        """All rows of a named query."""
        return self._fetch(query(name), parameters)

    def one(self, name: str, **parameters: Any) -> Row | None:
        """The first row of a named query, or ``None``."""
        with _translated():
            return self._connection.execute(query(name), _clean(parameters)).fetchone()

    def run(self, name: str, **parameters: Any) -> int:
        """Run a named statement; returns how many rows it changed."""
        with self._alone(), _translated():
            return max(0, self._connection.execute(query(name), _clean(parameters)).rowcount)

    def run_many(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a named statement once for each of ``rows``."""
        if not rows:
            return
        with self._alone(), _translated(), self._connection.cursor() as cursor:
            cursor.executemany(query(name), [_clean(row) for row in rows])

    def insert(self, table: str, row: Mapping[str, Any], returning: str) -> Any:
        """Insert a row into a table, within a transaction; returns the value of one of its columns."""
        marks = ", ".join(f":{column}" for column in row)
        statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) RETURNING {returning}"  # noqa: S608 - names of ours
        return self._fetch(translated(statement), dict(row))[0][0]

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns, in their order."""
        found = "SELECT column_name::text FROM information_schema.columns WHERE table_schema = 'nacre'"
        return [
            name for (name,) in self.rows(f"{found} AND table_name = ? ORDER BY ordinal_position", [table])
            if name != "tenant"
        ]  # fmt: skip

    def rows(self, sql: str, parameters: dict[str, Any] | Sequence[Any] = ()) -> list[Row]:
        """All rows of a statement composed in this package; values are always bound."""
        return self._fetch(translated(sql), parameters)

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.info.transaction_status != TransactionStatus.IDLE

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin, take the tenant's lock … commit; rolled back when the block raises. Nested blocks join the outer."""
        if self.is_in_transaction:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        self._begin()
        try:
            yield
            with _translated():
                self._connection.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """One view of the database for all that is read in the block, whatever others write meanwhile."""
        if self.is_in_transaction:
            yield
            return
        with _translated():
            self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            yield
            with _translated():
                self._connection.execute("COMMIT")  # of what tables of the connection's own were given
        except BaseException:
            self._roll_back()
            raise

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        """A part of a transaction that is taken back alone when the block raises."""
        self._connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            if self.is_in_transaction:
                self._connection.execute("ROLLBACK TO part")
                self._connection.execute("RELEASE part")
            raise
        self._connection.execute("RELEASE part")

    def yield_write_lock(
        self, first: Callable[[], object] | None = None, between: Callable[[], object] | None = None
    ) -> bool:
        """Between two parts of a long transaction that may each stand alone: commit, and let others write.

        As of a database file: nothing happens until the lock was held for 30 ms, nor in a block that joined an outer
        one. Returns whether anybody else wrote meanwhile.
        """
        if not self.is_in_transaction or self._depth or time.monotonic() - self._since < _BREATH_SECONDS:
            return False
        if first:
            first()
        with _translated():
            self._connection.execute("COMMIT")
        edition = self.edition()
        if between:
            between()
        self._begin()
        return self.edition() != edition

    def edition(self) -> object:
        """A value that is another one when anybody has committed meanwhile."""
        return self.rows("SELECT pg_current_snapshot()::text")[0][0]

    def state(self) -> object:
        """A value that is another one when anybody has written meanwhile; ``None`` within a transaction."""
        return None if self.is_in_transaction else self.edition()

    def stems(self, text: str) -> list[str]:
        """The words of a text as full text keeps them: those of a database file."""
        return self._stem(text)

    @cached_property
    def words(self) -> ServerWords:
        """Full text, to be written."""
        return ServerWords(self, self.tenant)

    @cached_property
    def _stem(self) -> Callable[[str], list[str]]:
        return stemmer(apsw.Connection(":memory:"))

    def relax(self) -> None:
        """Let commits return before the server's disk confirms them."""
        self._connection.execute("SET synchronous_commit = off")

    def tighten(self) -> None:
        """Let commits wait for the server's disk again."""
        self._connection.execute("SET synchronous_commit = on")

    def is_in_place(self) -> bool:
        """Whether the connection is open."""
        return not self._connection.closed

    @property
    def identity(self) -> object:
        """Server and tenant."""
        info = self._connection.info
        return info.host, info.port, info.dbname, self.tenant

    def schema(self) -> int:
        """The number of the last migration that the server's database went through."""
        with _translated():
            return version(self._connection)

    def interrupt(self) -> None:
        """End the statement that another thread runs here, if one does: it raises Unavailable there."""
        with contextlib.suppress(psycopg.Error):
            self._connection.cancel_safe()

    def _fetch(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any]) -> list[Row]:
        with _translated():
            return self._connection.execute(sql, _clean(parameters)).fetchall()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """A statement outside a transaction is one of its own, and waits for who writes."""
        with self.transaction():
            yield

    def _begin(self) -> None:
        with _translated():
            self._connection.execute("BEGIN")
            try:
                self._connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (self.tenant,))
            except BaseException:
                self._roll_back()
                raise
        self._since = time.monotonic()

    def _roll_back(self) -> None:
        with contextlib.suppress(psycopg.Error):
            if self.is_in_transaction:
                self._connection.execute("ROLLBACK")


def _clean(parameters: Mapping[str, Any] | Sequence[Any]) -> Any:
    """Values as the server takes them: its texts hold no NUL, and truth is a number."""
    if isinstance(parameters, Mapping):
        return {name: _bindable(value) for name, value in parameters.items()}
    return [_bindable(value) for value in parameters]


def _bindable(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    """Turn psycopg's errors into nacre's, with the way out."""
    try:
        yield
    except (errors.LockNotAvailable, errors.SerializationFailure, errors.DeadlockDetected) as error:
        raise StoreBusy("another process is writing to this memory", hint="try again in a moment") from error
    except errors.QueryCanceled as error:
        raise Unavailable("it was interrupted", hint="ask again") from error
    except errors.DiskFull as error:
        raise Unavailable(
            "the disk of the PostgreSQL server is full", hint="free some space; nothing was lost"
        ) from error
    except errors.InsufficientPrivilege as error:
        raise StoreUnusable(
            f"the PostgreSQL server refuses it: {_first_line(error)}",
            hint="docs/server.md says which rights are needed",
        ) from error
    except psycopg.OperationalError as error:
        raise StoreUnusable(
            f"the PostgreSQL server does not answer: {_first_line(error)}", hint="start it, and repeat the command"
        ) from error
    except psycopg.Error as error:
        raise StoreUnusable(f"the PostgreSQL server cannot do this: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
