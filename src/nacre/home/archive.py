"""The archive keeps redacted, compressed transcripts after tools delete the originals.

Archiving runs after ingest and adds newly ingested content. Apart from redaction, lines are stored
unchanged. If a file has no lines, or contains forgotten or excluded content, its indexed turns are
stored instead. An interruption at any point is harmless.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec

from nacre.base import files
from nacre.base.bounds import bounds
from nacre.base.frozen import frozen
from nacre.base.ids import at_ms, bytes_hash, to_ms
from nacre.errors import (
    ConflictError,
    DamagedArchiveError,
    NacreError,
    NotFoundError,
    UnavailableError,
)
from nacre.home import location
from nacre.home.home import Home, territory
from nacre.home.parsing import SEGMENT_BYTES, Batch, FileFailed, batches, cut, iter_parsed
from nacre.operations import operation
from nacre.readers.adapter import (
    FINGERPRINT_BYTES,
    HEAD_BYTES,
    MAX_LINE_BYTES,
    SUFFIXES,
    Adapter,
    FileSource,
    Head,
    Source,
    fingerprint_of,
)
from nacre.readers.registry import adapter_of, adapters_of
from nacre.store import packs
from nacre.store.packs import (
    LINES,
    TURNS,
    CleanAll,
    Cleaner,
    Fresh,
    Pack,
    Payload,
    Segment,
    Title,
    clean_whole,
)
from nacre.store.sessions import Archived, Due
from nacre.values.reports import ArchiveReport, OnProgress, Problem, Progress
from nacre.values.session import Session, StoredSession, Tally, Turn
from nacre.vault.files import slugify

# -- Packs: one file per transcript ------------------------------------------------------------


FOLDER = "archive"
DAMAGED = ".damaged"
_INSIDE = "::"
_NO_PACK: dict[str, Any] = {"pack": None, "until": 0, "size": 0, "raw": 0}


def folder_of(home: Home) -> Path:
    """Return the folder that contains the archive's packs."""
    return home.settings.home / FOLDER


def place_for(home: Home, tool: str, path: str) -> Path:
    """Return the path of the pack in which a transcript is archived."""
    name = hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return folder_of(home) / tool / f"{name}{packs.SUFFIX}"


def name_in(path: str, native_id: str) -> str:
    """Return a pseudo-path that stands for one session of a host's database."""
    return f"{path}{_INSIDE}{native_id}"


def rows_of(home: Home, state: Archived) -> list[int]:
    """Return the row ids of the sessions read from an archived transcript."""
    path, _, native_id = state.path.partition(_INSIDE)
    if not native_id:
        return home.archive.sessions_of(state.tool, path)
    # Sessions are found by id, because a database can contain thousands of sessions.
    sessions = home.sessions.find(f"{state.tool}:{native_id}")
    return [
        stored.row
        for stored in sessions
        if stored.file == path and stored.session.native_id == native_id
    ]


def open_pack(home: Home, state: Archived) -> Pack | None:
    """Return a transcript's pack, or ``None`` if it has none. Raises DamagedArchiveError."""
    if state.pack is None:
        return None
    pack = packs.load(folder_of(home) / state.pack)
    if pack.end < state.size:
        raise DamagedArchiveError(f"{pack.place} is damaged", hint="nacre admin doctor --deep")
    return pack


def payloads(home: Home, state: Archived) -> Iterator[tuple[Segment, Payload]]:
    """Yield a transcript's archived segments with their payloads. Raises DamagedArchiveError."""
    pack = open_pack(home, state)
    if pack:
        yield from pack.payloads()


def remember(home: Home, state: Archived, pack: Pack) -> Archived:
    """Record a transcript's new pack in the index, and return the updated state."""
    segments = pack.segments
    saved = replace(
        state,
        tool=pack.title.tool,
        kind=pack.title.kind,
        pack=pack.place.relative_to(folder_of(home)).as_posix(),
        size=pack.end,
        until=segments[-1].until if segments else 0,
        raw=sum(segment.until - segment.start for segment in segments),
    )
    home.archive.save(saved)
    return saved


def drop(home: Home, state: Archived) -> Archived:
    """Delete a transcript's pack, and return the state without it."""
    if state.pack is None:
        return state
    (folder_of(home) / state.pack).unlink(missing_ok=True)
    dropped = replace(state, **_NO_PACK)
    with home.transaction():
        home.archive.save(dropped)
    return dropped


