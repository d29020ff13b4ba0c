"""``nacre ingest``, with its report and cost estimate, ``dream`` and ``sessions extract``."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from nacre.base.json import to_plain
from nacre.base.text import one_line, shorten
from nacre.cli.command import Paper, Run, bold, command, dim, joined
from nacre.cli.hits import LINE_CHARACTERS
from nacre.cli.options import (
    SHORT_ID,
    YES,
    argument,
    ask,
    count,
    day,
    duration,
    find_project,
    flag,
    kind_span,
    option,
    perform,
    readable,
    short_id,
    size,
)
from nacre.cli.status import PROBLEMS_SHOWN, render_problems
from nacre.home import spending
from nacre.learn import ingest as ingestion
from nacre.learn import learn
from nacre.review import dream as review_dream
from nacre.review.consolidate import DreamAction, DreamPlan
from nacre.values.memory import Expiry
from nacre.values.session import SessionKind, Task

if TYPE_CHECKING:
    from nacre.learn.estimate import Estimate
    from nacre.review.consolidate import DreamReport, Step
    from nacre.values.reports import IngestPlan, IngestReport, ModelExtraction


def render_estimate(paper: Paper, estimate: Estimate) -> None:
    """Print the pending sessions, the maximum cost of learning from them, and today's limit."""
    what = f"{count(estimate.waiting, 'session')} with content to learn from"
    trivial = f", {estimate.trivial:,} trivial (not sent to a model)" if estimate.trivial else ""
    paper.title(what, trivial)
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
    for problem in estimate.problems[:20]:
        paper.note(f"{problem.path}: {problem.message}", "yellow", indent=2)


# ----------------------------------------------------------------------------
# The report and plan of an ingest.


def render_ingest(paper: Paper, report: IngestReport, *, searched: bool) -> None:
    """Print the results of an ingest, and any problems."""
    if report.files:
        took = f", {size(report.bytes_read)} in {duration(report.seconds)}"
        paper.title(f"Read {count(report.files, 'file')}", took)
        paper.facts(_facts(report))
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
        paper.title(f"Would read {count(plan.files, 'file')}", f", {size(plan.bytes)}")
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
        )
    )
    render_problems(paper, plan.problems, outcome="everything else can be read")


def _facts(report: IngestReport) -> Iterator[tuple[str, str]]:
    yield "sessions", f"{report.sessions:,}"
    yield "turns", f"{report.turns:,}"
    yield from _learning_facts(report)
    decided = (f"{number:,} {action.lower()}" for action, number in report.decided.items())
    yield "by a model", ", ".join(decided)
    tools = (f"{tool} {number:,}" for tool, number in sorted(report.tools.items()))
    yield "tools", ", ".join(tools)
    yield "skipped", _skipped(report)
    if report.left_out:
        yield "left out", f"forgotten content in {count(report.left_out, 'file')}"
    archive = report.archived
    if archive.files:
        pruned = f"; {count(archive.pruned, 'transcript')} pruned as configured"
        sizes = f"{size(archive.read)} as {size(archive.stored)}"
        yield "archived", sizes + pruned * bool(archive.pruned)
    yield "vectors", _vectors(report)


