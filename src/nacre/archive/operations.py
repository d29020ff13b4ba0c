"""The archive as its owner sees it: what is in it, whether it is sound, a transcript brought back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from nacre.archive import pack_store
from nacre.archive.keep import is_on
from nacre.archive.reread import generations
from nacre.archive.retention import Leaving, leaving
from nacre.errors import Conflict, NacreError, NotFound, Unavailable
from nacre.home.home import Home
from nacre.home.lookup import find_session
from nacre.home.territory import territory
from nacre.packs import pack as packs
from nacre.packs.pack import LINES, Fresh, Segment
from nacre.packs.payload import Payload
from nacre.platform.named_files import named_file
from nacre.storage.archive import Archived
from nacre.transcripts.file_source import FINGERPRINT_BYTES, fingerprint_of
from nacre.values.reports import OnProgress, Problem, Progress
from nacre.values.session import StoredSession
from nacre.vault.layout import slugify


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
        is_on(home), pack_store.folder_of(home),
        tuple(_tool(tool, found) for tool, found in sorted(by_tool.items(), key=lambda item: -len(item[1]))),
        len(home.archive.due()), sum(state.withheld for state in states), tuple(leaving(home)),
    )  # fmt: skip


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
            told, hint = "it is damaged, and the index does not know it", _way_out(has_transcript=False)
        problems.append(Problem(str(place), told, hint))
    return len(states), problems


def mend(home: Home) -> int:
    """Set damaged packs aside, so that what their transcripts still tell is archived again; returns how many."""
    states = [state for state in home.archive.all() if state.pack]
    damaged = [state for state in states if damage(home, state)]
    unknown = [place for place in _unknown(home, states) if not _is_sound(place)]
    with home.archive_lock:
        for state in damaged:
            left = replace(pack_store.set_aside(home, state), changed=0)
            with home.database.transaction():
                home.archive.save(left, [])
        for place in unknown:
            pack_store.put_aside(place)
    return len(damaged) + len(unknown)


def _way_out(has_transcript: bool) -> str:
    then = ", then nacre ingest archives the transcript again" if has_transcript else "; a backup has it as it was"
    return f"nacre archive verify --repair sets it aside{then}"


def _unknown(home: Home, states: Iterable[Archived]) -> list[Path]:
    """Packs that are there and no transcript is known for."""
    folder = pack_store.folder_of(home)
    known = {folder / state.pack for state in states if state.pack}
    known |= {pack_store.place_for(home, due.tool, due.path) for due in home.archive.due()}  # written anew next
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
        raise NotFound(f"the transcript of {stored.session.id} is not in the archive", hint="nacre archive status")
    if folder is None and state.kind != LINES:
        told = f"only the turns of {stored.session.id} were kept, which its tool cannot read"
        raise Conflict(told, hint="--to DIR writes them as JSON lines")
    name = Path(state.path).name if state.kind == LINES else f"{slugify(stored.session.native_id)}.turns.jsonl"
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
    inside = home.archive.find(pack_store.name_in(stored.file, stored.session.native_id))
    return inside or home.archive.find(stored.file)


def _last_file(home: Home, state: Archived) -> list[tuple[int, Payload]]:
    pairs: Iterable[tuple[Segment, Payload]] = pack_store.payloads(home, state)
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
        raise Unavailable(f"cannot write {target}: {error.strerror}", hint="--to DIR writes it elsewhere") from error
    return places


def _go_on_from(home: Home, state: Archived, places: list[tuple[int, int]]) -> None:
    """The tool may go on with what was restored: reading and archiving then go on, too, where they stood."""
    path = Path(state.path)
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        beginning = fingerprint_of(file, min(FINGERPRINT_BYTES, found.st_size))
    pack = pack_store.open_pack(home, state)
    known = home.sessions.cursor(state.path)
    if pack is None:
        return
    empty = Payload(b"")
    pack.append([Fresh(found.st_size, found.st_size, packs.digest_of(empty.pack()), empty, found.st_mtime_ns)])
    with home.database.transaction():
        after = replace(state, inode=found.st_ino, fingerprint=beginning, changed=found.st_mtime_ns)
        pack_store.remember(home, after, pack)
        if known:
            cursor = known[1]
            offset = next((now for was, now in places if was >= cursor.offset), found.st_size)
            cursor = replace(
                cursor, inode=found.st_ino, offset=offset, size=found.st_size, mtime_ns=found.st_mtime_ns,
                fingerprint=beginning,
            )  # fmt: skip
            home.sessions.move_cursor(state.path, cursor)


def _tool(tool: str, states: list[Archived]) -> ArchivedTool:
    times = [state.changed for state in states]
    return ArchivedTool(
        tool, len(states), sum(not Path(state.path).exists() for state in states), sum(state.raw for state in states),
        sum(state.size for state in states), _moment(min(times)), _moment(max(times)),
    )  # fmt: skip


def _moment(nanoseconds: int) -> datetime:
    return datetime.fromtimestamp(max(0, nanoseconds) // 1_000_000 / 1000, UTC)


def is_cut(home: Home, state: Archived) -> bool:
    """Whether a pack is gone or shorter than it was; its contents are not read."""
    try:
        return (pack_store.folder_of(home) / (state.pack or "")).stat().st_size < state.size
    except OSError:
        return True


def damage(home: Home, state: Archived) -> str | None:
    """What is wrong with a pack."""
    try:
        pack = packs.load(pack_store.folder_of(home) / (state.pack or ""), thorough=True)
        if pack.end < state.size:
            return f"the last {state.size - pack.end:,} bytes of its pack are lost"
        _read_all(pack.payloads(pack_store.finder(home, state.path)))
    except NacreError as error:
        return error.message
    return None


def _read_all(pairs: Iterator[tuple[Segment, Payload]]) -> None:
    for _ in pairs:
        pass
