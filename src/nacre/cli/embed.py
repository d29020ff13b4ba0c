"""``nacre writer embedding``."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import click

from nacre.base.json import to_plain
from nacre.cli.command import Cell, Paper, Run, Span, bold, command, dim
from nacre.cli.operations import perform
from nacre.cli.options import YES, argument, count, flag, size
from nacre.memories import vectors
from nacre.values import models

if TYPE_CHECKING:
    from nacre.memories.vectors import Embedded, Lot, Plan, Standing, Trial


_STATES = {"in_use": "in use", "making": "being created"}


@command(
    "embedding",
    examples=[
        "nacre writer embedding",
        "nacre writer embedding openai:text-embedding-3-small --estimate",
        "nacre writer embedding --resume",
    ],
)
@argument("embed-switch", "name", metavar="[MODEL]", required=False)
@flag("--resume", "Create the missing vectors.")
@flag("--estimate", "Only show the expected cost; send and change nothing.")
@YES
def embed(run: Run, name: str | None, resume: bool, estimate: bool, yes: bool) -> None:
    """Show the embedding model, or switch to another.

    Shows the model and the number of vectors, pending texts, and where texts are sent.

    MODEL is minilm (bundled, offline), onnx:FOLDER, or PROVIDER:MODEL, with @N for N dimensions. PROVIDER is openai,
    gemini, voyage, ollama, lmstudio, or any model provider. Recall uses the old vectors until all new ones are
    complete; then the old ones are deleted. You can interrupt it: --resume, the next ingest or the daemon continues
    it. Name the current model to cancel it.

    It asks first if texts would leave this machine without your earlier consent, as after nacre config set. The daily
    budget does not apply.
    """
    if name and resume:
        raise click.UsageError("--resume takes no model")
    if name or resume:
        _make(run, name, estimate=estimate, yes=yes)
    elif estimate or yes:
        raise click.UsageError("--estimate and --yes need a model or --resume")
    else:
        standing = perform(run, vectors.status)
        run.answer(
            {**to_plain(standing), "held_by": standing.held and standing.held.reason},
            _render_standing,
            standing,
        )


def _make(run: Run, name: str | None, *, estimate: bool, yes: bool) -> None:
    """Switch to the named model, or create the missing vectors of the current model."""
    model = name or run.settings.text("embedding.model")
    if name or model != "none":
        planned = perform(run, vectors.plan, name=model)
        model = planned.setting
        if estimate:
            record = {**to_plain(planned), "asks": planned.wants_yes}
            run.answer(record, _render_plan, planned)
            return
        trial = perform(run, vectors.try_one, name=name) if name else None
        if planned.wants_yes or (name and planned.texts):
            _ask(run, planned, trial, yes=yes)
    made = perform(run, vectors.switch, name=name) if name else perform(run, vectors.resume)
    run.exit_code = 1 if made.left and made.note else 0
    run.answer({"setting": model, **to_plain(made)}, _render_made, model, made)


def _ask(run: Run, planned: Plan, trial: Trial | None = None, *, yes: bool) -> None:
    """Ask for consent before text leaves this machine."""
    if yes or planned.place.is_local:
        return
    if not run.is_interactive:
        raise click.UsageError(
            f"{_describe_sending(planned)}: check with --estimate, then add --yes"
        )
    run.show(_render_plan, planned, trial)
    run.confirm("Continue?")


def _render_standing(paper: Paper, standing: Standing) -> None:
    """Print the configured model, then the existing vectors."""
    paper.line(
        bold(standing.wanted),
        "  ",
        dim(_where(standing.place) if standing.wanted != "none" else "vectors are off"),
    )
    if standing.problem:
        paper.note(standing.problem.message, "red", indent=2)
        paper.note(standing.problem.hint or "", indent=2)
    if standing.held:
        paper.note(standing.held.message, "yellow", indent=2)
        paper.note(standing.held.hint or "", indent=2)
    for lot in (standing.in_use, standing.other):
        if lot:
            paper.blank()
            state = (
                "started, then canceled"
                if lot.state == "making" and not standing.switching
                else _STATES[lot.state]
            )
            paper.line(bold(lot.setting), "  ", dim(state))
            paper.facts(_facts(lot), indent=2)
    if standing.in_use is None:
        paper.note("no vectors yet: nacre ingest creates them", indent=2)
    if standing.switching:
        paper.blank()
        paper.line("Recall uses the old vectors until the new ones are complete.")
        if not standing.held:
            paper.note("nacre writer embedding --resume, nacre ingest or the daemon continues")


def _facts(lot: Lot) -> list[tuple[str, Cell]]:
    made = f"{count(lot.passages, 'passage')}, {count(lot.memories, 'memory', 'memories')}"
    facts: list[tuple[str, Cell]] = [("model", lot.model)] if lot.model != lot.setting else []
    facts.append(("vectors", f"{made}; {lot.dimensions:,} numbers each, {size(lot.bytes)}"))
    if lot.waiting:
        facts.append(("pending", f"{count(lot.waiting, 'text')}"))
    return facts


def _where(place: models.Place) -> str:
    if not place.host:
        return "texts stay on this machine"
    return f"texts go to {place.host}" + (", on this machine" if place.is_here else "")


def _describe_sending(plan: Plan) -> str:
    now = f"{count(plan.texts, 'text')} ({plan.tokens:,} tokens, {_cost(plan.cost)})"
    return f"{now} would be sent to {plan.place.host}, as would later texts and questions"


def _render_plan(paper: Paper, plan: Plan, trial: Trial | None = None) -> None:
    paper.line(bold(plan.setting), "  ", dim(_where(plan.place)))
    answers = (
        [("answers", f"{trial.dimensions:,} numbers, in {trial.seconds:.2f} s")] if trial else []
    )
    paper.facts(
        [
            *answers,
            ("replaces", plan.used or "no vectors yet")
            if plan.used != plan.setting
            else ("continues", "its own vectors"),
            ("texts", f"{plan.texts:,}"),
            ("tokens", f"about {plan.tokens:,}"),
            ("cost", _cost(plan.cost)),
            ("later", _later(plan)),
        ],
        indent=2,
    )


def _later(plan: Plan) -> str:
    """Describe how future text is handled."""
    if plan.place.is_local:
        return ""
    if plan.cost is None:
        return "new texts wait for nacre writer embedding --resume until models.capabilities has the price"
    if not plan.place.price:
        return "new texts and each question are sent there too"
    left = models.dollars(plan.left)
    return (
        f"new texts and each question are sent there within the daily budget; {left} is left today"
    )


def _cost(cost: Decimal | None) -> str:
    if cost is None:
        return "price unknown"
    return (
        f"about ${cost:,.2f}" if cost >= Decimal("0.01") else "less than a cent" if cost else "free"
    )


def _spent(made: Embedded) -> Span:
    return dim(f" · {made.tokens:,} tokens" if made.tokens else "")


def _render_made(paper: Paper, setting: str, made: Embedded) -> None:
    if made.left:
        paper.line(
            bold(setting),
            f": {made.made:,} vectors created, {count(made.left, 'text')} pending",
            _spent(made),
        )
        paper.note(
            "nacre writer embedding --resume continues; until then recall uses the existing vectors"
        )
    else:
        created = f"; {count(made.made, 'text')} got vectors" if made.made else ""
        paper.line(Span("✓ ", "green"), bold(setting), f" is in use{created}", _spent(made))
    if made.note:
        paper.note(made.note)
