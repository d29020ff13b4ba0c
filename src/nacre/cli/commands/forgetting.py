"""``nacre forget``."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import TEXT, command
from nacre.cli.options import MOMENT, project_slug
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.forgetting.requests import ForgetRequest
    from nacre.values.forgetting import ForgetPlan


@command(
    "forget",
    examples=[
        "nacre forget --match 'Jordan Example' --dry-run",
        "nacre forget --project acme-billing --before 2026-01-01",
        "nacre forget --memory 5f0c2a4d --yes",
    ],
)
@click.option("--session", "sessions", type=TEXT, multiple=True, metavar="ID", help="A session, with what it taught.")
@click.option("--memory", "memories", type=TEXT, multiple=True, metavar="ID", help="A memory, with what shows it.")
@click.option("--project", type=TEXT, help="All of a project up to now; . is the one of this folder.")
@click.option("--match", "text", type=TEXT, metavar="TEXT", help="Every turn and memory that says this.")
@click.option("--regex", is_flag=True, help="With --match: TEXT is a regular expression.")
@click.option("--before", type=MOMENT, help="What was said before that day; with --project, of that project.")
@click.option("--examples", is_flag=True, help="The sessions that nacre quickstart brought along.")
@click.option("--dry-run", is_flag=True, help="Show what would go, and change nothing.")
@click.option("--list", "shows_list", is_flag=True, help="List what was forgotten.")
@click.option("--allow-again", type=TEXT, metavar="ID", help="Let what was forgotten be read again.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def forget(
    run: Run, /, shows_list: bool, allow_again: str | None, dry_run: bool, yes: bool, examples: bool, **wanted: Any
) -> None:
    """Delete for good: memories, the turns that show them, and all that was made of them.

    It cannot be undone. What is left in the ledger are ids and keyed hashes, so that neither a transcript that is read
    again nor another machine brings it back. To take memories out of recall and keep them, retire them.
    """
    from nacre.forgetting import forget as forgetting
    from nacre.setup import examples as example_sessions

    if shows_list:
        _list(run)
        return
    if allow_again:
        _allow(run, allow_again)
        return
    if examples and any(wanted.values()):
        raise click.UsageError("--examples goes alone", click.get_current_context())
    planned = (
        example_sessions.plan_to_forget(run.home) if examples
        else forgetting.plan(run.home, _request(run, **wanted))
    )  # fmt: skip
    if dry_run or planned.is_empty:
        _answer(run, planned, None)
        return
    _ask(run, planned, yes=yes)
    _answer(run, planned, (example_sessions if examples else forgetting).forget(run.home, planned))


def _request(
    run: Run, *, sessions: tuple[str, ...], memories: tuple[str, ...], project: str | None, text: str | None,
    regex: bool, before: datetime | None,
) -> ForgetRequest:  # fmt: skip
    from nacre.forgetting.requests import ForgetRequest

    return ForgetRequest(
        sessions=sessions, memories=memories, project=project_slug(run.home, project) if project else None,
        match=text, regex=regex, before=before,
    )  # fmt: skip


def _answer(run: Run, planned: ForgetPlan, report: object) -> None:
    from nacre.cli.records.forgetting import forget_record
    from nacre.cli.render.forgetting import render_forgotten, render_plan
    from nacre.values.forgetting import ForgetReport

    done = report if isinstance(report, ForgetReport) else None
    run.answer(
        forget_record(planned, done),
        lambda paper: render_forgotten(paper, done) if done else render_plan(paper, planned, is_dry=True),
    )


def _ask(run: Run, planned: ForgetPlan, *, yes: bool) -> None:
    from nacre.cli.render.forgetting import counts, render_plan

    if yes:
        return
    if not run.is_interactive:
        raise click.UsageError(
            f"that deletes {counts(planned)} for good: look with --dry-run, then add --yes", click.get_current_context()
        )
    paper = run.paper(stderr=True)
    render_plan(paper, planned)
    click.echo(paper.text(), nl=False, err=True)
    run.confirm(f"Delete {counts(planned)} for good?")


def _list(run: Run) -> None:
    from nacre.cli.records.forgetting import forgotten_record
    from nacre.cli.render.forgetting import render_forgotten_list
    from nacre.forgetting import forget as forgetting

    found = forgetting.forgotten(run.home)
    run.answer(
        {"forgotten": [forgotten_record(one) for one in found]}, lambda paper: render_forgotten_list(paper, found)
    )


def _allow(run: Run, reference: str) -> None:
    from nacre.cli.paper import Paper, bold, dim
    from nacre.cli.records.forgetting import forgotten_record
    from nacre.forgetting import forget as forgetting

    allowed = forgetting.allow_again(run.home, reference)

    def render(paper: Paper) -> None:
        paper.line(bold("Allowed again"), f": {reference}")
        paper.line(dim("nacre ingest reads it where a transcript still tells it"), indent=2)

    run.answer({"allowed": forgotten_record(allowed)}, render)
