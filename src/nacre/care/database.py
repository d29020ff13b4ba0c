"""Care of the database: what is in it, rebuild, backup, reset."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from nacre import __version__
from nacre.base.files import refuse_named
from nacre.base.ids import from_ms
from nacre.base.text import shorten
from nacre.base.times import shown_day
from nacre.care.proofs import as_check, prove
from nacre.data.backup import Manifest, unpack
from nacre.data.history import commit_operations
from nacre.errors import (
    EmbedderUnavailable,
    NacreError,
    SchemaTooNew,
    StoreUnusable,
    Unavailable,
    VaultUnusable,
)
from nacre.home.home import Home, territory
from nacre.home.operations import apply_intents
from nacre.learn.ingest import IngestOptions, ingest, named_before
from nacre.memories.erasure import apply_tombstones
from nacre.memories.store import fold_usage
from nacre.recall.recall import recall
from nacre.review import consolidate
from nacre.review.consolidate import DreamAction, Step
from nacre.review.dream import may_end
from nacre.review.run import usage_of
from nacre.settings import Settings, load_settings
from nacre.store.maintenance import carry_over
from nacre.store.memories import Idle
from nacre.store.schema import UNREADABLE
from nacre.store.sqlite import FileDatabase, engine_version
from nacre.values.memory import Kind
from nacre.values.recall import Mode, RecallQuery
from nacre.values.reports import FAILURE, OK, WARNING, Check, IngestReport, OnProgress, Problem

if TYPE_CHECKING:
    from nacre.store.search import Vectors

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
        memories=home.memories.counts(),
        links=home.links.count(home.today()),
        tools=tools,
        projects=len(home.files.projects()),
        passages=home.vectors.count(),
        vectors_missing=sum(home.vectors.missing()),
        model=home.vectors.model(),
        database_bytes=size,
        vault_files=sum(1 for _ in home.vault.scan()),
    )


def rebuild(
    settings: Settings,
    open_home: Callable[[Settings], Home],
    on_progress: OnProgress | None = None,
    *,
    vectors: bool = True,
) -> IngestReport:
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
            report = _make_anew(
                replace(open_home(fresh), earlier=earlier), known, on_progress, vectors=vectors
            )
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
) -> IngestReport:
    try:
        paths = tuple(path for path in sorted({*known, *named_before(home)}) if path.exists())
        options = IngestOptions(
            paths=paths,
            discover=True,
            extract=False,
            vectors=vectors,
            remember_paths=False,
            from_archive=True,
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
        return _copy(
            home,
            home.settings.database.with_name(f"nacre-{home.now().astimezone():%Y%m%d-%H%M%S}.db"),
        )
    refuse_named(target, territory(home.settings))
    return _copy(home, target.expanduser().absolute())


def _copy(home: Home, target: Path) -> Path:
    home.database_file.backup(target)
    return target


def _refuse_server(settings: Settings) -> None:
    if settings.server:
        raise Unavailable(
            "this memory is on a server, which keeps its database itself", hint="see to it there"
        )


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


def _put_in_place(
    settings: Settings, new: Path, open_home: Callable[[Settings], Home]
) -> list[Problem]:
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
        raise VaultUnusable(
            f"the old database is kept: {told}", hint="mend that, then run: nacre db rebuild"
        )
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


# ----------------------------------------------------------------------------
# Look after the database file: make it smaller, tell what made it.


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
    return DatabaseVersion(
        __version__, home.database.schema(), engine_version(), home.settings.where
    )


def _bytes(settings: Settings) -> int:
    files = (
        settings.database.with_name(settings.database.name + suffix) for suffix in ("", "-wal")
    )
    return sum(file.stat().st_size for file in files if file.exists())


# ----------------------------------------------------------------------------
# The restore drill: a backup is brought back into a folder of its own, opened, and proved as a home
# is.


_COUNTED = ("memories", "projects", "sessions", "turns")


def verify(
    backup: Path,
    settings: Settings,
    open_home: Callable[[Settings], Home],
    on_progress: OnProgress | None = None,
) -> list[Check]:
    """Restore a backup for a moment and prove it: hashes, database, counts, index against vault, git, a recall.

    Raises NotFound, InvalidInput for what is no backup or is damaged. The home is not touched.
    """
    folder = Path(tempfile.mkdtemp(prefix="nacre-drill-"))
    home_path = folder / "home"
    try:
        manifest = unpack(
            backup.expanduser().absolute(), home_path, on_progress or (lambda _: None)
        )
        size = f"{manifest.bytes / 1e6:,.1f} MB"
        hashes = Check(
            "archive",
            OK,
            f"{len(manifest.files):,} files, {size}, every hash agrees; made {manifest.created}",
        )
        try:
            home = open_home(_settings(home_path, settings))
        except NacreError as error:
            return [hashes, Check("database", FAILURE, error.message, "take another backup")]
        try:
            return [hashes, *_proofs(home, manifest)]
        finally:
            home.database.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _settings(home: Path, settings: Settings) -> Settings:
    """The home on its own: no file of this machine stands in for one of the backup's, and no model is loaded."""
    own = {name: value for name, value in settings.environ.items() if not name.startswith("NACRE_")}
    return load_settings(
        home, own | {"NACRE_EMBEDDING_MODEL": "none", "NACRE_RECALL_RERANKER": "none"}
    )


