"""``nacre context``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nacre.cli.command import TEXT, command
from nacre.cli.options import NO_DAEMON
from nacre.cli.run import Run
from nacre.values.context import ContextBlock, ContextRequest, Moment, Occasion, Part

_FOLDER = click.Path(file_okay=False, path_type=Path)
_PART = click.Choice([part.value for part in Part], case_sensitive=False)
_MOMENT = click.Choice([moment.value for moment in Moment], case_sensitive=False)
_OCCASION = click.Choice([occasion.value for occasion in Occasion], case_sensitive=False)


@command(
    "context",
    examples=[
        "nacre context",
        'nacre context "why did we leave sqlite?" --explain',
        "nacre context --output CONTEXT.md --budget 1500",
    ],
)
@click.argument("prompt", nargs=-1, type=TEXT)
@click.option("--prompt", "asked", type=TEXT, help="The same; - reads it from standard input.")
@click.option("--moment", type=_MOMENT, help="As a session starts, or with a prompt; by default the latter with one.")
@click.option("--folder", type=_FOLDER, help="Where the agent works; by default, here.")
@click.option("--session", type=TEXT, help="As <tool>:<id>: what it was given already is not told again.")
@click.option("--occasion", type=_OCCASION, default=Occasion.STARTUP.value, show_default=True, help="Why it starts.")
@click.option("--budget", type=click.IntRange(0), help="Tokens at most.")
@click.option("--part", "parts", type=_PART, multiple=True, help="Only this part; may be given again.")
@click.option("--lexical", is_flag=True, help="By words alone, as a hook does where no daemon runs.")
@click.option("--explain", is_flag=True, help="Why each thing is told, and what was left out.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it there, where it changed.")
@NO_DAEMON
@click.pass_obj
def context(  # noqa: PLR0913 - one parameter an option
    run: Run, prompt: tuple[str, ...], asked: str | None, moment: str | None, folder: Path | None,
    session: str | None, occasion: str, budget: int | None, parts: tuple[str, ...], lexical: bool, explain: bool,
    output: Path | None, no_daemon: bool,
) -> None:  # fmt: skip
    """Tell an agent what it should know, at its start or with a prompt.

    Prints nothing where nothing is worth telling. With --output it is a file for agents that only read files.
    """
    from nacre.cli.records.contexts import context_record
    from nacre.cli.render.contexts import render_context, render_explained
    from nacre.context.session_state import write_state
    from nacre.context.snapshot import write_snapshot

    text = sys.stdin.read() if asked == "-" else asked or " ".join(prompt)
    when = Moment.PROMPT if text.strip() else Moment.START
    request = ContextRequest(
        Moment(moment) if moment else when, Occasion(occasion), text,
        str((folder or Path.cwd()).absolute()), session, budget, tuple(Part(part) for part in parts), lexical,
    )  # fmt: skip
    block = _built(run, request, by_itself=no_daemon)
    changed = write_snapshot(output, block) if output else None
    record = {**context_record(block), "output": str(output) if output else None, "changed": changed}
    if explain:
        run.answer(record, lambda paper: render_explained(paper, block))
    else:
        run.answer(record, lambda paper: render_context(paper, block, output=output, changed=changed))
    write_state(run.settings.home, session, block.state)


def _built(run: Run, request: ContextRequest, *, by_itself: bool) -> ContextBlock:
    from nacre.cli.by_daemon import by_daemon

    found = None if by_itself else by_daemon(run, "context", request, ContextBlock)
    if found:
        return found
    from nacre.context.on_request import context_for  # 150 ms that the daemon spares

    return context_for(run.home, request)
