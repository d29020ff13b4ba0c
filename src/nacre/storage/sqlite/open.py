"""Open a home's database: to be written, or only to be read where nothing can be written now."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import apsw

from nacre.errors import SchemaTooNew, StoreBusy, StoreUnusable, Unavailable
from nacre.platform import private_files
from nacre.platform.locks import Observe
from nacre.storage.sqlite.database import FileDatabase
from nacre.storage.sqlite.migrate import MAIN

_SPOILED = (apsw.CorruptError, apsw.NotADBError)


def open_database(path: Path, observe: Observe | None = None, migrations: str = MAIN) -> FileDatabase:
    """Open a database, making it where there is none.

    One on a full or read-only disk, or that this user may only read, is opened to be read. Raises StoreUnusable,
    StoreBusy, SchemaTooNew, Unavailable.
    """
    try:
        _create_private(path)
        return FileDatabase(path, observe, migrations=migrations)
    except (SchemaTooNew, StoreBusy):
        raise
    except (StoreUnusable, Unavailable) as error:
        if isinstance(error.__cause__, _SPOILED) or not path.is_file():
            raise
        return FileDatabase(path, unwritable=error, migrations=migrations)


def _create_private(path: Path) -> None:
    """An empty file that only the owner can read: SQLite gives its side files the same mode.

    The file may be a link to where the owner keeps large things.
    """
    try:
        os.close(private_files.open_file(os.path.realpath(path), os.O_WRONLY | os.O_CREAT))
    except OSError as error:
        told, hint = error.strerror or str(error), "check that the folder exists and is writable"
        if error.errno == errno.EROFS:
            told, hint = "it is on a read-only disk", "make that writable, or set NACRE_HOME to another folder"
        raise StoreUnusable(f"cannot use the database {path}: {told}", hint=hint) from error
