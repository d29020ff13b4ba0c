"""Numbered, forward-only migrations of a server: ``sql/postgres/NNNN_name.sql``, each in one transaction.

Many programs work with one server, and not all are upgraded at once. So a change comes in two: one adds what is new and
says ``-- needs N``, the oldest schema whose programs still work beside it; a later one, which says nothing, removes
what is old, and from then on older programs are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from psycopg import errors

from nacre.errors import SchemaTooNew
from nacre.storage.postgres.retry import TIMES, pause

_FOLDER = Path(__file__).parent.parent / "sql" / "postgres"
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
    found = {int(file.name[:4]): file.read_text("utf-8") for file in _FOLDER.iterdir() if _NAME.match(file.name)}
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
                connection.execute("INSERT INTO nacre_rows.schema_version (number, needs) VALUES (%s, %s)", told)


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
    asked = "SELECT coalesce(max(number), 0), coalesce(max(needs), 0) FROM nacre_rows.schema_version"
    row = connection.execute(asked).fetchone()
    return State(int(row[0]), int(row[1])) if row else State(0, 0)
