"""Spaces on a server, for administration without a tenant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg import errors, sql

from nacre.base.sql import statements
from nacre.errors import NotAllowedError
from nacre.store.schema import Row
from nacre_server.connection import connect, migrate, translated, translated_errors


class Registry:
    """A connection without a tenant, for one thread at a time.

    Methods raise NotAllowed, UnusableStoreError, and Unavailable if the server sends nothing for
    ``patience`` seconds (if given).
    """

    def __init__(self, url: str, patience: float | None = None) -> None:
        self._connection = connect(url, patience=patience)
        with translated_errors():
            migrate(self._connection)

    def all(self, name: str, **values: Any) -> list[Row]:
        """Run a statement from ``sql/spaces`` and return all rows."""
        with _refusals():
            return self._connection.execute(_statement(name), values).fetchall()

    def run(self, name: str, **values: Any) -> int:
        """Run a statement from ``sql/spaces`` and return the number of changed rows."""
        with _refusals():
            return self._connection.execute(_statement(name), values).rowcount

    def is_used(self, tenant: str) -> bool:
        with self.transaction():
            self.run("name_tenant", space=tenant)
            return bool(self.all("read_use"))

    def count_rows(self, tenant: str) -> int:
        """Return the number of a tenant's rows in all tables."""
        with self.transaction():
            self.run("name_tenant", space=tenant)
            self.run("wait_long")
            return sum(
                self._of_rows("SELECT count(*)", table, tenant)[0][0]
                for (table,) in self.all("list_tables")
            )

    def delete_rows(self, tenant: str) -> int:
        """Delete all rows of a tenant in the open transaction. Return their number.

        Repeats until no rows are left, because triggers can insert rows.
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


def _statement(name: str) -> str:
    return translated(statements("nacre_server", "sql/spaces")[name])


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
