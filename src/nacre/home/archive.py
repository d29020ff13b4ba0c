"""The transcript archive: keeps redacted, compressed transcripts after tools delete the originals.

Archiving runs after ingest and adds the parts of files ingested since the last run. Apart from
redaction, lines are stored unchanged. If a file has no lines, or contains forgotten or excluded
content, its indexed turns are stored instead. An interruption at any point is harmless.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec

from nacre.base import ids
from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.named_files import named_file
from nacre.errors import (
    ConflictError,
    DamagedArchiveError,
    NacreError,
    NotFoundError,
    UnavailableError,
)
from nacre.home import archive_packs, location, parsing, reread, retention
from nacre.home.home import Home, territory
from nacre.operations import operation
from nacre.readers import adapter as readers_adapter
from nacre.readers import registry
from nacre.store import packs, sessions
from nacre.values import reports
from nacre.values.session import StoredSession
from nacre.vault import files

MOST_WHOLE_BYTES = 64_000_000
_HEAD_BYTES = 64_000
_BATCH_FILES = 20
_MARKERS = (b"[REDACTED:", b"[private]")
STALE = -1
"""Value of ``changed`` for a pack that must be rewritten to remove content."""


class _NeedsRewriteError(Exception):
    """The original text cannot be stored or would not yield the same sessions."""


@dataclass(slots=True)
class _Work:
    home: Home
    cleaner: packs.Cleaner
    files: int = 0
    read: int = 0
    stored: int = 0
    problems: list[reports.Problem] = field(default_factory=list)
    waits: bool = True
    """True if each pack is synced to disk."""
    is_redacted: bool = False
    """True if anything in the current file was redacted."""


def _new_work(home: Home) -> _Work:
    return _Work(home, packs.Cleaner(home.redactor.clean_all))


def archive(home: Home, on_progress: reports.OnProgress | None = None) -> reports.ArchiveReport:
    """Archive the files that were ingested since the last run, then prune the archive.

    Nothing is done while another process uses the archive. If a file cannot be archived, the report
    names the file, and the run continues.
    """
    began = time.perf_counter()
    notify = on_progress or (lambda _: None)
    if not is_on(home) or not home.archive_lock.acquire():
        return reports.ArchiveReport()
    work = _new_work(home)
    try:
        archive_packs.sweep(home)
        settle(home)
        due = home.archive.due()
        total = sum(item.size for item in due)
        bytes_done = 0
        work.waits = len(due) < _BATCH_FILES or not hasattr(os, "sync")
        home.database.relax()
        for number, item in enumerate(due, 1):
            _archive_safely(work, item)
            bytes_done += item.size
            if not work.waits and (number % _BATCH_FILES == 0 or number == len(due)):
                os.sync()  # one sync for the whole batch
            rate = bytes_done / 1_000_000 / (time.perf_counter() - began)
            notify(
                reports.Progress(
                    "archiving",
                    bytes_done,
                    total,
                    f"{number:,} of {len(due):,} files, {rate:.0f} MB/s",
                )
            )
        pruned = retention.prune_as_set(home)
    finally:
        home.database.tighten()
        home.archive_lock.release()
    seconds = time.perf_counter() - began
    return reports.ArchiveReport(
        work.files, work.read, work.stored, pruned, seconds, tuple(work.problems)
    )


def is_on(home: Home) -> bool:
    """Return True if archiving is enabled and its dependencies are installed."""
    return bool(home.settings.flag("archive.enabled")) and packs.is_installed()


def withhold(home: Home, paths: Sequence[tuple[str, str]]) -> None:
    """Mark transcripts (tool, path) so that the archive stores only their indexed turns.

    Existing packs are rewritten by the next :func:`settle`.
    """
    with home.transaction():
        for tool, path in paths:
            home.archive.withhold(path, tool)


def settle(home: Home) -> None:
    """Rewrite archived packs that contain forgotten or secret content.

    Raises StoreBusyError while another process uses the archive.
    """
    stale = [state for state in home.archive.all() if state.changed == STALE]
    if not stale:
        return
    with home.archive_lock:
        for state in stale:
            store = _keep_sessions if state.path.endswith(readers_adapter.SUFFIXES) else _keep_turns
            store(_new_work(home), replace(state, changed=0))


def _archive_safely(work: _Work, due: sessions.Due) -> None:
    home = work.home
    state = home.archive.find(due.path) or sessions.Archived(due.path, due.tool, packs.LINES)
    try:
        _archive_one(work, due, state)
    except DamagedArchiveError:
        state = archive_packs.set_aside(home, state)
        try:
            _archive_one(work, due, state)
        except (NacreError, OSError) as error:
            work.problems.append(
                reports.Problem(
                    due.path, f"cannot be archived: {error}", "nacre admin doctor --deep"
                )
            )
    except NacreError as error:
        work.problems.append(
            reports.Problem(due.path, f"cannot be archived: {error.message}", error.hint)
        )
    except OSError as error:
        work.problems.append(
            reports.Problem(
                due.path, f"cannot be archived: {error.strerror or error}", "is the disk full?"
            )
        )


def _archive_one(work: _Work, due: sessions.Due, state: sessions.Archived) -> None:
    updated = replace(state, tool=due.tool, inode=due.inode, changed=due.changed)
    path = Path(due.path)
    if path.name.endswith(readers_adapter.SUFFIXES):
        _keep_sessions(work, updated)
        return
    if not path.is_file():
        if state.pack is None:
            _keep_turns(work, updated)  # the content exists only in the index
        return
    stat = path.stat()
    if stat.st_ino != due.inode and (stat.st_size, stat.st_mtime_ns) != (due.size, due.changed):
        return  # a replaced file must be ingested first; a copy on another disk is the same file
    adapter = registry.adapter_of(due.tool, path)
    try:
        if state.withheld or adapter is None:
            raise _NeedsRewriteError
        if adapter.whole:
            _keep_whole(work, adapter, path, updated)
        else:
            _keep_lines(work, adapter, path, due.size, updated)
    except _NeedsRewriteError:
        _keep_turns(work, updated)


def _keep_lines(
    work: _Work, adapter: readers_adapter.Adapter, path: Path, size: int, state: sessions.Archived
) -> None:
    home = work.home
    with path.open("rb") as file:
        size = min(size, os.fstat(file.fileno()).st_size)
        fingerprint = readers_adapter.fingerprint_of(
            file, min(readers_adapter.FINGERPRINT_BYTES, size)
        )
        state = replace(state, fingerprint=state.fingerprint or fingerprint)
        pack = archive_packs.open_pack(home, state)
        if pack and pack.title.kind != packs.LINES:
            raise _NeedsRewriteError
        start = _resume_at(work, file, size, state, pack)
        if start == 0:
            state = replace(state, fingerprint=fingerprint)
        elif pack and pack.is_fragmented:
            pack, start = None, 0
        old_pack = pack
        old_end = pack.end if pack else 0
        segments = _segments(work, file, state, start, size)
        if pack:
            pack.append(segments, durable=work.waits)
        else:
            pack = archive_packs.write(home, state, packs.LINES, segments, durable=work.waits)
        work.stored += pack.end - old_end
        work.files += pack.end > old_end
    if old_pack is None and not _has_same_sessions(work, adapter, path, pack):
        pack.place.unlink()
        raise _NeedsRewriteError
    with home.transaction():
        archive_packs.remember(home, state, pack)


def _has_same_sessions(
    work: _Work, adapter: readers_adapter.Adapter, path: Path, pack: packs.Pack
) -> bool:
    """Return True if reading the redacted pack yields the same sessions as the transcript.

    If nothing was redacted, only the start of the file is compared.
    """
    home = work.home
    if not work.is_redacted:
        with path.open("rb") as file:
            head = [
                (
                    0,
                    packs.Payload(
                        file.read(_HEAD_BYTES) + file.readline(readers_adapter.MAX_LINE_BYTES)
                    ),
                )
            ]
        return _outlines_match(home, adapter, reread.ArchivedSource(path, head), head)
    with readers_adapter.FileSource(path) as source:
        return _outlines_match(
            home,
            adapter,
            source,
            ((segment.start, payload) for segment, payload in pack.payloads()),
        )


def _resume_at(
    work: _Work, file: BinaryIO, size: int, state: sessions.Archived, pack: packs.Pack | None
) -> int:
    """Return the offset of the first line not archived yet, or 0 if the file was replaced."""
    if pack is None or not pack.segments:
        return 0
    until = pack.segments[-1].until
    if until > size:
        return 0
    length = int(state.fingerprint.split(":")[0] or 0)
    if length:
        return until if readers_adapter.fingerprint_of(file, length) == state.fingerprint else 0
    # After a rebuild, compare the content.
    first = next(segment for segment in reversed(pack.segments) if segment.start == 0)
    file.seek(0)
    payload = work.cleaner.lines(file.read(first.until))
    return until if packs.digest_of(payload.pack()) == first.digest else 0


def _segments(
    work: _Work, file: BinaryIO, state: sessions.Archived, start: int, size: int
) -> Iterator[packs.Fresh]:
    work.is_redacted = False
    for offset, raw in parsing.cut(file, start, size):
        blank = packs.Payload(b"\n", ((0, len(raw) - 1),))
        payload = work.cleaner.lines(raw) if raw.strip() else blank
        work.is_redacted |= payload.text is not raw and any(
            payload.text.count(mark) > raw.count(mark) for mark in _MARKERS
        )
        work.read += len(raw)
        yield packs.Fresh(offset, offset + len(raw), payload, state.changed)


def _keep_whole(
    work: _Work, adapter: readers_adapter.Adapter, path: Path, state: sessions.Archived
) -> None:
    """Store a transcript that does not consist of lines.

    The redacted transcript must contain the same sessions as the original.
    """
    home = work.home
    size = path.stat().st_size
    if size > MOST_WHOLE_BYTES:
        raise _NeedsRewriteError
    payload = packs.clean_whole(path.read_bytes(), home.redactor.clean_all)
    if payload is None:
        raise _NeedsRewriteError
    with readers_adapter.FileSource(path) as source:
        if not _outlines_match(home, adapter, source, [(0, payload)]):
            raise _NeedsRewriteError
    segment = packs.Fresh(0, size, payload, state.changed)
    _replace(work, state, packs.LINES, [segment])
    work.read += size


def _outlines_match(
    home: Home,
    adapter: readers_adapter.Adapter,
    source: readers_adapter.Source,
    parts: Iterable[tuple[int, packs.Payload]],
) -> bool:
    """Return True if reading the archived form yields the transcript's sessions.

    The transcript might have grown since it was archived.
    """
    try:
        expected = reread.outline(adapter, source)
        actual = reread.outline_of(home, adapter, str(source.path), parts)
    except Exception:  # noqa: BLE001 - a third-party adapter can fail when it opens the file itself
        return False
    return actual.keys() == expected.keys() and all(
        facts == expected[session][0] and turns == expected[session][1][: len(turns)]
        for session, (facts, turns) in actual.items()
    )


def _keep_sessions(work: _Work, state: sessions.Archived) -> None:
    """Store each session of a database in its own pack. Most sessions never change again."""
    home = work.home
    for row in home.archive.sessions_of(state.tool, state.path):
        stored = home.sessions.get(row)
        name = archive_packs.name_in(state.path, stored.session.native_id)
        archived = home.archive.find(name) or sessions.Archived(name, state.tool, packs.TURNS)
        fingerprint = f"{stored.turns}:{ids.to_ms(stored.ended)}:{stored.session.title or ''}"
        fingerprint = packs.digest_of(fingerprint.encode()).hex()
        if archived.fingerprint != fingerprint or archived.changed == STALE:
            _keep_turns(work, replace(archived, fingerprint=fingerprint, changed=state.changed))
    with home.transaction():
        home.archive.save(replace(state, kind=packs.TURNS))


def _keep_turns(work: _Work, state: sessions.Archived) -> None:
    """Store a transcript's indexed turns instead of the original text."""
    home = work.home
    lines: list[bytes] = []
    for row in archive_packs.rows_of(home, state):
        stored = home.sessions.get(row)
        lines.append(msgspec.json.encode(reread.KeptSession(stored.session, stored.project)))
        lines.extend(msgspec.json.encode(turn) for turn in home.sessions.whole(row))
    if not lines:
        remaining = archive_packs.drop(home, state)
        with home.transaction():
            home.archive.save(replace(remaining, kind=packs.TURNS))
        return
    segments = []
    offset = 0
    for text in _in_portions(lines):
        payload = packs.Payload(text)
        segments.append(packs.Fresh(offset, offset + len(text), payload, state.changed))
        offset += len(text)
    _replace(work, state, packs.TURNS, segments)


