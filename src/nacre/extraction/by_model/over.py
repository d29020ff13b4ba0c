"""Which of the known memories a session shows to be over: repaired, done, taken back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nacre.extraction.by_model.answer import Over
from nacre.extraction.by_model.checks import Checks
from nacre.values.candidate import Candidate
from nacre.values.memory import Confidence, Kind, Memory
from nacre.values.session import Speaker

_OF_THE_OWNER = frozenset({Kind.DECISION, Kind.PREFERENCE, Kind.RELATIONSHIP})
"""What the owner said of these kinds ends by their word alone; a trouble ends when it is mended, a todo when done."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A known memory that is over: the words that show it, and that it is over as a statement to be compared."""

    memory: Memory
    quote: str
    statement: Candidate


def ended(over: Sequence[Over], known: Sequence[Memory], checks: Checks, places: Mapping[int, int]) -> list[Ended]:
    """Those of a model's claims that code bears out: about a memory that was shown, quoted from trusted turns that were
    shown and that were said later, one of them the owner's where the memory is theirs to end.
    """
    found: dict[str, Ended] = {}
    for one in over:
        memory = known[one.known - 1] if one.known <= len(known) else None
        evidence = sorted({places.get(number, -1) for number in one.evidence})
        if memory is None or not checks.shows(evidence, one.quote):
            continue
        if any(said < memory.last_said for said in checks.times(evidence)):
            continue
        is_theirs = memory.speaker is Speaker.OWNER and memory.kind in _OF_THE_OWNER
        if is_theirs and not any(checks.is_typed(at) for at in evidence):
            continue
        found.setdefault(memory.id, Ended(memory, one.quote, _as_statement(memory, checks, evidence)))
    return list(found.values())


def _as_statement(memory: Memory, checks: Checks, evidence: Sequence[int]) -> Candidate:
    return Candidate(
        kind=memory.kind, subject=memory.subject, content=f"It is over, or no longer so: {memory.content}",
        turns=tuple(checks.turns[at].id for at in evidence), confidence=Confidence.EXTRACTED,
    )  # fmt: skip
