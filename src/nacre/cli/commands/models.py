"""``nacre models``."""

from __future__ import annotations

import click

from nacre.cli import progress
from nacre.cli.command import TEXT, DefaultGroup
from nacre.cli.run import Run


@click.group(
    "models", cls=DefaultGroup,
    examples=["nacre models", "nacre models test", "nacre models test ollama:qwen3"],
)  # fmt: skip
@click.pass_context
def models(ctx: click.Context) -> None:
    """Tell which language models are set, and whether they answer."""
    if ctx.invoked_subcommand:
        return
    from nacre.cli.records.models import models_record
    from nacre.cli.render.models import render_models
    from nacre.setup import offers as offering

    run: Run = ctx.obj
    uses, offers = offering.uses(run.home), offering.offers(run.home)
    settings = run.settings
    run.answer(models_record(settings, uses, offers), lambda paper: render_models(paper, settings, uses, offers))


@models.command("test", examples=["nacre models test", "nacre models test anthropic:claude-haiku-5-5 --json"])
@click.argument("name", type=TEXT, default="", metavar="[PROVIDER:MODEL]")
@click.pass_obj
def test(run: Run, name: str) -> None:
    """Ask a model one short question, and tell its time, tokens and cost.

    Without a name it is the model of models.default. The question is sent to its provider. Where it does not answer
    now, it is asked again for models.timeout_seconds; Ctrl-C ends that at once.
    """
    from nacre.cli.records.models import trial_record
    from nacre.cli.render.models import render_trial
    from nacre.setup import offers as offering

    with progress.waiting(run, f"Asking {name or run.settings['models.default']}") as hear:
        trial = offering.try_model(run.home, name, hear)
    run.answer(trial_record(trial), lambda paper: render_trial(paper, trial))
