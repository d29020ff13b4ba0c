"""What learning with models would cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.cli import output
from nacre.cli.command import Cell, Paper, Run, Span, bold, command, dim
from nacre.cli.operations import perform
from nacre.cli.options import (
    Record,
    amount,
    argument,
    count,
    option,
    refused,
    seconds,
    size,
    tokens_record,
)
from nacre.cli.status import PROBLEMS_SHOWN, problem_records, render_problems
from nacre.home import retention
from nacre.learn import ingest as ingestion
from nacre.values import models

if TYPE_CHECKING:
    from nacre.learn.estimate import Estimate, TaskEstimate, VectorEstimate
    from nacre.values.reports import ArchiveReport, IngestPlan, IngestReport, ModelExtraction

_PROBLEMS = 20


def estimate_record(estimate: Estimate) -> Record:
    """What learning with models would cost."""
    vectors = estimate.vectors
    return {
        "estimate": True,
        "sessions": estimate.waiting,
        "trivial": estimate.trivial,
        "tasks": [
            {
                "task": one.task.value,
                "model": one.model,
                "calls": one.calls,
                "tokens": tokens_record(one.tokens),
                "cost_usd": None if one.cost is None else one.cost / models.DOLLAR,
                "seconds": round(one.seconds, 1),
                "measured": one.is_measured,
            }
            for one in estimate.tasks
        ],
        "cost_usd": None if estimate.cost is None else estimate.cost / models.DOLLAR,
        "seconds": round(estimate.seconds, 1),
        "background": estimate.is_background_on,
        "left_usd": estimate.left / models.DOLLAR,
        "tokens_left": estimate.tokens_left,
        "calls_left": estimate.calls_left,
        "most_tokens": estimate.most,
        "now": estimate.now,
        "vectors": {
            "model": vectors.model,
            "tokens": vectors.tokens,
            "held": vectors.held,
            "left_usd": vectors.left / models.DOLLAR,
            "cost_usd": None if vectors.cost is None else vectors.cost / models.DOLLAR,
        }
        if vectors
        else None,
        "problems": problem_records(estimate.problems),
    }


def render_estimate(paper: Paper, estimate: Estimate) -> None:
    """What waits, what each task would take, and what of it today's budget holds."""
    _learning(paper, estimate)
    if estimate.vectors:
        _vectors(paper, estimate.vectors)


def _vectors(paper: Paper, vectors: VectorEstimate) -> None:
    paper.blank()
    if not vectors.tokens:
        paper.line(bold("Vectors"), f" of {vectors.model}: none is missing.")
        return
    price = "price unknown" if vectors.cost is None else models.dollars(vectors.cost)
    paper.line(bold("Vectors"), f" of {vectors.model}: about {vectors.tokens:,} tokens, {price}.")
    if vectors.held:
        told = f"They wait: {vectors.held}. nacre embed resume makes them."
    elif vectors.cost is not None and vectors.cost > vectors.left:
        left = models.dollars(vectors.left)
        told = f"{left} of today's budget is left: the rest waits, or nacre embed resume makes it."
    else:
        told = f"{models.dollars(vectors.left)} of today's budget is left, which holds it."
    paper.line(told)


def _learning(paper: Paper, estimate: Estimate) -> None:
    what = f"{count(estimate.waiting, 'session')} of substance to learn from"
    rest = (
        f", {estimate.trivial:,} without (no model is asked about these)"
        if estimate.trivial
        else ""
    )
    paper.line(bold(what), rest)
    if not estimate.waiting:
        return
    if not estimate.tasks:
        paper.line(
            "No model is set: rules learn from them, which costs nothing. nacre setup sets one."
        )
        return
    _estimated(paper, estimate)
    paper.line(
        f"At most {amount(estimate.most)} tokens, if each session is shown by itself.", indent=2
    )
    if estimate.tokens_left is not None and estimate.is_background_on:
        told = f"{estimate.left_of_subscription} are left of what the writer may take today"
        told += (
            ", which holds it."
            if estimate.now >= estimate.waiting
            else f": it reads about {estimate.now:,} of them now, and the others {estimate.rest}."
        )
    elif estimate.cost is None:
        told = "Nobody knows what it costs: rules learn from them until models.capabilities says the price."
    elif not estimate.is_background_on:
        told = "Rules learn from them until models.background is on."
    elif estimate.now < estimate.waiting:
        told = (
            f"{models.dollars(estimate.left)} of today's budget is left: a model learns from about "
            f"{estimate.now:,} of them, and from the others {estimate.rest}."
        )
    else:
        told = f"{models.dollars(estimate.left)} of today's budget is left, which holds it."
    paper.line(told)
    for problem in estimate.problems[:_PROBLEMS]:
        paper.line(Span(f"{problem.path}: {problem.message}", "yellow"), indent=2)


