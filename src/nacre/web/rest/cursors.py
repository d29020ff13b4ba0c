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


class _Cursor(msgspec.Struct, array_like=True, frozen=True):
    skip: int
    mark: str


def mark(path: str, asked: Mapping[str, object]) -> str:
    """A short text for what is asked for: a cursor of another question is refused by it."""
    return hashlib.blake2b(msgspec.json.encode([path, asked], order="sorted"), digest_size=_MARK_BYTES).hexdigest()


def write(skip: int, marked: str) -> str:
    """A cursor that goes on after so many items of what is marked so."""
    return base64.urlsafe_b64encode(msgspec.json.encode(_Cursor(skip, marked))).decode().rstrip("=")


def read(cursor: str, marked: str) -> int:
    """How many items a cursor skips. Raises InvalidInput for what is none, or none of what is marked so."""
    try:
        if len(cursor) > _LONGEST:
            raise ValueError("it is too long")
        found = json_values.parse(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)), _Cursor)
    except (ValueError, Error, msgspec.DecodeError) as error:
        raise InvalidInput(
            f"{cursor[:40]!r} is no cursor", hint="take the address that Link: rel=next names"
        ) from error
    if found.mark != marked or found.skip < 0:
        raise InvalidInput("this cursor belongs to another question", hint="change nothing but the limit between pages")
    return found.skip
