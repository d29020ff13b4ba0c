"""Which language model does what, with all that is wrapped around it."""

from __future__ import annotations

import time
from threading import local
from typing import TYPE_CHECKING

from nacre.errors import NacreError
from nacre.home.home import Home
from nacre.platform.locks import Turn
from nacre.protocols import LanguageModel
from nacre.spending import tracing
from nacre.text.passages import shorten
from nacre.values.model_calls import Capabilities, Completion, Prompt, Task
from nacre.values.trace import Step

if TYPE_CHECKING:
    from nacre.llm.retry import Hear, Setback

NONE = "none"
_ASKED_CHARACTERS = 160
_ANSWERED_CHARACTERS = 300


def name_for(home: Home, task: Task) -> str:
    """The model that is set for a task, as ``provider:model``; ``none`` where there is none."""
    settings = home.settings
    own = "" if task is Task.TEST else settings[f"models.{task.value}"]
    return own or settings["models.default"] or NONE


def waits_for_models(home: Home) -> bool:
    """Whether a model looks at new memories by and by: one is set for that, and models may work in the background."""
    return bool(home.settings["models.background"]) and may_judge(home)


def may_judge(home: Home) -> bool:
    """Whether a model is set that looks at memories once they are stored."""
    return any(name_for(home, task) != NONE for task in (Task.CLAIMS, Task.CONTRADICTION, Task.TODOS))


def model_for(home: Home, task: Task, *, background: bool, hear: Hear | None = None) -> LanguageModel | None:
    """The model that does a task; ``None`` where none is set, or where it is for the ``background`` only.

    Work that nobody asked for in so many words (what is learned while sessions are read, judging a new memory) is
    background work: no model does it until ``models.background`` is on, and the budgets hold it. Every call is counted
    and is a step of the run that goes on, each try of it by itself; what was asked lately is answered from what was
    kept. ``hear`` is told of tries that failed and are made again. Raises ModelRefused where the model that is set
    cannot be opened.
    """
    name = name_for(home, task)
    if name == NONE or (background and not home.settings["models.background"]):
        return None
    return _wrapped(home, home.load_model(home.settings, name), hear, background=background)


def _wrapped(home: Home, model: LanguageModel, hear: Hear | None, *, background: bool) -> LanguageModel:
    from nacre.llm.cache import Cached
    from nacre.llm.meter import Metered
    from nacre.llm.retry import RetryingModel
    from nacre.spending.budget import HomeAnswers, HomeBooks, OwnConnection
    from nacre.spending.circuit_breaker import CircuitBreaker  # all of these only where a model is

    connection = OwnConnection(home)
    books = HomeBooks(home, connection, background=background)
    told = _Told(model.name, model.capabilities, keeps_prompts=home.settings["models.keep_prompts"])
    if isinstance(model, RetryingModel):  # each try is a call: it is asked for, and counted
        hears = [told.hear, *([hear] if hear else [])]
        model = model.around(lambda each: Metered(each, books), hears)
    else:
        model = Metered(model, books)
    if background:
        model = CircuitBreaker(model, home, connection)
    if home.settings["models.cache_days"]:
        model = Cached(model, HomeAnswers(home, connection, background=background))
    return _Traced(model, home.turn, told)


class _Traced:
    """Another model, each call of which is a step of the run that goes on, and holds up no other thread of the home;
    implements LanguageModel."""

    def __init__(self, model: LanguageModel, turn: Turn, told: _Told) -> None:
        self.name = model.name
        self.capabilities: Capabilities = model.capabilities
        self._model = model
        self._turn = turn
        self._told = told

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises what the model raises."""
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


class _Told(local):
    """Tells the run that goes on, if one does, of each try of a call; each thread has its own."""

    def __init__(self, name: str, able: Capabilities, *, keeps_prompts: bool) -> None:
        self._name = name
        self._able = able
        self._keeps_prompts = keeps_prompts
        self._began = 0.0

    def begin(self) -> None:
        """A try begins."""
        self._began = time.perf_counter()

    def answered(self, prompt: Prompt, completion: Completion) -> None:
        """It was answered."""
        from nacre.llm.meter import cost_of

        step = Step(
            _title(prompt, completion), _asked(prompt),
            shorten(completion.text, _ANSWERED_CHARACTERS) + (" (cut off)" if completion.is_cut else ""),
            seconds=self._took(), model=self._name, tokens=completion.tokens, cost=cost_of(completion, self._able),
            prompt=_whole(prompt) if self._keeps_prompts else "", answer=completion.text if self._keeps_prompts else "",
        )  # fmt: skip
        self._add(step)

    def failed(self, prompt: Prompt, error: NacreError, more: str = "") -> None:
        """It was not; what it took is an estimate."""
        from nacre.llm.meter import of_failed

        tokens, cost = of_failed(prompt, error, self._able)
        step = Step(
            _title(prompt), _asked(prompt), shorten(error.message, _ANSWERED_CHARACTERS) + more, "failed",
            seconds=self._took(), model=self._name, tokens=tokens, cost=cost,
            prompt=_whole(prompt) if self._keeps_prompts else "",
        )  # fmt: skip
        self._add(step)

    def hear(self, prompt: Prompt, setback: Setback) -> None:
        """A try failed, and is made again."""
        more = f"; try {setback.number} of {setback.tries}, the next after {setback.wait:.1f} s"
        self.failed(prompt, setback.error, more)
        self._began += setback.wait  # the next one begins then

    def _took(self) -> float:
        """Seconds of this try; what comes next is another one."""
        before, self._began = self._began, time.perf_counter()
        return self._began - before

    def _add(self, step: Step) -> None:
        run = tracing.current()
        if run:
            run.add(step)


def _title(prompt: Prompt, completion: Completion | None = None) -> str:
    from nacre.llm.answers import REPAIR

    if completion and completion.is_repeated:
        return "takes an answer that was kept"
    return "has an answer mended" if REPAIR in prompt.text else "asks the model"


def _asked(prompt: Prompt) -> str:
    return f"{prompt.version or prompt.task.value}: {shorten(prompt.text, _ASKED_CHARACTERS)}"


def _whole(prompt: Prompt) -> str:
    return "\n\n".join(part for part in (prompt.system, prompt.shared, prompt.text) if part)
