"""Take what is forgotten out of the archive.

What a transcript says cannot be taken apart turn by turn: of one that holds anything forgotten, the archive keeps what
the index has left of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from nacre.app import packing
from nacre.app.archiving import settle, withhold
from nacre.app.context import Context
from nacre.app.erasing import Affected
from nacre.app.searching_text import Pattern
from nacre.archive.lines import texts_of
from nacre.archive.packs import LINES
from nacre.archive.payload import Payload
from nacre.errors import ArchiveDamaged
from nacre.storage.archive import Archived

__all__ = ["settle", "withdraw", "withdraw_matching"]

_NAME = re.compile(rb'"([^"\\]{6,200})"')


def withdraw(context: Context, found: Affected) -> None:
    """Note which packs must not stay as they are, before anything is deleted; :func:`settle` writes them anew."""
    places = [*found.sessions, *found.turns, *found.untitled]
    if not places or not context.archive.all():
        return
    names = {one.native_id.encode() for one in places}  # ids that are short are a file's own, and found by its path
    for session in found.sessions:
        names |= {place.id.encode() for place in context.erasing.places_in(session.row)}
    for session, rows in found.turns.items():
        gone = set(rows)
        names |= {place.id.encode() for place in context.erasing.places_in(session.row) if place.row in gone}
    files = {one.file for one in places if one.file}
    chosen = [
        state for state in context.archive.all()
        if state.path in files or _holds(context, state, lambda payload: _mentions(payload, names))
    ]  # fmt: skip
    _withhold(context, chosen)


def withdraw_matching(context: Context, match: Pattern) -> None:
    """Keep of transcripts that say something, anywhere, only what the index has."""
    chosen = [
        state for state in context.archive.all()
        if state.kind == LINES and _holds(context, state, lambda payload: _says(payload, match))
    ]  # fmt: skip
    _withhold(context, chosen)
    settle(context)


def _withhold(context: Context, chosen: list[Archived]) -> None:
    with context.database.transaction():
        withhold(context, [(state.tool, state.path) for state in chosen])


def _holds(context: Context, state: Archived, test: Callable[[Payload], bool]) -> bool:
    """Whether any part of a pack passes a test; one that cannot be read might."""
    if state.pack is None:
        return False
    try:
        return any(test(payload) for _, payload in packing.payloads(context, state))
    except ArchiveDamaged:
        return True


def _mentions(payload: Payload, names: set[bytes]) -> bool:
    return not names.isdisjoint(_NAME.findall(payload.text))


def _says(payload: Payload, match: Pattern) -> bool:
    return any(match.search(text) for text in _said(payload))


def _said(payload: Payload) -> Iterator[str]:
    for line in payload.text.split(b"\n"):
        yield from texts_of(line)