def _in_portions(lines: Sequence[bytes]) -> Iterator[bytes]:
    portion: list[bytes] = []
    size = 0
    for line in lines:
        portion.append(line + b"\n")
        size += len(line)
        if size >= parsing.SEGMENT_BYTES:
            yield b"".join(portion)
            portion, size = [], 0
    if portion:
        yield b"".join(portion)


def _replace(
    work: _Work, state: sessions.Archived, kind: str, segments: Sequence[packs.Fresh]
) -> None:
    home = work.home
    pack = archive_packs.write(home, state, kind, segments, durable=work.waits)
    with home.transaction():
        archive_packs.remember(home, state, pack)
    work.files += 1
    work.stored += pack.end


# -- Status, verification and restore ------------------------------------------


@frozen
class ArchivedTool:
    """The archived transcripts of one tool.

    ``gone`` is the number of transcripts that no longer exist outside the archive. Sizes are in
    bytes.
    """

    tool: str
    files: int
    gone: int
    raw: int
    stored: int
    first: datetime
    last: datetime


@frozen
class ArchiveStatus:
    """The contents of the archive.

    ``waiting`` is the number of ingested transcripts whose latest content is not archived.
    """

    enabled: bool
    folder: Path
    tools: tuple[ArchivedTool, ...]
    waiting: int
    withheld: int


