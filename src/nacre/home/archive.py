"""Keep transcripts, before their tools delete them: without secrets, compressed, each part once.

A step of its own after reading: it looks at the files that were read since it looked last, and reads what is new of
them once more. Lines are kept as they are; of what is no file of lines, or holds what was forgotten or excluded, what
the index has is kept instead. It may be interrupted anywhere.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec
from msgspec import Meta

from nacre.base.files import named_file
from nacre.base.ids import to_ms
from nacre.base.request import Request
from nacre.errors import ArchiveDamaged, Conflict, NacreError, NotFound, Unavailable
from nacre.home import archive_packs, retention, workers
from nacre.home.home import Home, territory
from nacre.home.location import find_session
from nacre.home.parsing import SEGMENT_BYTES, Ahead, Job, clean, count_processes, cut
from nacre.home.reread import ArchivedSource, KeptSession, generations, outline, outline_of
from nacre.home.retention import Leaving, leaving, prune_as_set
from nacre.readers.adapter import (
    FINGERPRINT_BYTES,
    MAX_LINE_BYTES,
    SUFFIXES,
    Adapter,
    FileSource,
    Source,
    fingerprint_of,
)
from nacre.readers.registry import adapter_of
from nacre.store import packs
from nacre.store.packs import (
    LINES,
    TURNS,
    Cleaner,
    Fresh,
    Pack,
    Payload,
    Segment,
    clean_whole,
    is_installed,
)
from nacre.store.sessions import Archived, Due
from nacre.values.reports import ArchiveReport, OnProgress, Problem, Progress
from nacre.values.session import Cursor, StoredSession
from nacre.vault.files import slugify

MOST_WHOLE_BYTES = 64_000_000
_HEAD_BYTES = 64_000
_MANY = 20
_MARKERS = (b"[REDACTED:", b"[private]")
STALE = -1
"""In place of a time: what is archived is more than it should be, and is written anew."""


class _NotAsItIs(Exception):  # noqa: N818 - no error: another way is taken
    """The transcript's own words cannot be kept, or would not give the same sessions."""


@dataclass(slots=True)
class _Work:
    home: Home
    cleaner: Cleaner
    ahead: Ahead | None = None
    files: int = 0
    read: int = 0
    stored: int = 0
    problems: list[Problem] = field(default_factory=list)
    waits: bool = True
    """For the disk, with each pack."""
    is_redacted: bool = False
    """Whether anything was taken out of the file at hand."""


def _working(home: Home) -> _Work:
    return _Work(home, Cleaner(home.redactor.clean_all, home.redactor.find_suspects))


def archive(home: Home, on_progress: OnProgress | None = None) -> ArchiveReport:
    """Archive what was read since this ran last, then prune as the settings say.

    Another process that is at it is left to it. Errors of one file are in the report, and the others go on.
    """
    began = time.perf_counter()
    notify = on_progress or (lambda _: None)
    if not is_on(home) or not home.archive_lock.acquire():
        return ArchiveReport()
    work = _working(home)
    try:
        archive_packs.sweep(home)
        settle(home)
        due = home.archive.due()
        total = sum(one.size for one in due)
        done = 0
        work.waits = len(due) < _MANY or not hasattr(os, "sync")
        home.database.relax()
        with _ahead(home, due) as work.ahead:
            for number, one in enumerate(due, 1):
                _archive_safely(work, one)
                done += one.size
                if not work.waits and (number % _MANY == 0 or number == len(due)):
                    os.sync()  # all of them reach the disk together
                rate = done / 1_000_000 / (time.perf_counter() - began)
                notify(
                    Progress(
                        "archiving",
                        done,
                        total,
                        f"{number:,} of {len(due):,} files, {rate:.0f} MB/s",
                    )
                )
        pruned = prune_as_set(home)
    finally:
        home.database.tighten()
        home.archive_lock.release()
    seconds = time.perf_counter() - began
    return ArchiveReport(work.files, work.read, work.stored, pruned, seconds, tuple(work.problems))


@contextlib.contextmanager
def _ahead(home: Home, due: Sequence[Due]) -> Iterator[Ahead | None]:
    """Processes that clean what is to be archived next, where there is enough of it."""
    jobs = [job for one in due if (job := _job(home, one))]
    processes = count_processes(jobs, home.settings.whole("ingest.workers"))
    if processes == 1:
        yield None
        return

    patterns, allow, kinds = home.settings.redaction
    setup = workers.Setup(tuple(patterns), tuple(allow), kinds)
    with contextlib.closing(
        workers.clean_in_processes(jobs, home.redactor, setup, processes)
    ) as portions:
        yield Ahead(portions, [job.path for job in jobs])


