"""What ends by rules alone: memories that were meant for a while, and those that nobody ever asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from nacre.dream.values import DreamAction, Step
from nacre.memories.quality import is_protected
from nacre.platform.days import day_of, shown_day
from nacre.settings import Settings
from nacre.storage.usage import EndingBounds
from nacre.values.memory import Expiry, Kind, Memory
from nacre.values.review import Usage

TEMPORARY_FOR = timedelta(days=130)
"""So long a temporary memory stays that is not recalled. The seed means it (its documents), and computes otherwise
(seed facts 1.0)."""

_HALF_LIFE_DAYS = 90.0
_A_RECALL, _MOST_BY_RECALLS = 0.05, 0.3
_FLOORS = ((8, 0.4), (6, 0.15))
"""A memory of so much importance scores so much at least."""

_ANY_IMPORTANCE, _ANY_NUMBER = 11, 2**62


def ending(memories: Sequence[Memory], usage: Mapping[str, Usage], now: datetime, settings: Settings) -> list[Step]:
    """What is over or forgotten, the first such rule for each memory. Open todos stay, whatever their age."""
    protected = settings.texts("forgetting.protect")
    found = []
    for memory in memories:
        if memory.kind is Kind.TODO or memory.expiry is Expiry.CORE or is_protected(memory, protected):
            continue
        used = usage.get(memory.id, Usage())
        step = _over(memory, used, now) or _forgotten(memory, used, now, settings)
        if step:
            found.append(step)
    return found


def bounds(settings: Settings) -> EndingBounds:
    """What :func:`ending` never ends, as a database can tell it: the rest is to be looked at."""
    worth = settings.number("forgetting.score_threshold")
    if worth <= 0 or not settings.flag("forgetting.enabled"):
        return EndingBounds(TEMPORARY_FOR, timedelta(0), 0, 0)
    faded = int(-_HALF_LIFE_DAYS * math.log2(worth))  # so long the age alone scores as much
    return EndingBounds(
        TEMPORARY_FOR,
        timedelta(days=max(0, faded, settings.whole("forgetting.max_age_days"))),
        min((least for least, floor in _FLOORS if floor >= worth), default=_ANY_IMPORTANCE),
        _ANY_NUMBER if worth > _MOST_BY_RECALLS else math.ceil(worth / _A_RECALL),
    )


def _over(memory: Memory, used: Usage, now: datetime) -> Step | None:
    if memory.expires_on and memory.expires_on <= day_of(now):
        return _step(DreamAction.EXPIRE, memory, f"was to be used until {memory.expires_on}")
    last = last_used(memory, used)
    if memory.expiry is Expiry.TEMPORARY and now - last >= TEMPORARY_FOR:
        why = f"was meant for a while, and last said or recalled on {shown_day(last)}"
        return _step(DreamAction.EXPIRE, memory, why)
    return None


def _forgotten(memory: Memory, used: Usage, now: datetime, settings: Settings) -> Step | None:
    last = last_used(memory, used)
    is_young = now - last <= timedelta(days=settings.whole("forgetting.max_age_days"))
    if is_young or not settings.flag("forgetting.enabled"):
        return None
    worth = score(memory, used, now)
    if worth < settings.number("forgetting.score_threshold"):
        why = f"last said or recalled on {shown_day(last)}, importance {memory.importance}, score {worth:.3f}"
        return _step(DreamAction.FORGET, memory, why)
    return None


def _step(action: DreamAction, memory: Memory, why: str) -> Step:
    return Step(action, (memory.id,), None, memory.subject, why)


def score(memory: Memory, used: Usage, now: datetime) -> float:
    """How much speaks against forgetting a memory (seed facts 1.4), 0 to 1.3; its age counts from its last use."""
    days = max(0.0, (now - last_used(memory, used)) / timedelta(days=1))
    own: float = 0.5 ** (days / _HALF_LIFE_DAYS) + min(used.recall_count * _A_RECALL, _MOST_BY_RECALLS)
    return max(own, next((floor for least, floor in _FLOORS if memory.importance >= least), 0.0))


def last_used(memory: Memory, used: Usage) -> datetime:
    """When a memory was last said, written down or recalled."""
    return max(memory.last_said, used.last_recalled) if used.last_recalled else memory.last_said
