"""Care of the database: what is in it, rebuild, backup, reset."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from nacre.errors import EmbedderUnavailable, NacreError, SchemaTooNew, StoreUnusable, Unavailable, VaultUnusable
from nacre.history.commit import commit_operations
from nacre.home.home import Home
from nacre.home.intents import apply_intents
from nacre.home.territory import territory
from nacre.ingestion.ingest import ingest, named_before
from nacre.ingestion.requests import IngestOptions
from nacre.memories.usage import fold_usage
from nacre.platform.ids import from_ms
from nacre.platform.named_files import refuse_named
from nacre.settings import Settings
from nacre.storage.database import UNREADABLE
from nacre.storage.maintenance.carry_over import carry_over
from nacre.storage.sqlite.database import FileDatabase
from nacre.tombstones.erasure import apply_tombstones
from nacre.values.reports import IngestReport, OnProgress, Problem

if TYPE_CHECKING:
    from nacre.storage.search.vectors import Vectors


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
    links: int
    tools: tuple[ToolStats, ...]
    projects: int
    passages: int
    vectors_missing: int
    model: str | None
    database_bytes: int
    vault_files: int


def stats(home: Home) -> Stats:
    """Count everything."""
    tools = tuple(
        ToolStats(tool, sessions, turns or 0, from_ms(first), from_ms(last))
        for tool, sessions, turns, first, last in home.sessions.counts()
    )
    files = () if home.database.is_server else _files(home.settings.database)
    size = sum(file.stat().st_size for file in files if file.exists())
    return Stats(
        memories=home.memories.counts(), links=home.links.count(home.today()), tools=tools,
        projects=len(home.files.projects()),
        passages=home.vectors.count(), vectors_missing=sum(home.vectors.missing()),
        model=home.vectors.model(), database_bytes=size,
        vault_files=sum(1 for _ in home.vault.scan()),
    )  # fmt: skip


def rebuild(
    settings: Settings, open_home: Callable[[Settings], Home], on_progress: OnProgress | None = None,
    *, vectors: bool = True,
) -> IngestReport:  # fmt: skip
    """Make the database anew from the vault, the transcripts that still exist, and the archive.

    The new one takes the place of the old one when it is whole; the old file is kept as ``nacre.db.old``. Memories come
    from their files alone; sessions are indexed and count as seen by extraction as far as they did before, and wholly
    where nobody can tell, so that a rebuild writes no memories; those that began after all that was known are new.
    Usage, reviews, candidates, traces, what models cost and which sessions wait for a writer are carried over from the
    old one as far as it can be read: today's budget is spent after a rebuild, too, and what was dropped does not come
    back. Raises SchemaTooNew: a newer nacre's database is not replaced.
    """
    _refuse_server(settings)
    fresh = replace(settings, database=settings.database.with_name(f"{settings.database.name}.new"))
    known = _read_before(settings, open_home)
    _remove(fresh.database)
    try:
        with _earlier(settings, open_home) as earlier:
            report = _make_anew(replace(open_home(fresh), earlier=earlier), known, on_progress, vectors=vectors)
        lost = _put_in_place(settings, fresh.database, open_home)
    finally:
        with contextlib.suppress(OSError):
            _remove(fresh.database)  # a full disk has no room for half of one
    return replace(report, problems=(*report.problems, *lost))


@contextlib.contextmanager
def _earlier(settings: Settings, open_home: Callable[[Settings], Home]) -> Iterator[Vectors | None]:
    """The vectors of the old database: a text that has one is not embedded again, which takes hours or money."""
    home = _opened(settings, open_home) if settings.database.exists() else None
    if home is None:
        yield None
        return
    vectors = None
    with contextlib.suppress(EmbedderUnavailable, StoreUnusable, *UNREADABLE):
        vectors = home.vectors
    try:
        yield vectors
    finally:
        home.close()


def _make_anew(
    home: Home, known: list[Path], on_progress: OnProgress | None, *, vectors: bool
) -> IngestReport:  # fmt: skip
    try:
        paths = tuple(path for path in sorted({*known, *named_before(home)}) if path.exists())
        options = IngestOptions(
            paths=paths, discover=True, extract=False, vectors=vectors, remember_paths=False, from_archive=True
        )
        report = ingest(home, options, on_progress)
        with home.database.transaction():
            home.sessions.mark_all_extracted()
        home.database_file.fold_log()
        return report
    finally:
        home.database.close()


def backup(home: Home, target: Path | None = None) -> Path:
    """Write a consistent copy of the database: beside it, named after the time, or to a file that the owner names.

    Raises Conflict when that exists, or lies in the home.
    """
    if target is None:
        return _copy(home, home.settings.database.with_name(f"nacre-{home.now().astimezone():%Y%m%d-%H%M%S}.db"))
    refuse_named(target, territory(home.settings))
    return _copy(home, target.expanduser().absolute())


def _copy(home: Home, target: Path) -> Path:
    home.database_file.backup(target)
    return target


def _refuse_server(settings: Settings) -> None:
    if settings.server:
        raise Unavailable("this memory is on a server, which keeps its database itself", hint="see to it there")


def reset(settings: Settings, open_home: Callable[[Settings], Home]) -> Path | None:
    """Remove the database, keeping a copy beside it; the vault stays. Returns the copy, ``None`` if there was none.

    Writes that are pending reach the vault first. A file that cannot be opened is kept as it is.
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
            _copy(home, copy)
        finally:
            home.database.close()
    except SchemaTooNew:
        raise
    except (StoreUnusable, *UNREADABLE):
        database.replace(copy)
    _remove(database)
    return copy


