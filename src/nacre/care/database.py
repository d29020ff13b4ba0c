"""Database maintenance: statistics, rebuild, backup, reset, vacuum and restore drill."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from nacre import __version__
from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import from_ms
from nacre.care.proofs import as_checks, prove
from nacre.data import backup as data_backup
from nacre.data.history import commit_operations
from nacre.errors import (
    EmbedderUnavailableError,
    NacreError,
    SchemaTooNewError,
    UnavailableError,
    UnusableStoreError,
    UnusableVaultError,
)
from nacre.home.home import Home, open_home
from nacre.home.operations import apply_intents
from nacre.learn.ingest import IngestOptions, ingest, list_named_paths
from nacre.memories.erasure import apply_tombstones
from nacre.memories.usage import fold_usage
from nacre.operations import operation
from nacre.readers.adapter import on_disk
from nacre.settings import Settings, load_settings
from nacre.store import maintenance
from nacre.store.schema import UNREADABLE
from nacre.store.sqlite import FileDatabase, engine_version
from nacre.values.reports import FAILURE, OK, WARNING, Check, IngestReport, OnProgress, Problem

if TYPE_CHECKING:
    from nacre.store.search import Vectors

_SIDE_FILES = ("", "-wal", "-shm")


@frozen
class ToolStats:
    """The number and period of the sessions recorded by one tool."""

    tool: str
    sessions: int
    turns: int
    first: datetime | None
    last: datetime | None


@frozen
class Stats:
    """The counts, sizes in bytes and locations of a home's data.

    ``nacre``, ``sqlite``: versions. ``schema``: number of the latest migration.
    """

    memories: dict[str, int]
    links: int
    tools: tuple[ToolStats, ...]
    projects: int
    passages: int
    vectors_missing: int
    model: str | None
    database: str
    database_bytes: int
    vault: str
    vault_files: int
    nacre: str
    schema: int
    sqlite: str


@operation("db-stats")
def stats(home: Home) -> Stats:
    """Count the contents of the home."""
    tools = tuple(
        ToolStats(tool, sessions, turns or 0, from_ms(first), from_ms(last))
        for tool, sessions, turns, first, last in home.sessions.counts()
    )
    return Stats(
        memories=home.memories.counts(),
        links=home.links.count(home.today()),
        tools=tools,
        projects=len(home.files.projects()),
        passages=home.vectors.count(),
        vectors_missing=sum(home.vectors.missing()),
        model=home.vectors.model(),
        database=home.settings.where,
        database_bytes=0 if home.database.server else _bytes(home.settings),
        vault=home.settings.where_documents,
        vault_files=sum(1 for _ in home.vault.scan()),
        nacre=__version__,
        schema=home.database.schema(),
        sqlite=engine_version(),
    )


OpenHome = Callable[[Settings], Home]


@operation("db-rebuild", writes=True, takes_long=True, closed=True)
def rebuild(
    settings: Settings,
    on_progress: OnProgress = lambda _: None,
    *,
    vectors: Annotated[bool, bounds("Also create the vectors.")] = True,
    open_home: OpenHome = open_home,
) -> IngestReport:
    """Rebuild the database from the vault, the remaining transcripts, and the archive.

    The complete new database replaces the old database, which is kept as ``nacre.db.old``. Memories
    come only from their files. Sessions are indexed, but nothing is learned from them again. Usage,
    reviews, candidates, traces, model costs and the list of unread sessions are copied from the old
    database if it is readable. Raises SchemaTooNewError if a newer nacre created the database.
    """
    _refuse_server(settings)
    fresh = replace(settings, database=settings.database.with_name(f"{settings.database.name}.new"))
    try:
        with _earlier(settings, open_home) as (paths, earlier):
            _remove(fresh.database)
            report = _build(
                replace(open_home(fresh), earlier=earlier), paths, on_progress, vectors=vectors
            )
        lost = _put_in_place(settings, fresh.database, open_home)
    finally:
        with contextlib.suppress(OSError):
            _remove(fresh.database)  # remove the partial database: the disk may be full
    return replace(report, problems=(*report.problems, *lost))


@contextlib.contextmanager
def _earlier(
    settings: Settings, open_home: OpenHome
) -> Iterator[tuple[list[Path], Vectors | None]]:
    # The old database's vectors save embedding the memories again.
    home = _open_old(settings, open_home) if settings.database.exists() else None
    if home is None:
        yield [], None
        return
    paths = []
    vectors = None
    with contextlib.closing(home):
        with contextlib.suppress(UnusableStoreError, *UNREADABLE):
            apply_intents(home)
            apply_tombstones(home)  # content forgotten on other machines is not carried over
            fold_usage(home)
            _keep_history(home)
        with contextlib.suppress(UnusableStoreError, *UNREADABLE):
            paths = [Path(file.path) for file in home.sessions.seen_files()]
        with contextlib.suppress(EmbedderUnavailableError, UnusableStoreError, *UNREADABLE):
            vectors = home.vectors
        yield paths, vectors


def _build(
    home: Home, known_paths: list[Path], on_progress: OnProgress, *, vectors: bool
) -> IngestReport:
    with contextlib.closing(home.database):
        paths = tuple(
            path
            for path in sorted({*known_paths, *list_named_paths(home)})
            if on_disk(path).exists()
        )
        options = IngestOptions(
            paths=paths,
            discover=True,
            extract=False,
            vectors=vectors,
            remember_paths=False,
            from_archive=True,
        )
        report = ingest(home, options, on_progress)
        with home.transaction():
            home.sessions.mark_all_extracted()
        home.database_file.fold_log()
        return report


def _refuse_server(settings: Settings) -> None:
    if settings.server:
        raise UnavailableError(
            "this memory is on a server, which maintains its own database",
            hint="maintain the database on the server",
        )


@operation("db-reset", writes=True, closed=True, owners=True, command="admin db reset")
def reset(settings: Settings, *, open_home: OpenHome = open_home) -> Path | None:
    """Remove the database but keep a copy next to it, and return the copy's path, if any.

    The vault stays, and pending writes to it are completed first. An unreadable database is copied
    unchanged.
    """
    _refuse_server(settings)
    database = settings.database
    if not database.exists():
        return None
    copy = database.with_name(f"{database.name}.before-reset")
    copy.unlink(missing_ok=True)
    try:
        with contextlib.closing(open_home(settings)) as home:
            apply_intents(home)
            _keep_history(home)
            home.database_file.backup(copy)
    except SchemaTooNewError:
        raise
    except (UnusableStoreError, *UNREADABLE):
        database.replace(copy)
    _remove(database)
    return copy


def _put_in_place(settings: Settings, new: Path, open_home: OpenHome) -> list[Problem]:
    # The old log is removed first, because SQLite would apply it to the new database.
    database = settings.database
    lost = []
    with contextlib.ExitStack() as stack:
        if database.exists():
            home = _open_old(settings, open_home)
            if home:
                with contextlib.closing(home.database):
                    stack.enter_context(home.vault_lock)
                    lost = _flush_writes(home)
                with contextlib.closing(FileDatabase(new)) as fresh:
                    parts = maintenance.carry_over(database, fresh)
                    fresh.fold_log()
                hint = "the vault has all memories, but today's costs begin again at 0"
                lost += [
                    Problem(str(database), f"{part} could not be read", hint) for part in parts
                ]
            take_place(database, new)
        else:
            new.replace(database)
    return lost


def take_place(database: Path, new: Path) -> None:
    """Replace a database with a complete, closed file. The old one is kept as ``….old``."""
    old = database.with_name(f"{database.name}.old")
    _remove(old)
    for file, kept_file in list(zip(_files(database), _files(old), strict=True))[1:]:
        with contextlib.suppress(FileNotFoundError):
            file.replace(kept_file)
    try:
        os.link(database, old)
    except OSError:  # unsupported by some file systems
        database.replace(old)
    new.replace(database)


def set_aside(database: Path, name: Path) -> None:
    """Rename a closed database and its log. An existing database with the new name is replaced."""
    _remove(name)
    for file, kept_file in list(zip(_files(database), _files(name), strict=True))[::-1]:
        with contextlib.suppress(FileNotFoundError):
            file.replace(kept_file)


def _open_old(settings: Settings, open_home: OpenHome) -> Home | None:
    # Errors such as a full disk are raised, because the database may be readable later.
    try:
        return open_home(settings)
    except SchemaTooNewError:
        raise
    except (UnusableStoreError, *UNREADABLE) as error:
        is_system_error = isinstance(error.__cause__, OSError) and settings.database.is_file()
        if is_system_error or not maintenance.is_read_error(error):
            raise
        return None


def _flush_writes(home: Home) -> list[Problem]:
    # A pending change that cannot be written raises an error, so that it is not lost.
    try:
        apply_intents(home)
        is_pending = home.files.has_intents()
    except UnusableVaultError:
        raise
    except (UnusableStoreError, *UNREADABLE):
        problem = "pending writes to the vault could not be read"
        hint = "nacre log shows the completed operations"
        return [Problem(str(home.settings.database), problem, hint)]
    if is_pending:
        problem = home.problems[-1] if home.problems else "a write is pending"
        raise UnusableVaultError(
            f"the old database is kept: {problem}", hint="fix it, then run: nacre admin db rebuild"
        )
    return []


def _remove(database: Path) -> None:
    # The log goes first, because SQLite would apply it to the next database with that name.
    for file in reversed(_files(database)):
        file.unlink(missing_ok=True)


def _files(database: Path) -> list[Path]:
    return [database.with_name(database.name + suffix) for suffix in _SIDE_FILES]


def _keep_history(home: Home) -> None:
    if home.journal.count_pending()[0]:
        with contextlib.suppress(NacreError):
            commit_operations(home)


# -- Vacuum ----------------------------------------------------------------------------------------


@frozen
class Vacuumed:
    """The result of a vacuum, with the size of the database and its log in bytes before and after.

    ``is_clean``: False if another process is reading, so that the log still contains old bytes.
    """

    before: int
    after: int
    is_clean: bool


@operation("db-vacuum", writes=True, takes_long=True)
def vacuum(home: Home) -> Vacuumed:
    """Return free pages to the disk and erase deleted bytes. Raises StoreBusyError.

    Other writers wait until it ends, which can take seconds for a large file.
    """
    before = _bytes(home.settings)
    is_clean = home.database_file.compact()
    return Vacuumed(before, _bytes(home.settings), is_clean)


def _bytes(settings: Settings) -> int:
    files = _files(settings.database)[:2]
    return sum(file.stat().st_size for file in files if file.exists())


# -- Restore drill: a backup is restored into a temporary folder and checked ------------------------


@operation("backup-verify", takes_long=True)
def verify_backup(
    settings: Settings,
    backup: Annotated[Path, bounds("The backup's file.")],
    on_progress: OnProgress = lambda _: None,
) -> list[Check]:
    """Check a backup by restoring it to a temporary folder. The home is not touched.

    Raises NotFoundError, or InvalidInputError if the file is damaged or not a backup.
    """
    with tempfile.TemporaryDirectory(prefix="nacre-drill-", ignore_cleanup_errors=True) as folder:
        home_path = Path(folder, "home")
        manifest = data_backup.unpack(backup.expanduser().absolute(), home_path, on_progress)
        size = f"{manifest.bytes / 1e6:,.1f} MB"
        hashes = Check(
            "archive",
            OK,
            f"{len(manifest.files):,} files, {size}, all hashes match; created {manifest.created}",
        )
        own = {
            name: value for name, value in settings.environ.items() if not name.startswith("NACRE_")
        }
        try:
            home = open_home(load_settings(home_path, own | {"NACRE_EMBEDDING_MODEL": "none"}))
        except NacreError as error:
            return [hashes, Check("database", FAILURE, error.message, "make another backup")]
        with contextlib.closing(home):
            return [
                hashes,
                *as_checks(prove(home, transcripts=False)),
                *(
                    Check("note", WARNING, note, "it is missing from the backup")
                    for note in manifest.notes
                ),
            ]
