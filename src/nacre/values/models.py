"""Values for model calls: prompts, answers, prices and costs."""

from __future__ import annotations

from collections.abc import Mapping
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
"""Default timeout in seconds for a model call. ``models.timeout_seconds`` overrides it."""


OWN_CALL = "[nacre-own-call] A program asks; nobody is talking."
"""Start of each prompt that nacre sends through an agent's command. nacre ignores sessions that start with it."""

OWN_CONVERSATION = "[nacre-own-call] A program hands on what people wrote."
"""Start of each prompt for an answer in a conversation. See ``OWN_CALL``."""


@frozen
class Price:
    """A model's prices in US dollars per million tokens."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    cached: Decimal = Decimal(0)
    """Price of tokens read from the provider's prompt cache."""
    written: Decimal = Decimal(0)
    """Price of tokens written to the cache."""


@frozen
class Capabilities:
    """The capabilities and limits of a model.

    ``window``: maximum number of input and output tokens together.
    ``output``: maximum number of output tokens.
    ``answers``: its support for JSON schemas: ``schema`` (the provider enforces them), ``json``
        (any JSON) or ``text`` (only instructions).
    ``thinking``: number of tokens to request beyond those of the answer.
    """

    window: int = 32_000
    output: int = 4_096
    answers: str = "json"
    caches: bool = False
    thinking: int = 0
    price: Price | None = None
    known: bool = False
    """True if the registry lists the model. Other models get transcripts in smaller pieces."""


@frozen
class Tokens:
    """Counts of the tokens in one model call.

    ``input`` excludes those read from a cache (``cached``) or written to it (``written``).
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

    @property
    def sent(self) -> int:
        """The number of tokens sent to the model, including cached ones."""
        return self.input + self.cached + self.written

    def cost(self, price: Price) -> Decimal:
        return (
            self.input * price.input
            + self.output * price.output
            + self.cached * price.cached
            + self.written * price.written
        ) / MILLION


@frozen
class Prompt:
    """A complete prompt for a model.

    ``system``, ``shared``: text common to many prompts; it comes first, so that providers can cache
        it.
    ``answer``: JSON schema of the answer, or empty for plain text.
    ``name``: name of that schema.
    ``version``: name of the prompt's file, such as ``extraction/1``.
    ``tools``, ``folder``: tools that an agent may use, and its working folder.
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
    tools: tuple[str, ...] = ()
    folder: Path | None = None


@frozen
class Completion:
    """A model's answer. If the prompt had a schema, ``text`` is JSON that is not validated yet."""

    text: str
    tokens: Tokens = Tokens()
    model: str = ""
    """The model's name according to the provider."""
    is_cut: bool = False
    """True if the answer was cut because the model ran out of tokens."""
    is_repeated: bool = False
    """True if nacre's cache contained the answer, which then costs nothing."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other data from the provider: call id, duration in seconds, and tool ``steps``."""


def most_written(prompt: Prompt, able: Capabilities) -> int:
    """Return the maximum number of output tokens to request, including those for thinking."""
    return min(prompt.output_tokens + able.thinking, able.output)


# -- Costs ---------------------------------------------------------------------


DOLLAR = 1_000_000
"""Costs are counted in millionths of a US dollar."""


@frozen
class Place:
    """The host that computes vectors for text.

    ``host``: empty if nacre computes them itself.
    ``is_local``: whether the text seems to stay on this machine.
    ``price``: US dollars per million tokens, or None if unknown.
    ``model``: name stored with the vectors.
    """

    host: str = ""
    is_here: bool = True
    is_local: bool = True
    price: Decimal | None = Decimal(0)
    model: str = ""

    def cost(self, tokens: int) -> int | None:
        """Return the cost in millionths of a US dollar, rounded up, or None without a price."""
        return None if self.price is None else ceil(self.price * tokens * DOLLAR / MILLION)


@frozen
class Call:
    """One call of a language model. ``day`` is a local date.

    ``cost``: millionths of a US dollar, or None if the price is unknown.
    ``outcome``: ``done``, ``failed`` (tokens and cost are estimates), or ``open`` (running or
        interrupted; the cost is the maximum).
    ``prompt``, ``answer``, ``error``: text without secrets, stored for a limited time.
    ``key``: hash of the prompt if the answer can be reused.
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
    prompt: str = ""
    answer: str = ""
    error: str = ""
    key: str | None = None


@frozen
class TaskCost:
    """The cost of a task's model calls today and this month, in millionths of a US dollar.

    Subscriptions cost nothing. ``unpriced`` counts calls with unknown prices, which are not
    included.
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
    """The failure of the last call to a model. Background work avoids the model until ``until``."""

    model: str
    until: datetime
    told: str


def dollars(counted: int) -> str:
    """Format millionths of a US dollar as dollars, with at least two significant digits."""
    amount = abs(counted) / DOLLAR
    is_round = counted % (DOLLAR // 100) == 0
    digits = 2 if amount >= 0.1 or is_round else 3 if amount >= 0.01 else 4
    sign = "-" if counted < 0 else ""
    if 0 < amount < 0.0001:
        return f"{sign}<$0.0001"
    return f"{sign}${amount:,.{digits}f}"


# -- Questions -------------------------------------------------------------------


NOTHING_FOUND = "nothing found"
NOT_SURE = "nothing that is sure enough to be shown"
UNANSWERED = (NOTHING_FOUND, NOT_SURE)
"""Outcomes of recall questions that count as unanswered."""


@frozen
class AskedQuestion:
    """A question that recall was asked, and the outcome.

    ``is_narrowed`` is True if filters other than ``projects`` restricted the search.
    """

    id: str
    at: datetime
    text: str
    outcome: str
    projects: tuple[str, ...] = ()
    is_narrowed: bool = False
