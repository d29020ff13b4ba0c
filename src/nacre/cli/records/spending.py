"""What models cost, and what they went through."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from nacre.cli.records.values import Record, stamp
from nacre.values.spending import DOLLAR

if TYPE_CHECKING:
    from nacre.extraction.estimate import Estimate
    from nacre.values.model_calls import Tokens
    from nacre.values.trace import Step, Trace
    from nacre.views import CostReport, TraceView


def cost_record(report: CostReport, by: str) -> Record:
    """What was spent since a day, and today's budgets."""
    from nacre.spending.budget import added_up

    return {
        "since": report.since.isoformat(),
        "today": report.today.isoformat(),
        "resets": stamp(report.resets),
        "background": report.is_background_on,
        "budgets": [
            {"task": one.task, "most_usd": one.most / DOLLAR, "spent_usd": one.spent / DOLLAR} for one in report.budgets
        ],
        "by": by,
        "spent": [
            {
                "name": one.name, "calls": one.calls, "failed": one.failed, "background_calls": one.background,
                "tokens": tokens_record(one.tokens), "cost_usd": one.cost / DOLLAR,
                "estimated_usd": one.estimated / DOLLAR, "unpriced": one.unpriced,
                "seconds": round(one.seconds, 3),
            }
            for one in added_up(report.spent, by)
        ],
        "cost_usd": sum(one.cost for one in report.spent) / DOLLAR,
        "refused": [
            {"day": one.day.isoformat(), "task": one.task, "model": one.model, "reason": one.reason, "times": one.times}
            for one in report.refused
        ],
        "failing": [
            {"model": one.model, "failures": one.failures, "until": stamp(one.until), "message": one.told}
            for one in report.failing
        ],
    }  # fmt: skip


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
                "cost_usd": None if one.cost is None else one.cost / DOLLAR, "seconds": round(one.seconds, 1),
                "measured": one.is_measured,
            }
            for one in estimate.tasks
        ],
        "cost_usd": None if estimate.cost is None else estimate.cost / DOLLAR,
        "seconds": round(estimate.seconds, 1),
        "background": estimate.is_background_on,
        "left_usd": estimate.left / DOLLAR,
        "now": estimate.now,
        "vectors": {
            "model": vectors.model, "tokens": vectors.tokens, "left_usd": vectors.left / DOLLAR, "held": vectors.held,
            "cost_usd": None if vectors.cost is None else vectors.cost / DOLLAR,
        } if vectors else None,
        "problems": [{"path": one.path, "message": one.message, "hint": one.hint} for one in estimate.problems],
    }  # fmt: skip


def tokens_record(tokens: Tokens) -> Record:
    """Tokens of calls; ``input`` is without those from and to a cache."""
    return {
        "input": tokens.input, "output": tokens.output, "cached": tokens.cached, "written": tokens.written,
    }  # fmt: skip


def traces_record(traces: Sequence[Trace], limit: int) -> Record:
    """A list of traces, without their steps."""
    return {"traces": [_trace(trace) for trace in traces], "limit": limit}


def trace_record(view: TraceView, *, prompts: bool) -> Record:
    """One trace with its steps."""
    return {
        **_trace(view.trace),
        "session": view.session,
        "steps": [_step(step, prompts=prompts) for step in view.trace.steps],
        "names": [{"id": ref, "subject": subject} for ref, subject in view.names.items()],
        "events": [
            {
                "time": stamp(event.time), "name": event.call.name, "input": event.call.input,
                "outcome": event.call.outcome,
            }
            for event in view.events
        ],
    }  # fmt: skip


def _trace(trace: Trace) -> Record:
    costs = [step.cost for step in trace.steps if step.model]
    return {
        "trace": trace.id,
        "kind": trace.kind.value,
        "subject": trace.subject,
        "began": stamp(trace.began),
        "seconds": round((trace.ended - trace.began).total_seconds(), 3) if trace.ended else None,
        "outcome": trace.outcome,
        "calls": len(costs),
        "cost_usd": _dollars(None if None in costs else sum((cost for cost in costs if cost), Decimal(0))),
    }


def _step(step: Step, *, prompts: bool) -> Record:
    return {
        "title": step.title,
        "status": step.status,
        "input": step.input,
        "output": step.output,
        "refs": list(step.refs),
        "seconds": round(step.seconds, 3),
        "model": step.model or None,
        "tokens": tokens_record(step.tokens) if step.model else None,
        "cost_usd": _dollars(step.cost),
        "details": [{"name": name, "value": value} for name, value in step.more.items()],
        **({"prompt": step.prompt or None, "answer": step.answer or None} if prompts else {}),
    }


def _dollars(cost: Decimal | None) -> float | None:
    return None if cost is None else float(cost)