def _learning_facts(report: IngestReport) -> list[tuple[str, str]]:
    has_news = report.files or report.memories or report.ended
    duplicates = f" ({report.duplicates:,} already known)" if report.duplicates else ""
    ended = f", {report.ended:,} ended" if report.ended else ""
    memories = f"{len(report.memories):,} new{duplicates}{ended}"
    return [
        ("memories", memories if has_news else ""),
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


def _render_nothing_new(paper: Paper, report: IngestReport, *, searched: bool) -> None:
    unchanged = report.skipped - report.unrecognised
    if unchanged or report.vectors_made or report.vectors_left:
        read = f"Nothing new: {count(unchanged, 'transcript')} read earlier."
        paper.line(read if unchanged else "No new transcripts.")
        paper.facts([*_learning_facts(report), ("vectors", _vectors(report))])
    elif report.unread:
        paper.title("Nothing could be read.")
    elif searched:
        paper.title("No transcripts were found on this machine.")
        paper.facts(
            (
                ("nacre ingest PATH", "reads the files and folders you name"),
                ("nacre quickstart", "shows what nacre does with example sessions"),
                ("nacre config set ingest.roots '[\"PATH\"]'", "also searches that folder"),
            )
        )
    else:
        paper.line("No transcripts were found in these paths.")


def _skipped(report: IngestReport) -> str:
    unchanged = report.skipped - report.unrecognised
    parts = [
        f"{unchanged:,} unchanged" if unchanged else "",
        f"{report.unrecognised:,} not transcripts" if report.unrecognised else "",
        *(f"{number:,} excluded by {why}" for why, number in sorted(report.excluded.items())),
    ]
    return joined(parts, ", ")


def _vectors(report: IngestReport) -> str:
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
        os.nice(10)

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


# ----------------------------------------------------------------------------
# ``nacre dream``.


_MAX_STEPS = 12
_HEADINGS = {
    DreamAction.MERGE: "Duplicates, merged into one",
    DreamAction.SUPERSEDE: "Superseded by later statements",
    DreamAction.EXPIRE: "Expired",
    DreamAction.FORGET: "Never used",
    DreamAction.PAGE: "Pages",
}


@command(
    "dream",
    examples=[
        "nacre dream --dry-run",
        "nacre dream --tier 2",
        "nacre dream --yes --project hivelog --most 100",
    ],
)
@option("dream", "project", callback=None)
@option("dream", "most", "tier")
@option("dream", "writer", help="Do not use the writer (tiers 2 and 3).")
@flag("--alike", "Only list similar memories, without a model.")
@flag("--dry-run", "Only show the plan.")
@YES
def dream(run: Run, /, alike: bool, dry_run: bool, yes: bool, **request: Any) -> None:
    """Merge duplicate memories and retire outdated ones.

    The command shows its plan first. Outdated memories are retired, not deleted. nacre undo reverts the whole dream. A
    page in the vault's dreams folder lists the changes. The first unattended dream in a home only makes a plan.

    Rules find only similar wording. With --tier 2, your writer also merges memories that say the same in other words,
    and retires memories that later ones replace. Code and a second model call check each proposal. Rejected proposals
    are pending in nacre review.

    With --tier 3, project pages list recent work and decisions. Your writer also fills these pages and your profile.
    """
    request["project"] = find_project(run, request["project"])
    if alike:
        run.present(
            ask(run, review_dream.Alike, "alike", project=request["project"]), _render_alike
        )
        return
    if not dry_run:
        run.settings.actor.require_owner("nacre dream")
    interactive = run.is_interactive and not (yes or dry_run or run.as_json)
    if not (interactive or yes or dry_run):
        raise click.UsageError("not interactive: pass --yes, or --dry-run to see the plan")
    has_writer = spending.set_for(run.settings, Task.DREAM) != spending.NONE
    if interactive and request["tier"] > 1 and request["writer"] and has_writer:
        request["writer"] = click.confirm("Ask the writer, which may cost money?", err=True)
    if dry_run or interactive:
        plan = (
            ask(run, DreamPlan, "dream-plan", **request)
            if request["tier"] == 1  # instant
            else perform(run, review_dream.plan, **request)
        )
        if dry_run:
            run.present(plan, _render_plan)
            return
        run.show(_render_plan, plan)
        if not (plan.steps or plan.settled or plan.refused):
            return
        if plan.steps:
            run.confirm("Apply this plan?")
        request["steps"] = tuple(step.key for step in plan.steps)
    run.present(
        perform(run, review_dream.dream, **request, first=interactive), _render, is_seen=interactive
    )


def _render_alike(paper: Paper, alike: review_dream.Alike) -> None:
    if not alike.groups:
        paper.line("No memories are similar.")
    for group in alike.groups:
        paper.heading(
            f"{group[0].kind.value}{f' · {group[0].project}' if group[0].project else ''}"
        )
        for item in group:
            text = shorten(one_line(item.content), LINE_CHARACTERS)
            paper.line(text, dim(f"  {day(item.created)} · {short_id(item)}"), indent=2)
    if alike.total > len(alike.groups):
        paper.note(f"and {count(alike.total - len(alike.groups), 'more group')}")
    if alike.groups:
        paper.footer(
            "Similar memories can still differ. To retire a redundant one: nacre retire ID."
        )


def _render_plan(paper: Paper, plan: DreamPlan) -> None:
    if not (plan.steps or plan.refused or plan.note):
        paper.line(
            f"Nothing to do: {count(plan.seen, 'memory')} checked, none are expired, unused or duplicate."
        )
    else:
        for action, heading in _HEADINGS.items():
            steps = [step for step in plan.steps if step.action is action]
            if steps:
                paper.heading(f"{heading}: {sum(len(step.ends) or 1 for step in steps):,}")
                _steps(paper, steps, dict(plan.texts))
        paper.blank()
        paper.line(f"{plan.ending:,} of {count(plan.seen, 'memory')} would be retired.")
    for text in _remarks(plan):
        paper.note(text)


def _remarks(plan: DreamPlan) -> Iterator[str]:
    for path, why in plan.unwritten:
        yield f"unchanged: {path}: {why}"
    if plan.brought_back:
        yield f"unchanged: {count(plan.brought_back, 'memory')} that you restored after a dream"
    if plan.refused:
        yield f"{count(len(plan.refused), 'proposal')} from the writer rejected: see nacre review"
    if plan.unasked:
        yield f"{plan.unasked:,} more left for later"
    if plan.note:
        yield f"Writer: {plan.note}"
    if plan.put_off:
        why = f"a dream retires at most {plan.most:,} memories (--most); the first dream with a writer only plans"
        yield f"{count(len(plan.put_off), 'step')} more left for later: {why}"


def _steps(paper: Paper, steps: Sequence[Step], texts: Mapping[str, str]) -> None:
    for step in steps[:_MAX_STEPS]:
        stays = (step.into[-SHORT_ID:],) if step.into else ()
        ends = ", ".join(memory_id[-SHORT_ID:] for memory_id in step.ends)
        ids = " → ".join(filter(None, (ends, *stays)))
        paper.title(step.subject, dim(f"  {ids}  {step.why}"), indent=2)
        if step.action is DreamAction.PAGE:
            for line in filter(None, step.words.splitlines()) if len(steps) <= 3 else ():
                paper.note(line, indent=4)
            continue
        if step.words:
            paper.line(f"now: {' '.join(step.words.split())}", indent=4)
        for label, memory_id in (
            ("stays" if not step.words else "was", step.into),
            *(("ends", memory_id) for memory_id in step.ends),
        ):
            if memory_id and memory_id in texts:
                paper.note(f"{label}: {texts[memory_id]}", indent=4)
    paper.more(len(steps) - _MAX_STEPS)


def _render(paper: Paper, report: DreamReport, *, is_seen: bool) -> None:
    if not is_seen:
        _render_plan(paper, report.plan)
    if report.is_first and report.plan.steps:
        paper.line(
            "The first dream changes nothing. The next one applies this plan; nacre dream --dry-run shows it."
        )
    elif report.operation:
        paper.title("Done: ", f"{_describe_changes(report)}. See {report.diary} in the vault.")
        paper.note(f"nacre undo {report.operation[-8:]} reverts it")
    for step, why in report.left:
        paper.note(f"skipped: {step.subject}: {why}")


def _describe_changes(report: DreamReport) -> str:
    skipped_steps = [step for step, _ in report.left]
    steps = [step for step in report.plan.steps if step not in skipped_steps]
    pages = sum(step.action is DreamAction.PAGE for step in steps)
    retired = count(sum(len(step.ends) for step in steps), "memory")
    parts = (
        f"{retired} retired" if any(step.ends for step in steps) else "",
        f"{count(pages, 'page')} written" if pages else "",
    )
    return joined(parts, ", ") or "0 memories retired"


# ----------------------------------------------------------------------------
# ``nacre sessions extract``.


@command(
    "extract",
    examples=[
        "nacre sessions extract session.jsonl",
        "nacre sessions extract --session 7f3a --model anthropic:claude-haiku-5-5",
        "cat meeting.txt | nacre sessions extract -",
    ],
)
@argument(
    "extract", "path", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
)
@option(
    "extract", "session", help="One session of PATH. Without PATH: a session that was already read."
)
@option("extract", "model")
def extract(run: Run, path: Path | None, **request: Any) -> None:
    """Show what nacre would learn from a transcript, without storing it.

    PATH is a transcript, or - for standard input. The language model set for extraction reads the transcript in the
    foreground. Rules are used if there is no model. Rules are also used for parts where the model fails.
    """
    with readable(path) if path else nullcontext() as file:
        proposals = perform(run, learn.propose, path=file, **request)
    run.warnings += _warnings(proposals)
    by_rules = request["model"] == "none"
    run.answer({"sessions": proposals}, _render_proposals, proposals, is_asked_for_rules=by_rules)


def _warnings(proposals: list[learn.Proposal]) -> list[str]:
    failed = [
        proposal.asked for proposal in proposals if proposal.asked and proposal.asked.by_rules
    ]
    problems = dict.fromkeys(
        (proposal.problem or "the model gave no answer", proposal.hint) for proposal in failed
    )
    parts = sum(proposal.by_rules for proposal in failed)
    return [
        f"{problem}; {count(parts, 'part')} extracted by rules{f' ({hint})' if hint else ''}"
        for problem, hint in problems
    ]


def _render_proposals(
    paper: Paper, proposals: Sequence[learn.Proposal], *, is_asked_for_rules: bool
) -> None:
    for at, proposal in enumerate(proposals):
        if at:
            paper.blank()
        paper.title(proposal.session.id, "  ", dim(_how(proposal)))
        for candidate in proposal.candidates:
            paper.blank()
            paper.line(kind_span(candidate.kind), " ", bold(candidate.subject), hang=2)
            paper.body(candidate.content, indent=2)
            paper.note(
                joined(
                    (
                        f"importance {candidate.importance}",
                        candidate.expiry.value
                        if candidate.expiry is not Expiry.PERMANENT
                        else None,
                        f"said by the {candidate.speaker.value}",
                        ", ".join(candidate.tags) or None,
                        f"pending: {candidate.detail or candidate.held.value}"
                        if candidate.held
                        else None,
                    )
                ),
                indent=2,
            )
        for claim in proposal.asked.overtaken if proposal.asked else ():
            paper.blank()
            paper.title("outdated", " ", claim.memory.content, hang=2)
            paper.note(f"“{claim.quote}”", indent=2)
    paper.blank()
    rules = (
        ""
        if is_asked_for_rules or any(proposal.asked for proposal in proposals)
        else "; no language model is set: nacre config set models.default"
    )
    paper.note(f"Nothing was stored{rules}.")


def _how(proposal: learn.Proposal) -> str:
    if proposal.session.kind is not SessionKind.MAIN:
        return f"no memories: sessions of kind {proposal.session.kind.value} are skipped"
    result = count(len(proposal.memories), "memory") if proposal.memories else "no memories"
    candidates = len(proposal.candidates) - len(proposal.memories)
    result += f" and {count(candidates, 'candidate')}" if candidates else ""
    reading = proposal.asked
    if reading is None or reading.by_rules == reading.parts:
        return f"{result}, by rules"
    extent = "whole" if reading.parts == 1 else f"in {count(reading.parts, 'part')}"
    result += f", by {reading.model} {extent}: {count(reading.calls, 'call')}, "
    result += f"{reading.tokens.sent:,} + {reading.tokens.output:,} tokens"
    dropped = ", ".join(f"{number} {reason}" for reason, number in sorted(reading.dropped.items()))
    return f"{result}; dropped: {dropped}" if dropped else result
