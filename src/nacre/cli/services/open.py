"""``nacre open``: the dashboard, in a browser that is the owner's from then on."""

from __future__ import annotations

import sys
import time
import webbrowser
from collections.abc import Mapping

import click

from nacre.cli.command import command
from nacre.cli.paper import Paper, dim
from nacre.cli.run import Run
from nacre.errors import OwnerOnly, Unavailable
from nacre.home.lookup import is_empty
from nacre.link.client import Away, Refused, ask
from nacre.link.start import start_daemon
from nacre.web.browsers import Browsers

_SECONDS = 30.0
_PAUSE_SECONDS = 0.1


@command("open", examples=["nacre open", "nacre open --print", "nacre open --forget"])
@click.option("--print", "only_prints", is_flag=True, help="Print the address, and open no browser.")
@click.option("--forget", is_flag=True, help="End the access of every browser.")
@click.pass_obj
def open_dashboard(run: Run, only_prints: bool, forget: bool) -> None:
    """Open the dashboard in your browser.

    The address works once, within a minute; then that browser is yours for 90 days. The daemon serves it at this
    machine alone, and is started where it does not run; a new home asks first whether to read your agents' sessions.
    An agent cannot open it.
    """
    run.settings.actor.require_owner("nacre open")
    if forget:
        were = Browsers(run.settings.home).forget()
        told = "No browser has access any more." if were else "No browser had access."
        run.answer({"forgotten": were}, lambda paper: paper.line(told))
        return
    address = _address(run)
    is_open = not only_prints and _has_screen(run.settings.environ) and webbrowser.open(address)

    def render(paper: Paper) -> None:
        paper.verbatim(address)
        if not only_prints:
            paper.line(dim("Your browser shows it." if is_open else "Open this address in a browser, within a minute."))

    run.answer({"address": address, "opened": is_open}, render)


def _has_screen(environ: Mapping[str, str]) -> bool:
    """Whether a browser with windows can be shown: those of terminals run no dashboard."""
    return sys.platform in ("darwin", "win32") or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def _may_read(run: Run) -> bool:
    """Return True if the daemon may read the agents' sessions: a person must have agreed to the first reading."""
    if run.home.sessions.last_ingest() or not is_empty(run.home):
        return True
    if run.is_interactive and click.confirm("Read your agents' sessions on this machine?", default=True, err=True):
        return True
    run.warnings.append("no sessions are read yet: nacre ingest reads them")
    return False


def _address(run: Run) -> str:
    """What the daemon says; one is started where none answers. Raises OwnerOnly, Unavailable."""
    home, until = str(run.settings.home), time.monotonic() + _SECONDS
    is_started = False
    while True:
        try:
            return str(ask(home, "open", {}, seconds=_SECONDS))
        except Refused as refused:
            kind = OwnerOnly if refused.error.get("code") == OwnerOnly.code else Unavailable
            raise kind(str(refused), hint=refused.error.get("hint")) from None
        except Away as away:
            if time.monotonic() > until:
                raise Unavailable("no daemon answers", hint="nacre serve logs tells why") from away
        if not is_started:
            is_started = True
            start_daemon(home, run.settings.environ, *(() if _may_read(run) else ("--no-watch",)))
        time.sleep(_PAUSE_SECONDS)
