"""``nacre embed``."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import click

from nacre.cli import output
from nacre.cli.command import Cell, Group, Paper, Run, Span, bold, dim
from nacre.cli.operations import perform
from nacre.cli.options import Record, argument, count, float_or_none, size
from nacre.values import models

if TYPE_CHECKING:
    from nacre.home.consent import Place
    from nacre.memories.vectors import Embedded, Lot, Plan, Standing, Trial

_STATES = {"in_use": "in use", "making": "in the making"}


class _Embed(Group):
    has_default = True


@click.group(
    "embed",
    cls=_Embed,
    examples=[
        "nacre embed",
        "nacre embed switch openai:text-embedding-3-small --estimate",
        "nacre embed resume",
    ],
)
@click.pass_context
def embed(ctx: click.Context) -> None:
    """Tell which embedding model makes the vectors, and change it."""
    if not ctx.invoked_subcommand:
        ctx.invoke(status)


@embed.command("status", examples=["nacre embed status", "nacre embed status --json"])
@click.pass_obj
def status(run: Run) -> None:
    """Tell which model made which vectors, how many texts wait, and where texts go."""
    found: Standing = perform(run, "embed")
    run.answer(_standing_record(found), lambda paper: _render_standing(paper, found))


@embed.command(
    "switch",
    examples=[
        "nacre embed switch openai:text-embedding-3-small --estimate",
        "nacre embed switch ollama:nomic-embed-text",
    ],
)
@argument("embed-switch", "name", metavar="MODEL")
@click.option(
    "--estimate", is_flag=True, help="Tell what it takes, send nothing and change nothing."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def switch(run: Run, /, name: str, estimate: bool, yes: bool) -> None:
    """Have another model make the vectors.

    MODEL is minilm (bundled, offline), onnx:FOLDER, or PROVIDER:MODEL, with @N for N dimensions: of openai, gemini,
    voyage, ollama, lmstudio, or any provider of models. Its vectors are made beside those in use, by which recall goes
    until none is missing; then those are dropped. You may interrupt it: nacre embed resume, the next ingest or the
    watcher goes on, and naming the model in use gives it up.
    """
    planned = perform(run, "embed-plan", name=name)
    if estimate:
        _answer_plan(run, planned)
        return
    trial: Trial = perform(run, "embed-try", name=name)
    if planned.texts or planned.wants_yes:
        _ask(run, planned, trial, yes=yes)
    with output.shown(run) as notify:
        switched: Embedded = perform(run, "embed-switch", notify, name=name)
    _answer(run, planned.setting, switched)


@embed.command("resume", examples=["nacre embed resume", "nacre embed resume --estimate"])
@click.option(
    "--estimate", is_flag=True, help="Tell what is left to do, send nothing and change nothing."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def resume(run: Run, estimate: bool, yes: bool) -> None:
    """Go on with the vectors that are missing.

    It asks first where texts would leave this machine and nobody said yes to that, as after nacre config set. No budget
    holds it: you ask for it.
    """
    if run.settings.text("embedding.model") != "none":
        planned: Plan = perform(run, "embed-plan", name=run.settings.text("embedding.model"))
        if estimate:
            _answer_plan(run, planned)
            return
        if planned.wants_yes:
            _ask(run, planned, yes=yes)
    with output.shown(run) as notify:
        made: Embedded = perform(run, "embed-resume", notify)
    _answer(run, run.settings.text("embedding.model"), made)


def _ask(run: Run, planned: Plan, trial: Trial | None = None, *, yes: bool) -> None:
    """Before texts leave this machine."""
    if yes or planned.place.is_local:
        return
    if not run.is_interactive:
        raise click.UsageError(
            f"{_describe_sending(planned)}: look with --estimate, then add --yes",
            click.get_current_context(),
        )
    run.show(lambda paper: _render_plan(paper, planned, trial))
    run.confirm("Go on?")


def _answer_plan(run: Run, planned: Plan) -> None:
    run.answer(_plan_record(planned), lambda paper: _render_plan(paper, planned))


def _answer(run: Run, setting: str, made: Embedded) -> None:
    run.exit_code = 1 if made.left and made.note else 0
    run.answer(_made_record(setting, made), lambda paper: _render_made(paper, setting, made))


def _standing_record(standing: Standing) -> Record:
    """How the vectors stand."""
    problem, held = standing.problem, standing.held
    return {
        "wanted": standing.wanted,
        "switching": standing.switching,
        "host": standing.place.host or None,
        "local": standing.place.is_here,
        "in_use": _lot_record(standing.in_use),
        "other": _lot_record(standing.other),
        "problem": {"message": problem.message, "hint": problem.hint} if problem else None,
        "held": {"reason": held.reason, "message": held.message, "hint": held.hint}
        if held
        else None,
    }


def _lot_record(lot: Lot | None) -> Record | None:
    if lot is None:
        return None
    return {
        "setting": lot.setting,
        "model": lot.model,
        "state": lot.state,
        "dimensions": lot.dimensions,
        "passages": lot.passages,
        "memories": lot.memories,
        "waiting": lot.waiting,
        "bytes": lot.bytes,
    }


def _plan_record(plan: Plan) -> Record:
    """What a switch takes."""
    return {
        "setting": plan.setting,
        "model": plan.model,
        "from": plan.used,
        "host": plan.place.host or None,
        "local": plan.place.is_here,
        "texts": plan.texts,
        "tokens": plan.tokens,
        "cost_usd": float_or_none(plan.cost),
        "asks": plan.wants_yes,
        "left_usd": plan.left / models.DOLLAR,
    }


def _made_record(setting: str, made: Embedded) -> Record:
    """What was made."""
    return {
        "setting": setting,
        "made": made.made,
        "left": made.left,
        "tokens": made.tokens,
        "note": made.note,
    }


def _render_standing(paper: Paper, standing: Standing) -> None:
    """The model that is set, then the vectors there are."""
    paper.line(
        bold(standing.wanted),
        "  ",
        dim(_where(standing.place) if standing.wanted != "none" else "vectors are off"),
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
            state = (
                "begun, and given up"
                if lot.state == "making" and not standing.switching
                else _STATES[lot.state]
            )
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
    if lot.waiting:
        facts.append(("waiting", f"{count(lot.waiting, 'text')}"))
    return facts


def _where(place: Place) -> str:
    if not place.host:
        return "texts stay on this machine"
    return f"texts go to {place.host}" + (", on this machine" if place.is_here else "")


def _describe_sending(plan: Plan) -> str:
    """What would be sent, in a sentence."""
    now = f"{count(plan.texts, 'text')} ({plan.tokens:,} tokens, {_cost(plan.cost)})"
    return f"{now} go to {plan.place.host}, and what comes later, questions too"


def _render_plan(paper: Paper, plan: Plan, trial: Trial | None = None) -> None:
    """What a switch takes."""
    paper.line(bold(plan.setting), "  ", dim(_where(plan.place)))
    answers = (
        [("answers", f"{trial.dimensions:,} numbers, in {trial.seconds:.2f} s")] if trial else []
    )
    paper.facts(
        [
            *answers,
            ("instead of", plan.used or "no vectors yet")
            if plan.used != plan.setting
            else ("goes on with", "its own"),
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
    left = models.dollars(plan.left)
    return f"new texts, and each question, go there within the budget of a day; {left} of today's is left"


def _cost(cost: Decimal | None) -> str:
    if cost is None:
        return "price not known"
    return (
        f"about ${cost:,.2f}" if cost >= Decimal("0.01") else "less than a cent" if cost else "free"
    )


def _spent(made: Embedded) -> Span:
    return dim(f" · {made.tokens:,} tokens" if made.tokens else "")


def _render_made(paper: Paper, setting: str, made: Embedded) -> None:
    """What became of it."""
    if made.left:
        paper.line(
            bold(setting),
            f": {made.made:,} vectors made, {count(made.left, 'text')} still wait",
            _spent(made),
        )
        paper.line(dim("nacre embed resume goes on; until then recall goes by what is there"))
    else:
        got = f"; {count(made.made, 'text')} got vectors" if made.made else ""
        paper.line(Span("✓ ", "green"), bold(setting), f" is in use{got}", _spent(made))
    if made.note:
        paper.line(dim(made.note))