def write(home: Home, state: Archived, kind: str, segments: Iterable[Fresh]) -> Pack:
    """Write a transcript's pack, replacing the previous pack."""
    title = Title(state.tool, state.path, kind)
    place = folder_of(home) / state.pack if state.pack else None
    place = place or place_for(home, state.tool, state.path)
    return packs.create(place, title, segments)


def clean(home: Home, state: Archived, clean_all: CleanAll, *, dry_run: bool) -> bool:
    """Redact a pack with the current rules, and return True if it contained secrets.

    Damaged packs are skipped. Raises StoreBusyError while another process uses the archive.
    """

    def cleaned(payload: Payload) -> Payload:
        new = (
            Cleaner(clean_all).lines(payload.text)
            if _is_lines(payload.text)
            else clean_whole(payload.text, clean_all)
        )
        if new is None or new.text == payload.text:
            return payload
        return Payload(new.text, tuple(sorted((dict(new.lengths) | dict(payload.lengths)).items())))

    with home.archive_lock:
        try:
            is_dirty = any(cleaned(payload) != payload for _, payload in payloads(home, state))
            if is_dirty and not dry_run:
                segments = (
                    Fresh(segment.start, segment.until, cleaned(payload), segment.changed)
                    for segment, payload in payloads(home, state)
                )
                pack = write(home, state, state.kind, segments)
                with home.transaction():
                    remember(home, state, pack)
        except DamagedArchiveError:
            return False
    return is_dirty


def _is_lines(text: bytes) -> bool:
    first = text.lstrip().partition(b"\n")[0].rstrip()
    return first[:1] == b"{" and first[-1:] == b"}"


def set_aside(home: Home, state: Archived) -> Archived:
    """Rename a transcript's damaged pack, and return the state without a pack."""
    if state.pack:
        put_aside(folder_of(home) / state.pack)
    return replace(state, **_NO_PACK)


def put_aside(place: Path) -> None:
    """Rename a damaged pack, if it exists."""
    with contextlib.suppress(FileNotFoundError):
        place.replace(place.with_name(place.name + DAMAGED))


def sweep(home: Home) -> None:
    """Delete temporary files left by killed processes. The caller must hold the archive lock."""
    with contextlib.suppress(OSError):
        for tool in folder_of(home).iterdir():
            files.sweep(tool)


def read_index(home: Home) -> list[str]:
    """Index all packs in a new database, and return one problem per unreadable pack."""
    problems = []
    folder = folder_of(home)
    for place in sorted(folder.glob(f"*/*{packs.SUFFIX}")) if folder.is_dir() else ():
        try:
            pack = packs.load(place)
        except NacreError as error:
            problems.append(error.message)
            continue
        title = pack.title
        with home.transaction():
            changed = pack.segments[-1].changed if pack.segments else 0
            archived = home.archive.find(title.path) or Archived(
                title.path, title.tool, title.kind, changed=changed
            )
            remember(home, replace(archived, withheld=title.kind == TURNS), pack)
    return problems


# -- Reading archived sessions again -----------------------------------------------------------


_TURNS_PER_BATCH = 400
_NOWHERE = "nowhere"
"""A folder name that never exists in the archive."""


Part = tuple[int, Payload]
"""The offset of a part of a transcript, and that part's archived content."""


class KeptSession(msgspec.Struct):
    """A line in a pack that describes the session to which the following turns belong."""

    session: Session
    project: str | None = None


_SESSION = msgspec.json.Decoder(KeptSession)
_TURN = msgspec.json.Decoder(Turn)


