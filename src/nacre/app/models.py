"""Which language model does what, with all that is wrapped around it."""

from __future__ import annotations

from nacre.app.context import Context
from nacre.model.prompting import Task
from nacre.protocols import LanguageModel

NONE = "none"


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
    background work: no model does it until ``models.background`` is on. Raises ModelRefused where the model that is
    set cannot be opened.
    """
    name = name_for(context, task)
    if name == NONE or (background and not context.settings["models.background"]):
        return None
    return context.load_model(context.settings, name)