def _proofs(home: Home, manifest: Manifest) -> Iterator[Check]:
    checks = [as_check(proof) for proof in prove(home, transcripts=False)]
    yield from checks
    yield _counts(home, manifest)
    yield _recall(home)
    for note in manifest.notes:
        yield Check("note", WARNING, note, "it is not in the backup")


def _counts(home: Home, manifest: Manifest) -> Check:
    sessions = home.sessions.counts()
    present = {
        "memories": len(home.memories.all_ids()),
        "projects": len(home.files.projects()),
        "sessions": sum(row[1] for row in sessions),
        "turns": sum(row[2] or 0 for row in sessions),
    }
    differing = [
        f"{name} {present[name]:,} instead of {manifest.counts.get(name, 0):,}"
        for name in _COUNTED
        if present[name] < manifest.counts.get(name, 0)
    ]
    if differing:
        return Check("counts", FAILURE, ", ".join(differing), "take another backup")
    return Check("counts", OK, ", ".join(f"{present[name]:,} {name}" for name in _COUNTED))


def _recall(home: Home) -> Check:
    """One memory, asked for by its own words, is among the answers."""
    memory = next((one for one in home.memories.everything() if one.is_active), None)
    if memory is None:
        return Check("recall", OK, "there is no memory to ask for")
    question = f"{memory.subject} {memory.content}"[:300]
    found = recall(home, RecallQuery(text=question, mode=Mode.LEXICAL, turns=0, update=False))
    if any(hit.memory.id == memory.id for hit in found.hits):
        return Check("recall", OK, f"{memory.subject!r} is found")
    return Check(
        "recall",
        WARNING,
        f"{memory.subject!r} is not among the answers to its own words",
        "nacre db rebuild",
    )


# ----------------------------------------------------------------------------
# How memories age: when they were last used, which todos and which kinds lie idle, what a dream would
# end.


_SPANS = (
    (7, "within a week"),
    (31, "within a month"),
    (92, "within a quarter"),
    (183, "within half a year"),
)
_LONGER = "longer ago"

_STALE_TODO = timedelta(days=30)
"""From then on an open todo is stale that nobody says again or asks for (seed facts 1.11)."""

IDLE_DAYS = {
    Kind.FACT: (180, 365),
    Kind.RELATIONSHIP: (365, 730),
    Kind.PREFERENCE: (365, 730),
    Kind.DECISION: (90, 180),
    Kind.LESSON: (60, 120),
    Kind.EVENT: (30, 90),
}
"""Days for which memories of a kind count as used lately, and from which on they count as unused.

Those of agent-knowledge (seed facts 2.6): facts are its projects, relationships and preferences its people, lessons its
workflows, events its notes. Todos are stale sooner.
"""

