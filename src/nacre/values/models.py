"""What is asked of a language model, what it answers, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from nacre.values.session import Task

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
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.written + other.written,
        )

    def cost(self, price: Price) -> Decimal:
        """US dollars."""
        return (
            self.input * price.input
            + self.output * price.output
            + self.cached * price.cached
            + self.written * price.written
        ) / MILLION


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


# ----------------------------------------------------------------------------
# What language models were asked, and what that cost.


DOLLAR = 1_000_000
"""Costs are counted in millionths of a US dollar."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a model, at a time and on a day of the owner's clock.

    ``cost`` is millionths of a US dollar, ``None`` where the price is not known. ``outcome`` is ``open`` (it runs, or
    its process ended: then the cost is what it could be at most), ``done`` or ``failed`` (then tokens and cost are an
    estimate of what that took). ``trace`` is its run.
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
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls of one day, task and model, added up; ``cost`` leaves out those of unknown price, the ``unpriced``.

    ``estimated`` is what of the cost is an estimate: of calls that failed, or of which nobody heard again.
    """

    day: date
    task: str
    model: str
    is_background: bool
    calls: int
    failed: int
    tokens: Tokens
    cost: int
    unpriced: int
    seconds: float
    estimated: int = 0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Background calls that were not made, and why: ``budget``, ``task budget``, ``no price``, ``tokens``, ``no
    tokens`` or ``calls``.
    """

    day: date
    task: str
    model: str
    reason: str
    times: int


@dataclass(frozen=True, slots=True)
class Health:
    """A model that failed when it was asked last; in the background it is not asked before ``until``."""

    model: str
    until: datetime
    told: str


def dollars(counted: int) -> str:
    """Millionths of a US dollar as people write them: two digits that say something, cents at least."""
    amount = abs(counted) / DOLLAR
    is_round = counted % (DOLLAR // 100) == 0
    digits = 2 if amount >= 0.1 or is_round else 3 if amount >= 0.01 else 4
    sign = "-" if counted < 0 else ""
    if 0 < amount < 0.0001:
        return f"{sign}<$0.0001"
    return f"{sign}${amount:,.{digits}f}"


# ----------------------------------------------------------------------------
# Traces: what one run of a model, or one answered question, went through.


NOTHING_FOUND = "nothing found"
NOT_SURE = "nothing that is sure enough to be shown"
"""Outcomes of a case whose question was not answered."""

PROJECTS = "projects"
NARROWED = "narrowed"
"""What a case keeps of the filter: the projects asked about, and the names of other filters."""


class TraceKind(StrEnum):
    """What was run; a ``case`` is one answered question, ``index`` what was read and learned from transcripts."""

    CASE = "case"
    INDEX = "index"
    EXTRACTION = "extraction"
    DEDUP = "dedup"
    CLAIMS = "claims"
    CONTRADICTION = "contradiction"
    TODOS = "todos"
    RECALL = "recall"
    HANDOFF = "handoff"
    DREAM = "dream"
    CHAT = "chat"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what went in and came out in a line each, what it refers to (ids), and how long it took.

    A step that asked a model has its name, tokens and cost in US dollars (``None`` where the price is not known).
    """

    title: str
    input: str = ""
    output: str = ""
    status: str = "done"
    """``done``, ``failed`` or ``skipped``."""
    refs: tuple[str, ...] = ()
    seconds: float = 0.0
    model: str = ""
    tokens: Tokens = Tokens()
    cost: Decimal | None = None
    more: Mapping[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Trace:
    """One run. ``subject`` is what it was about: a session's id, a question.

    Of a question, ``session`` tells in which session of a host it was asked: a hash of its id.
    """

    id: str
    kind: TraceKind
    subject: str
    began: datetime
    ended: datetime | None = None
    outcome: str = ""
    steps: tuple[Step, ...] = ()
    session: str = ""
