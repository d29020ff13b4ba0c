"""Look after the database file: make it smaller, tell what made it."""

from __future__ import annotations

from dataclasses import dataclass

from nacre import __version__
from nacre.home.home import Home
from nacre.settings import Settings
from nacre.storage.sqlite.database import engine_version


@dataclass(frozen=True, slots=True)
class Vacuumed:
    """What vacuuming did: bytes of the database and its log before and after. ``is_clean`` is false where another
    process still reads, and the log keeps old bytes until it is done."""

    before: int
    after: int
    is_clean: bool


@dataclass(frozen=True, slots=True)
class DatabaseVersion:
    """What made the database and what reads it.

    ``schema`` is the number of its last migration, ``database`` where it is.
    """

    nacre: str
    schema: int
    sqlite: str
    database: str


def vacuum(home: Home) -> Vacuumed:
    """Give free pages back to the disk, and leave no byte of what was deleted. Raises StoreBusy.

    Others who write wait meanwhile: seconds where the file is large.
    """
    before = _bytes(home.settings)
    is_clean = home.database_file.compact()
    return Vacuumed(before, _bytes(home.settings), is_clean)


def version(home: Home) -> DatabaseVersion:
    """What made the database and what reads it."""
    return DatabaseVersion(__version__, home.database.schema(), engine_version(), home.settings.where)


def _bytes(settings: Settings) -> int:
    files = (settings.database.with_name(settings.database.name + suffix) for suffix in ("", "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
