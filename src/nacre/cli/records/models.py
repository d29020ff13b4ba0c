"""Language models as records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from nacre.cli.records.values import Record
from nacre.settings import Settings
from nacre.values.model_calls import Price, Task

if TYPE_CHECKING:
    from nacre.setup.offers import Offer, Trial


def models_record(settings: Settings, uses: Mapping[Task, str], offers: Sequence[Offer]) -> Record:
    """The models that are set, and what each task has."""
    return {
        "default": settings["models.default"],
        "background": settings["models.background"],
        "daily_budget_usd": settings["models.daily_budget_usd"],
        "tasks": {task.value: name for task, name in uses.items()},
        "models": [_offer_record(offer) for offer in offers],
    }


def _offer_record(offer: Offer) -> Record:
    able, problem = offer.capabilities, offer.problem
    return {
        "name": offer.name, "provider": offer.label, "tasks": [task.value for task in offer.tasks],
        "known": able.known, "window": able.window, "output": able.output, "answers": able.answers,
        "caches": able.caches, "price": _price_record(able.price) if able.price else None,
        "credential": offer.credential or None, "needs_key": offer.needs_key,
        "problem": {"message": problem.message, "hint": problem.hint} if problem else None,
    }  # fmt: skip


def _price_record(price: Price) -> Record:
    return {
        "input": float(price.input), "output": float(price.output), "cached": float(price.cached),
        "written": float(price.written),
    }  # fmt: skip


def trial_record(trial: Trial) -> Record:
    """One short call."""
    tokens = trial.tokens
    return {
        "name": trial.name, "model": trial.model or None, "answer": trial.answer,
        "took_ms": round(trial.seconds * 1000), "cost_usd": _number(trial.cost),
        "tokens": {
            "input": tokens.input, "output": tokens.output, "cached": tokens.cached, "written": tokens.written,
        },
    }  # fmt: skip


def _number(value: Decimal | None) -> float | None:
    return None if value is None else float(value)
