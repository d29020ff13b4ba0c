"""``nacre ingest``, with its report and cost estimate."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from nacre.base.json import to_plain
from nacre.cli.command import Paper, Run, bold, command, joined
from nacre.cli.operations import perform
from nacre.cli.options import argument, count, duration, flag, option, size
from nacre.cli.status import PROBLEMS_SHOWN, render_problems
from nacre.learn import ingest as ingestion

if TYPE_CHECKING:
    from nacre.learn.estimate import Estimate
    from nacre.values.reports import IngestPlan, IngestReport, ModelExtraction

_MAX_PROBLEMS = 20


def render_estimate(paper: Paper, estimate: Estimate) -> None:
    """Print the pending sessions, the maximum cost of learning from them, and today's limit."""
    what = f"{count(estimate.waiting, 'session')} with content to learn from"
    trivial = f", {estimate.trivial:,} trivial (not sent to a model)" if estimate.trivial else ""
    paper.line(bold(what), trivial)
    if not estimate.waiting:
        return
    if estimate.model == "none":
        paper.line(
            "No model is set, so rules read them for free. Set a model with nacre writer set."
        )
        return
    paper.line(f"At most {estimate.demand}, with {estimate.model}.", indent=2)
    if not estimate.is_background_on:
        note = "Rules read them until models.background is on."
    elif estimate.cost is None and estimate.tokens_left is None:
        note = "The price is unknown. Rules read them until models.capabilities has the price."
    elif estimate.now >= estimate.waiting:
        note = f"Left today: {estimate.limit}, which is enough."
    else:
        note = (
            f"Left today: {estimate.limit}. A model reads at least {estimate.now:,} of them, "
            f"and the others {estimate.continuation}."
        )
    paper.line(note)
    for problem in estimate.problems[:_MAX_PROBLEMS]:
        paper.note(f"{problem.path}: {problem.message}", "yellow", indent=2)


# ----------------------------------------------------------------------------
# The report and plan of an ingest.


def render_ingest(paper: Paper, report: IngestReport, *, searched: bool) -> None:
    """Print the results of an ingest, and any problems."""
    if report.files:
        took = f", {size(report.bytes_read)} in {duration(report.seconds)}"
        paper.line(bold(f"Read {count(report.files, 'file')}"), took)
        _render_counts(paper, report)
    elif not report.problems:
        _render_nothing_new(paper, report, searched=searched)
    _render_oddities(paper, report)
    if report.extraction:
        _render_model_problem(paper, report.extraction)
    render_problems(
        paper,
        report.problems,
        outcome="everything else was read" if report.files else "nothing was read",
    )


def render_plan(paper: Paper, plan: IngestPlan) -> None:
    """Print the plan of an ingest."""
    if plan.files:
        paper.line(bold(f"Would read {count(plan.files, 'file')}"), f", {size(plan.bytes)}")
    else:
        paper.line("Nothing new to read.")
    paper.facts(
        (
            (
                "tools",
                ", ".join(f"{tool} {number:,}" for tool, number in sorted(plan.tools.items())),
            ),
            ("unchanged", plan.skipped - plan.unrecognised),
            ("not transcripts", plan.unrecognised),
            ("excluded", sum(plan.excluded.values())),
        ),
        indent=2,
    )
    render_problems(paper, plan.problems, outcome="everything else can be read")


def _render_counts(paper: Paper, report: IngestReport) -> None:
    paper.facts(
        (
            ("sessions", f"{report.sessions:,}"),
            ("turns", f"{report.turns:,}"),
            *_learning_facts(report),
            (
                "by a model",
                ", ".join(
                    f"{number:,} {action.lower()}" for action, number in report.decided.items()
                ),
            ),
            (
                "tools",
                ", ".join(f"{tool} {number:,}" for tool, number in sorted(report.tools.items())),
            ),
            ("skipped", _skipped(report)),
            (
                "left out",
                (
                    f"forgotten content in {count(report.left_out, 'file')}"
                    if report.left_out
                    else ""
                ),
            ),
            ("archived", _archived(report)),
            ("vectors", _vectors_ingest_report(report)),
        ),
        indent=2,
    )


