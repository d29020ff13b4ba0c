"""One memory against others: which of two is later, what the later one means for the earlier one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from nacre.dedup.calibration import Calibration, calibration_of
from nacre.dedup.judge import Relation, Verdict, closes, judge
from nacre.model.memory import Confidence, Kind, Memory
from nacre.model.session import Trust

APART = "alternative_to"
"""A link of this relation between two memories says that both hold, whatever a comparison finds."""


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
        return self.is_later and self.verdict.relation in (Relation.SUPERSEDES, Relation.FULLER)

    @property
    def is_replaced(self) -> bool:
        """Whether the other one, which is later, says otherwise."""
        return not self.is_later and self.verdict.relation is Relation.SUPERSEDES

    @property
    def repeats(self) -> bool:
        """Whether the one in question says nothing that the other does not."""
        relation = self.verdict.relation
        return relation is Relation.SAME or (relation is Relation.FULLER and not self.is_later)


def compare(
    memory: Memory, others: Iterable[Memory], *, cosines: Mapping[str, float] | None = None, model: str | None = None
) -> list[Comparison]:
    """Compare a memory with others of its project; ``cosines`` are by id, of vectors that ``model`` made."""
    limits = calibration_of(model)
    cosines = cosines or {}
    return [
        _compared(memory, other, cosines.get(other.id), limits)
        for other in others
        if other.id != memory.id and other.project == memory.project and not _are_apart(memory, other)
    ]


def last_said(memory: Memory) -> datetime:
    """When a memory was last said or written down."""
    return max((memory.created, memory.updated, *(one.at for one in memory.confirmed)))


def _compared(memory: Memory, other: Memory, cosine: float | None, limits: Calibration) -> Comparison:
    is_later = last_said(memory) >= last_said(other)
    earlier, later = (other, memory) if is_later else (memory, other)
    if earlier.trust is Trust.TRUSTED and later.trust is Trust.UNTRUSTED:
        return Comparison(other, _UNTRUSTED, is_later)
    if earlier.kind is Kind.TODO and closes(earlier, later):
        return Comparison(other, Verdict(Relation.SUPERSEDES, "done"), is_later)
    verdict = judge(earlier, later, cosine, limits)
    if _share_a_key(earlier, later) and verdict.relation in (Relation.RELATED, Relation.UNRELATED):
        verdict = Verdict(Relation.SUPERSEDES, f"holds the key {later.canonical_key}")
    return Comparison(other, verdict, is_later)


def _share_a_key(one: Memory, other: Memory) -> bool:
    """Whether both were given the same key on purpose: one memory holds it."""
    given = one.confidence is other.confidence is Confidence.EXTRACTED and one.kind is other.kind
    return given and bool(one.canonical_key) and one.canonical_key == other.canonical_key


def _are_apart(one: Memory, other: Memory) -> bool:
    return any(link.rel == APART and link.to == other.id for link in one.links) or any(
        link.rel == APART and link.to == one.id for link in other.links
    )