@frozen
class Restored:
    """A restored transcript without secrets. ``is_whole`` is False if only its turns were stored."""

    session: str
    path: Path
    size: int
    is_whole: bool


@operation("archive-status")
def status(home: Home) -> ArchiveStatus:
    """Return what the archive contains for each tool, and how many transcripts are missing."""
    states = home.archive.all()
    by_tool: dict[str, list[sessions.Archived]] = {}
    for state in states:
        if state.pack:
            by_tool.setdefault(state.tool, []).append(state)
    return ArchiveStatus(
        is_on(home),
        archive_packs.folder_of(home),
        tuple(
            _tool(tool, archived)
            for tool, archived in sorted(by_tool.items(), key=lambda item: -len(item[1]))
        ),
        len(home.archive.due()),
        sum(state.withheld for state in states),
    )


def verify(
    home: Home, on_progress: reports.OnProgress | None = None
) -> tuple[int, list[reports.Problem]]:
    """Check every checksum. Return the number of packs and the problems."""
    notify = on_progress or (lambda _: None)
    states = [state for state in home.archive.all() if state.pack]
    problems: list[reports.Problem] = []
    for index, state in enumerate(states):
        message = damage(home, state)
        if message:
            problems.append(
                reports.Problem(state.path, message, _repair_hint(Path(state.path).is_file()))
            )
        notify(reports.Progress("verifying", index + 1, len(states), Path(state.path).name))
    for place in _unindexed_packs(home, states):
        message, hint = "it is not in the index", "nacre admin db rebuild adds it"
        if not _is_sound(place):
            message, hint = (
                "it is damaged and not in the index",
                _repair_hint(has_transcript=False),
            )
        problems.append(reports.Problem(str(place), message, hint))
    return len(states), problems


