"""What a platform sends, taken as it should be: other types become nothing, texts and lists have bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

MOST_TEXT = 20_000
"""Characters of one message. No platform allows as many."""
MOST_NAME = 200
MOST_ID = 1_000

_MOST_FILE_NAME = 120
_LARGEST = 2**63
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


def mapping(value: object) -> Mapping[str, Any]:
    """An object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: object, most: int) -> list[Any]:
    """The first items of a list; anything else has none."""
    return value[:most] if isinstance(value, list) else []


def text(value: object, most: int = MOST_TEXT) -> str:
    """A text that can be written as UTF-8, cut where it is too long; anything else is empty."""
    return value[:most].replace("\0", "").encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def whole(value: object) -> int | None:
    """A whole number of at most 64 bits, also where it is written as text."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,19}", value):
        value = int(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool) and -_LARGEST <= value < _LARGEST
    return value if is_whole else None  # type: ignore[return-value] # mypy does not follow the name


def file_name(value: object, default: str) -> str:
    """The name of a file without folders and control characters."""
    name = _NOT_IN_NAMES.sub("_", text(value, MOST_NAME)).strip(" ._")
    return name[-_MOST_FILE_NAME:] or default


def moment(value: object) -> datetime | None:
    """A time in seconds since 1970."""
    seconds = whole(value)
    try:
        return None if not seconds else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
