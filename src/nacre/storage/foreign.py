"""Read-only looks into databases that other programs own. Nothing is ever written, not even beside them.

Statements are composed from the names of tables and columns that the file itself has.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw

from nacre.errors import InvalidInput

_VECTOR_FUNCTIONS = ("libsql_vector_idx", "vector", "vector32", "vector64", "vector_distance_cos")
"""Functions of libSQL that may stand in the definition of an index; they are never called here."""


class ForeignDatabase:
    """Another program's SQLite file, opened by :func:`open_foreign`."""

    def __init__(self, path: Path, connection: apsw.Connection, clean: Callable[[str], str]) -> None:
        self._path = path
        self._clean = clean
        self._connection = connection

    def columns(self, table: str) -> tuple[str, ...]:
        """The columns of a table; none when it does not exist."""
        with _translated(self._path):
            rows = self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
        return tuple(str(name) for (name,) in rows)

    def rows(self, table: str, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Every row of a table with those of the wanted columns that it has; nothing when there is no such table."""
        known = self.columns(table)
        names = [name for name in wanted if name in known]
        if not names:
            return
        listed = ", ".join(_quoted(name) for name in names)
        with _translated(self._path):
            for row in self._connection.execute(f"SELECT {listed} FROM {_quoted(table)} ORDER BY rowid"):  # noqa: S608 - names are the file's own, quoted
                values = (self._clean(value) if isinstance(value, str) else value for value in row)
                yield dict(zip(names, values, strict=True))


@contextlib.contextmanager
def open_foreign(path: Path, clean: Callable[[str], str] = str) -> Iterator[ForeignDatabase]:
    """Look into a database; every text of its rows goes through ``clean``.

    One with a write-ahead log is looked at in a copy, so that nothing is touched.

    Raises InvalidInput for what is no SQLite database, is encrypted or damaged.
    """
    with contextlib.ExitStack() as stack:
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="nacre-look-")))
            copy = folder / "copy.db"
            shutil.copyfile(path, copy)
            shutil.copyfile(log, folder / "copy.db-wal")
            uri = f"file:{quote(str(copy))}"
        else:
            uri = f"file:{quote(str(path))}?mode=ro&immutable=1"
        with _translated(path):
            connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_READWRITE)
        stack.callback(connection.close)
        for name in _VECTOR_FUNCTIONS:
            connection.create_scalar_function(name, _nothing, deterministic=True)
        with _translated(path):
            connection.execute("PRAGMA query_only = ON").fetchall()
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        yield ForeignDatabase(path, connection, clean)


def _nothing(*_: object) -> None:
    return None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextlib.contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except (apsw.NotADBError, apsw.CorruptError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path} cannot be read as a SQLite database: it is encrypted, damaged or something else",
            hint="have the program that wrote it export or decrypt it first",
        ) from error
    except apsw.Error as error:
        raise InvalidInput(
            f"cannot read {path}: {error}", hint="close the program that uses it, and try again"
        ) from error
