"""What ``nacre init`` does at its end: it reads the sessions that are there, and forgets examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre import settings
from nacre.cli import progress
from nacre.cli.home.ingest_report import render_ingest
from nacre.cli.home.problems import render_problems
from nacre.cli.home.quickstart import finish_vectors, is_short_of_vectors, render_first_look, render_reach
from nacre.cli.paper import Paper
from nacre.cli.run import Run
from nacre.ingestion import ingest, requests
from nacre.setup import examples, first_ingest, quickstart, reach

if TYPE_CHECKING:
    from nacre.setup.first_ingest import FirstReading
    from nacre.setup.quickstart import QuickstartResult


def read_first(run: Run, found: FirstReading, wanted: str) -> bool:
    """Read what is there: ``all``, what the last ``week`` brought, or nothing of it (``later``).

    Returns whether vectors are still to be made.
    """
    if wanted != "all":  # the daemon follows what is new, and leaves to the owner what was put off
        settings.write_setting(
            run.settings.config, "watch.changed_since", _since(run, wanted).isoformat(timespec="milliseconds")
        )
    if wanted == "later":
        run.tell("New sessions are read as they happen; nacre ingest reads the others whenever you like.")
        return False
    click.echo(err=True)
    return _read(run, found.recent if wanted == "week" else ())


def _since(run: Run, said: str) -> datetime:
    return run.home.clock() - (first_ingest.RECENT if said == "week" else timedelta())


def _read(run: Run, paths: Sequence[Path]) -> bool:
    is_short = False
    with progress.shown(run) as notify:
        if paths:
            report = ingest.ingest(run.home, requests.IngestOptions(paths=tuple(paths), remember_paths=False), notify)
            run.answer({}, lambda paper: render_ingest(paper, report, searched=False))
        else:
            result = quickstart.run_quickstart(run.home, notify)
            run.answer({}, lambda paper: _render(paper, result))
            is_short = is_short_of_vectors(result)
    run.flush()
    return is_short


def _render(paper: Paper, result: QuickstartResult) -> None:
    render_first_look(paper, result)
    render_problems(paper, result.report.problems)


def show_reach(run: Run) -> None:
    """Where anything was read, tell what is in reach, by the settings as they are now."""
    found = reach.reach(replace(run.home, settings=settings.load_settings()))
    if found.sessions:
        click.echo(err=True)
        run.answer({}, lambda paper: render_reach(paper, found))


def make_rest(run: Run) -> None:
    """Make the vectors that the first reading had no time for, under what was shown."""
    run.flush()
    finish_vectors(run)


def forget_examples(run: Run) -> None:
    """Take out the example sessions of a first look, before agents are told them."""
    examples.forget(run.home, examples.plan_to_forget(run.home))
    run.tell("The example sessions are gone: nacre recall answers from your own ones now.")