def _job(home: Home, due: Due) -> Job | None:
    """The lines that will be archived of a file, as far as can be told before; ``None`` where there are none."""
    path = Path(due.path)
    state = home.archive.find(due.path)
    if path.name.endswith(SUFFIXES) or (state and state.withheld) or not path.is_file():
        return None
    adapter = adapter_of(due.tool, path)
    if adapter is None or adapter.whole:
        return None
    return Job(
        path, due.size, due.tool, Cursor(offset=state.until) if state and state.pack else None
    )


def is_on(home: Home) -> bool:
    """Whether transcripts are archived: the settings say so, and there is what it takes."""
    return bool(home.settings.flag("archive.enabled")) and is_installed()


def withhold(home: Home, paths: Sequence[tuple[str, str]]) -> None:
    """From now on the archive has of these (tool, path) what the index has.

    What is in it already goes with the next :func:`settle`.
    """
    with home.database.transaction():
        for tool, path in paths:
            home.archive.withhold(path, tool)


def settle(home: Home) -> None:
    """Write anew what holds more than it should. Raises StoreBusy while another process archives."""
    stale = [state for state in home.archive.all() if state.changed == STALE]
    if not stale:
        return
    with home.archive_lock:
        for state in stale:
            keep = _keep_sessions if state.path.endswith(SUFFIXES) else _keep_turns
            keep(_working(home), replace(state, changed=0))


def _archive_safely(work: _Work, due: Due) -> None:
    home = work.home
    state = home.archive.find(due.path) or Archived(due.path, due.tool, LINES)
    try:
        _archive_one(work, due, state)
    except ArchiveDamaged:
        state = archive_packs.set_aside(home, state)
        try:
            _archive_one(work, due, state)
        except (NacreError, OSError) as error:
            work.problems.append(
                Problem(due.path, f"cannot be archived: {error}", "nacre archive verify")
            )
    except NacreError as error:
        work.problems.append(Problem(due.path, f"cannot be archived: {error.message}", error.hint))
    except OSError as error:
        work.problems.append(
            Problem(due.path, f"cannot be archived: {error.strerror or error}", "is the disk full?")
        )


def _archive_one(work: _Work, due: Due, state: Archived) -> None:
    now = replace(state, tool=due.tool, inode=due.inode, changed=due.changed)
    path = Path(due.path)
    if path.name.endswith(SUFFIXES):
        _keep_sessions(work, now)
        return
    if not path.is_file():
        if state.pack is None:
            _keep_turns(work, now)  # what the index has is all that is left
        return
    found = path.stat()
    if found.st_ino != due.inode and (found.st_size, found.st_mtime_ns) != (due.size, due.changed):
        return  # another file took its place, which is to be read first; a copy on another disk is the same one
    adapter = adapter_of(due.tool, path)
    try:
        if state.withheld or adapter is None:
            raise _NotAsItIs
        if adapter.whole:
            _keep_whole(work, adapter, path, now)
        else:
            _keep_lines(work, adapter, path, due.size, now)
    except _NotAsItIs:
        _keep_turns(work, now)


def _keep_lines(work: _Work, adapter: Adapter, path: Path, size: int, state: Archived) -> None:
    home = work.home
    with path.open("rb") as file:
        size = min(size, os.fstat(file.fileno()).st_size)
        beginning = fingerprint_of(file, min(FINGERPRINT_BYTES, size))
        state, cuts = _known_elsewhere(
            home, file, replace(state, fingerprint=state.fingerprint or beginning)
        )
        pack = archive_packs.open_pack(home, state)
        if pack and pack.title.kind != LINES:
            raise _NotAsItIs
        start = _start(work, file, size, state, pack)
        if start == 0:
            state = replace(state, fingerprint=beginning)
        before = pack
        pack = _append(work, state, pack, _segments(work, file, state, start, size, cuts))
    if before is None and not _is_the_same(work, adapter, path, pack):
        pack.place.unlink()
        raise _NotAsItIs
    _fold(home, state.path, pack)
    with home.database.transaction():
        archive_packs.remember(home, state, pack)


