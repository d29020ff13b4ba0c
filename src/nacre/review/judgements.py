"""What models and rules say of memories that wait to be judged; nothing is written here.

A few are looked at together. Claims are told first, then what is read of the home is read, and models judge all of them
side by side, so that what comes of it does not hang on which answer was first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from nacre.dedup.comparison import compare
from nacre.dedup.contradiction import (
    Bearing,
    JudgeAnswer,
    Judgement,
    Resolution,
    TodosAnswer,
    finished,
    judge_prompt,
    judgements,
    resolve,
    todos_prompt,
)
from nacre.dedup.judge import Relation
from nacre.errors import AnswerUnusable, BudgetSpent, ModelRefused, ModelUnavailable, NacreError
from nacre.home.home import Home
from nacre.llm.answers import ask, schema_of
from nacre.protocols import LanguageModel
from nacre.review.claims import tell_claim
from nacre.review.rivals import open_todos, rivals
from nacre.spending.parallel import Answered, ask_all, is_final
from nacre.spending.tracing import tracing
from nacre.text.passages import normalise
from nacre.values.memory import Claim, Memory
from nacre.values.model_calls import Task
from nacre.values.session import Speaker
from nacre.values.trace import Step, TraceKind

TOGETHER = 6
"""So many memories are looked at together."""

AT_ONCE = 3
"""So many questions are asked side by side."""

BY_RULES = "rules"

A = TypeVar("A")

Models = Callable[[Task], LanguageModel | None]
"""The model of a task, if one is set. Raises ModelRefused."""


@dataclass(frozen=True, slots=True)
class Found:
    """Another memory, how it stands to the one in question, what becomes of the two, and who said so."""

    other: Memory
    judged: Judgement
    outcome: Resolution
    by: str
    is_todo: bool = False


@dataclass(slots=True)
class Looked:
    """A memory as it was when models were asked, and what they said.

    ``is_reworded``: it has other words than those of which its claim was told. ``claim`` is what a model told just now,
    ``is_claimless`` that it claims nothing. ``error`` is why an answer is missing, ``is_partial`` that one about it and
    an earlier one is; ``is_left`` that nobody was asked, as a model was not to be had for another memory.
    """

    memory: Memory
    is_reworded: bool = False
    claim: Claim | None = None
    found: tuple[Found, ...] = ()
    is_claimless: bool = False
    error: NacreError | None = None
    is_partial: bool = False
    is_left: bool = False

    @property
    def is_open(self) -> bool:
        """Whether there is nothing that stands in the way of asking on."""
        return self.error is None and not self.is_left

    @property
    def claiming(self) -> Memory:
        """The memory with its claim."""
        return replace(self.memory, claim=self.claim) if self.claim or self.is_claimless else self.memory


def look_at(home: Home, looked: Sequence[Looked], models: Models) -> None:
    """Fill in what is said of each memory. Call it without a lock. Raises ModelRefused.

    An earlier one counts as told when a later one is looked at; two of them are judged once.
    """
    with tracing(home, TraceKind.CONTRADICTION, ", ".join(one.memory.id for one in looked)) as trace:
        _tell_claims(home, looked, models)
        _judge(home, looked, models)
        for one in looked:
            for found in one.found:
                trace.add(_step(one.memory, found))


def _tell_claims(home: Home, looked: Sequence[Looked], models: Models) -> None:
    """One after another: each is told the entities of those before it, or one thing would get several names."""
    wanted = [one for one in looked if one.memory.claim is None or one.is_reworded]
    model = models(Task.CLAIMS) if wanted else None
    if model is None:
        return
    names: dict[str, None] = {}
    for at, one in enumerate(wanted):
        try:
            one.claim = tell_claim(home, model, one.memory, also_known=tuple(names))
        except (AnswerUnusable, ModelUnavailable, ModelRefused, BudgetSpent) as error:
            one.error = error
            if is_final(error):
                for left in wanted[at + 1 :]:
                    left.is_left = True
                return
            continue
        one.is_claimless = one.claim is None
        names |= {one.claim.entity: None} if one.claim else {}


def _judge(home: Home, looked: Sequence[Looked], models: Models) -> None:
    """Let the rules say what they are sure of, and models the rest."""
    asking = _Asking(home, models)
    for one in looked:
        if one.is_open:
            asking.about_rivals(one)
            asking.about_todos(one)
    asking.ask()


class _Asking:
    """Questions about memories, each an earlier one's or its own, and what waits for their answers."""

    def __init__(self, home: Home, models: Models) -> None:
        self._home = home
        self._models = models
        self._questions: list[tuple[Looked, Callable[[], Sequence[Found]]]] = []
        self._told: list[Memory] = []
        self._pairs: dict[frozenset[str], Looked] = {}
        self._left: list[tuple[Looked, Looked]] = []

    def about_rivals(self, one: Looked) -> None:
        """Those that a memory may be at odds with, but those that an earlier one is asked about with it."""
        memory = one.claiming
        others = rivals(self._home, memory, beside=self._told)
        judge = self._models(Task.CONTRADICTION) if others else None
        one.found = tuple(_by_rules(memory, others, is_alone=judge is None))
        self._told.append(memory)
        settled = {found.other.id for found in one.found}
        open_ = {frozenset((memory.id, other.id)): other for other in others if other.id not in settled}
        rest = [other for pair, other in open_.items() if pair not in self._pairs]
        self._left += [(one, self._pairs[pair]) for pair in open_ if pair in self._pairs]
        if judge and rest:
            self._pairs.update({pair: one for pair in open_ if pair not in self._pairs})
            self._questions.append((one, partial(_judged, self._home, judge, memory, rest)))

    def about_todos(self, one: Looked) -> None:
        """The todos that a memory may show to be done."""
        candidates = open_todos(self._home, one.memory)
        model = self._models(Task.TODOS) if candidates else None
        if model:
            self._questions.append((one, partial(_finished, model, one.memory, candidates)))

    def ask(self) -> None:
        """Ask all of it; a memory that an earlier one was asked about in vain is to be looked at again."""
        answers = ask_all(self._home, [question for _, question in self._questions], AT_ONCE)
        for (one, _), answer in zip(self._questions, answers, strict=True):
            found = _taken(one, answer)
            one.found += tuple(found or ())
        for later, earlier in self._left:
            later.is_partial = later.is_partial or not earlier.is_open


