"""The packs in a home's archive: their paths, and functions that open, rewrite and index them."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from nacre.base import files
from nacre.errors import DamagedArchiveError, NacreError
from nacre.home.home import Home
from nacre.store import packs
from nacre.store.packs import CleanAll, Pack, Payload, Segment, Title, clean_whole
from nacre.store.sessions import Archived

FOLDER = "archive"
DAMAGED = ".damaged"
_INSIDE = "::"


def folder_of(home: Home) -> Path:
    """Return the archive's folder."""
    return home.settings.home / FOLDER


def place_for(home: Home, tool: str, path: str) -> Path:
    """Return the path where a transcript's pack is stored."""
    name = hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return folder_of(home) / tool / f"{name}{packs.SUFFIX}"


def name_in(path: str, native_id: str) -> str:
    """Return a name for a session in a host's database.

    It is used like the path of a transcript.
    """
    return f"{path}{_INSIDE}{native_id}"


def rows_of(home: Home, state: Archived) -> list[int]:
    """Return the rows of sessions that were read from an archived transcript."""
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
    """Return a transcript's pack, or ``None`` if it has no pack. Raises DamagedArchiveError."""
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
    """Record a pack's contents in the index."""
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
    """Delete a transcript's pack."""
    if state.pack is None:
        return state
    (folder_of(home) / state.pack).unlink(missing_ok=True)
    dropped = replace(state, pack=None, until=0, size=0, raw=0)
    with home.transaction():
        home.archive.save(dropped)
    return dropped


def write(
    home: Home, state: Archived, kind: str, segments: Iterable[packs.Fresh], *, durable: bool = True
) -> Pack:
    """Write a transcript's pack. It replaces the previous pack, if any."""
    title = Title(state.tool, state.path, kind)
    place = folder_of(home) / state.pack if state.pack else None
    place = place or place_for(home, state.tool, state.path)
    return packs.create(place, title, segments, durable=durable)


def clean(home: Home, state: Archived, clean_all: CleanAll, *, dry_run: bool) -> bool:
    """Redact a pack with the current rules. Return True if it contained secrets.

    Damaged packs are skipped. Raises StoreBusyError while another process archives.
    """

    def cleaned(payload: Payload) -> Payload:
        new = (
            packs.Cleaner(clean_all).lines(payload.text)
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
                    packs.Fresh(segment.start, segment.until, cleaned(payload), segment.changed)
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
    """Rename a transcript's damaged pack, and return the transcript's state without a pack."""
    if state.pack:
        put_aside(folder_of(home) / state.pack)
    return replace(state, pack=None, until=0, size=0, raw=0)


def put_aside(place: Path) -> None:
    """Rename a damaged pack. A missing pack is ignored."""
    with contextlib.suppress(FileNotFoundError):
        place.replace(place.with_name(place.name + DAMAGED))


def sweep(home: Home) -> None:
    """Delete temporary files left by killed processes. The caller must hold the archive lock."""
    with contextlib.suppress(OSError):
        for tool in folder_of(home).iterdir():
            files.sweep(tool)


def read_index(home: Home) -> list[str]:
    """Index all packs in a new database. Return the problems with unreadable packs."""
    problems: list[str] = []
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
            remember(home, replace(archived, withheld=title.kind == packs.TURNS), pack)
    return problems
