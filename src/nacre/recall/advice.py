"""A language model that may be asked for a while, and is not trusted to answer."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, TypeVar

import msgspec

from nacre.base.json import quoted
from nacre.base.text import normalise, one_line
from nacre.errors import AnswerUnusable, BudgetSpent, ModelRefused, ModelUnavailable
from nacre.home.home import Home
from nacre.home.spending import model_for, tracing
from nacre.llm.failures import ask, schema_of
from nacre.protocols import LanguageModel
from nacre.recall.lanes import ScoredMemory, rescored
from nacre.values.models import Capabilities, Completion, Prompt, TraceKind
from nacre.values.recall import Lane, LaneState
from nacre.values.session import Task, Trust

A = TypeVar("A", bound=msgspec.Struct)

CALL_SECONDS = 45.0
"""One answer (seed facts 3.3)."""

_LEAST_SECONDS = 1.0
_OUTPUT_TOKENS = 512


@dataclass
class Adviser:
    """Asks a model as long as there is time. ``clock`` counts seconds, and ``until`` is when they are over.

    A model that cannot be reached, refuses, or has no budget left is not asked again; one whose answer makes no sense
    is, for the next step. ``problem`` says what was wrong with the last question.
    """

    model: LanguageModel | None
    clock: Callable[[], float]
    until: float
    problem: str | None = None

    def ask(self, prompt: Prompt, answer: type[A]) -> A | None:
        """The answer; ``None`` where there is none."""
        if self.model is None:
            return None
        self.problem = None
        try:
            return ask(_Bounded(self.model, self.clock, self.until), prompt, answer)
        except AnswerUnusable as error:
            self.problem = error.message
        except (ModelUnavailable, ModelRefused, BudgetSpent) as error:
            self.problem = error.message
            self.model = None
        return None

    def distrust(self, reason: str) -> None:
        """What the model answered has the right shape, and makes no sense."""
        self.problem = reason


class _Bounded:
    """A model within what is left of the time, also where it is asked twice."""

    def __init__(self, model: LanguageModel, clock: Callable[[], float], until: float) -> None:
        self.name = model.name
        self.capabilities: Capabilities = model.capabilities
        self._model = model
        self._clock = clock
        self._until = until

    def complete(self, prompt: Prompt) -> Completion:
        """Answer within the time that is left. Raises ModelUnavailable when none is."""
        left = self._until - self._clock()
        if left < _LEAST_SECONDS:
            raise ModelUnavailable(
                "recall ran out of time for the model", hint="recall.deep_seconds", retry=False
            )
        return self._model.complete(
            replace(prompt, timeout_seconds=min(prompt.timeout_seconds, left))
        )

    def close(self) -> None:
        """Nothing of its own is open."""


def prompt_of(
    name: str, answer: type[msgspec.Struct], *, text: dict[str, Any], shared: Any = None
) -> Prompt:
    """The prompt ``<name>-1.md``; ``shared`` and ``text`` are data for it, which cannot leave their frame."""
    return Prompt(
        task=Task.RECALL,
        system=_system(name),
        shared="" if shared is None else framed(shared),
        text=framed(text),
        answer=schema_of(answer),
        name=name.replace("-", "_"),
        version=f"{name}/1",
        output_tokens=_OUTPUT_TOKENS,
        timeout_seconds=CALL_SECONDS,
    )


def framed(value: Any) -> str:
    """Data as JSON between marks that it cannot hold, since no angle bracket is left in it."""
    return f"<data>\n{quoted(value)}\n</data>"


@cache
def _system(name: str) -> str:
    return files(__package__).joinpath(f"prompts/{name}-1.md").read_text(encoding="utf-8")


# ----------------------------------------------------------------------------
# What a language model may add to recall: other phrasings of a question, and a grade for each of the
# best hits.


PHRASINGS = 3
GRADED = 20
NOTHING = 0
"""The grade of a text that is about something else: it is no hit, and with nothing else there is none."""

_PHRASING_CHARACTERS = 300
_TEXT_CHARACTERS = 600
_BEST = 3


class ExpandAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers to the question for other phrasings."""

    phrasings: list[str]