class ArchivedSource(Source):
    """A transcript that is read from the archive, always from its start."""

    def __init__(self, path: Path, parts: Iterable[Part], identities: tuple[str, ...] = ()) -> None:
        # Adapters derive names from path, but the file need not exist.
        self.path = path
        self.identities = identities
        self.tally = Tally()
        self.carry = {}
        self.start = 0
        self._parts = parts

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the nonblank lines with their offsets in the original file."""
        for start, payload in self._parts:
            for offset, line in payload.lines(start):
                if line and not line.isspace():
                    yield offset, line

    def text(self) -> str:
        """Return the complete text."""
        return b"".join(payload.text for _, payload in self._parts).decode(
            "utf-8-sig", errors="replace"
        )


def missing(home: Home) -> list[Archived]:
    """Return archived transcripts whose original file is gone, oldest first."""
    return [state for state in reversed(home.archive.all()) if state.pack and _is_missing(state)]


def read_archived(home: Home, states: Iterable[Archived]) -> Iterator[Batch | FileFailed]:
    """Yield the sessions of archived transcripts, and a :class:`FileFailed` for unreadable ones."""
    for state in states:
        try:
            yield from _batches_of(home, state)
        except Exception as error:  # noqa: BLE001 - a damaged pack or third-party adapter must affect only one file
            message = f"cannot be read from the archive: {type(error).__name__}: {error}"
            problem = Problem(state.path, message, "nacre admin doctor --deep")
            if isinstance(error, NacreError):
                problem = Problem(state.path, error.message, error.hint)
            yield FileFailed(Path(state.path), state.size, problem)


Outline = dict[str, tuple[tuple[object, ...], list[tuple[str, datetime | None]]]]
"""Each session's metadata and its turns' ids and times, keyed by session id."""


def outline(adapter: Adapter, source: Source) -> Outline:
    """Return the ids of the sessions and turns that an adapter finds, without their text."""
    sessions: Outline = {}
    turns: list[tuple[str, datetime | None]] = []
    for item in iter_parsed(adapter, source):
        if isinstance(item, Session):
            facts = (
                item.cwd,
                item.parent,
                item.kind,
                item.label,
                item.repository,
                item.started,
                item.model,
            )
            turns = sessions.setdefault(item.native_id, (facts, []))[1]
            sessions[item.native_id] = (facts, turns)
        else:
            turns.append((item.id, item.time))
    return sessions


def generations(pairs: Iterable[tuple[Segment, Payload]]) -> list[list[Part]]:
    """Group an archived file's segments by version. Each version starts at offset 0."""
    files: list[list[Part]] = []
    for segment, payload in pairs:
        if segment.start == 0 or not files:
            files.append([])
        files[-1].append((segment.start, payload))
    return files


def _is_missing(state: Archived) -> bool:
    try:
        size = Path(state.path).stat().st_size
    except OSError:
        return True
    # A replaced file begins again at 0.
    return state.kind == LINES and (size < state.until or state.raw > state.until)


def _batches_of(home: Home, state: Archived) -> Iterator[Batch]:
    pairs = payloads(home, state)
    if state.kind != LINES:
        yield from _kept_batches(Path(state.path), (payload for _, payload in pairs))
        return
    identities = tuple(home.settings.texts("owner.identities"))
    with _substitute_path(home, state.path) as path:
        for parts in generations(pairs):
            adapter = _adapter_for(state.tool, Head(path, parts[0][1].text[:HEAD_BYTES]))
            yield from batches(
                Path(state.path), adapter, ArchivedSource(path, parts, identities), home.redactor
            )


def _adapter_for(tool: str, head: Head) -> Adapter:
    candidates = adapters_of(tool)
    adapter = (
        candidates[0]
        if len(candidates) == 1
        else next((adapter for adapter in candidates if adapter.sniff(head)), None)
    )
    if adapter is None:
        raise ValueError(f"no adapter for {tool!r} recognises it")
    return adapter


def _kept_batches(path: Path, parts: Iterable[Payload]) -> Iterator[Batch]:
    header = None
    turns: list[Turn] = []
    for payload in parts:
        for line in payload.text.split(b"\n"):
            if line.startswith(b'{"session"'):
                if header:
                    yield Batch(path, header.session, tuple(turns), header.project)
                header, turns = _SESSION.decode(line), []
            elif line and header:
                turns.append(_TURN.decode(line))
                if len(turns) == _TURNS_PER_BATCH:
                    yield Batch(path, header.session, tuple(turns), header.project)
                    turns = []
    if header:
        yield Batch(path, header.session, tuple(turns), header.project)


@contextlib.contextmanager
def _substitute_path(home: Home, path: str) -> Iterator[Path]:
    # Adapters can derive names from this path, but find no other files next to it.
    original = Path(path)
    names = original.parts[1:] if original.is_absolute() else original.parts
    subagents = original.with_suffix("") / "subagents"
    if not subagents.is_dir() and not home.archive.has_below(str(subagents)):
        yield folder_of(home).joinpath(_NOWHERE, *names)
        return
    with tempfile.TemporaryDirectory(prefix="nacre-") as folder:
        place = Path(folder, *names)
        (place.with_suffix("") / "subagents").mkdir(parents=True)
        yield place


