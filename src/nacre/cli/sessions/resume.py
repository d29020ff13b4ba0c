"""``nacre resume``: a session is opened in its own tool, in the place of this process."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from nacre.cli.command import command
from nacre.cli.operations import ask
from nacre.cli.paper import dim
from nacre.cli.request_options import argument
from nacre.cli.run import Run
from nacre.cli.sessions.session import session_line_record, session_title
from nacre.errors import Unavailable

if TYPE_CHECKING:
    from nacre.views import Resumption


@command(
    "resume",
    examples=["nacre resume", "nacre resume 7f3a1c2d", "nacre resume rounding of the ledger --print"],
)
@argument("resume", "what", metavar="[ID|WORDS]...", nargs=-1)
@click.option("--print", "only_print", is_flag=True, help="Print the command, and open nothing.")
@click.pass_obj
def resume(run: Run, what: tuple[str, ...], only_print: bool) -> None:
    """Go on with a session in its own tool.

    ID is the session's id or the beginning of it; WORDS are those of its title, or of what was said in it. Without
    them it is the last session of this folder's project. It is opened in the folder where it worked: by claude
    --resume, codex resume, gemini --resume, copilot --resume, cursor-agent --resume or opencode --session.
    """
    found: Resumption = ask(run, "resume", what=" ".join(what) or None, folder=str(Path.cwd()))
    if run.as_json or only_print:
        record = {**session_line_record(found.line), "command": list(found.command), "folder": found.folder}
        run.answer(record, lambda paper: paper.verbatim(_typed(found)))
        return
    if not (run.is_interactive and sys.stdout.isatty()):
        raise click.UsageError("not interactive: pass --print")
    program = shutil.which(found.command[0])
    if program is None:
        raise Unavailable(f"there is no {found.command[0]} on the PATH", hint=f"where it is: {_typed(found)}")
    run.show(lambda paper: paper.line(*session_title(found.line), dim(f"  {shlex.join(found.command)}"), hang=2))
    run.close()
    _become(run, program, found)


def _typed(found: Resumption) -> str:
    """As a person would type it."""
    typed = shlex.join(found.command)
    return f"cd {shlex.quote(found.folder)} && {typed}" if found.folder else typed


def _become(run: Run, program: str, found: Resumption) -> NoReturn:
    """Go on as the tool. Raises OSError."""
    if found.folder:
        os.chdir(found.folder)
    if run.umask is not None:
        os.umask(run.umask)
    os.execv(program, found.command)  # noqa: S606 - the command of the adapter, with an id that cannot be an option
