"""``nacre serve``: the daemon."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import click

from nacre.cli.command import DefaultGroup
from nacre.cli.paper import bold, dim
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.settings import Settings


@click.group(
    "serve", cls=DefaultGroup,
    examples=["nacre serve", "nacre serve status", "nacre serve stop"],
)  # fmt: skip
@click.option("--on-demand", is_flag=True, help="In the background, until nobody asks any more; does not wait.")
@click.option("--no-watch", is_flag=True, help="Do not follow your agents' sessions.")
@click.option("--log", is_flag=True, hidden=True, help="Write into the home's logs/daemon.log, and end when idle.")
@click.pass_context
def serve(ctx: click.Context, on_demand: bool, no_watch: bool, log: bool) -> None:
    """Hold memory and model warm for hooks, agents and the command line.

    It answers on a socket that only you can use, and follows your agents' sessions as nacre watch does. One serves a
    home; hooks start it where it is needed. It runs until Ctrl-C, or nacre serve stop.
    """
    if ctx.invoked_subcommand:
        return
    run: Run = ctx.obj
    if on_demand:
        _start_in_background(run.settings, watches=not no_watch)
        return
    _serve(run, watches=not no_watch, to_log=log)


def _serve(run: Run, *, watches: bool, to_log: bool) -> None:
    from nacre.app.context import open_context
    from nacre.app.watching.log import Log
    from nacre.cli.installed import installed_version
    from nacre.daemon.running import Daemon, DaemonOptions
    from nacre.ids import utc_now
    from nacre.settings import load_settings

    settings = run.settings
    log = Log(settings.home, "daemon") if to_log else None

    def tell(line: str) -> None:
        if log:
            log.write(f"{utc_now():%Y-%m-%d %H:%M:%S}  {line}")
        else:
            click.echo(line)

    stop = threading.Event()
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: stop.set())
    run.keeps_history = False
    idle = settings["daemon.idle_minutes"] if to_log else None
    options = DaemonOptions(idle, watches and settings["daemon.watch"], installed_version())
    Daemon(settings.home, lambda: open_context(load_settings(settings.home)), options, tell).run(stop)


def _start_in_background(settings: Settings, *, watches: bool) -> None:
    arguments = [sys.executable, "-m", "nacre", "serve", "--log", *([] if watches else ["--no-watch"])]
    environ = {**settings.environ, "NACRE_HOME": str(settings.home)}
    subprocess.Popen(
        arguments, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True, cwd="/" if sys.platform != "win32" else None,
    )  # fmt: skip


@serve.command("status", examples=["nacre serve status"])
@click.pass_obj
def status(run: Run) -> None:
    """Tell whether a daemon serves this home, and since when."""
    from nacre.daemon.running import greet

    told = greet(run.settings.home)
    record = {"running": told is not None, **(told or {})}
    if told is None:
        run.answer(
            record, lambda paper: paper.line(bold("No daemon serves this home."), dim("  nacre serve starts one"))
        )
        return
    run.answer(
        record,
        lambda paper: paper.facts(
            (
                ("process", str(told["pid"])), ("version", str(told["version"])),
                ("runs for", f"{told['seconds']} s"), ("follows sessions", "yes" if told["watches"] else "no"),
            ),
            indent=2,
        ),
    )  # fmt: skip


@serve.command("stop", examples=["nacre serve stop"])
@click.pass_obj
def stop(run: Run) -> None:
    """Let the daemon finish what it is at, and end it."""
    from nacre.daemon.running import ask_to_stop, greet

    was_there = greet(run.settings.home) is not None
    ended = ask_to_stop(run.settings.home) if was_there else False
    told = "Ended." if ended else "It is still at work." if was_there else "No daemon serves this home."
    run.answer({"ended": ended}, lambda paper: paper.line(told))
