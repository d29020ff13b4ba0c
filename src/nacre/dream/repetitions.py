"""Memories that are written alike: one of them stays.

Whoever looks at what a dream did was not there: so only what reads the same is the same. Words in another order, in
another case, another sign or a small word more are another statement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nacre.dream.values import DreamAction, Step
from nacre.memories.quality import is_protected
from nacre.text.alike import written
from nacre.values.memory import Memory
from nacre.values.review import Usage
from nacre.values.session import Speaker


def repeated(memories: Iterable[Memory], usage: Mapping[str, Usage], protected: Sequence[str]) -> list[Step]:
    """What goes into another memory: of one kind and place, and written alike. What is protected may only stay."""
    groups: dict[tuple[object, ...], list[Memory]] = defaultdict(list)
    for memory in memories:
        groups[memory.kind, memory.project, memory.inbox, written(memory.content)].append(memory)
    found = []
    for group in groups.values():
        keeper, *others = sorted(
            group, key=lambda one: (is_protected(one, protected), *weight(one, usage)), reverse=True
        )
        ends = tuple(one.id for one in others if holds(keeper, one) and not is_protected(one, protected))
        if ends:
            found.append(Step(DreamAction.MERGE, ends, keeper.id, keeper.subject, "they are written alike"))
    return found


def holds(keeper: Memory, one: Memory) -> bool:
    """Whether nothing is lost with a memory: it says nothing else, and neither more surely nor of another time."""
    is_as_sure = is_told_alike(keeper, one) and is_owners(keeper) >= is_owners(one)
    return is_as_sure and written(keeper.content) == written(one.content)


def is_told_alike(one: Memory, other: Memory) -> bool:
    """Whether two memories are as sure, hold as long, and are told to the same people in the same places."""
    keys = {one.canonical_key, other.canonical_key} - {None}
    return len(keys) < 2 and _told(one) == _told(other)


def _told(one: Memory) -> tuple[object, ...]:
    return (
        one.trust, one.proposed, one.scope, one.valid, one.expiry, one.expires_on, set(one.triggers),
        set(one.suppressed_contexts),
    )  # fmt: skip


def weight(memory: Memory, usage: Mapping[str, Usage]) -> tuple[Any, ...]:
    """Who stays, the highest: the owner's word, then what was said and recalled most, then the latest (seed facts
    1.4)."""
    used = usage.get(memory.id, Usage())
    said = len(memory.confirmed) + used.recall_count
    return memory.is_vouched, is_owners(memory), said, memory.last_said, memory.id


def is_owners(memory: Memory) -> bool:
    """Whether the owner said it."""
    return memory.speaker is Speaker.OWNER
