"""Care of the database: statistics, rebuild, backup, reset, vacuum, restore drill, and upkeep of memories."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from nacre import __version__
from nacre.base.frozen import frozen
from nacre.base.ids import from_ms
from nacre.base.text import shorten
from nacre.base.times import shown_day
from nacre.care.proofs import as_check, prove
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
from nacre.home.home import Home
from nacre.home.operations import apply_intents
from nacre.learn.ingest import IngestOptions, ingest, list_named_paths
from nacre.memories.erasure import apply_tombstones
from nacre.memories.store import fold_usage
from nacre.operations import operation
from nacre.readers.adapter import on_disk
from nacre.recall.recall import recall
from nacre.review import consolidate
from nacre.review.consolidate import DreamAction, Step
from nacre.review.dream import may_end
from nacre.settings import Settings, load_settings
from nacre.store import maintenance
from nacre.store.schema import UNREADABLE
from nacre.store.sqlite import FileDatabase, engine_version
from nacre.values.recall import Mode, RecallQuery
from nacre.values.reports import FAILURE, OK, WARNING, Check, IngestReport, OnProgress, Problem

if TYPE_CHECKING:
    from nacre.store.search import Vectors

_SIDE_FILES = ("", "-wal", "-shm")


@frozen
class ToolStats:
    """Statistics for the sessions of one tool."""

    tool: str
    sessions: int
    turns: int
    first: datetime | None
    last: datetime | None


@frozen
class Stats:
    """Numbers, sizes in bytes and locations of a home's contents.

    ``nacre``, ``sqlite``: versions in use. ``schema``: number of the database's last migration.
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
    files = () if home.database.server else _files(home.settings.database)
    size = sum(file.stat().st_size for file in files if file.exists())
    return Stats(
        memories=home.memories.counts(),
        links=home.links.count(home.today()),
        tools=tools,
        projects=len(home.files.projects()),
        passages=home.vectors.count(),
        vectors_missing=sum(home.vectors.missing()),
        model=home.vectors.model(),
        database=home.settings.where,
        database_bytes=size,
        vault=home.settings.where_documents,
        vault_files=sum(1 for _ in home.vault.scan()),
        nacre=__version__,
        schema=home.database.schema(),
        sqlite=engine_version(),
    )


def rebuild(
    settings: Settings,
    open_home: Callable[[Settings], Home],
    on_progress: OnProgress | None = None,
    *,
    vectors: bool = True,
) -> IngestReport:
    """Rebuild the database from the vault, the remaining transcripts, and the archive.

    The complete new database replaces the old database, which is kept as ``nacre.db.old``. Memories
    come only from their files. Sessions are indexed, but nothing is learned from them again. Usage,
    reviews, candidates, traces, model costs and the list of unread sessions are copied from the old
    database if it is readable. Raises SchemaTooNewError if a newer nacre created the database.
    """
    _refuse_server(settings)
    fresh = replace(settings, database=settings.database.with_name(f"{settings.database.name}.new"))
    paths = _read_before(settings, open_home)
    _remove(fresh.database)
    try:
        with _earlier_vectors(settings, open_home) as earlier:
            report = _build(
                replace(open_home(fresh), earlier=earlier), paths, on_progress, vectors=vectors
            )
        lost = _put_in_place(settings, fresh.database, open_home)
    finally:
        with contextlib.suppress(OSError):
            _remove(fresh.database)  # remove the partial database: the disk may be full
    return replace(report, problems=(*report.problems, *lost))


@contextlib.contextmanager
def _earlier_vectors(
    settings: Settings, open_home: Callable[[Settings], Home]
) -> Iterator[Vectors | None]:
    """Yield the old database's vectors, so that memories do not have to be embedded again."""
    home = _open_old(settings, open_home) if settings.database.exists() else None
    if home is None:
        yield None
        return
    vectors = None
    with contextlib.suppress(EmbedderUnavailableError, UnusableStoreError, *UNREADABLE):
        vectors = home.vectors
    try:
        yield vectors
    finally:
        home.close()


def _build(
    home: Home, known_paths: list[Path], on_progress: OnProgress | None, *, vectors: bool
) -> IngestReport:
    try:
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
    finally:
        home.database.close()


def _refuse_server(settings: Settings) -> None:
    if settings.server:
        raise UnavailableError(
            "this memory is on a server, which maintains its own database",
            hint="do this on the server",
        )


