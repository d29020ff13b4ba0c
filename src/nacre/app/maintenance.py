"""Care of the database: what is in it, rebuild, backup, reset."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.app.committing import commit_operations
from nacre.app.context import Context
from nacre.app.ingesting import IngestOptions, ingest, named_before
from nacre.app.writing import apply_intents
from nacre.errors import EmbedderUnavailable, NacreError, SchemaTooNew, StoreUnusable, VaultUnusable
from nacre.model.reports import IngestReport, Problem, Progress
from nacre.settings import Settings
from nacre.storage.carrying import carry_over
from nacre.storage.database import Database
from nacre.storage.shard_set import ShardSet
from nacre.storage.times import from_ms

if TYPE_CHECKING:
    from nacre.storage.vectors import Vectors

_SIDE_FILES = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class ToolStats:
    """Sessions of one tool."""

    tool: str
    sessions: int
    turns: int
    first: datetime | None
    last: datetime | None


@dataclass(frozen=True, slots=True)
class Stats:
    """What a home holds; sizes in bytes."""

    memories: dict[str, int]
    tools: tuple[ToolStats, ...]
    projects: int
    passages: int
    vectors_missing: int
    model: str | None
    database_bytes: int
    index_bytes: int
    vault_files: int


def stats(context: Context) -> Stats:
    """Count everything."""
    tools = tuple(
        ToolStats(tool, sessions, turns or 0, from_ms(first), from_ms(last))
        for tool, sessions, turns, first, last in context.sessions.counts()
    )
    size = sum(file.stat().st_size for file in _files(context.settings.database) if file.exists())
    return Stats(
        memories=context.memories.counts(), tools=tools, projects=len(context.files.projects()),
        passages=context.vectors.count(), vectors_missing=sum(context.vectors.missing()),
        model=context.vectors.model(), database_bytes=size,
        index_bytes=context.shards.bytes(), vault_files=sum(1 for _ in context.vault.scan()),
    )  # fmt: skip


def rebuild(
    settings: Settings, open_home: Callable[[Settings], Context], on_progress: Callable[[Progress], None] | None = None,
    *, vectors: bool = True,
) -> IngestReport:  # fmt: skip
    """Make the database anew from the vault, the transcripts that still exist, and the archive.

    The new one takes the place of the old one when it is whole; the old file is kept as ``nacre.db.old``. Memories come
    from their files alone; sessions are indexed and count as seen by extraction, so that a rebuild writes no memories.
    What models cost, and traces, are carried over from the old one as far as it can be read: today's budget is spent
    after a rebuild, too. Usage starts from neutral. Raises SchemaTooNew: a newer nacre's database is not replaced.
    """
    fresh = replace(settings, database=settings.database.with_name(f"{settings.database.name}.new"))
    known = _read_before(settings, open_home)
    _remove(fresh.database)
    try:
        with _earlier(settings, open_home) as earlier:
            report = _make_anew(replace(open_home(fresh), earlier=earlier), known, on_progress, vectors=vectors)
        lost = _put_in_place(settings, fresh.database, open_home)
        _sweep(settings)
    finally:
        with contextlib.suppress(OSError):
            _remove(fresh.database)  # a full disk has no room for half of one
    return replace(report, problems=(*report.problems, *lost))


@contextlib.contextmanager
def _earlier(settings: Settings, open_home: Callable[[Settings], Context]) -> Iterator[Vectors | None]:
    """The vectors of the old database: a text that has one is not embedded again, which takes hours or money."""
    context = _opened(settings, open_home) if settings.database.exists() else None
    if context is None:
        yield None
        return
    vectors = None
    with contextlib.suppress(EmbedderUnavailable):
        vectors = context.vectors
    try:
        yield vectors
    finally:
        context.close()


def _make_anew(
    context: Context, known: list[Path], on_progress: Callable[[Progress], None] | None, *, vectors: bool
) -> IngestReport:  # fmt: skip
    try:
        paths = tuple(path for path in sorted({*known, *named_before(context)}) if path.exists())
        options = IngestOptions(
            paths=paths, discover=True, extract=False, vectors=vectors, remember_paths=False, from_archive=True
        )
        report = ingest(context, options, on_progress)
        with context.database.transaction():
            context.sessions.mark_all_extracted()
        context.database.fold_log()
        return report
    finally:
        context.database.close()


def backup(context: Context, target: Path) -> Path:
    """Write a consistent copy of the database. Raises Conflict when the target exists."""
    target = target.expanduser().absolute()
    context.database.backup(target)
    return target


def reset(settings: Settings, open_home: Callable[[Settings], Context]) -> Path | None:
    """Remove the database, keeping a copy beside it; the vault stays. Returns the copy, ``None`` if there was none.

    Writes that are pending reach the vault first. A file that cannot be opened is kept as it is.
    """
    database = settings.database
    if not database.exists():
        return None
    copy = database.with_name(f"{database.name}.before-reset")
    copy.unlink(missing_ok=True)
    try:
        context = open_home(settings)
        try:
            apply_intents(context)
            _keep_history(context)
            backup(context, copy)
        finally:
            context.database.close()
    except SchemaTooNew:
        raise
    except StoreUnusable:
        database.replace(copy)
    _remove(database)
    shutil.rmtree(settings.index, ignore_errors=True)
    return copy


def _put_in_place(settings: Settings, new: Path, open_home: Callable[[Settings], Context]) -> list[Problem]:
    """Let a new database take the place of the old one, in one step; what was stored meanwhile reaches the vault first.

    The log of the old one goes before: SQLite would take it for the new one's. Returns what could not be carried over.
    """
    database = settings.database
    old = database.with_name(f"{database.name}.old")
    lost: list[Problem] = []
    with contextlib.ExitStack() as held:
        if database.exists():
            context = _opened(settings, open_home)
            if context:
                with contextlib.closing(context.database):
                    held.enter_context(context.vault_lock)
                    _empty(context)
                lost = _carry_over(database, new)
            _remove(old)
            for file, kept in list(zip(_files(database), _files(old), strict=True))[1:]:
                with contextlib.suppress(FileNotFoundError):
                    file.replace(kept)
            try:
                os.link(database, old)
            except OSError:  # not every file system can
                database.replace(old)
        new.replace(database)
    return lost


def _carry_over(old: Path, new: Path) -> list[Problem]:
    with contextlib.closing(Database(new)) as fresh:
        lost = carry_over(old, fresh)
        fresh.fold_log()
    hint = "the vault has every memory; what a day cost so far is counted from here"
    return [Problem(str(old), f"{what} could not be read any more", hint) for what in lost]


def _sweep(settings: Settings) -> None:
    """Remove the shards of databases that are not there any more."""
    database = Database(settings.database)
    try:
        ShardSet(database, settings.index).sweep(others=True)
    finally:
        database.close()


def _opened(settings: Settings, open_home: Callable[[Settings], Context]) -> Context | None:
    """The home with its old database, unless that cannot be read any more."""
    try:
        return open_home(settings)
    except SchemaTooNew:
        raise
    except StoreUnusable:
        return None


def _empty(context: Context) -> None:
    """Bring every pending write to the vault. Raises VaultUnusable where one stays, as it would be lost."""
    apply_intents(context)
    if context.files.has_intents():
        told = context.problems[-1] if context.problems else "a write is pending"
        raise VaultUnusable(f"the old database is kept: {told}", hint="mend that, then run: nacre db rebuild")


def _remove(database: Path) -> None:
    """Remove a database; its log first, which would be taken for that of the next one of that name."""
    for file in reversed(_files(database)):
        file.unlink(missing_ok=True)


def _files(database: Path) -> list[Path]:
    return [database.with_name(database.name + suffix) for suffix in _SIDE_FILES]


def _read_before(settings: Settings, open_home: Callable[[Settings], Context]) -> list[Path]:
    """What the old database had read, where it can still tell."""
    if not settings.database.exists():
        return []
    try:
        context = open_home(settings)
    except SchemaTooNew:
        raise
    except StoreUnusable:
        return []
    try:
        apply_intents(context)
        _keep_history(context)
        return [Path(file.path) for file in context.sessions.seen_files()]
    except StoreUnusable:
        return []
    finally:
        context.database.close()


def _keep_history(context: Context) -> None:
    """Commit what waits, before the journal goes; where that cannot be, the next commit takes the files as they are."""
    if context.journal.waiting()[0]:
        with contextlib.suppress(NacreError):
            commit_operations(context)
