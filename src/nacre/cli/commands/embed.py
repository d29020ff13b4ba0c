"""``nacre embed``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import TEXT, Group
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.indexing.model_switch import Plan, Trial
    from nacre.indexing.vectors import Embedded


class _Embed(Group):
    has_default = True


@click.group(
    "embed", cls=_Embed,
    examples=["nacre embed", "nacre embed switch openai:text-embedding-3-small --estimate", "nacre embed resume"],
)  # fmt: skip
@click.pass_context
def embed(ctx: click.Context) -> None:
    """Tell which embedding model makes the vectors, and change it."""
    if not ctx.invoked_subcommand:
        ctx.invoke(status)


@embed.command("status", examples=["nacre embed status", "nacre embed status --json"])
@click.pass_obj
def status(run: Run) -> None:
    """Tell which model made which vectors, how many texts wait, and where texts go."""
    from nacre.cli.records.embed import standing_record
    from nacre.cli.render.embed import render_standing
    from nacre.indexing import model_switch

    found = model_switch.status(run.home)
    run.answer(standing_record(found), lambda paper: render_standing(paper, found))


@embed.command(
    "switch",
    examples=[
        "nacre embed switch openai:text-embedding-3-small --estimate",
        "nacre embed switch ollama:nomic-embed-text",
        "nacre embed switch --back",
    ],
)
@click.argument("name", type=TEXT, default="", metavar="[MODEL]")
@click.option("--estimate", is_flag=True, help="Tell what it takes, send nothing and change nothing.")
@click.option("--back", is_flag=True, help="Go back to the model of before; at once, as its vectors are kept.")
@click.option("--forget-old", is_flag=True, help="Drop the vectors that are kept; after the switch, with MODEL.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def switch(run: Run, /, name: str, estimate: bool, back: bool, forget_old: bool, yes: bool) -> None:
    """Have another model make the vectors.

    MODEL is minilm (bundled, offline), onnx:FOLDER, or PROVIDER:MODEL, with @N for N dimensions: of openai, gemini,
    voyage, ollama, lmstudio, or any provider of models. Its vectors are made beside those in use, by which recall goes
    until none is missing. You may interrupt it: nacre embed resume, the next ingest or the watcher goes on.
    """
    from nacre.indexing import model_switch

    if bool(name) == back and not (forget_old and not name):
        raise click.UsageError("name one model, or say --back or --forget-old", click.get_current_context())
    if back:
        planned = model_switch.plan_back(run.home)
        if estimate:
            _answer_plan(run, planned)
            return
        if planned.wants_yes:
            _ask(run, planned, yes=yes)
        with progress.shown(run) as notify:
            setting, made = model_switch.back(run.home, notify or (lambda _: None))
        _answer(run, setting, made)
    elif name:
        planned = model_switch.plan(run.home, name)
        if estimate:
            _answer_plan(run, planned)
            return
        trial = model_switch.try_one(run.home, name)
        if planned.texts or planned.wants_yes:
            _ask(run, planned, trial, yes=yes)
        with progress.shown(run) as notify:
            made = model_switch.switch(run.home, name, notify or (lambda _: None), forgets_old=forget_old)
        _answer(run, planned.setting, made)
    else:
        _forget(run)


@embed.command("resume", examples=["nacre embed resume", "nacre embed resume --estimate"])
@click.option("--estimate", is_flag=True, help="Tell what is left to do, send nothing and change nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def resume(run: Run, estimate: bool, yes: bool) -> None:
    """Go on with the vectors that are missing.

    It asks first where texts would leave this machine and nobody said yes to that, as after nacre config set. No budget
    holds it: you ask for it.
    """
    from nacre.indexing import model_switch

    if run.settings["embedding.model"] != "none":
        planned = model_switch.plan(run.home, run.settings["embedding.model"])
        if estimate:
            _answer_plan(run, planned)
            return
        if planned.wants_yes:
            _ask(run, planned, yes=yes)
    with progress.shown(run) as notify:
        made = model_switch.resume(run.home, notify or (lambda _: None))
    _answer(run, run.settings["embedding.model"], made)


def _ask(run: Run, planned: Plan, trial: Trial | None = None, *, yes: bool) -> None:
    """Before texts leave this machine."""
    from nacre.cli.render.embed import render_plan, told

    if yes or planned.place.is_local:
        return
    if not run.is_interactive:
        raise click.UsageError(f"{told(planned)}: look with --estimate, then add --yes", click.get_current_context())
    paper = run.paper(stderr=True)
    render_plan(paper, planned, trial)
    click.echo(paper.text(), nl=False, err=True)
    run.confirm("Go on?")


def _answer_plan(run: Run, planned: Plan) -> None:
    from nacre.cli.records.embed import plan_record
    from nacre.cli.render.embed import render_plan

    run.answer(plan_record(planned), lambda paper: render_plan(paper, planned))


def _answer(run: Run, setting: str, made: Embedded) -> None:
    from nacre.cli.records.embed import made_record
    from nacre.cli.render.embed import render_made

    run.exit_code = 1 if made.left and made.note else 0
    run.answer(made_record(setting, made), lambda paper: render_made(paper, setting, made))


def _forget(run: Run) -> None:
    from nacre.cli.render.words import size
    from nacre.indexing import model_switch

    freed = model_switch.forget_old(run.home)
    run.answer(
        {"dropped_bytes": freed},
        lambda paper: paper.line(f"Dropped {size(freed)} of vectors." if freed else "No other vectors were kept."),
    )
