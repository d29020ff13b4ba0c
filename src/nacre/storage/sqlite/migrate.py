"""Numbered, forward-only migrations: ``sql/migrations/NNNN_name.sql``, and those of the gateway in ``sql/gateway``."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import apsw

from nacre.errors import SchemaTooNew
from nacre.platform import private_files

_FOLDERS = Path(__file__).parent.parent / "sql"
MAIN = "migrations"
"""The folder of those of ``nacre.db``."""
_NAME = re.compile(r"^(\d{4})_\w+\.sql$")


@cache
def migrations(folder: str = MAIN) -> dict[int, str]:
    """Return the SQL of each migration by its number, in order."""
    found = {}
    for file in (_FOLDERS / folder).iterdir():
        match = _NAME.match(file.name)
        if match:
            found[int(match.group(1))] = file.read_text(encoding="utf-8")
    return dict(sorted(found.items()))


@cache
def newest(folder: str = MAIN) -> int:
    """Return the number of the present schema, by the files' names alone."""
    names = (_NAME.match(file.name) for file in (_FOLDERS / folder).iterdir())
    return max(int(name.group(1)) for name in names if name)


def migrate(connection: apsw.Connection, path: Path, folder: str = MAIN) -> None:
    """Bring a database to the present schema in one transaction, and keep a copy of one that has data.

    Raises SchemaTooNew when a newer nacre wrote it.
    """
    version = _version(connection)
    if version == newest(folder):
        return
    if version > newest(folder):
        raise SchemaTooNew(
            f"{path} has schema {version}, this nacre knows up to {newest(folder)}",
            hint="upgrade nacre, or point NACRE_HOME at another folder",
        )
    if version:
        _keep_copy(connection, path.with_name(f"{path.name}.before-{newest(folder):04d}"))
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, sql in migrations(folder).items():
            if number > _version(connection):
                connection.execute(sql)
                connection.execute(f"PRAGMA user_version = {number}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def is_present_schema(connection: apsw.Connection, folder: str = MAIN) -> bool:
    """Return whether a database needs no migration."""
    return _version(connection) == newest(folder)


def _version(connection: apsw.Connection) -> int:
    row = connection.execute("PRAGMA user_version").fetchone()
    return int(row[0]) if row else 0


def _keep_copy(connection: apsw.Connection, target: Path) -> None:
    if target.exists() and target.stat().st_size:
        return
    with private_files.new_file(target, overwrite=True) as file:
        connection.execute("VACUUM INTO ?", (str(file.name),))
