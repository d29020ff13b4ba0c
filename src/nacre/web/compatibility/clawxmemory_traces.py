"""ClawXMemory's routes on traces (seed facts 3.6): recall, what was read and learned, and dreams."""

from __future__ import annotations

from typing import Any

from starlette.routing import Route

from nacre.values.codec import stamp
from nacre.values.trace import Step, Trace
from nacre.web.compatibility.calls import Call, Handler, route

_MOST = 200
_STATUS = {"done": "success", "failed": "error", "skipped": "skipped"}


def trace_routes(base: str) -> list[Route]:
    """The lists, and a trace of each."""
    found = []
    for path, kind, name in (("cases", "case", "caseId"), ("index-traces", "index", "indexTraceId"),
                             ("dream-traces", "dream", "dreamTraceId")):  # fmt: skip
        found += [
            route("GET", f"{base}/{path}", _lister(kind, name)),
            route("GET", f"{base}/{path}/{{trace}}", _shower(name)),
        ]
    return found


def _lister(kind: str, name: str) -> Handler:
    async def traces(call: Call) -> Any:
        """The latest ones of a kind."""
        found = await call.read("traces", kind=kind, limit=call.number("limit", 5 if kind == "case" else 12, _MOST))
        return [_run(one, name) for one in found]

    return traces


def _shower(name: str) -> Handler:
    async def trace(call: Call) -> Any:
        """One of them. Raises NotFound."""
        return _run((await call.read("trace", reference=call.path["trace"])).trace, name)

    return trace


def _run(trace: Trace, name: str) -> dict[str, Any]:
    failed = any(step.status == "failed" for step in trace.steps)
    found = {
        name: trace.id, "sessionKey": trace.session, "startedAt": stamp(trace.began),
        "finishedAt": stamp(trace.ended) if trace.ended else None,
        "status": "error" if failed else "completed" if trace.ended else "running",
    }  # fmt: skip
    steps = [_step(number, one) for number, one in enumerate(trace.steps)]
    if name != "caseId":
        return found | {"trigger": "scheduled", "steps": steps, "outcome": {"summary": trace.outcome}}
    inner = {"traceId": trace.id, "query": trace.subject, "mode": "auto", "steps": steps}
    retrieval = {"injected": bool(steps), "contextPreview": trace.outcome, "trace": inner}
    return found | {"query": trace.subject, "retrieval": retrieval, "toolEvents": [], "assistantReply": ""}


def _step(number: int, step: Step) -> dict[str, Any]:
    return {
        "stepId": str(number), "kind": step.title.replace(" ", "_"), "title": step.title,
        "status": _STATUS.get(step.status, "info"), "inputSummary": step.input, "outputSummary": step.output,
        "refs": {"ids": step.refs}, "metrics": {"seconds": step.seconds, **step.more}, "details": [],
    }  # fmt: skip
