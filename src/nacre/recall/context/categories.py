"""Core, active, preferences, recent: how memories share the budget of a session's start (seed facts 1.2.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cmp_to_key

from nacre.model.context import Part
from nacre.model.memory import Expiry, Kind, Memory

_LEAST_RECENT = 0.20
_BOUNDS = {Part.ACTIVE: (0.10, 0.30), Part.PREFERENCES: (0.20, 0.40)}
_ALIKE = 0.05
"""Recent memories whose scores differ by no more stand by date."""

SHARING = (Part.ACTIVE, Part.PREFERENCES, Part.RECENT)
"""What shares the budget; core memories come before, and are not counted."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may be told, with the tokens that it takes and its score."""

    memory: Memory
    tokens: int
    score: float

    @property
    def part(self) -> Part:
        """Where it belongs."""
        return part_of(self.memory)

    @property
    def updated(self) -> datetime:
        """When it changed last."""
        return self.memory.updated


@dataclass(frozen=True, slots=True)
class Chosen:
    """What fits, in the order in which it is told, and what does not."""

    kept: tuple[Candidate, ...]
    left: tuple[Candidate, ...]


def part_of(memory: Memory) -> Part:
    """Core by its expiry; todos are active; preferences and decisions belong together; the rest is recent."""
    if memory.expiry is Expiry.CORE:
        return Part.CORE
    if memory.kind is Kind.TODO:
        return Part.ACTIVE
    return Part.PREFERENCES if memory.kind in (Kind.PREFERENCE, Kind.DECISION) else Part.RECENT


def shares(counts: Mapping[Part, int]) -> dict[Part, float]:
    """The share of the budget of each part, by how many memories it has; the shares add up to 1.

    A part that has none gets nothing; what the others leave is for what is recent, at least a fifth.
    """
    total = sum(counts.get(part, 0) for part in SHARING)
    if not total:
        return {Part.ACTIVE: 0.0, Part.PREFERENCES: 0.0, Part.RECENT: 1.0}
    found = {
        part: min(max(counts.get(part, 0) / total, least), most) if counts.get(part) else 0.0
        for part, (least, most) in _BOUNDS.items()
    }
    found[Part.RECENT] = max(_LEAST_RECENT, 1 - sum(found.values()))
    return found


def choose(candidates: Sequence[Candidate], budget_tokens: int) -> Chosen:
    """What fits the budget: core first, then each part within its share, the rest by score wherever it belongs.

    A part ends with the first memory that does not fit, so that no small one of little worth pushes past a larger one.
    """
    left_tokens = budget_tokens
    kept: list[Candidate] = []
    waiting: list[Candidate] = []
    for item in _by_score([one for one in candidates if one.part is Part.CORE]):
        if item.tokens <= left_tokens:
            kept.append(item)
            left_tokens -= item.tokens
        else:
            waiting.append(item)
    sharing = {part: [one for one in candidates if one.part is part] for part in SHARING}
    parts = shares({part: len(items) for part, items in sharing.items()})
    room = left_tokens
    for part, items in sharing.items():
        ordered = _recent_first(items) if part is Part.RECENT else _by_score(items)
        fitting, beyond = _fill(ordered, min(left_tokens, int(parts[part] * room)))
        kept += fitting
        waiting += beyond
        left_tokens -= sum(item.tokens for item in fitting)
    fitting, beyond = _fill(_by_score(waiting), left_tokens)
    order = list(Part)
    together = sorted((*kept, *fitting), key=lambda item: order.index(item.part))
    return Chosen(tuple(together), tuple(beyond))


def _fill(ordered: Sequence[Candidate], tokens: int) -> tuple[list[Candidate], list[Candidate]]:
    for at, item in enumerate(ordered):
        tokens -= item.tokens
        if tokens < 0:
            return list(ordered[:at]), list(ordered[at:])
    return list(ordered), []


def _by_score(items: Sequence[Candidate]) -> list[Candidate]:
    return sorted(items, key=lambda item: (-item.score, -item.updated.timestamp(), item.memory.id))


def _recent_first(items: Sequence[Candidate]) -> list[Candidate]:
    def compare(one: Candidate, other: Candidate) -> int:
        if abs(one.score - other.score) > _ALIKE:
            return -1 if one.score > other.score else 1
        return (one.updated < other.updated) - (one.updated > other.updated)

    return sorted(_by_score(items), key=cmp_to_key(compare))
