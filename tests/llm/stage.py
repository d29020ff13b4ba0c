"""The stage of scenarios: an isolated machine, a fixed clock, ordered ids and an observed model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from nacre.base.ids import Ids, uuid7_source
from nacre.errors import NacreError
from nacre.home.home import Home, open_home
from nacre.protocols import LanguageModel
from nacre.testing.conformance import Step
from nacre.values.models import TIMEOUT_SECONDS, Capabilities, Completion, Price, Prompt
from nacre.values.session import Task
from tests.app.conftest import World
from tests.app.shapes import write

ABLE = Capabilities(window=200_000, output=16_000, answers="schema", price=Price(), known=True)


class ObservedModel:
    """A LanguageModel that wraps another model and reports the capabilities that a scenario requires.

    Prompts are cut to the model's capabilities, so they are the same for every model. nacre continues without an answer
    if a model fails. The failure is recorded here, since the scenario then proves nothing about the model.
    """

    def __init__(self, model: LanguageModel, capabilities: Capabilities) -> None:
        self.name = model.name
        self.capabilities = capabilities
        self.prompts: list[Prompt] = []
        self.failures: list[NacreError] = []
        self._model = model

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt within the maximum time of a model call. Raises the errors of the model."""
        self.prompts.append(prompt)
        try:
            return self._model.complete(replace(prompt, timeout_seconds=TIMEOUT_SECONDS))
        except NacreError as error:
            self.failures.append(error)
            raise

    def close(self) -> None:
        """Do nothing. The caller that opened the model closes it."""


@dataclass
class Stage:
    """An unused machine and the model."""

    folder: Path
    model: ObservedModel
    world: World = field(init=False)
    ids: Ids = field(init=False)

    def __post_init__(self) -> None:
        user_home = self.folder / "user"
        user_home.mkdir()
        self.world = World(user_home)
        self.ids = uuid7_source(self.world.clock, bytes)

    @contextmanager
    def open(
        self, *tasks: Task, model: LanguageModel | None = None, embedding: bool = False
    ) -> Iterator[Home]:
        """Open a home in which the model does only these tasks. ``model`` replaces the stage's model.

        With ``embedding``, texts that share words are similar. Without it there are no vectors.
        """
        environ = {
            f"NACRE_MODELS_{task.value.upper()}": "scenario:1"
            for task in tasks
            if task is not Task.TEST
        }
        self.world.environ = {
            "NACRE_MODELS_BACKGROUND": "true",
            "NACRE_DEDUP_MODEL_SECONDS": "3600",
            "TZ": "UTC",
            "NACRE_EMBEDDING_MODEL": "minilm" if embedding else "none",
            **environ,
        }
        context = open_home(
            self.world.settings(),
            clock=self.world.clock,
            ids=self.ids,
            load_embedder=lambda _: self.world.embedder,
            load_model=lambda *_: model or self.model,
        )
        try:
            yield context
        finally:
            context.database.close()

    def transcript(self, *steps: Step) -> Path:
        """Write a Claude Code session of 18 November 2026 in ``/code/acme``."""
        return write(self.folder / "sessions", "claude-code", steps)


Play = Callable[[Stage], None]


@dataclass(frozen=True)
class Scenario:
    """A sequence of actions on a stage and the checks of their result."""

    name: str
    play: Play
    able: Capabilities = ABLE

    def run(self, model: LanguageModel, folder: Path) -> Sequence[Prompt]:
        """Play the scenario in an empty folder and return the model's prompts.

        Raises AssertionError if the result differs, and the first error of a model that failed to answer.
        """
        stage = Stage(folder, ObservedModel(model, self.able))
        try:
            self.play(stage)
        finally:
            if stage.model.failures:
                raise stage.model.failures[0] from None
        return stage.model.prompts


SCENARIOS: dict[str, Scenario] = {}
"""All scenarios by name."""


def scenario(able: Capabilities = ABLE) -> Callable[[Play], Play]:
    """Register a function as a scenario under its name."""

    def register(play: Play) -> Play:
        name = play.__name__.replace("_", "-")
        SCENARIOS[name] = Scenario(name, play, able)
        return play

    return register
