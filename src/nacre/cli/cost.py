"""``nacre cost``."""

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
    "no price": "nobody knows the price (models.capabilities)",
    "tokens": "it had taken the tokens of the day",
    "no tokens": "it may take no tokens by itself",
    "calls": "it had made the calls of the day",
}


@command(
    "cost", examples=["nacre cost", "nacre cost --days 7 --by model", "nacre cost --by day --json"]
)
@option("cost", "days")
@click.option(
    "--by",
    type=click.Choice(["task", "model", "day"], case_sensitive=False),
    default="task",
    show_default=True,
    help="What calls are added up by.",
)
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
            report,
            by,
            writers.status_as_it_is(run.home),
            spending_budget.summed("", unpaid).calls,
            {one.name: one.calls for one in spending_budget.added_up(unpaid, by)},
        )
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
            {
                "task": one.task,
                "most_usd": one.most / models.DOLLAR,
                "spent_usd": one.spent / models.DOLLAR,
            }
            for one in report.budgets
        ],
        "by": by,
        "spent": [
            {
                "name": one.name,
                "calls": one.calls,
                "failed": one.failed,
                "background_calls": one.background,
                "tokens": tokens_record(one.tokens),
                "cost_usd": one.cost / models.DOLLAR,
                "estimated_usd": one.estimated / models.DOLLAR,
                "unpriced": one.unpriced,
                "seconds": round(one.seconds, 3),
            }
            for one in spending_budget.added_up(report.spent, by)
        ],
        "cost_usd": sum(one.cost for one in report.spent) / models.DOLLAR,
        "refused": [
            {
                "day": one.day.isoformat(),
                "task": one.task,
                "model": one.model,
                "reason": one.reason,
                "times": one.times,
            }
            for one in report.refused
        ],
    }


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
        paper.heading(
            f"{'Today' if days == 1 else f'The last {days} days'}: {_in_all(whole, shown.unpaid)}"
        )
        _table(paper, shown, whole)
    else:
        paper.blank()
        paper.line(
            f"No model was asked {'today' if days == 1 else f'in the last {days} days'}: nothing was spent."
        )
    _refused(paper, report.refused)


def _sum(budget: Budget) -> str:
    left = (
        f"{models.dollars(max(0, budget.most - budget.spent))} left"
        if budget.most
        else "nothing is allowed"
    )
    return f"{models.dollars(budget.spent)} of {models.dollars(budget.most)}, {left}"


def _budget(budget: Budget, told: str) -> Sequence[Span | str]:
    share = min(1.0, budget.spent / budget.most) if budget.most else 1.0
    full = round(share * _BAR)
    tint = "red" if share >= 0.95 else "yellow" if share >= 0.75 else "green"
    what = budget.task or "today"
    return (
        bold(f"{what:<14}".replace(" ", "\u00a0")),
        Span("█" * full, tint),
        dim("░" * (_BAR - full)),
        f"  {told}  ".replace(" ", "\u00a0"),
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
    dearest = max(one.cost for one in sums)
    rows = [
        _row(one, round(one.cost / dearest * _SHARE) if dearest else 0, unpaid.get(one.name, 0))
        for one in sums
    ]
    if len(sums) > 1:
        rows.append(
            (*_row(whole, 0, shown.unpaid)[:-1], "")
        )  # what is to be said of it stands above
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
                f"{models.dollars(whole.estimated)} of it estimated: calls that were sent and not answered in full"
            )
        )


def _row(one: Sum, share: int, unpaid: int) -> tuple[str, ...]:
    """``unpaid`` of its calls a subscription paid."""
    tokens = one.tokens
    read = tokens.input + tokens.cached + tokens.written
    took = duration(timedelta(seconds=one.seconds)) if one.seconds >= 60 else seconds(one.seconds)
    return (
        one.name,
        f"{one.calls:,}",
        f"{one.failed:,}" if one.failed else "",
        amount(read),
        amount(tokens.cached) if tokens.cached else "",
        amount(tokens.output),
        took,
        _cost(one, unpaid),
        "▇" * share,
        _remarks(one, unpaid),
    )


def _cost(one: Sum, unpaid: int) -> str:
    if one.calls == unpaid:
        return "–"
    return "not known" if one.unpriced and not one.cost else models.dollars(one.cost)


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


# ----------------------------------------------------------------------------
# ``nacre traces``.


_OUTCOME_CHARACTERS = 48
_MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "skipped": ("–", "dim")}


@click.group(
    "traces",
    cls=DefaultGroup,
    examples=["nacre traces", "nacre traces list --kind case", "nacre traces show 5f0c2a4d"],
)
@click.pass_context
def traces(context: click.Context) -> None:
    """Tell what models and answers went through.

    Every run of a language model and every question that was answered leaves a trace: its steps, what they took, and
    what became of it. Secrets are not in them.
    """
    if context.invoked_subcommand is None:
        _list(context.obj, None, None, 20)


def _list(run: Run, kind: str | None, since: datetime | None, limit: int) -> None:
    found = ask(run, "traces", kind=kind, since=since, limit=limit)
    run.answer(
        {"traces": [_trace_record(trace) for trace in found], "limit": limit},
        lambda paper: _render_traces(paper, found),
    )


@traces.command(
    "list", examples=["nacre traces list --kind case --since 2d", "nacre traces list --json"]
)
@option("traces", "kind", help="Only these; a case is a question that was answered.")
@option("traces", "since", help="From then on: 2026-11-20, 3d, 2w, yesterday, march.")
@limit_option("traces", default=20)
@click.pass_obj
def list_traces(run: Run, kind: str | None, since: datetime | None, limit: int) -> None:
    """List traces, the latest first."""
    _list(run, kind, since, limit)


@traces.command(
    "show", examples=["nacre traces show 5f0c2a4d", "nacre traces show 5f0c2a4d --json"]
)
@argument("trace", "reference", metavar="ID")
@click.pass_obj
def show(run: Run, reference: str) -> None:
    """Tell a trace step by step."""
    view = ask(run, "trace", reference=reference)
    run.answer(trace_record(view), lambda paper: _render_trace(paper, view))


def trace_record(view: TraceView) -> Record:
    """One trace with its steps."""
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
    """One line a trace."""
    if not traces:
        paper.line("There are no traces yet: questions and runs of models leave them.")
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
    paper.line(dim("nacre traces show ID shows one"))


def _render_trace(paper: Paper, view: TraceView) -> None:
    """The steps in their order, what went in and what came out."""
    trace = view.trace
    paper.line(Span(trace.kind.value, "cyan"), "  ", bold(trace.subject), hang=2)
    facts = (minute(trace.began), _took(trace), _cost_traces(trace), trace.id[-SHORT_ID:])
    paper.line(dim(joined(facts)), indent=2)
    for number, step in enumerate(trace.steps, 1):
        paper.blank()
        _render_step(paper, number, step, view)
    if trace.outcome:
        paper.blank()
        paper.line(dim("In the end: "), trace.outcome)


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
    cached = f", {amount(step.tokens.cached)} from a cache" if step.tokens.cached else ""
    cost = "price unknown" if step.cost is None else models.dollars(int(step.cost * models.DOLLAR))
    if step.status == "failed":
        return (
            step.model,
            *((f"about {amount(read)} read", f"{cost} by estimate") if read else ()),
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
        return f"{count(len(calls), 'call')}, price not known"
    return f"{count(len(calls), 'call')}, {models.dollars(int(cost * models.DOLLAR))}"
