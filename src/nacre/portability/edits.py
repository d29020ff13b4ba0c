"""Notes that were edited since they were imported: a statement that is gone from a file, and the new one like it.

A statement has no name, and is known by its words. So an edit takes one away and brings another; which belongs to
which, their words tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

from nacre.home.home import Home
from nacre.portability.sources.shape import ORIGIN, words_hash
from nacre.text.passages import words
from nacre.values.memory import Memory

_ALIKE = 0.6
"""The share of words, in their order, that an edited statement keeps."""

_STATEMENT = "#"


def origin_of(memory: Memory) -> Mapping[str, str]:
    """Where a memory was imported from; nothing where it was not."""
    value = memory.extra.get(ORIGIN)
    return value if isinstance(value, dict) else {}


def is_untouched(memory: Memory) -> bool:
    """Whether a memory's words are those it was imported with."""
    return words_hash(memory.content) == origin_of(memory).get("hash")


def edited_statements(home: Home, source: str, offered: Sequence[Memory]) -> dict[str, Memory]:
    """By the id of a statement that is offered: the one here that it was before, unless it was edited here, too."""
    keys = {origin_of(memory).get("id", "") for memory in offered}
    statements = [memory for memory in offered if _file_of(memory)]
    present = [
        memory
        for memory in home.memories.of_files({_file_of(memory) for memory in statements})
        if origin_of(memory).get("from") == source and _file_of(memory)
    ]
    held = {origin_of(memory)["id"] for memory in present}
    gone = [memory for memory in present if origin_of(memory)["id"] not in keys and is_untouched(memory)]
    new = [memory for memory in statements if origin_of(memory)["id"] not in held]
    likeness = sorted(
        (
            (share, one.id, other)
            for one in new
            for other in gone
            if _file_of(one) == _file_of(other) and (share := _likeness(one, other)) >= _ALIKE
        ),
        key=lambda found: (-found[0], found[1], found[2].id),
    )
    pairs: dict[str, Memory] = {}
    for _, memory_id, other in likeness:
        if memory_id not in pairs and all(one.id != other.id for one in pairs.values()):
            pairs[memory_id] = other
    return pairs


def _file_of(memory: Memory) -> str:
    """The file that a statement stands in; empty for a memory that is a file of its own."""
    file, mark, _ = origin_of(memory).get("id", "").rpartition(_STATEMENT)
    return file if mark and file == memory.source.file else ""


def _likeness(one: Memory, other: Memory) -> float:
    return SequenceMatcher(None, words(one.content), words(other.content), autojunk=False).ratio()
