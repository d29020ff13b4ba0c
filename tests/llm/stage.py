"""What scenarios are played on: a machine of its own, a clock that stands, ids in order, a model that is watched."""

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


class Watched:
    """Another model, taken for as able as a scenario wants; implements LanguageModel.

    Prompts are cut to what a model can do: so they are the same whoever is asked. Where an answer is not to be had,
    nacre goes on without; here that is remembered, since then the scenario says nothing of the model.
    """

    def __init__(self, model: LanguageModel, capabilities: Capabilities) -> None:
        self.name = model.name
        self.capabilities = capabilities
        self.asked: list[Prompt] = []
        self.failures: list[NacreError] = []
        self._model = model

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt, within the time that models may take at most. Raises what the model raises."""
        self.asked.append(prompt)
        try:
            return self._model.complete(replace(prompt, timeout_seconds=TIMEOUT_SECONDS))
        except NacreError as error:
            self.failures.append(error)
            raise

    def close(self) -> None:
        """Whoever opened the model closes it."""


@dataclass
class Stage:
    """A machine on which nothing happened yet, and the model."""

    folder: Path
    model: Watched
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
        """A home in which the model does these tasks and no other; ``model`` stands in for it.

        ``embedding``: texts that share words are near. Else there are no vectors.
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
        """A session of Claude Code of 18 November 2026, in ``/code/acme``."""
        return write(self.folder / "sessions", "claude-code", steps)


Play = Callable[[Stage], None]


@dataclass(frozen=True)
class Scenario:
    """Something that happens on a stage, and what must have come of it in the end."""

    name: str
    play: Play
    able: Capabilities = ABLE

    def run(self, model: LanguageModel, folder: Path) -> Sequence[Prompt]:
        """Play it with a model, in an empty folder; what the model was asked.

        Raises AssertionError where it came to another end, and the first error of a model that did not answer.
        """
        stage = Stage(folder, Watched(model, self.able))
        try:
            self.play(stage)
        finally:
            if stage.model.failures:
                raise stage.model.failures[0] from None
        return stage.model.asked


SCENARIOS: dict[str, Scenario] = {}
"""All of them, by name."""


def scenario(able: Capabilities = ABLE) -> Callable[[Play], Play]:
    """Make a function a scenario of its name."""

    def named(play: Play) -> Play:
        name = play.__name__.replace("_", "-")
        SCENARIOS[name] = Scenario(name, play, able)
        return play

    return named
