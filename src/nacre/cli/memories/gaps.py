"""``nacre gaps``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nacre.cli.command import DefaultGroup
from nacre.cli.formats import Record, count, stamp, when
from nacre.cli.memories.todo import answer_todo
from nacre.cli.operations import ask, perform
from nacre.cli.options import find_project
from nacre.cli.paper import Paper, bold, dim, joined
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.text import passages

if TYPE_CHECKING:
    from nacre.values.review import Unanswered, UnansweredQuestion

_WORDINGS_SHOWN = 3
_CHARACTERS = 160


@click.group(
    "gaps",
    cls=DefaultGroup,
    examples=["nacre gaps", "nacre gaps list --project . --min-times 2", "nacre gaps todo 5f0c2a4d"],
)
@click.pass_context
def gaps(context: click.Context) -> None:
    """List questions that nacre could not answer.

    Questions that ask the same thing are grouped, the most asked first. Each is asked again before it is shown: a
    question that has an answer by now is closed.
    """
    if context.invoked_subcommand is None:
        _list(context.obj, days=30, project=None, min_times=1, limit=10)


@gaps.command("list", examples=["nacre gaps list --days 7 --json", "nacre gaps list --project . --min-times 2"])
@option("unanswered", "days")
@option("unanswered", "project", help="Only questions about this project; . is the one of this folder.")
@option("unanswered", "min_times")
@option("unanswered", "limit", "--limit", "-n")
@click.pass_obj
def list_gaps(run: Run, days: int, project: str | None, min_times: int, limit: int) -> None:
    """List unanswered questions, the most asked first."""
    _list(run, days=days, project=find_project(run, project), min_times=min_times, limit=limit)


@gaps.command("todo", examples=["nacre gaps todo 5f0c2a4d", "nacre gaps todo 5f0c2a4d --importance 8"])
@argument("unanswered-todo", "reference", metavar="ID")
@option("unanswered-todo", "importance")
@click.pass_obj
def todo(run: Run, reference: str, importance: int) -> None:
    """Store a todo to write the answer down."""
    answer_todo(run, perform(run, "unanswered-todo", reference=reference, importance=importance))


@gaps.command("dismiss", examples=["nacre gaps dismiss 5f0c2a4d"])
@argument("unanswered-dismiss", "reference", metavar="ID")
@click.pass_obj
def dismiss(run: Run, reference: str) -> None:
    """Hide a gap in all its wordings."""
    gap: UnansweredQuestion = perform(run, "unanswered-dismiss", reference=reference)
    run.answer({"dismissed": _record(gap)}, lambda paper: paper.line("Dismissed: ", bold(gap.question), hang=2))


def _list(run: Run, *, days: int, project: str | None, min_times: int, limit: int) -> None:
    found: Unanswered = ask(run, "unanswered", days=days, project=project, min_times=min_times, limit=limit)
    record = {
        "gaps": [_record(one) for one in found.gaps], "total": found.total, "closed": found.closed, "by": found.by,
        "days": days, "limit": limit,
    }  # fmt: skip
    has_log = run.settings.flag("traces.cases") and run.settings.whole("traces.keep_days") > 0
    is_narrowed = project is not None or min_times > 1
    run.answer(record, lambda paper: _render(paper, found, days=days, has_log=has_log, is_narrowed=is_narrowed))


def _record(gap: UnansweredQuestion) -> Record:
    """A question without an answer."""
    return {
        "gap": gap.id, "question": gap.question, "times": gap.times, "unsure": gap.unsure, "first": stamp(gap.first),
        "last": stamp(gap.last), "projects": list(gap.projects), "wordings": list(gap.wordings),
    }  # fmt: skip


def _render(paper: Paper, found: Unanswered, *, days: int, has_log: bool, is_narrowed: bool) -> None:
    """Each gap with how often it was asked, and in which words."""
    if not has_log:
        paper.line("Questions are not kept: traces.cases is off, or traces.keep_days is 0.", hang=2)
    if not found.gaps:
        paper.line(f"No unanswered question of the last {days} days{' matches' * is_narrowed}.")
    for gap in found.gaps:
        _render_gap(paper, gap)
    left = found.total - len(found.gaps)
    more = joined((f"{left} more" if left else "", f"{found.closed} answered since" if found.closed else ""), "; ")
    if more:
        paper.line(dim(f"{more[:1].upper()}{more[1:]}."))
    if found.gaps:
        paper.line(dim("nacre gaps todo ID stores a todo to write it down; nacre gaps dismiss ID hides it"), hang=2)


def _render_gap(paper: Paper, gap: UnansweredQuestion) -> None:
    paper.line(dim(gap.id), "  ", bold(passages.shorten(gap.question, _CHARACTERS)), hang=10)
    near = count(gap.unsure, "near miss", "near misses") if gap.unsure else ""
    facts = (f"asked {count(gap.times, 'time')}", near, f"last {when(gap.last)}", ", ".join(gap.projects))
    paper.line(dim(joined(facts)), indent=10)
    for wording in gap.wordings[:_WORDINGS_SHOWN]:
        paper.line(dim("also: "), passages.shorten(wording, _CHARACTERS), indent=10, hang=2)
    if len(gap.wordings) > _WORDINGS_SHOWN:
        paper.line(dim(f"and {count(len(gap.wordings) - _WORDINGS_SHOWN, 'more wording')}"), indent=10)
    paper.blank()
