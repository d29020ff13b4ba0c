"""Connections to a PostgreSQL server, and what its errors mean."""

from __future__ import annotations

import contextlib
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import msgspec
import psycopg
from psycopg import errors
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict

from nacre.base.environment import environment
from nacre.base.files import statements
from nacre.base.lazy import load
from nacre.errors import SchemaTooNew, StoreAway, StoreBusy, StoreUnusable, Unavailable
from nacre.store.schema import Clause, Database, Indexed, Row, Words, fits_index
from nacre.store.sqlite import with_columns, with_other

if TYPE_CHECKING:
    from psycopg.abc import PQGen

Result = TypeVar("Result")

CONNECT_SECONDS = 5
"""For each address of the server, of which a name may have two; an address in the settings may say otherwise."""

LOCK_SECONDS = 15
STATEMENT_SECONDS = 60
SILENT_SECONDS = 75.0
"""So long a tenant's statement waits for a byte; the server itself ends one after a minute."""

_ON_THE_SERVER = (
    f"-c statement_timeout={STATEMENT_SECONDS}s -c lock_timeout={LOCK_SECONDS}s"
    f" -c idle_in_transaction_session_timeout={STATEMENT_SECONDS}s -c client_connection_check_interval=5s"
    " -c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
    r" -c default_transaction_isolation=read\ committed -c standard_conforming_strings=on"
)
_ALIVE: dict[str, Any] = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""A server that is gone without a word is noticed after half a minute, and so is a client by the server."""

_RIGHTS = (
    "an administrator runs in this database: CREATE EXTENSION IF NOT EXISTS vector; CREATE ROLE nacre_tenant; "
    "GRANT nacre_tenant TO <login>; and who opens it first needs the right to create schemas there"
)


class _Whole(Loader):
    """Sums of whole numbers come as numerics, which are floats only where they have a fraction."""

    def load(self, data: Any) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


class _Truth(Loader):
    """Truth is 1 or 0, as in a database file."""

    def load(self, data: Any) -> int:
        return int(bytes(data) == b"t")


class _Silent(psycopg.OperationalError):
    """The server holds the connection and says nothing."""


class _Connection(psycopg.Connection[Row]):
    """A server that stands still, or its disk, breaks no connection: what it was asked is waited for so many seconds
    without a byte, and then the connection is given up."""

    patience: float | None = None

    def wait(self, gen: PQGen[Result], *args: Any, **options: Any) -> Result:
        """See psycopg."""
        return super().wait(
            self._watched(gen, self.patience) if self.patience else gen, *args, **options
        )

    def _watched(self, gen: PQGen[Result], patience: float) -> PQGen[Result]:
        heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                is_ready = yield wanted
                if is_ready:
                    heard = time.monotonic()
                elif time.monotonic() - heard > patience:
                    self.pgconn.finish()
                    raise _Silent(f"nothing was heard for {patience:g} seconds")
                wanted = gen.send(is_ready)
        except StopIteration as end:
            found: Result = end.value
            return found


def connect(
    url: str, *, read_only: bool = False, patience: float | None = None
) -> psycopg.Connection[Row]:
    """A connection without a tenant, for who migrates or looks after the server.

    ``patience``: so many seconds a statement waits for a byte of the server; by default it waits for ever, as what
    takes long must. Raises StoreUnusable, StoreAway where nobody lets us in.
    """
    told = _parsed(url)
    try:
        connection = _Connection.connect(
            url,
            autocommit=True,
            cursor_factory=psycopg.ClientCursor,
            client_encoding="utf8",
            connect_timeout=told.get("connect_timeout", CONNECT_SECONDS),
            **_ALIVE,
            options=f"{told.get('options') or ''} {_ON_THE_SERVER}"
            f" -c default_transaction_read_only={'on' if read_only else 'off'}",
        )
    except psycopg.Error as error:
        raise StoreAway(
            f"cannot connect to the PostgreSQL server: {_first_line(error).removeprefix('connection failed: ')}",
            hint="is it running, and are server, port, login and database in NACRE_DB right?",
        ) from error
    connection.patience = patience
    connection.adapters.register_loader("numeric", _Whole)
    connection.adapters.register_loader("bool", _Truth)
    return connection


def _parsed(url: str) -> dict[str, Any]:
    """The parts of an address.

    A password whose ``@``, ``/`` or ``?`` was not encoded would be read as a server or a database, and told with it.
    """
    try:
        told = conninfo_to_dict(url)
    except psycopg.Error:
        told = {"host": "@"}
    ports = str(told.get("port") or 0).replace(",", "")
    if "@" in f"{told.get('host')}{told.get('dbname')}" or not ports.isdigit():
        raise StoreUnusable(
            "NACRE_DB is not the address of a PostgreSQL server",
            hint="write postgresql://login:password@server:5432/database; in a password, write @ as %40, / as %2F, "
            "? as %3F and % as %25",
        )
    return told


@contextlib.contextmanager
def translated_errors() -> Iterator[None]:
    """Turn psycopg's errors into nacre's, with the way out."""
    try:
        yield
    except (errors.LockNotAvailable, errors.SerializationFailure, errors.DeadlockDetected) as error:
        raise StoreBusy(
            "another process is writing to this memory", hint="try again in a moment"
        ) from error
    except errors.QueryCanceled as error:
        raise Unavailable(f"it was interrupted: {_first_line(error)}", hint="ask again") from error
    except errors.DiskFull as error:
        raise Unavailable(
            "the disk of the PostgreSQL server is full", hint="free some space; nothing was lost"
        ) from error
    except errors.InsufficientPrivilege as error:
        raise StoreUnusable(
            f"the PostgreSQL server refuses it: {_first_line(error)}", hint=_RIGHTS
        ) from error
    except (errors.FeatureNotSupported, errors.UndefinedFile) as error:
        raise StoreUnusable(
            f"the PostgreSQL server cannot do this: {_first_line(error)}",
            hint="nacre needs PostgreSQL 16 or newer with pgvector (the extension vector)",
        ) from error
    except _Silent as error:
        raise Unavailable(
            f"the PostgreSQL server does not answer: {error}",
            hint="it may have done what was asked: look before you repeat it",
        ) from error
    except (psycopg.OperationalError, errors.IdleInTransactionSessionTimeout) as error:
        raise StoreAway(
            f"the PostgreSQL server does not answer: {_first_line(error)}",
            hint="start it, and repeat the command",
        ) from error
    except psycopg.Error as error:
        raise StoreUnusable(
            f"the PostgreSQL server cannot do this: {_first_line(error)}"
        ) from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# ----------------------------------------------------------------------------
# nacre's statements as PostgreSQL takes them.
#
# Most statements are written so that both engines understand them, and stand once, in
# ``sql/queries``. What only one of
# them can say stands for this one in ``sql/postgres_queries``, under the same name.


_COMMENT = re.compile(r"--[^\n]*")
_QUOTED_OR_NAME = re.compile(r"('(?:[^']|'')*')|(?<![:\w]):([a-z_]\w*)|(\?)")
_WRITES = re.compile(r"\b(?:INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b")
_TARGET = re.compile(r"\bON CONFLICT \(")
_LIST = re.compile(r"(FROM json_each\((?::\w+|\?)\))\)")
_COPIES = re.compile(r".*\bINSERT INTO (?!.*\b(?:VALUES|ON CONFLICT|RETURNING)\b)", re.DOTALL)
_LIMIT = re.compile(r"\bLIMIT (:\w+|\?|-1)")


@cache
def query(name: str) -> str:
    """The statement of that name, with psycopg's placeholders. Raises KeyError."""
    return translated(with_columns(statement(name)))