def _is_the_same(work: _Work, adapter: Adapter, path: Path, pack: Pack) -> bool:
    """Whether the sessions are the same without what lies beside the file, and without its secrets.

    Where nothing was taken out, the beginning tells.
    """
    home = work.home
    if not work.is_redacted:
        with path.open("rb") as file:
            head = [(0, Payload(file.read(_HEAD_BYTES) + file.readline(MAX_LINE_BYTES)))]
        return _gives_the_same(home, adapter, ArchivedSource(path, head), head)
    pairs = pack.payloads(archive_packs.finder(home, str(path)))
    with FileSource(path) as source:
        return _gives_the_same(
            home, adapter, source, ((segment.start, payload) for segment, payload in pairs)
        )


def _append(work: _Work, state: Archived, pack: Pack | None, fresh: Iterator[Fresh]) -> Pack:
    before = pack.end if pack else 0
    if pack is None:
        place = archive_packs.place_for(work.home, state.tool, state.path)
        pack = packs.create(place, archive_packs.titled(state, LINES), fresh, durable=work.waits)
    else:
        pack.append(fresh, durable=work.waits)
    work.stored += pack.end - before
    work.files += pack.end > before
    return pack


def _start(work: _Work, file: BinaryIO, size: int, state: Archived, pack: Pack | None) -> int:
    """Where what is not archived yet begins: at 0 when another file took the place of the one that is."""
    if pack is None or not pack.segments:
        return 0
    until = pack.segments[-1].until
    if until > size:
        return 0
    length = int(state.fingerprint.split(":")[0] or 0)
    if length:
        return until if fingerprint_of(file, length) == state.fingerprint else 0
    first = next(
        one for one in reversed(pack.segments) if one.start == 0
    )  # after a rebuild: by what it says
    file.seek(0)
    payload = work.cleaner.lines(file.read(first.until))
    return until if packs.digest_of(payload.pack()) == first.digest else 0


def _known_elsewhere(home: Home, file: BinaryIO, state: Archived) -> tuple[Archived, list[int]]:
    """A file that is new and begins as another does was renamed or copied: then it is cut as that one was."""
    if state.pack is not None:
        return state, []
    for other in home.archive.alike(state.fingerprint, state.path):
        if (
            not Path(other.path).exists()
            and other.inode == os.fstat(file.fileno()).st_ino
            and not other.withheld
        ):
            pack = archive_packs.open_pack(home, other)
            if pack:
                pack.retitle(archive_packs.titled(state, LINES))
                with home.database.transaction():
                    home.archive.delete(state.path)
                    home.archive.rename(other.path, state.path)
                    archive_packs.remember(home, replace(other, path=state.path), pack)
                return replace(state, pack=other.pack, until=other.until, size=pack.end), []
        return state, [part.until for part in home.archive.parts(other.path)]
    return state, []


def _segments(
    work: _Work, file: BinaryIO, state: Archived, start: int, size: int, cuts: Sequence[int]
) -> Iterator[Fresh]:
    work.is_redacted = False
    for at, raw in cut(file, start, size, cuts):
        payload = work.ahead.find(Path(state.path), at, raw) if work.ahead else None
        payload = payload or clean(work.cleaner, raw)
        work.is_redacted |= payload.text is not raw and _is_redacted(raw, payload)
        digest = packs.digest_of(payload.pack())
        holder = work.home.archive.holder(digest, beside=state.path)
        is_known = holder is not None and (archive_packs.folder_of(work.home) / holder).exists()
        work.read += len(raw)
        yield Fresh(at, at + len(raw), digest, None if is_known else payload, state.changed)


def _is_redacted(raw: bytes, payload: Payload) -> bool:
    return any(payload.text.count(mark) > raw.count(mark) for mark in _MARKERS)


def _fold(home: Home, path: str, pack: Pack) -> None:
    tail = pack.foldable()
    if tail and not home.archive.copies(path):
        pack.fold(tail, archive_packs.finder(home, path))


def _keep_whole(work: _Work, adapter: Adapter, path: Path, state: Archived) -> None:
    """A transcript that is no file of lines, if what is kept of it gives the same sessions."""
    home = work.home
    size = path.stat().st_size
    if size > MOST_WHOLE_BYTES:
        raise _NotAsItIs
    payload = clean_whole(path.read_bytes(), home.redactor.clean_all)
    if payload is None:
        raise _NotAsItIs
    with FileSource(path) as source:
        if not _gives_the_same(home, adapter, source, [(0, payload)]):
            raise _NotAsItIs
    fresh = Fresh(0, size, packs.digest_of(payload.pack()), payload, state.changed)
    _replace(work, state, LINES, [fresh])
    work.read += size