def mend(home: Home) -> int:
    """Rename damaged packs, so that their transcripts are archived again, and return their number."""
    states = [state for state in home.archive.all() if state.pack]
    damaged = [state for state in states if damage(home, state)]
    unknown = [place for place in _unindexed_packs(home, states) if not _is_sound(place)]
    with home.archive_lock:
        for state in damaged:
            updated = replace(archive_packs.set_aside(home, state), changed=0)
            with home.transaction():
                home.archive.save(updated)
        for place in unknown:
            archive_packs.put_aside(place)
    return len(damaged) + len(unknown)


def _repair_hint(has_transcript: bool) -> str:
    next_step = (
        " and archives the transcript again" if has_transcript else "; a backup may have it intact"
    )
    return f"nacre admin doctor --deep --repair sets it aside{next_step}"


def _unindexed_packs(home: Home, states: Iterable[sessions.Archived]) -> list[Path]:
    folder = archive_packs.folder_of(home)
    known_places = {folder / state.pack for state in states if state.pack}
    # These packs are about to be rewritten.
    known_places |= {
        archive_packs.place_for(home, due.tool, due.path) for due in home.archive.due()
    }
    places = sorted(folder.glob(f"*/*{packs.SUFFIX}")) if folder.is_dir() else []
    return [place for place in places if place not in known_places]


def _is_sound(place: Path) -> bool:
    try:
        return not packs.load(place).torn
    except NacreError:
        return False


