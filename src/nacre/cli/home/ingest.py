"""``nacre ingest``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.archive import retention
from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.home.estimate import estimate_record, render_estimate
from nacre.cli.home.ingest_report import ingest_record, plan_record, render_ingest, render_plan
from nacre.cli.operations import perform
from nacre.cli.options import refused
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.ingestion import ingest as ingestion
from nacre.ingestion import requests

if TYPE_CHECKING:
    from nacre.extraction.estimate import Estimate
    from nacre.values.reports import IngestPlan, IngestReport


_DIGEST = "a writer reads a digest of each session"
_ASKED_AGAIN = "a model that fails is asked again, five times in all; what is left waits for the next ingest"
_ELSEWHERE = {
    "--skip-ingested": "what was read is never read twice; --force reads it again",
    "--bulk": "every ingest is in bulk, and a crash loses nothing",
    "--whole-file": f"{_DIGEST}; nacre extract --whole shows what a whole one would teach",
    "--chunk": f"{_DIGEST}; nacre extract --chunk shows what parts would teach",
    "--user-only": f"{_DIGEST}: your turns, and the message before each; nacre extract --user-only reads yours alone",
    "--no-retry": _ASKED_AGAIN,
    "--max-retries": _ASKED_AGAIN,
    "--concurrency": "nacre config set ingest.workers sets how many processes read",
    "--workers": "nacre config set ingest.workers sets how many processes read",
}
"""Options of agenr that have no sense here, and what to do instead."""


@command(
    "ingest",
    examples=[
        "nacre ingest",
        "nacre ingest ~/exports/meetings session.jsonl",
        "nacre ingest --older --estimate",
    ],
)
@argument("ingest", "paths")
@option("ingest", "globs", metavar="PATTERN")
@option("ingest", "vectors", help="Leave the vectors to the next ingest.")
@option("ingest", "extract", help="Make sessions searchable, write no memories.")
@option("ingest", "force", help="Read files again that did not change.")
@option("ingest", "older", help="Also have the writer read sessions from before it was set; asks first.")
@click.option("--yes", is_flag=True, help="With --older: do not ask.")
@refused(_ELSEWHERE)
@click.option("--dry-run", is_flag=True, help="Say what would be read, and read nothing.")
@click.option("--estimate", is_flag=True, help="Say what learning with a model would cost, and store nothing.")
@click.pass_obj
def ingest(  # noqa: PLR0913 - one parameter an option
    run: Run, paths: tuple[Path, ...], globs: tuple[str, ...], vectors: bool, extract: bool, force: bool,
    older: bool, yes: bool, dry_run: bool, estimate: bool,
) -> None:  # fmt: skip
    """Read transcripts and learn from them.

    Without PATHS, everything the agents on this machine wrote; with PATHS, those files and folders.
    An agent may name none: what a file says that somebody typed would be your word.
    What cannot be read is listed at the end, and makes the exit code 1; everything else is read. An empty database is
    listed, too, and is no failure: it may have no sessions yet.

    With --older, the writer also reads sessions that ended before it was set, or that waited for it in vain: the
    latest first, two dozen at a time, as many as it may take today. The next --older goes on from there.
    """
    wanted: dict[str, Any] = {
        "paths": paths, "extract": extract, "vectors": vectors, "force": force, "globs": globs, "older": older,
    }  # fmt: skip
    if yes and not older:
        raise click.UsageError("--yes is for --older, which asks", click.get_current_context())
    if dry_run:
        plan: IngestPlan = perform(run, "ingest-plan", **wanted)
        run.exit_code = 1 if plan.problems else 0
        run.answer(plan_record(plan), lambda paper: render_plan(paper, plan))
        return
    if estimate:
        found: Estimate = perform(run, "ingest-estimate", **wanted)
        run.exit_code = 1 if found.problems else 0
        run.answer(estimate_record(found), lambda paper: render_estimate(paper, found))
        return
    if older:
        _agree(run, wanted, yes=yes)
    with progress.shown(run) as notify:
        report: IngestReport = perform(run, "ingest", notify, **wanted)
    if report.problems:
        run.exit_code = 1
    run.warnings += [report.foreseen] if report.foreseen else []
    run.warnings += [f"{one.path} {one.message}; the next ingest tries again" for one in report.archived.problems]
    run.warnings += [
        f"{one.in_words()} (nacre archive status)" for one in retention.leaving(run.home) if not one.is_kept
    ]
    run.answer(ingest_record(report), lambda paper: render_ingest(paper, report, searched=not paths))


def _agree(run: Run, wanted: Mapping[str, Any], *, yes: bool) -> None:
    """Show what older sessions would take, and have the owner agree to it. Raises UsageError, InvalidInput, Abort."""
    ingestion.check_older(run.home, requests.IngestOptions(extract=wanted["extract"], older=True))
    found: Estimate = perform(run, "ingest-estimate", **wanted)
    paper = run.paper(stderr=True)
    render_estimate(paper, found)
    click.echo(paper.text(), nl=False, err=True)
    if not (found.waiting and found.tasks):
        return
    refusal = "not interactive: pass --yes; nacre ingest --older --estimate tells what it would take"
    run.confirm("Let the writer read them, within what it may take a day?", yes=yes, refusal=refusal)
