"""Numbered, forward-only migrations: ``sql/migrations/NNNN_name.sql``, each in one transaction with its record."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import apsw

from nacre.errors import SchemaTooNew
from nacre.platform import private_files
from nacre.text.wikilinks import aliases_in, called, mentioned

_FOLDER = Path(__file__).parent.parent / "sql" / "migrations"
_NAME = re.compile(r"^(\d{4})_\w+\.sql$")


@cache
def migrations() -> dict[int, str]:
    """Number → SQL, in order."""
    found = {}
    for file in _FOLDER.iterdir():
        match = _NAME.match(file.name)
        if match:
            found[int(match.group(1))] = file.read_text(encoding="utf-8")
    return dict(sorted(found.items()))


@cache
def newest() -> int:
    """The number of the present schema, by the files' names alone."""
    names = (_NAME.match(file.name) for file in _FOLDER.iterdir())
    return max(int(name.group(1)) for name in names if name)


def migrate(connection: apsw.Connection, path: Path) -> None:
    """Bring a database to the present schema; a file that already has data is copied beside itself first.

    Raises SchemaTooNew when a newer nacre wrote it.
    """
    version = _version(connection)
    if version == newest():
        return
    if version > newest():
        raise SchemaTooNew(
            f"{path} has schema {version}, this nacre knows up to {newest()}",
            hint="upgrade nacre, or point NACRE_HOME at another folder",
        )
    if version:
        _keep_copy(connection, path.with_name(f"{path.name}.before-{newest():04d}"))
    _lend_functions(connection)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, sql in migrations().items():
            if number > _version(connection):
                connection.execute(sql)
                connection.execute(f"PRAGMA user_version = {number}")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _lend_functions(connection: apsw.Connection) -> None:
    """What migrations call to read a text: names of memories, and names in their bodies, as JSON."""

    def names(*values: object) -> str:
        subject, path, extra = (str(value) if value is not None else None for value in values)
        found = called(subject or "", path, aliases_in(json.loads(extra or "{}").get("aliases")))
        return json.dumps([[name, written, int(is_alias)] for name, (written, is_alias) in found.items()])

    def links(*values: object) -> str:
        return json.dumps(mentioned(str(values[0])))

    connection.create_scalar_function("called", names, 3, deterministic=True)
    connection.create_scalar_function("mentioned", links, 1, deterministic=True)


def is_present_schema(connection: apsw.Connection) -> bool:
    """Whether a database needs no migration."""
    return _version(connection) == newest()


def _version(connection: apsw.Connection) -> int:
    row = connection.execute("PRAGMA user_version").fetchone()
    return int(row[0]) if row else 0


def _keep_copy(connection: apsw.Connection, target: Path) -> None:
    if target.exists() and target.stat().st_size:
        return
    with private_files.new_file(target, overwrite=True) as file:
        connection.execute("VACUUM INTO ?", (str(file.name),))