_MANY_ENDING = 50
_MANY_ACTIVE = 10_000
_MOST_NAMED = 3
_SUBJECT = 40
_ID_SHOWN = 8


def upkeep(home: Home) -> Iterator[Check]:
    """How memories age; nothing where there is nothing to say. Call it when usage is folded."""
    now = home.now()
    idle = home.usage.idle(now)
    yield from _recency(idle)
    yield from _stale_todos(home.usage.idle_todos(now - _STALE_TODO))
    yield from _unused(idle)
    near = home.memories.in_any_state(home.usage.may_end(now, consolidate.bounds(home.settings)))
    ending = (
        consolidate.ending(may_end(home, near), usage_of(home, near), now, home.settings)
        if near
        else []
    )
    yield from _dream(home, ending, sum(one.count for one in idle))


def _recency(idle: Sequence[Idle]) -> Iterator[Check]:
    spans: Counter[str] = Counter()
    for one in idle:
        spans[_span(one.begun)] += one.count
    told = [
        f"{spans[name]:,} {name}"
        for name in (*(name for _, name in _SPANS), _LONGER)
        if spans[name]
    ]
    if any(name != _SPANS[0][1] for name in spans):
        yield Check("recency", OK, f"last said or recalled: {', '.join(told)}")


def _span(days: int) -> str:
    return next((name for most, name in _SPANS if days <= most), _LONGER)


def _stale_todos(stale: Sequence[tuple[str, str, datetime]]) -> Iterator[Check]:
    if stale:
        named = "; ".join(
            f"{shorten(subject, _SUBJECT)} ({memory[-_ID_SHOWN:]}, {shown_day(last)})"
            for memory, subject, last in stale[:_MOST_NAMED]
        )
        more = f"; and {len(stale) - _MOST_NAMED:,} more" if len(stale) > _MOST_NAMED else ""
        told = f"{len(stale):,} open, neither said nor recalled for {_STALE_TODO.days} days: {named}{more}"
        yield Check(
            "todos",
            WARNING,
            told,
            f"nacre retire {stale[0][0][-_ID_SHOWN:]}, if it is done or dropped",
        )


def _unused(idle: Sequence[Idle]) -> Iterator[Check]:
    told, lately = [], 0
    for kind, (recent, since) in IDLE_DAYS.items():
        of_kind = [one for one in idle if one.kind is kind]
        lately += sum(one.count for one in of_kind if one.days < recent)
        every = sum(one.count for one in of_kind)
        if unused := sum(one.count for one in of_kind if one.days >= since):
            told.append(f"{unused:,} of {every:,} {kind}{'' if every == 1 else 's'} ({since} days)")
    if told:
        yield Check(
            "unused",
            OK,
            f"neither said nor recalled for long: {', '.join(told)}; used lately: {lately:,}",
        )


def _dream(home: Home, ending: Sequence[Step], active: int) -> Iterator[Check]:
    """What a dream would end, and a hint to have one where that is much and no daemon has it at night.

    Much is what the seed runs by itself for (seed facts 1.4), but for the size of the database: here sessions fill it.
    """
    if not ending:
        return
    over = sum(one.action is DreamAction.EXPIRE for one in ending)
    parts = {"over": over, "never asked for": len(ending) - over}
    told = " and ".join(f"{number:,} {name}" for name, number in parts.items() if number)
    if home.settings.flag("dream.at_night"):
        yield Check("dream", OK, f"{told}: the daemon's dreams end them, some a night")
    elif len(ending) > _MANY_ENDING or active > _MANY_ACTIVE:
        ready = f"{len(ending):,} {'memory is' if len(ending) == 1 else 'memories are'} ready to be tidied: {told}"
        yield Check("dream", WARNING, ready, "nacre dream shows them and asks; nothing is deleted")
    else:
        yield Check("dream", OK, f"{told}: nacre dream --dry-run shows them")
