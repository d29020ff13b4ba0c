"""``nacre cost``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.formats import Record, amount, count, duration, minute, seconds, stamp, tokens_record
from nacre.cli.operations import ask
from nacre.cli.paper import Cell, Paper, Span, bold, dim
from nacre.cli.request_options import option
from nacre.cli.run import Run
from nacre.setup import writer as writers
from nacre.spending import budget as spending_budget
from nacre.values import spending

if TYPE_CHECKING:
    from nacre.setup.writer import WriterStatus
    from nacre.spending.budget import Sum
    from nacre.values.spending import Refusal
    from nacre.views import Budget, CostReport


_BAR = 20
_SHARE = 10
_REMARKS = 14
_WHY = {
    "budget": "the day's budget was used up",
    "task budget": "the task's budget was used up",
    "no price": "nobody knows the price (models.capabilities)",
    "tokens": "it had taken the tokens of the day",
    "no tokens": "it may take no tokens by itself",
    "calls": "it had made the calls of the day",
}


@command("cost", examples=["nacre cost", "nacre cost --days 7 --by model", "nacre cost --by day --json"])
@option("cost", "days")
@click.option(
    "--by", type=click.Choice(["task", "model", "day"], case_sensitive=False), default="task", show_default=True,
    help="What calls are added up by.",
)  # fmt: skip
@click.pass_obj
def cost(run: Run, days: int, by: str) -> None:
    """Tell what language models cost, and what is left of today's budget.

    Budgets hold what models do in the background, their answers in chats, and vectors that a provider makes; what you
    ask for otherwise is counted beside it.
    """
    report = ask(run, "cost", days=days)
    unpaid = [one for one in report.spent if not spending_budget.is_priced(run.settings, one.model)]

    def render(paper: Paper) -> None:
        shown = _Shown(
            report, by, writers.status_as_it_is(run.home), spending_budget.summed("", unpaid).calls,
            {one.name: one.calls for one in spending_budget.added_up(unpaid, by)},
        )  # fmt: skip
        _render_costs(paper, shown, days)

    run.answer(_cost_record(report, by), render)


def _cost_record(report: CostReport, by: str) -> Record:
    """What was spent since a day, and today's budgets."""
    return {
        "since": report.since.isoformat(),
        "today": report.today.isoformat(),
        "resets": stamp(report.resets),
        "background": report.is_background_on,
        "budgets": [
            {"task": one.task, "most_usd": one.most / spending.DOLLAR, "spent_usd": one.spent / spending.DOLLAR}
            for one in report.budgets
        ],
        "by": by,
        "spent": [
            {
                "name": one.name, "calls": one.calls, "failed": one.failed, "background_calls": one.background,
                "tokens": tokens_record(one.tokens), "cost_usd": one.cost / spending.DOLLAR,
                "estimated_usd": one.estimated / spending.DOLLAR, "unpriced": one.unpriced,
                "seconds": round(one.seconds, 3),
            }
            for one in spending_budget.added_up(report.spent, by)
        ],
        "cost_usd": sum(one.cost for one in report.spent) / spending.DOLLAR,
        "refused": [
            {"day": one.day.isoformat(), "task": one.task, "model": one.model, "reason": one.reason, "times": one.times}
            for one in report.refused
        ],
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown, ``by`` task, model or day, with how the writer fares, and how many calls a subscription paid: in
    all, and of each.
    """

    report: CostReport
    by: str
    writer: WriterStatus
    unpaid: int
    unpaid_of: Mapping[str, int]


def _render_costs(paper: Paper, shown: _Shown, days: int) -> None:
    """Today's budget, a table of what was spent, and what was not asked."""
    report = shown.report
    sums = [_sum(budget) for budget in report.budgets]
    width = max(map(len, sums), default=0)
    for budget, words in zip(report.budgets, sums, strict=True):
        paper.line(*_budget(budget, words.ljust(width)))
    if report.is_background_on:
        told = "for what models do in the background, answers in chats, and vectors"
    else:
        told = "for answers in chats (nacre chat, nacre gateway) and vectors alone: models.background is off"
    paper.line(dim(f"{told}; begins anew at {minute(report.resets)}"))
    writer = shown.writer
    if writer.limit is not None:
        told = f"{writer.tokens_today:,} of {writer.limit:,} tokens today, paid by a subscription (nacre writer)"
        paper.line(bold(writer.writer), "  ", told)
    if report.spent:
        whole = spending_budget.summed("in all", report.spent)
        paper.heading(f"{'Today' if days == 1 else f'The last {days} days'}: {_in_all(whole, shown.unpaid)}")
        _table(paper, shown, whole)
    else:
        paper.blank()
        paper.line(f"No model was asked {'today' if days == 1 else f'in the last {days} days'}: nothing was spent.")
    _refused(paper, report.refused)


def _sum(budget: Budget) -> str:
    left = f"{spending.dollars(max(0, budget.most - budget.spent))} left" if budget.most else "nothing is allowed"
    return f"{spending.dollars(budget.spent)} of {spending.dollars(budget.most)}, {left}"


def _budget(budget: Budget, told: str) -> Sequence[Span | str]:
    share = min(1.0, budget.spent / budget.most) if budget.most else 1.0
    full = round(share * _BAR)
    tint = "red" if share >= 0.95 else "yellow" if share >= 0.75 else "green"
    what = budget.task or "today"
    return (
        bold(f"{what:<14}".replace(" ", "\u00a0")), Span("█" * full, tint), dim("░" * (_BAR - full)),
        f"  {told}  ".replace(" ", "\u00a0"), dim(f"{share:.0%}" if budget.most else ""),
    )  # fmt: skip


def _in_all(whole: Sum, unpaid: int) -> str:
    if whole.calls == unpaid:
        return f"{count(unpaid, 'call')} by subscription"
    more = f", and {count(whole.unpriced, 'call')} of unknown price" if whole.unpriced else ""
    return f"{spending.dollars(whole.cost)}{more}"


def _table(paper: Paper, shown: _Shown, whole: Sum) -> None:
    by, unpaid = shown.by, shown.unpaid_of
    sums = spending_budget.added_up(shown.report.spent, by)
    dearest = max(one.cost for one in sums)
    rows = [_row(one, round(one.cost / dearest * _SHARE) if dearest else 0, unpaid.get(one.name, 0)) for one in sums]
    if len(sums) > 1:
        rows.append((*_row(whole, 0, shown.unpaid)[:-1], ""))  # what is to be said of it stands above
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
        paper.line(
            dim(f"{spending.dollars(whole.estimated)} of it estimated: calls that were sent and not answered in full")
        )


def _row(one: Sum, share: int, unpaid: int) -> tuple[str, ...]:
    """``unpaid`` of its calls a subscription paid."""
    tokens = one.tokens
    read = tokens.input + tokens.cached + tokens.written
    took = duration(timedelta(seconds=one.seconds)) if one.seconds >= 60 else seconds(one.seconds)
    return (
        one.name, f"{one.calls:,}", f"{one.failed:,}" if one.failed else "", amount(read),
        amount(tokens.cached) if tokens.cached else "", amount(tokens.output), took,
        _cost(one, unpaid), "▇" * share, _remarks(one, unpaid),
    )  # fmt: skip


def _cost(one: Sum, unpaid: int) -> str:
    if one.calls == unpaid:
        return "–"
    return "not known" if one.unpriced and not one.cost else spending.dollars(one.cost)


def _remarks(one: Sum, unpaid: int) -> str:
    told = []
    if one.background < one.calls:
        yours = one.calls - one.background
        told.append(f"{yours:,} asked by you" if one.background else "asked by you")
    if one.unpriced:
        told.append(f"{one.unpriced:,} of unknown price")
    if unpaid:
        told.append("by subscription" if unpaid == one.calls else f"{unpaid:,} by subscription")
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
