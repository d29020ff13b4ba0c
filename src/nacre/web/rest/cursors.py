"""Cursors: where a list goes on, in a text that its reader need not understand."""

from __future__ import annotations

import base64
import hashlib
from binascii import Error
from collections.abc import Mapping

import msgspec

from nacre.errors import InvalidInput
from nacre.platform import json_values

_MARK_BYTES = 6
_LONGEST = 200


class Cursor(msgspec.Struct, array_like=True, frozen=True):
    """A list goes on after ``skip`` items, of which ``last`` is the last one, as :func:`name_of` names it."""

    skip: int
    mark: str
    last: str = ""


class _Record(msgspec.Struct):
    id: str | int | None = None
    memory: msgspec.Raw | None = None


def mark(path: str, asked: Mapping[str, object]) -> str:
    """A short text for what is asked for: a cursor of another question is refused by it."""
    return hashlib.blake2b(msgspec.json.encode([path, asked], order="sorted"), digest_size=_MARK_BYTES).hexdigest()


def name_of(record: msgspec.Raw) -> str:
    """A short text for a record: by its id or that of its memory, else by all that it says."""
    key = bytes(record)
    if key.startswith(b"{"):
        found = json_values.parse(record, _Record)
        if found.id is not None:
            key = msgspec.json.encode(found.id)
        elif found.memory is not None and bytes(found.memory).startswith(b"{"):
            return name_of(found.memory)
    return hashlib.blake2b(key, digest_size=_MARK_BYTES).hexdigest()


def write(cursor: Cursor) -> str:
    """The text of a cursor."""
    return base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def read(cursor: str, marked: str) -> Cursor:
    """What a text says. Raises InvalidInput for what is no cursor, or none of what is marked so."""
    try:
        if len(cursor) > _LONGEST:
            raise ValueError("it is too long")
        found = json_values.parse(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), Cursor)
    except (ValueError, Error, msgspec.DecodeError) as error:
        raise InvalidInput(
            f"{cursor[:40]!r} is no cursor", hint="take the address that Link: rel=next names"
        ) from error
    if found.mark != marked or found.skip < 0:
        raise InvalidInput("this cursor belongs to another question", hint="change nothing but the limit between pages")
    return found
