"""``nacre mcp``."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre import settings as nacre_settings
from nacre.cli.command import command
from nacre.cli.run import Run
from nacre.link import start as link_start
from nacre.mcp import calling, stdio
from nacre.mcp import face as mcp_face
from nacre.values.actor import AN_AGENT
from nacre.watching import log

if TYPE_CHECKING:
    from nacre.mcp.face import Face
    from nacre.settings import Settings


@command("mcp", examples=["nacre mcp", "nacre mcp --tools all"])
@click.option("--home", type=click.Path(path_type=Path, file_okay=False), help="The home; else NACRE_HOME, ~/.nacre.")
@click.option(
    "--tools", type=click.Choice(["core", "all"]), help="Offer four tools, or all ten; else what mcp.tools is set to."
)
@click.option("--structured", is_flag=True, help="Answer with records, too: for programs rather than models.")
@click.pass_obj
def mcp(run: Run, home: Path | None, tools: str | None, structured: bool) -> None:
    """Serve memory to an agent, over the Model Context Protocol.

    Agents' tools start it by themselves, as a server over standard input and output; it ends with them. It works with
    the daemon where one runs, else by itself. nacre serve --http serves agents over HTTP.
    """
    face = _face(home, everything=tools, structured=structured)
    run.keeps_history = False

    if run.is_interactive:
        click.echo("Waiting for an agent's tool, whose settings name this command. Ctrl-D ends this.", err=True)
    stdio.serve(face, stdio.Wire.taken())


def _face(home: Path | None, *, everything: str | None, structured: bool) -> Face:
    settings = nacre_settings.load_settings(home)
    folder = None
    with contextlib.suppress(FileNotFoundError):  # the folder was deleted
        folder = str(Path.cwd())
    start = partial(_start_daemon, settings) if settings.flag("daemon.enabled") else None
    return mcp_face.Face(
        calling.HomeCalls(settings.home, agent=settings.actor.agent or AN_AGENT, start=start),
        everything=(everything or settings.text("mcp.tools")) == "all",
        structured=structured, folder=folder, session=settings.session,
        note=partial(_note, settings.home),
    )  # fmt: skip


def _start_daemon(settings: Settings) -> None:
    # By a process that ends at once: the daemon is no child of the server, which tools end with all its children.
    link_start.start_process(str(settings.home), settings.environ, "serve", "--on-demand")


def _note(home: Path, line: str) -> None:
    """Add a line to the log of a home that is there, if the disk takes it."""
    if home.is_dir():
        with contextlib.suppress(OSError):
            log.Log(home, "mcp").write(line)
