"""What is likely to be outdated comes after what says otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Hit = TypeVar("Hit")


def newer_first(hits: Sequence[Hit], doubts: Iterable[tuple[str, str]], key: Callable[[Hit], str]) -> list[Hit]:
    """The hits, each newer one of ``doubts`` (older, newer) right before the older one where it came after it."""
    ordered = list(hits)
    for older, newer in doubts:
        places = {key(hit): place for place, hit in enumerate(ordered)}
        if places.get(older, len(ordered)) < places.get(newer, -1):
            ordered.insert(places[older], ordered.pop(places[newer]))
    return ordered
