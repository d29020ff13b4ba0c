"""Read what a platform sent: of any size and shape, until it was looked at."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

MOST_TEXT = 20_000
"""Characters of one message. No platform allows as many."""

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_LARGEST = 2**63
_MOST_FILE_NAME = 120
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f/\\:]+")


class LeftOut:
    """Counts what could not be read, and tells of the first."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.count = 0
        self._tell = tell

    def note(self, what: str) -> None:
        """One more."""
        self.count += 1
        if self.count == 1:
            self._tell(f"{what} could not be read and was left out; further ones are left out in silence")


def decode(data: str | bytes) -> Any:
    """The JSON in a text. Raises ValueError where it is none."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError("no JSON") from error


def decode_object(data: str | bytes) -> Mapping[str, Any]:
    """The JSON object in a text. Raises ValueError where it is none."""
    found = decode(data)
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def text(values: Mapping[str, Any], key: str, most: int = 200) -> str:
    """A text, cut to ``most`` characters; empty where there is none."""
    found = values.get(key)
    return found[:most].replace("\0", "") if isinstance(found, str) else ""


def number(values: Mapping[str, Any], key: str) -> float | None:
    """A number that is not negative and finite."""
    found = values.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found) if 0 <= found < 1e15 else None


def whole(value: object) -> int | None:
    """A whole number of at most 64 bits, also where it is written as text."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if -_LARGEST <= value < _LARGEST else None


def moment(values: Mapping[str, Any], key: str) -> datetime | None:
    """A time in seconds since 1970."""
    seconds = whole(values.get(key))
    try:
        return None if not seconds else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def file_name(values: Mapping[str, Any], key: str, default: str) -> str:
    """The name of a file without folders and control characters."""
    return _NOT_IN_NAMES.sub("_", text(values, key)).strip(" ._")[-_MOST_FILE_NAME:] or default


def mapping(values: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """An object; an empty one where there is none."""
    found = values.get(key)
    return found if isinstance(found, dict) else {}


def mappings(values: Mapping[str, Any], key: str, most: int = 50) -> list[Mapping[str, Any]]:
    """The objects of a list, ``most`` at most."""
    found = values.get(key)
    return [one for one in found[:most] if isinstance(one, dict)] if isinstance(found, list) else []


def identifier(values: Mapping[str, Any], key: str) -> str:
    """An id of the platform's, fit to stand in an address. Raises ValueError where it is none."""
    found = values.get(key)
    if not isinstance(found, str) or not _ID.fullmatch(found):
        raise ValueError(f"{key} is no id")
    return found
