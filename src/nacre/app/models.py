"""Which language model does what, with all that is wrapped around it."""

from __future__ import annotations

import time

from nacre.app import tracing
from nacre.app.context import Context
from nacre.errors import NacreError
from nacre.lock import Turn
from nacre.model.prompting import Capabilities, Completion, Prompt, Task, Tokens
from nacre.model.trace import Step
from nacre.protocols import LanguageModel
from nacre.text import shorten

NONE = "none"
_ASKED_CHARACTERS = 160
_ANSWERED_CHARACTERS = 300


def name_for(context: Context, task: Task) -> str:
    """The model that is set for a task, as ``provider:model``; ``none`` where there is none."""
    settings = context.settings
    own = "" if task is Task.TEST else settings[f"models.{task.value}"]
    return own or settings["models.default"] or NONE


def waits_for_models(context: Context) -> bool:
    """Whether a model looks at new memories by and by: one is set for that, and models may work in the background."""
    return bool(context.settings["models.background"]) and may_judge(context)


def may_judge(context: Context) -> bool:
    """Whether a model is set that looks at memories once they are stored."""
    return any(name_for(context, task) != NONE for task in (Task.CLAIMS, Task.CONTRADICTION, Task.TODOS))


def model_for(context: Context, task: Task, *, background: bool) -> LanguageModel | None:
    """The model that does a task; ``None`` where none is set, or where it is for the ``background`` only.

    Work that nobody asked for in so many words (what is learned while sessions are read, judging a new memory) is
    background work: no model does it until ``models.background`` is on, and the budgets hold it. Every call is counted
    and is a step of the run that goes on; what was asked lately is answered from what was kept. Raises ModelRefused
    where the model that is set cannot be opened.
    """
    name = name_for(context, task)
    if name == NONE or (background and not context.settings["models.background"]):
        return None
    return _wrapped(context, context.load_model(context.settings, name), background=background)


def _wrapped(context: Context, model: LanguageModel, *, background: bool) -> LanguageModel:
    from nacre.app.spending import HomeAnswers, HomeBooks, OwnConnection  # only where a model is
    from nacre.llm.caching import Cached
    from nacre.llm.metering import Metered

    connection = OwnConnection(context)
    counted: LanguageModel = Metered(model, HomeBooks(context, connection, background=background))
    if context.settings["models.cache_days"]:
        counted = Cached(counted, HomeAnswers(context, connection, background=background))
    return _Traced(counted, context.turn, keeps_prompts=context.settings["models.keep_prompts"])


class _Traced:
    """Another model, each call of which is a step of the run that goes on, and holds up no other thread of the home;
    implements LanguageModel."""

    def __init__(self, model: LanguageModel, turn: Turn, *, keeps_prompts: bool) -> None:
        self.name = model.name
        self.capabilities: Capabilities = model.capabilities
        self._model = model
        self._turn = turn
        self._keeps_prompts = keeps_prompts

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises what the model raises."""
        with self._turn.aside():
            return self._asked(prompt)

    def _asked(self, prompt: Prompt) -> Completion:
        run = tracing.current()
        if run is None:
            return self._model.complete(prompt)
        began = time.perf_counter()
        try:
            completion = self._model.complete(prompt)
        except NacreError as error:
            run.add(self._step(prompt, error.message, time.perf_counter() - began, None))
            raise
        run.add(self._step(prompt, completion.text, time.perf_counter() - began, completion))
        return completion

    def close(self) -> None:
        """Close the model."""
        self._model.close()

    def _step(self, prompt: Prompt, told: str, seconds: float, completion: Completion | None) -> Step:
        from nacre.llm.answers import REPAIR
        from nacre.llm.metering import cost_of

        title = "has an answer mended" if REPAIR in prompt.text else "asks the model"
        if completion and completion.is_repeated:
            title = "takes an answer that was kept"
        asked = f"{prompt.version or prompt.task.value}: {shorten(prompt.text, _ASKED_CHARACTERS)}"
        said = shorten(told, _ANSWERED_CHARACTERS) + (" (cut off)" if completion and completion.is_cut else "")
        whole = "\n\n".join(part for part in (prompt.system, prompt.shared, prompt.text) if part)
        return Step(
            title, asked, said, status="done" if completion else "failed", seconds=seconds, model=self.name,
            tokens=completion.tokens if completion else Tokens(),
            cost=cost_of(completion, self.capabilities) if completion else None,
            prompt=whole if self._keeps_prompts else "",
            answer=told if self._keeps_prompts and completion else "",
        )  # fmt: skip