def _estimated(paper: Paper, estimate: Estimate) -> None:
    rows: list[Sequence[Cell]] = [
        (
            one.task.value,
            f"about {count(one.calls, 'call')}",
            f"{amount(one.tokens.input)} read",
            f"{amount(one.tokens.output)} written",
            _price(one),
            seconds(one.seconds),
            one.model,
            dim("by earlier calls" if one.is_measured else "by rule of thumb"),
        )
        for one in estimate.tasks
    ]
    if estimate.cost and len(estimate.tasks) > 1:
        rows.append(
            (
                "in all",
                "",
                "",
                "",
                bold(models.dollars(estimate.cost)),
                seconds(estimate.seconds),
                "",
                "",
            )
        )
    paper.table(rows, indent=2, drop=(7, 6))


def _price(one: TaskEstimate) -> str:
    if one.is_by_subscription:
        return "by subscription"
    return "price unknown" if one.cost is None else models.dollars(one.cost)


# ----------------------------------------------------------------------------
# What an ingest reads and learns, or would, as JSON and as lines.


def ingest_record(report: IngestReport) -> Record:
    """What an ingest read and learned."""
    return {
        "files": report.files,
        "sessions": report.sessions,
        "turns": report.turns,
        "memories": len(report.memories),
        "memory_ids": list(report.memories),
        "candidates": report.candidates,
        "changed": report.changed,
        "ended": report.ended,
        "doubted": report.doubted,
        "skipped": report.skipped,
        "unrecognised": report.unrecognised,
        "left_out": report.left_out,
        "duplicates": report.duplicates,
        "decided": report.decided,
        "corrupt": report.corrupt,
        "excluded": report.excluded,
        "unknown": report.unknown,
        "empty": list(report.empty),
        "problems": problem_records(report.problems),
        "tools": report.tools,
        "bytes": report.bytes_read,
        "read_seconds": round(report.read_seconds, 3),
        "seconds": round(report.seconds, 3),
        "archived": _archived_record(report.archived),
        "vectors": {
            "made": report.vectors_made,
            "left": report.vectors_left,
            "note": report.vectors_note,
        },
        **({"oversized": report.oversized} if report.oversized else {}),
        **({"extraction": _by_model_record(report.extraction)} if report.extraction else {}),
    }


def _by_model_record(report: ModelExtraction) -> Record:
    """What a language model did for extraction."""
    return {
        "model": report.model,
        "sessions": report.sessions,
        "trivial": report.trivial,
        "parts": report.parts,
        "by_rules": report.by_rules,
        "calls": report.calls,
        "tokens": tokens_record(report.tokens),
        "found": report.found,
        "held": report.held,
        "repeated": report.repeated,
        "dropped": report.dropped,
        "problem": report.problem,
        "hint": report.hint,
        "elsewhere": report.elsewhere,
    }


def plan_record(plan: IngestPlan) -> Record:
    """What an ingest would read."""
    return {
        "dry_run": True,
        "files": plan.files,
        "bytes": plan.bytes,
        "tools": plan.tools,
        "skipped": plan.skipped,
        "unrecognised": plan.unrecognised,
        "excluded": plan.excluded,
        "problems": problem_records(plan.problems),
    }


def _archived_record(report: ArchiveReport) -> Record:
    """What an ingest archived."""
    return {
        "files": report.files,
        "bytes": report.read,
        "stored": report.stored,
        "pruned": report.pruned,
        "seconds": round(report.seconds, 3),
        "problems": problem_records(report.problems),
    }


def render_ingest(paper: Paper, report: IngestReport, *, searched: bool) -> None:
    """What was read and learned, what is still to do, what went wrong."""
    if not report.files and not report.problems:
        _render_nothing_new(paper, report, searched=searched)
        _render_oddities(paper, report)
        if report.extraction:
            _render_model_problem(paper, report.extraction)
        return
    if report.files:
        rate = report.bytes_read / max(report.read_seconds, 0.001)
        shown = f" ({size(int(rate))}/s)" if report.bytes_read > 1_000_000 else ""
        took = f" in {seconds(report.read_seconds)}{shown}"
        paper.line(
            bold(f"Read {count(report.files, 'file')}"), f", {size(report.bytes_read)}{took}"
        )
        _render_counts(paper, report)
    _render_oddities(paper, report)
    if report.extraction:
        _render_model_problem(paper, report.extraction)
    render_problems(
        paper,
        report.problems,
        rest="everything else was read" if report.files else "nothing was read",
    )


