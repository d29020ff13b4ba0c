"""``nacre dream`` and ``nacre sessions extract``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.base.text import one_line, shorten
from nacre.cli.command import Paper, Run, bold, command, dim, joined
from nacre.cli.hits import LINE_CHARACTERS
from nacre.cli.operations import ask, perform
from nacre.cli.options import (
    SHORT_ID,
    YES,
    argument,
    count,
    day,
    find_project,
    flag,
    kind_span,
    option,
    readable,
    short_id,
)
from nacre.home import spending
from nacre.learn import learn
from nacre.review import dream as review_dream
from nacre.review.consolidate import DreamAction, DreamPlan
from nacre.values import memory
from nacre.values.session import SessionKind, Task

if TYPE_CHECKING:
    from nacre.learn.learn import Proposal
    from nacre.review.consolidate import DreamReport, Step


_MAX_STEPS = 12
_PAGES_SHOWN = 3
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
@option("dream", "most")
@option("dream", "tier")
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
        paper.blank()
        paper.note("Similar memories can still differ. To retire a redundant one: nacre retire ID.")


def _render_plan(paper: Paper, plan: DreamPlan) -> None:
    if not (plan.steps or plan.refused or plan.note):
        paper.line(
            f"Nothing to do: {count(plan.seen, 'memory', 'memories')} checked, none are expired, unused or duplicate."
        )
        for text in _remarks(plan):
            paper.note(text)
        return
    for action, heading in _HEADINGS.items():
        steps = [step for step in plan.steps if step.action is action]
        if steps:
            paper.heading(f"{heading}: {sum(len(step.ends) or 1 for step in steps):,}")
            _steps(paper, steps, dict(plan.texts))
    paper.blank()
    paper.line(f"{plan.ending:,} of {count(plan.seen, 'memory', 'memories')} would be retired.")
    for text in _remarks(plan):
        paper.note(text)


def _remarks(plan: DreamPlan) -> Iterator[str]:
    for path, why in plan.unwritten:
        yield f"unchanged: {path}: {why}"
    if plan.brought_back:
        yield f"unchanged: {count(plan.brought_back, 'memory', 'memories')} that you restored after a dream"
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
        paper.line(bold(step.subject), dim(f"  {ids}  {step.why}"), indent=2)
        if step.action is DreamAction.PAGE:
            for line in filter(None, step.words.splitlines()) if len(steps) <= _PAGES_SHOWN else ():
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
        paper.line(bold("Done: "), f"{_describe_changes(report)}. See {report.diary} in the vault.")
        paper.note(f"nacre undo {report.operation[-8:]} reverts it")
    for step, why in report.left:
        paper.note(f"skipped: {step.subject}: {why}")


def _describe_changes(report: DreamReport) -> str:
    skipped_steps = [step for step, _ in report.left]
    steps = [step for step in report.plan.steps if step not in skipped_steps]
    pages = sum(step.action is DreamAction.PAGE for step in steps)
    retired = count(sum(len(step.ends) for step in steps), "memory", "memories")
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
    "extract",
    "path",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@option(
    "extract",
    "session",
    help="One session of PATH. Without PATH: a session that was already read.",
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


def _warnings(proposals: list[Proposal]) -> list[str]:
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
    paper: Paper, proposals: Sequence[Proposal], *, is_asked_for_rules: bool
) -> None:
    for at, proposal in enumerate(proposals):
        if at:
            paper.blank()
        paper.line(bold(proposal.session.id), "  ", dim(_how(proposal)))
        for candidate in proposal.candidates:
            paper.blank()
            paper.line(kind_span(candidate.kind), " ", bold(candidate.subject), hang=2)
            paper.body(candidate.content, indent=2)
            paper.note(
                joined(
                    (
                        f"importance {candidate.importance}",
                        candidate.expiry.value
                        if candidate.expiry is not memory.Expiry.PERMANENT
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
            paper.line(bold("outdated"), " ", claim.memory.content, hang=2)
            paper.note(f"“{claim.quote}”", indent=2)
    paper.blank()
    rules = (
        ""
        if is_asked_for_rules or any(proposal.asked for proposal in proposals)
        else "; no language model is set: nacre config set models.default"
    )
    paper.note(f"Nothing was stored{rules}.")


def _how(proposal: Proposal) -> str:
    if proposal.session.kind is not SessionKind.MAIN:
        return f"no memories: sessions of kind {proposal.session.kind.value} are skipped"
    result = (
        count(len(proposal.memories), "memory", "memories") if proposal.memories else "no memories"
    )
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
