"""One memory against others: which of two is later, what the later one means for the earlier one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from nacre.dedup.judge import Rarity, Relation, Verdict, closes, judge
from nacre.embed.calibration import Calibration, Seen, calibration_of
from nacre.values.memory import Kind, Memory
from nacre.values.session import Speaker

APART = "alternative_to"
"""A link of this relation between two memories says that both hold, whatever a comparison finds."""


SUPERSEDES = "supersedes"
"""A link of this relation says which memory another one replaced."""

SPECIALIZES = "specializes"
"""A link of this relation says that a memory is of a special case of another one's: both hold."""

CONTRADICTS = "contradicts"
"""A link of this relation says that another memory is likely to be outdated: a person has to say."""

_BOTH_HOLD = frozenset({APART, SPECIALIZES})

_UNTRUSTED = Verdict(Relation.RELATED, "from an untrusted source")
"""What draws on text from outside ends, closes and confirms nothing that the owner said."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Another memory, how the one in question stands to it, and whether the one in question is the later."""

    other: Memory
    verdict: Verdict
    is_later: bool

    @property
    def replaces(self) -> bool:
        """Whether the one in question takes the other's place."""
        return self.is_later and self.verdict.relation is Relation.SUPERSEDES

    @property
    def is_replaced(self) -> bool:
        """Whether the other one, which is later, says otherwise."""
        return not self.is_later and self.verdict.relation is Relation.SUPERSEDES

    @property
    def doubts(self) -> bool:
        """Whether the one in question makes it likely, and no more, that the other is outdated."""
        return self.is_later and self.verdict.relation is Relation.DOUBTS

    @property
    def is_doubted(self) -> bool:
        """Whether the other one, which is later, makes it likely that this one is outdated."""
        return not self.is_later and self.verdict.relation is Relation.DOUBTS

    @property
    def repeats(self) -> bool:
        """Whether the one in question says nothing that the other does not."""
        return self.verdict.relation is Relation.SAME


def compare(
    memory: Memory, others: Iterable[Memory], *, cosines: Mapping[str, float] | None = None, model: str | None = None,
    seen: Seen | None = None, rarity: Rarity | None = None,
) -> list[Comparison]:  # fmt: skip
    """Compare a memory with others that hold where it does; ``cosines`` are by id, of vectors that ``model`` made.

    ``seen`` is how that sees the probes, where it was not measured; ``rarity`` tells which words are rare.
    """
    limits = calibration_of(model, seen)
    cosines = cosines or {}
    found = [
        _compared(memory, other, cosines.get(other.id), limits, rarity)
        for other in others
        if other.id != memory.id and other.shares_place(memory) and not _are_apart(memory, other)
    ]
    return _one_alone(memory, found)


def _one_alone(memory: Memory, found: list[Comparison]) -> list[Comparison]:
    """One statement ends one other; what it seems to end beside that, a person has to say."""
    has_ended = any(link.rel == SUPERSEDES for link in memory.links)
    ends = [
        one for one in found if one.is_later and one.verdict.relation is Relation.SUPERSEDES and one.verdict.likeness
    ]
    best = None if has_ended else max(ends, key=lambda one: one.verdict.likeness, default=None)
    return [_doubted(one) if one in ends and one is not best else one for one in found]


def _doubted(one: Comparison) -> Comparison:
    return replace(one, verdict=replace(one.verdict, relation=Relation.DOUBTS))


def last_said(memory: Memory) -> datetime:
    """When a memory was last said or written down."""
    return memory.last_said


def _compared(
    memory: Memory, other: Memory, cosine: float | None, limits: Calibration, rarity: Rarity | None
) -> Comparison:  # fmt: skip
    is_later = vouches(memory, other) or memory.last_said >= other.last_said  # at one moment: the new one
    earlier, later = (other, memory) if is_later else (memory, other)
    if vouches(other, memory):
        return Comparison(other, _UNTRUSTED, is_later)
    if earlier.kind is Kind.TODO and closes(earlier, later):
        verdict = Verdict(Relation.SUPERSEDES, "done")
    else:
        verdict = judge(earlier, later, cosine, limits, rarity)
    if _share_a_key(earlier, later) and verdict.relation not in _SAYING_THE_SAME:
        verdict = Verdict(Relation.SUPERSEDES, f"holds the key {later.canonical_key}")
    if outranks(earlier, later):
        verdict = _of_the_agent(verdict)
    if vouches(memory, other) and verdict.relation is Relation.SAME:
        verdict = replace(verdict, relation=Relation.SUPERSEDES, reason="the same, from a trusted source")
    return Comparison(other, verdict, is_later)


def vouches(memory: Memory, other: Memory) -> bool:
    """Whether somebody answers for a memory and not for another one: then it comes after it, whenever it was said."""
    return memory.is_vouched and not other.is_vouched


def outranks(memory: Memory, other: Memory) -> bool:
    """Whether the owner said a memory, and no word of the other one: that does not count against it by itself."""
    return memory.speaker is Speaker.OWNER and not other.is_worded


def _of_the_agent(verdict: Verdict) -> Verdict:
    """What only the agent said, or the owner only nodded to, ends nothing that the owner said."""
    if verdict.relation is Relation.SUPERSEDES:
        return replace(verdict, relation=Relation.DOUBTS)
    return verdict


_SAYING_THE_SAME = frozenset({Relation.SAME, Relation.SUPERSEDES})


def _share_a_key(one: Memory, other: Memory) -> bool:
    """Whether both were given the same key on purpose: one memory holds it.

    A key of what was learned is a reason to compare: a rule and its special case may be given the same.
    """
    is_given = not one.is_learned and not other.is_learned and one.kind is other.kind
    return is_given and bool(one.canonical_key) and one.canonical_key == other.canonical_key


def _are_apart(one: Memory, other: Memory) -> bool:
    return any(link.rel in _BOTH_HOLD and link.to == other.id for link in one.links) or any(
        link.rel in _BOTH_HOLD and link.to == one.id for link in other.links
    )
