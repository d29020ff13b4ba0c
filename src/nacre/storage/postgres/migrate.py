"""Numbered, forward-only migrations of a server: ``sql/postgres/NNNN_name.sql``, each in one transaction."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

from nacre.errors import SchemaTooNew

_FOLDER = Path(__file__).parent.parent / "sql" / "postgres"
_NAME = re.compile(r"^(\d{4})_\w+\.sql$")
_LOCK = 0x6E61637265
"""Of whoever migrates: its letters are ``nacre``."""


@cache
def migrations() -> dict[int, str]:
    """Number → SQL, in order."""
    found = {int(file.name[:4]): file.read_text("utf-8") for file in _FOLDER.iterdir() if _NAME.match(file.name)}
    return dict(sorted(found.items()))


def migrate(connection: psycopg.Connection[Any]) -> None:
    """Bring a server's database to the present schema. Raises SchemaTooNew, psycopg.Error.

    Whoever comes meanwhile waits. It needs a role that may create schemas, roles and the extension ``vector``.
    """
    newest = max(migrations())
    if version(connection) == newest:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        known = version(connection)
        if known > newest:
            raise SchemaTooNew(
                f"the server has schema {known}, this nacre knows up to {newest}", hint="upgrade nacre on this machine"
            )
        for number, sql in migrations().items():
            if number > known:
                connection.execute(sql.encode())
                connection.execute("INSERT INTO nacre_rows.schema_version (number) VALUES (%s)", (number,))


def version(connection: psycopg.Connection[Any]) -> int:
    """The number of the last migration that the server's database went through; 0 where nacre has none there."""
    found = connection.execute("SELECT to_regclass('nacre_rows.schema_version')::text").fetchone()
    if found is None or found[0] is None:
        return 0
    row = connection.execute("SELECT coalesce(max(number), 0) FROM nacre_rows.schema_version").fetchone()
    return int(row[0]) if row else 0