def _learning_facts(report: IngestReport) -> list[tuple[str, str]]:
    has_news = bool(report.files or report.memories or report.ended)
    return [
        ("memories", _describe_memories(report) if has_news else ""),
        ("doubts", f"{report.doubted:,} may be outdated (nacre review)" if report.doubted else ""),
        ("candidates", f"{report.candidates:,} (nacre review)" if report.candidates else ""),
        ("model", _by_model(report.extraction)),
    ]


def _by_model(report: ModelExtraction | None) -> str:
    if report and report.elsewhere:
        return f"{count(report.elsewhere, 'session')} being read in another process"
    if report is None or not report.calls:
        return ""
    dropped = sum(report.dropped.values())
    summary = (
        f"{report.model}: {count(report.sessions, 'session')}, {count(report.calls, 'call')}, "
    )
    summary += f"{report.tokens.sent:,} + {report.tokens.output:,} tokens"
    summary += f", {count(report.held, 'proposal')} held back" if report.held else ""
    return summary + (f", {count(dropped, 'proposal')} discarded" if dropped else "")


def _render_model_problem(paper: Paper, report: ModelExtraction) -> None:
    if report.problem:
        parts = f" for {report.by_rules} of {count(report.parts, 'part')}" if report.parts else ""
        is_read = report.parts and not report.by_rules
        outcome = "unverified proposals are pending" if is_read else "extraction used rules"
        paper.line(f"{report.problem}; {outcome}{'' if is_read else parts}")
        if report.hint:
            paper.note(f"hint: {report.hint}")


def _archived(report: IngestReport) -> str:
    archive = report.archived
    pruned = (
        f"; {count(archive.pruned, 'transcript')} pruned as configured" if archive.pruned else ""
    )
    return f"{size(archive.read)} as {size(archive.stored)}{pruned}" if archive.files else ""


def _render_nothing_new(paper: Paper, report: IngestReport, *, searched: bool) -> None:
    unchanged = report.skipped - report.unrecognised
    if unchanged or report.vectors_made or report.vectors_left:
        read = f"Nothing new: {count(unchanged, 'transcript')} read earlier."
        paper.line(read if unchanged else "No new transcripts.")
        paper.facts(
            [*_learning_facts(report), ("vectors", _vectors_ingest_report(report))], indent=2
        )
    elif report.unread:
        paper.line(bold("Nothing could be read."))
    elif searched:
        paper.line(bold("No transcripts were found on this machine."))
        paper.facts(
            (
                ("nacre ingest PATH", "reads the files and folders you name"),
                ("nacre quickstart", "shows what nacre does with example sessions"),
                ("nacre config set ingest.roots '[\"PATH\"]'", "also searches that folder"),
            ),
            indent=2,
        )
    else:
        paper.line("No transcripts were found in these paths.")


def _describe_memories(report: IngestReport) -> str:
    duplicates = f" ({report.duplicates:,} already known)" if report.duplicates else ""
    ended = f", {report.ended:,} ended" if report.ended else ""
    return f"{len(report.memories):,} new{duplicates}{ended}"


def _skipped(report: IngestReport) -> str:
    unchanged = report.skipped - report.unrecognised
    parts = [
        f"{unchanged:,} unchanged" if unchanged else "",
        f"{report.unrecognised:,} not transcripts" if report.unrecognised else "",
        *(f"{number:,} excluded by {why}" for why, number in sorted(report.excluded.items())),
    ]
    return joined(parts, ", ")


def _vectors_ingest_report(report: IngestReport) -> str:
    until = "" if report.vectors_note else " until the next nacre ingest"
    counts = (
        f"{report.vectors_made:,} texts" if report.vectors_made else "",
        f"{report.vectors_left:,} pending{until}" if report.vectors_left else "",
    )
    return joined((joined(counts, ", "), report.vectors_note), "; ")


