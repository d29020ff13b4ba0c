"""``nacre writer cost``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from nacre.base import text
from nacre.cli.command import Cell, DefaultGroup, Paper, Run, Span, bold, command, dim, joined
from nacre.cli.operations import ask
from nacre.cli.options import (
    SHORT_ID,
    Record,
    amount,
    argument,
    count,
    duration,
    float_or_none,
    limit_option,
    minute,
    option,
    seconds,
    stamp,
    tokens_record,
)
from nacre.home import spending as spending_budget
from nacre.setup import models as writers
from nacre.values import models

if TYPE_CHECKING:
    from nacre.home.spending import Sum
    from nacre.home.views import Budget, CostReport, TraceView
    from nacre.setup.models import WriterStatus
    from nacre.values.models import Refusal, Step, Trace

_BAR = 20
_SHARE = 10
_REMARKS = 14
_WHY = {
    "budget": "the day's budget was used up",
    "task budget": "the task's budget was used up",
    "no price": "the price is unknown (set models.capabilities)",
    "tokens": "the day's token limit was reached",
    "no tokens": "it may not use tokens in the background",
    "calls": "the day's call limit was reached",
}


@command(
    "cost",
    examples=[
        "nacre writer cost",
        "nacre writer cost --days 7 --by model",
        "nacre writer cost --by day --json",
    ],
)
@option("cost", "days")
@click.option(
    "--by",
    type=click.Choice(["task", "model", "day"], case_sensitive=False),
    default="task",
    show_default=True,
    help="Group calls by this.",
)
@click.pass_obj
def cost(run: Run, days: int, by: str) -> None:
    """Show the cost of language models and the rest of today's budget.

    Budgets limit background work, answers in chats, and vectors from a provider. Other calls that you request are
    counted separately.
    """
    report = ask(run, "cost", days=days)
    unpaid = [
        spending
        for spending in report.spent
        if not spending_budget.is_priced(run.settings, spending.model)
    ]

    def render(paper: Paper) -> None:
        shown = _Shown(
            report,
            by,
            writers.status_as_it_is(run.home),
            spending_budget.summed("", unpaid).calls,
            {spending.name: spending.calls for spending in spending_budget.added_up(unpaid, by)},
        )
        _render_costs(paper, shown, days)

    run.answer(_cost_record(report, by), render)


def _cost_record(report: CostReport, by: str) -> Record:
    return {
        "since": report.since.isoformat(),
        "today": report.today.isoformat(),
        "resets": stamp(report.resets),
        "background": report.is_background_on,
        "budgets": [
            {
                "task": entry.task,
                "most_usd": entry.most / models.DOLLAR,
                "spent_usd": entry.spent / models.DOLLAR,
            }
            for entry in report.budgets
        ],
        "by": by,
        "spent": [
            {
                "name": entry.name,
                "calls": entry.calls,
                "failed": entry.failed,
                "background_calls": entry.background,
                "tokens": tokens_record(entry.tokens),
                "cost_usd": entry.cost / models.DOLLAR,
                "estimated_usd": entry.estimated / models.DOLLAR,
                "unpriced": entry.unpriced,
                "seconds": round(entry.seconds, 3),
            }
            for entry in spending_budget.added_up(report.spent, by)
        ],
        "cost_usd": sum(entry.cost for entry in report.spent) / models.DOLLAR,
        "refused": [
            {
                "day": entry.day.isoformat(),
                "task": entry.task,
                "model": entry.model,
                "reason": entry.reason,
                "times": entry.times,
            }
            for entry in report.refused
        ],
    }


@dataclass(frozen=True, slots=True)
class _Shown:
    """The report grouped ``by`` task, model or day, the writer's status, and the number of calls paid by subscription
    in total and per group.
    """

    report: CostReport
    by: str
    writer: WriterStatus
    unpaid: int
    unpaid_of: Mapping[str, int]


def _render_costs(paper: Paper, shown: _Shown, days: int) -> None:
    """Print today's budget, a table of the costs, and the refused calls."""
    report = shown.report
    sums = [_sum(budget) for budget in report.budgets]
    width = max(map(len, sums), default=0)
    for budget, words in zip(report.budgets, sums, strict=True):
        paper.line(*_budget(budget, words.ljust(width)))
    if report.is_background_on:
        scope = "for background work, answers in chats, and vectors"
    else:
        scope = "only for answers in chats (nacre gateway chat, nacre gateway) and vectors: models.background is off"
    paper.line(dim(f"{scope}; resets at {minute(report.resets)}"))
    writer = shown.writer
    if writer.limit is not None:
        used = f"{writer.tokens_today:,} of {writer.limit:,} tokens today, paid by a subscription (nacre writer)"
        paper.line(bold(writer.writer), "  ", used)
    if report.spent:
        whole = spending_budget.summed("total", report.spent)
        paper.heading(
            f"{'Today' if days == 1 else f'The last {days} days'}: {_in_all(whole, shown.unpaid)}"
        )
        _table(paper, shown, whole)
    else:
        paper.blank()
        paper.line(
            f"No model calls {'today' if days == 1 else f'in the last {days} days'}: nothing was spent."
        )
    _refused(paper, report.refused)


