"""One moment of the database, held while others go on writing, and copied at leisure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import apsw

from nacre.errors import StoreUnusable
from nacre.storage.sqlite.database import BUSY_TIMEOUT_MS

_PAGES = 4_000
"""So many pages are copied between two words on how far it is."""


class Snapshot:
    """The database as it is when this is made; use as a context manager. Writers are not kept waiting."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = apsw.Connection(str(path))
        self._connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        self._connection.execute("BEGIN")
        self._connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # the first look is the moment

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def copy(self, target: Path, on_progress: Callable[[int, int], None]) -> None:
        """Write it to a file that does not exist yet; tells pages done and in all. Raises StoreUnusable."""
        try:
            copy = apsw.Connection(str(target))
            try:
                with copy.backup("main", self._connection, "main") as work:
                    while not work.done:
                        work.step(_PAGES)
                        on_progress(work.page_count - work.remaining, work.page_count)
                copy.execute("PRAGMA journal_mode = DELETE").fetchall()
            finally:
                copy.close()
        except apsw.Error as error:
            raise StoreUnusable(
                f"{self._path} cannot be copied: {error}", hint="nacre doctor --deep looks at it"
            ) from error
