"""A language model that may be asked for a while, and is not trusted to answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

import msgspec

from nacre.errors import AnswerUnusable, BudgetSpent, ModelRefused, ModelUnavailable
from nacre.llm.answers import ask, schema_of
from nacre.platform.json_text import quoted
from nacre.protocols import LanguageModel
from nacre.values.model_calls import Capabilities, Completion, Prompt, Task

A = TypeVar("A", bound=msgspec.Struct)

CALL_SECONDS = 45.0
"""One answer (seed facts 3.3)."""

_LEAST_SECONDS = 1.0
_OUTPUT_TOKENS = 512


@dataclass
class Adviser:
    """Asks a model as long as there is time. ``clock`` counts seconds, and ``until`` is when they are over.

    A model that cannot be reached, refuses, or has no budget left is not asked again; one whose answer makes no sense
    is, for the next step. ``problem`` says what was wrong with the last question.
    """

    model: LanguageModel | None
    clock: Callable[[], float]
    until: float
    problem: str | None = None

    def ask(self, prompt: Prompt, answer: type[A]) -> A | None:
        """The answer; ``None`` where there is none."""
        if self.model is None:
            return None
        self.problem = None
        try:
            return ask(_Bounded(self.model, self.clock, self.until), prompt, answer)
        except AnswerUnusable as error:
            self.problem = error.message
        except (ModelUnavailable, ModelRefused, BudgetSpent) as error:
            self.problem = error.message
            self.model = None
        return None

    def distrust(self, reason: str) -> None:
        """What the model answered has the right shape, and makes no sense."""
        self.problem = reason


class _Bounded:
    """A model within what is left of the time, also where it is asked twice."""

    def __init__(self, model: LanguageModel, clock: Callable[[], float], until: float) -> None:
        self.name = model.name
        self.capabilities: Capabilities = model.capabilities
        self._model = model
        self._clock = clock
        self._until = until

    def complete(self, prompt: Prompt) -> Completion:
        """Answer within the time that is left. Raises ModelUnavailable when none is."""
        left = self._until - self._clock()
        if left < _LEAST_SECONDS:
            raise ModelUnavailable("recall ran out of time for the model", hint="recall.deep_seconds", retry=False)
        return self._model.complete(replace(prompt, timeout_seconds=min(prompt.timeout_seconds, left)))

    def close(self) -> None:
        """Nothing of its own is open."""


def prompt_of(name: str, answer: type[msgspec.Struct], *, text: dict[str, Any], shared: Any = None) -> Prompt:
    """The prompt ``<name>-1.md``; ``shared`` and ``text`` are data for it, which cannot leave their frame."""
    return Prompt(
        task=Task.RECALL, system=_system(name), shared="" if shared is None else framed(shared), text=framed(text),
        answer=schema_of(answer), name=name.replace("-", "_"), version=f"{name}/1", output_tokens=_OUTPUT_TOKENS,
        timeout_seconds=CALL_SECONDS,
    )  # fmt: skip


def framed(value: Any) -> str:
    """Data as JSON between marks that it cannot hold, since no angle bracket is left in it."""
    return f"<data>\n{quoted(value)}\n</data>"


@cache
def _system(name: str) -> str:
    return files("nacre.retrieval").joinpath(f"prompts/{name}-1.md").read_text(encoding="utf-8")
