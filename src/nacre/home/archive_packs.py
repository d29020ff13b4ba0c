"""Packs of one home: where they lie, how they are opened, and what is known of them."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from nacre.base import files
from nacre.errors import ArchiveDamaged, NacreError
from nacre.home.home import Home
from nacre.store import packs
from nacre.store.packs import CleanAll, Pack, Payload, Segment, Title, clean_lines, clean_whole
from nacre.store.sessions import Archived, Part

FOLDER = "archive"
DAMAGED = ".damaged"
_INSIDE = "::"


def folder_of(home: Home) -> Path:
    """Where the archive lies."""
    return home.settings.home / FOLDER


def place_for(home: Home, tool: str, path: str) -> Path:
    """Where the pack of a transcript is to lie."""
    name = hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
    return folder_of(home) / tool / f"{name}{packs.SUFFIX}"


def name_in(path: str, native_id: str) -> str:
    """What stands for one session of a database, where a transcript's path stands otherwise."""
    return f"{path}{_INSIDE}{native_id}"


def rows_of(home: Home, state: Archived) -> list[int]:
    """The sessions in the index that were read from what this is archived of."""
    path, _, native_id = state.path.partition(_INSIDE)
    if not native_id:
        return home.archive.sessions_of(state.tool, path)
    found = home.sessions.find(
        f"{state.tool}:{native_id}"
    )  # one of thousands: they are not all looked at for it
    return [one.row for one in found if one.file == path and one.session.native_id == native_id]


def open_pack(home: Home, state: Archived) -> Pack | None:
    """The pack of a transcript, if it has one. Raises ArchiveDamaged."""
    if state.pack is None:
        return None
    pack = packs.load(folder_of(home) / state.pack)
    if pack.end < state.size:
        raise ArchiveDamaged(f"{pack.place} is damaged", hint="nacre archive verify")
    return pack


def finder(home: Home, path: str, *, beside: bool = True) -> Callable[[bytes], Payload | None]:
    """How to find what a segment of another transcript's pack holds."""

    def find(digest: bytes) -> Payload | None:
        holder = home.archive.holder(digest, beside=path if beside else "")
        if holder is None:
            return None
        pack = packs.load(folder_of(home) / holder)
        own = next((one for one in pack.segments if one.digest == digest and not one.is_copy), None)
        return pack.payload(own, lambda _: None) if own else None

    return find


def payloads(home: Home, state: Archived) -> Iterator[tuple[Segment, Payload]]:
    """What is archived of a transcript, segment by segment. Raises ArchiveDamaged."""
    pack = open_pack(home, state)
    if pack:
        yield from pack.payloads(finder(home, state.path))


def remember(home: Home, state: Archived, pack: Pack) -> Archived:
    """Tell the database what a pack holds."""
    segments = pack.segments
    saved = replace(
        state,
        tool=pack.title.tool,
        kind=pack.title.kind,
        pack=pack.place.relative_to(folder_of(home)).as_posix(),
        size=pack.end,
        until=segments[-1].until if segments else 0,
        raw=sum(one.until - one.start for one in segments),
    )
    home.archive.save(
        saved, [Part(one.start, one.until, one.digest, one.is_copy) for one in segments]
    )
    return saved


def drop(home: Home, state: Archived) -> Archived:
    """Delete the pack of a transcript; what others need of it is written into theirs first."""
    if state.pack is None:
        return state
    give_up(home, state)
    (folder_of(home) / state.pack).unlink(missing_ok=True)
    left = replace(state, pack=None, until=0, size=0, raw=0)
    with home.database.transaction():
        home.archive.save(left, [])
    return left


def give_up(home: Home, state: Archived) -> None:
    """Before a pack is deleted or written anew: whoever relies on what it holds gets it of their own."""
    for path in home.archive.copies(state.path):
        other = home.archive.find(path)
        if other is None or other.pack is None:
            continue
        pack = open_pack(home, other)
        if pack:
            rewrite(home, other, pack, lambda payload: payload, finder(home, path))


def rewrite(
    home: Home,
    state: Archived,
    pack: Pack,
    change: Callable[[Payload], Payload],
    find: Callable[[bytes], Payload | None],
) -> Archived:
    """Write a pack anew with all its bytes, each payload as ``change`` makes it."""

    def fresh() -> Iterator[packs.Fresh]:
        for segment, payload in pack.payloads(find):
            new = change(payload)
            yield packs.Fresh(
                segment.start, segment.until, packs.digest_of(new.pack()), new, segment.changed
            )

    anew = packs.create(pack.place, pack.title, fresh())
    with home.database.transaction():
        return remember(home, state, anew)


def clean(home: Home, state: Archived, clean_all: CleanAll, *, dry_run: bool) -> bool:
    """Take out of a pack what the present rules know; returns whether there is anything. A damaged one stays.

    Raises StoreBusy while another process archives.
    """

    def cleaned(payload: Payload) -> Payload:
        new = (
            clean_lines(payload.text, clean_all)
            if _is_lines(payload.text)
            else clean_whole(payload.text, clean_all)
        )
        if new is None or new.text == payload.text:
            return payload
        return Payload(new.text, tuple(sorted((dict(new.lengths) | dict(payload.lengths)).items())))

    with home.archive_lock:
        try:
            pack = open_pack(home, state)
            find = finder(home, state.path)
            is_dirty = pack is not None and any(
                cleaned(payload) != payload for _, payload in pack.payloads(find)
            )
            if is_dirty and pack and not dry_run:
                give_up(home, state)
                rewrite(home, state, pack, cleaned, find)
        except ArchiveDamaged:
            return False
    return is_dirty


def _is_lines(text: bytes) -> bool:
    first = text.lstrip().partition(b"\n")[0].rstrip()
    return first[:1] == b"{" and first[-1:] == b"}"


def set_aside(home: Home, state: Archived) -> Archived:
    """Keep a damaged pack under another name, and know nothing of it any more."""
    if state.pack:
        put_aside(folder_of(home) / state.pack)
    return replace(state, pack=None, until=0, size=0, raw=0)


def put_aside(place: Path) -> None:
    """Give a pack the name of a damaged one; one that is gone is fine."""
    with contextlib.suppress(FileNotFoundError):
        place.replace(place.with_name(place.name + DAMAGED))


def sweep(home: Home) -> None:
    """Remove what processes that were killed left of packs. Call it with the lock of the archive."""
    with contextlib.suppress(OSError):
        for tool in folder_of(home).iterdir():
            files.sweep(tool)


def read_index(home: Home) -> list[str]:
    """Tell a new database what the packs hold; returns what is wrong with those that cannot be read."""
    problems: list[str] = []
    folder = folder_of(home)
    for place in sorted(folder.glob(f"*/*{packs.SUFFIX}")) if folder.is_dir() else ():
        try:
            pack = packs.load(place)
        except NacreError as error:
            problems.append(error.message)
            continue
        title = pack.title
        with home.database.transaction():
            changed = pack.segments[-1].changed if pack.segments else 0
            known = home.archive.find(title.path) or Archived(
                title.path, title.tool, title.kind, changed=changed
            )
            remember(home, replace(known, withheld=title.kind == packs.TURNS), pack)
    return problems


def titled(state: Archived, kind: str) -> Title:
    """What is written at the beginning of a transcript's pack."""
    return Title(state.tool, state.path, kind)
