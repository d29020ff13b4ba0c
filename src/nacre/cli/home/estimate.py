"""What learning with models would cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.formats import Record, amount, count, seconds, tokens_record
from nacre.cli.home.problems import problem_records
from nacre.cli.paper import Cell, Paper, Span, bold, dim
from nacre.values import spending

if TYPE_CHECKING:
    from nacre.extraction.estimate import Estimate, TaskEstimate, VectorEstimate


_PROBLEMS = 20


def estimate_record(estimate: Estimate) -> Record:
    """What learning with models would cost."""
    vectors = estimate.vectors
    return {
        "estimate": True,
        "sessions": estimate.waiting,
        "trivial": estimate.trivial,
        "tasks": [
            {
                "task": one.task.value, "model": one.model, "calls": one.calls, "tokens": tokens_record(one.tokens),
                "cost_usd": None if one.cost is None else one.cost / spending.DOLLAR, "seconds": round(one.seconds, 1),
                "measured": one.is_measured,
            }
            for one in estimate.tasks
        ],
        "cost_usd": None if estimate.cost is None else estimate.cost / spending.DOLLAR,
        "seconds": round(estimate.seconds, 1),
        "background": estimate.is_background_on,
        "left_usd": estimate.left / spending.DOLLAR,
        "tokens_left": estimate.tokens_left,
        "calls_left": estimate.calls_left,
        "most_tokens": estimate.most,
        "now": estimate.now,
        "vectors": {
            "model": vectors.model, "tokens": vectors.tokens, "held": vectors.held,
            "left_usd": vectors.left / spending.DOLLAR,
            "cost_usd": None if vectors.cost is None else vectors.cost / spending.DOLLAR,
        } if vectors else None,
        "problems": problem_records(estimate.problems),
    }  # fmt: skip


def render_estimate(paper: Paper, estimate: Estimate) -> None:
    """What waits, what each task would take, and what of it today's budget holds."""
    _learning(paper, estimate)
    if estimate.vectors:
        _vectors(paper, estimate.vectors)


def _vectors(paper: Paper, vectors: VectorEstimate) -> None:
    paper.blank()
    if not vectors.tokens:
        paper.line(bold("Vectors"), f" of {vectors.model}: none is missing.")
        return
    price = "price unknown" if vectors.cost is None else spending.dollars(vectors.cost)
    paper.line(bold("Vectors"), f" of {vectors.model}: about {vectors.tokens:,} tokens, {price}.")
    if vectors.held:
        told = f"They wait: {vectors.held}. nacre embed resume makes them."
    elif vectors.cost is not None and vectors.cost > vectors.left:
        left = spending.dollars(vectors.left)
        told = f"{left} of today's budget is left: the rest waits, or nacre embed resume makes it."
    else:
        told = f"{spending.dollars(vectors.left)} of today's budget is left, which holds it."
    paper.line(told)


def _learning(paper: Paper, estimate: Estimate) -> None:
    what = f"{count(estimate.waiting, 'session')} of substance to learn from"
    rest = f", {estimate.trivial:,} without (no model is asked about these)" if estimate.trivial else ""
    paper.line(bold(what), rest)
    if not estimate.waiting:
        return
    if not estimate.tasks:
        paper.line("No model is set: rules learn from them, which costs nothing. nacre setup sets one.")
        return
    _estimated(paper, estimate)
    paper.line(f"At most {amount(estimate.most)} tokens, if each session is shown by itself.", indent=2)
    if estimate.tokens_left is not None and estimate.is_background_on:
        told = f"{estimate.left_of_subscription} are left of what the writer may take today"
        told += (
            ", which holds it." if estimate.now >= estimate.waiting
            else f": it reads about {estimate.now:,} of them now, and the others {estimate.rest}."
        )  # fmt: skip
    elif estimate.cost is None:
        told = "Nobody knows what it costs: rules learn from them until models.capabilities says the price."
    elif not estimate.is_background_on:
        told = "Rules learn from them until models.background is on."
    elif estimate.now < estimate.waiting:
        told = (
            f"{spending.dollars(estimate.left)} of today's budget is left: a model learns from about "
            f"{estimate.now:,} of them, and from the others {estimate.rest}."
        )
    else:
        told = f"{spending.dollars(estimate.left)} of today's budget is left, which holds it."
    paper.line(told)
    for problem in estimate.problems[:_PROBLEMS]:
        paper.line(Span(f"{problem.path}: {problem.message}", "yellow"), indent=2)


def _estimated(paper: Paper, estimate: Estimate) -> None:
    rows: list[Sequence[Cell]] = [
        (
            one.task.value, f"about {count(one.calls, 'call')}", f"{amount(one.tokens.input)} read",
            f"{amount(one.tokens.output)} written",
            _price(one),
            seconds(one.seconds), one.model, dim("by earlier calls" if one.is_measured else "by rule of thumb"),
        )
        for one in estimate.tasks
    ]  # fmt: skip
    if estimate.cost and len(estimate.tasks) > 1:
        rows.append(("in all", "", "", "", bold(spending.dollars(estimate.cost)), seconds(estimate.seconds), "", ""))
    paper.table(rows, indent=2, drop=(7, 6))


def _price(one: TaskEstimate) -> str:
    if one.is_by_subscription:
        return "by subscription"
    return "price unknown" if one.cost is None else spending.dollars(one.cost)
