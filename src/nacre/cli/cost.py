"""``nacre writer cost`` and ``nacre writer traces``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from datetime import datetime

from nacre.base import text
from nacre.cli.command import Paper, Run, Span, bold, command, dim, joined
from nacre.cli.operations import ask
from nacre.cli.options import SHORT_ID, amount, argument, limit_option, minute, option, seconds
from nacre.home import views
from nacre.values import models
from nacre.values.models import Trace, dollars

_PROMPT_CHARACTERS = 60


@command("cost", examples=["nacre writer cost", "nacre writer cost --json"])
def cost(run: Run) -> None:
    """Show the cost of models today and this month, by task.

    The caps limit background work, answers in chats, and vectors from a provider. Your own requests are included in
    the table, but never stopped. Calls by subscription cost nothing here.
    """
    run.present(ask(run, views.CostReport, "cost"), _render_costs)


def _render_costs(paper: Paper, report: views.CostReport) -> None:
    for limit in report.budgets:
        left = f"{dollars(limit.left)} left" if limit.most else "nothing is allowed"
        name = "today" if limit.period == "day" else "this month"
        paper.line(
            bold(f"{name:<12}".replace(" ", "\u00a0")),
            f"{dollars(limit.spent)} of {dollars(limit.most)} in the background, {left}",
        )
    if not report.is_background_on:
        paper.note("Only chats use models in the background: models.background is off.")
    if not report.tasks:
        paper.line("No model calls this month: nothing was spent.")
        return
    tasks = list(report.tasks)
    if len(tasks) > 1:
        numbers = zip(*(astuple(task)[1:] for task in tasks), strict=True)
        tasks.append(models.TaskCost("total", *map(sum, numbers)))
    rows = [
        (
            task.task,
            f"{task.calls_today:,}",
            dollars(task.cost_today),
            f"{task.calls:,}",
            f"{task.failed:,}",
            amount(task.tokens),
            dollars(task.cost),
            f"{task.unpriced:,} of unknown price" if task.unpriced else "",
        )
        for task in tasks
    ]
    paper.blank()
    header = ("task", "calls today", "cost today", "calls", "failed", "tokens", "this month", "")
    paper.table(rows, header=header, drop=(4, 5, 1))


@command(
    "traces",
    examples=[
        "nacre writer traces",
        "nacre writer traces --task dedup",
        "nacre writer traces 5f0c2a4d",
    ],
)
@argument("trace", "reference", metavar="[ID]", required=False)
@option("traces", "task")
@option("traces", "since", help="Since then: 2026-11-20, 3d, 2w, yesterday, march.")
@limit_option("traces", default=20)
def traces(
    run: Run, reference: str | None, task: str | None, since: datetime | None, limit: int
) -> None:
    """Show the calls of language models, or one call in full: prompt, answer, tokens, cost and error.

    Every call leaves a trace: its prompt and answer without secrets, its tokens, cost and error. Traces are deleted
    after traces.keep_days.
    """
    if reference:
        run.present(ask(run, models.Trace, "trace", reference=reference), _render_trace)
        return
    entries = ask(run, list[models.Trace], "traces", task=task, since=since, limit=limit)
    run.answer({"traces": entries, "limit": limit}, _render_traces, entries)


def _render_traces(paper: Paper, traces: Sequence[Trace]) -> None:
    if not traces:
        paper.line("There are no traces: no model was called lately.")
        return
    rows = [
        (
            dim(trace.id[-SHORT_ID:]),
            minute(trace.at),
            Span(trace.task.value, "cyan"),
            trace.model,
            seconds(trace.seconds),
            _cost(trace),
            Span(trace.error, "red")
            if trace.error
            else text.shorten(trace.prompt, _PROMPT_CHARACTERS),
        )
        for trace in traces
    ]
    paper.table(rows, header=("id", "when", "task", "model", "took", "cost", ""), drop=(4, 3, 1))
    paper.note("nacre writer traces ID shows one")


def _render_trace(paper: Paper, trace: Trace) -> None:
    paper.line(Span(trace.task.value, "cyan"), "  ", bold(trace.model))
    tokens = trace.tokens
    read = tokens.input + tokens.cached + tokens.written
    facts = (
        minute(trace.at),
        seconds(trace.seconds),
        f"{amount(read)} tokens read, {amount(tokens.output)} written",
        _cost(trace),
        trace.id[-SHORT_ID:],
    )
    paper.note(joined(facts), indent=2)
    for name, content in (("Prompt", trace.prompt), ("Answer", trace.answer)):
        if content:
            paper.heading(name)
            paper.body(content)
    if trace.error:
        paper.heading("Error")
        paper.body(trace.error)


def _cost(trace: Trace) -> str:
    return "price unknown" if trace.cost is None else dollars(trace.cost)
