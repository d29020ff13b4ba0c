"""``nacre traces``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import click

from nacre.cli.command import DefaultGroup
from nacre.cli.formats import SHORT_ID, Record, amount, count, float_or_none, minute, seconds, stamp, tokens_record
from nacre.cli.operations import ask
from nacre.cli.options import limit_option
from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.text import passages
from nacre.values import spending

if TYPE_CHECKING:
    from nacre.values.trace import Step, Trace
    from nacre.views import TraceView


_OUTCOME_CHARACTERS = 48
_MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "skipped": ("–", "dim")}


@click.group(
    "traces", cls=DefaultGroup, examples=["nacre traces", "nacre traces list --kind case", "nacre traces show 5f0c2a4d"]
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


@traces.command("list", examples=["nacre traces list --kind case --since 2d", "nacre traces list --json"])
@option("traces", "kind", help="Only these; a case is a question that was answered.")
@option("traces", "since", help="From then on: 2026-11-20, 3d, 2w, yesterday, march.")
@limit_option("traces", default=20)
@click.pass_obj
def list_traces(run: Run, kind: str | None, since: datetime | None, limit: int) -> None:
    """List traces, the latest first."""
    _list(run, kind, since, limit)


@traces.command("show", examples=["nacre traces show 5f0c2a4d", "nacre traces show 5f0c2a4d --json"])
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
        "cost_usd": float_or_none(None if None in costs else sum((cost for cost in costs if cost), Decimal(0))),
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
            dim(trace.id[-SHORT_ID:]), minute(trace.began), Span(trace.kind.value, "cyan"), _took(trace),
            _cost(trace), passages.shorten(trace.outcome, _OUTCOME_CHARACTERS), trace.subject,
        )
        for trace in traces
    ]  # fmt: skip
    paper.table(rows, header=("id", "when", "kind", "took", "calls", "outcome", "about"), drop=(4, 3, 1))
    paper.line(dim("nacre traces show ID shows one"))


def _render_trace(paper: Paper, view: TraceView) -> None:
    """The steps in their order, what went in and what came out."""
    trace = view.trace
    paper.line(Span(trace.kind.value, "cyan"), "  ", bold(trace.subject), hang=2)
    facts = (minute(trace.began), _took(trace), _cost(trace), trace.id[-SHORT_ID:])
    paper.line(dim(joined(facts)), indent=2)
    for number, step in enumerate(trace.steps, 1):
        paper.blank()
        _render_step(paper, number, step, view)
    if trace.outcome:
        paper.blank()
        paper.line(dim("In the end: "), trace.outcome)


def _render_step(paper: Paper, number: int, step: Step, view: TraceView) -> None:
    sign, tint = _MARKS.get(step.status, ("?", "yellow"))
    took = seconds(step.seconds) if step.seconds >= 0.05 else f"{step.seconds * 1000:.0f} ms" if step.seconds else ""
    paper.line(
        f"{number}. ", Span(sign, tint), " ", bold(step.title), dim(f"  {joined((*_model(step), took))}"), hang=4
    )
    if step.input:
        paper.line(dim("in   "), step.input, indent=5, hang=5)
    if step.output:
        paper.line(dim("out  "), step.output, indent=5, hang=5)
    rows = [
        (_detail(step, ref), dim(ref[-SHORT_ID:] if ref in view.names else ref), view.names.get(ref, ""))
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
    cost = "price unknown" if step.cost is None else spending.dollars(int(step.cost * spending.DOLLAR))
    if step.status == "failed":
        return (step.model, *((f"about {amount(read)} read", f"{cost} by estimate") if read else ()))
    return step.model, f"{amount(read)} read{cached}, {amount(step.tokens.output)} written", cost


def _detail(step: Step, ref: str) -> str:
    value = step.more.get(ref, "")
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _took(trace: Trace) -> str:
    if trace.ended is None:
        return ""
    took = (trace.ended - trace.began).total_seconds()
    return seconds(took) if took >= 1 else f"{took * 1000:.0f} ms"


def _cost(trace: Trace) -> str:
    calls = [step for step in trace.steps if step.model]
    if not calls:
        return ""
    cost = sum((step.cost for step in calls if step.cost), Decimal(0))
    if not cost and any(step.status == "done" and step.cost is None for step in calls):
        return f"{count(len(calls), 'call')}, price not known"
    return f"{count(len(calls), 'call')}, {spending.dollars(int(cost * spending.DOLLAR))}"
