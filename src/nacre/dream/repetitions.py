"""Memories that say the same: clusters in which each says nothing that the one that stays does not hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from nacre.dedup.comparison import compare
from nacre.dedup.coverage import lost
from nacre.dedup.retirement_rules import plain
from nacre.dream.values import Deed, Step
from nacre.platform.fast_dataclass import dataclass
from nacre.values.memory import Memory
from nacre.values.review import Usage
from nacre.values.session import Speaker

MOST_IN_A_CLUSTER = 12
"""Seed facts 1.4."""

_MOST_OF_ONE_SUBJECT = 100
"""So many of one subject are compared, each with each; of more, those said last."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What the vectors say: cosines of pairs of ids, and the model they belong to."""

    cosines: Mapping[frozenset[str], float]
    model: str | None = None


def repeated(memories: Iterable[Memory], usage: Mapping[str, Usage], sight: Sight) -> list[Step]:
    """What goes into another memory: of one kind, one place and one subject, all of them in twos the same."""
    groups: dict[tuple[object, ...], list[Memory]] = defaultdict(list)
    for memory in memories:
        groups[memory.kind, memory.project, memory.inbox, plain(memory.subject)].append(memory)
    found = []
    for group in groups.values():
        latest = sorted(group, key=lambda one: one.last_said, reverse=True)[:_MOST_OF_ONE_SUBJECT]
        for cluster in _clusters(latest, usage, sight):
            keeper, *others = cluster
            ends = tuple(one.id for one in others)
            found.append(Step(Deed.MERGE, ends, keeper.id, keeper.subject, "they say the same"))
    return found


def _clusters(group: Sequence[Memory], usage: Mapping[str, Usage], sight: Sight) -> list[list[Memory]]:
    """Each with the one that stays at its head. Whoever stays holds what each of the others says."""
    left = sorted(group, key=lambda one: _weight(one, usage), reverse=True)
    same = {frozenset((a.id, b.id)) for a, b in combinations(left, 2) if is_same(a, b, sight)}
    found = []
    while len(left) > 1:
        keeper, *rest = left
        cluster = [keeper]
        for one in rest:
            is_near = all(frozenset((one.id, other.id)) in same for other in cluster)
            if is_near and len(cluster) < MOST_IN_A_CLUSTER and holds(keeper, one):
                cluster.append(one)
        left = [one for one in rest if one not in cluster]
        if len(cluster) > 1:
            found.append(cluster)
    return found


def is_same(one: Memory, other: Memory, sight: Sight) -> bool:
    """Whether two memories say the same, whichever is asked about."""
    cosine = sight.cosines.get(frozenset((one.id, other.id)))
    cosines = {} if cosine is None else {other.id: cosine}
    return any(found.repeats for found in compare(one, [other], cosines=cosines, model=sight.model))


def holds(keeper: Memory, one: Memory) -> bool:
    """Whether nothing is lost with a memory: no number, name or denial, no trust, no validity of its own."""
    is_as_sure = keeper.is_vouched >= one.is_vouched and _is_owners(keeper) >= _is_owners(one)
    return is_as_sure and keeper.valid == one.valid and lost(one.content, [keeper.content]) is None


def _weight(memory: Memory, usage: Mapping[str, Usage]) -> tuple[object, ...]:
    """Who stays: the owner's word, then what was said and recalled most, then the latest (seed facts 1.4)."""
    used = usage.get(memory.id, Usage())
    said = len(memory.confirmed) + used.recall_count
    return memory.is_vouched, _is_owners(memory), said, memory.last_said, memory.id


def _is_owners(memory: Memory) -> bool:
    return memory.speaker is Speaker.OWNER
