"""Rows of tenants on many nodes, by Citus: all that is a tenant's lies on one of them.

A node knows nothing of the settings of a connection to the coordinator, but row-level security holds there, by the
tenant's name. So each transaction begins with these settings, which Citus then carries along (decision 26).
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql
from psycopg.pq import TransactionStatus

from nacre.base.files import statements
from nacre.base.ids import Clock, to_ms
from nacre.base.locks import PATIENCE_SECONDS, FileLock
from nacre.errors import InvalidInput, NacreError, NotAllowed, StoreUnusable
from nacre.store.postgres_connection import (
    CONNECT_SECONDS,
    SILENT_SECONDS,
    RetryResult,
    ServerWords,
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
from nacre.store.schema import Database, Row, in_transaction
from nacre.store.sqlite import stemmer
from nacre.values.memory import Role

SHARDS = 32
"""So many parts have rows of tenants at first, and so many nodes can share them."""

IS_DISTRIBUTED = (
    "(SELECT provolatile = 'i' FROM pg_proc WHERE oid = to_regprocedure('nacre.tenant()'))"
)
"""Where rows are distributed the coordinator takes the tenant's name for a constant, by which it finds the node."""

_BESIDE = b"SET search_path = nacre_rows, nacre, pg_catalog, public, pg_temp; SET citus.propagate_set_commands = local"
"""Rows are put into the tables themselves: Citus puts none into views."""


@dataclass(frozen=True, slots=True)
class Distributed:
    """On how many nodes rows of tenants lie, and how many tables were distributed just now."""

    nodes: int
    tables: int


def telling_nodes(connection: psycopg.Connection[Any], settings: Mapping[str, str]) -> bytes:
    """Have a connection work with distributed rows; returns what its transactions begin with.

    It may stand in front of a statement: both are one transaction then. It is a block of its own, since Citus hands on
    the whole text of the message that a SET stands in.
    """
    connection.execute(_BESIDE)
    told = sql.SQL("; ").join(
        sql.SQL("SET LOCAL {} = {}").format(sql.Identifier(*name.split(".")), value)
        for name, value in settings.items()
    )
    return sql.SQL("DO {};").format(f"BEGIN {told.as_string(connection)}; END").as_bytes(connection)


def distribute(
    connection: psycopg.Connection[Any],
    shards: int = SHARDS,
    tell: Callable[[str], object] = lambda _: None,
) -> Distributed:
    """Distribute the rows of a migrated server by tenant. What is distributed already stays; new nodes are told what
    Citus does not tell them by itself.

    ``tell`` is given the name of each table before it. Nobody else can write until it is done. Raises StoreUnusable,
    NotAllowed, psycopg.Error.
    """
    _require_nodes(connection)
    with connection.transaction():
        _ask(connection, "prepare")
        _ask(connection, "be_quiet")
        found = [name for (name,) in _ask(connection, "list_local")]
        for name in found:
            tell(name)
            _ask(
                connection,
                "distribute_first" if name == "nacre_rows.memories" else "distribute_beside",
                held=name,
                shards=shards,
            )
        for (name,) in _ask(connection, "list_functions"):
            _ask(connection, "distribute_function", held=name)
        for step in ("grant_words", "close_words", "open_words", "let_in", "number_rows"):
            _ask(connection, step)
    with connection.transaction():
        _ask(connection, "prepare")
        for name in found:
            _ask(connection, "drop_copy", held=name)
    with connection.transaction():
        _told(_ask(connection, "give_operator"))
        _told(_ask(connection, "know_tenant_there"))
        _ask(connection, "know_tenant")
    return Distributed(_ask(connection, "count_nodes")[0][0], len(found))


def _require_nodes(connection: psycopg.Connection[Any]) -> None:
    if not _ask(connection, "has_citus"):
        raise StoreUnusable(
            "this database has no Citus",
            hint="CREATE EXTENSION citus in it, on the coordinator and on each node",
        )
    if not _ask(connection, "count_nodes")[0][0]:
        raise StoreUnusable(
            "no node is there to hold rows",
            hint="SELECT citus_add_node('host', 5432) on the coordinator, for each",
        )
    if not _ask(connection, "sees_all")[0][0]:
        raise NotAllowed(
            "row-level security holds rows back from this login",
            hint="let a superuser distribute the rows",
        )


