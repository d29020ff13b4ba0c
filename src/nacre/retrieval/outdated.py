"""What is likely to be outdated is told below what says otherwise, and takes no place of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from nacre.retrieval.memories import ScoredMemory
from nacre.values.memory import Memory


def fold(
    hits: Sequence[ScoredMemory], doubts: Iterable[tuple[str, str]], last_said: Callable[[Memory], datetime]
) -> list[ScoredMemory]:
    """The hits, each older one of ``doubts`` (older, newer) told by the newer one where that is a hit, too.

    The newer one stands where the better of the two stood, and has that one's score. Of several newer ones the last of
    ``doubts`` tells it; what told others and is itself doubted hands them on. What was
    ``last_said`` at the same time, or again since, stays apart.
    """
    found = {hit.memory.id: hit for hit in hits}
    carrier: dict[str, str] = {}
    for older, newer in doubts:
        if older in found and newer in found and _is_later(found[newer], found[older], last_said):
            carrier[older] = newer
    stands: dict[str, list[ScoredMemory]] = {}
    for hit in hits:
        stands.setdefault(_newest(carrier, hit.memory.id), []).append(hit)
    return [_told(found[newest], group, last_said) for newest, group in stands.items()]


def _is_later(one: ScoredMemory, other: ScoredMemory, last_said: Callable[[Memory], datetime]) -> bool:
    return last_said(one.memory) > last_said(other.memory)


def _newest(carrier: Mapping[str, str], memory_id: str) -> str:
    """The end of a chain of doubts that begins with a memory; each is later than the one before."""
    while memory_id in carrier:
        memory_id = carrier[memory_id]
    return memory_id


def _told(newest: ScoredMemory, group: Sequence[ScoredMemory], last_said: Callable[[Memory], datetime]) -> ScoredMemory:
    """The newest of a group, the best first, with the others below it: the latest first."""
    if len(group) == 1:
        return newest
    older = sorted((hit.memory for hit in group if hit is not newest), key=lambda one: (last_said(one), one.id))
    score = group[0].score
    components = newest.components if newest is group[0] else {**newest.components, "may_replace": round(score, 4)}
    return replace(newest, score=max(score, newest.score), components=components, may_replace=tuple(reversed(older)))
