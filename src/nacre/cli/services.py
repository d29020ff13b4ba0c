"""``nacre open``, ``mcp`` and ``statusline``."""

from __future__ import annotations

import contextlib
import sys
import time
import webbrowser
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre import settings as nacre_settings
from nacre.base import link
from nacre.base.environment import environment
from nacre.base.link import DaemonAwayError, DaemonRefusedError, ask, start_daemon
from nacre.base.log import Log
from nacre.cli.command import Paper, Run, command
from nacre.cli.options import flag
from nacre.errors import OwnerOnlyError, UnavailableError
from nacre.home.location import is_empty
from nacre.serve import browsers, mcp_protocol
from nacre.serve import mcp as calling
from nacre.serve.statusline import line as statusline_line
from nacre.serve.statusline import look
from nacre.values.memory import AN_AGENT

if TYPE_CHECKING:
    pass

# ----------------------------------------------------------------------------
# ``nacre open``.


_SECONDS = 30.0
_PAUSE_SECONDS = 0.1


@command("open", examples=["nacre open", "nacre open --print", "nacre open --forget"])
@flag("--print", "Print the address instead of opening a browser.", "only_prints")
@flag("--forget", "Revoke the access of all browsers.")
def open_dashboard(run: Run, only_prints: bool, forget: bool) -> None:
    """Open the dashboard in your browser.

    The dashboard's address works once, for one minute. The browser that opens the address has access for 90 days. The
    daemon serves the dashboard on this machine only, and is started if necessary. In a new home, the command first asks
    if it can read your agents' sessions. Agents cannot open the dashboard.
    """
    run.settings.actor.require_owner("nacre open")
    if forget:
        number = browsers.Browsers(run.settings.home).forget()
        message = "All browsers lost their access." if number else "No browser had access."
        run.answer({"forgotten": number}, Paper.line, message)
        return
    address = _address(run)
    is_open = not only_prints and _has_screen(run.settings.environ) and webbrowser.open(address)

    def render(paper: Paper) -> None:
        paper.verbatim(address)
        if not only_prints:
            paper.note(
                "Opened in your browser."
                if is_open
                else "Open this address in a browser, within a minute."
            )

    run.answer({"address": address, "opened": is_open}, render)


def _has_screen(environ: Mapping[str, str]) -> bool:
    # Browsers in a terminal cannot show the dashboard.
    return sys.platform in ("darwin", "win32") or bool(
        environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
    )


def _may_read(run: Run) -> bool:
    if run.home.sessions.last_ingest() or not is_empty(run.home):
        return True
    # Before the first reading, a person must agree.
    if run.is_interactive and click.confirm(
        "Read your agents' sessions on this machine?", default=True, err=True
    ):
        return True
    run.warnings.append("no sessions were read yet: run nacre ingest")
    return False


def _address(run: Run) -> str:
    home, until = str(run.settings.home), time.monotonic() + _SECONDS
    is_started = False
    while True:
        try:
            return str(ask(home, "open", {}, seconds=_SECONDS))
        except DaemonRefusedError as refused:
            kind = (
                OwnerOnlyError
                if refused.error.get("code") == OwnerOnlyError.code
                else UnavailableError
            )
            raise kind(str(refused), hint=refused.error.get("hint")) from None
        except DaemonAwayError as away:
            if time.monotonic() > until:
                raise UnavailableError(
                    "the daemon does not answer", hint="nacre serve logs shows the reason"
                ) from away
        if not is_started:
            is_started = True
            start_daemon(home, run.settings.environ, *(() if _may_read(run) else ("--no-watch",)))
        time.sleep(_PAUSE_SECONDS)


# ----------------------------------------------------------------------------
# ``nacre mcp``.


@command("mcp", examples=["nacre mcp", "nacre mcp --tools all"])
@click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="The home [default: NACRE_HOME or ~/.nacre].",
)
@click.option(
    "--tools",
    type=click.Choice(["core", "all"]),
    help="Offer four tools or all ten [default: the setting mcp.tools].",
)
@flag("--structured", "Also return structured results, for programs.")
def mcp(run: Run, home: Path | None, tools: str | None, structured: bool) -> None:
    """Serve memory to an agent, over the Model Context Protocol.

    Agents start and stop this command, and talk to it over standard input and output. The command
    uses the daemon if it is running. nacre serve --http serves agents over HTTP.
    """
    face = _face(home, everything=tools, structured=structured)
    run.keeps_history = False

    if run.is_interactive:
        click.echo(
            "Waiting for an agent. Agents start this command. Press Ctrl-D to end it.", err=True
        )
    mcp_protocol.serve(face, mcp_protocol.Wire.take_over())


def _face(home: Path | None, *, everything: str | None, structured: bool) -> calling.Face:
    settings = nacre_settings.load_settings(home)
    folder = None
    with contextlib.suppress(FileNotFoundError):  # the folder was deleted
        folder = str(Path.cwd())
    # Started by a process that ends immediately, because agents stop this server with all its child processes.
    start = partial(link.start_process, settings.home, settings.environ, "serve", "--on-demand")
    return calling.Face(
        calling.HomeCalls(
            settings.home,
            agent=settings.actor.agent or AN_AGENT,
            start=start if settings.flag("daemon.enabled") else None,
        ),
        everything=(everything or settings.text("mcp.tools")) == "all",
        structured=structured,
        folder=folder,
        session=settings.session,
        note=partial(_note, settings.home),
    )


def _note(home: Path, line: str) -> None:
    if home.is_dir():
        with contextlib.suppress(OSError):
            Log(home, "mcp").write(line)


# ----------------------------------------------------------------------------
# ``nacre statusline``. Without options, :mod:`nacre.serve.statusline` prints the line, and this module is not loaded.


_SECONDS_STATUSLINE = 1.0


@command(
    "statusline",
    examples=["nacre statusline", """echo '{"session_id": "7f3a1c2d"}' | nacre statusline"""],
)
def statusline(run: Run) -> None:
    """Print a summary of the session for Claude Code's status line.

    For example, "nacre: 3 told, 12 to review" means that the session was given 3 memories, and that
    12 reviews are pending. Set it in ~/.claude/settings.json:
    "statusLine": {"type": "command", "command": "nacre statusline"}
    """
    summary = look(environment(), _SECONDS_STATUSLINE)
    run.answer({"told": 0, "to_review": 0} | summary, Paper.line, statusline_line(summary))
