"""Answers of deep recall for people: what was found, or which project has to be named, and who decided it."""

from __future__ import annotations

from nacre.cli.paper import Paper, Span, bold, dim
from nacre.cli.render.answers import NOTHING, lanes_told
from nacre.cli.render.memories import render_hit
from nacre.values.deep_recall import DecidedBy, DeepResult, Route

_WHO = {DecidedBy.MODEL: "the model", DecidedBy.RULES: "rules", DecidedBy.ASKER: "you"}


def message_of(result: DeepResult) -> str | None:
    """Why there are no hits, where there are none."""
    if result.hits or result.clarify:
        return None
    if result.route is Route.NONE:
        return "That needs no memory."
    return "Nothing beside what is known of you." if result.context else NOTHING


def render_deep(paper: Paper, result: DeepResult, *, explain: bool) -> None:
    """What was found, or which project has to be named, then who decided it."""
    if result.clarify:
        paper.line(bold("Which project do you mean?"))
        for slug in result.clarify:
            paper.line(f"--project {slug}", indent=2)
    elif not result.hits:
        paper.line(bold(message_of(result) or NOTHING))
        if result.route is not Route.NONE:
            paper.line(dim("What draws on text from outside is never told here; nacre recall may show more."), indent=2)
    elif result.project:
        paper.line(dim("of the project "), bold(result.project))
        paper.blank()
    for rank, hit in enumerate(result.hits, start=1):
        render_hit(paper, rank, hit, explain=explain)
        paper.blank()
    if explain and result.context:
        paper.heading("For an agent")
        paper.body(result.context, indent=2)
    _render_steps(paper, result, explain=explain)


def _render_steps(paper: Paper, result: DeepResult, *, explain: bool) -> None:
    paper.blank()
    told = [f"{step.name} {step.outcome} (by {_WHO[step.by]})" for step in result.steps]
    paper.line(dim("; ".join(told)), hang=2)
    if result.problem:
        paper.line(Span(f"the model did not help: {result.problem}; rules went on", "yellow"), hang=2)
    elif result.model is None:
        paper.line(dim("no language model is set: rules decided all of it (nacre setup)"), hang=2)
    lanes = result.lanes if explain else result.degraded
    if lanes:
        paper.line(dim(f"{'lanes' if explain else 'degraded'}: {lanes_told(lanes)}"), hang=2)
    if explain:
        again = " · answered again from memory" if result.repeated else ""
        paper.line(dim(f"model: {result.model or 'none'} · {result.took_ms:.0f} ms{again}"))
