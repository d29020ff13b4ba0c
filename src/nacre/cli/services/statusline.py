"""``nacre statusline``, where more than the line is asked for: :mod:`nacre.hooks.statusline` prints that by itself."""

from __future__ import annotations

import click

from nacre.cli.command import command
from nacre.cli.run import Run
from nacre.hooks.statusline import line, look
from nacre.platform.environment import environment

_SECONDS = 1.0


@command("statusline", examples=["nacre statusline", """echo '{"session_id": "7f3a1c2d"}' | nacre statusline"""])
@click.pass_obj
def statusline(run: Run) -> None:
    """Print a line for the status line of Claude Code.

    "nacre: 3 told, 12 to review" are the memories that the session was given, and what waits for you. It is set in
    ~/.claude/settings.json: "statusLine": {"type": "command", "command": "nacre statusline"}
    """
    found = look(environment(), _SECONDS)
    run.answer({"told": 0, "to_review": 0} | found, lambda paper: paper.line(line(found)))
