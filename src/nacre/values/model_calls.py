"""What is asked of a language model, what it answers, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from nacre.values.tasks import Task as Task

MILLION = Decimal(1_000_000)
TIMEOUT_SECONDS = 120.0
"""So long a prompt waits that says nothing else; ``models.timeout_seconds`` replaces it."""


OWN_CALL = "[nacre-own-call] A program asks; nobody is talking."
"""The beginning of each question that goes through an agent's command: a session that begins so is not read."""

OWN_CONVERSATION = "[nacre-own-call] A program hands on what people wrote."
"""The same where the question is an answer in a conversation."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    cached: Decimal = Decimal(0)
    """Read from the provider's prompt cache."""
    written: Decimal = Decimal(0)
    """Written to it."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can do. ``window`` and ``output`` are tokens; the window holds what is read and written together.

    ``answers`` says how it is held to a schema: ``schema`` (the provider enforces it), ``tool`` (as a tool that must be
    called), ``json`` (JSON of some kind), ``text`` (it is only told). ``price`` is unknown where it is ``None``.
    ``thinking`` tokens are asked for beyond those of the answer.
    """

    window: int = 32_000
    output: int = 4_096
    answers: str = "json"
    caches: bool = False
    thinking: int = 0
    price: Price | None = None
    known: bool = False
    """Whether the registry has the model: one that it has not is given transcripts in chunks."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one call. ``input`` is without those ``cached``, which were read from, and ``written``, to a cache."""

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input, self.output + other.output,
            self.cached + other.cached, self.written + other.written,
        )  # fmt: skip

    def cost(self, price: Price) -> Decimal:
        """US dollars."""
        return (
            self.input * price.input + self.output * price.output
            + self.cached * price.cached + self.written * price.written
        ) / MILLION  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question to a model. It has no memory of others.

    ``system`` and ``shared`` are alike in many prompts and come first, so that a provider's cache can keep them;
    ``text`` is what this one asks. ``answer`` is the JSON schema of what is wanted; an empty one wants plain text.
    ``name`` is what it is called, for models that answer by calling a tool. ``version`` names the prompt's file, as
    ``extraction/1``. Plain text may come in pieces: ``hear`` is given them in their order, by another thread, and must
    not raise. ``tools`` are those of an agent's command, by its own names, that it may use in ``folder``.
    """

    task: Task
    system: str
    text: str
    answer: Mapping[str, Any]
    name: str = "answer"
    shared: str = ""
    version: str = ""
    output_tokens: int = 4_096
    timeout_seconds: float = TIMEOUT_SECONDS
    hear: Callable[[str], None] | None = None
    tools: tuple[str, ...] = ()
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered. ``text`` is JSON where it kept to a schema; nobody has checked that yet."""

    text: str
    tokens: Tokens = Tokens()
    model: str = ""
    """What the provider says answered."""
    is_cut: bool = False
    """Whether it ran out of tokens before it had finished."""
    is_repeated: bool = False
    """Whether the answer was kept from an earlier call, and cost nothing."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else the provider told: its id of the call, the time it took in seconds, the ``steps`` of its tools."""


def most_written(prompt: Prompt, able: Capabilities) -> int:
    """The most tokens a model is asked to write for a prompt, its thinking counted."""
    return min(prompt.output_tokens + able.thinking, able.output)
