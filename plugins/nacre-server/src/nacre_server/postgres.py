"""The PostgreSQL engine: databases of tenants, and locks."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import apsw
import psycopg
from psycopg.pq import TransactionStatus

from nacre.base.lazy import Module
from nacre.base.locks import PATIENCE_SECONDS, FileLock
from nacre.base.sql import Parameters, Queries, bind, bound
from nacre.errors import InvalidInputError, NacreError, NotAllowedError, UnusableStoreError
from nacre.store.schema import Indexed, Row
from nacre.store.sqlite import stemmer
from nacre.values.memory import Role
from nacre_server.connection import (
    CONNECT_SECONDS,
    SILENT_SECONDS,
    ResultT,
    connect,
    local_zone,
    migrate,
    query,
    repeated,
    state,
    translated,
    translated_errors,
    writes,
)
from nacre_server.search import ServerSearch, ServerWalk, ServerWords
from nacre_server.vault import ServerVault

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from nacre.base.ids import Clock
    from nacre.home.home import Home
    from nacre.settings import Settings
    from nacre.values.recall import RecallQuery, RecallResult
    from nacre.vault.files import Vault
    from nacre_server import keys, spaces
    from nacre_server.keys import Spaces
else:
    keys, spaces = Module("nacre_server.keys"), Module("nacre_server.spaces")

# -- Connections for one tenant -----------------------------------------------
# Each thread needs its own :class:`PostgresDatabase`, which has one connection. A writer holds the
# tenant's lock until the transaction ends. A broken connection is reopened at the start of a block,
# unless locks or temporary tables were lost with it. Within a block, UnusableStoreError is raised. A
# transaction with a single statement is repeated if the server rolled it back, but not if the answer
# to its commit was lost.


ROLE = "nacre_tenant"
"""Database role of every connection. It sees only one tenant's rows."""

_SIGN_IN = f"""
SET ROLE {ROLE}; SET search_path = nacre, pg_catalog, public, pg_temp;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
"""
"""Statements for a new connection. Commits wait for the server's disk."""

_SEARCH_SETTINGS = {
    "hnsw.ef_search": "400",
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.max_scan_tuples": "40000",
}
"""Settings with which a vector search continues until it has enough of the tenant's rows."""

_TENANT = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_MIN_LOCK_SECONDS = 0.03