def _gives_the_same(
    home: Home, adapter: Adapter, source: Source, parts: Iterable[tuple[int, Payload]]
) -> bool:
    """Whether what is archived gives the sessions that the transcript does; that may have grown meanwhile."""
    try:
        told = outline(adapter, source)
        found = outline_of(home, adapter, str(source.path), parts)
    except Exception:  # noqa: BLE001 - anybody's adapter; one that opens the file itself finds none
        return False
    return found.keys() == told.keys() and all(
        facts == told[session][0] and turns == told[session][1][: len(turns)]
        for session, (facts, turns) in found.items()
    )


def _keep_sessions(work: _Work, state: Archived) -> None:
    """The sessions of a database, each in a pack of its own: most of them change no more."""
    home = work.home
    for row in home.archive.sessions_of(state.tool, state.path):
        stored = home.sessions.get(row)
        name = archive_packs.name_in(state.path, stored.session.native_id)
        known = home.archive.find(name) or Archived(name, state.tool, TURNS)
        mark = f"{stored.turns}:{to_ms(stored.ended)}:{stored.session.title or ''}"
        mark = packs.digest_of(mark.encode()).hex()
        if known.fingerprint != mark or known.changed == STALE:
            _keep_turns(work, replace(known, fingerprint=mark, changed=state.changed))
    with home.database.transaction():
        home.archive.save(replace(state, kind=TURNS), [])


def _keep_turns(work: _Work, state: Archived) -> None:
    """What the index has of a transcript, in place of its own words."""
    home = work.home
    lines: list[bytes] = []
    for row in archive_packs.rows_of(home, state):
        stored = home.sessions.get(row)
        lines.append(msgspec.json.encode(KeptSession(stored.session, stored.project)))
        lines.extend(msgspec.json.encode(turn) for turn in home.sessions.whole(row))
    if not lines:
        left = archive_packs.drop(home, state)
        with home.database.transaction():
            home.archive.save(replace(left, kind=TURNS), [])
        return
    fresh = []
    at = 0
    for text in _in_portions(lines):
        payload = Payload(text)
        fresh.append(
            Fresh(at, at + len(text), packs.digest_of(payload.pack()), payload, state.changed)
        )
        at += len(text)
    _replace(work, state, TURNS, fresh)


def _in_portions(lines: Sequence[bytes]) -> Iterator[bytes]:
    portion: list[bytes] = []
    size = 0
    for line in lines:
        portion.append(line + b"\n")
        size += len(line)
        if size >= SEGMENT_BYTES:
            yield b"".join(portion)
            portion, size = [], 0
    if portion:
        yield b"".join(portion)


def _replace(work: _Work, state: Archived, kind: str, fresh: Sequence[Fresh]) -> None:
    home = work.home
    archive_packs.give_up(home, state)
    place = archive_packs.folder_of(home) / state.pack if state.pack else None
    place = place or archive_packs.place_for(home, state.tool, state.path)
    pack = packs.create(place, archive_packs.titled(state, kind), fresh, durable=work.waits)
    with home.database.transaction():
        archive_packs.remember(home, state, pack)
    work.files += 1
    work.stored += pack.end


# ----------------------------------------------------------------------------
# The archive as its owner sees it: what is in it, whether it is sound, a transcript brought back.


@dataclass(frozen=True, slots=True)
class ArchivedTool:
    """Transcripts of one tool in the archive; ``gone`` are those that the tool has no more. Sizes in bytes."""

    tool: str
    files: int
    gone: int
    raw: int
    stored: int
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class ArchiveStatus:
    """What the archive holds. ``waiting`` transcripts were read and are not in it as they are now."""

    enabled: bool
    folder: Path
    tools: tuple[ArchivedTool, ...]
    waiting: int
    withheld: int
    leaving: tuple[Leaving, ...]


@dataclass(frozen=True, slots=True)
class Restored:
    """A transcript that was written again, without secrets. ``is_whole`` is false where only turns were kept."""

    session: str
    path: Path
    size: int
    is_whole: bool


def status(home: Home) -> ArchiveStatus:
    """What is in the archive, and what is not."""
    states = home.archive.all()
    by_tool: dict[str, list[Archived]] = {}
    for state in states:
        if state.pack:
            by_tool.setdefault(state.tool, []).append(state)
    return ArchiveStatus(
        is_on(home),
        archive_packs.folder_of(home),
        tuple(
            _tool(tool, found)
            for tool, found in sorted(by_tool.items(), key=lambda item: -len(item[1]))
        ),
        len(home.archive.due()),
        sum(state.withheld for state in states),
        tuple(leaving(home)),
    )