def _render_oddities(paper: Paper, report: IngestReport) -> None:
    for hint in report.hints:
        paper.note(hint, indent=2)
    if report.corrupt:
        too_long = f" ({report.oversized:,} too long)" if report.oversized else ""
        note = (
            f"Skipped {count(report.corrupt, 'line')} that cannot be parsed{too_long}. All other "
            "lines were read. nacre admin doctor counts skipped lines by tool and version."
        )
        paper.note(note, indent=2)
    if report.unknown:
        kinds = ", ".join(
            f"{name} ({number:,})" for name, number in sorted(report.unknown.items())[:5]
        )
        paper.note(f"Unknown records, fields and roles: {kinds}.", indent=2)
    for line in report.unread:
        paper.note(line, indent=2)
    for path in report.empty[:PROBLEMS_SHOWN]:
        paper.note(f"{path} is empty: it has no sessions yet, or has lost them.", indent=2)


# ----------------------------------------------------------------------------
# ``nacre ingest``.


_BACKGROUND_NICENESS = 10
_BACKGROUND_VECTOR_SECONDS = 20.0
"""Time limit in seconds for creating vectors each time the daemon ingests."""


@command(
    "ingest",
    examples=[
        "nacre ingest",
        "nacre ingest ~/exports/meetings session.jsonl",
        "nacre ingest --older --estimate",
    ],
)
@argument("ingest", "paths")
@option("ingest", "vectors", help="Do not compute vectors until the next ingest.")
@option("ingest", "extract", help="Make sessions searchable without writing memories.")
@option("ingest", "force", help="Also read unchanged files again.")
@option(
    "ingest", "older", help="Also let the writer read sessions from before it was set; asks first."
)
@flag("--yes", "With --older: do not ask.")
@flag("--dry-run", "Only show what would be read.")
@flag("--estimate", "Only show what learning with a model would cost.")
@click.option(
    "--background", is_flag=True, hidden=True, help="Run in the background, for the daemon."
)
@option("ingest", "reads", "--no-read", hidden=True)
def ingest(
    run: Run, /, yes: bool, dry_run: bool, estimate: bool, background: bool, **request: Any
) -> None:
    """Read transcripts and learn from them.

    Without PATHS, it reads all transcripts of the agents on this machine. With PATHS, it reads these files and folders.
    Agents cannot pass PATHS, because a file's user turns would count as your own statements. Unreadable files are
    listed at the end, and the exit code is then 1. Empty databases are also listed, but they are not failures.

    With --older, the writer also reads sessions that it has not read yet, latest first. These can be sessions from
    before the writer was set. The writer reads 24 sessions at a time, within its daily limit. The next --older
    continues from there.
    """
    if background:
        _give_way()
        request |= {"puts_off": True, "vector_seconds": _BACKGROUND_VECTOR_SECONDS}
    if yes and not request["older"]:
        raise click.UsageError("--yes is only for --older")
    if dry_run:
        plan = perform(run, ingestion.plan, **request)
        run.exit_code = 1 if plan.problems else 0
        run.present(plan, render_plan)
        return
    if estimate:
        estimated = perform(run, ingestion.estimate, **request)
        run.exit_code = 1 if estimated.problems else 0
        run.answer({**to_plain(estimated), "now": estimated.now}, render_estimate, estimated)
        return
    if request["older"]:
        _agree(run, request, yes=yes)
    report = perform(run, ingestion.ingest, **request)
    if report.problems and not background:
        run.exit_code = 1
    run.warnings += [
        f"{item.path} {item.message}; the next ingest tries again"
        for item in report.archived.problems
    ]
    run.present(report, render_ingest, searched=not request["paths"])


def _give_way() -> None:
    if hasattr(os, "nice"):
        os.nice(_BACKGROUND_NICENESS)

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def _agree(run: Run, request: Mapping[str, Any], *, yes: bool) -> None:
    ingestion.check_older(run.home, ingestion.IngestOptions(extract=request["extract"], older=True))
    estimated = perform(run, ingestion.estimate, **request)
    run.show(render_estimate, estimated)
    if not estimated.waiting or estimated.model == "none":
        return
    refusal = "not interactive: pass --yes; nacre ingest --older --estimate shows the cost"
    run.confirm("Let the writer read them, within its daily limit?", yes=yes, refusal=refusal)