def _sum(budget: Budget) -> str:
    left = (
        f"{models.dollars(max(0, budget.most - budget.spent))} left"
        if budget.most
        else "nothing is allowed"
    )
    return f"{models.dollars(budget.spent)} of {models.dollars(budget.most)}, {left}"


def _budget(budget: Budget, words: str) -> Sequence[Span | str]:
    share = min(1.0, budget.spent / budget.most) if budget.most else 1.0
    full = round(share * _BAR)
    tint = "red" if share >= 0.95 else "yellow" if share >= 0.75 else "green"
    what = budget.task or "today"
    return (
        bold(f"{what:<14}".replace(" ", "\u00a0")),
        Span("█" * full, tint),
        dim("░" * (_BAR - full)),
        f"  {words}  ".replace(" ", "\u00a0"),
        dim(f"{share:.0%}" if budget.most else ""),
    )


def _in_all(whole: Sum, unpaid: int) -> str:
    if whole.calls == unpaid:
        return f"{count(unpaid, 'call')} by subscription"
    more = f", and {count(whole.unpriced, 'call')} of unknown price" if whole.unpriced else ""
    return f"{models.dollars(whole.cost)}{more}"


def _table(paper: Paper, shown: _Shown, whole: Sum) -> None:
    by, unpaid = shown.by, shown.unpaid_of
    sums = spending_budget.added_up(shown.report.spent, by)
    dearest = max(total.cost for total in sums)
    rows = [
        _row(
            total, round(total.cost / dearest * _SHARE) if dearest else 0, unpaid.get(total.name, 0)
        )
        for total in sums
    ]
    if len(sums) > 1:
        rows.append((*_row(whole, 0, shown.unpaid)[:-1], ""))  # the heading has its remarks
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
            dim(
                f"{models.dollars(whole.estimated)} of this is estimated: calls without a complete answer"
            )
        )


def _row(total: Sum, share: int, unpaid: int) -> tuple[str, ...]:
    """Return the cells of a row. ``unpaid`` calls were paid by a subscription."""
    tokens = total.tokens
    read = tokens.input + tokens.cached + tokens.written
    took = (
        duration(timedelta(seconds=total.seconds))
        if total.seconds >= 60
        else seconds(total.seconds)
    )
    return (
        total.name,
        f"{total.calls:,}",
        f"{total.failed:,}" if total.failed else "",
        amount(read),
        amount(tokens.cached) if tokens.cached else "",
        amount(tokens.output),
        took,
        _cost(total, unpaid),
        "▇" * share,
        _remarks(total, unpaid),
    )


def _cost(total: Sum, unpaid: int) -> str:
    if total.calls == unpaid:
        return "–"
    return "unknown" if total.unpriced and not total.cost else models.dollars(total.cost)


