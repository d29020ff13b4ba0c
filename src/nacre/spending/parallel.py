"""Questions to language models, asked side by side: what all of them have in common, whatever they are about.

Each is a function that asks and returns the answer. None of them touches the home: what they need is read before, and
what they found is written afterwards, in the order of the questions.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from nacre.errors import AnswerUnusable, BudgetSpent, ModelRefused, ModelUnavailable, NacreError, PromptTooLong
from nacre.home.home import Home
from nacre.platform.lazy import Module

if TYPE_CHECKING:
    from concurrent import futures
else:
    futures = Module("concurrent.futures")

A = TypeVar("A")

_FINAL = (ModelUnavailable, ModelRefused, BudgetSpent)


@dataclass(frozen=True, slots=True)
class Answered(Generic[A]):
    """An answer, beside the errors and what was not answered."""

    value: A


def ask_all(
    home: Home, questions: Sequence[Callable[[], A]], at_once: int, seconds: float | None = None
) -> list[Answered[A] | NacreError | None]:
    """The answers, in the order of the questions, so many of which are asked at once.

    One that failed is the error; ``None`` stands where nobody was asked, or not answered in so many seconds: once a
    model is not to be had, refuses, or may cost no more, what is left is not asked. Other threads of the home go on
    meanwhile. Whoever interrupts it closes the models, which ends the calls that still run.
    """

    if not questions:
        return []
    is_over = threading.Event()

    def put(question: Callable[[], A]) -> Answered[A] | NacreError | None:
        if is_over.is_set():
            return None
        try:
            return Answered(question())
        except (AnswerUnusable, ModelUnavailable, ModelRefused, BudgetSpent) as error:
            if is_final(error):
                is_over.set()
            return error

    pool = futures.ThreadPoolExecutor(at_once, "nacre-asking")
    try:
        running = [pool.submit(contextvars.copy_context().run, put, question) for question in questions]
        with home.turn.aside():
            futures.wait(running, seconds)
    finally:
        is_over.set()
        pool.shutdown(wait=False, cancel_futures=True)
    return [future.result() if future.done() and not future.cancelled() else None for future in running]


def is_final(answer: object) -> bool:
    """Whether it is an error after which a model is to be asked no more: one of it, and not of the question."""
    return isinstance(answer, _FINAL) and not isinstance(answer, PromptTooLong)
