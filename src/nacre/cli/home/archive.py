"""``nacre archive``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from nacre.archive import keep, operations
from nacre.archive import prune as pruning
from nacre.cli import progress
from nacre.cli.command import Group
from nacre.cli.formats import Record, count, day, size, stamp
from nacre.cli.home.problems import problem_records, render_problems
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import option
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.archive.operations import ArchivedTool, ArchiveStatus
    from nacre.storage.archive import Archived
    from nacre.values.reports import Problem


_SHOWN = 10


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
    found: ArchiveStatus = perform(run, "archive-status")
    run.answer(_status_record(found), lambda paper: _render_status(paper, found))


@archive.command("verify", examples=["nacre archive verify", "nacre archive verify --repair"])
@click.option("--repair", is_flag=True, help="Set damaged packs aside and archive again what the tools still have.")
@click.pass_obj
def verify(run: Run, repair: bool) -> None:
    """Read everything in the archive and compare every checksum.

    Exits with 1 when something is damaged, or with --repair could not be archived again: the next ingest tries that.
    """
    mended = 0
    left: Sequence[Problem] = ()
    with progress.shown(run) as notify:
        files, problems = operations.verify(run.home, notify)
        if repair:
            mended = operations.mend(run.home) if problems else 0
            left = keep.archive(run.home, notify).problems  # also of what was set aside by a repair that was cut short
    run.exit_code = 1 if len(problems) > mended or left else 0

    def render(paper: Paper) -> None:
        if not problems:
            paper.line(bold("Sound"), f": {files:,} transcripts, every checksum is right.")
        render_problems(paper, problems, rest=f"{files - len(problems):,} of {files:,} transcripts are sound")
        if mended:
            rest = "" if left else "; what the tools still have is archived again"
            paper.line(f"{mended:,} were set aside{rest}.")
        render_problems(paper, left, rest="everything else that the tools still have is archived again")

    record = {"files": files, "problems": problem_records(problems), "repaired": mended}
    run.answer({**record, "not_archived": problem_records(left)}, render)


@archive.command(
    "prune",
    examples=["nacre archive prune --dry-run", "nacre archive prune --keep-days 365 --yes", "nacre archive prune"],
)
@option(
    "archive-prune", "keep_days", type=click.IntRange(1), default=None, show_default=False,
    help="Keep what changed within this many days [default: archive.keep_days].",
)  # fmt: skip
@option(
    "archive-prune", "budget_mb", type=click.IntRange(1), default=None, show_default=False,
    help="Size that may be left, in megabytes [default: archive.budget_mb].",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what would go, and delete nothing.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def prune(run: Run, keep_days: int | None, budget_mb: int | None, dry_run: bool, yes: bool) -> None:
    """Delete from the archive what changed longest ago.

    Sessions, turns and memories stay; what goes can then be read again only where its tool still has it. With
    archive.keep_days or archive.budget_mb set, every ingest does this by itself.
    """
    given = keep_days or budget_mb
    settings = run.settings
    days = keep_days or (0 if given else settings.whole("archive.keep_days"))
    budget = budget_mb or (0 if given else settings.whole("archive.budget_mb"))
    if not days and not budget:
        raise click.UsageError("nothing says what may go: --keep-days or --budget-mb", click.get_current_context())
    chosen = pruning.choose(run.home, days, budget)
    size = sum(state.size for state in chosen)
    if chosen and not dry_run:
        refusal = "what is deleted from the archive may be nowhere else: add --yes"
        run.confirm(f"Delete {count(len(chosen), 'transcript')} from the archive?", yes=yes, refusal=refusal)
        run.home.actor.require_owner("nacre archive prune")
        pruning.prune(run.home, chosen)
    record = {
        "dry_run": dry_run, "pruned": [{"path": one.path, "tool": one.tool, "bytes": one.size} for one in chosen],
        "bytes": size,
    }  # fmt: skip
    run.answer(record, lambda paper: _render_pruned(paper, chosen, size, dry_run=dry_run))


def _status_record(status: ArchiveStatus) -> Record:
    """What the archive holds."""
    return {
        "enabled": status.enabled,
        "folder": str(status.folder),
        "files": sum(tool.files for tool in status.tools),
        "raw_bytes": sum(tool.raw for tool in status.tools),
        "bytes": sum(tool.stored for tool in status.tools),
        "tools": [
            {
                "tool": tool.tool, "files": tool.files, "gone": tool.gone, "raw_bytes": tool.raw, "bytes": tool.stored,
                "first": stamp(tool.first), "last": stamp(tool.last),
            }
            for tool in status.tools
        ],
        "waiting": status.waiting,
        "withheld": status.withheld,
        "leaving": [
            {
                "tool": one.retention.tool, "setting": one.retention.setting, "keeps_days": one.retention.days,
                "keeps_files": one.retention.files, "files": one.files,
                "days": None if one.days is None else round(one.days, 1), "archived": one.archived,
            }
            for one in status.leaving
        ],
    }  # fmt: skip


def _render_status(paper: Paper, status: ArchiveStatus) -> None:
    """What is in it, tool by tool; what is not; what the tools are about to delete."""
    files, raw, stored = (
        sum(tool.files for tool in status.tools),
        sum(tool.raw for tool in status.tools),
        sum(tool.stored for tool in status.tools),
    )
    if not status.enabled:
        paper.line("Transcripts are not archived: nacre config set archive.enabled true")
    if files:
        share = f" ({stored / raw:.0%})" if raw else ""
        paper.line(
            bold(count(files, "transcript")), f", {size(raw)} in {size(stored)}{share}", dim(f" {status.folder}")
        )
        paper.facts([(tool.tool, _told(tool)) for tool in status.tools], indent=2)
    elif status.enabled:
        paper.line("Nothing is archived yet: nacre ingest does it.")
    if status.waiting:
        paper.line(f"{count(status.waiting, 'transcript')} wait for the next ingest.")
    if status.withheld:
        paper.line(dim(f"Of {status.withheld:,}, in which something was forgotten or excluded, only the rest is kept."))
    for one in status.leaving:
        paper.line(f"{one.in_words()}.")
        paper.line(dim(one.retention.setting), indent=2)


def _told(tool: ArchivedTool) -> str:
    gone = f", {tool.gone:,} no longer at the tool" if tool.gone else ""
    return f"{count(tool.files, 'transcript')}{gone}, {size(tool.stored)}, {day(tool.first)} to {day(tool.last)}"


def _render_pruned(paper: Paper, chosen: Sequence[Archived], freed: int, *, dry_run: bool) -> None:
    """What went, or would."""
    if not chosen:
        paper.line("Nothing to prune.")
        return
    verb = "Would delete" if dry_run else "Deleted"
    paper.line(bold(f"{verb} {count(len(chosen), 'transcript')}"), f" from the archive, {size(freed)}")
    for state in chosen[:_SHOWN]:
        paper.line(dim(state.path), indent=2)
    if len(chosen) > _SHOWN:
        paper.line(dim(f"and {len(chosen) - _SHOWN:,} more"), indent=2)
