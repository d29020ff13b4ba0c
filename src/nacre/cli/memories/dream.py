"""``nacre dream``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.formats import SHORT_ID, Record, count
from nacre.cli.operations import ask, perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import option
from nacre.cli.run import Run
from nacre.dream import values as dreams
from nacre.values import spending

if TYPE_CHECKING:
    from nacre.dream.values import DreamEstimate, DreamPlan, DreamReport, Step

_SHOWN = 12
_HEADINGS = {
    dreams.DreamAction.MERGE: "Said more than once, one stays",
    dreams.DreamAction.SUPERSEDE: "Ended by what was said later",
    dreams.DreamAction.EXPIRE: "Meant for a while",
    dreams.DreamAction.FORGET: "Never asked for",
    dreams.DreamAction.UNLINK: "Links that lead nowhere",
}


@command(
    "dream",
    examples=[
        "nacre dream --dry-run",
        "nacre dream --tier 2 --estimate",
        "nacre dream --tier 2",
        "nacre dream --yes --project hivelog --most 100",
    ],
)
@option("dream", "project")
@option("dream", "most")
@option("dream", "tier")
@click.option("--estimate", is_flag=True, help="What asking the writer would take (tier 2); nobody is asked.")
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def dream(run: Run, project: str | None, most: int | None, tier: int, estimate: bool, dry_run: bool, yes: bool) -> None:
    """Tidy what is remembered: end what is over, make one of what says the same.

    It shows its plan first. What ends is retired, not deleted, in one operation that nacre undo takes back; a page in
    the vault's dreams folder tells what was done. A home's first dream that nobody looks at only plans.

    Rules alone see only what is written alike. With --tier 2 your writer makes one of what says the same in other
    words, and names what a later memory has ended; code and a second look check it, and what fails waits in nacre
    review.
    """
    if estimate:
        found: DreamEstimate = ask(run, "dream-estimate", project=project)
        run.answer(dataclasses.asdict(found), lambda paper: _render_estimate(paper, found))
        return
    if not dry_run:
        run.settings.actor.require_owner("nacre dream")
    asks = run.is_interactive and not (yes or dry_run or run.as_json)
    if not (asks or yes or dry_run):
        raise click.UsageError("not interactive: pass --yes, or --dry-run to see the plan", click.get_current_context())
    if asks and tier > 1 and not _lets_writer_be_asked(run, project):
        tier = 1
    if dry_run or asks:
        plan = _plan(run, project=project, most=most, tier=tier)
        if dry_run:
            run.answer(_plan_record(plan), lambda paper: _render_plan(paper, plan))
            return
        run.show(lambda paper: _render_plan(paper, plan))
        if not (plan.steps or plan.settled or plan.refused):
            return
        if plan.steps:
            run.confirm("Do it?")
    with progress.shown(run) as notify:
        report: DreamReport = perform(run, "dream", notify, project=project, most=most, tier=tier, first=asks)
    run.answer(_record(report), lambda paper: _render(paper, report, is_seen=asks))


def _plan(run: Run, **asked: Any) -> DreamPlan:
    if asked["tier"] == 1:
        return cast("DreamPlan", ask(run, "dream-plan", **asked))
    with progress.shown(run) as notify:
        return cast("DreamPlan", perform(run, "dream-plan", notify, **asked))


def _lets_writer_be_asked(run: Run, project: str | None) -> bool:
    """Whether there is something to ask the writer, and the person wants it."""
    found: DreamEstimate = ask(run, "dream-estimate", project=project)
    run.show(lambda paper: _render_estimate(paper, found))
    return bool(found.clusters) and click.confirm("Ask it?", err=True)


def _render_estimate(paper: Paper, found: DreamEstimate) -> None:
    if not found.clusters:
        paper.line(f"Nothing to ask a writer: {found.note or 'no memories are alike that it has not looked at'}.")
        return
    price = "" if found.cost is None else f", {spending.dollars(found.cost)}"
    paper.line(
        f"{count(found.memories, 'memory', 'memories')} in {count(found.clusters, 'group')} look alike. {found.model} "
        f"would be asked in {count(found.calls, 'call')} at most: some {round(found.tokens, -2):,} tokens{price}."
    )
    if found.unasked:
        paper.line(dim(f"{count(found.unasked, 'group')} more for another time"))


def _render_plan(paper: Paper, plan: DreamPlan) -> None:
    if not (plan.steps or plan.refused or plan.note):
        paper.line(
            f"Nothing to do: {count(plan.seen, 'memory', 'memories')} seen, and none of them is over or there twice."
        )
        return
    for action, told in _HEADINGS.items():
        steps = [step for step in plan.steps if step.action is action]
        if steps:
            paper.heading(f"{told}: {sum(len(step.ends or step.links) for step in steps):,}")
            _steps(paper, steps)
    paper.blank()
    dropped = f", and {count(plan.dropped, 'link')} dropped" if plan.dropped else ""
    paper.line(f"{plan.ending:,} of {count(plan.seen, 'memory', 'memories')} would be retired{dropped}.")
    if plan.refused:
        paper.line(
            dim(f"{count(len(plan.refused), 'proposal')} of the writer's did not bear a second look: nacre review")
        )
    if plan.unasked:
        paper.line(dim(f"{count(plan.unasked, 'group')} more to ask the writer about another time"))
    if plan.note:
        paper.line(dim(f"The writer was not asked, or not to the end: {plan.note}"))
    if plan.put_off:
        paper.line(
            dim(f"{count(len(plan.put_off), 'step')} more for another time: --most N ends more than {plan.most:,}")
        )


def _steps(paper: Paper, steps: Sequence[Step]) -> None:
    for step in steps[:_SHOWN]:
        stays = (step.into,) if step.into else ()
        ids = " → ".join(", ".join(one[-SHORT_ID:] for one in part) for part in (step.ends, stays) if part)
        paper.line(bold(step.subject), dim(f"  {ids}  {step.why}"), indent=2, hang=2)
        if step.words:
            paper.line(f"now: {' '.join(step.words.split())}", indent=4, hang=2)
    if len(steps) > _SHOWN:
        paper.line(dim(f"and {len(steps) - _SHOWN:,} more"), indent=2)


def _render(paper: Paper, report: DreamReport, *, is_seen: bool) -> None:
    if not is_seen:
        _render_plan(paper, report.plan)
    if report.is_first and report.plan.steps:
        paper.line(
            "Nothing was changed: a first dream only plans. The next one does it; nacre dream --dry-run shows it."
        )
    elif report.operation:
        paper.line(bold("Done: "), f"{_done(report)}. {report.diary} in the vault tells which.")
        paper.line(dim(f"nacre undo {report.operation[-8:]} takes it back"))
    for step, why in report.left:
        paper.line(dim(f"left: {step.subject}: {why}"))


def _done(report: DreamReport) -> str:
    left = [step for step, _ in report.left]
    ended = report.plan.ending - sum(len(step.ends) for step in left)
    dropped = report.plan.dropped - sum(len(step.links) for step in left)
    told = f"{count(ended, 'memory', 'memories')} retired" if ended or not dropped else ""
    return ", ".join(filter(None, (told, f"{count(dropped, 'link')} dropped" if dropped else "")))


def _plan_record(plan: DreamPlan) -> Record:
    return {
        "steps": [_step(step) for step in plan.steps], "put_off": [_step(step) for step in plan.put_off],
        "refused": [{**_step(step), "reason": why} for step, why in plan.refused], "seen": plan.seen,
        "most": plan.most, "ending": plan.ending, "unasked": plan.unasked, "note": plan.note,
    }  # fmt: skip


def _step(step: Step) -> Record:
    return {
        "action": str(step.action),
        "ends": list(step.ends),
        "into": step.into,
        "subject": step.subject,
        "why": step.why,
        "words": step.words or None,
        "by": step.by or None,
        "links": list(step.links),
    }


def _record(report: DreamReport) -> Record:
    return _plan_record(report.plan) | {
        "operation": report.operation, "diary": report.diary, "first": report.is_first,
        "left": [{**_step(step), "reason": why} for step, why in report.left],
    }  # fmt: skip
