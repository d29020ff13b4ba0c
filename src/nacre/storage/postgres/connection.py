"""Connections to a PostgreSQL server, and what its errors mean."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.adapt import Loader
from psycopg.conninfo import conninfo_to_dict

from nacre.errors import StoreAway, StoreBusy, StoreUnusable, Unavailable
from nacre.storage.database import Row

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
        return super().wait(self._watched(gen, self.patience) if self.patience else gen, *args, **options)

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


def connect(url: str, *, read_only: bool = False, patience: float | None = None) -> psycopg.Connection[Row]:
    """A connection without a tenant, for who migrates or looks after the server.

    ``patience``: so many seconds a statement waits for a byte of the server; by default it waits for ever, as what
    takes long must. Raises StoreUnusable, StoreAway where nobody lets us in.
    """
    told = _parsed(url)
    try:
        connection = _Connection.connect(
            url, autocommit=True, cursor_factory=psycopg.ClientCursor, client_encoding="utf8",
            connect_timeout=told.get("connect_timeout", CONNECT_SECONDS), **_ALIVE,
            options=f"{told.get('options') or ''} {_ON_THE_SERVER}"
            f" -c default_transaction_read_only={'on' if read_only else 'off'}",
        )  # fmt: skip
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
        raise StoreBusy("another process is writing to this memory", hint="try again in a moment") from error
    except errors.QueryCanceled as error:
        raise Unavailable(f"it was interrupted: {_first_line(error)}", hint="ask again") from error
    except errors.DiskFull as error:
        raise Unavailable(
            "the disk of the PostgreSQL server is full", hint="free some space; nothing was lost"
        ) from error
    except errors.InsufficientPrivilege as error:
        raise StoreUnusable(f"the PostgreSQL server refuses it: {_first_line(error)}", hint=_RIGHTS) from error
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
            f"the PostgreSQL server does not answer: {_first_line(error)}", hint="start it, and repeat the command"
        ) from error
    except psycopg.Error as error:
        raise StoreUnusable(f"the PostgreSQL server cannot do this: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
