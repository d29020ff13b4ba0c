"""What is wrapped around a language model: its ledger, kept answers and a trace."""

from __future__ import annotations

import time
from dataclasses import replace
from threading import local

from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.llm.answers import REPAIR
from nacre.llm.cache import Cached
from nacre.llm.meter import Metered, cost_of, of_failed
from nacre.platform.locks import Turn
from nacre.protocols import LanguageModel
from nacre.spending import tracing
from nacre.spending.budget import HomeAnswers, HomeBooks, OwnConnection
from nacre.text.passages import shorten
from nacre.values.model_calls import TIMEOUT_SECONDS, Capabilities, Completion, Prompt, Task
from nacre.values.trace import Step

_ASKED_CHARACTERS = 160


_ANSWERED_CHARACTERS = 300


def wrapped(home: Home, model: LanguageModel, *, background: bool) -> LanguageModel:
    """A model with its ledger, its trace and what keeps it within the owner's limits."""
    connection = OwnConnection(home)
    books = HomeBooks(home, connection, background=background)
    told = CallTrace(model.name, model.capabilities)
    model = Metered(model, books)
    if home.settings.whole("models.cache_days"):
        model = Cached(model, HomeAnswers(home, connection, background=background))
    return TurnTaking(model, home.turn, told, home.settings.number("models.timeout_seconds"))


class CallTrace(local):
    """Tells the run that goes on, if one does, of each try of a call; each thread has its own."""

    def __init__(self, name: str, able: Capabilities) -> None:
        self._name = name
        self._able = able
        self._began = 0.0

    def begin(self) -> None:
        """A try begins."""
        self._began = time.perf_counter()

    def answered(self, prompt: Prompt, completion: Completion) -> None:
        """It was answered."""
        step = Step(
            _title(prompt, completion), _asked(prompt),
            shorten(completion.text, _ANSWERED_CHARACTERS) + (" (cut off)" if completion.is_cut else ""),
            seconds=self._took(), model=self._name, tokens=completion.tokens, cost=cost_of(completion, self._able),
        )  # fmt: skip
        self._add(step)

    def failed(self, prompt: Prompt, error: NacreError) -> None:
        """It was not; what it took is an estimate."""
        tokens, cost = of_failed(prompt, error, self._able)
        step = Step(
            _title(prompt), _asked(prompt), shorten(error.message, _ANSWERED_CHARACTERS), "failed",
            seconds=self._took(), model=self._name, tokens=tokens, cost=cost,
        )  # fmt: skip
        self._add(step)

    def _took(self) -> float:
        """Seconds of this try; what comes next is another one."""
        before, self._began = self._began, time.perf_counter()
        return self._began - before

    def _add(self, step: Step) -> None:
        run = tracing.current()
        if run:
            run.add(step)


def _title(prompt: Prompt, completion: Completion | None = None) -> str:
    if completion and completion.is_repeated:
        return "takes an answer that was kept"
    return "has an answer mended" if REPAIR in prompt.text else "asks the model"


def _asked(prompt: Prompt) -> str:
    return f"{prompt.version or prompt.task.value}: {shorten(prompt.text, _ASKED_CHARACTERS)}"


class TurnTaking:
    """Another model, each call of which is a step of the run that goes on, and holds up no other thread of the home;
    implements LanguageModel. ``seconds`` bounds all prompts but conversations."""

    def __init__(self, model: LanguageModel, turn: Turn, told: CallTrace, seconds: float) -> None:
        self.name = model.name
        self.capabilities: Capabilities = model.capabilities
        self._model = model
        self._turn = turn
        self._told = told
        self._seconds = seconds

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises what the model raises."""
        if prompt.task is not Task.CHAT:  # whose time is gateway.answer_seconds
            is_default = prompt.timeout_seconds == TIMEOUT_SECONDS
            seconds = self._seconds if is_default else min(prompt.timeout_seconds, self._seconds)
            prompt = replace(prompt, timeout_seconds=seconds)
        with self._turn.aside():
            return self._asked(prompt)

    def _asked(self, prompt: Prompt) -> Completion:
        if tracing.current() is None:
            return self._model.complete(prompt)
        self._told.begin()
        try:
            completion = self._model.complete(prompt)
        except NacreError as error:
            self._told.failed(prompt, error)
            raise
        self._told.answered(prompt, completion)
        return completion

    def close(self) -> None:
        """Close the model."""
        self._model.close()
