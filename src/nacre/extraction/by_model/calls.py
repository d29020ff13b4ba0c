"""Asks: one call after another, with their tokens counted."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from threading import Lock
from typing import TypeVar

import msgspec

from nacre.errors import AnswerUnusable, BudgetSpent, ModelRefused, ModelUnavailable, ModelUnreadable, NacreError
from nacre.extraction.by_model.answer import tidied, tidied_changes
from nacre.extraction.by_model.prompts import CHANGES, MEMORIES
from nacre.llm.answers import ask
from nacre.protocols import LanguageModel
from nacre.values.model_calls import Completion, Prompt, Tokens

A = TypeVar("A", bound=msgspec.Struct)

_FAILURES_IN_A_ROW = 6
_HELD_TO_A_SCHEMA = ("schema", "tool")
_TIDIED = {MEMORIES: tidied, CHANGES: tidied_changes}

_UNUSABLE_AT_FIRST = 3
"""A model that never answered in the shape asked for, each time told what was wrong, is given up sooner."""

FAILURES = (ModelUnavailable, ModelRefused, BudgetSpent, AnswerUnusable)
"""All that a call may come to: the deterministic path does the work then."""


class Caller:
    """Asks one model on behalf of one session; safe to share between threads. A LanguageModel itself.

    ``stopped`` says why nothing more is asked: the model refused, what it may cost is used up, or it fails every time.
    """

    def __init__(self, model: LanguageModel) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self.tokens = Tokens()
        self.calls = 0
        self.answered = 0
        self.was_cut = False
        self.stopped: NacreError | None = None
        self.problem: NacreError | None = None
        self._model = model
        self._failures = 0
        self._was_spent = False
        self._lock = Lock()

    def ask(self, prompt: Prompt, answer: type[A]) -> A | None:
        """The answer to a prompt; ``None`` where there is none, and ``problem`` says why."""
        if self.stopped:
            return None
        try:
            found = ask(self, prompt, answer)
        except FAILURES as error:
            self._failed(error)
            return None
        self._failures = 0
        self.answered += 1
        return found

    def complete(self, prompt: Prompt) -> Completion:
        """One call. Of a model that nothing holds to the schema, what nearly fits is made to fit."""
        completion = self._model.complete(prompt)
        with self._lock:
            self.calls += not completion.is_repeated
            self.tokens += completion.tokens
            self.was_cut = self.was_cut or completion.is_cut
        tidy = _TIDIED.get(prompt.name)
        if tidy is None or self.capabilities.answers in _HELD_TO_A_SCHEMA:
            return completion
        return replace(completion, text=tidy(completion.text))

    def close(self) -> None:
        """Cut off the calls that run; nothing more is asked."""
        self.stopped = self.stopped or ModelUnavailable("it was interrupted", retry=False)
        with suppress(NacreError):
            self._model.close()

    @property
    def is_over(self) -> bool:
        """Whether asking about anything else would be in vain, too."""
        return self.stopped is not None and not (self.answered and _may_pass(self.stopped))

    @property
    def is_spent(self) -> bool:
        """Whether a call was refused since it took what it may."""
        return isinstance(self.stopped, BudgetSpent) or self._was_spent

    def try_smaller(self) -> None:
        """Ask once more where only a budget stands against it: a smaller call may fit."""
        if isinstance(self.stopped, BudgetSpent):
            self.stopped, self._was_spent = None, True

    @property
    def is_useless(self) -> bool:
        """Whether nothing more is asked since the model never answered in the shape asked for, or in none."""
        return isinstance(self.stopped, AnswerUnusable | ModelUnreadable)

    def _failed(self, error: NacreError) -> None:
        self.problem = error
        self._failures += 1
        never_fits = isinstance(error, AnswerUnusable) and not self.answered
        if not _may_pass(error) or self._failures >= (_UNUSABLE_AT_FIRST if never_fits else _FAILURES_IN_A_ROW):
            self.stopped = error


def _may_pass(error: NacreError) -> bool:
    return isinstance(error, AnswerUnusable) or (isinstance(error, ModelUnavailable) and error.retry)
