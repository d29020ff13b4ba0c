"""Known memories beside what was said later in other sessions: which of them no longer hold as they stand?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, count

from nacre.dedup.coverage import leaves_out, new_word
from nacre.extraction.by_model.answer import Outdated
from nacre.platform.days import shown_day
from nacre.text.passages import normalise, one_line, shorten
from nacre.values.memory import Kind, Memory
from nacre.values.session import Speaker

MOST_MEMORIES = 15
"""So many memories are held against what was said later for each day with sessions, those first that never were, or
longest ago."""

TOKENS_A_DAY = 12_000
"""What that takes at most, as it was measured on a real project."""

_MOST_MISSING = 0.2
"""Of the words of a clause, that the memory does not hold: it was to be copied."""

_NOW_CHARACTERS = 160


@dataclass(frozen=True, slots=True)
class Saying:
    """What somebody said after a memory: when, who, the part of it that has most of the memory's words, and in which
    session.
    """

    at: datetime
    speaker: Speaker
    text: str
    session: str = ""


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


def doubts(held: Sequence[Held], found: Iterable[Outdated]) -> tuple[list[Doubt], Counter[str]]:
    """Those of a model's claims that code bears out: the clause stands in the memory, and what shows it was said later
    in its project, below whichever memory it stands. And how many others are not taken, by why.
    """
    told: dict[str, Doubt] = {}
    dropped = Counter[str]()
    for one in found:
        at = one.number - 1
        if not 0 <= at < len(held):
            dropped["no such memory"] += 1
            continue
        memory, shown = held[at].memory, _shown(held, held[at].memory, one.evidence)
        if not _stands_in(one.clause, memory.content):
            dropped["the clause is not in the memory"] += 1
        elif not shown:
            dropped["nothing said later shows it"] += 1
        else:
            told.setdefault(memory.id, Doubt(memory, one.clause, _why(memory, one_line(one.now), shown), tuple(shown)))
    return list(told.values()), dropped


def _stands_in(clause: str, content: str) -> bool:
    """Whether a memory has a clause: word by word, however short it is, or else nearly all of its words."""
    copied = normalise(clause)
    if not copied:
        return False
    is_copied = f" {copied} " in f" {normalise(content)} " or (not copied.isascii() and copied in normalise(content))
    return is_copied or leaves_out(clause, content) <= _MOST_MISSING


def _why(memory: Memory, now: str, shown: Sequence[Saying]) -> str:
    """What is told beside a memory in doubt: a model's words where they are those of the memory and of what was said,
    else the last of that. Nothing of it stands beside a rule of the owner's of which only an agent says otherwise.
    """
    is_rule = memory.kind is Kind.PREFERENCE and memory.speaker is Speaker.OWNER
    said = [one for one in shown if one.speaker is Speaker.OWNER] if is_rule else shown
    if not said:
        return f"something else was said (an agent, {shown_day(shown[-1].at)})"
    is_theirs = bool(now) and new_word(now, [memory.content, *(one.text for one in said)]) is None
    by_owner = all(one.speaker is Speaker.OWNER for one in (said if is_theirs else said[-1:]))
    who = f"{'you' if by_owner else 'an agent'}, {shown_day(said[-1].at)}"
    return f"{shorten(now if is_theirs else one_line(said[-1].text), _NOW_CHARACTERS)} ({who})"


def numbers(held: Sequence[Held]) -> dict[Saying, int]:
    """The number of each saying, in the order in which they are shown: below the first memory that has it."""
    return dict(zip(dict.fromkeys(chain.from_iterable(one.sayings for one in held)), count(1), strict=False))


def _shown(held: Sequence[Held], memory: Memory, evidence: Iterable[int]) -> list[Saying]:
    """What was said after a memory in its project, of some numbers."""
    own = {saying for one in held if one.memory.project == memory.project for saying in one.sayings}
    said = {number: one for one, number in numbers(held).items() if one in own and one.at > memory.last_said}
    return [said[number] for number in sorted(set(evidence)) if number in said]