class Grade(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How well one text answers."""

    number: int
    grade: Annotated[int, msgspec.Meta(ge=NOTHING, le=_BEST)]


class RerankAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers to the question for grades."""

    grades: list[Grade]


def other_phrasings(adviser: Adviser, question: str) -> list[str] | None:
    """At most three other phrasings of a question; ``None`` where the model did not answer."""
    answer = adviser.ask(
        prompt_of("recall-expand", ExpandAnswer, text={"query": question}), ExpandAnswer
    )
    if answer is None:
        return None
    found = {
        normalise(text): one_line(text)[:_PHRASING_CHARACTERS]
        for text in reversed(answer.phrasings)
    }
    return [text for said, text in reversed(found.items()) if said and said != normalise(question)][
        :PHRASINGS
    ]


def graded(
    adviser: Adviser, question: str, ranked: Sequence[ScoredMemory]
) -> list[ScoredMemory] | None:
    """The hits, the best 20 of them in the order of a model's grades, without those that it says are about something
    else; ``None`` where it did not answer.

    The scores stay at their places. What is untrusted is not shown to the model, and stays where it is: a text from
    outside cannot ask for a better place.
    """
    seen = [at for at, item in enumerate(ranked[:GRADED]) if item.memory.trust is Trust.TRUSTED]
    texts = [
        {"number": number, "text": _told(ranked[at])} for number, at in enumerate(seen, start=1)
    ]
    if not texts:
        return list(ranked)
    prompt = prompt_of("recall-rerank", RerankAnswer, text={"query": question, "texts": texts})
    answer = adviser.ask(prompt, RerankAnswer)
    if answer is None:
        return None
    grades = {
        one.number: one.grade for one in reversed(answer.grades) if 1 <= one.number <= len(seen)
    }
    if not grades:
        adviser.distrust("the model graded none of the texts")
        return None
    return _in_order(ranked, seen, grades)


def _told(item: ScoredMemory) -> str:
    return one_line(f"{item.memory.subject}. {item.memory.content}")[:_TEXT_CHARACTERS]


def _in_order(
    ranked: Sequence[ScoredMemory], seen: Sequence[int], grades: dict[int, int]
) -> list[ScoredMemory]:
    """A hit without a grade counts as one that is about the same thing."""
    by_place = {at: grades.get(number, 1) for number, at in enumerate(seen, start=1)}
    kept = sorted((at for at in seen if by_place[at] > NOTHING), key=lambda at: (-by_place[at], at))
    graded_hits = iter([ranked[at] for at in kept])
    order = []
    for at, item in enumerate(ranked):
        chosen = next(graded_hits, None) if at in by_place else item
        if chosen is not None:
            order.append(chosen)
    return order


# ----------------------------------------------------------------------------
# The language model of recall: asked for a while, closed afterwards, and never waited for by anything
# else.


SECONDS = 15.0
"""For other phrasings and for grades, each."""

_PUNCTUATION = ".,;:!?()[]{}<>\"'`*“”‘’«»…¿¡？。，！：；"
_SPECIFIC = re.compile(r"\d|[/\\_@]|\w\.\w|[a-z][A-Z]|[A-Z]{2}")
_NO_MODEL = "no language model is set: nacre setup"


@contextmanager
def advised(
    home: Home, seconds: float, clock: Callable[[], float] = time.monotonic
) -> Iterator[Adviser]:
    """The model that is set for recall, to be asked; nothing is answered where none is, or where it is refused."""
    until = clock() + seconds
    try:
        model = model_for(home, Task.RECALL, background=False)
    except ModelRefused as error:
        yield Adviser(None, clock, until, error.message)
        return
    try:
        yield Adviser(model, clock, until)
    finally:
        if model:
            model.close()


def phrased(home: Home, question: str) -> tuple[list[str], Lane]:
    """Other phrasings of a question, and what became of asking for them."""
    clean = home.redactor.clean(question)
    with tracing(home, TraceKind.RECALL, clean), advised(home, SECONDS) as adviser:
        found = other_phrasings(adviser, clean)
        if found is None:
            return [], _failed("expansion", adviser)
        note = f"also asked: {'; '.join(found)}" if found else "no other way to ask it"
        return found, Lane("expansion", LaneState.RAN, note)


def is_guessed(phrasing: str, question: str) -> bool:
    """Whether a phrasing names other things or numbers than the question: those are a model's guess, or its loss."""
    return _specifics(phrasing) != _specifics(question)


def _specifics(text: str) -> frozenset[str]:
    """The names and numbers of a question, in lower case; a capital at its beginning makes no name."""
    words = [(at, word) for at, one in enumerate(text.split()) if (word := one.strip(_PUNCTUATION))]
    return frozenset(
        word.lower().removesuffix("'s").removesuffix("’s")
        for at, word in words
        if _SPECIFIC.search(word) or (at and word[0].isupper() and len(word) > 1)
    )


def regraded(
    home: Home, question: str, ranked: Sequence[ScoredMemory]
) -> tuple[list[ScoredMemory], Lane]:
    """Hits in the order of a model's grades, and what became of asking for them; the scores stay at their places."""
    clean = home.redactor.clean(question)
    with tracing(home, TraceKind.RECALL, clean), advised(home, SECONDS) as adviser:
        order = graded(adviser, clean, ranked)
        if order is None:
            return list(ranked), _failed("reranker", adviser)
        name = adviser.model.name if adviser.model else ""
    left_out = len(ranked) - len(order)
    note = f"{name}; {left_out} left out, as about something else" if left_out else name
    scores = sorted((item.score for item in ranked), reverse=True)
    placed = [rescored(item, score) for item, score in zip(order, scores, strict=False)]
    return placed, Lane("reranker", LaneState.RAN, note)


def _failed(lane: str, adviser: Adviser) -> Lane:
    return Lane(lane, LaneState.UNAVAILABLE, adviser.problem or _NO_MODEL)