def statement(name: str) -> str:
    """The statement of that name, as it is written. Raises KeyError."""
    return _all()[name]


@cache
def _all() -> dict[str, str]:
    shared, own = (
        statements("nacre.store", "sql/queries"),
        statements("nacre.store", "sql/postgres_queries"),
    )
    return with_other({**shared, **own})


@cache
def translated(sql: str) -> str:
    """``:name`` and ``?`` as psycopg's placeholders; keys that an insert may meet begin with the tenant; a limit below
    zero is none.

    What is compared with the values of a list is compared after these were cast, which ``OFFSET 0`` sees to: a cast
    may tell what it was given, so that row-level security keeps comparisons that hold one from using an index. Rows
    that a statement finds and inserts are told one by one: else Citus copies them, which row-level security forbids.
    """
    bare = _LIMIT.sub(r"LIMIT nacre.most(\1)", _COMMENT.sub("", sql).replace("%", "%%"))
    bare = _LIST.sub(r"\1 OFFSET 0)", bare)
    if _COPIES.match(bare):
        bare = f"{bare.rstrip(' ;')} RETURNING 1"
    return _TARGET.sub("ON CONFLICT (tenant, ", _QUOTED_OR_NAME.sub(_placeholder, bare))


@cache
def writes(sql: str) -> bool:
    """Whether a statement of nacre's writes."""
    return _WRITES.search(sql) is not None