class PostgresDatabase(Queries):
    """A connection to a tenant's rows for ``account``, by default the tenant.

    It is read-only with ``unwritable`` or if the account may only read. A statement waits for data
    for up to ``patience`` seconds.
    """

    def __init__(
        self,
        url: str,
        tenant: str,
        account: str = "",
        unwritable: NacreError | None = None,
        patience: float = SILENT_SECONDS,
    ) -> None:
        """Connect, and migrate the server if its schema is older.

        Raises InvalidInputError for an invalid tenant, NotAllowedError if the account has no
        access, SchemaTooNewError, StoreBusyError or UnusableStoreError.
        """
        if not _TENANT.fullmatch(tenant):
            raise InvalidInputError(
                f"{tenant!r} is not a valid tenant name",
                hint="use up to 64 lower-case letters and digits",
            )
        self.tenant = tenant
        self.account = account or tenant
        self.unwritable = unwritable
        self._url = url
        self._patience = patience
        self.further_homes: dict[str, Home] = {}
        self._depth = 0
        self._since = 0.0
        self._is_open = False  # in a block
        # True if it was closed, or has temporary tables that a new connection would lack.
        self._is_final = False
        self._own = 0
        self._has_written = False  # in the open block
        self._held: set[str] = set()
        self._connect()

    def _connect(self) -> None:
        self._connection = connect(self._url, patience=self._patience)
        try:
            with translated_errors():
                encoding = self._connection.info.parameter_status("server_encoding")
                if encoding != "UTF8":
                    raise UnusableStoreError(
                        f"the database on the PostgreSQL server uses {encoding}, but nacre needs UTF8",
                        hint="create another database: CREATE DATABASE nacre ENCODING 'UTF8' TEMPLATE template0",
                    )
                migrate(self._connection)
                self._connection.execute(_SIGN_IN)
                info = self._connection.info
                self._identity = info.host, info.port, info.dbname, self.tenant
                settings = {"nacre.tenant": self.tenant, "TimeZone": local_zone()}
                settings |= _SEARCH_SETTINGS
                set_all = ", ".join(["set_config(%s, %s, false)"] * len(settings))
                values = [value for setting in settings.items() for value in setting]
                self._connection.execute(f"SELECT {set_all}".encode(), values)
            self.unwritable = self._write_refusal() or self.unwritable
        except BaseException:
            self._connection.close()
            raise

    def _write_refusal(self) -> NacreError | None:
        with translated_errors():
            row = self._connection.execute(
                query("read_standing"), {"account": self.account}
            ).fetchone()
        if row is None:
            raise NotAllowedError(
                f"{self.account} does not belong to the space {self.tenant}",
                hint="storage.account is your account. Ask an owner to add it: nacre server spaces members --add",
            )
        is_reader = row[0] == Role.READER
        return NotAllowedError(f"{self.account} may only read {self.tenant}") if is_reader else None

    @property
    def server(self) -> PostgresDatabase:
        return self

    def vault(self, clock: Clock) -> Vault:
        return cast("Vault", ServerVault(self, clock))

    def lock(self, name: str) -> FileLock:
        return ServerLock(self, name)

    def search(self, table: str) -> ServerSearch:
        return ServerSearch(self, Indexed(table))

    def nearest(self, bits: NDArray[np.uint64]) -> ServerWalk:
        return ServerWalk(self, bits)

    def allowed(
        self, home: Home, operation: str, *, writes: bool, owners: bool
    ) -> AbstractContextManager[None]:
        return spaces.allowed(home, operation, writes=writes, owners=owners)

    def with_further_spaces(
        self, home: Home, query: RecallQuery, own: RecallResult, ask: spaces.Ask
    ) -> RecallResult:
        return spaces.with_further_spaces(self.further_homes, home, query, own, ask)

    @staticmethod
    def key_spaces(settings: Settings) -> Spaces:
        return keys.Spaces(settings)

    def close(self) -> None:
        for home in self.further_homes.values():
            home.database.close()
        self._is_final = True
        self._connection.close()

    def all(self, name: str, /, **parameters: Any) -> list[Row]:
        return self._fetch(query(name), parameters)

    def one(self, name: str, /, **parameters: Any) -> Row | None:
        return next(iter(self._fetch(query(name), parameters)), None)

    def run(self, name: str, /, **parameters: Any) -> int:
        self._is_final |= name.startswith("create_")
        sql, values = query(name), _clean(parameters)
        return max(
            0, self._alone(lambda: self._note(self._connection.execute(sql, values)).rowcount)
        )

    def run_many(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        self._many(query(name), rows)

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._many(translated(sql), rows)

    def _many(self, sql: str, rows: Sequence[Mapping[str, Any] | Sequence[Any]]) -> None:
        if not rows:
            return
        with self.transaction(), translated_errors(), self._connection.cursor() as cursor:
            cursor.executemany(sql, [_clean(row) for row in rows])
            self._note(cursor)

    def insert(self, table: str, row: Mapping[str, Any], returning: str) -> Any:
        marks = ", ".join(f":{column}" for column in row)
        statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) RETURNING {returning}"  # noqa: S608 - internal names
        return self._fetch(translated(statement), dict(row))[0][0]

    def columns(self, table: str) -> list[str]:
        statement = (
            "SELECT column_name::text FROM information_schema.columns WHERE table_schema = 'nacre'"
            " AND table_name = ? AND column_name <> 'tenant' ORDER BY ordinal_position"
        )
        return [name for (name,) in self.rows(statement, [table])]

    def rows(self, sql: str, parameters: dict[str, Any] | Sequence[Any] = ()) -> list[Row]:
        return self._fetch(translated(sql), parameters)

    @property
    def is_in_transaction(self) -> bool:
        return self._is_open

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the block in a transaction with the tenant's lock. Nested blocks join the outer one."""
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
            self._commit()
        except BaseException:
            self._roll_back()
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        if self.is_in_transaction:
            yield
            return
        begin = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        self._first(lambda: self._connection.execute(begin))
        self._is_open = True
        try:
            yield
        finally:
            with suppress(psycopg.Error):
                self._connection.execute("COMMIT")  # keeps changes to temporary tables
            self._roll_back()

    def yield_write_lock(
        self, first: Callable[[], object] | None = None, between: Callable[[], object] | None = None
    ) -> bool:
        if (
            not self.is_in_transaction
            or self._depth
            or time.monotonic() - self._since < _MIN_LOCK_SECONDS
        ):
            return False
        if first:
            first()
        edition = self.edition()
        self._commit()
        if between:
            between()
        self._begin()
        return self.edition() != edition

    def edition(self) -> object:
        return self._number() - self._own

    def state(self) -> object:
        return None if self.is_in_transaction else self._number()

    def _number(self) -> int:
        return int(self._fetch(query("read_edition"), {})[0][0])

    def stems(self, text: str) -> list[str]:
        return self._stem(text)

    @cached_property
    def words(self) -> ServerWords:
        return ServerWords(self)

    @cached_property
    def _stem(self) -> Callable[[str], list[str]]:
        return stemmer(apsw.Connection(":memory:"))

    def relax(self) -> None:
        """Let commits return before their data is on the server's disk."""
        self._fetch("SELECT set_config('synchronous_commit', 'off', false)", ())

    def tighten(self) -> None:
        """Undo :meth:`relax`."""
        self._fetch("SELECT set_config('synchronous_commit', 'on', false)", ())

    def is_in_place(self) -> bool:
        return not self._connection.closed

    @property
    def identity(self) -> object:
        return self._identity

    def schema(self) -> int:
        """Return the oldest schema whose programs work with the server's database."""
        return self._first(lambda: state(self._connection).needs)

    def hold(self, lock: str) -> bool:
        """Take one of the tenant's locks, or return False if another connection holds it.

        The lock is lost if the connection ends. Statements then raise UnusableStoreError until it
        is released.
        """
        if not self.value("try_lock", lock=lock):
            return False
        self._held.add(lock)
        return True

    def let_go(self, lock: str) -> None:
        """Release a lock, unless it was lost with the connection."""
        self._held.discard(lock)
        if not self._connection.closed:
            self.one("free_lock", lock=lock)

    def interrupt(self) -> None:
        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=CONNECT_SECONDS)

    def _fetch(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any]) -> list[Row]:
        values = _clean(parameters)
        if writes(sql):
            return self._alone(lambda: self._note(self._connection.execute(sql, values)).fetchall())
        return self._first(lambda: self._connection.execute(sql, values).fetchall())

    def _note(self, cursor: psycopg.Cursor[Row]) -> psycopg.Cursor[Row]:
        self._has_written |= cursor.rowcount > 0
        return cursor

    def _alone(self, work: Callable[[], ResultT]) -> ResultT:
        def transaction() -> ResultT:
            with self.transaction(), translated_errors():
                return work()

        return transaction() if self.is_in_transaction else repeated(transaction)

    def _first(self, work: Callable[[], ResultT]) -> ResultT:
        self._revive()
        try:
            with translated_errors():
                return work()
        except UnusableStoreError:
            if not (self._connection.closed and self._may_connect()):
                raise
            self._connect()
        with translated_errors():
            return work()

    def _begin(self) -> None:
        try:
            self._first(self._ask_for_lock)
        except BaseException:
            self._roll_back()
            raise
        self._is_open = True
        self._since = time.monotonic()

    def _ask_for_lock(self) -> None:
        if self.unwritable:  # each connect sets this again
            raise self.unwritable
        self._connection.execute(b"BEGIN")
        self._connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (self.tenant,)
        )

    def _commit(self) -> None:
        if self._connection.info.transaction_status == TransactionStatus.INERROR:
            raise UnusableStoreError(
                "nothing was written: the server refused a part of it", hint="repeat the command"
            )
        with translated_errors():
            counting = query("count_edition") if self._has_written else ""
            self._connection.execute(f"{counting} COMMIT")
        self._own += self._has_written
        self._is_open = self._has_written = False

    def _roll_back(self) -> None:
        self._is_open = self._has_written = False
        with suppress(psycopg.Error):
            if self._connection.info.transaction_status != TransactionStatus.IDLE:
                self._connection.execute("ROLLBACK")
        if self._connection.info.transaction_status != TransactionStatus.IDLE:
            self._connection.close()  # the server then rolls back and frees the lock

    def _revive(self) -> None:
        if not self._may_connect():
            return
        with suppress(psycopg.OperationalError):
            for _ in range(2):  # the server's last message, followed by the end of file
                self._connection.pgconn.consume_input()
        if self._connection.closed:
            self._connect()

    def _may_connect(self) -> bool:
        return not (self._is_open or self._is_final or self._held)


def _clean(parameters: Parameters) -> Any:
    """Convert parameters, replacing NUL because PostgreSQL cannot store it."""
    return bind(parameters, _bindable)


def _bindable(value: Any) -> Any:
    value = bound(value)
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


# -- Locks on the server ------------------------------------------------------


_PAUSE_SECONDS = 0.01


class ServerLock(FileLock):
    """A tenant's lock, which only one process on any machine can hold."""

    def __init__(self, database: PostgresDatabase, name: str) -> None:
        super().__init__(Path(name), PATIENCE_SECONDS)
        self._db = database
        self._name = name

    def _take(self, patience_seconds: float) -> bool:
        give_up = time.monotonic() + patience_seconds
        while not self._db.hold(self._name):
            if time.monotonic() >= give_up:
                return False
            time.sleep(_PAUSE_SECONDS)
        return True

    def _free(self) -> None:
        self._db.let_go(self._name)

    def is_wanted(self) -> bool:
        """Return False, because nacre cannot know whether other processes wait."""
        return False

    def give_way(self) -> None:
        """Wait, so that another process can take the lock first."""
        if self._depth == 0:
            time.sleep(2 * _PAUSE_SECONDS)
