"""What ``nacre init`` offers at its end: to read the sessions that are there, and to forget examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.formats import count, size
from nacre.cli.home.estimate import render_estimate
from nacre.cli.home.ingest_report import render_ingest
from nacre.cli.home.problems import render_problems
from nacre.cli.home.quickstart import render_first_look, render_reach
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.run import Run
from nacre.platform.lazy import Module

if TYPE_CHECKING:
    from nacre import settings
    from nacre.ingestion import ingest, requests
    from nacre.setup import examples, first_ingest, quickstart, reach
    from nacre.setup.quickstart import QuickstartResult
else:
    examples = Module("nacre.setup.examples")
    first_ingest = Module("nacre.setup.first_ingest")
    ingest = Module("nacre.ingestion.ingest")
    quickstart = Module("nacre.setup.quickstart")
    reach = Module("nacre.setup.reach")
    requests = Module("nacre.ingestion.requests")
    settings = Module("nacre.settings")


def offer_first_reading(run: Run) -> None:
    """Where nothing was read yet: tell what there is to read and what that takes, and do it if it is wanted."""
    if examples.has_others(run.home):
        return
    found = first_ingest.look(run.home)
    if not found.files:
        return
    paper = run.paper(stderr=True)
    paper.line(bold("Your agents' sessions"))
    paper.line(f"{count(found.files, 'transcript')} of {size(found.bytes)} can be read; they stay where they are.")
    if found.estimate:
        render_estimate(paper, found.estimate)
    else:
        paper.line(dim("It costs nothing, for no model is set: what you said plainly is kept, the rest waits."))
    click.echo(f"\n{paper.text()}", nl=False, err=True)
    recent = f"week ({count(len(found.recent), 'transcript')} of the last 7 days), " if found.recent else ""
    said = click.prompt(
        f"Read them now? all, {recent}later", default="all", err=True, show_choices=False,
        type=click.Choice(["all", "week", "later"] if found.recent else ["all", "later"]),
    )  # fmt: skip
    if said != "all":  # the daemon follows what is new, and leaves to the owner what was put off
        settings.write_setting(
            run.settings.config, "watch.changed_since", _since(run, said).isoformat(timespec="milliseconds")
        )
    if said == "later":
        click.echo("New sessions are read as they happen; nacre ingest reads the others whenever you like.", err=True)
    else:
        _read(run, found.recent if said == "week" else ())


def _since(run: Run, said: str) -> datetime:
    return run.home.clock() - (first_ingest.RECENT if said == "week" else timedelta())


def _read(run: Run, paths: Sequence[Path]) -> None:
    with progress.shown(run) as notify:
        if paths:
            report = ingest.ingest(run.home, requests.IngestOptions(paths=tuple(paths), remember_paths=False), notify)
            run.answer({}, lambda paper: render_ingest(paper, report, searched=False))
        else:
            result = quickstart.run_quickstart(run.home, notify)
            run.answer({}, lambda paper: _render(paper, result))
    run.flush()


def _render(paper: Paper, result: QuickstartResult) -> None:
    render_first_look(paper, result)
    render_problems(paper, result.report.problems)


def show_reach(run: Run) -> None:
    """Where anything was read, tell what is in reach, by the settings as they are now."""
    found = reach.reach(replace(run.home, settings=settings.load_settings()))
    if found.sessions:
        click.echo(err=True)
        run.answer({}, lambda paper: render_reach(paper, found))


def offer_to_forget_examples(run: Run) -> None:
    """Where a first look brought example sessions along: take them out, if wanted, before agents are told them."""
    if not examples.present(run.home):
        return
    click.echo("\nYour memory holds the example sessions of nacre quickstart, and what they taught.", err=True)
    if click.confirm("Take them out?", default=True, err=True):
        examples.forget(run.home, examples.plan_to_forget(run.home))
        click.echo("Gone. nacre recall answers from your own sessions now.", err=True)
    else:
        click.echo("nacre forget --examples takes them out whenever you like.", err=True)
