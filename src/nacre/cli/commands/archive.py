"""``nacre archive``."""

from __future__ import annotations

import click

from nacre.cli import progress
from nacre.cli.command import Group
from nacre.cli.paper import Paper, bold
from nacre.cli.run import Run


@click.group("archive", cls=Group, examples=["nacre archive status", "nacre archive verify", "nacre archive prune"])
def archive() -> None:
    """Look after the transcripts that nacre keeps.

    Every ingest archives what it read: without secrets, compressed. What a tool deletes stays here: nacre db rebuild
    reads it, and nacre sessions restore writes it again.
    """


@archive.command("status", examples=["nacre archive status", "nacre archive status --json"])
@click.pass_obj
def status(run: Run) -> None:
    """Tell what is in the archive, what it takes, and what the tools are about to delete."""
    from nacre.archive import operations
    from nacre.cli.records.archive import status_record
    from nacre.cli.render.archive import render_status

    found = operations.status(run.home)
    run.answer(status_record(found), lambda paper: render_status(paper, found))


@archive.command("verify", examples=["nacre archive verify", "nacre archive verify --repair"])
@click.option("--repair", is_flag=True, help="Set damaged packs aside and archive again what the tools still have.")
@click.pass_obj
def verify(run: Run, repair: bool) -> None:
    """Read everything in the archive and compare every checksum.

    Exits with 1 when something is damaged.
    """
    from nacre.archive import keep, operations
    from nacre.cli.records.archive import problem_records
    from nacre.cli.render.reports import render_problems

    mended = 0
    with progress.shown(run) as notify:
        files, problems = operations.verify(run.home, notify)
        if repair:
            mended = operations.mend(run.home) if problems else 0
            keep.archive(run.home, notify)  # also what was set aside before, if that was interrupted
    run.exit_code = 1 if len(problems) > mended else 0

    def render(paper: Paper) -> None:
        if not problems:
            paper.line(bold("Sound"), f": {files:,} transcripts, every checksum is right.")
            return
        render_problems(paper, problems, rest=f"{files - len(problems):,} of {files:,} transcripts are sound")
        if mended:
            paper.line(f"{mended:,} were set aside; what the tools still have is archived again.")

    run.answer({"files": files, "problems": problem_records(problems), "repaired": mended}, render)


@archive.command(
    "prune",
    examples=["nacre archive prune --dry-run", "nacre archive prune --keep-days 365 --yes", "nacre archive prune"],
)
@click.option("--keep-days", type=click.IntRange(1), help="Keep what changed since [default: archive.keep_days].")
@click.option("--budget-mb", type=click.IntRange(1), help="Size that may be left [default: archive.budget_mb].")
@click.option("--dry-run", is_flag=True, help="Say what would go, and delete nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def prune(run: Run, keep_days: int | None, budget_mb: int | None, dry_run: bool, yes: bool) -> None:
    """Delete from the archive what changed longest ago.

    Sessions, turns and memories stay; what goes can then be read again only where its tool still has it. With
    archive.keep_days or archive.budget_mb set, every ingest does this by itself.
    """
    from nacre.archive import prune as pruning
    from nacre.cli.render.archive import render_pruned
    from nacre.cli.render.words import count

    given = keep_days or budget_mb
    settings = run.settings
    days = keep_days or (0 if given else settings["archive.keep_days"])
    budget = budget_mb or (0 if given else settings["archive.budget_mb"])
    if not days and not budget:
        raise click.UsageError("nothing says what may go: --keep-days or --budget-mb", click.get_current_context())
    chosen = pruning.choose(run.home, days, budget)
    size = sum(state.size for state in chosen)
    if chosen and not dry_run:
        _ask(run, f"Delete {count(len(chosen), 'transcript')} from the archive?", yes=yes)
        pruning.prune(run.home, chosen)
    record = {
        "dry_run": dry_run, "pruned": [{"path": one.path, "tool": one.tool, "bytes": one.size} for one in chosen],
        "bytes": size,
    }  # fmt: skip
    run.answer(record, lambda paper: render_pruned(paper, chosen, size, dry_run=dry_run))


def _ask(run: Run, question: str, *, yes: bool) -> None:
    if yes:
        return
    if not run.is_interactive:
        raise click.UsageError("what is deleted from the archive may be nowhere else: add --yes")
    run.confirm(question)
