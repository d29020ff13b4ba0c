"""Core, active, preferences, lessons, recent: how memories share the budget of a session's start (seed facts 1.2.3)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cmp_to_key

from nacre.values.context import Part
from nacre.values.memory import Expiry, Kind, Memory

_LEAST_RECENT = 0.20
_BOUNDS = {Part.ACTIVE: (0.10, 0.30), Part.PREFERENCES: (0.20, 0.40), Part.LESSONS: (0.05, 0.15)}
_CORE_SHARE = 0.4
"""Of the budget, what core memories may take before the others had their shares."""

KNOWN_SHARE = 0.15
"""Of the budget, what older memories may take of what is left in the end."""

_ALIKE = 0.05
"""Recent memories whose scores differ by no more stand by date."""

PERMANENT_DAYS, TEMPORARY_DAYS = 30, 7
_FADING_DAYS = 90
_GOTCHA = "gotcha"
_OF_ALL = 7
"""How much weighs what an agent has to know before it begins, whatever it will be asked (prompts/system-5.md)."""

SHARING = (Part.ACTIVE, Part.PREFERENCES, Part.LESSONS, Part.RECENT)
"""What shares the budget that core memories leave; older ones come after, and neither is counted."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that may be told: where, at how many tokens, with which score."""

    memory: Memory
    part: Part
    tokens: int
    score: float

    @property
    def updated(self) -> datetime:
        """When it changed last."""
        return self.memory.updated


@dataclass(frozen=True, slots=True)
class Chosen:
    """What fits, in the order in which it is told, and what does not."""

    kept: tuple[Candidate, ...]
    left: tuple[Candidate, ...]


def part_of(memory: Memory, now: datetime) -> Part | None:
    """Where a memory belongs; ``None`` where it is told no more.

    Core by its expiry; todos are active; preferences and decisions hold until they are replaced, lessons until they are
    retired. The rest is recent for 30 days, and known before; temporary ones are told for seven days.
    """
    if memory.expiry is Expiry.CORE:
        return Part.CORE
    if memory.kind is Kind.TODO:
        return Part.ACTIVE
    if memory.kind in (Kind.PREFERENCE, Kind.DECISION):
        return Part.PREFERENCES
    if memory.kind is Kind.LESSON or _GOTCHA in memory.tags:
        return Part.LESSONS
    age = now - memory.updated
    if memory.expiry is Expiry.TEMPORARY:
        return Part.RECENT if age <= timedelta(days=TEMPORARY_DAYS) else None
    return Part.RECENT if age <= timedelta(days=PERMANENT_DAYS) else Part.KNOWN


def is_for_every_session(memory: Memory) -> bool:
    """Whether most sessions should know a memory, whatever they are about. Of less weight it is told where it is
    relevant: a writer weighs by this question, and what weighs 6 is of one part (docs/context.md).
    """
    return memory.importance >= _OF_ALL


def weight_of(memory: Memory, now: datetime) -> float:
    """What an older memory weighs: importance, fading with age (seed facts 2.5, with importance for size)."""
    days = max(1.0, (now - memory.updated) / timedelta(days=1))
    return memory.importance / 10 * math.exp(-days / _FADING_DAYS)


def shares(counts: Mapping[Part, int]) -> dict[Part, float]:
    """The share of the budget of each part, by how many memories it has; the shares add up to 1.

    A part that has none gets nothing; what the others leave is for what is recent, at least a fifth.
    """
    total = sum(counts.get(part, 0) for part in SHARING)
    if not total:
        return {**dict.fromkeys(_BOUNDS, 0.0), Part.RECENT: 1.0}
    found = {
        part: min(max(counts.get(part, 0) / total, least), most) if counts.get(part) else 0.0
        for part, (least, most) in _BOUNDS.items()
    }
    most = 1 - _LEAST_RECENT
    scale = min(1.0, most / (sum(found.values()) or most))
    scaled = {part: share * scale for part, share in found.items()}
    return {**scaled, Part.RECENT: 1 - sum(scaled.values())}


def choose(
    candidates: Sequence[Candidate], budget_tokens: int, *, older_share: float = KNOWN_SHARE
) -> Chosen:  # fmt: skip
    """What fits the budget: core and each part within their shares, then the rest by score wherever it belongs, then a
    little of what is older (``older_share`` of the budget).

    A part ends with the first memory that does not fit, so that no small one of little worth pushes past a larger one.
    """
    of = {part: [one for one in candidates if one.part is part] for part in (Part.CORE, *SHARING, Part.KNOWN)}
    has_others = any(of[part] for part in SHARING)
    core_tokens = int(_CORE_SHARE * budget_tokens) if has_others else budget_tokens
    kept, waiting = _each_that_fits(_by_score(of[Part.CORE]), core_tokens)
    parts = shares({part: len(of[part]) for part in SHARING})
    room = budget_tokens - _tokens(kept)
    for part in SHARING:
        ordered = _recent_first(of[part]) if part is Part.RECENT else _by_score(of[part])
        fits, beyond = _fill(ordered, int(parts[part] * room))
        kept += fits
        waiting += beyond
    fits, beyond = _fill(_by_score(waiting), budget_tokens - _tokens(kept))
    kept += fits
    older = min(int(older_share * budget_tokens), budget_tokens - _tokens(kept))
    fits, left = _fill(_by_score(of[Part.KNOWN]), older)
    order = list(Part)
    together = sorted((*kept, *fits), key=lambda item: order.index(item.part))
    return Chosen(tuple(together), (*beyond, *left))


def worthiest(items: Sequence[Candidate], most: int | None) -> list[Candidate]:
    """Return at most so many of them, in their order; all without a bound.

    Each part but the older memories gets an equal share. Places that a part leaves free go to core memories, then to
    what is more important, then to what scores higher.
    """
    ranked = sorted(items, key=_worth)
    share = (most or len(ranked)) // max(1, len({item.part for item in ranked} - {Part.KNOWN}))
    places = {part: share if part is not Part.KNOWN else 0 for part in Part}
    first: list[Candidate] = []
    rest: list[Candidate] = []
    for item in ranked:
        (first if places[item.part] > 0 else rest).append(item)
        places[item.part] -= 1
    kept = [*first, *rest][:most]
    return [item for item in items if item in kept]


def _worth(item: Candidate) -> tuple[bool, int, float, str]:
    return (item.part is not Part.CORE, -item.memory.importance, -item.score, item.memory.id)


def _tokens(items: Sequence[Candidate]) -> int:
    return sum(item.tokens for item in items)


def _each_that_fits(ordered: Sequence[Candidate], tokens: int) -> tuple[list[Candidate], list[Candidate]]:
    """What is to be told always is tried one by one: a long one does not keep the others out."""
    kept: list[Candidate] = []
    beyond: list[Candidate] = []
    for item in ordered:
        (kept if item.tokens <= tokens - _tokens(kept) else beyond).append(item)
    return kept, beyond


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
