"""What is asked of deep recall, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from nacre.values.recall import Lane, MemoryHit, degraded
from nacre.values.session import Speaker


class Route(StrEnum):
    """What a question needs: nothing, what is known of the owner, or the memories of a project."""

    NONE = "none"
    OWNER = "owner"
    PROJECT = "project"


class DecidedBy(StrEnum):
    """Who took a step: a language model, rules, or whoever asked, in so many words."""

    MODEL = "model"
    RULES = "rules"
    ASKER = "asker"


@dataclass(frozen=True, slots=True)
class Said:
    """A message before the question."""

    speaker: Speaker
    text: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A project that a question may be about; ``named`` says that the question names it exactly."""

    slug: str
    score: float
    named: bool = False


@dataclass(frozen=True, slots=True)
class DeepStep:
    """One step: ``gate``, ``owner``, ``project`` or ``select``; who took it, and what came out.

    ``problem`` says why a model that was to take it did not.
    """

    name: str
    by: DecidedBy
    outcome: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class DeepResult:
    """The answer to one question.

    ``context`` is a block for an agent's prompt, framed as reference data; empty where there is nothing to tell.
    ``clarify`` are the projects of which whoever asks has to name one: nothing was read of any of them.
    ``model`` is the language model that was asked; ``None`` where none is set. ``repeated`` says that the answer is one
    of the last half minute.
    """

    query: str
    route: Route
    project: str | None = None
    clarify: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    hits: tuple[MemoryHit, ...] = ()
    context: str = ""
    steps: tuple[DeepStep, ...] = ()
    lanes: tuple[Lane, ...] = ()
    model: str | None = None
    repeated: bool = False
    took_ms: float = 0.0

    @property
    def degraded(self) -> tuple[Lane, ...]:
        """The lanes that did less than they should."""
        return degraded(self.lanes)

    @property
    def problem(self) -> str | None:
        """The first reason for which a model did not do what it was to do."""
        return next((step.problem for step in self.steps if step.problem), None)