def render_plan(paper: Paper, plan: IngestPlan) -> None:
    """What an ingest would read."""
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
            (
                "unchanged",
                f"{plan.skipped - plan.unrecognised:,}" if plan.skipped > plan.unrecognised else "",
            ),
            ("no transcripts", f"{plan.unrecognised:,}" if plan.unrecognised else ""),
            ("excluded", f"{sum(plan.excluded.values()):,}" if plan.excluded else ""),
        ),
        indent=2,
    )
    render_problems(paper, plan.problems, rest="everything else can be read")


def _render_counts(paper: Paper, report: IngestReport) -> None:
    paper.facts(
        (
            ("sessions", f"{report.sessions:,}"),
            ("turns", f"{report.turns:,}"),
            *_of_what_was_read_before(report),
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
            ("left out", _left_out(report)),
            ("archived", _archived(report)),
            ("vectors", _vectors_ingest_report(report)),
        ),
        indent=2,
    )


def _of_what_was_read_before(report: IngestReport) -> list[tuple[str, str]]:
    """What may be learned without a new file, too: from sessions that are over by now."""
    is_told = bool(report.files or report.memories or report.changed or report.ended)
    return [
        ("memories", _learned(report) if is_told else ""),
        (
            "doubts",
            f"{report.doubted:,} may be out of date (nacre review)" if report.doubted else "",
        ),
        ("candidates", f"{report.candidates:,} (nacre review)" if report.candidates else ""),
        ("model", _by_model(report.extraction)),
    ]


def _by_model(report: ModelExtraction | None) -> str:
    """What a language model was asked and what came of it."""
    if report and report.elsewhere:
        return f"{count(report.elsewhere, 'session')} being read by it at the moment, for another process"
    if report is None or not report.calls:
        return ""
    read = report.tokens.input + report.tokens.cached + report.tokens.written
    dropped = sum(report.dropped.values())
    told = f"{report.model}: {count(report.sessions, 'session')}, {count(report.calls, 'call')}, "
    told += f"{read:,} + {report.tokens.output:,} tokens"
    told += f", {count(report.held, 'proposal')} held back" if report.held else ""
    return told + (f", {count(dropped, 'proposal')} of no use" if dropped else "")


def _render_model_problem(paper: Paper, report: ModelExtraction) -> None:
    """Why a language model did not do all it was asked, and that the work was done."""
    if report.problem:
        parts = f" for {report.by_rules} of {count(report.parts, 'part')}" if report.parts else ""
        is_read = report.parts and not report.by_rules
        what = (
            "what it proposed and nobody compared with its evidence waits"
            if is_read
            else "extraction went by its rules"
        )
        paper.line(f"{report.problem}; {what}{'' if is_read else parts}")
        if report.hint:
            paper.line(dim(f"hint: {report.hint}"))


def _archived(report: IngestReport) -> str:
    kept = report.archived
    pruned = (
        f"; {count(kept.pruned, 'transcript')} given up, as the settings say" if kept.pruned else ""
    )
    return (
        f"{size(kept.read)} as {size(kept.stored)}, in another {kept.seconds:.1f} s{pruned}"
        if kept.files
        else ""
    )


def _left_out(report: IngestReport) -> str:
    return f"what was forgotten, in {count(report.left_out, 'file')}" if report.left_out else ""


def _render_nothing_new(paper: Paper, report: IngestReport, *, searched: bool) -> None:
    if report.skipped > report.unrecognised:
        paper.line(
            f"Nothing new: {count(report.skipped - report.unrecognised, 'transcript')} read before."
        )
        paper.facts(
            [*_of_what_was_read_before(report), ("vectors", _vectors_ingest_report(report))],
            indent=2,
        )
    elif report.vectors_made or report.vectors_left:
        paper.line("No new transcripts.")
        paper.facts([("vectors", _vectors_ingest_report(report))], indent=2)
    elif searched:
        paper.line(bold("No transcripts were found on this machine."))
        paper.facts(
            (
                ("nacre ingest PATH", "reads files and folders you name"),
                ("nacre quickstart", "shows what nacre does with example sessions"),
                ("nacre config set ingest.roots '[\"PATH\"]'", "has it look there as well"),
            ),
            indent=2,
        )
    else:
        paper.line("No transcript was found in the given paths.")


def _learned(report: IngestReport) -> str:
    known = f" ({report.duplicates:,} more were known)" if report.duplicates else ""
    changed = f", {report.changed:,} brought up to date" if report.changed else ""
    ended = f", {report.ended:,} over" if report.ended else ""
    return f"{len(report.memories):,} new{known}{changed}{ended}"