def _placeholder(found: re.Match[str]) -> str:
    quoted, name, _ = found.groups()
    if quoted:
        return str(quoted)
    return f"%({name})s" if name else "%s"


# ----------------------------------------------------------------------------
# What may be done once more: what left nothing behind, as the server took all of it back.


RetryResult = TypeVar("RetryResult")

TIMES = 4
"""So often at most; then whoever asked is told that the store is busy."""

_SECONDS = 0.05
_TAKEN_BACK = (errors.DeadlockDetected, errors.SerializationFailure)


def pause(done: int) -> None:
    """Wait before the next time: 50 ms, doubled each time, by chance between half of it and all."""
    time.sleep(_SECONDS * 2**done * random.uniform(0.5, 1))  # noqa: S311 - so that two do not meet again


def repeated(work: Callable[[], RetryResult], wait: Callable[[int], object] = pause) -> RetryResult:
    """What ``work`` comes to; done again where the server took it back to end a deadlock, or for what others wrote.

    ``work`` is a whole transaction. Raises StoreBusy when it was taken back every time, and what it raises else.
    """
    for done in range(TIMES - 1):
        try:
            return work()
        except StoreBusy as error:
            if not isinstance(error.__cause__, _TAKEN_BACK):
                raise
        wait(done)
    return work()


# ----------------------------------------------------------------------------
# The time zone of this process, in words of a server.


def local_zone() -> str:
    """Its name, by which a server knows its summers; where it has none, how far it is from UTC now."""
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
    told = f"{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    return f"<local>{'-' if minutes >= 0 else '+'}{told}"


# ----------------------------------------------------------------------------
# Full text on a server: stems as numbers in arrays, which an inverted index finds, and BM25 over what
# it found.


WEIGHTS = {
    Indexed.MEMORIES: (1.5, 1.0, 1.0),
    Indexed.TURNS: (1.0, 0.5),
    Indexed.FAILURES: (0.5, 1.0),
}
"""What each column counts: a subject more than what is said of it, what was said more than what was done."""

_MOST_SHOWN = 200
"""Characters of a stem kept beside its number, for who looks for its beginning: an index takes 2,700 bytes."""

_encode = msgspec.json.Encoder().encode


