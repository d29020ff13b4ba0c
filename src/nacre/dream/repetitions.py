"""Memories that are written alike: one of them stays.

Whoever looks at what a dream did was not there: so only what reads the same is the same. Words in another order, in
another case, another sign or a small word more are another statement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from nacre.dream.values import DreamAction, Step
from nacre.text.alike import written
from nacre.values.memory import Memory
from nacre.values.review import Usage
from nacre.values.session import Speaker


def repeated(memories: Iterable[Memory], usage: Mapping[str, Usage]) -> list[Step]:
    """What goes into another memory: of one kind and place, and written alike."""
    groups: dict[tuple[object, ...], list[Memory]] = defaultdict(list)
    for memory in memories:
        groups[memory.kind, memory.project, memory.inbox, written(memory.content)].append(memory)
    found = []
    for group in groups.values():
        keeper, *others = sorted(group, key=lambda one: weight(one, usage), reverse=True)
        ends = tuple(one.id for one in others if holds(keeper, one))
        if ends:
            found.append(Step(DreamAction.MERGE, ends, keeper.id, keeper.subject, "they are written alike"))
    return found


def holds(keeper: Memory, one: Memory) -> bool:
    """Whether nothing is lost with a memory: it says nothing else, and neither more surely nor of another time."""
    is_as_sure = keeper.is_vouched == one.is_vouched and is_owners(keeper) >= is_owners(one)
    return is_as_sure and keeper.valid == one.valid and written(keeper.content) == written(one.content)


def weight(memory: Memory, usage: Mapping[str, Usage]) -> tuple[Any, ...]:
    """Who stays, the highest: the owner's word, then what was said and recalled most, then the latest (seed facts
    1.4)."""
    used = usage.get(memory.id, Usage())
    said = len(memory.confirmed) + used.recall_count
    return memory.is_vouched, is_owners(memory), said, memory.last_said, memory.id


def is_owners(memory: Memory) -> bool:
    """Whether the owner said it."""
    return memory.speaker is Speaker.OWNER