def reset(settings: Settings, open_home: Callable[[Settings], Home]) -> Path | None:
    """Remove the database, keep a copy next to it, and return the copy, or ``None`` if there is no database.

    Pending writes to the vault are completed first. The vault stays. An unreadable database is copied unchanged.
    """
    _refuse_server(settings)
    database = settings.database
    if not database.exists():
        return None
    copy = database.with_name(f"{database.name}.before-reset")
    copy.unlink(missing_ok=True)
    try:
        home = open_home(settings)
        try:
            apply_intents(home)
            _keep_history(home)
            home.database_file.backup(copy)
        finally:
            home.database.close()
    except SchemaTooNewError:
        raise
    except (UnusableStoreError, *UNREADABLE):
        database.replace(copy)
    _remove(database)
    return copy


def _put_in_place(
    settings: Settings, new: Path, open_home: Callable[[Settings], Home]
) -> list[Problem]:
    """Replace the database in one step, after writing pending changes to the vault.

    Return one problem for each part that could not be copied. The old log is removed first, because SQLite would apply
    it to the new database.
    """
    database = settings.database
    lost: list[Problem] = []
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
    """Replace a database with a complete, closed file. The old database is kept as ``….old``."""
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
    """Rename a closed database, starting with its log. An existing file with the new name is removed."""
    _remove(name)
    for file, kept_file in list(zip(_files(database), _files(name), strict=True))[::-1]:
        with contextlib.suppress(FileNotFoundError):
            file.replace(kept_file)


def _open_old(settings: Settings, open_home: Callable[[Settings], Home]) -> Home | None:
    """Open the home with its old database. Return ``None`` if the database is unreadable.

    Raises UnusableStoreError if opening fails for a different reason, such as a full disk.
    """
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
    """Write all pending changes to the vault. Return a problem if the pending changes cannot be read.

    Raises UnusableVaultError if a change cannot be written, so that the change is not lost.
    """
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
    """Remove a database, starting with its log, which SQLite would apply to the next database with that name."""
    for file in reversed(_files(database)):
        file.unlink(missing_ok=True)


def _files(database: Path) -> list[Path]:
    return [database.with_name(database.name + suffix) for suffix in _SIDE_FILES]


def _read_before(settings: Settings, open_home: Callable[[Settings], Home]) -> list[Path]:
    """Return the transcripts recorded in the old database, if it is readable."""
    home = _open_old(settings, open_home) if settings.database.exists() else None
    if home is None:
        return []
    try:
        with contextlib.suppress(UnusableStoreError, *UNREADABLE):
            apply_intents(home)
            apply_tombstones(home)  # from other machines: forgotten content is not carried over
            fold_usage(home)
            _keep_history(home)
        return [Path(file.path) for file in home.sessions.seen_files()]
    except (UnusableStoreError, *UNREADABLE):
        return []
    finally:
        home.database.close()


def _keep_history(home: Home) -> None:
    """Commit pending operations to git. Errors are ignored."""
    if home.journal.waiting()[0]:
        with contextlib.suppress(NacreError):
            commit_operations(home)


# -- Vacuum ----------------------------------------------------------------------------------------


@frozen
class Vacuumed:
    """The result of a vacuum.

    ``before``, ``after``: size of the database and its log in bytes. ``is_clean``: False if the log still contains old
    bytes, because another process is reading.
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


_COUNTED = ("memories", "projects", "sessions", "turns")


def verify(
    backup: Path,
    settings: Settings,
    open_home: Callable[[Settings], Home],
    on_progress: OnProgress | None = None,
) -> list[Check]:
    """Check a backup by restoring it to a temporary folder. The home is not touched.

    The checks include a recall. Raises NotFoundError. Raises InvalidInputError if the file is damaged or not a backup.
    """
    folder = Path(tempfile.mkdtemp(prefix="nacre-drill-"))
    home_path = folder / "home"
    try:
        manifest = data_backup.unpack(
            backup.expanduser().absolute(), home_path, on_progress or (lambda _: None)
        )
        size = f"{manifest.bytes / 1e6:,.1f} MB"
        hashes = Check(
            "archive",
            OK,
            f"{len(manifest.files):,} files, {size}, all hashes match; created {manifest.created}",
        )
        try:
            home = open_home(_settings(home_path, settings))
        except NacreError as error:
            return [hashes, Check("database", FAILURE, error.message, "make another backup")]
        try:
            return [
                hashes,
                *map(as_check, prove(home, transcripts=False)),
                _counts(home, manifest),
                _recall(home),
                *(
                    Check("note", WARNING, note, "it is missing from the backup")
                    for note in manifest.notes
                ),
            ]
        finally:
            home.database.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _settings(home: Path, settings: Settings) -> Settings:
    """Return the home's own settings, with models turned off."""
    own = {name: value for name, value in settings.environ.items() if not name.startswith("NACRE_")}
    return load_settings(
        home, own | {"NACRE_EMBEDDING_MODEL": "none", "NACRE_RECALL_RERANKER": "none"}
    )


