"""Which language model does what, with all that is wrapped around it."""

from __future__ import annotations

from nacre.home.home import Home
from nacre.llm.aliases import full_name
from nacre.platform.lazy import load
from nacre.protocols import LanguageModel
from nacre.settings import Settings
from nacre.values.model_calls import Task

NONE = "none"


def name_for(home: Home, task: Task) -> str:
    """The model that is set for a task, as ``provider:model``; ``none`` where there is none. An alias is resolved."""
    return full_name(set_for(home, task))


def set_for(home: Home, task: Task) -> str:
    """The same as it is written in the settings.

    Dreams are the writer's, unless they have a model of their own.
    """
    settings = home.settings
    own = "" if task is Task.TEST else settings[f"models.{task.value}"]
    own = own or (settings[f"models.{Task.EXTRACTION.value}"] if task is Task.DREAM else "")
    return own or settings.text("models.default") or NONE


def has_writer(settings: Settings) -> bool:
    """Whether a model is to write in the background."""
    name = settings[f"models.{Task.EXTRACTION.value}"] or settings.text("models.default") or NONE
    return settings.flag("models.background") and name != NONE


def waits_for_models(home: Home) -> bool:
    """Whether a model looks at new memories by and by: one is set for that, and models may work in the background."""
    return bool(home.settings.flag("models.background")) and may_judge(home)


def may_judge(home: Home) -> bool:
    """Whether a model is set that looks at memories once they are stored."""
    return any(name_for(home, task) != NONE for task in (Task.CLAIMS, Task.CONTRADICTION, Task.TODOS))


def model_for(home: Home, task: Task, *, background: bool) -> LanguageModel | None:
    """The model that does a task; ``None`` where none is set, or where it is for the ``background`` only.

    Work that nobody asked for in so many words (what is learned while sessions are read, judging a new memory) is
    background work: no model does it until ``models.background`` is on, and the budgets hold it. Every call is counted
    and is a step of the run that goes on; what was asked lately is answered from what was kept. Raises ModelRefused
    where the model that is set cannot be opened.
    """
    name = name_for(home, task)
    if name == NONE or (background and not home.settings.flag("models.background")):
        return None
    model: LanguageModel = load("nacre.spending.wrapping:wrapped")(
        home, home.load_model(home.settings, name), background=background
    )
    return model
