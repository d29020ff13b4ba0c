"""What a model says of two memories that may be at odds, and what becomes of it: code decides that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import msgspec

from nacre.dedup.claims import as_data, share, system
from nacre.dedup.judge import says_done
from nacre.errors import AnswerUnusable
from nacre.platform.days import shown_day
from nacre.text.passages import normalise, shorten
from nacre.values.memory import Kind, Memory
from nacre.values.model_calls import Prompt, Task
from nacre.values.session import Speaker

AUTO_SUPERSEDE = 0.85
"""Surer than this, and a fact or preference is superseded without asking (``contradiction.auto_supersede``)."""

UNSURE = 0.75
"""No surer than this, and a person has to say (seed facts 1.3)."""

MOST_REASON = 200
_SETTLED = (Kind.DECISION, Kind.LESSON)
_REPLACEABLE = (Kind.FACT, Kind.PREFERENCE)
_SHORTEST_QUOTE = 4
_TOKENS_A_VERDICT = 150


class Bearing(StrEnum):
    """How two memories stand to each other, as a model sees it."""

    SUPERSEDES = "supersedes"
    CONTRADICTS = "contradicts"
    COEXISTS = "coexists"
    UNRELATED = "unrelated"


class Resolution(StrEnum):
    """What becomes of two memories: the earlier one is superseded, a person has to say, both hold."""

    SUPERSEDED = "superseded"
    PENDING = "pending"
    COEXIST = "coexist"


class PairAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """What a model says of one numbered memory."""

    number: int
    relation: Literal["supersedes", "contradicts", "coexists", "unrelated"]
    confidence: float
    explanation: str


class JudgeAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """One verdict a number."""

    verdicts: list[PairAnswer]


class DoneAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """A todo that is done, and the words that say so."""

    number: int
    quote: str


class TodosAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """The todos that are done."""

    done: list[DoneAnswer]


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a pair was judged, how sure that is (0 to 1), and why in a sentence."""

    bearing: Bearing
    confidence: float
    explanation: str = ""

    @property
    def says_both_hold(self) -> bool:
        """Whether both surely hold, so that nobody need doubt it."""
        return self.bearing in (Bearing.COEXISTS, Bearing.UNRELATED) and self.confidence > AUTO_SUPERSEDE


def judge_prompt(memory: Memory, others: Sequence[Memory], answer: dict[str, Any]) -> Prompt:
    """Ask how others stand to a memory; each comes with the day on which it was said last, and whether that was later.

    The order is the one by which code decides what ends what; of one day, the days do not tell it.
    """
    lines = [
        _told(other, number=number, order="later" if other.is_said_after(memory) else "earlier")
        for number, other in enumerate(others, 1)
    ]
    text = f"The memory in question:\n{_told(memory)}\n\nThe others:\n" + "\n".join(lines)
    return Prompt(
        Task.CONTRADICTION, system("judge-1"), text, answer, name="judgement", version="judge/1",
        output_tokens=200 + _TOKENS_A_VERDICT * len(others),
    )  # fmt: skip


def todos_prompt(memory: Memory, todos: Sequence[Memory], answer: dict[str, Any]) -> Prompt:
    """Ask which open todos a memory shows to be done."""
    lines = "\n".join(as_data(todo, number=number) for number, todo in enumerate(todos, 1))
    text = f"The memory:\n{as_data(memory)}\n\nOpen todos:\n{lines}"
    return Prompt(
        Task.TODOS, system("todos-1"), text, answer, name="done", version="todos/1",
        output_tokens=200 + _TOKENS_A_VERDICT * len(todos),
    )  # fmt: skip


def _told(memory: Memory, **more: object) -> str:
    since, until = memory.valid.since, memory.valid.until
    known = {"holds_from": since and since.isoformat(), "holds_until": until and until.isoformat()}
    dates = {name: day for name, day in known.items() if day}
    return as_data(memory, **more, said=shown_day(memory.last_said), by=memory.speaker.value, **dates)


def judgements(answer: JudgeAnswer, count: int) -> list[Judgement]:
    """The verdicts of an answer, in order. Raises AnswerUnusable where one is missing or told twice."""
    by_number = {one.number: one for one in answer.verdicts}
    if len(by_number) != len(answer.verdicts) or set(by_number) != set(range(1, count + 1)):
        raise AnswerUnusable("the verdicts are not one for each memory")
    found = (by_number[number] for number in range(1, count + 1))
    return [
        Judgement(Bearing(one.relation), round(share(one.confidence), 2), shorten(one.explanation, MOST_REASON))
        for one in found
    ]


def finished(answer: TodosAnswer, memory: Memory, todos: Sequence[Memory]) -> list[tuple[Memory, str]]:
    """The todos that are done by the words of a memory: each with its quote, which stands there and is not negated."""
    found: dict[int, tuple[Memory, str]] = {}
    for one in answer.done:
        quote = one.quote.strip().strip("\"'“”‘’…")
        if 1 <= one.number <= len(todos) and _is_said(quote, memory):
            found.setdefault(one.number, (todos[one.number - 1], shorten(quote, MOST_REASON)))
    return list(found.values())


def _is_said(quote: str, memory: Memory) -> bool:
    """Whether a memory says so, and no negation within 40 characters before takes it back."""
    told, said = normalise(quote), normalise(memory.content)
    if len(told) < _SHORTEST_QUOTE or told not in said:
        return False
    start = memory.content.find(quote)
    stretch = (start, start + len(quote)) if start >= 0 else (0, None)
    return says_done(memory.content, *stretch) is not False


def resolve(earlier: Memory, later: Memory, judged: Judgement, sure: float = AUTO_SUPERSEDE) -> Resolution:
    """What becomes of two memories that were judged (seed facts 1.3), by the order in which they were said.

    What happened stays true. What is sure supersedes a fact or a preference of no greater importance; what a decision
    or a lesson says, and what is no surer than .75, a person settles. So they do where only an agent says otherwise
    than the owner, and where the later one speaks of an earlier time.
    """
    if earlier.kind is Kind.EVENT or judged.bearing in (Bearing.COEXISTS, Bearing.UNRELATED):
        return Resolution.COEXIST
    is_blocked = later.importance < earlier.importance
    is_sure = judged.bearing is Bearing.SUPERSEDES and judged.confidence > sure
    if is_sure and not is_blocked and earlier.kind in _REPLACEABLE:
        return Resolution.PENDING if _needs_a_person(earlier, later) else Resolution.SUPERSEDED
    if judged.bearing is Bearing.CONTRADICTS or judged.confidence <= UNSURE:
        return Resolution.PENDING
    return Resolution.PENDING if is_blocked or earlier.kind in _SETTLED else Resolution.COEXIST


def _needs_a_person(earlier: Memory, later: Memory) -> bool:
    is_only_agents = not later.is_worded and earlier.speaker is Speaker.OWNER
    since = (earlier.valid.since, later.valid.since)
    return is_only_agents or (since[0] is not None and since[1] is not None and since[1] < since[0])
