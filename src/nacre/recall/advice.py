"""Let a language model rephrase questions and grade hits within a time limit."""

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
from nacre.errors import (
    BudgetSpentError,
    ModelRefusedError,
    ModelUnavailableError,
    UnusableAnswerError,
)
from nacre.home.home import Home
from nacre.home.spending import model_for
from nacre.llm.failures import ask, schema_of
from nacre.protocols import LanguageModel
from nacre.recall.lanes import ScoredMemory, rescore
from nacre.values.models import Capabilities, Completion, Prompt
from nacre.values.recall import Lane, LaneState
from nacre.values.session import Task, Trust

A = TypeVar("A", bound=msgspec.Struct)

CALL_SECONDS = 45.0
"""Time limit for one call, in seconds."""

_MIN_SECONDS = 1.0
_OUTPUT_TOKENS = 512


@dataclass
class Adviser:
    """Asks a model questions until ``clock`` reaches ``until``, in seconds.

    If the model is unreachable, refuses, or has no budget left, it is not asked again. ``problem``:
    reason why the last question failed.
    """

    model: LanguageModel | None
    clock: Callable[[], float]
    until: float
    problem: str | None = None

    def ask(self, prompt: Prompt, answer: type[A]) -> A | None:
        """Return the model's answer, or ``None`` if there is none."""
        if self.model is None:
            return None
        self.problem = None
        try:
            return ask(_TimeLimited(self.model, self.clock, self.until), prompt, answer)
        except UnusableAnswerError as error:
            self.problem = error.message
        except (ModelUnavailableError, ModelRefusedError, BudgetSpentError) as error:
            self.problem = error.message
            self.model = None
        return None

    def distrust(self, reason: str) -> None:
        """Record why a well-formed answer is unusable."""
        self.problem = reason


class _TimeLimited:
    """Wraps a model and limits the total time of all calls, including retries."""

    def __init__(self, model: LanguageModel, clock: Callable[[], float], until: float) -> None:
        self.name = model.name
        self.capabilities: Capabilities = model.capabilities
        self._model = model
        self._clock = clock
        self._until = until

    def complete(self, prompt: Prompt) -> Completion:
        """Answer within the remaining time. Raises ModelUnavailableError if no time is left."""
        remaining = self._until - self._clock()
        if remaining < _MIN_SECONDS:
            raise ModelUnavailableError(
                "recall ran out of time for the model", hint="ask for less", retry=False
            )
        return self._model.complete(
            replace(prompt, timeout_seconds=min(prompt.timeout_seconds, remaining))
        )

    def close(self) -> None:
        """Do nothing, because the caller closes the model."""


def prompt_of(
    name: str, answer: type[msgspec.Struct], *, text: dict[str, Any], shared: Any = None
) -> Prompt:
    """Build a prompt from ``<name>-1.md``. ``shared`` and ``text`` are framed as data."""
    return Prompt(
        task=Task.RECALL,
        system=_system(name),
        shared="" if shared is None else frame(shared),
        text=frame(text),
        answer=schema_of(answer),
        name=name.replace("-", "_"),
        version=f"{name}/1",
        output_tokens=_OUTPUT_TOKENS,
        timeout_seconds=CALL_SECONDS,
    )


def frame(value: Any) -> str:
    """Return data as JSON between tags. Escape angle brackets, so that the data cannot contain the tags."""
    return f"<data>\n{quoted(value)}\n</data>"


@cache
def _system(name: str) -> str:
    return files(__package__).joinpath(f"prompts/{name}-1.md").read_text(encoding="utf-8")


# -- Rephrased questions and grades of hits --------------------------------------------------------


PHRASINGS = 3
GRADED = 20
NOTHING = 0
"""Grade for an irrelevant text, which is dropped from the hits."""

_PHRASING_CHARACTERS = 300
_TEXT_CHARACTERS = 600
_MAX_GRADE = 3


class ExpandAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers to the question for other phrasings."""

    phrasings: list[str]


class Grade(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How well one text answers."""

    number: int
    grade: Annotated[int, msgspec.Meta(ge=NOTHING, le=_MAX_GRADE)]


class RerankAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers to the question for grades."""

    grades: list[Grade]


def other_phrasings(adviser: Adviser, question: str) -> list[str] | None:
    """Return at most three other phrasings of a question, or ``None`` if the model does not answer."""
    answer = adviser.ask(
        prompt_of("recall-expand", ExpandAnswer, text={"query": question}), ExpandAnswer
    )
    if answer is None:
        return None
    by_normalised = {
        normalise(text): one_line(text)[:_PHRASING_CHARACTERS]
        for text in reversed(answer.phrasings)
    }
    return [
        text for key, text in reversed(by_normalised.items()) if key and key != normalise(question)
    ][:PHRASINGS]


def grade(
    adviser: Adviser, question: str, ranked: Sequence[ScoredMemory]
) -> list[ScoredMemory] | None:
    """Reorder the best 20 hits by a model's grades. Return ``None`` if the model gives no usable answer.

    Irrelevant hits are dropped. Untrusted hits keep their position and are not shown to the model,
    because their text could ask for a better position.
    """
    positions = [
        at for at, item in enumerate(ranked[:GRADED]) if item.memory.trust is Trust.TRUSTED
    ]
    texts = [
        {"number": number, "text": _text_of(ranked[at])}
        for number, at in enumerate(positions, start=1)
    ]
    if not texts:
        return list(ranked)
    prompt = prompt_of("recall-rerank", RerankAnswer, text={"query": question, "texts": texts})
    answer = adviser.ask(prompt, RerankAnswer)
    if answer is None:
        return None
    grades = {
        grade.number: grade.grade
        for grade in reversed(answer.grades)
        if 1 <= grade.number <= len(positions)
    }
    if not grades:
        adviser.distrust("the model graded no text")
        return None
    by_place = {at: grades.get(number, 1) for number, at in enumerate(positions, start=1)}
    kept = sorted(
        (at for at in positions if by_place[at] > NOTHING), key=lambda at: (-by_place[at], at)
    )
    graded_hits = iter([ranked[at] for at in kept])
    order = []
    for at, item in enumerate(ranked):
        moved = next(graded_hits, None) if at in by_place else item
        if moved is not None:
            order.append(moved)
    return order


def _text_of(item: ScoredMemory) -> str:
    return one_line(f"{item.memory.subject}. {item.memory.content}")[:_TEXT_CHARACTERS]


# -- The model of recall ---------------------------------------------------------------------------


SECONDS = 15.0
"""Time limit for rephrasing and for grading, in seconds each."""

_PUNCTUATION = ".,;:!?()[]{}<>\"'`*“”‘’«»…¿¡？。，！：；"
_SPECIFIC = re.compile(r"\d|[/\\_@]|\w\.\w|[a-z][A-Z]|[A-Z]{2}")
_NO_MODEL = "no language model is set: nacre config set models.default"


@contextmanager
def open_adviser(
    home: Home, seconds: float, clock: Callable[[], float] = time.monotonic
) -> Iterator[Adviser]:
    """Yield an adviser that uses the configured recall model.

    The adviser has no model if none is configured or the settings do not permit the model.
    """
    until = clock() + seconds
    try:
        model = model_for(home, Task.RECALL, background=False)
    except ModelRefusedError as error:
        yield Adviser(None, clock, until, error.message)
        return
    try:
        yield Adviser(model, clock, until)
    finally:
        if model:
            model.close()


def rephrase(home: Home, question: str) -> tuple[list[str], Lane]:
    """Return other phrasings of a question and a report for this lane."""
    clean = home.redactor.clean(question)
    with open_adviser(home, SECONDS) as adviser:
        phrasings = other_phrasings(adviser, clean)
        if phrasings is None:
            return [], _unavailable_lane("expansion", adviser)
        note = f"also asked: {'; '.join(phrasings)}" if phrasings else "no other phrasing"
        return phrasings, Lane("expansion", LaneState.RAN, note)


def is_guessed(phrasing: str, question: str) -> bool:
    """Return True if a phrasing has other names or numbers than the question."""
    return _specifics(phrasing) != _specifics(question)


def _specifics(text: str) -> frozenset[str]:
    """Return the names and numbers in a question, in lower case. A capitalised first word is not a name."""
    words = [
        (at, word) for at, token in enumerate(text.split()) if (word := token.strip(_PUNCTUATION))
    ]
    return frozenset(
        word.lower().removesuffix("'s").removesuffix("’s")
        for at, word in words
        if _SPECIFIC.search(word) or (at and word[0].isupper() and len(word) > 1)
    )


def rerank(
    home: Home, question: str, ranked: Sequence[ScoredMemory]
) -> tuple[list[ScoredMemory], Lane]:
    """Sort hits by a model's grades. Return the sorted hits and a report.

    The scores are reassigned, so that the first hit has the highest score.
    """
    clean = home.redactor.clean(question)
    with open_adviser(home, SECONDS) as adviser:
        order = grade(adviser, clean, ranked)
        if order is None:
            return list(ranked), _unavailable_lane("reranker", adviser)
        name = adviser.model.name if adviser.model else ""
    left_out = len(ranked) - len(order)
    note = (
        f"{name}; {left_out} left out because they are about something else" if left_out else name
    )
    scores = sorted((item.score for item in ranked), reverse=True)
    placed = [rescore(item, score) for item, score in zip(order, scores, strict=False)]
    return placed, Lane("reranker", LaneState.RAN, note)


def _unavailable_lane(lane: str, adviser: Adviser) -> Lane:
    return Lane(lane, LaneState.UNAVAILABLE, adviser.problem or _NO_MODEL)
