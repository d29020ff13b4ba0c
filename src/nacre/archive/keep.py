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
from pathlib import Path
from typing import BinaryIO

import msgspec

from nacre.archive import pack_store
from nacre.archive.prune import prune_as_set
from nacre.archive.reread import ArchivedSource, KeptSession, outline, outline_of
from nacre.errors import ArchiveDamaged, NacreError
from nacre.home.home import Home
from nacre.packs import pack as packs
from nacre.packs.lines import Cleaner, clean_whole
from nacre.packs.pack import LINES, TURNS, Fresh, Pack
from nacre.packs.payload import Payload
from nacre.packs.zstd import is_installed
from nacre.parsing import workers
from nacre.parsing.parse import Job, count_processes
from nacre.parsing.redaction import SEGMENT_BYTES, Ahead, clean, cut
from nacre.platform.ids import to_ms
from nacre.storage.archive import Archived, Due
from nacre.transcripts.adapter import Adapter, Source
from nacre.transcripts.databases import SUFFIXES
from nacre.transcripts.file_source import FINGERPRINT_BYTES, MAX_LINE_BYTES, FileSource, fingerprint_of
from nacre.transcripts.registry import adapter_of
from nacre.values.cursor import Cursor
from nacre.values.reports import ArchiveReport, OnProgress, Problem, Progress

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
        pack_store.sweep(home)
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
                notify(Progress("archiving", done, total, f"{number:,} of {len(due):,} files, {rate:.0f} MB/s"))
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
    with contextlib.closing(workers.clean_in_processes(jobs, home.redactor, setup, processes)) as portions:
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
    return Job(path, due.size, due.tool, Cursor(offset=state.until) if state and state.pack else None)


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
        state = pack_store.set_aside(home, state)
        try:
            _archive_one(work, due, state)
        except (NacreError, OSError) as error:
            work.problems.append(Problem(due.path, f"cannot be archived: {error}", "nacre archive verify"))
    except NacreError as error:
        work.problems.append(Problem(due.path, f"cannot be archived: {error.message}", error.hint))
    except OSError as error:
        work.problems.append(Problem(due.path, f"cannot be archived: {error.strerror or error}", "is the disk full?"))


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
        state, cuts = _known_elsewhere(home, file, replace(state, fingerprint=state.fingerprint or beginning))
        pack = pack_store.open_pack(home, state)
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
        pack_store.remember(home, state, pack)


def _is_the_same(work: _Work, adapter: Adapter, path: Path, pack: Pack) -> bool:
    """Whether the sessions are the same without what lies beside the file, and without its secrets.

    Where nothing was taken out, the beginning tells.
    """
    home = work.home
    if not work.is_redacted:
        with path.open("rb") as file:
            head = [(0, Payload(file.read(_HEAD_BYTES) + file.readline(MAX_LINE_BYTES)))]
        return _gives_the_same(home, adapter, ArchivedSource(path, head), head)
    pairs = pack.payloads(pack_store.finder(home, str(path)))
    with FileSource(path) as source:
        return _gives_the_same(home, adapter, source, ((segment.start, payload) for segment, payload in pairs))


def _append(work: _Work, state: Archived, pack: Pack | None, fresh: Iterator[Fresh]) -> Pack:
    before = pack.end if pack else 0
    if pack is None:
        place = pack_store.place_for(work.home, state.tool, state.path)
        pack = packs.create(place, pack_store.titled(state, LINES), fresh, durable=work.waits)
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
    first = next(one for one in reversed(pack.segments) if one.start == 0)  # after a rebuild: by what it says
    file.seek(0)
    payload = work.cleaner.lines(file.read(first.until))
    return until if packs.digest_of(payload.pack()) == first.digest else 0


def _known_elsewhere(home: Home, file: BinaryIO, state: Archived) -> tuple[Archived, list[int]]:
    """A file that is new and begins as another does was renamed or copied: then it is cut as that one was."""
    if state.pack is not None:
        return state, []
    for other in home.archive.alike(state.fingerprint, state.path):
        if not Path(other.path).exists() and other.inode == os.fstat(file.fileno()).st_ino and not other.withheld:
            pack = pack_store.open_pack(home, other)
            if pack:
                pack.retitle(pack_store.titled(state, LINES))
                with home.database.transaction():
                    home.archive.delete(state.path)
                    home.archive.rename(other.path, state.path)
                    pack_store.remember(home, replace(other, path=state.path), pack)
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
        is_known = holder is not None and (pack_store.folder_of(work.home) / holder).exists()
        work.read += len(raw)
        yield Fresh(at, at + len(raw), digest, None if is_known else payload, state.changed)


def _is_redacted(raw: bytes, payload: Payload) -> bool:
    return any(payload.text.count(mark) > raw.count(mark) for mark in _MARKERS)


def _fold(home: Home, path: str, pack: Pack) -> None:
    tail = pack.foldable()
    if tail and not home.archive.copies(path):
        pack.fold(tail, pack_store.finder(home, path))


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
) -> bool:  # fmt: skip
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
        name = pack_store.name_in(state.path, stored.session.native_id)
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
    for row in pack_store.rows_of(home, state):
        stored = home.sessions.get(row)
        lines.append(msgspec.json.encode(KeptSession(stored.session, stored.project)))
        lines.extend(msgspec.json.encode(turn) for turn in home.sessions.whole(row))
    if not lines:
        left = pack_store.drop(home, state)
        with home.database.transaction():
            home.archive.save(replace(left, kind=TURNS), [])
        return
    fresh = []
    at = 0
    for text in _in_portions(lines):
        payload = Payload(text)
        fresh.append(Fresh(at, at + len(text), packs.digest_of(payload.pack()), payload, state.changed))
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
    pack_store.give_up(home, state)
    place = pack_store.folder_of(home) / state.pack if state.pack else None
    place = place or pack_store.place_for(home, state.tool, state.path)
    pack = packs.create(place, pack_store.titled(state, kind), fresh, durable=work.waits)
    with home.database.transaction():
        pack_store.remember(home, state, pack)
    work.files += 1
    work.stored += pack.end