def verify(home: Home, on_progress: OnProgress | None = None) -> tuple[int, list[Problem]]:
    """Read all that is archived and compare every checksum: how many packs there are, and what is wrong."""
    notify = on_progress or (lambda _: None)
    states = [state for state in home.archive.all() if state.pack]
    problems: list[Problem] = []
    for done, state in enumerate(states):
        told = damage(home, state)
        if told:
            problems.append(Problem(state.path, told, _way_out(Path(state.path).is_file())))
        notify(Progress("verifying", done + 1, len(states), Path(state.path).name))
    for place in _unknown(home, states):
        told, hint = "the index does not know it", "nacre db rebuild reads it"
        if not _is_sound(place):
            told, hint = (
                "it is damaged, and the index does not know it",
                _way_out(has_transcript=False),
            )
        problems.append(Problem(str(place), told, hint))
    return len(states), problems


def mend(home: Home) -> int:
    """Set damaged packs aside, so that what their transcripts still tell is archived again; returns how many."""
    states = [state for state in home.archive.all() if state.pack]
    damaged = [state for state in states if damage(home, state)]
    unknown = [place for place in _unknown(home, states) if not _is_sound(place)]
    with home.archive_lock:
        for state in damaged:
            left = replace(archive_packs.set_aside(home, state), changed=0)
            with home.database.transaction():
                home.archive.save(left, [])
        for place in unknown:
            archive_packs.put_aside(place)
    return len(damaged) + len(unknown)


def _way_out(has_transcript: bool) -> str:
    then = (
        ", then nacre ingest archives the transcript again"
        if has_transcript
        else "; a backup has it as it was"
    )
    return f"nacre archive verify --repair sets it aside{then}"


def _unknown(home: Home, states: Iterable[Archived]) -> list[Path]:
    """Packs that are there and no transcript is known for."""
    folder = archive_packs.folder_of(home)
    known = {folder / state.pack for state in states if state.pack}
    known |= {
        archive_packs.place_for(home, due.tool, due.path) for due in home.archive.due()
    }  # written anew next
    found = sorted(folder.glob(f"*/*{packs.SUFFIX}")) if folder.is_dir() else []
    return [place for place in found if place not in known]


def _is_sound(place: Path) -> bool:
    try:
        return not packs.load(place).torn
    except NacreError:
        return False


def restore(home: Home, reference: str, folder: Path | None = None) -> Restored:
    """Write the transcript of a session again: where it was, for its tool to find it, or into a folder.

    What was a secret stays out. Raises NotFound, Conflict, ArchiveDamaged, Unavailable.
    """
    stored = find_session(home, reference)
    state = _archived_as(home, stored)
    if state is None or state.pack is None:
        raise NotFound(
            f"the transcript of {stored.session.id} is not in the archive",
            hint="nacre archive status",
        )
    if folder is None and state.kind != LINES:
        told = f"only the turns of {stored.session.id} were kept, which its tool cannot read"
        raise Conflict(told, hint="--to DIR writes them as JSON lines")
    name = (
        Path(state.path).name
        if state.kind == LINES
        else f"{slugify(stored.session.native_id)}.turns.jsonl"
    )
    target = folder.expanduser().absolute() / name if folder else Path(state.path)
    if os.path.lexists(target):
        hint = "--to DIR writes it somewhere else" if folder is None else "name another folder"
        raise Conflict(f"{target} is there already", hint=hint)
    with home.archive_lock:
        places = _write(home, target, _last_file(home, state))
        if folder is None and state.kind == LINES:
            _go_on_from(home, state, places)
    return Restored(stored.session.id, target, target.stat().st_size, state.kind == LINES)


def _archived_as(home: Home, stored: StoredSession) -> Archived | None:
    if stored.file is None:
        return None
    inside = home.archive.find(archive_packs.name_in(stored.file, stored.session.native_id))
    return inside or home.archive.find(stored.file)


def _last_file(home: Home, state: Archived) -> list[tuple[int, Payload]]:
    pairs: Iterable[tuple[Segment, Payload]] = archive_packs.payloads(home, state)
    return generations(pairs)[-1]


