"""Known memories beside what was said later in other sessions: which of them no longer hold as they stand?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, count

from nacre.dedup.coverage import leaves_out
from nacre.extraction.by_model.answer import Outdated
from nacre.text.passages import one_line, shorten
from nacre.values.memory import Memory
from nacre.values.session import Speaker

_MOST_MISSING = 0.2
"""Of the words of a clause, that the memory does not hold: it was to be copied."""

_NOW_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Saying:
    """What somebody said after a memory: when, who, and the part of it that has most of the memory's words."""

    at: datetime
    speaker: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class Held:
    """A memory beside what was said later: all with words of it, ``until`` the end of the last session of its project,
    or what overtook another one.
    """

    memory: Memory
    sayings: tuple[Saying, ...]
    until: str = ""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A memory that may be out of date: which clause of it, what was said later, with its day, and where."""

    memory: Memory
    clause: str
    why: str
    shown: tuple[Saying, ...]


def doubts(held: Sequence[Held], found: Iterable[Outdated]) -> list[Doubt]:
    """Those of a model's claims that code bears out: the clause stands in the memory, and what shows it was said later
    in its project, below whichever memory it stands.
    """
    told: dict[str, Doubt] = {}
    for one in found:
        at = one.number - 1
        if not 0 <= at < len(held) or not one.clause.strip():
            continue
        memory, shown = held[at].memory, _shown(held, held[at].memory, one.evidence)
        if shown and leaves_out(one.clause, memory.content) <= _MOST_MISSING:
            words = shorten(one_line(one.now) or one_line(shown[-1].text), _NOW_CHARACTERS)
            why = f"{words} ({shown[-1].at:%Y-%m-%d})"
            told.setdefault(memory.id, Doubt(memory, one.clause, why, tuple(shown)))
    return list(told.values())


def numbers(held: Sequence[Held]) -> dict[Saying, int]:
    """The number of each saying, in the order in which they are shown: below the first memory that has it."""
    return dict(zip(dict.fromkeys(chain.from_iterable(one.sayings for one in held)), count(1), strict=False))


def _shown(held: Sequence[Held], memory: Memory, evidence: Iterable[int]) -> list[Saying]:
    """What was said after a memory in its project, of some numbers."""
    own = {saying for one in held if one.memory.project == memory.project for saying in one.sayings}
    said = {number: one for one, number in numbers(held).items() if one in own and one.at > memory.last_said}
    return [said[number] for number in sorted(set(evidence)) if number in said]