def _told(failed: list[Any]) -> None:
    for node, port, reason in failed:
        raise StoreUnusable(
            f"the node {node}:{port} refuses it: {reason}", hint="mend that, and repeat the command"
        )


def _ask(connection: psycopg.Connection[Any], name: str, **values: Any) -> list[Any]:
    found = connection.execute(
        translated(statements("nacre.store", "sql/distribution")[name]).encode(), values
    )
    return found.fetchall() if found.description else []


# ----------------------------------------------------------------------------
# A tenant's rows on a PostgreSQL server: the same named queries and transactions as of a database
# file.
#
# One connection a :class:`PostgresDatabase`; threads each open their own. Who writes holds the
# tenant's lock until the
# transaction ends, as who writes to a file holds the file's. A connection that broke is opened anew
# by the first
# statement of a block, except where a lock or temporary tables are gone with it; within a block, its
# loss is
# StoreUnusable. A statement that is a transaction of its own is done again where the server took it
# back
# (:mod:`nacre.store.postgres_connection`); whether a commit whose answer was lost went through, nobody
# knows, and nothing is
# done again.


ROLE = "nacre_tenant"
"""What a connection becomes: it sees one tenant's rows, whoever signed in."""

_SIGN_IN = f"""
SET ROLE {ROLE}; SET search_path = nacre, pg_catalog, public, pg_temp;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
"""
"""What was committed is on the server's disk."""

_SEARCH = {
    "hnsw.ef_search": "400",
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.max_scan_tuples": "40000",
}
"""Searches of vectors go on until they have enough of this tenant's."""

_TENANT = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_BREATH_SECONDS = 0.03


