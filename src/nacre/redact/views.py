"""A text as it reads once its escapes are undone, and where in the text each part of that lies.

What a rule finds there is replaced in the text itself, so that every rule holds for texts that were percent-encoded,
written for HTML or escaped for JSON.
"""

from __future__ import annotations

import binascii
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from html import entities
from urllib.parse import unquote_to_bytes

_ENTITY = re.compile(rb"&(?:#(?:[0-9]{1,7}|[xX][0-9A-Fa-f]{1,6})|[A-Za-z][A-Za-z0-9]{1,30});")
_PERCENT = re.compile(rb"(?:%(?:25){0,3}[0-9A-Fa-f]{2})+")
_UNICODE = re.compile(rb"(?:\\{1,4}u[0-9A-Fa-f]{4})+")
_UNIT = re.compile(rb"u([0-9A-Fa-f]{4})")
_BASE64 = re.compile(rb"(?:[A-Za-z0-9+/]{4}){6,}(?:[A-Za-z0-9+/]{2,3})?={0,2}")
_IN_BASE64 = re.compile(rb"[A-Za-z0-9+/]")
_BASE64_LEAST, _BASE64_MOST = 48, 40_000
BASE64_TEXT = rb"(?:[CDI-Za-f][A-Za-z0-9+/]{3}){6}"
"""How text in base64 begins: every third byte of it is printable or breaks a line."""

_TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]+")
_GREATEST = 0x10FFFF


class View:
    """What a text says with its escapes undone."""

    __slots__ = ("_escapes", "_starts", "text")

    def __init__(self, data: bytes, pattern: re.Pattern[bytes], decode: Callable[[bytes], bytes]) -> None:
        """Undo what the pattern finds."""
        pieces: list[bytes] = []
        self._escapes: list[tuple[int, int, int]] = []
        self._starts: list[int] = []
        position = length = 0
        for found in pattern.finditer(data):
            before, plain = data[position : found.start()], decode(found[0])
            pieces += (before, plain)
            length += len(before)
            self._starts.append(length)
            length += len(plain)
            self._escapes.append((length, found.start(), found.end()))
            position = found.end()
        self.text = b"".join((*pieces, data[position:]))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where in the original a part of this lies; an escape is never cut."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, at: int) -> tuple[int, int]:
        number = bisect_right(self._starts, at) - 1
        if number < 0:
            return at, at + 1
        stop, start, end = self._escapes[number]
        return (start, end) if at < stop else (end + at - stop, end + at - stop + 1)


def _from_entity(escape: bytes) -> bytes:
    name = escape[1:-1].decode()
    if name[0] == "#":
        code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    else:
        code = 0x27 if name == "apos" else entities.name2codepoint.get(name, 0)
    return chr(code).encode("utf-8", "surrogatepass") if 0 < code <= _GREATEST else escape


def _from_percent(escape: bytes) -> bytes:
    while b"%25" in escape:  # encoded more than once
        escape = escape.replace(b"%25", b"%")
    return unquote_to_bytes(escape)


def _from_unicode(escape: bytes) -> bytes:
    units = b"".join(int(unit, 16).to_bytes(2, "big") for unit in _UNIT.findall(escape))
    return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")


_WAYS: Mapping[bytes, tuple[re.Pattern[bytes], Callable[[bytes], bytes]]] = {
    b"&": (_ENTITY, _from_entity),
    b"%": (_PERCENT, _from_percent),
    b"\\": (_UNICODE, _from_unicode),
}

VIEW_HINTS = frozenset(_WAYS)
"""The hints that a text may say more once it is decoded."""


def view(data: bytes, hint: bytes) -> View:
    """A text decoded in the way that one of the hints calls for."""
    return View(data, *_WAYS[hint])


def decode_base64(data: bytes, place: int) -> tuple[int, int, bytes] | None:
    """What is written in base64 from a place on, and where that lies; ``None`` where it is no text."""
    if place and _IN_BASE64.match(data, place - 1):
        return None
    if _find_plain(data, place, _BASE64_LEAST) is None:  # the beginning tells images and the like at little cost
        return None
    found = _find_plain(data, place, _BASE64_MOST)
    return (place, *found) if found and _is_utf8(found[1]) else None


def _find_plain(data: bytes, place: int, most: int) -> tuple[int, bytes] | None:
    found = _BASE64.match(data, place, place + most)
    plain = _plain(found[0]) if found else b""
    return (found.end(), plain) if found and _TEXT.fullmatch(plain) else None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _plain(encoded: bytes) -> bytes:
    body = encoded.rstrip(b"=")
    whole = len(body) - (len(body) % 4 == 1)
    return binascii.a2b_base64(body[:whole] + b"=" * (-whole % 4))