def _taken(one: Looked, answer: Answered[A] | NacreError | None) -> A | None:
    """An answer; where it is none, why."""
    if isinstance(answer, Answered):
        return answer.value
    one.error = one.error or answer
    one.is_left = one.is_left or answer is None
    return None


def _by_rules(memory: Memory, others: Sequence[Memory], *, is_alone: bool) -> list[Found]:
    """Where two memories claim something of one key, the rules decide first, and no model is asked.

    ``is_alone``: no model judges, so that other values of one key are for a person to settle.
    """
    claim = memory.claim
    same = {other.id: other.claim for other in others if claim and other.claim and other.claim.key == claim.key}
    found = []
    for one in compare(memory, [other for other in others if other.id in same]):
        theirs = same[one.other.id]
        if one.verdict.relation is Relation.SUPERSEDES:
            judged = Judgement(Bearing.SUPERSEDES, 1.0, one.verdict.reason)
            found.append(Found(one.other, judged, Resolution.SUPERSEDED, BY_RULES))
        elif is_alone and claim and theirs and normalise(theirs.object) != normalise(claim.object):
            why = f"{claim.key}: {theirs.object} and {claim.object}"
            judged = Judgement(Bearing.CONTRADICTS, min(theirs.confidence, claim.confidence), why)
            found.append(Found(one.other, judged, Resolution.PENDING, BY_RULES))
    return found


def _judged(home: Home, model: LanguageModel, memory: Memory, others: Sequence[Memory]) -> list[Found]:
    prompt = judge_prompt(memory, others, schema_of(JudgeAnswer))
    answer = ask(model, prompt, JudgeAnswer, lambda answer: judgements(answer, len(others)))
    found = judgements(answer, len(others))
    sure = home.settings.number("contradiction.auto_supersede")
    judged = []
    for other, one in zip(others, found, strict=True):
        one = replace(one, explanation=home.redactor.clean(one.explanation))
        earlier, later = in_order(memory, other)
        judged.append(Found(other, one, resolve(earlier, later, one, sure), model.name))
    return judged


def _finished(model: LanguageModel, memory: Memory, candidates: Sequence[Memory]) -> list[Found]:
    """The open todos that the memory shows to be done."""
    answer = ask(model, todos_prompt(memory, candidates, schema_of(TodosAnswer)), TodosAnswer)
    found = []
    for todo, quote in finished(answer, memory, candidates):
        is_ours = memory.is_said_after(todo)
        is_sure = memory.speaker is Speaker.OWNER or todo.speaker is not Speaker.OWNER
        outcome = Resolution.SUPERSEDED if is_sure else Resolution.PENDING
        if is_ours:
            judged = Judgement(Bearing.SUPERSEDES, 1.0, f"done: {quote}")
            found.append(Found(todo, judged, outcome, model.name, is_todo=True))
    return found


def in_order(memory: Memory, other: Memory) -> tuple[Memory, Memory]:
    """Two memories, the one that was said earlier first."""
    return (other, memory) if memory.is_said_after(other) else (memory, other)


def _step(memory: Memory, one: Found) -> Step:
    said = f"{one.judged.bearing.value} ({one.judged.confidence:.2f}): {one.judged.explanation}"
    return Step("judged", one.other.subject, f"{said} → {one.outcome.value}", refs=(memory.id, one.other.id))