def key_of(tenant: str, kind: Indexed, stem: str) -> int:
    """The number of a stem: 64 bits, signed, which no other tenant or kind shares."""
    digest = blake2b(f"{tenant}\0{kind}\0{stem}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class ServerWords:
    """Implements :class:`~nacre.store.schema.WordIndex`."""

    def __init__(self, database: Database, tenant: str) -> None:
        self._db = database
        self._tenant = tenant

    def add(self, kind: Indexed, rows: Sequence[Words]) -> None:
        """Index rows that are not in it yet."""
        names = self._rows_of_names(
            {name for one in rows for name in one.names.split() if fits_index(name)}
        )
        written, terms, total = [], Counter[str](), 0
        for one in rows:
            counts, length = self._count(kind, one.texts)
            held = sorted(
                (key_of(self._tenant, kind, stem), count) for stem, count in counts.items()
            )
            terms.update(counts.keys())
            total += length
            own = sorted({names[name] for name in one.names.split() if name in names})
            written.append(
                (one.row, [key for key, _ in held], [count for _, count in held], length, own)
            )
        self._db.run("insert_words", kind=kind.value, rows=_told(written))
        told = [
            (key_of(self._tenant, kind, stem), stem[:_MOST_SHOWN], count)
            for stem, count in terms.items()
        ]
        self._db.run("count_in_terms", kind=kind.value, terms=_told(told))
        self._db.run("count_in_totals", kind=kind.value, rows=len(rows), words=total)

    def drop(self, kind: Indexed, rows: Sequence[int]) -> None:
        """Take rows out; those that are not in it are left alone."""
        gone, words = self._db.one("delete_words", kind=kind.value, rows=_told(list(rows))) or (
            0,
            0,
        )
        if gone:
            self._db.run("prune_terms", kind=kind.value)
            self._db.run("count_in_totals", kind=kind.value, rows=-gone, words=-words)

    def frequencies(self, kind: Indexed, stems: Sequence[str]) -> dict[str, int]:
        """In how many rows some stems stand; those that stand in none are left out."""
        keys = {key_of(self._tenant, kind, stem): stem for stem in stems}
        found = self._db.all("count_terms_of", kind=kind.value, keys=_told(list(keys)))
        return {keys[key]: rows for key, rows in found if rows > 0}

    def best(self, kind: Indexed, words: Sequence[str], where: Clause, limit: int) -> list[int]:
        """Rows that hold any of some words and that a condition lets through, the best by BM25 first."""
        search = load("nacre.store.postgres_schema:ServerSearch")(self._db, kind)
        return [match.row for match in search.match(search.terms(words), where, limit)]

    def _count(self, kind: Indexed, texts: Sequence[str]) -> tuple[dict[str, float], int]:
        """How often each stem is said, weighted over the columns, and how many words there are."""
        counts: dict[str, float] = {}
        length = 0
        for weight, text in zip(WEIGHTS[kind], texts, strict=True):
            stems = self._db.stems(text)
            length += len(stems)
            for stem in stems:
                counts[stem] = counts.get(stem, 0.0) + weight
        return counts, length

    def _rows_of_names(self, names: set[str]) -> dict[str, int]:
        if not names:
            return {}
        told = _told(sorted(names))
        self._db.run("insert_word_names", names=told)
        return dict(self._db.all("list_word_names", names=told))


def _told(values: Sequence[object]) -> str:
    return _encode(values).decode()


# ----------------------------------------------------------------------------
# Numbered, forward-only migrations of a server: ``sql/postgres/NNNN_name.sql``, each in one
# transaction.
#
# Many programs work with one server, and not all are upgraded at once. So a change comes in two: one
# adds what is new and
# says ``-- needs N``, the oldest schema whose programs still work beside it; a later one, which says
# nothing, removes
# what is old, and from then on older programs are refused.


_FOLDER = Path(__file__).parent / "sql" / "postgres"
_NAME = re.compile(r"^(\d{4})_\w+\.sql$")
_NEEDS = re.compile(r"^-- needs (\d+)$", re.MULTILINE)
_IS_THERE = """
SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'nacre_rows' AND c.relname = 'schema_version'
"""
"""Not ``to_regclass``: it may answer from what the connection knew before it waited for another one's migration."""

_LOCK = 0x6E61637265
"""Of whoever migrates: its letters are ``nacre``."""

_LOCK_SECONDS = 3
"""So long a migration waits for a table: those who come meanwhile wait behind it."""


class State(NamedTuple):
    """The last migration that a server's database went through, and the oldest schema whose programs work with it."""

    number: int
    needs: int


@cache
def migrations() -> dict[int, str]:
    """Number → SQL, in order."""
    found = {
        int(file.name[:4]): file.read_text("utf-8")
        for file in _FOLDER.iterdir()
        if _NAME.match(file.name)
    }
    return dict(sorted(found.items()))


def migrate(connection: psycopg.Connection[Any], wait: Callable[[int], object] = pause) -> None:
    """Bring a server's database to the present schema. Raises SchemaTooNew, psycopg.Error.

    Whoever comes meanwhile waits. It needs a role that may create schemas, roles and the extension ``vector``. Where
    others hold a table too long, it lets them finish and begins anew, a few times.
    """
    newest = max(migrations())
    for done in range(TIMES):
        if _is_known(state(connection), newest):
            return
        try:
            _migrate_once(connection, newest)
            return
        except (errors.DeadlockDetected, errors.LockNotAvailable):
            if done == TIMES - 1:
                raise
        wait(done)


def _migrate_once(connection: psycopg.Connection[Any], newest: int) -> None:
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        known = state(connection)
        if _is_known(known, newest):
            return
        connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'".encode())
        for number, sql in migrations().items():
            if number > known.number:
                connection.execute(sql.encode())
                needs = _NEEDS.search(sql)
                told = number, int(needs[1]) if needs else number
                connection.execute(
                    "INSERT INTO nacre_rows.schema_version (number, needs) VALUES (%s, %s)", told
                )


def _is_known(found: State, newest: int) -> bool:
    """Whether a program works with a server as it is. Raises SchemaTooNew."""
    if found.needs > newest:
        raise SchemaTooNew(
            f"the server has schema {found.number}, this nacre knows up to {newest}",
            hint="upgrade nacre on this machine",
        )
    return found.number >= newest


def state(connection: psycopg.Connection[Any]) -> State:
    """Of a server's database; 0 and 0 where nacre has none there."""
    if connection.execute(_IS_THERE).fetchone() is None:
        return State(0, 0)
    asked = (
        "SELECT coalesce(max(number), 0), coalesce(max(needs), 0) FROM nacre_rows.schema_version"
    )
    row = connection.execute(asked).fetchone()
    return State(int(row[0]), int(row[1])) if row else State(0, 0)
