"""Numbered, forward-only migrations: ``sql/migrations/NNNN_name.sql``, each in one transaction with its record.

Another database of the home has its own, in another folder beside them: that of the gateway in ``sql/gateway``.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from nacre.errors import SchemaTooNew
from nacre.platform import private_files
from nacre.platform.lazy import Module

if TYPE_CHECKING:
    from nacre.text import wikilinks
else:
    wikilinks = Module("nacre.text.wikilinks")

_FOLDERS = Path(__file__).parent.parent / "sql"
MAIN = "migrations"
"""The folder of those of ``nacre.db``."""
_NAME = re.compile(r"^(\d{4})_\w+\.sql$")


@cache
def migrations(folder: str = MAIN) -> dict[int, str]:
    """Number → SQL, in order."""
    found = {}
    for file in (_FOLDERS / folder).iterdir():
        match = _NAME.match(file.name)
        if match:
            found[int(match.group(1))] = file.read_text(encoding="utf-8")
    return dict(sorted(found.items()))


@cache
def newest(folder: str = MAIN) -> int:
    """The number of the present schema, by the files' names alone."""
    names = (_NAME.match(file.name) for file in (_FOLDERS / folder).iterdir())
    return max(int(name.group(1)) for name in names if name)


def migrate(connection: apsw.Connection, path: Path, folder: str = MAIN) -> None:
    """Bring a database to the present schema; a file that already has data is copied beside itself first.

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
    _lend_functions(connection)
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


def _lend_functions(connection: apsw.Connection) -> None:
    """What migrations call to read a text: names of memories, and names in their bodies, as JSON."""

    def names(*values: object) -> str:
        subject, path, extra = (str(value) if value is not None else None for value in values)
        found = wikilinks.called(subject or "", path, wikilinks.aliases_in(json.loads(extra or "{}").get("aliases")))
        return json.dumps([[name, written, int(is_alias)] for name, (written, is_alias) in found.items()])

    def links(*values: object) -> str:
        return json.dumps(wikilinks.mentioned(str(values[0])))

    connection.create_scalar_function("called", names, 3, deterministic=True)
    connection.create_scalar_function("mentioned", links, 1, deterministic=True)


def is_present_schema(connection: apsw.Connection, folder: str = MAIN) -> bool:
    """Whether a database needs no migration."""
    return _version(connection) == newest(folder)


def _version(connection: apsw.Connection) -> int:
    row = connection.execute("PRAGMA user_version").fetchone()
    return int(row[0]) if row else 0


def _keep_copy(connection: apsw.Connection, target: Path) -> None:
    if target.exists() and target.stat().st_size:
        return
    with private_files.new_file(target, overwrite=True) as file:
        connection.execute("VACUUM INTO ?", (str(file.name),))
