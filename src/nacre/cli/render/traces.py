"""Traces, for people: as stories."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.render.words import SHORT_ID, amount, count, minute, seconds
from nacre.text.passages import shorten
from nacre.values.spending import DOLLAR, dollars
from nacre.values.trace import Step, Trace

if TYPE_CHECKING:
    from nacre.views import TraceView

_OUTCOME_CHARACTERS = 48
_MARKS = {"done": ("✓", "green"), "failed": ("✗", "red"), "skipped": ("–", "dim")}


def render_traces(paper: Paper, traces: Sequence[Trace]) -> None:
    """One line a trace."""
    if not traces:
        paper.line("There are no traces yet: questions and runs of models leave them.")
        return
    rows = [
        (
            dim(trace.id[-SHORT_ID:]), minute(trace.began), Span(trace.kind.value, "cyan"), _took(trace),
            _cost(trace), shorten(trace.outcome, _OUTCOME_CHARACTERS), trace.subject,
        )
        for trace in traces
    ]  # fmt: skip
    paper.table(rows, drop=(4, 3, 1))
    paper.line(dim("nacre traces show ID tells one"))


def render_trace(paper: Paper, view: TraceView, *, prompts: bool) -> None:
    """The steps in their order, what went in and what came out."""
    trace = view.trace
    paper.line(Span(trace.kind.value, "cyan"), "  ", bold(trace.subject), hang=2)
    facts = (minute(trace.began), _took(trace), _cost(trace), view.session, trace.id[-SHORT_ID:])
    paper.line(dim(joined(facts)), indent=2)
    for number, step in enumerate(trace.steps, 1):
        paper.blank()
        _step(paper, number, step, view, prompts=prompts)
    if view.events:
        paper.heading("What the agent did next")
        paper.table(
            [(dim(f"{event.time.astimezone():%H:%M:%S}"), event.call.name, event.call.input) for event in view.events],
            indent=2,
        )
    if trace.outcome:
        paper.blank()
        paper.line(dim("In the end: "), trace.outcome)


def _step(paper: Paper, number: int, step: Step, view: TraceView, *, prompts: bool) -> None:
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
    if prompts:
        _whole(paper, step)


def _whole(paper: Paper, step: Step) -> None:
    for name, text in (("prompt", step.prompt), ("answer", step.answer)):
        if text:
            paper.line(dim(f"{name}:"), indent=5)
            paper.framed(text, "what went to a model or came from it", indent=7)
    if step.model and not step.prompt:
        paper.line(dim("prompt and answer were not kept: --trace-prompts does, or models.keep_prompts"), indent=5)


def _model(step: Step) -> tuple[str, ...]:
    if not step.model:
        return ()
    read = step.tokens.input + step.tokens.cached + step.tokens.written
    cached = f", {amount(step.tokens.cached)} from a cache" if step.tokens.cached else ""
    cost = "price unknown" if step.cost is None else dollars(int(step.cost * DOLLAR))
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
    return f"{count(len(calls), 'call')}, {dollars(int(cost * DOLLAR))}"
