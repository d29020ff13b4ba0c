"""What models cost, for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.paper import Cell, Paper, Span, bold, dim
from nacre.cli.render.words import amount, count, minute, seconds
from nacre.model.prompting import Tokens
from nacre.model.spending import Refusal, dollars

if TYPE_CHECKING:
    from nacre.app.estimating import Estimate
    from nacre.app.spending import Budget, CostReport, Sum

_BAR = 20
_PROBLEMS = 20
_WHY = {
    "budget": "the day's budget was used up",
    "task budget": "the task's budget was used up",
    "no price": "nobody knows the price (models.capabilities)",
    "failing": "the model had failed too often",
}


def render_costs(paper: Paper, report: CostReport, by: str, days: int) -> None:
    """Today's budget, a table of what was spent, and what was not asked."""
    from nacre.app.spending import added_up

    for budget in report.budgets:
        paper.line(*_budget(budget))
    if report.is_background_on:
        paper.line(dim(f"for what models do in the background; begins anew at {minute(report.resets)}"))
    else:
        paper.line(dim("no model works in the background: models.background is off"))
    paper.blank()
    sums = added_up(report.spent, by)
    if sums:
        _table(paper, sums, by)
    else:
        paper.line(f"No model was asked {'today' if days == 1 else f'in the last {days} days'}: nothing was spent.")
    _refused(paper, report.refused)
    for one in report.failing:
        told = f"{one.model} failed {count(one.failures, 'time')} in a row, and is left alone until {minute(one.until)}"
        paper.blank()
        paper.line(Span(told, "yellow"), f": {one.told}")


def _budget(budget: Budget) -> Sequence[Span | str]:
    share = min(1.0, budget.spent / budget.most) if budget.most else 1.0
    full = round(share * _BAR)
    tint = "red" if share >= 0.95 else "yellow" if share >= 0.75 else "green"
    what = budget.task or "today"
    told = f"{dollars(budget.spent)} of {dollars(budget.most)}"
    return (
        bold(f"{what:<14}".replace(" ", "\u00a0")), Span("█" * full, tint), dim("░" * (_BAR - full)),
        f"  {told}  ", dim(f"{share:.0%}" if budget.most else "nothing is allowed"),
    )  # fmt: skip


def _table(paper: Paper, sums: Sequence[Sum], by: str) -> None:
    whole = ("", sum(one.calls for one in sums), sum((one.tokens for one in sums), Tokens()))
    rows = [_row(one.name, one.calls, one.tokens, _spent(one), _remarks(one)) for one in sums]
    if len(sums) > 1:
        rows.append(_row("in all", whole[1], whole[2], dollars(sum(one.cost for one in sums)), ""))
    head = (by, "calls", "read", "from cache", "written", "cost", "")
    widths = [max(len(row[at]) for row in (*rows, head)) for at in range(len(head))]
    table: list[Sequence[Cell]] = []
    for row in (head, *rows):
        padded = [row[0], *(cell.rjust(width) for cell, width in zip(row[1:6], widths[1:6], strict=True)), row[6]]
        table.append([dim(cell) for cell in padded] if row is head else padded)
    paper.table(table, drop=(3,))


def _row(name: str, calls: int, tokens: Tokens, cost: str, remarks: str) -> tuple[str, ...]:
    read = tokens.input + tokens.cached + tokens.written
    return name, f"{calls:,}", amount(read), amount(tokens.cached), amount(tokens.output), cost, remarks


def _spent(one: Sum) -> str:
    return "not known" if one.unpriced and not one.cost else dollars(one.cost)


def _remarks(one: Sum) -> str:
    told = [seconds(one.seconds)]
    if one.background:
        told.append("in the background" if one.background == one.calls else f"{one.background:,} in the background")
    if one.failed:
        told.append(f"{one.failed:,} failed")
    if one.estimated:
        told.append(f"{dollars(one.estimated)} estimated")
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