# -- Archiving ---------------------------------------------------------------------------------


MOST_WHOLE_BYTES = 64_000_000
_HEAD_BYTES = 64_000
_MARKERS = (b"[REDACTED:", b"[private]")
STALE = -1
"""Value of ``changed`` for a pack that must be rewritten to remove content."""


class _NeedsRewriteError(Exception):
    """The original text cannot be stored, or would yield different sessions when read again."""


@dataclass(slots=True)
class _Work:
    home: Home
    cleaner: Cleaner
    files: int = 0
    read: int = 0
    stored: int = 0
    problems: list[Problem] = field(default_factory=list)
    is_redacted: bool = False
    """True if anything in the current file was redacted."""


def _new_work(home: Home) -> _Work:
    return _Work(home, Cleaner(home.redactor.clean_all))


def archive(home: Home, on_progress: OnProgress = lambda _: None) -> ArchiveReport:
    """Archive newly ingested files, then delete transcripts that exceed the archive's limits.

    This does nothing while another process uses the archive. The report lists files that failed.
    """
    began = time.perf_counter()
    if not is_on(home) or not home.archive_lock.acquire():
        return ArchiveReport()
    work = _new_work(home)
    try:
        sweep(home)
        settle(home)
        due = home.archive.due()
        total = sum(item.size for item in due)
        bytes_done = 0
        home.database.relax()
        for number, item in enumerate(due, 1):
            _archive_safely(work, item)
            bytes_done += item.size
            rate = bytes_done / 1_000_000 / (time.perf_counter() - began)
            on_progress(
                Progress(
                    "archiving",
                    bytes_done,
                    total,
                    f"{number:,} of {len(due):,} files, {rate:.0f} MB/s",
                )
            )
        pruned = _prune(home)
    finally:
        home.database.tighten()
        home.archive_lock.release()
    seconds = time.perf_counter() - began
    return ArchiveReport(work.files, work.read, work.stored, pruned, seconds, tuple(work.problems))


def _prune(home: Home) -> int:
    keep_days = home.settings.whole("archive.keep_days")
    budget = home.settings.whole("archive.budget_mb") * 1_000_000
    oldest = int((home.now() - timedelta(days=keep_days)).timestamp() * 1e9) if keep_days else 0
    excess, size = [], 0
    for state in home.archive.all():  # newest first
        size += state.size
        if state.pack and (state.changed < oldest or 0 < budget < size):
            excess.append(state)
    for state in reversed(excess):
        drop(home, state)
    return len(excess)


def is_on(home: Home) -> bool:
    """Return True if archiving is enabled and its dependencies are installed."""
    return bool(home.settings.flag("archive.enabled")) and packs.is_installed()


def withhold(home: Home, paths: Sequence[tuple[str, str]]) -> None:
    """Mark (tool, path) pairs of transcripts whose packs :func:`settle` must reduce to indexed
    turns.
    """
    with home.transaction():
        for tool, path in paths:
            home.archive.withhold(path, tool)


def settle(home: Home) -> None:
    """Rewrite packs to remove forgotten or secret text.

    Raises StoreBusyError while another process uses the archive.
    """
    stale = [state for state in home.archive.all() if state.changed == STALE]
    if not stale:
        return
    with home.archive_lock:
        for state in stale:
            store = _keep_sessions if state.path.endswith(SUFFIXES) else _keep_turns
            store(_new_work(home), replace(state, changed=0))


def _archive_safely(work: _Work, due: Due) -> None:
    home = work.home
    state = home.archive.find(due.path) or Archived(due.path, due.tool, LINES)
    try:
        try:
            _archive_one(work, due, state)
        except DamagedArchiveError:
            _archive_one(work, due, set_aside(home, state))
    except NacreError as error:
        message, hint = f"cannot be archived: {error.message}", error.hint
        work.problems.append(Problem(due.path, message, hint))
    except OSError as error:
        message = f"cannot be archived: {error.strerror or error}"
        work.problems.append(Problem(due.path, message, "check whether the disk is full"))