def _remarks(total: Sum, unpaid: int) -> str:
    remarks = []
    if total.background < total.calls:
        yours = total.calls - total.background
        remarks.append(f"{yours:,} requested by you" if total.background else "requested by you")
    if total.unpriced:
        remarks.append(f"{total.unpriced:,} of unknown price")
    if unpaid:
        remarks.append(
            "by subscription" if unpaid == total.calls else f"{unpaid:,} by subscription"
        )
    return ", ".join(remarks)


def _refused(paper: Paper, refused: Sequence[Refusal]) -> None:
    if not refused:
        return
    times: dict[tuple[str, str, str], int] = {}
    for refusal in refused:
        key = (refusal.task, refusal.model, refusal.reason)
        times[key] = times.get(key, 0) + refusal.times
    paper.heading("Calls refused, work done without a model")
    rows = [
        (count(number, "call"), task, model, _WHY.get(reason, reason))
        for (task, model, reason), number in sorted(times.items(), key=lambda item: -item[1])
    ]
    paper.table(rows, indent=2)


# ----------------------------------------------------------------------------
# ``nacre writer traces``.


_OUTCOME_CHARACTERS = 48
_MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "skipped": ("–", "dim")}


@click.group(
    "traces",
    cls=DefaultGroup,
    examples=[
        "nacre writer traces",
        "nacre writer traces --kind case",
        "nacre writer traces show 5f0c2a4d",
    ],
)
@option("traces", "kind", help="Only this kind; a case is an answered question.")
@option("traces", "since", help="Since then: 2026-11-20, 3d, 2w, yesterday, march.")
@limit_option("traces", default=20)
@click.pass_context
def traces(context: click.Context, kind: str | None, since: datetime | None, limit: int) -> None:
    """Show the steps of model runs and answers.

    Every run of a language model and every answered question leaves a trace: its steps, their time and cost, and the
    outcome. Traces contain no secrets.
    """
    if context.invoked_subcommand is None:
        _list(context.obj, kind, since, limit)


def _list(run: Run, kind: str | None, since: datetime | None, limit: int) -> None:
    entries = ask(run, "traces", kind=kind, since=since, limit=limit)
    run.answer(
        {"traces": [_trace_record(trace) for trace in entries], "limit": limit},
        lambda paper: _render_traces(paper, entries),
    )


@traces.command(
    "show",
    examples=["nacre writer traces show 5f0c2a4d", "nacre writer traces show 5f0c2a4d --json"],
)
@argument("trace", "reference", metavar="ID")
@click.pass_obj
def show(run: Run, reference: str) -> None:
    """Show the steps of a trace."""
    view = ask(run, "trace", reference=reference)
    run.answer(trace_record(view), lambda paper: _render_trace(paper, view))


def trace_record(view: TraceView) -> Record:
    """Return a trace with its steps."""
    return {
        **_trace_record(view.trace),
        "steps": [_step_record(step) for step in view.trace.steps],
        "names": [{"id": ref, "subject": subject} for ref, subject in view.names.items()],
    }


def _trace_record(trace: Trace) -> Record:
    costs = [step.cost for step in trace.steps if step.model]
    return {
        "trace": trace.id,
        "kind": trace.kind.value,
        "subject": trace.subject,
        "began": stamp(trace.began),
        "seconds": round((trace.ended - trace.began).total_seconds(), 3) if trace.ended else None,
        "outcome": trace.outcome,
        "calls": len(costs),
        "cost_usd": float_or_none(
            None if None in costs else sum((cost for cost in costs if cost), Decimal(0))
        ),
    }


def _step_record(step: Step) -> Record:
    return {
        "title": step.title,
        "status": step.status,
        "input": step.input,
        "output": step.output,
        "refs": list(step.refs),
        "seconds": round(step.seconds, 3),
        "model": step.model or None,
        "tokens": tokens_record(step.tokens) if step.model else None,
        "cost_usd": float_or_none(step.cost),
        "details": [{"name": name, "value": value} for name, value in step.more.items()],
    }


