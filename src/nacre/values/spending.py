"""What language models were asked, and what that cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from nacre.values.model_calls import Tokens

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
