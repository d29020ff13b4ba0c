"""Accounts, spaces, keys and their log on a server: for who manages it, in the name of no tenant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg import errors, sql

from nacre.errors import NotAllowed
from nacre.platform.sql_files import statements
from nacre.storage.database import Row
from nacre.storage.postgres.connection import connect, translated_errors
from nacre.storage.postgres.dialect import translated
from nacre.storage.postgres.migrate import migrate


class Registry:
    """A connection that became no tenant. One thread at a time; the methods raise NotAllowed, StoreUnusable, and
    Unavailable where the server says nothing for ``patience`` seconds, if that is given."""

    def __init__(self, url: str, patience: float | None = None) -> None:
        self._connection = connect(url, patience=patience)
        with translated_errors():
            migrate(self._connection)

    def all(self, name: str, **values: Any) -> list[Row]:
        """All rows of a statement of ``sql/spaces``."""
        with _refusals():
            return self._connection.execute(_statement(name), values).fetchall()

    def run(self, name: str, **values: Any) -> int:
        """Run a statement of ``sql/spaces``; returns how many rows it changed."""
        with _refusals():
            return self._connection.execute(_statement(name), values).rowcount

    def is_used(self, tenant: str) -> bool:
        """Whether a tenant has written anything yet."""
        with self.transaction():
            self.run("name_tenant", space=tenant)
            return bool(self.all("read_use"))

    def weigh(self, tenant: str) -> dict[str, tuple[int, int]]:
        """How many rows each table has of a tenant, and how many bytes these take without indexes."""
        with self.transaction():
            self.run("name_tenant", space=tenant)
            self.run("wait_long")
            return {
                table: tuple(self._of_rows("SELECT count(*), coalesce(sum(pg_column_size(t.*)), 0)", table, tenant)[0])
                for (table,) in self.all("list_tables")
            }

    def delete_rows(self, tenant: str) -> int:
        """Delete all rows of a tenant, in the transaction that is open; returns how many. Triggers may write while
        others are deleted, so it goes on until none is left."""
        self.run("name_tenant", space=tenant)
        self.run("wait_long")
        tables, deleted = [table for (table,) in self.all("list_tables")], 0
        while done := sum(self._deleted(table, tenant) for table in tables):
            deleted += done
        return deleted

    def _deleted(self, table: str, tenant: str) -> int:
        return len(self._of_rows("DELETE", table, tenant, " RETURNING 1"))

    def _of_rows(self, what: str, table: str, tenant: str, then: str = "") -> list[Row]:
        with _refusals():
            asked = sql.SQL("{} FROM nacre_rows.{} t WHERE tenant = %s{}").format(
                sql.SQL(what), sql.Identifier(table), sql.SQL(then)
            )
            return self._connection.execute(asked, (tenant,)).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All in the block, or nothing."""
        with translated_errors(), self._connection.transaction():
            yield

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


def _statement(name: str) -> str:
    return translated(statements("nacre.storage", "sql/spaces")[name])


@contextmanager
def _refusals() -> Iterator[None]:
    with translated_errors():
        try:
            yield
        except errors.InsufficientPrivilege as error:
            raise NotAllowed(
                "this login at the server does not manage its spaces",
                hint="use the one that owns the database, or have it grant the schema nacre_spaces and its tables",
            ) from error
