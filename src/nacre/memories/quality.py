"""How good a memory turns out to be (seed facts 1.2.4): quality moves a little with every reply.

The borders belong to a measure (docs/context.md): those of cosines lie in the model's calibration, those of words here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from nacre.values.memory import Kind, Memory
from nacre.values.review import Maturity, Usage, Verdict

LEAST_REPLY = 50
REPLY_CHARACTERS = 8000

SIGNALS = {Verdict.USED: 1.0, Verdict.UNUSED: 0.4, Verdict.CORRECTED: 0.0}
REPLY_SHARE = 0.2
PERSON_SHARE = 0.5
"""A person's word weighs more than a comparison of texts."""

KEPT_QUALITY = 0.3
"""What a dismissed review raises quality to."""

_FLOORS = {Kind.FACT: 0.35, Kind.PREFERENCE: 0.35}
_FLOOR = 0.1


@dataclass(frozen=True, slots=True)
class Borders:
    """From which likeness on a reply used a memory, and something newly stored says it anew."""

    name: str
    used: float
    corrected: float


BY_WORDS = Borders("words", 0.4, 0.6)


def verdict(reply: float, stored: float, borders: Borders) -> Verdict:
    """What a reply says of a memory: the likeness of the reply to it, and of the likest thing the agent stored."""
    if stored >= borders.corrected:
        return Verdict.CORRECTED
    return Verdict.USED if reply >= borders.used else Verdict.UNUSED


def quality_after(before: float, heard: Verdict, kind: Kind, share: float = REPLY_SHARE) -> float:
    """(1 - share) · before + share · signal, not below the floor of the kind."""
    floor = min(before, _FLOORS.get(kind, _FLOOR))
    return min(1.0, max(floor, (1 - share) * before + share * SIGNALS[heard]))


def is_protected(memory: Memory, patterns: Sequence[str]) -> bool:
    """Whether a memory is never to be forgotten: importance 10, evergreen, or a subject that fits a pattern.

    Patterns ignore case; ``*`` stands for any text (seed facts 1.4).
    """
    subject = memory.subject.lower()
    return memory.importance == 10 or memory.evergreen or any(fnmatchcase(subject, item.lower()) for item in patterns)


_MATURITY = ((20, Maturity.PROVEN), (5, Maturity.ESTABLISHED), (0, Maturity.CANDIDATE))


def maturity(usage: Usage) -> Maturity:
    """A candidate under 5 accesses, established from 5, proven from 20 (seed facts 2.3)."""
    return next(name for least, name in _MATURITY if usage.access_count >= least)
