"""A connection that only reads, where nothing can be written: on a full disk, on a read-only one.

SQLite keeps a log and an index of it beside a database, and cannot read without them, unless it knows that nobody
writes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from urllib import parse

import apsw

from nacre.storage.sqlite.migrate import MAIN, is_present_schema

_BUSY_MS = 1_000


def connect_to_read(path: Path, patience_ms: int | None = None, migrations: str = MAIN) -> apsw.Connection | None:
    """A connection to a database of the present schema; ``None`` where it cannot be read, either.

    With ``patience_ms`` it waits for no lock longer than that, and takes none that others would wait for.

    Three ways, the first that works: beside others; as the only one, which needs no index, while others wait for the
    moment that takes; as a file that nobody can change, where the folder is read-only and nothing is left in a log.
    """
    for connection in _ways(path, patience_ms):
        try:
            connection.execute(
                "PRAGMA query_only = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32000"
            ).fetchall()
            if is_present_schema(connection, migrations):
                return connection
        except apsw.Error:
            pass
        with contextlib.suppress(apsw.Error):
            connection.close()
    return None


def _ways(path: Path, patience_ms: int | None) -> Iterator[apsw.Connection]:
    with contextlib.suppress(apsw.Error):
        beside = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        beside.set_busy_timeout(_BUSY_MS if patience_ms is None else patience_ms)
        yield beside
    with contextlib.suppress(apsw.Error):
        if patience_ms is None:
            alone = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            alone.set_busy_timeout(_BUSY_MS)
            alone.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
            yield alone
    if not _is_writable(path.parent) and not _has_log(path):
        with contextlib.suppress(apsw.Error):
            name = f"file:{parse.quote(os.path.realpath(path))}?immutable=1"
            yield apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)


def _is_writable(folder: Path) -> bool:
    if hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY:
        return False
    return os.access(folder, os.W_OK)


def _has_log(path: Path) -> bool:
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0
