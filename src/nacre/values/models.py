"""Values for model calls: prompts, answers, prices, costs and traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import date, datetime
from decimal import Decimal
from math import ceil
from pathlib import Path
from typing import Any

from nacre.base.frozen import frozen
from nacre.values.session import Task

MILLION = Decimal(1_000_000)
TIMEOUT_SECONDS = 120.0
"""Default timeout of a prompt; ``models.timeout_seconds`` overrides it."""


OWN_CALL = "[nacre-own-call] A program asks; nobody is talking."
"""Beginning of each prompt through an agent's command. Sessions that begin with it are not read."""

OWN_CONVERSATION = "[nacre-own-call] A program hands on what people wrote."
"""Like ``OWN_CALL``, for an answer in a conversation."""


@frozen
class Price:
    """US dollars per million tokens."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    cached: Decimal = Decimal(0)
    """For tokens read from the provider's prompt cache."""
    written: Decimal = Decimal(0)
    """For tokens written to the cache."""


@frozen
class Capabilities:
    """The capabilities of a model. ``window`` and ``output`` are tokens; the window includes input
    and output.

    ``answers`` is the way to enforce a schema: ``schema`` (by the provider), ``tool`` (a required
    tool call), ``json`` (any JSON), ``text`` (by instruction only). ``price`` is None if unknown.
    ``thinking`` tokens are requested in addition to those of the answer.
    """

    window: int = 32_000
    output: int = 4_096
    answers: str = "json"
    caches: bool = False
    thinking: int = 0
    price: Price | None = None
    known: bool = False
    """True if the registry has the model. Unknown models get transcripts in chunks."""


@frozen
class Tokens:
    """Tokens of one call. ``input`` excludes ``cached`` (read from a cache) and ``written``
    (written to one).
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.written + other.written,
        )

    def cost(self, price: Price) -> Decimal:
        """Return the cost in US dollars."""
        return (
            self.input * price.input
            + self.output * price.output
            + self.cached * price.cached
            + self.written * price.written
        ) / MILLION


@frozen
class Prompt:
    """One self-contained prompt for a model.

    ``system`` and ``shared`` are the same in many prompts and come first, so that a provider can
    cache them. ``text`` is specific to this prompt. ``answer`` is the JSON schema of the answer,
    empty for plain text. ``name`` is the answer's name, for models that answer by a tool call.
    ``version`` names the prompt's file, such as ``extraction/1``. Plain text may be streamed:
    ``hear`` is called with the pieces in order, from another thread, and must not raise. ``tools``
    are the tools of an agent's command, by its own names, that it may use in ``folder``.
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


@frozen
class Completion:
    """A model's answer. ``text`` is JSON if a schema was given; it is not validated yet."""

    text: str
    tokens: Tokens = Tokens()
    model: str = ""
    """The model name that the provider reports."""
    is_cut: bool = False
    """True if the model ran out of tokens."""
    is_repeated: bool = False
    """True if the answer is from the cache of earlier calls, at no cost."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Further facts from the provider: its id of the call, the duration in seconds, the ``steps``
    of its tools.
    """


def most_written(prompt: Prompt, able: Capabilities) -> int:
    """Return the maximum number of output tokens for a prompt, including thinking."""
    return min(prompt.output_tokens + able.thinking, able.output)


# -- Costs ---------------------------------------------------------------------


DOLLAR = 1_000_000
"""Costs are counted in millionths of a US dollar."""


@frozen
class Place:
    """The destination of texts to embed, and the price of a million tokens; ``None`` if unknown.

    ``host`` is empty if they stay within nacre. ``model`` is the name stored with the vectors. ``is_local``: nothing
    suggests that the texts leave this machine.
    """

    host: str = ""
    is_here: bool = True
    is_local: bool = True
    price: Decimal | None = Decimal(0)
    model: str = ""

    def cost(self, tokens: int) -> int | None:
        """Return the cost of tokens in millionths of a US dollar, rounded up."""
        return None if self.price is None else ceil(self.price * tokens * DOLLAR / MILLION)


@frozen
class Call:
    """One model call. ``day`` is by the owner's clock.

    ``cost`` is in millionths of a US dollar, None if the price is unknown. ``outcome`` is ``open``
    (running, or its process ended; the cost is then the maximum), ``done`` or ``failed`` (tokens
    and cost are then estimates).
    """

    id: str
    at: datetime
    day: date
    task: str
    model: str
    is_background: bool
    tokens: Tokens = Tokens()
    cost: int | None = None
    seconds: float = 0.0
    outcome: str = "open"


@frozen
class TaskCost:
    """A task's calls and cost today and this month, in millionths of a US dollar, and the month's tokens.

    The cost excludes ``unpriced`` calls, whose price is unknown. Calls by subscription cost nothing.
    """

    task: str
    calls_today: int
    cost_today: int
    calls: int
    failed: int
    tokens: int
    cost: int
    unpriced: int


@frozen
class Health:
    """A model whose last call failed. Background tasks do not call it before ``until``."""

    model: str
    until: datetime
    told: str


def dollars(counted: int) -> str:
    """Format millionths of a US dollar with two significant digits, and at least cents."""
    amount = abs(counted) / DOLLAR
    is_round = counted % (DOLLAR // 100) == 0
    digits = 2 if amount >= 0.1 or is_round else 3 if amount >= 0.01 else 4
    sign = "-" if counted < 0 else ""
    if 0 < amount < 0.0001:
        return f"{sign}<$0.0001"
    return f"{sign}${amount:,.{digits}f}"


# -- Traces of calls, and questions ---------------------------------------------


NOTHING_FOUND = "nothing found"
NOT_SURE = "nothing that is sure enough to be shown"
UNANSWERED = (NOTHING_FOUND, NOT_SURE)
"""Outcomes of questions that were not answered."""


@frozen
class Trace:
    """One model call, whole: without secrets, and without the instructions in the prompt's file.

    ``error`` is empty for an answered call. ``cost`` is in millionths of a US dollar, None if
    unknown.
    """

    id: str
    task: Task
    at: datetime
    model: str
    prompt: str
    answer: str = ""
    error: str = ""
    tokens: Tokens = Tokens()
    cost: int | None = None
    seconds: float = 0.0


@frozen
class AskedQuestion:
    """One question to recall and its outcome.

    ``is_narrowed`` is set if it had other filters than ``projects``.
    """

    id: str
    at: datetime
    text: str
    outcome: str
    projects: tuple[str, ...] = ()
    is_narrowed: bool = False
