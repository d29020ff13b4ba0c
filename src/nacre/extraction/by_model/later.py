"""Known memories beside what was said later in other sessions: which of them no longer hold as they stand?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate

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
    """A memory beside what was said later with words of it; ``until`` is the end of the last session of its project."""

    memory: Memory
    sayings: tuple[Saying, ...]
    until: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """A memory that may be out of date, and what was said later, with its day."""

    memory: Memory
    why: str


def doubts(held: Sequence[Held], found: Iterable[Outdated]) -> list[Doubt]:
    """Those of a model's claims that code bears out: the clause stands in the memory, the sayings below it."""
    told: dict[str, Doubt] = {}
    for one in found:
        at = one.number - 1
        if not 0 <= at < len(held) or not one.clause.strip():
            continue
        memory, shown = held[at].memory, _sayings_of(held, at, one.evidence)
        if shown and leaves_out(one.clause, memory.content) <= _MOST_MISSING:
            words = shorten(one_line(one.now) or one_line(shown[-1].text), _NOW_CHARACTERS)
            told.setdefault(memory.id, Doubt(memory, f"{words} ({shown[-1].at:%Y-%m-%d})"))
    return list(told.values())


def firsts(held: Sequence[Held]) -> list[int]:
    """The number of each memory's first saying: all sayings are numbered in a row."""
    return list(accumulate((len(one.sayings) for one in held[:-1]), initial=1))


def _sayings_of(held: Sequence[Held], at: int, numbers: Iterable[int]) -> list[Saying]:
    """What is shown below the memory at a place, of some numbers."""
    own = dict(enumerate(held[at].sayings, firsts(held)[at]))
    return [own[number] for number in sorted(set(numbers)) if number in own]