def _archive_one(work: _Work, due: Due, state: Archived) -> None:
    updated = replace(state, tool=due.tool, inode=due.inode, changed=due.changed)
    path = Path(due.path)
    if path.name.endswith(SUFFIXES):
        _keep_sessions(work, updated)
        return
    if not path.is_file():
        if state.pack is None:
            _keep_turns(work, updated)  # the content exists only in the index
        return
    stat = path.stat()
    if stat.st_ino != due.inode and (stat.st_size, stat.st_mtime_ns) != (due.size, due.changed):
        return  # a replaced file must be ingested first; a copy on another disk is the same file
    adapter = adapter_of(due.tool, path)
    try:
        if state.withheld or adapter is None:
            raise _NeedsRewriteError
        if adapter.whole:
            _keep_whole(work, adapter, path, updated)
        else:
            _keep_lines(work, adapter, path, due.size, updated)
    except _NeedsRewriteError:
        _keep_turns(work, updated)


def _keep_lines(work: _Work, adapter: Adapter, path: Path, size: int, state: Archived) -> None:
    home = work.home
    with path.open("rb") as file:
        size = min(size, os.fstat(file.fileno()).st_size)
        fingerprint = fingerprint_of(file, min(FINGERPRINT_BYTES, size))
        state = replace(state, fingerprint=state.fingerprint or fingerprint)
        pack = open_pack(home, state)
        if pack and pack.title.kind != LINES:
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
            pack.append(segments)
        else:
            pack = write(home, state, LINES, segments)
        work.stored += pack.end - old_end
        work.files += pack.end > old_end
    if old_pack is None and not _has_same_sessions(work, adapter, path, pack):
        pack.place.unlink()
        raise _NeedsRewriteError
    with home.transaction():
        remember(home, state, pack)


def _has_same_sessions(work: _Work, adapter: Adapter, path: Path, pack: Pack) -> bool:
    home = work.home
    if not work.is_redacted:
        with path.open("rb") as file:
            head = [
                (
                    0,
                    Payload(file.read(_HEAD_BYTES) + file.readline(MAX_LINE_BYTES)),
                )
            ]
        return _outlines_match(home, adapter, ArchivedSource(path, head), head)
    with FileSource(path) as source:
        return _outlines_match(
            home,
            adapter,
            source,
            ((segment.start, payload) for segment, payload in pack.payloads()),
        )


def _resume_at(work: _Work, file: BinaryIO, size: int, state: Archived, pack: Pack | None) -> int:
    if pack is None or not pack.segments:
        return 0
    until = pack.segments[-1].until
    if until > size:
        return 0
    length = int(state.fingerprint.split(":")[0] or 0)
    if length:
        return until if fingerprint_of(file, length) == state.fingerprint else 0
    # After a rebuild, compare the content.
    first = next(segment for segment in reversed(pack.segments) if segment.start == 0)
    file.seek(0)
    payload = work.cleaner.lines(file.read(first.until))
    return until if bytes_hash(payload.pack()) == first.digest else 0


def _segments(
    work: _Work, file: BinaryIO, state: Archived, start: int, size: int
) -> Iterator[Fresh]:
    work.is_redacted = False
    for offset, raw in cut(file, start, size):
        blank = Payload(b"\n", ((0, len(raw) - 1),))
        payload = work.cleaner.lines(raw) if raw.strip() else blank
        work.is_redacted |= payload.text is not raw and any(
            payload.text.count(mark) > raw.count(mark) for mark in _MARKERS
        )
        work.read += len(raw)
        yield Fresh(offset, offset + len(raw), payload, state.changed)


def _keep_whole(work: _Work, adapter: Adapter, path: Path, state: Archived) -> None:
    home = work.home
    size = path.stat().st_size
    if size > MOST_WHOLE_BYTES:
        raise _NeedsRewriteError
    payload = clean_whole(path.read_bytes(), home.redactor.clean_all)
    if payload is None:
        raise _NeedsRewriteError
    with FileSource(path) as source:
        if not _outlines_match(home, adapter, source, [(0, payload)]):
            raise _NeedsRewriteError
    segment = Fresh(0, size, payload, state.changed)
    _replace(work, state, LINES, [segment])
    work.read += size


def _outlines_match(
    home: Home,
    adapter: Adapter,
    source: Source,
    parts: Iterable[Part],
) -> bool:
    # The transcript may have grown after it was copied.
    try:
        expected = outline(adapter, source)
        with _substitute_path(home, str(source.path)) as place:
            actual = outline(adapter, ArchivedSource(place, parts))
    except Exception:  # noqa: BLE001 - a third-party adapter can fail when it opens the file itself
        return False
    return actual.keys() == expected.keys() and all(
        facts == expected[session][0] and turns == expected[session][1][: len(turns)]
        for session, (facts, turns) in actual.items()
    )


