"""JSON lines as they really are: glued objects, lone surrogates, many ways to write a time."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from nacre.platform.days import parsed
from nacre.platform.ids import from_ms

T = TypeVar("T")

_RAW_DECODER = json.JSONDecoder()
_MILLISECONDS_FROM = 100_000_000_000
"""Numbers above this are epoch milliseconds, below it seconds (the border is the year 5138, or March 1973)."""


@dataclass(frozen=True, slots=True)
class SplitLine:
    """The objects found on one line, and whether something on it was not JSON."""

    objects: tuple[bytes, ...]
    torn: bool


def split_objects(line: bytes) -> SplitLine:
    """Split a line that may hold several JSON objects glued together."""
    if b"}{" not in line:
        return SplitLine((line,), torn=False)
    try:
        msgspec.json.decode(line)
        return SplitLine((line,), torn=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _split_glued(line.decode("utf-8", errors="replace"))


def _split_glued(text: str) -> SplitLine:
    found: list[bytes] = []
    at = 0
    while at < len(text):
        try:
            _, end = _RAW_DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return SplitLine(tuple(found), torn=True)
        found.append(text[at:end].encode("utf-8", errors="replace"))
        at = end
        while at < len(text) and text[at].isspace():
            at += 1
    return SplitLine(tuple(found), torn=False)


def decode(decoder: msgspec.json.Decoder[T], raw: bytes) -> T | None:
    """Decode one object; ``None`` when it is not valid.

    Lone surrogates in escapes and bytes that are not UTF-8 are replaced rather than refused; NaN and infinities, which
    Python writes, are nothing.
    """
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError:
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        value: Any = json.loads(raw.decode("utf-8", errors="replace"), parse_constant=lambda _: None)
        mended = json.dumps(value, ensure_ascii=False).encode("utf-8", errors="replace")
        return decoder.decode(mended)
    except (ValueError, RecursionError):
        return None


def parse_time(value: object) -> datetime | None:
    """A time as aware UTC, or ``None``: ISO 8601, epoch seconds or milliseconds, as number or digits."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        text = value.strip()
        if not text.replace(".", "", 1).isdigit():
            return parsed(text)
        value = text
    elif not isinstance(value, int | float):
        return None
    try:
        number = float(value)
        return from_ms(round(number if number > _MILLISECONDS_FROM else number * 1000))
    except (OverflowError, ValueError):  # no number, or not a finite one
        return None