def _counts(home: Home, manifest: data_backup.Manifest) -> Check:
    present = data_backup.counts_of(home)
    differing = [
        f"{name} {present[name]:,} instead of {manifest.counts.get(name, 0):,}"
        for name in _COUNTED
        if present[name] < manifest.counts.get(name, 0)
    ]
    if differing:
        return Check("counts", FAILURE, ", ".join(differing), "make another backup")
    return Check("counts", OK, ", ".join(f"{present[name]:,} {name}" for name in _COUNTED))


def _recall(home: Home) -> Check:
    memory = next(
        (candidate for candidate in home.memories.everything() if candidate.is_active), None
    )
    if memory is None:
        return Check("recall", OK, "no memory to test with")
    question = f"{memory.subject} {memory.content}"[:300]
    answer = recall(home, RecallQuery(text=question, mode=Mode.LEXICAL, turns=0, update=False))
    if any(hit.memory.id == memory.id for hit in answer.hits):
        return Check("recall", OK, f"{memory.subject!r} was recalled")
    return Check(
        "recall",
        WARNING,
        f"{memory.subject!r} was not recalled with its own text",
        "nacre admin db rebuild",
    )


# -- Ageing of memories ----------------------------------------------------------------------------


_STALE_TODO = timedelta(days=30)
"""Time without a restatement or recall after which an open todo is stale."""

_MANY_ENDING_MEMORIES = 50
_MAX_NAMED = 3
_SUBJECT_CHARACTERS = 40
_ID_CHARACTERS = 8


def upkeep(home: Home) -> Iterator[Check]:
    """Yield findings on the age of memories. Call :func:`fold_usage` first."""
    now = home.now()
    yield from _stale_todos(home.usage.idle_todos(now - _STALE_TODO))
    near = home.memories.in_any_state(home.usage.may_end(now, consolidate.bounds(home.settings)))
    if near:
        usage = home.usage.of([memory.id for memory in near])
        ending = consolidate.plan_ending(may_end(home, near), usage, now, home.settings)
        yield from _dream(home, ending)


def _stale_todos(stale: Sequence[tuple[str, str, datetime]]) -> Iterator[Check]:
    if stale:
        named = "; ".join(
            f"{shorten(subject, _SUBJECT_CHARACTERS)} ({memory[-_ID_CHARACTERS:]}, {shown_day(last)})"
            for memory, subject, last in stale[:_MAX_NAMED]
        )
        more = f"; and {len(stale) - _MAX_NAMED:,} more" if len(stale) > _MAX_NAMED else ""
        finding = f"{len(stale):,} open, neither stated nor recalled for {_STALE_TODO.days} days: {named}{more}"
        yield Check(
            "todos",
            WARNING,
            finding,
            f"nacre retire {stale[0][0][-_ID_CHARACTERS:]}, if it is done or obsolete",
        )


def _dream(home: Home, ending: Sequence[Step]) -> Iterator[Check]:
    """Report how many memories a dream would retire.

    Suggest a dream if there are many memories and dreams at night are off.
    """
    if not ending:
        return
    over = sum(step.action is DreamAction.EXPIRE for step in ending)
    parts = {"over": over, "never recalled": len(ending) - over}
    finding = " and ".join(f"{number:,} {name}" for name, number in parts.items() if number)
    if home.settings.flag("dream.at_night"):
        yield Check("dream", OK, f"{finding}: the daemon's dreams retire a few per night")
    elif len(ending) > _MANY_ENDING_MEMORIES:
        ready = f"{len(ending):,} {'memory is' if len(ending) == 1 else 'memories are'} ready for tidying: {finding}"
        yield Check("dream", WARNING, ready, "nacre dream shows them and asks; nothing is deleted")
    else:
        yield Check("dream", OK, f"{finding}: nacre dream --dry-run shows them")