def _keep_sessions(work: _Work, state: Archived) -> None:
    # Each session gets its own pack, because most sessions in a database never change again.
    home = work.home
    for row in home.archive.sessions_of(state.tool, state.path):
        stored = home.sessions.get(row)
        name = name_in(state.path, stored.session.native_id)
        archived = home.archive.find(name) or Archived(name, state.tool, TURNS)
        fingerprint = f"{stored.turns}:{to_ms(stored.ended)}:{stored.session.title or ''}"
        fingerprint = bytes_hash(fingerprint.encode()).hex()
        if archived.fingerprint != fingerprint or archived.changed == STALE:
            _keep_turns(work, replace(archived, fingerprint=fingerprint, changed=state.changed))
    with home.transaction():
        home.archive.save(replace(state, kind=TURNS))


def _keep_turns(work: _Work, state: Archived) -> None:
    home = work.home
    lines = []
    for row in rows_of(home, state):
        stored = home.sessions.get(row)
        lines.append(msgspec.json.encode(KeptSession(stored.session, stored.project)))
        lines.extend(msgspec.json.encode(turn) for turn in home.sessions.all_turns(row))
    if not lines:
        remaining = drop(home, state)
        with home.transaction():
            home.archive.save(replace(remaining, kind=TURNS))
        return
    segments = []
    offset = 0
    for text in _in_portions(lines):
        payload = Payload(text)
        segments.append(Fresh(offset, offset + len(text), payload, state.changed))
        offset += len(text)
    _replace(work, state, TURNS, segments)


def _in_portions(lines: Sequence[bytes]) -> Iterator[bytes]:
    portion = []
    size = 0
    for line in lines:
        portion.append(line + b"\n")
        size += len(line)
        if size >= SEGMENT_BYTES:
            yield b"".join(portion)
            portion, size = [], 0
    if portion:
        yield b"".join(portion)


def _replace(work: _Work, state: Archived, kind: str, segments: Sequence[Fresh]) -> None:
    home = work.home
    pack = write(home, state, kind, segments)
    with home.transaction():
        remember(home, state, pack)
    work.files += 1
    work.stored += pack.end


# -- Status, verification and restore ------------------------------------------


