"""What models cost, for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from nacre.cli.paper import Cell, Paper, Span, bold, dim
from nacre.cli.render.words import amount, count, duration, minute, seconds
from nacre.values.spending import Refusal, dollars

if TYPE_CHECKING:
    from nacre.extraction.estimate import Estimate, VectorEstimate
    from nacre.spending.budget import Sum
    from nacre.views import Budget, CostReport

_BAR = 20
_SHARE = 10
_REMARKS = 14
_PROBLEMS = 20
_WHY = {
    "budget": "the day's budget was used up",
    "task budget": "the task's budget was used up",
    "no price": "nobody knows the price (models.capabilities)",
    "failing": "the model had failed too often",
}


def render_costs(paper: Paper, report: CostReport, by: str, days: int) -> None:
    """Today's budget, a table of what was spent, and what was not asked."""
    from nacre.spending.budget import added_up, summed

    sums = [_sum(budget) for budget in report.budgets]
    width = max(map(len, sums), default=0)
    for budget, words in zip(report.budgets, sums, strict=True):
        paper.line(*_budget(budget, words.ljust(width)))
    if report.is_background_on:
        paper.line(dim(f"for what models do in the background; begins anew at {minute(report.resets)}"))
    else:
        paper.line(dim("no language model works in the background: models.background is off"))
    if report.spent:
        whole = summed("in all", report.spent)
        paper.heading(f"{'Today' if days == 1 else f'The last {days} days'}: {_in_all(whole)}")
        _table(paper, added_up(report.spent, by), whole, by)
    else:
        paper.blank()
        paper.line(f"No model was asked {'today' if days == 1 else f'in the last {days} days'}: nothing was spent.")
    _refused(paper, report.refused)
    for one in report.failing:
        told = f"{one.model} failed {count(one.failures, 'time')} in a row, and is left alone until {minute(one.until)}"
        paper.blank()
        paper.line(Span(told, "yellow"), f": {one.told}")
        paper.line(dim(f"nacre models test {one.model} asks it at once"))


def _sum(budget: Budget) -> str:
    left = f"{dollars(max(0, budget.most - budget.spent))} left" if budget.most else "nothing is allowed"
    return f"{dollars(budget.spent)} of {dollars(budget.most)}, {left}"


def _budget(budget: Budget, told: str) -> Sequence[Span | str]:
    share = min(1.0, budget.spent / budget.most) if budget.most else 1.0
    full = round(share * _BAR)
    tint = "red" if share >= 0.95 else "yellow" if share >= 0.75 else "green"
    what = budget.task or "today"
    return (
        bold(f"{what:<14}".replace(" ", "\u00a0")), Span("█" * full, tint), dim("░" * (_BAR - full)),
        f"  {told}  ".replace(" ", "\u00a0"), dim(f"{share:.0%}" if budget.most else ""),
    )  # fmt: skip


def _in_all(whole: Sum) -> str:
    more = f", and {count(whole.unpriced, 'call')} of unknown price" if whole.unpriced else ""
    return f"{dollars(whole.cost)}{more}"


def _table(paper: Paper, sums: Sequence[Sum], whole: Sum, by: str) -> None:
    dearest = max(one.cost for one in sums)
    rows = [_row(one, round(one.cost / dearest * _SHARE) if dearest else 0) for one in sums]
    if len(sums) > 1:
        rows.append((*_row(whole, 0)[:-1], ""))  # what is to be said of it stands above
    head = (by, "calls", "failed", "read", "from cache", "written", "time", "cost", "", "")
    numbers = range(1, 8)
    widths = {at: max(len(row[at]) for row in (*rows, head)) for at in numbers}
    table: list[Sequence[Cell]] = []
    for row in (head, *rows):
        padded = [cell.rjust(widths[at]) if at in widths else cell for at, cell in enumerate(row)]
        if row is head or row[0] == whole.name:
            style = dim if row is head else bold
            table.append([style(cell) for cell in padded])
        else:
            table.append([*padded[:8], Span(padded[8], "cyan"), padded[9]])
    paper.table(table, drop=(4, 6, 8, 5), least=_REMARKS)
    if whole.estimated:
        paper.line(dim(f"{dollars(whole.estimated)} of it estimated: calls that were sent and not answered in full"))


def _row(one: Sum, share: int) -> tuple[str, ...]:
    tokens = one.tokens
    read = tokens.input + tokens.cached + tokens.written
    took = duration(timedelta(seconds=one.seconds)) if one.seconds >= 60 else seconds(one.seconds)
    return (
        one.name, f"{one.calls:,}", f"{one.failed:,}" if one.failed else "", amount(read),
        amount(tokens.cached) if tokens.cached else "", amount(tokens.output), took,
        "not known" if one.unpriced and not one.cost else dollars(one.cost), "▇" * share, _remarks(one),
    )  # fmt: skip


def _remarks(one: Sum) -> str:
    told = []
    if one.background < one.calls:
        yours = one.calls - one.background
        told.append(f"{yours:,} asked by you" if one.background else "asked by you")
    if one.unpriced:
        told.append(f"{one.unpriced:,} of unknown price")
    return ", ".join(told)


def _refused(paper: Paper, refused: Sequence[Refusal]) -> None:
    if not refused:
        return
    times: dict[tuple[str, str, str], int] = {}
    for one in refused:
        key = (one.task, one.model, one.reason)
        times[key] = times.get(key, 0) + one.times
    paper.heading("Not asked, done without a model")
    rows = [
        (count(number, "call"), task, model, _WHY.get(reason, reason))
        for (task, model, reason), number in sorted(times.items(), key=lambda item: -item[1])
    ]
    paper.table(rows, indent=2)


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
    price = "price unknown" if vectors.cost is None else dollars(vectors.cost)
    paper.line(bold("Vectors"), f" of {vectors.model}: about {vectors.tokens:,} tokens, {price}.")
    if vectors.held:
        told = f"They wait: {vectors.held}. nacre embed resume makes them."
    elif vectors.cost is not None and vectors.cost > vectors.left:
        told = f"{dollars(vectors.left)} of today's budget is left: the rest waits, or nacre embed resume makes it."
    else:
        told = f"{dollars(vectors.left)} of today's budget is left, which holds it."
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
    if estimate.cost is None:
        told = "Nobody knows what it costs: rules learn from them until models.capabilities says the price."
    elif not estimate.is_background_on:
        told = "Rules learn from them until models.background is on."
    elif estimate.now < estimate.waiting:
        told = (
            f"{dollars(estimate.left)} of today's budget is left: a model learns from about {estimate.now:,} of them, "
            f"rules from the rest."
        )
    else:
        told = f"{dollars(estimate.left)} of today's budget is left, which holds it."
    paper.line(told)
    for problem in estimate.problems[:_PROBLEMS]:
        paper.line(Span(f"{problem.path}: {problem.message}", "yellow"), indent=2)


def _estimated(paper: Paper, estimate: Estimate) -> None:
    rows: list[Sequence[Cell]] = [
        (
            one.task.value, f"about {count(one.calls, 'call')}", f"{amount(one.tokens.input)} read",
            f"{amount(one.tokens.output)} written", dollars(one.cost) if one.cost is not None else "price unknown",
            seconds(one.seconds), one.model, dim("by earlier calls" if one.is_measured else "by rule of thumb"),
        )
        for one in estimate.tasks
    ]  # fmt: skip
    if estimate.cost is not None and len(estimate.tasks) > 1:
        rows.append(("in all", "", "", "", bold(dollars(estimate.cost)), seconds(estimate.seconds), "", ""))
    paper.table(rows, indent=2, drop=(7, 6))