def _skipped(report: IngestReport) -> str:
    unchanged = report.skipped - report.unrecognised
    told = [
        f"{unchanged:,} unchanged" if unchanged else "",
        f"{report.unrecognised:,} no transcripts" if report.unrecognised else "",
        *(f"{number:,} excluded by {why}" for why, number in sorted(report.excluded.items())),
    ]
    return ", ".join(text for text in told if text)


def _vectors_ingest_report(report: IngestReport) -> str:
    note = report.vectors_note
    if note and not report.vectors_made and not report.vectors_left:
        return note
    made = f"{report.vectors_made:,} texts" if report.vectors_made else ""
    left = (
        f"{report.vectors_left:,} wait" + ("" if note else " for the next nacre ingest")
        if report.vectors_left
        else ""
    )
    return "; ".join(
        text for text in (", ".join(text for text in (made, left) if text), note) if text
    )


def _render_oddities(paper: Paper, report: IngestReport) -> None:
    if report.corrupt:
        too_long = f" ({report.oversized:,} too long to be read)" if report.oversized else ""
        were = "was" if report.corrupt == 1 else "were"
        told = f"{count(report.corrupt, 'line')} could not be understood and {were} left out{too_long}."
        paper.line(dim(told), indent=2)
    if report.unknown:
        kinds = ", ".join(
            f"{name} ({number:,})" for name, number in sorted(report.unknown.items())[:5]
        )
        paper.line(dim(f"Records of unknown type were left out: {kinds}."), indent=2)
    for path in report.empty[:PROBLEMS_SHOWN]:
        paper.line(dim(f"{path} is empty: it has no sessions yet, or lost them."), indent=2, hang=2)


# ----------------------------------------------------------------------------
# ``nacre ingest``.


_DIGEST = "a writer reads a digest of each session"
_ASKED_AGAIN = (
    "a model that fails is asked again, five times in all; what is left waits for the next ingest"
)
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
@option(
    "ingest", "older", help="Also have the writer read sessions from before it was set; asks first."
)
@click.option("--yes", is_flag=True, help="With --older: do not ask.")
@refused(_ELSEWHERE)
@click.option("--dry-run", is_flag=True, help="Say what would be read, and read nothing.")
@click.option(
    "--estimate", is_flag=True, help="Say what learning with a model would cost, and store nothing."
)
@click.pass_obj
def ingest(  # noqa: PLR0913 - one parameter an option
    run: Run,
    paths: tuple[Path, ...],
    globs: tuple[str, ...],
    vectors: bool,
    extract: bool,
    force: bool,
    older: bool,
    yes: bool,
    dry_run: bool,
    estimate: bool,
) -> None:
    """Read transcripts and learn from them.

    Without PATHS, everything the agents on this machine wrote; with PATHS, those files and folders.
    An agent may name none: what a file says that somebody typed would be your word.
    What cannot be read is listed at the end, and makes the exit code 1; everything else is read. An empty database is
    listed, too, and is no failure: it may have no sessions yet.

    With --older, the writer also reads sessions that ended before it was set, or that waited for it in vain: the
    latest first, two dozen at a time, as many as it may take today. The next --older goes on from there.
    """
    wanted: dict[str, Any] = {
        "paths": paths,
        "extract": extract,
        "vectors": vectors,
        "force": force,
        "globs": globs,
        "older": older,
    }
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
    with output.shown(run) as notify:
        report: IngestReport = perform(run, "ingest", notify, **wanted)
    if report.problems:
        run.exit_code = 1
    run.warnings += [report.foreseen] if report.foreseen else []
    run.warnings += [
        f"{one.path} {one.message}; the next ingest tries again" for one in report.archived.problems
    ]
    run.warnings += [
        f"{one.in_words()} (nacre archive status)"
        for one in retention.leaving(run.home)
        if not one.is_kept
    ]
    run.answer(
        ingest_record(report), lambda paper: render_ingest(paper, report, searched=not paths)
    )


def _agree(run: Run, wanted: Mapping[str, Any], *, yes: bool) -> None:
    """Show what older sessions would take, and have the owner agree to it. Raises UsageError, InvalidInput, Abort."""
    ingestion.check_older(run.home, ingestion.IngestOptions(extract=wanted["extract"], older=True))
    found: Estimate = perform(run, "ingest-estimate", **wanted)
    paper = run.paper(stderr=True)
    render_estimate(paper, found)
    click.echo(paper.text(), nl=False, err=True)
    if not (found.waiting and found.tasks):
        return
    refusal = (
        "not interactive: pass --yes; nacre ingest --older --estimate tells what it would take"
    )
    run.confirm(
        "Let the writer read them, within what it may take a day?", yes=yes, refusal=refusal
    )