@frozen
class ArchivedTool:
    """The archived transcripts of one tool, with sizes in bytes.

    ``gone`` counts the transcripts whose original file no longer exists.
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
    """A summary of the archive.

    ``waiting`` counts the ingested transcripts that are not fully archived yet.
    """

    enabled: bool
    folder: Path
    tools: tuple[ArchivedTool, ...]
    waiting: int
    withheld: int


@frozen
class Restored:
    """A transcript restored from the archive, without secrets.

    ``is_whole`` is False if only its turns had been archived.
    """

    session: str
    path: Path
    size: int
    is_whole: bool


@operation("archive-status")
def status(home: Home) -> ArchiveStatus:
    """Return what the archive contains for each tool, and how many transcripts are missing."""
    states = home.archive.all()
    by_tool: dict[str, list[Archived]] = {}
    for state in states:
        if state.pack:
            by_tool.setdefault(state.tool, []).append(state)
    return ArchiveStatus(
        is_on(home),
        folder_of(home),
        tuple(
            _tool(tool, archived)
            for tool, archived in sorted(by_tool.items(), key=lambda item: -len(item[1]))
        ),
        len(home.archive.due()),
        sum(state.withheld for state in states),
    )


def verify(home: Home, on_progress: OnProgress = lambda _: None) -> tuple[int, list[Problem]]:
    """Check all packs for damage, and return their number and the problems found."""
    states = [state for state in home.archive.all() if state.pack]
    problems = []
    for index, state in enumerate(states):
        message = damage(home, state)
        if message:
            problems.append(Problem(state.path, message, _repair_hint(Path(state.path).is_file())))
        on_progress(Progress("verifying", index + 1, len(states), Path(state.path).name))
    for place in _unindexed_packs(home, states):
        message, hint = "it is not in the index", "nacre admin db rebuild adds it"
        if not _is_sound(place):
            message, hint = (
                "it is damaged and not in the index",
                _repair_hint(has_transcript=False),
            )
        problems.append(Problem(str(place), message, hint))
    return len(states), problems


def mend(home: Home) -> int:
    """Set damaged packs aside so that their transcripts are archived again. Return their number."""
    states = [state for state in home.archive.all() if state.pack]
    damaged = [state for state in states if damage(home, state)]
    unknown = [place for place in _unindexed_packs(home, states) if not _is_sound(place)]
    with home.archive_lock:
        for state in damaged:
            updated = replace(set_aside(home, state), changed=0)
            with home.transaction():
                home.archive.save(updated)
        for place in unknown:
            put_aside(place)
    return len(damaged) + len(unknown)


def _repair_hint(has_transcript: bool) -> str:
    next_step = (
        " and archives the transcript again" if has_transcript else "; a backup may have it intact"
    )
    return f"nacre admin doctor --deep --repair sets it aside{next_step}"


def _unindexed_packs(home: Home, states: Iterable[Archived]) -> list[Path]:
    folder = folder_of(home)
    known_places = {folder / state.pack for state in states if state.pack}
    # These packs are about to be rewritten.
    known_places |= {place_for(home, due.tool, due.path) for due in home.archive.due()}
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
    """Restore a session's transcript, with secrets redacted, to its original place or into a
    folder.

    Raises NotFoundError, ConflictError, DamagedArchiveError, UnavailableError.
    """
    stored = location.find_session(home, reference)
    state = _archived_as(home, stored)
    if state is None or state.pack is None:
        raise NotFoundError(
            f"the transcript of {stored.session.id} is not in the archive",
            hint="nacre data archive",
        )
    if folder is None and state.kind != LINES:
        message = f"only the turns of {stored.session.id} were kept, which its tool cannot read"
        raise ConflictError(message, hint="--to DIR writes them as JSON lines")
    name = (
        Path(state.path).name
        if state.kind == LINES
        else f"{slugify(stored.session.native_id)}.turns.jsonl"
    )
    target = folder.expanduser().absolute() / name if folder else Path(state.path)
    if os.path.lexists(target):
        hint = "--to DIR writes it somewhere else" if folder is None else "name another folder"
        raise ConflictError(f"{target} already exists", hint=hint)
    with home.archive_lock:
        places = _write(home, target, generations(payloads(home, state))[-1])
        if folder is None and state.kind == LINES:
            _resume_from(home, state, places)
    return Restored(stored.session.id, target, target.stat().st_size, state.kind == LINES)


def _archived_as(home: Home, stored: StoredSession) -> Archived | None:
    if stored.file is None:
        return None
    inside = home.archive.find(name_in(stored.file, stored.session.native_id))
    return inside or home.archive.find(stored.file)


def _write(home: Home, target: Path, parts: list[Part]) -> list[tuple[int, int]]:
    places = []
    try:
        with files.named_file(target, territory(home.settings)) as file:
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


def _resume_from(home: Home, state: Archived, places: list[tuple[int, int]]) -> None:
    """Let ingestion and archiving continue in a restored file where they had stopped."""
    path = Path(state.path)
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        fingerprint = fingerprint_of(file, min(FINGERPRINT_BYTES, stat.st_size))
    pack = open_pack(home, state)
    stored_cursor = home.sessions.cursor(state.path)
    if pack is None:
        return
    end = stat.st_size
    pack.append([Fresh(end, end, Payload(b""), stat.st_mtime_ns)])
    with home.transaction():
        after = replace(state, inode=stat.st_ino, fingerprint=fingerprint, changed=stat.st_mtime_ns)
        remember(home, after, pack)
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


def _tool(tool: str, states: list[Archived]) -> ArchivedTool:
    times = [state.changed for state in states]
    return ArchivedTool(
        tool,
        len(states),
        sum(not Path(state.path).exists() for state in states),
        sum(state.raw for state in states),
        sum(state.size for state in states),
        *(at_ms(max(0, time) // 1_000_000) for time in (min(times), max(times))),
    )


def is_cut(home: Home, state: Archived) -> bool:
    """Return True if a pack's file is missing or too short. Its content is not read."""
    try:
        return (folder_of(home) / (state.pack or "")).stat().st_size < state.size
    except OSError:
        return True


def damage(home: Home, state: Archived) -> str | None:
    """Describe a pack's damage, or return ``None`` if it is intact."""
    try:
        pack = packs.load(folder_of(home) / (state.pack or ""), thorough=True)
        if pack.end < state.size:
            return f"the last {state.size - pack.end:,} bytes of its pack are lost"
    except NacreError as error:
        return error.message
    return None
