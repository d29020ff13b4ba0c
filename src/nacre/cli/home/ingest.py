"""``nacre ingest``."""

from __future__ import annotations

from pathlib import Path

import click

from nacre.archive.retention import leaving
from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.home.estimate import estimate_record, render_estimate
from nacre.cli.home.ingest_report import ingest_record, plan_record, render_ingest, render_plan
from nacre.cli.options import TRACE_PROMPTS
from nacre.cli.run import Run
from nacre.ingestion import ingest as ingesting
from nacre.ingestion import plan as planning
from nacre.ingestion.requests import IngestOptions


@command(
    "ingest",
    examples=[
        "nacre ingest",
        "nacre ingest ~/exports/meetings session.jsonl",
        "nacre ingest --no-vectors        # the fast half first; the next ingest makes the vectors",
    ],
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--no-vectors", is_flag=True, help="Leave the vectors to the next ingest.")
@click.option("--no-extract", is_flag=True, help="Make sessions searchable, write no memories.")
@click.option("--force", is_flag=True, help="Read files again that did not change.")
@TRACE_PROMPTS
@click.option("--dry-run", is_flag=True, help="Say what would be read, and read nothing.")
@click.option("--estimate", is_flag=True, help="Say what learning with a model would cost, and store nothing.")
@click.pass_obj
def ingest(
    run: Run, paths: tuple[Path, ...], no_vectors: bool, no_extract: bool, force: bool, dry_run: bool, estimate: bool
) -> None:  # fmt: skip
    """Read transcripts and learn from them.

    Without PATHS, everything the agents on this machine wrote; with PATHS, those files and folders.
    What cannot be read is listed at the end, and makes the exit code 1; everything else is read. An empty database is
    listed, too, and is no failure: it may have no sessions yet.
    """
    options = IngestOptions(paths=paths, extract=not no_extract, vectors=not no_vectors, force=force)
    if dry_run:
        plan = planning.plan(run.home, options)
        run.exit_code = 1 if plan.problems else 0
        run.answer(plan_record(plan), lambda paper: render_plan(paper, plan))
        return
    if estimate:
        found = planning.estimate(run.home, options)
        run.exit_code = 1 if found.problems else 0
        run.answer(estimate_record(found), lambda paper: render_estimate(paper, found))
        return
    with progress.shown(run) as notify:
        report = ingesting.ingest(run.home, options, notify)
    if report.problems:
        run.exit_code = 1
    run.warnings += [report.foreseen] if report.foreseen else []
    run.warnings += [f"{one.path} {one.message}; the next ingest tries again" for one in report.archived.problems]
    run.warnings += [f"{one.in_words()} (nacre archive status)" for one in leaving(run.home) if not one.is_kept]
    run.answer(ingest_record(report), lambda paper: render_ingest(paper, report, searched=not paths))
