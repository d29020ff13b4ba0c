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
    flag,
    kind_span,
    option,
    readable,
    short_id,
)
from nacre.home import spending
from nacre.learn import learn
from nacre.review import consolidate as dreams
from nacre.review import dream as review_dream
from nacre.review import run as review_run
from nacre.values import memory
from nacre.values import session as values_session

if TYPE_CHECKING:
    from nacre.learn.learn import Proposal
    from nacre.review.consolidate import DreamPlan, DreamReport, Step


_SHOWN = 12
_PAGES_SHOWN = 3
_UNLINK = dreams.DreamAction.UNLINK
_EFFECTS = (
    (None, "memory", "memories", "retired"),
    (_UNLINK, "link", "links", "dropped"),
    (dreams.DreamAction.FILE, "memory", "memories", "filed"),
    (dreams.DreamAction.PAGE, "page", "pages", "written"),
)
_HEADINGS = {
    dreams.DreamAction.MERGE: "Duplicates, merged into one",
    dreams.DreamAction.SUPERSEDE: "Superseded by later statements",
    dreams.DreamAction.EXPIRE: "Expired",
    dreams.DreamAction.FORGET: "Never used",
    dreams.DreamAction.UNLINK: "Broken links",
    dreams.DreamAction.FILE: "From the inbox to their projects",
    dreams.DreamAction.PAGE: "Pages",
}


