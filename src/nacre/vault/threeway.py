"""Three-way merge of values, lists and texts. Which side is which never matters: both machines come to the same.

``base`` is what both sides were made from, ``None`` where there was nothing. What only one side changed is taken.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, TypeVar

Value = TypeVar("Value")

_MOST_COMPARISONS = 4_000_000
"""Texts in which more pairs of pieces are alike than that are not merged: it would take seconds."""

_SENTENCE = re.compile(r"(?<=[.!?;。！？；])(\s+)|(\s*\n\s*)")


def merge_value(base: Value, ours: Value, theirs: Value, choose: Callable[[Value, Value], Value]) -> Value:
    """What one side changed, or what both agree on; ``choose`` decides where both changed it."""
    if ours == theirs or theirs == base:
        return ours
    return theirs if ours == base else choose(ours, theirs)


def greatest(one: Any, other: Any) -> Any:
    """One of two values, the same whichever comes first."""
    return max(one, other, key=lambda value: (str(value), repr(value)))


def merge_list(
    base: Sequence[Any], ours: Sequence[Any], theirs: Sequence[Any], key: Callable[[Any], Hashable] = repr,
    merge: Callable[[Any, Any, Any], Any] = lambda _, one, other: greatest(one, other),
) -> list[Any]:  # fmt: skip
    """The union of two lists without what either side took out.

    Where one side holds just the result, its order stays; else what was there before comes first. Of items with the
    same ``key`` that both sides changed, each in its own way, ``merge`` (of base, ours and theirs) makes one: the
    greatest.
    """
    sides = [{key(item): item for item in side} for side in (base, ours, theirs)]
    had, one, other = sides
    kept = [name for name in had if name in one and name in other]
    new = sorted({name for name in (*one, *other) if name not in had}, key=repr)
    items = {
        name: _merged(had.get(name), one.get(name, other.get(name)), other.get(name, one.get(name)), merge)
        for name in (*kept, *new)
    }
    orders = [list(side) for side in (one, other) if side.keys() == items.keys()]
    order = max(orders, key=repr) if orders else [*kept, *new]
    return [items[name] for name in order]


def _merged(base: Any, ours: Any, theirs: Any, merge: Callable[[Any, Any, Any], Any]) -> Any:
    return merge_value(base, ours, theirs, lambda one, other: merge(base, one, other))


def merge_text(base: str, ours: str, theirs: str) -> str | None:
    """Merge texts by lines, and by sentences within lines that both changed; ``None`` where that fails.

    Two changes within one sentence fail: words put together would say what nobody said. So does a merge that would
    change when either side meets it again: where a sentence is said twice, nobody can tell the old one. What both add
    at one place is kept, in alphabetical order.
    """
    merged = _merge_lines(base, ours, theirs)
    if merged is None or any(_merge_lines(base, merged, side) != merged for side in (ours, theirs)):
        return None
    return merged


def _merge_lines(base: str, ours: str, theirs: str) -> str | None:
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    merged = _merge_pieces(*(text.splitlines(keepends=True) for text in (base, ours, theirs)), finer=_merge_sentences)
    return None if merged is None else "".join(merged)


Pieces = list[str]
Finer = Callable[[Pieces, Pieces, Pieces], Pieces | None]


def _merge_sentences(base: Pieces, ours: Pieces, theirs: Pieces) -> Pieces | None:
    pieces = [[part for part in _SENTENCE.split("".join(side)) if part] for side in (base, ours, theirs)]
    return _merge_pieces(*pieces, finer=lambda *_: None)


def _merge_pieces(base: Pieces, ours: Pieces, theirs: Pieces, *, finer: Finer) -> Pieces | None:
    """The diff3 algorithm: between stretches that all three share, at most one side may differ from the base."""
    if _comparisons(base, ours) + _comparisons(base, theirs) > _MOST_COMPARISONS:
        return None
    merged: Pieces = []
    at = (0, 0, 0)
    for starts, length in _shared(base, ours, theirs):
        gaps = [side[begin:end] for side, begin, end in zip((base, ours, theirs), at, starts, strict=True)]
        chosen = _merge_gap(*gaps, finer=finer)
        if chosen is None:
            return None
        merged += chosen + base[starts[0] : starts[0] + length]
        at = (starts[0] + length, starts[1] + length, starts[2] + length)
    return merged


def _merge_gap(base: Pieces, ours: Pieces, theirs: Pieces, *, finer: Finer) -> Pieces | None:
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if not base:
        return _both_added(ours, theirs)
    return finer(base, ours, theirs)


def _both_added(ours: Pieces, theirs: Pieces) -> Pieces | None:
    for less, more in ((ours, theirs), (theirs, ours)):
        rest = iter(more)
        if all(piece in rest for piece in less):
            return more
    if {piece for piece in ours if piece.strip()} & {piece for piece in theirs if piece.strip()}:
        return None
    return [piece for side in sorted((ours, theirs)) for piece in side]


def _shared(base: Pieces, ours: Pieces, theirs: Pieces) -> Iterator[tuple[tuple[int, int, int], int]]:
    """Stretches that all three share: where they begin in each, and how long they are; the end is the last."""
    left, right = (
        list(SequenceMatcher(None, base, side, autojunk=False).get_matching_blocks()) for side in (ours, theirs)
    )
    while left and right:
        one, other = left[0], right[0]
        start = max(one.a, other.a)
        end = min(one.a + one.size, other.a + other.size)
        if start < end:
            yield (start, one.b + start - one.a, other.b + start - other.a), end - start
        shorter = left if one.a + one.size <= other.a + other.size else right
        del shorter[0]
    yield (len(base), len(ours), len(theirs)), 0


def _comparisons(one: Pieces, other: Pieces) -> int:
    counts = Counter(other)
    return sum(counts[piece] for piece in one)
