"""``nacre mcp``."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli.command import TEXT, command
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.mcp.face import Face
    from nacre.settings import Settings


@command("mcp", examples=["nacre mcp", "nacre mcp --tools all", "nacre mcp --http 8765 --token-file ~/.nacre/token"])
@click.option("--home", type=click.Path(path_type=Path, file_okay=False), help="The home; else NACRE_HOME, ~/.nacre.")
@click.option(
    "--tools", type=click.Choice(["core", "all"]), help="Offer four tools, or all ten; else what mcp.tools is set to."
)
@click.option("--structured", is_flag=True, help="Answer with records, too: for programs rather than models.")
@click.option("--http", metavar="[HOST:]PORT", type=TEXT, help="Serve streamable HTTP there instead of one client.")
@click.option(
    "--token-file", type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="With --http: a file with the token that clients have to send.",
)  # fmt: skip
@click.pass_obj
def mcp(
    run: Run, home: Path | None, tools: str | None, structured: bool, http: str | None, token_file: Path | None
) -> None:  # fmt: skip
    """Serve memory to an agent, over the Model Context Protocol.

    Agents' tools start it by themselves, as a server over standard input and output; it ends with them. It works with
    the daemon where one runs, else by itself.
    """
    if token_file and not http:
        raise click.UsageError("--token-file goes with --http")
    face = _face(home, everything=tools, structured=structured)
    run.keeps_history = False
    if http:
        _serve_http(face, http, token_file)
        return
    from nacre.mcp.stdio import Wire, serve

    if run.is_interactive:
        click.echo("Waiting for an agent's tool, whose settings name this command. Ctrl-D ends this.", err=True)
    serve(face, Wire.taken())


def _face(home: Path | None, *, everything: str | None, structured: bool) -> Face:
    from nacre.mcp.calling import HomeCalls
    from nacre.mcp.desk import session_in
    from nacre.mcp.face import Face
    from nacre.settings import load_settings

    settings = load_settings(home)
    folder = None
    with contextlib.suppress(FileNotFoundError):  # the folder was deleted
        folder = str(Path.cwd())
    start = partial(_start_daemon, settings) if settings["daemon.enabled"] else None
    return Face(
        HomeCalls(settings.home, start=start), everything=(everything or settings["mcp.tools"]) == "all",
        structured=structured, folder=folder, session=session_in(settings.environ),
        note=partial(_note, settings.home),
    )  # fmt: skip


def _start_daemon(settings: Settings) -> None:
    from nacre.link.starting import start_process

    # By a process that ends at once: the daemon is no child of the server, which tools end with all its children.
    start_process(str(settings.home), settings.environ, "serve", "--on-demand")


def _note(home: Path, line: str) -> None:
    """Add a line to the log of a home that is there, if the disk takes it."""
    from nacre.app.watching.log import Log

    if home.is_dir():
        with contextlib.suppress(OSError):
            Log(home, "mcp").write(line)


def _serve_http(face: Face, place: str, token_file: Path | None) -> None:
    import uvicorn  # few serve HTTP

    from nacre.mcp.http import LOOPBACK, PATH, app

    host, _, port = place.rpartition(":")
    host = host or LOOPBACK[0]
    if not port.isdigit():
        raise click.UsageError(f"{place!r} is no port", click.get_current_context())
    token = token_file.read_text(encoding="utf-8").strip() if token_file else None
    if token == "":
        raise click.UsageError(f"{token_file} is empty: write a token into it", click.get_current_context())
    is_local = host in LOOPBACK or host == "::1"
    if not is_local and not token:
        raise click.UsageError("beyond loopback a token is needed: --token-file FILE", click.get_current_context())
    served = app(face, token=token, hosts=() if is_local else (host,))
    click.echo(f"Serving on http://{host}:{port}{PATH}", err=True)
    uvicorn.run(served, host=host.strip("[]"), port=int(port), log_level="warning", access_log=False)
