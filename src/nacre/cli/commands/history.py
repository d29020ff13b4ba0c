"""``nacre log``, ``nacre diff``, ``nacre undo`` and ``nacre commit``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from nacre.cli.command import TEXT, command
from nacre.cli.options import EVERYTHING, JSON_LINES, pages, project_asked
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.views import Listed


@command("log", examples=["nacre log", "nacre log --memory 5f0c2a4d", "nacre log --project . --limit 20"])
@click.option("--memory", type=TEXT, help="Only what was done to this memory: its id or subject.")
@click.option("--project", type=TEXT, help="Only what was done in this project; . is the one of this folder.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=30, show_default=True, help="So many at most.")
@EVERYTHING
@JSON_LINES
@click.pass_obj
def log(run: Run, memory: str | None, project: str | None, limit: int, everything: bool, as_lines: bool) -> None:
    """List what was done to your memories, the newest first.

    Each line is an operation: when, what, to which memory, its id, and why. What no commit holds yet is marked with *.
    """
    from nacre.cli.by_daemon import asked
    from nacre.cli.records.history import operation_record
    from nacre.cli.render.history import render_log
    from nacre.history.requests import LogRequest

    slug, most = project_asked(run, project), None if everything else limit

    def page(size: int, at: int) -> tuple[Sequence[Listed], bool]:
        found = asked(run, "log", LogRequest(reference=memory, project=slug, limit=size, offset=at))
        return found, len(found) == size

    found = pages(page, most, 0)
    if as_lines:
        run.answer_lines(operation_record(one.operation, one.memories) for one in found)
        return
    listed = list(found)
    run.answer(
        {"operations": [operation_record(one.operation, one.memories) for one in listed], "limit": most},
        lambda paper: render_log(paper, listed, with_git=run.settings["git.enabled"]),
    )


@command("diff", examples=["nacre diff", "nacre diff 5f0c2a4d", 'nacre diff "Database of the billing service"'])
@click.argument("reference", metavar="[OPERATION|MEMORY]", required=False, type=TEXT)
@click.pass_obj
def diff(run: Run, reference: str | None) -> None:
    """Show what an operation changed.

    Without an id it is the last one; for a memory, the last one on it.
    """
    from nacre.cli.by_daemon import asked
    from nacre.cli.records.history import diff_record
    from nacre.cli.render.history import render_diff
    from nacre.history.requests import DiffRequest

    answer = asked(run, "diff", DiffRequest(reference=reference))
    operation, found = answer.operation, answer.differences
    run.answer(diff_record(operation, found), lambda paper: render_diff(paper, operation, found))


@command("undo", examples=["nacre undo 5f0c2a4d", "nacre undo 5f0c2a4d --dry-run", "nacre undo 5f0c2a4d --yes"])
@click.argument("reference", metavar="OPERATION", type=TEXT)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--force", is_flag=True, help="Keep both versions of what was changed since in the same place.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def undo(run: Run, reference: str, dry_run: bool, force: bool, yes: bool) -> None:
    """Bring back what an operation changed.

    Memories it made are retired, what it changed is as it was before, and what was changed since stays. An undo is an
    operation, too: it can be undone. On a terminal it asks first.
    """
    from nacre.cli.records.history import undo_record
    from nacre.cli.render.history import render_undo
    from nacre.history import undo as undoing
    from nacre.indexing.vectors import embed_memories

    if dry_run or (run.is_interactive and not yes):
        planned = undoing.plan_undo(run.home, reference, force=force)
        if dry_run:
            run.answer(undo_record(planned), lambda paper: render_undo(paper, planned))
            return
        paper = run.paper(stderr=True)
        render_undo(paper, planned)
        click.echo(paper.text(), nl=False, err=True)
        if not planned.conflicts and planned.steps:
            run.confirm("Undo?")
    done = undoing.undo(run.home, reference, force=force)
    run.answer(undo_record(done), lambda paper: render_undo(paper, done))
    run.afterwards.append(lambda: embed_memories(run.home))


@command("commit", examples=["nacre commit", "nacre commit --json"])
@click.option("--quiet", is_flag=True, help="Say nothing; where another process commits already, leave it to that one.")
@click.pass_obj
def commit(run: Run, quiet: bool) -> None:
    """Put what was done into the vault's git history now.

    nacre does so by itself, in the background: a minute after an operation, with the next command. Files that you put
    into the vault yourself are committed too, unless git ignores them.
    """
    from nacre.cli.records.history import committed_record
    from nacre.cli.render.history import render_committed
    from nacre.history import commit as committing
    from nacre.memories.scan import scan

    run.keeps_history = False
    if quiet:
        committing.commit_quietly(run.home)
        return
    scan(run.home)
    done = committing.commit_operations(run.home)
    run.answer(committed_record(done), lambda paper: render_committed(paper, done))