def _put_in_place(settings: Settings, new: Path, open_home: Callable[[Settings], Home]) -> list[Problem]:
    """Let a new database take the place of the old one, in one step; what was stored meanwhile reaches the vault first.

    The log of the old one goes before: SQLite would take it for the new one's. Returns what could not be carried over.
    """
    database = settings.database
    lost: list[Problem] = []
    with contextlib.ExitStack() as held:
        if database.exists():
            home = _opened(settings, open_home)
            if home:
                with contextlib.closing(home.database):
                    held.enter_context(home.vault_lock)
                    lost = _empty(home)
                lost += _carry_over(database, new)
            take_place(database, new)
        else:
            new.replace(database)
    return lost


def take_place(database: Path, new: Path) -> None:
    """Let a new file, which is whole and closed, take the place of a database; that is kept as ``….old``."""
    old = database.with_name(f"{database.name}.old")
    _remove(old)
    for file, kept in list(zip(_files(database), _files(old), strict=True))[1:]:
        with contextlib.suppress(FileNotFoundError):
            file.replace(kept)
    try:
        os.link(database, old)
    except OSError:  # not every file system can
        database.replace(old)
    new.replace(database)


def _carry_over(old: Path, new: Path) -> list[Problem]:
    with contextlib.closing(FileDatabase(new)) as fresh:
        lost = carry_over(old, fresh)
        fresh.fold_log()
    hint = "the vault has every memory; what a day cost so far is counted from here"
    return [Problem(str(old), f"{what} could not be read any more", hint) for what in lost]


def set_aside(database: Path, name: Path) -> None:
    """Give a database, which is closed, another name; its log goes before it. What has that name goes."""
    _remove(name)
    for file, kept in list(zip(_files(database), _files(name), strict=True))[::-1]:
        with contextlib.suppress(FileNotFoundError):
            file.replace(kept)


def _opened(settings: Settings, open_home: Callable[[Settings], Home]) -> Home | None:
    """The home with its old database, unless that cannot be read any more."""
    try:
        return open_home(settings)
    except SchemaTooNew:
        raise
    except (StoreUnusable, *UNREADABLE):
        return None


def _empty(home: Home) -> list[Problem]:
    """Bring every pending write to the vault; returns that it could not be read whether there were any.

    Raises VaultUnusable where one stays, as it would be lost.
    """
    try:
        apply_intents(home)
        is_pending = home.files.has_intents()
    except VaultUnusable:
        raise
    except (StoreUnusable, *UNREADABLE):
        told = "what was about to be written to the vault could not be read any more"
        return [Problem(str(home.settings.database), told, "nacre log shows what reached it")]
    if is_pending:
        told = home.problems[-1] if home.problems else "a write is pending"
        raise VaultUnusable(f"the old database is kept: {told}", hint="mend that, then run: nacre db rebuild")
    return []


def _remove(database: Path) -> None:
    """Remove a database; its log first, which would be taken for that of the next one of that name."""
    for file in reversed(_files(database)):
        file.unlink(missing_ok=True)


def _files(database: Path) -> list[Path]:
    return [database.with_name(database.name + suffix) for suffix in _SIDE_FILES]


def _read_before(settings: Settings, open_home: Callable[[Settings], Home]) -> list[Path]:
    """What the old database had read, where it can still tell."""
    if not settings.database.exists():
        return []
    try:
        home = open_home(settings)
    except SchemaTooNew:
        raise
    except StoreUnusable:
        return []
    try:
        with contextlib.suppress(StoreUnusable, *UNREADABLE):
            apply_intents(home)
            apply_tombstones(home)  # of another machine: what they bar is not carried over
            fold_usage(home)
            _keep_history(home)
        return [Path(file.path) for file in home.sessions.seen_files()]
    except (StoreUnusable, *UNREADABLE):
        return []
    finally:
        home.database.close()


def _keep_history(home: Home) -> None:
    """Commit what waits, before the journal goes; where that cannot be, the next commit takes the files as they are."""
    if home.journal.waiting()[0]:
        with contextlib.suppress(NacreError):
            commit_operations(home)
