"""The language model of recall: asked for a while, closed afterwards, and never waited for by anything else."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from nacre.errors import ModelRefused
from nacre.home.home import Home
from nacre.retrieval.advice import graded, other_phrasings
from nacre.retrieval.adviser import Adviser
from nacre.retrieval.memories import ScoredMemory, rescored
from nacre.spending.models import model_for
from nacre.spending.tracing import tracing
from nacre.values.model_calls import Task
from nacre.values.recall import Lane, LaneState
from nacre.values.trace import TraceKind

SECONDS = 15.0
"""For other phrasings and for grades, each."""

_PUNCTUATION = ".,;:!?()[]{}<>\"'`*“”‘’«»…¿¡？。，！：；"
_SPECIFIC = re.compile(r"\d|[/\\_@]|\w\.\w|[a-z][A-Z]|[A-Z]{2}")
_NO_MODEL = "no language model is set: nacre setup"


@contextmanager
def advised(home: Home, seconds: float, clock: Callable[[], float] = time.monotonic) -> Iterator[Adviser]:
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


def regraded(home: Home, question: str, ranked: Sequence[ScoredMemory]) -> tuple[list[ScoredMemory], Lane]:
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
