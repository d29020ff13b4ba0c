"""Embedding models, for people."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from nacre.cli.paper import Cell, Paper, Span, bold, dim
from nacre.cli.render.words import count, size
from nacre.values.spending import dollars

if TYPE_CHECKING:
    from nacre.indexing.model_switch import Lot, Plan, Standing, Trial
    from nacre.indexing.vectors import Embedded
    from nacre.spending.embedding_consent import Place

_STATES = {"in_use": "in use", "making": "in the making", "kept": "kept: nacre embed switch --back"}


def render_standing(paper: Paper, standing: Standing) -> None:
    """The model that is set, then the vectors there are."""
    paper.line(
        bold(standing.wanted), "  ", dim(_where(standing.place) if standing.wanted != "none" else "vectors are off")
    )
    if standing.problem:
        paper.line(Span(standing.problem.message, "red"), indent=2)
        paper.line(dim(standing.problem.hint or ""), indent=2)
    if standing.held:
        paper.line(Span(standing.held.message, "yellow"), indent=2)
        paper.line(dim(standing.held.hint or ""), indent=2)
    for lot in (standing.in_use, standing.other):
        if lot:
            paper.blank()
            state = "begun, and given up" if lot.state == "making" and not standing.switching else _STATES[lot.state]
            paper.line(bold(lot.setting), "  ", dim(state))
            paper.facts(_facts(lot), indent=2)
    if standing.in_use is None:
        paper.line(dim("no vectors yet: nacre ingest makes them"), indent=2)
    if standing.switching:
        paper.blank()
        paper.line("Recall goes by the vectors in use until the others are whole.")
        if not standing.held:
            paper.line(dim("nacre embed resume, nacre ingest or the watcher goes on with them"))


def _facts(lot: Lot) -> list[tuple[str, Cell]]:
    made = f"{count(lot.passages, 'passage')}, {count(lot.memories, 'memory', 'memories')}"
    facts: list[tuple[str, Cell]] = [("model", lot.model)] if lot.model != lot.setting else []
    facts.append(("vectors", f"{made}; {lot.dimensions:,} numbers each, {size(lot.bytes)}"))
    if lot.waiting and lot.state != "kept":
        facts.append(("waiting", f"{count(lot.waiting, 'text')}"))
    return facts


def _where(place: Place) -> str:
    if not place.host:
        return "texts stay on this machine"
    return f"texts go to {place.host}" + (", on this machine" if place.is_here else "")


def told(plan: Plan) -> str:
    """What would be sent, in a sentence."""
    now = f"{count(plan.texts, 'text')} ({plan.tokens:,} tokens, {_cost(plan.cost)})"
    return f"{now} go to {plan.place.host}, and what comes later, questions too"


def render_plan(paper: Paper, plan: Plan, trial: Trial | None = None) -> None:
    """What a switch takes."""
    paper.line(bold(plan.setting), "  ", dim(_where(plan.place)))
    answers = [("answers", f"{trial.dimensions:,} numbers, in {trial.seconds:.2f} s")] if trial else []
    paper.facts(
        [
            *answers,
            ("instead of", plan.used or "no vectors yet") if plan.used != plan.setting else ("goes on with", "its own"),
            ("texts", f"{plan.texts:,}"),
            ("tokens", f"about {plan.tokens:,}"),
            ("cost", _cost(plan.cost)),
            ("later", _later(plan)),
        ],
        indent=2,
    )


def _later(plan: Plan) -> str:
    """What becomes of texts that come afterwards, by themselves."""
    if plan.place.is_local:
        return ""
    if plan.cost is None:
        return "new texts wait for nacre embed resume until models.capabilities says the price"
    if not plan.place.price:
        return "new texts, and each question, go there too"
    return f"new texts, and each question, go there within the budget of a day; {dollars(plan.left)} of today's is left"


def _cost(cost: Decimal | None) -> str:
    if cost is None:
        return "price not known"
    return f"about ${cost:,.2f}" if cost >= Decimal("0.01") else "less than a cent" if cost else "free"


def _spent(made: Embedded) -> Span:
    return dim(f" · {made.tokens:,} tokens" if made.tokens else "")


def render_made(paper: Paper, setting: str, made: Embedded) -> None:
    """What became of it."""
    if made.left:
        paper.line(bold(setting), f": {made.made:,} vectors made, {count(made.left, 'text')} still wait", _spent(made))
        paper.line(dim("nacre embed resume goes on; until then recall goes by what is there"))
    else:
        got = f"; {count(made.made, 'text')} got vectors" if made.made else ""
        paper.line(Span("✓ ", "green"), bold(setting), f" is in use{got}", _spent(made))
    if made.note:
        paper.line(dim(made.note))