def _render_traces(paper: Paper, traces: Sequence[Trace]) -> None:
    if not traces:
        paper.line("There are no traces yet: questions and model runs leave them.")
        return
    rows = [
        (
            dim(trace.id[-SHORT_ID:]),
            minute(trace.began),
            Span(trace.kind.value, "cyan"),
            _took(trace),
            _cost_traces(trace),
            text.shorten(trace.outcome, _OUTCOME_CHARACTERS),
            trace.subject,
        )
        for trace in traces
    ]
    paper.table(
        rows, header=("id", "when", "kind", "took", "calls", "outcome", "about"), drop=(4, 3, 1)
    )
    paper.line(dim("nacre writer traces show ID shows one"))


def _render_trace(paper: Paper, view: TraceView) -> None:
    """Print the steps in order, with their input and output."""
    trace = view.trace
    paper.line(Span(trace.kind.value, "cyan"), "  ", bold(trace.subject), hang=2)
    facts = (minute(trace.began), _took(trace), _cost_traces(trace), trace.id[-SHORT_ID:])
    paper.line(dim(joined(facts)), indent=2)
    for number, step in enumerate(trace.steps, 1):
        paper.blank()
        _render_step(paper, number, step, view)
    if trace.outcome:
        paper.blank()
        paper.line(dim("Outcome: "), trace.outcome)


def _render_step(paper: Paper, number: int, step: Step, view: TraceView) -> None:
    sign, tint = _MARKS.get(step.status, ("?", "yellow"))
    took = (
        seconds(step.seconds)
        if step.seconds >= 0.05
        else f"{step.seconds * 1000:.0f} ms"
        if step.seconds
        else ""
    )
    paper.line(
        f"{number}. ",
        Span(sign, tint),
        " ",
        bold(step.title),
        dim(f"  {joined((*_model(step), took))}"),
        hang=4,
    )
    if step.input:
        paper.line(dim("in   "), step.input, indent=5, hang=5)
    if step.output:
        paper.line(dim("out  "), step.output, indent=5, hang=5)
    rows = [
        (
            _detail(step, ref),
            dim(ref[-SHORT_ID:] if ref in view.names else ref),
            view.names.get(ref, ""),
        )
        for ref in step.refs
    ]
    if rows:
        paper.table(rows, indent=10)
    for name, value in step.more.items():
        if name not in step.refs:
            paper.line(dim(f"{name}: "), str(value), indent=10)


def _model(step: Step) -> tuple[str, ...]:
    if not step.model:
        return ()
    read = step.tokens.input + step.tokens.cached + step.tokens.written
    cached = f", {amount(step.tokens.cached)} from cache" if step.tokens.cached else ""
    cost = "price unknown" if step.cost is None else models.dollars(int(step.cost * models.DOLLAR))
    if step.status == "failed":
        return (
            step.model,
            *((f"about {amount(read)} read", f"{cost} estimated") if read else ()),
        )
    return step.model, f"{amount(read)} read{cached}, {amount(step.tokens.output)} written", cost


def _detail(step: Step, ref: str) -> str:
    value = step.more.get(ref, "")
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _took(trace: Trace) -> str:
    if trace.ended is None:
        return ""
    took = (trace.ended - trace.began).total_seconds()
    return seconds(took) if took >= 1 else f"{took * 1000:.0f} ms"


def _cost_traces(trace: Trace) -> str:
    calls = [step for step in trace.steps if step.model]
    if not calls:
        return ""
    cost = sum((step.cost for step in calls if step.cost), Decimal(0))
    if not cost and any(step.status == "done" and step.cost is None for step in calls):
        return f"{count(len(calls), 'call')}, price unknown"
    return f"{count(len(calls), 'call')}, {models.dollars(int(cost * models.DOLLAR))}"