@operation("session-restore")
def restore(
    home: Home,
    reference: Annotated[str, bounds("A session's id, or its beginning.")],
    *,
    folder: Annotated[
        Path | None, bounds("The target folder; default: its original place.")
    ] = None,
) -> Restored:
    """Restore a session's transcript to its original place or into a folder.

    Secrets stay redacted. Raises NotFoundError, ConflictError, DamagedArchiveError,
    UnavailableError.
    """
    stored = location.find_session(home, reference)
    state = _archived_as(home, stored)
    if state is None or state.pack is None:
        raise NotFoundError(
            f"the transcript of {stored.session.id} is not in the archive",
            hint="nacre data archive",
        )
    if folder is None and state.kind != packs.LINES:
        message = f"only the turns of {stored.session.id} were kept, which its tool cannot read"
        raise ConflictError(message, hint="--to DIR writes them as JSON lines")
    name = (
        Path(state.path).name
        if state.kind == packs.LINES
        else f"{files.slugify(stored.session.native_id)}.turns.jsonl"
    )
    target = folder.expanduser().absolute() / name if folder else Path(state.path)
    if os.path.lexists(target):
        hint = "--to DIR writes it somewhere else" if folder is None else "name another folder"
        raise ConflictError(f"{target} already exists", hint=hint)
    with home.archive_lock:
        places = _write(home, target, reread.generations(archive_packs.payloads(home, state))[-1])
        if folder is None and state.kind == packs.LINES:
            _resume_from(home, state, places)
    return Restored(stored.session.id, target, target.stat().st_size, state.kind == packs.LINES)


def _archived_as(home: Home, stored: StoredSession) -> sessions.Archived | None:
    if stored.file is None:
        return None
    inside = home.archive.find(archive_packs.name_in(stored.file, stored.session.native_id))
    return inside or home.archive.find(stored.file)


def _write(
    home: Home, target: Path, parts: list[tuple[int, packs.Payload]]
) -> list[tuple[int, int]]:
    """Write a transcript's parts. Return each line's old and new offset."""
    places: list[tuple[int, int]] = []
    try:
        with named_file(target, territory(home.settings)) as file:
            for start, payload in parts:
                new_offset = file.tell()
                for old_offset, line in payload.lines(start):
                    places.append((old_offset, new_offset))
                    new_offset += len(line) + 1
                file.write(payload.text)
    except OSError as error:
        raise UnavailableError(
            f"cannot write {target}: {error.strerror}", hint="--to DIR writes it elsewhere"
        ) from error
    return places


def _resume_from(home: Home, state: sessions.Archived, places: list[tuple[int, int]]) -> None:
    """Store the positions from which ingest and archiving continue in a restored file."""
    path = Path(state.path)
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        fingerprint = readers_adapter.fingerprint_of(
            file, min(readers_adapter.FINGERPRINT_BYTES, stat.st_size)
        )
    pack = archive_packs.open_pack(home, state)
    stored_cursor = home.sessions.cursor(state.path)
    if pack is None:
        return
    end = stat.st_size
    pack.append([packs.Fresh(end, end, packs.Payload(b""), stat.st_mtime_ns)])
    with home.transaction():
        after = replace(state, inode=stat.st_ino, fingerprint=fingerprint, changed=stat.st_mtime_ns)
        archive_packs.remember(home, after, pack)
        if stored_cursor:
            cursor = stored_cursor[1]
            offset = next(
                (now for old_offset, now in places if old_offset >= cursor.offset), stat.st_size
            )
            cursor = replace(
                cursor,
                inode=stat.st_ino,
                offset=offset,
                size=stat.st_size,
                mtime_ns=stat.st_mtime_ns,
                fingerprint=fingerprint,
            )
            home.sessions.move_cursor(state.path, cursor)


def _tool(tool: str, states: list[sessions.Archived]) -> ArchivedTool:
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


def is_cut(home: Home, state: sessions.Archived) -> bool:
    """Return True if a pack is missing or too short. The pack is not read."""
    try:
        return (archive_packs.folder_of(home) / (state.pack or "")).stat().st_size < state.size
    except OSError:
        return True


def damage(home: Home, state: sessions.Archived) -> str | None:
    """Describe a pack's damage, or return ``None`` if it is intact."""
    try:
        pack = packs.load(archive_packs.folder_of(home) / (state.pack or ""), thorough=True)
        if pack.end < state.size:
            return f"the last {state.size - pack.end:,} bytes of its pack are lost"
    except NacreError as error:
        return error.message
    return None
