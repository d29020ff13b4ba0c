"""``nacre quickstart``."""

from __future__ import annotations

import click

from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.run import Run


@command("quickstart", examples=["nacre quickstart", "nacre quickstart --json"])
@click.pass_obj
def quickstart(run: Run) -> None:
    """Read what your agents wrote and show what it teaches.

    Where no agent left transcripts, six example sessions stand in. A second run doubles nothing.
    """
    from nacre.cli.records.reading import quickstart_record
    from nacre.cli.render.quickstart import render_quickstart
    from nacre.setup.quickstart import run_quickstart

    with progress.shown(run) as notify:
        result = run_quickstart(run.home, notify)
    vault = run.settings.vault
    run.answer(quickstart_record(result), lambda paper: render_quickstart(paper, result, vault))
