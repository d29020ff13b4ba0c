"""Refuses: why a statement is not worth keeping, if so."""

from __future__ import annotations

import unicodedata

MIN_WIDTH = 20
MAX_CHARACTERS = 700


def size_refusal(content: str, most: int = MAX_CHARACTERS) -> str | None:
    """``short`` or ``long``; a wide character says as much as three narrow ones. ``most``: characters."""
    width = sum(3 if unicodedata.east_asian_width(character) in "WF" else 1 for character in content)
    if width < MIN_WIDTH:
        return "short"
    return "long" if len(content) > most else None