def _write(home: Home, target: Path, parts: list[tuple[int, Payload]]) -> list[tuple[int, int]]:
    """Returns where each line was, and where it is."""
    places: list[tuple[int, int]] = []
    try:
        with named_file(target, territory(home.settings)) as file:
            for start, payload in parts:
                at = file.tell()
                for was, line in payload.lines(start):
                    places.append((was, at))
                    at += len(line) + 1
                file.write(payload.text)
    except OSError as error:
        raise Unavailable(
            f"cannot write {target}: {error.strerror}", hint="--to DIR writes it elsewhere"
        ) from error
    return places


def _go_on_from(home: Home, state: Archived, places: list[tuple[int, int]]) -> None:
    """The tool may go on with what was restored: reading and archiving then go on, too, where they stood."""
    path = Path(state.path)
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        beginning = fingerprint_of(file, min(FINGERPRINT_BYTES, found.st_size))
    pack = archive_packs.open_pack(home, state)
    known = home.sessions.cursor(state.path)
    if pack is None:
        return
    empty = Payload(b"")
    pack.append(
        [
            Fresh(
                found.st_size,
                found.st_size,
                packs.digest_of(empty.pack()),
                empty,
                found.st_mtime_ns,
            )
        ]
    )
    with home.database.transaction():
        after = replace(state, inode=found.st_ino, fingerprint=beginning, changed=found.st_mtime_ns)
        archive_packs.remember(home, after, pack)
        if known:
            cursor = known[1]
            offset = next((now for was, now in places if was >= cursor.offset), found.st_size)
            cursor = replace(
                cursor,
                inode=found.st_ino,
                offset=offset,
                size=found.st_size,
                mtime_ns=found.st_mtime_ns,
                fingerprint=beginning,
            )
            home.sessions.move_cursor(state.path, cursor)


def _tool(tool: str, states: list[Archived]) -> ArchivedTool:
    times = [state.changed for state in states]
    return ArchivedTool(
        tool,
        len(states),
        sum(not Path(state.path).exists() for state in states),
        sum(state.raw for state in states),
        sum(state.size for state in states),
        _moment(min(times)),
        _moment(max(times)),
    )


def _moment(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(max(0, nanoseconds) // 1_000_000 / 1000, UTC)


def is_cut(home: Home, state: Archived) -> bool:
    """Whether a pack is gone or shorter than it was; its contents are not read."""
    try:
        return (archive_packs.folder_of(home) / (state.pack or "")).stat().st_size < state.size
    except OSError:
        return True


def damage(home: Home, state: Archived) -> str | None:
    """What is wrong with a pack."""
    try:
        pack = packs.load(archive_packs.folder_of(home) / (state.pack or ""), thorough=True)
        if pack.end < state.size:
            return f"the last {state.size - pack.end:,} bytes of its pack are lost"
        _read_all(pack.payloads(archive_packs.finder(home, state.path)))
    except NacreError as error:
        return error.message
    return None


def _read_all(pairs: Iterator[tuple[Segment, Payload]]) -> None:
    for _ in pairs:
        pass


# ----------------------------------------------------------------------------
# Requests about the transcripts that nacre keeps.


class PruneRequest(Request, frozen=True, kw_only=True):
    """Which transcripts of the archive may go; a limit of 0 lets none go."""

    keep_days: Annotated[
        int, Meta(description="Delete what changed more than this many days ago.", ge=0)
    ] = 0
    budget_mb: Annotated[
        int, Meta(description="Largest size, in megabytes; the oldest goes first.", ge=0)
    ] = 0


class RestoreSessionRequest(Request, frozen=True, kw_only=True):
    """Write the transcript of a session again."""

    reference: Annotated[str, Meta(description="A session's id, or its beginning.")]
    folder: Annotated[Path | None, Meta(description="Where it goes; by default, where it was.")] = (
        None
    )


# ----------------------------------------------------------------------------
# What is answered to requests about the archive; :mod:`nacre.serve.catalogue` lists them.


def verify_answers(home: Home, on_progress: OnProgress | None = None) -> list[Problem]:
    """Damaged files of the archive."""
    return verify(home, on_progress)[1]


def plan_pruning(home: Home, request: PruneRequest) -> list[Archived]:
    """The transcripts that pruning would delete from the archive."""
    return retention.choose(home, request.keep_days, request.budget_mb)


def prune_archive(home: Home, request: PruneRequest) -> list[Archived]:
    """Delete from the archive what changed longest ago; returns what went."""
    chosen = plan_pruning(home, request)
    retention.prune(home, chosen)
    return chosen


def restore_answers(home: Home, request: RestoreSessionRequest) -> Restored:
    """Write the transcript of a session again. Raises NotFound, Conflict."""
    return restore(home, request.reference, request.folder)
