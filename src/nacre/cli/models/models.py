"""``nacre models``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import DefaultGroup
from nacre.cli.formats import Record, count, float_or_none, tokens_record
from nacre.cli.operations import perform
from nacre.cli.paper import Cell, Paper, Span, bold, dim
from nacre.cli.request_options import argument
from nacre.cli.run import Run
from nacre.setup import offers as offering
from nacre.spending import budget as budgets

if TYPE_CHECKING:
    from nacre.settings import Settings
    from nacre.setup.offers import Offer, Trial
    from nacre.values.model_calls import Capabilities, Price, Task


_ANSWERS = {
    "schema": "its provider holds it to a schema",
    "tool": "held to a schema as a tool that it must call",
    "json": "held to JSON, told of the schema",
    "text": "told of the schema",
}


@click.group(
    "models", cls=DefaultGroup,
    examples=["nacre models", "nacre models test", "nacre models test ollama:qwen3"],
)  # fmt: skip
@click.pass_context
def models(ctx: click.Context) -> None:
    """Tell which language models are set, and whether they answer."""
    if ctx.invoked_subcommand:
        return

    run: Run = ctx.obj
    uses, offers = offering.uses(run.home), perform(run, "models")
    settings = run.settings
    run.answer(_models_record(settings, uses, offers), lambda paper: _render_models(paper, settings, uses, offers))


@models.command("test", examples=["nacre models test", "nacre models test anthropic:claude-haiku-5-5 --json"])
@argument("models-test", "name", default="", metavar="[PROVIDER:MODEL]")
@click.pass_obj
def test(run: Run, name: str) -> None:
    """Ask a model one short question, and tell its time, tokens and cost.

    Without a name it is the model of models.default. The question is sent to its provider. Ctrl-C ends
    that at once.
    """
    with progress.waiting(run, f"Asking {name or run.settings['models.default']}"):
        trial = offering.try_model(run.home, name)
    run.answer(_trial_record(trial), lambda paper: _render_trial(paper, trial))


def _models_record(settings: Settings, uses: Mapping[Task, str], offers: Sequence[Offer]) -> Record:
    """The models that are set, and what each task has."""
    return {
        "default": settings.text("models.default"),
        "background": settings.flag("models.background"),
        "daily_budget_usd": settings.number("models.daily_budget_usd"),
        "tasks": {task.value: name for task, name in uses.items()},
        "models": [_offer_record(offer) for offer in offers],
    }


def _offer_record(offer: Offer) -> Record:
    able, problem = offer.capabilities, offer.problem
    return {
        "name": offer.name, "aliases": list(offer.aliases), "provider": offer.label,
        "tasks": [task.value for task in offer.tasks],
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


def _trial_record(trial: Trial) -> Record:
    """One short call."""
    return {
        "name": trial.name, "model": trial.model or None, "answer": trial.answer,
        "took_ms": round(trial.seconds * 1000), "cost_usd": float_or_none(trial.cost),
        "tokens": tokens_record(trial.tokens),
    }  # fmt: skip


def _render_models(paper: Paper, settings: Settings, uses: Mapping[Task, str], offers: Sequence[Offer]) -> None:
    """Each model with what it is for, then what goes on without being asked."""
    if not offers:
        paper.line("No language model is set: everything works by rules.")
        paper.line(dim("nacre setup sets one; nacre models test provider:model tries one first"))
        return
    for offer in offers:
        paper.line(bold(offer.name), "  ", dim(offer.label))
        paper.facts(_facts(settings, offer), indent=2)
        paper.blank()
    idle = [task.value for task, name in uses.items() if name == "none"]
    if idle:
        paper.line(dim(f"without a model: {', '.join(idle)}"))
    paper.line(dim(_background(settings, [offer.name for offer in offers])))
    unpriced = [
        offer.name for offer in offers
        if offer.problem is None and offer.capabilities.price is None and budgets.is_priced(settings, offer.name)
    ]  # fmt: skip
    if unpriced and settings.flag("models.background"):
        told = f"but not {', '.join(unpriced)}: no budget can hold what nobody knows the price of (models.capabilities)"
        paper.line(Span(told, "yellow"))


def _facts(settings: Settings, offer: Offer) -> list[tuple[str, Cell]]:
    able = offer.capabilities
    is_default = settings.text("models.default") in (offer.name, *offer.aliases)
    tasks = ", ".join(task.value for task in offer.tasks)
    facts: list[tuple[str, Cell]] = [("set as", ", ".join(offer.aliases))] if offer.aliases else []
    facts.append(("for", f"{tasks}{' (the default)' if is_default else ''}"))
    if offer.problem is None or offer.credential:
        key = offer.credential or ("missing" if offer.needs_key else "none is needed")
        facts += [("key", key), ("reads", _size(able)), ("answers", _ANSWERS[able.answers])]
        is_paid = budgets.is_priced(settings, offer.name)
        facts.append(("price", _price(able.price) if is_paid else "none: a subscription pays, tokens are counted"))
    if offer.problem:
        facts.append(("problem", Span(offer.problem.message, "red")))
        facts.append(("", dim(offer.problem.hint or "")))
    return facts


def _size(able: Capabilities) -> str:
    cache = ", and keeps what it read before" if able.caches else ""
    unknown = "" if able.known else "; nacre does not know this model and guesses low"
    return f"{able.window:,} tokens, answers up to {able.output:,}{cache}{unknown}"


def _price(price: Price | None) -> str:
    if price is None:
        return "not known; models.capabilities tells it"
    if not price.input and not price.output:
        return "free"
    return (
        f"{_dollars(price.input)} in, {_dollars(price.output)} out, {_dollars(price.cached)} cached, a million tokens"
    )


def _dollars(amount: Decimal) -> str:
    return f"${amount:,.2f}" if amount == round(amount, 2) else f"${amount.normalize():f}"


def _background(settings: Settings, names: Sequence[str]) -> str:
    """Whether models work without being asked, and within which bounds: tokens where a subscription pays."""
    if not settings.flag("models.background"):
        return "in the background: off (models.background)"
    paid = {budgets.is_priced(settings, name) for name in names}
    bounds = [f"${settings.number(budgets.DAILY):,.2f}"] if True in paid else []
    bounds += [f"{settings.whole(budgets.TOKENS):,} tokens of a subscription"] if False in paid else []
    return f"in the background: on, up to {' and '.join(bounds)} a day"


def _render_trial(paper: Paper, trial: Trial) -> None:
    """That it answers, and what that took."""
    tokens = trial.tokens
    whole = tokens.input + tokens.cached + tokens.written
    free = "by subscription" if trial.is_by_subscription else "free"
    cost = "cost not known" if trial.cost is None else f"${trial.cost.normalize():f}" if trial.cost else free
    paper.line(Span("✓ ", "green"), bold(trial.name), f" answers: {trial.answer}")
    facts = [f"{trial.seconds:.2f} s", f"{count(whole, 'token')} in, {tokens.output:,} out", cost]
    if trial.model and trial.model != trial.name.partition(":")[2]:
        facts.append(f"by {trial.model}")
    paper.line(dim(" · ".join(facts)))
