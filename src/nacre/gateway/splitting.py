"""Answers in parts that a platform takes, cut where a reader would."""

from __future__ import annotations

from collections.abc import Iterator

from nacre.values.gateway.message import Limits

_FENCE = "```"
_LEAST_SHARE = 0.5
"""A part is cut at a paragraph, a line, a sentence or a word as long as it stays this full."""


def split(text: str, limits: Limits) -> list[str]:
    """The parts of a text. A block of code that is cut is closed, and opened again in the next part."""
    return list(_parts(text.strip(), limits))


def _parts(text: str, limits: Limits) -> Iterator[str]:
    opened = ""
    while text:
        text = opened + text
        if length(text, limits) <= limits.characters:
            yield text
            return
        room = limits.characters - len(_FENCE) - 1
        end = _end(text, _fitting(text, room, limits))
        part, text = text[:end].rstrip(), text[end:].lstrip("\n")
        opened = _open_fence(part, limits.characters // 4)
        yield f"{part}\n{_FENCE}" if opened else part


def length(text: str, limits: Limits) -> int:
    """Its length as the platform counts."""
    return len(text.encode("utf-16-le")) // 2 if limits.utf16 else len(text)


def _fitting(text: str, room: int, limits: Limits) -> int:
    """How many characters fit."""
    if not limits.utf16:
        return room
    units = 0
    for at, character in enumerate(text):
        units += 2 if ord(character) > 0xFFFF else 1
        if units > room:
            return at
    return len(text)


def _end(text: str, most: int) -> int:
    least = int(most * _LEAST_SHARE)
    for mark in ("\n\n", "\n", ". ", " "):
        found = text.rfind(mark, least, most)
        if found > 0:
            return found + len(mark)
    return max(1, most)


def _open_fence(part: str, most: int) -> str:
    """The first line of a block of code that the part leaves open, alone where it is longer than ``most``: what is
    repeated in each part must leave room for more."""
    fences = [line.strip() for line in part.splitlines() if line.lstrip().startswith(_FENCE)]
    if len(fences) % 2 == 0:
        return ""
    return f"{fences[-1] if len(fences[-1]) <= most else _FENCE}\n"