@command(
    "dream",
    examples=[
        "nacre dream --dry-run",
        "nacre dream --tier 2",
        "nacre dream --yes --project hivelog --most 100",
    ],
)
@option("dream", "project")
@option("dream", "most")
@option("dream", "tier")
@option("dream", "writer", help="Do not use the writer (tiers 2 and 3).")
@option("dream", "backfill")
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

    With --tier 3, memories in the inbox move to the project that their session or text names. Project pages list recent
    work and decisions. Your writer also fills these pages and your profile.
    """
    if alike:
        run.present(
            ask(run, review_dream.Alike, "alike", project=request["project"]), _render_alike
        )
        return
    if not dry_run:
        run.settings.actor.require_owner("nacre dream")
    asks = run.is_interactive and not (yes or dry_run or run.as_json)
    if not (asks or yes or dry_run):
        raise click.UsageError("not interactive: pass --yes, or --dry-run to see the plan")
    has_writer = spending.set_for(run.settings, values_session.Task.DREAM) != spending.NONE
    if asks and request["tier"] > 1 and request["writer"] and has_writer:
        request["writer"] = click.confirm("Ask the writer, which may cost money?", err=True)
    if dry_run or asks:
        plan = (
            ask(run, dreams.DreamPlan, "dream-plan", **request)
            if request["tier"] == 1  # instant
            else perform(run, review_run.plan, **request)
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
    run.present(perform(run, review_run.dream, **request, first=asks), _render, is_seen=asks)


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
            paper.heading(
                f"{heading}: {sum(len(step.ends or step.links) or 1 for step in steps):,}"
            )
            _steps(paper, steps, dict(plan.texts))
    paper.blank()
    dropped = f", and {count(plan.dropped, 'link')} dropped" if plan.dropped else ""
    paper.line(
        f"{plan.ending:,} of {count(plan.seen, 'memory', 'memories')} would be retired{dropped}."
    )
    for text in _remarks(plan):
        paper.note(text)


def _remarks(plan: DreamPlan) -> Iterator[str]:
    """Yield sentences about memories and proposals that the dream leaves unchanged."""
    for path, why in plan.unwritten:
        yield f"unchanged: {path}: {why}"
    if plan.unfiled:
        yield f"{count(len(plan.unfiled), 'memory', 'memories')} more in the inbox: project unknown"
    if plan.brought_back:
        yield f"unchanged: {count(plan.brought_back, 'memory', 'memories')} that you restored after a dream"
    if plan.refused:
        yield f"{count(len(plan.refused), 'proposal')} from the writer rejected: see nacre review"
    if plan.unasked:
        yield f"{plan.unasked:,} more left for later"
    if plan.note:
        yield f"Writer: {plan.note}"
    if plan.put_off:
        why = f"a dream retires at most {plan.most:,} memories (--most); the first with a writer only makes a plan"
        yield f"{count(len(plan.put_off), 'step')} more left for later: {why}"


def _steps(paper: Paper, steps: Sequence[Step], texts: Mapping[str, str]) -> None:
    for step in steps[:_SHOWN]:
        stays = (step.into[-SHORT_ID:],) if step.into else ()
        ends = ", ".join(memory_id[-SHORT_ID:] for memory_id in step.ends)
        named = " → ".join(filter(None, (ends, *stays, step.project if step.into else "")))
        paper.line(bold(step.subject), dim(f"  {named}  {step.why}"), indent=2)
        if step.action is dreams.DreamAction.PAGE:
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
    paper.more(len(steps) - _SHOWN)


def _render(paper: Paper, report: DreamReport, *, is_seen: bool) -> None:
    if not is_seen:
        _render_plan(paper, report.plan)
    if report.is_first and report.plan.steps:
        paper.line(
            "The first dream changes nothing. The next one applies this plan; nacre dream --dry-run shows it."
        )
    elif report.operation:
        paper.line(bold("Done: "), f"{_done(report)}. See {report.diary} in the vault.")
        paper.note(f"nacre undo {report.operation[-8:]} reverts it")
    for step, why in report.left:
        paper.note(f"skipped: {step.subject}: {why}")


def _done(report: DreamReport) -> str:
    """Describe how many changes were made."""
    left = [step for step, _ in report.left]
    done = [step for step in report.plan.steps if step not in left]
    parts = []
    for action, noun, nouns, verb in _EFFECTS:
        affected = [
            len(step.ends if action is None else step.links if action is _UNLINK else "1")
            for step in done
            if action in (None, step.action)
        ]
        if number := sum(affected):
            parts.append(f"{count(number, noun, nouns)} {verb}")
    return ", ".join(parts) or "0 memories retired"


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
    "extract-propose",
    "path",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
)
@option(
    "extract-propose",
    "session",
    help="One session of PATH. Without PATH: a session that was already read.",
)
@option(
    "extract-propose", "model", help="The language model, as provider:model, or none (only rules)."
)
def extract(run: Run, path: Path | None, **request: Any) -> None:
    """Show what nacre would learn from a transcript, without storing it.

    PATH is a transcript, or - for standard input. The language model set for extraction reads the transcript in the
    foreground. Rules are used if there is no model. Rules are also used for parts where the model fails.
    """
    if path is None and not request["session"]:
        raise click.UsageError(
            "nothing to extract from: pass a transcript, - for standard input, or --session"
        )
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
        for gone in proposal.asked.overtaken if proposal.asked else ():
            paper.blank()
            paper.line(bold("outdated"), " ", gone.memory.content, hang=2)
            paper.note(f"“{gone.quote}”", indent=2)
    paper.blank()
    rules = (
        ""
        if is_asked_for_rules or any(proposal.asked for proposal in proposals)
        else "; no language model is set: nacre config set models.default"
    )
    paper.note(f"Nothing was stored{rules}.")


def _how(proposal: Proposal) -> str:
    """Return a description of how many memories were found, and whether rules or a model found them."""
    if proposal.session.kind is not values_session.SessionKind.MAIN:
        return f"no memories: sessions of kind {proposal.session.kind.value} are skipped"
    result = (
        count(len(proposal.memories), "memory", "memories") if proposal.memories else "no memories"
    )
    waiting = len(proposal.candidates) - len(proposal.memories)
    result += f" and {count(waiting, 'candidate')}" if waiting else ""
    asked = proposal.asked
    if asked is None or asked.by_rules == asked.parts:
        return f"{result}, by rules"
    shown = "whole" if asked.is_whole else f"in {count(asked.parts, 'part')}"
    read = asked.tokens.input + asked.tokens.cached + asked.tokens.written
    result += f", by {asked.model} {shown}: {count(asked.calls, 'call')}, "
    result += f"{read:,} + {asked.tokens.output:,} tokens"
    dropped = ", ".join(f"{number} {reason}" for reason, number in sorted(asked.dropped.items()))
    return f"{result}; dropped: {dropped}" if dropped else result