class PostgresDatabase:
    """A connection to one tenant's rows, with the present schema. ``tenant`` is 1 to 64 letters, digits, ``._-``.

    ``account`` is who comes, by default the one that the tenant is called after. Nothing can be written where it may
    only read, or where ``unwritable`` says why. A statement waits ``patience`` seconds for a byte of the server.
    """

    is_server = True

    def __init__(
        self,
        url: str,
        tenant: str,
        account: str = "",
        unwritable: NacreError | None = None,
        patience: float = SILENT_SECONDS,
    ) -> None:
        """Connect, and migrate an older server.

        Raises StoreUnusable, StoreBusy, SchemaTooNew, InvalidInput, NotAllowed where the account does not belong there.
        """
        if not _TENANT.fullmatch(tenant):
            raise InvalidInput(
                f"{tenant!r} cannot name a tenant",
                hint="use up to 64 lower-case letters and digits",
            )
        self.tenant = tenant
        self.account = account or tenant
        self.unwritable = unwritable
        self._url = url
        self._patience = patience
        self._depth = 0
        self._since = 0.0
        self._is_open = False  # a block
        self._is_final = (
            False  # the connection; its temporary tables cannot be had again, or it was closed
        )
        self._own = 0
        self._has_written = False  # in the block that is open
        self._opening = b""
        self._held: set[str] = set()
        self._connect()

    def _connect(self) -> None:
        self._connection = connect(self._url, patience=self._patience)
        try:
            with translated_errors():
                _require_utf8(self._connection)
                migrate(self._connection)
                self._connection.execute(_SIGN_IN)
                info = self._connection.info
                self._identity = info.host, info.port, info.dbname, self.tenant
                self._settle({"nacre.tenant": self.tenant, "TimeZone": local_zone(), **_SEARCH})
            self.unwritable = self._admitted() or self.unwritable
        except BaseException:
            self._connection.close()
            raise

    def _settle(self, settings: dict[str, str]) -> None:
        set_all = "set_config(%s, %s, false), " * len(settings)
        values = [told for setting in settings.items() for told in setting]
        found = self._connection.execute(
            f"SELECT {set_all} {IS_DISTRIBUTED}".encode(), values
        ).fetchone()
        self._opening = telling_nodes(self._connection, settings) if found and found[-1] else b""

    def _admitted(self) -> NacreError | None:
        """Why nothing may be written. Raises NotAllowed where nothing may be read either."""
        with translated_errors():
            found = self._connection.execute(
                query("read_standing"), {"account": self.account}
            ).fetchone()
        if found is None:
            raise NotAllowed(
                f"{self.account} does not belong to the space {self.tenant}",
                hint="storage.account says who you are; an owner lets you in: nacre spaces add",
            )
        return (
            NotAllowed(f"{self.account} may only read {self.tenant}")
            if found[0] == Role.READER
            else None
        )

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._is_final = True
        self._connection.close()

    def all(self, name: str, **parameters: Any) -> list[Row]:
        """All rows of a named query."""
        return self._fetch(query(name), parameters)

    def one(self, name: str, **parameters: Any) -> Row | None:
        """The first row of a named query, or ``None``."""
        return next(iter(self._fetch(query(name), parameters)), None)

    def run(self, name: str, **parameters: Any) -> int:
        """Run a named statement; returns how many rows it changed."""
        self._is_final |= name.startswith("create_")
        sql, values = query(name), _clean(parameters)
        return max(
            0, self._alone(lambda: self._note(self._connection.execute(sql, values)).rowcount)
        )

    def run_many(self, name: str, rows: Sequence[dict[str, Any]]) -> None:
        """Run a named statement once for each of ``rows``."""
        self._many(query(name), rows)

    def many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement composed in this package once for each of ``rows``, in one transaction."""
        self._many(translated(sql), rows)

    def _many(self, sql: str, rows: Sequence[Mapping[str, Any] | Sequence[Any]]) -> None:
        if not rows:
            return
        with self.transaction(), translated_errors(), self._connection.cursor() as cursor:
            cursor.executemany(sql, [_clean(row) for row in rows])
            self._note(cursor)

    def insert(self, table: str, row: Mapping[str, Any], returning: str) -> Any:
        """Insert a row into a table, within a transaction; returns the value of one of its columns."""
        marks = ", ".join(f":{column}" for column in row)
        statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) RETURNING {returning}"  # noqa: S608 - names of ours
        return self._fetch(translated(statement), dict(row))[0][0]

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns, in their order."""
        found = (
            "SELECT column_name::text FROM information_schema.columns WHERE table_schema = 'nacre'"
        )
        return [
            name
            for (name,) in self.rows(
                f"{found} AND table_name = ? ORDER BY ordinal_position", [table]
            )
            if name != "tenant"
        ]

    def rows(self, sql: str, parameters: dict[str, Any] | Sequence[Any] = ()) -> list[Row]:
        """All rows of a statement composed in this package; values are always bound."""
        return self._fetch(translated(sql), parameters)

    @property
    def is_in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._is_open

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
            self._commit()
        except BaseException:
            self._roll_back()
            raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """One view of the database for all that is read in the block, whatever others write meanwhile."""
        if self.is_in_transaction:
            yield
            return
        begin = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
        self._first(lambda: self._connection.execute(begin + self._opening))
        self._is_open = True
        try:
            yield
        finally:
            with contextlib.suppress(psycopg.Error):
                self._connection.execute("COMMIT")  # of what the connection's own tables were given
            self._roll_back()

    def yield_write_lock(
        self, first: Callable[[], object] | None = None, between: Callable[[], object] | None = None
    ) -> bool:
        """Between two parts of a long transaction that may each stand alone: commit, and let others write.

        As of a database file: nothing happens until the lock was held for 30 ms, nor in a block that joined an outer
        one. Returns whether anybody else wrote meanwhile.
        """
        if (
            not self.is_in_transaction
            or self._depth
            or time.monotonic() - self._since < _BREATH_SECONDS
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
        """A value that is another one when another connection has committed meanwhile."""
        return self._number() - self._own

    def state(self) -> object:
        """A value that is another one when anybody has written meanwhile; ``None`` within a transaction."""
        return None if self.is_in_transaction else self._number()

    def _number(self) -> int:
        return int(self._fetch(query("read_edition"), {})[0][0])

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
        self._fetch("SELECT set_config('synchronous_commit', 'off', false)", ())

    def tighten(self) -> None:
        """Let commits wait for the server's disk again."""
        self._fetch("SELECT set_config('synchronous_commit', 'on', false)", ())

    def is_in_place(self) -> bool:
        """Whether the connection is open."""
        return not self._connection.closed

    @property
    def identity(self) -> object:
        """Server and tenant."""
        return self._identity

    def schema(self) -> int:
        """The number of the oldest program's schema that still works with the server's database.

        Newer ones may have added what older ones need not know.
        """
        return self._first(lambda: state(self._connection).needs)

    def hold(self, lock: str) -> bool:
        """Take a lock of the tenant's beside that of who writes; ``False`` where another connection holds it.

        The server frees it with the connection: who holds one learns of its loss by StoreUnusable, until it lets go.
        """
        if not (self.one("try_lock", lock=lock) or (0,))[0]:
            return False
        self._held.add(lock)
        return True

    def let_go(self, lock: str) -> None:
        """Free a lock; nothing happens where it is not held, or went with the connection."""
        self._held.discard(lock)
        if not self._connection.closed:
            self.one("free_lock", lock=lock)

    def interrupt(self) -> None:
        """End the statement that another thread runs here, if one does: it raises Unavailable there."""
        with contextlib.suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=CONNECT_SECONDS)

    def _fetch(self, sql: str, parameters: Mapping[str, Any] | Sequence[Any]) -> list[Row]:
        """A statement that writes is a transaction of its own, or part of the one that is open."""
        values = _clean(parameters)
        if writes(sql):
            return self._alone(lambda: self._note(self._connection.execute(sql, values)).fetchall())
        return self._first(lambda: self._read(sql, values))

    def _read(self, sql: str, values: Any) -> list[Row]:
        if self._is_open or not self._opening:
            return self._connection.execute(sql, values).fetchall()
        cursor = self._connection.execute(self._opening + sql.encode(), values)
        cursor.nextset()
        return cursor.fetchall()

    def _note(self, cursor: psycopg.Cursor[Row]) -> psycopg.Cursor[Row]:
        self._has_written |= cursor.rowcount > 0
        return cursor

    def _alone(self, work: Callable[[], RetryResult]) -> RetryResult:
        """A statement that writes: part of the transaction that is open, or one that is done again if need be."""

        def whole() -> RetryResult:
            with self.transaction(), translated_errors():
                return work()

        return whole() if self.is_in_transaction else repeated(whole)

    def _first(self, work: Callable[[], RetryResult]) -> RetryResult:
        """What changes nothing. Outside of a block, where it shows that the connection is lost, it is done over
        another one."""
        self._revive()
        try:
            with translated_errors():
                return work()
        except StoreUnusable:
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
        if self.unwritable:  # connecting tells anew
            raise self.unwritable
        self._connection.execute(b"BEGIN;" + self._opening)
        self._connection.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (self.tenant,)
        )

    def _commit(self) -> None:
        if self._connection.info.transaction_status == TransactionStatus.INERROR:
            raise StoreUnusable(
                "nothing was written: the server refused a part of it", hint="repeat the command"
            )
        with translated_errors():
            counting = query("count_edition") if self._has_written else ""
            self._connection.execute(f"{counting} COMMIT")
        self._own += self._has_written
        self._is_open = self._has_written = False

    def _roll_back(self) -> None:
        self._is_open = self._has_written = False
        with contextlib.suppress(psycopg.Error):
            if self._connection.info.transaction_status != TransactionStatus.IDLE:
                self._connection.execute("ROLLBACK")
        if self._connection.info.transaction_status != TransactionStatus.IDLE:
            self._connection.close()  # the server takes everything back, and frees the lock

    def _revive(self) -> None:
        """Outside a block: where the server hung up meanwhile, connect again."""
        if not self._may_connect():
            return
        with contextlib.suppress(psycopg.OperationalError):
            for _ in range(2):  # its last words, and then the end
                self._connection.pgconn.consume_input()
        if self._connection.closed:
            self._connect()

    def _may_connect(self) -> bool:
        """Whether nothing would be gone with the connection."""
        return not (self._is_open or self._is_final or self._held)


