"""``nacre serve``: the daemon."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any

import click

from nacre import __version__
from nacre import settings as nacre_settings
from nacre.cli import crash
from nacre.cli.command import TEXT, DefaultGroup
from nacre.cli.paper import Paper, bold, dim, printable
from nacre.cli.run import Run
from nacre.cli.services.events import event_line
from nacre.cli.services.signals import stopped_by_signals
from nacre.daemon import greeting, running
from nacre.daemon import web as daemon_web
from nacre.errors import Unavailable
from nacre.home import home
from nacre.link import address, start
from nacre.platform import environment, ids, locks
from nacre.values.actor import Face
from nacre.watching import log as watching_log
from nacre.wiring import record

if TYPE_CHECKING:
    from nacre.daemon.greeting import Greeting
    from nacre.daemon.running import Voice
    from nacre.watching.watcher import WatchEvent

_DOOR = {"http": "daemon.http", "tls_cert": "web.tls_cert", "tls_key": "web.tls_key", "insecure": "web.insecure"}


@click.group(
    "serve", cls=DefaultGroup,
    places={"install": "services.watcher:install", "uninstall": "services.watcher:uninstall"},
    examples=["nacre serve", "nacre serve --http 8765", "nacre serve status"],
)  # fmt: skip
@click.option("--http", metavar="[HOST:]PORT", type=TEXT, help="Serve programs, agents and browsers there, too.")
@click.option("--no-token", is_flag=True, help="With --http, at this machine alone: ask no client for a token.")
@click.option("--tls-cert", metavar="FILE", type=TEXT, help="With --http: encrypt by this certificate (PEM).")
@click.option("--tls-key", metavar="FILE", type=TEXT, help="Its key, where that is in a file of its own.")
@click.option("--insecure", is_flag=True, help="With --http: serve other machines without encryption.")
@click.option("--no-watch", is_flag=True, help="Do not follow your agents' sessions.")
@click.option("--on-demand", is_flag=True, help="In the background, until nobody asks any more; does not wait.")
@click.option("--log", is_flag=True, help="Write into the home's logs/daemon.log instead of here.")
@click.option("--idle", is_flag=True, hidden=True, help="End when nobody asks, and give way to one that does not.")
@click.pass_context
def serve(
    ctx: click.Context, /, no_watch: bool, on_demand: bool, log: bool, idle: bool, **door: Any
) -> None:  # fmt: skip
    """Hold memory and model warm for hooks, agents and the command line.

    It answers on a socket that only you can use, and follows your agents' sessions as nacre watch does. One serves a
    home. Hooks start it where it does not run; nacre watcher install has the system start it with every login. It runs
    until Ctrl-C, or nacre serve stop.
    """
    if ctx.invoked_subcommand:
        return
    run: Run = ctx.obj
    for name in ("tls_cert", "tls_key"):
        door[name] = os.path.abspath(door[name]) if door[name] else None  # the daemon may work in another folder
    if on_demand:
        start.start_daemon(str(run.settings.home), run.settings.environ, *_words({**door, "no_watch": no_watch}))
        return
    _serve(run, door, watches=not no_watch, to_log=log, idle=idle)


def _words(options: Mapping[str, Any]) -> Iterator[str]:
    """Options as they are typed; those that are not given are left out."""
    for name, value in options.items():
        if value is not None and value is not False:
            yield f"--{name.replace('_', '-')}"
            if value is not True:
                yield value


def _serve(run: Run, door: Mapping[str, Any], *, watches: bool, to_log: bool, idle: bool) -> None:
    settings = said = run.settings
    for name, key in _DOOR.items():
        said = said if door[name] in (None, False) else said.having(key, door[name])
    options = running.DaemonOptions(
        idle, settings.number("daemon.idle_minutes"), watches and settings.flag("daemon.watch"),
        daemon_web.Door.of(said, said.text("daemon.http"), asks_token=not door["no_token"]), __version__,
    )  # fmt: skip
    stop = stopped_by_signals()
    run.keeps_history = False
    environ = environment.of_the_owner(settings.environ)
    daemon = running.Daemon(
        settings,
        lambda: home.open_home(replace(nacre_settings.load_settings(settings.home, environ), face=Face.DAEMON)),
        options,
        _voice(run, to_log),
    )
    why = daemon.run(stop)
    if why is running.End.UPGRADED and not idle:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this very program, anew
    if daemon.is_at_work:  # threads that do not end in time would keep the process
        sys.stdout.flush()
        os._exit(0)
    run.exit_code = 1 if why in (running.End.OUTDATED, running.End.GONE) else 0


def _voice(run: Run, to_log: bool) -> Voice:
    own: Callable[[str], None] = watching_log.Log(run.settings.home, "daemon").write if to_log else click.echo
    watchers: Callable[[str], None] = watching_log.Log(run.settings.home).write if to_log else click.echo
    form = "%Y-%m-%d %H:%M:%S" if to_log else "%H:%M:%S"

    def tell(line: str) -> None:
        with suppress(OSError):  # what cannot be told must not stop who answers
            own(printable(f"{ids.utc_now():{form}}  {crash.redactor_of(run).clean(line)}"))

    def watched(event: WatchEvent) -> None:
        with suppress(OSError):
            watchers(printable(event_line(event, with_day=to_log)))

    return running.Voice(tell, watched)


@serve.command("status", examples=["nacre serve status", "nacre serve status --json"])
@click.pass_obj
def status(run: Run) -> None:
    """Tell whether a daemon serves this home, and how it is.

    Exits with 1 where none does.
    """
    told = greeting.greet(run.settings.home)
    run.exit_code = 0 if told else 1
    is_silent = told is None and locks.is_held(run.settings.home / address.LOCK)
    if not told and not is_silent:
        also = "; hooks do, too" if record.hooks_start_daemon(run.settings) else ""
        run.answer(_record(None, "none"), lambda paper: paper.line(
            bold("No daemon serves this home."), dim(f"  nacre serve starts one{also}")))  # fmt: skip
        return
    run.answer(_record(told, "running" if told else "silent"), lambda paper: _show(paper, told))


def _record(told: Greeting | None, state: str) -> dict[str, object]:
    names = [field.name for field in fields(greeting.Greeting)]
    return {"state": state, **(asdict(told) if told else dict.fromkeys(names))}


def _show(paper: Paper, told: Greeting | None) -> None:
    if told is None:
        paper.line(bold("A daemon holds this home and does not answer."), dim("  nacre serve logs tells more"))
        return
    stays = f"until nobody asks for {told.idle_minutes:g} minutes" if told.on_demand else "until it is stopped"
    facts = [
        ("process", f"{told.pid}, version {told.version}" + (f", {told.memory_mb:.0f} MB" if told.memory_mb else "")),
        ("runs", f"for {_span(told.seconds)}, {stays}"),
        ("answered", f"{told.answered:,} questions" + (f"; {told.at_work} at work" if told.at_work else "")),
        ("sessions", "followed" if told.follows else "not followed by it"),
    ]
    facts += [("over HTTP", told.http)] if told.http else []
    facts += [("trouble", problem) for problem in told.problems]
    paper.line(bold("The daemon runs" + ("" if told.is_warm else ", and is still loading")))
    paper.facts(tuple(facts), indent=2)


def _span(seconds: float) -> str:
    for size, name in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {name}"
    return f"{seconds:.0f} seconds"


@serve.command("stop", examples=["nacre serve stop"])
@click.pass_obj
def stop(run: Run) -> None:
    """Have the daemon finish what it is at, and end.

    An installed one starts again with the next login, hooks start one when they need it; nacre config set
    daemon.enabled false keeps them from it.
    """
    was_there = locks.is_held(run.settings.home / address.LOCK)
    if was_there and not greeting.ask_to_stop(run.settings.home):
        raise Unavailable("the daemon does not end", hint="nacre serve status names its process: end it by kill")
    told = "The daemon ended." if was_there else "No daemon serves this home."
    run.answer({"ended": was_there}, lambda paper: paper.line(told))


@serve.command("logs", examples=["nacre serve logs", "nacre serve logs -n 200"])
@click.option("--lines", "-n", type=click.IntRange(1, 100_000), default=40, show_default=True, help="The last lines.")
@click.pass_obj
def logs(run: Run, lines: int) -> None:
    """Show what the daemon in the background wrote."""
    found = watching_log.last_lines(run.settings.home, lines, "daemon")
    path = watching_log.log_file(run.settings.home, "daemon")

    def render(paper: Paper) -> None:
        for line in found:
            paper.verbatim(line)
        if not found:
            paper.line(dim(f"Nothing in {path} yet."))

    run.answer({"path": str(path), "lines": found}, render)
