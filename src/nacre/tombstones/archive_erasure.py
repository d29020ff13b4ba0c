"""Take what is forgotten out of the archive.

What a transcript says cannot be taken apart turn by turn: of one that holds anything forgotten, the archive keeps what
the index has left of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from nacre.archive import pack_store
from nacre.archive.keep import settle, withhold
from nacre.errors import ArchiveDamaged
from nacre.home.home import Home
from nacre.packs.lines import texts_of
from nacre.packs.pack import LINES
from nacre.packs.payload import Payload
from nacre.storage.archive import Archived
from nacre.tombstones.affected import Affected
from nacre.tombstones.text_search import Pattern

__all__ = ["settle", "withdraw", "withdraw_matching"]

_NAME = re.compile(rb'"([^"\\]{6,200})"')


def withdraw(home: Home, found: Affected) -> None:
    """Note which packs must not stay as they are, before anything is deleted; :func:`settle` writes them anew."""
    places = [*found.sessions, *found.turns, *found.untitled]
    if not places or not home.archive.all():
        return
    names = {one.native_id.encode() for one in places}  # ids that are short are a file's own, and found by its path
    for session in found.sessions:
        names |= {place.id.encode() for place in home.erasing.places_in(session.row)}
    for session, rows in found.turns.items():
        gone = set(rows)
        names |= {place.id.encode() for place in home.erasing.places_in(session.row) if place.row in gone}
    files = {one.file for one in places if one.file}
    chosen = [
        state for state in home.archive.all()
        if state.path in files or _holds(home, state, lambda payload: _mentions(payload, names))
    ]  # fmt: skip
    _withhold(home, chosen)


def withdraw_matching(home: Home, match: Pattern) -> None:
    """Keep of transcripts that say something, anywhere, only what the index has."""
    chosen = [
        state for state in home.archive.all()
        if state.kind == LINES and _holds(home, state, lambda payload: _says(payload, match))
    ]  # fmt: skip
    _withhold(home, chosen)
    settle(home)


def _withhold(home: Home, chosen: list[Archived]) -> None:
    with home.database.transaction():
        withhold(home, [(state.tool, state.path) for state in chosen])


def _holds(home: Home, state: Archived, test: Callable[[Payload], bool]) -> bool:
    """Whether any part of a pack passes a test; one that cannot be read might."""
    if state.pack is None:
        return False
    try:
        return any(test(payload) for _, payload in pack_store.payloads(home, state))
    except ArchiveDamaged:
        return True


def _mentions(payload: Payload, names: set[bytes]) -> bool:
    return not names.isdisjoint(_NAME.findall(payload.text))


def _says(payload: Payload, match: Pattern) -> bool:
    return any(match.search(text) for text in _said(payload))


def _said(payload: Payload) -> Iterator[str]:
    for line in payload.text.split(b"\n"):
        yield from texts_of(line)
