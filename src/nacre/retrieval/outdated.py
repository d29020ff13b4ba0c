"""What may be outdated stays a hit, and comes after what was said since."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from nacre.retrieval.memories import ScoredMemory, rescored
from nacre.values.memory import Memory


def newer_first(
    hits: Sequence[ScoredMemory], pairs: Iterable[tuple[str, str]], last_said: Callable[[Memory], datetime]
) -> list[ScoredMemory]:
    """The hits, each older one of ``pairs`` (older, newer) right after the newer one, which takes the better place.

    Of several newer ones the last of ``pairs`` counts. What was ``last_said`` at the same time, or again since, stays
    where it is.
    """
    found = {hit.memory.id: hit for hit in hits}
    follows: dict[str, str] = {}
    for older, newer in pairs:
        if older in found and newer in found and last_said(found[newer].memory) > last_said(found[older].memory):
            follows[older] = newer
    groups: dict[str, list[ScoredMemory]] = {}
    for hit in hits:
        groups.setdefault(_newest(follows, hit.memory.id), []).append(hit)
    return [hit for group in groups.values() for hit in _in_order(group, last_said)]


def _newest(follows: Mapping[str, str], memory_id: str) -> str:
    """The end of a chain of pairs that begins with a memory; each is later than the one before."""
    while memory_id in follows:
        memory_id = follows[memory_id]
    return memory_id


def _in_order(group: Sequence[ScoredMemory], last_said: Callable[[Memory], datetime]) -> list[ScoredMemory]:
    """A group, the latest first, with the group's scores by place."""
    if len(group) == 1:
        return list(group)
    scores = sorted((hit.score for hit in group), reverse=True)
    latest = sorted(group, key=lambda hit: (last_said(hit.memory), hit.memory.id), reverse=True)
    return [rescored(hit, score) for hit, score in zip(latest, scores, strict=True)]