def _require_utf8(connection: psycopg.Connection[Row]) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreUnusable(
            f"the database on the PostgreSQL server keeps its texts in {encoding}, nacre's are UTF8",
            hint="make another one: CREATE DATABASE nacre ENCODING 'UTF8' TEMPLATE template0",
        )


def _clean(parameters: Mapping[str, Any] | Sequence[Any]) -> Any:
    """Values as the server takes them: its texts hold no NUL, and truth is a number."""
    if isinstance(parameters, Mapping):
        return {name: _bindable(value) for name, value in parameters.items()}
    return [_bindable(value) for value in parameters]


def _bindable(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


# ----------------------------------------------------------------------------
# Sign bits of passages, which a server compares by pgvector: a row a passage, which a trigger keeps.


_NEAREST = """
SELECT passage FROM signs WHERE tenant = ? AND length(bits) = {size}
ORDER BY CAST(bits AS bit({size})) <~> CAST(? AS bit({size})) LIMIT ?
"""
"""It names the tenant, so that a graph of one tenant's passages can be used (decision 25)."""


class ServerWalk:
    """Implements :class:`~nacre.store.search.Walk`."""

    def __init__(self, database: PostgresDatabase, bits: NDArray[np.uint64]) -> None:
        digits = "".join(map(str, np.unpackbits(bits.view(np.uint8)).tolist()))
        self._db = database
        self._statement = _NEAREST.format(size=len(digits))
        self._values = database.tenant, digits
        self._seen: set[int] = set()

    def next(self, count: int) -> list[int]:
        """So many rows beyond those that were given."""
        found = [
            row
            for (row,) in self._db.rows(self._statement, (*self._values, len(self._seen) + count))
        ]
        fresh = [row for row in found if row not in self._seen]
        self._seen.update(fresh)
        return fresh


# ----------------------------------------------------------------------------
# Documents of a vault as rows: every version stays, unless it is forgotten: then its number stays,
# without path and
# bytes.


_STEP = 500


@dataclass(frozen=True, slots=True)
class Head:
    """The present version of a document: a number that only grows, its bytes, milliseconds since 1970."""

    path: str
    version: int
    size: int
    written: int


@dataclass(frozen=True, slots=True)
class Change:
    """A document got another version; its present one, ``None`` where it is there no more."""

    path: str
    version: int
    present: int | None
    size: int


class Documents:
    """Reads and writes ``documents``, ``document_versions`` and ``ledger_lines``."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def read(self, path: str) -> bytes | None:
        """What a document holds; ``None`` where there is none."""
        row = self._db.one("read_document", path=path)
        return bytes(row[0]) if row else None

    def head(self, path: str) -> Head | None:
        """The present version of a document."""
        row = self._db.one("find_document", path=path)
        return Head(path, *row) if row else None

    def heads(self) -> list[Head]:
        """Those of all documents, by their paths."""
        return [Head(*row) for row in self._db.all("list_documents")]

    def changes(self, since: int) -> list[Change]:
        """What was written and removed after a version; nothing of what was forgotten."""
        return [Change(*row) for row in self._db.all("list_changes", since=since)]

    def count(self) -> int:
        """How many documents there are."""
        return int((self._db.one("count_documents") or (0,))[0])

    def state(self) -> object:
        """A value that is another one when anybody has written meanwhile; ``None`` within a transaction."""
        return self._db.state()

    def versions(self, path: str) -> list[tuple[int, bytes | None, int]]:
        """Every version of a document, the first one first: number, what it held, when it was written."""
        return [
            (version, data, written)
            for version, data, written in self._db.all("list_document_versions", path=path)
        ]

    @in_transaction
    def write(self, path: str, data: bytes) -> None:
        """A document holds this from now on."""
        (version,) = self._db.one(
            "insert_document_version", path=path, data=data, written=self._now()
        ) or (0,)
        self._db.run("save_document", path=path, version=version, size=len(data))

    @in_transaction
    def remove(self, path: str) -> None:
        """A document is there no more; nothing happens where there is none."""
        if self._db.run("delete_document", path=path):
            self._db.one("insert_document_version", path=path, data=None, written=self._now())

    @in_transaction
    def append(self, lines: Iterable[bytes]) -> int:
        """Append lines to the ledger that are not there yet; returns the bytes of all."""
        rows: list[dict[str, object]] = [{"hash": _digest(line), "line": line} for line in lines]
        self._db.run_many("insert_ledger_line", rows)
        return int((self._db.one("size_of_ledger") or (0,))[0])

    def ledger(self) -> bytes:
        """All lines of the ledger."""
        return b"".join(bytes(line) + b"\n" for _, line in self._db.all("list_ledger_lines"))

    def ledger_lines(self) -> int:
        """The number of the ledger's last line; it grows with each."""
        return int((self._db.one("last_ledger_line") or (0,))[0])

    @in_transaction
    def reword(self, lines: Sequence[bytes]) -> None:
        """Some lines of the ledger say less from now on; ``lines`` are all of them."""
        for (number, line), wanted in zip(self._db.all("list_ledger_lines"), lines, strict=True):
            if bytes(line) != wanted and not self._db.run(
                "update_ledger_line", number=number, hash=_digest(wanted), line=wanted
            ):
                self._db.run("delete_ledger_line", number=number)

    @in_transaction
    def forget(self, path: str) -> None:
        """Remove a document with all its versions."""
        self._db.run("delete_document", path=path)
        self._db.run("blank_versions_of", path=path)

    @in_transaction
    def keep_present(self, path: str) -> None:
        """Delete what a page said before."""
        self._db.run("delete_former_versions", path=path)

    def former(self) -> Iterator[tuple[int, str, bytes]]:
        """What documents said before, read in pieces: number, path, bytes."""
        after = 0
        while found := self._db.all("list_former_versions", after=after, limit=_STEP):
            yield from ((version, path, bytes(data)) for version, path, data in found)
            after = found[-1][0]

    def forget_former(self, tells: Callable[[str, bytes], bool]) -> None:
        """Forget former versions that tell something, by path or bytes."""
        told = [version for version, path, data in self.former() if tells(path, data)]
        with self._db.transaction():
            self._db.run_many("blank_version", [{"version": version} for version in told])
            self._db.run("blank_removals")

    def _now(self) -> int:
        return to_ms(self._clock()) or 0


def _digest(line: bytes) -> bytes:
    return blake2b(line, digest_size=16).digest()


# ----------------------------------------------------------------------------
# A lock that one process of a tenant holds at a time, wherever it runs.


_PAUSE_SECONDS = 0.01


class ServerLock(FileLock):
    """A lock on a server, which frees it when the connection ends."""

    def __init__(
        self, database: PostgresDatabase, name: str, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        super().__init__(Path(name), patience_seconds)
        self._db = database
        self._name = name

    def acquire(self, patience_seconds: float = 0.0) -> bool:
        """Take the lock, waiting so long at most; returns whether it was to be had."""
        give_up = time.monotonic() + patience_seconds
        while self._depth == 0 and not self._db.hold(self._name):
            if time.monotonic() >= give_up:
                return False
            time.sleep(_PAUSE_SECONDS)
        self._depth += 1
        return True

    def release(self) -> None:
        """Give it back, once for every time it was taken."""
        self._depth = max(0, self._depth - 1)
        if self._depth == 0:
            self._db.let_go(self._name)

    def is_wanted(self) -> bool:
        """Whether somebody waits for it: that is not to be seen, as who waits tries again and again."""
        return False

    def let_others(self) -> None:
        """Give it to whoever waits for it, and take it again, unless somebody further out relies on it."""
        if self._depth == 1:
            self.release()
            self.give_way()
            self.__enter__()

    def give_way(self) -> None:
        """Before taking the lock again: let those who wait for it take it first."""
        if self._depth == 0:
            time.sleep(2 * _PAUSE_SECONDS)
