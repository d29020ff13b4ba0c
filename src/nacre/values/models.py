"""Values for model calls: prompts, answers, prices, costs and traces."""

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
"""Start of each prompt that nacre sends through an agent's command. Sessions that start with it are not read."""

OWN_CONVERSATION = "[nacre-own-call] A program hands on what people wrote."
"""Start of each prompt for an answer in a conversation. See ``OWN_CALL``."""


@frozen
class Price:
    """Price in US dollars per million tokens."""

    input: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    cached: Decimal = Decimal(0)
    """Price of tokens read from the provider's prompt cache."""
    written: Decimal = Decimal(0)
    """Price of tokens written to the cache."""


@frozen
class Capabilities:
    """The capabilities of a model.

    ``window``: maximum number of input and output tokens together. ``output``: maximum number of
    output tokens. ``answers``: method that makes the model follow a JSON schema. The methods are
    ``schema`` (the provider enforces the schema), ``tool`` (a required tool call), ``json`` (any
    JSON) and ``text`` (only instructions). ``thinking``: number of tokens to request in addition to
    the answer's tokens. ``price``: None if unknown.
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
    """Number of tokens in one call.

    ``input`` excludes ``cached`` (read from a cache) and ``written`` (written to a cache).
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
        return (
            self.input * price.input
            + self.output * price.output
            + self.cached * price.cached
            + self.written * price.written
        ) / MILLION


@frozen
class Prompt:
    """A complete prompt for a model.

    ``system``, ``shared``: text that many prompts share. This text comes first, so that a provider
    can cache it. ``text``: text of this prompt. ``answer``: JSON schema for the answer, or empty
    for plain text. ``name``: name of the answer, for models that answer with a tool call.
    ``version``: name of the prompt's file, such as ``extraction/1``. ``tools``, ``folder``: tools
    that an agent can use, and its working folder.
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
    """A model's answer. If a schema was given, ``text`` is JSON, not validated yet."""

    text: str
    tokens: Tokens = Tokens()
    model: str = ""
    """The model's name according to the provider."""
    is_cut: bool = False
    """True if the answer was cut because the model ran out of tokens."""
    is_repeated: bool = False
    """True if nacre's cache contained the answer, which then costs nothing."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """More facts from the provider: call id, duration in seconds, and tool ``steps``."""


def most_written(prompt: Prompt, able: Capabilities) -> int:
    """Return the maximum number of output tokens for a prompt, including tokens for thinking."""
    return min(prompt.output_tokens + able.thinking, able.output)


# -- Costs ---------------------------------------------------------------------


DOLLAR = 1_000_000
"""Costs are counted in millionths of a US dollar."""


@frozen
class Place:
    """The host that embeds text.

    ``host``: empty if nacre embeds the text itself. ``is_local``: True if the text does not seem to
    leave this machine. ``price``: price per million tokens, or None if unknown. ``model``: name
    stored with the vectors.
    """

    host: str = ""
    is_here: bool = True
    is_local: bool = True
    price: Decimal | None = Decimal(0)
    model: str = ""

    def cost(self, tokens: int) -> int | None:
        """Return the cost of some tokens in millionths of a US dollar, rounded up."""
        return None if self.price is None else ceil(self.price * tokens * DOLLAR / MILLION)


@frozen
class Call:
    """One model call. ``day`` is a local day.

    ``cost`` is in millionths of a US dollar, or None if the price is unknown. ``outcome`` is
    ``done``, ``failed`` (tokens and cost are estimates), or ``open`` (the call is running or its
    process ended; the cost is the maximum).
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
    """The cost of a task's model calls, today and this month, in millionths of a US dollar.

    Calls through a subscription cost nothing. ``unpriced``: number of calls whose price is unknown.
    Their cost is not included.
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
    """The failure of a model's last call. Background tasks do not call the model before ``until``."""

    model: str
    until: datetime
    told: str


def dollars(counted: int) -> str:
    """Format millionths of a US dollar as dollars, showing at least cents and two significant digits."""
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
"""Outcomes of recall questions that count as unanswered."""


@frozen
class Trace:
    """A record of one model call. Secrets and the prompt file's instructions are removed.

    ``error``: empty if the call succeeded. ``cost``: cost in millionths of a US dollar, or None if
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
    """A recall question and its outcome.

    ``is_narrowed``: True if the recall was restricted by filters other than ``projects``.
    """

    id: str
    at: datetime
    text: str
    outcome: str
    projects: tuple[str, ...] = ()
    is_narrowed: bool = False
