"""``nacre did`` and ``nacre fix``: what agents did, and what came of it."""

from __future__ import annotations

from datetime import datetime

import click

from nacre.cli.command import TEXT, command
from nacre.cli.options import MOMENT, OFFSET, limit_option, project_asked, read_content
from nacre.cli.run import Run


@command(
    "did",
    examples=[
        "nacre did src/billing/retry.py",
        "nacre did docs --since 2w --project .",
        "nacre did Makefile --reads --commands --json",
    ],
)
@click.argument("path", type=TEXT)
@limit_option(10, "Changes")
@OFFSET
@click.option("--reads", is_flag=True, help="Also when it was only read.")
@click.option("--commands", is_flag=True, help="Also commands that name it.")
@click.option("--tool", type=TEXT, help="Only sessions with this tool, e.g. claude-code.")
@click.option("--project", type=TEXT, help="Only this project; . is the one of this folder.")
@click.option("--since", type=MOMENT, help="From then on: 2026-11-20, 3d, 2w, yesterday, march.")
@click.option("--until", type=MOMENT, help="Before then.")
@click.pass_obj
def did(  # noqa: PLR0913 - one parameter an option
    run: Run, path: str, limit: int, offset: int, reads: bool, commands: bool, tool: str | None, project: str | None,
    since: datetime | None, until: datetime | None,
) -> None:  # fmt: skip
    """Tell who changed a file, when and why.

    PATH is a file or folder, as you would name it: src/app.py finds it in whatever folder agents worked.
    """
    from nacre.cli.by_daemon import asked, is_empty
    from nacre.cli.records.deeds import history_record
    from nacre.cli.render.deeds import render_history
    from nacre.sessions.requests import DidQuery
    from nacre.values.filters import DeedFilter

    slug = project_asked(run, project)
    wanted = DeedFilter(project=slug, tool=tool, since=since, until=until)
    history = asked(
        run, "did", DidQuery(path=path, wanted=wanted, reads=reads, commands=commands, limit=limit, offset=offset)
    )
    empty = not history.changes and is_empty(run)
    run.answer(
        history_record(history, offset), lambda paper: render_history(paper, history, offset=offset, empty=empty)
    )


@command(
    "fix",
    examples=[
        "nacre fix \"ModuleNotFoundError: No module named 'yaml'\"",
        "npm run build 2>&1 | nacre fix -",
        'nacre fix "connection refused" --project . --since 2w',
    ],
)
@click.argument("error", nargs=-1, type=TEXT)
@limit_option(3, "Errors")
@click.option("--tool", type=TEXT, help="Only sessions with this tool, e.g. claude-code.")
@click.option("--project", type=TEXT, help="Only this project; . is the one of this folder.")
@click.option("--since", type=MOMENT, help="From then on: 2026-11-20, 3d, 2w, yesterday, march.")
@click.pass_obj
def fix(
    run: Run, error: tuple[str, ...], limit: int, tool: str | None, project: str | None, since: datetime | None
) -> None:
    """Tell what was tried against an error before, and what worked.

    ERROR is one line or a whole trace; - reads it from standard input.
    """
    from nacre.cli.by_daemon import asked, is_empty
    from nacre.cli.records.deeds import fix_record
    from nacre.cli.render.deeds import render_fix
    from nacre.sessions.requests import FixQuery
    from nacre.values.filters import DeedFilter

    slug = project_asked(run, project)
    query = FixQuery(
        error=read_content(" ".join(error)), wanted=DeedFilter(project=slug, tool=tool, since=since), limit=limit
    )
    result = asked(run, "fix", query)
    empty = not (result.troubles or result.lessons or result.talk) and is_empty(run)
    run.answer(fix_record(result), lambda paper: render_fix(paper, result, empty=empty))
