"""``nacre sessions summary``, ``tail`` and ``export``: what is asked of one session."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli.command import TEXT, command
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.cli.paper import Paper
    from nacre.views import SessionView

_STDOUT = "-"
_FORMS = ("markdown", "jsonl", "json")
_ENDINGS = {".md": "markdown", ".markdown": "markdown", ".jsonl": "jsonl", ".json": "json"}
_REFERENCE = click.argument("reference", metavar="[ID]", type=TEXT, required=False)


def session_asked(
    run: Run, reference: str | None, *, limit: int | None, first: int = 0, at_end: bool = False
) -> SessionView:
    """A session by its id or the beginning of it, else the last one of this folder; without a limit all its turns."""
    from nacre.cli.by_daemon import asked
    from nacre.sessions.requests import SessionRequest

    view: SessionView = asked(
        run,
        "session",
        SessionRequest(reference=reference, first=first, limit=limit, at_end=at_end, folder=str(Path.cwd())),
    )
    return view


@command(
    "summary",
    examples=[
        "nacre sessions summary",
        "nacre sessions summary 7f3a1c2d 019fc8be-3658",
        "nacre sessions summary claude-code:7f3a1c2d --json",
    ],
)
@click.argument("references", metavar="[ID]...", type=TEXT, nargs=-1)
@click.pass_obj
def summary(run: Run, references: tuple[str, ...]) -> None:
    """Sum up sessions: what was asked, how it ended, what was left, what was done.

    ID is the session's id at its tool, or the beginning of it; without one, the last session of this folder. No model
    is asked: the words are yours and the agent's own, none that draw on text from outside.
    """
    from nacre.cli.by_daemon import asked
    from nacre.cli.records.sessions import summary_record
    from nacre.cli.render.summary import render_summary
    from nacre.sessions.requests import SessionRequest

    here, named = str(Path.cwd()), dict.fromkeys(references or (None,))
    reports = [asked(run, "session-summary", SessionRequest(reference=one, folder=here)) for one in named]

    def render(paper: Paper) -> None:
        for number, report in enumerate(reports):
            if number:
                paper.blank()
                paper.line("─" * 40)
                paper.blank()
            render_summary(paper, report)

    run.answer({"summaries": [summary_record(report) for report in reports]}, render)


@command(
    "tail",
    examples=["nacre sessions tail", "nacre sessions tail 7f3a1c2d -n 3", "nacre sessions tail --follow"],
)
@_REFERENCE
@click.option("--limit", "-n", type=click.IntRange(1), default=6, show_default=True, help="Turns at most.")
@click.option("--follow", "-f", is_flag=True, help="Go on as the session does, until Ctrl-C.")
@click.option("--full", is_flag=True, help="Do not shorten long turns.")
@click.pass_obj
def tail(run: Run, reference: str | None, limit: int, follow: bool, full: bool) -> None:
    """Show the end of a session.

    ID is the session's id at its tool, or the beginning of it; without one, the last session of this folder. With
    --follow its transcript is read again whenever it grows.
    """
    from nacre.cli.records.sessions import session_view_record
    from nacre.cli.render.sessions import render_facts, render_turns

    if follow and run.as_json:
        raise click.UsageError("--follow does not end, and --json is one answer: leave one of them out")
    if follow:
        _follow(run, reference, limit, full=full)
        return
    view = session_asked(run, reference, limit=limit, at_end=True)
    first = view.turns[0].seq if view.turns else 0

    def render(paper: Paper) -> None:
        render_facts(paper, view)
        render_turns(paper, view.turns, full=full)

    run.answer(session_view_record(view, first), render)


def _follow(run: Run, reference: str | None, limit: int, *, full: bool) -> None:
    from nacre.cli.render.sessions import render_turns
    from nacre.sessions.follow import follow_session

    try:
        for turns in follow_session(run.home, reference, limit=limit):
            paper = run.paper()
            render_turns(paper, turns, full=full)
            click.echo(f"\n{paper.text()}", nl=False)
            sys.stdout.flush()
    except KeyboardInterrupt:
        click.echo(err=True)


@command(
    "export",
    examples=[
        "nacre sessions export > session.md",
        "nacre sessions export 7f3a1c2d --output talk.jsonl",
        "nacre sessions export 7f3a1c2d --format json | jq .turns[].text",
    ],
)
@_REFERENCE
@click.option(
    "--format", "form", type=click.Choice(_FORMS),
    help="Without it, the ending of the file decides; without a file it is markdown.",
)  # fmt: skip
@click.option(
    "--output", "-o", type=click.Path(path_type=Path, allow_dash=True), default=Path(_STDOUT), show_default=True,
    help="The file to write; - is standard output.",
)  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite the file.")
@click.pass_obj
def export_session(run: Run, reference: str | None, form: str | None, output: Path, force: bool) -> None:
    """Write one session to a file that others can read.

    ID is the session's id at its tool, or the beginning of it; without one, the last session of this folder. Secrets
    are taken out once more; who said what, and what draws on text from outside, stays visible.
    """
    from nacre.platform import private_files

    to_stdout = str(output) == _STDOUT
    if to_stdout and run.as_json:
        raise click.UsageError("standard output can hold the session or the report: --output FILE, or --format json")
    chosen = form or _ENDINGS.get(output.suffix.lower(), "markdown")
    view = session_asked(run, reference, limit=None)
    data = "".join(f"{line}\n" for line in _lines(view, chosen)).encode("utf-8", "replace")
    if to_stdout:
        click.echo(data, nl=False)
        return
    path = output.expanduser().absolute()
    if path.exists() and not force and run.is_interactive:
        run.confirm(f"{path} exists. Overwrite it?")
        force = True
    with private_files.new_file(path, overwrite=force) as file:
        file.write(data)
    record = {
        "path": str(path), "format": chosen, "session": view.session.session.id, "turns": len(view.turns),
        "bytes": len(data),
    }  # fmt: skip
    run.answer(record, lambda paper: paper.line(f"Wrote {len(view.turns):,} turns to {path}"))


def _lines(view: SessionView, form: str) -> Iterable[str]:
    from nacre.cli.paper import unsteered
    from nacre.cli.records.sessions import session_facts_record, session_view_record, turn_record
    from nacre.portability.readable_export import session_lines

    if form == "markdown":
        return session_lines(view.session, [item.turn for item in view.turns], title=view.opening)
    if form == "json":
        return [unsteered(json.dumps(session_view_record(view, 0), ensure_ascii=False, default=str))]
    records = [session_facts_record(view), *(turn_record(item) for item in view.turns)]
    return [unsteered(json.dumps(record, ensure_ascii=False, default=str)) for record in records]
