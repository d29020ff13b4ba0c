"""``nacre admin watcher``: have the system run ``nacre admin watch``."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from nacre import __version__
from nacre import settings as settings_module
from nacre.base import environment, ids, link, locks
from nacre.base.json import to_plain
from nacre.base.times import shown, shown_minute
from nacre.care import watcher as watcher_module
from nacre.care import watcher_install as installing
from nacre.cli import output
from nacre.cli.command import TEXT, DefaultGroup, Group, Paper, Run, bold, dim, printable, unsteered
from nacre.cli.command import command as command_command
from nacre.cli.events import event_line, event_record, stopped_by_signals
from nacre.cli.learn import render_ingest
from nacre.cli.operations import perform
from nacre.cli.options import argument, count, option
from nacre.cli.options import size as options_size
from nacre.context import categories
from nacre.errors import UnavailableError
from nacre.home import home
from nacre.home.home import territory
from nacre.hosts import ways
from nacre.serve import homes, server
from nacre.serve import server_web as daemon_web
from nacre.values.memory import Face

if TYPE_CHECKING:
    from nacre.care.follow import Standing
    from nacre.care.watcher import Survey, WatchEvent, WatchOptions
    from nacre.care.watcher_install import Installation
    from nacre.home.home import Home
    from nacre.serve.homes import Greeting
    from nacre.serve.server import Voice
    from nacre.values.context import ContextBlock
    from nacre.values.reports import IngestReport

_FOLLOW_SECONDS = 0.5
_STATES = {
    "starting": "The watcher is starting",
    "running": "The watcher runs",
    "stale": "The watcher runs and says nothing",
    "died": "The watcher ended without saying so",
    "stopped": "The watcher is stopped",
    "never": "No watcher ever ran for this home",
}


@click.group(
    "watcher",
    cls=Group,
    examples=[
        "nacre admin watcher status",
        "nacre admin watcher logs",
    ],
)
def watcher() -> None:
    """Manage the background service that follows your sessions.

    nacre admin watch does the same in the foreground.
    """


@command_command("install", examples=["nacre serve install", "nacre serve install --dry-run"])
@click.option(
    "--dry-run",
    is_flag=True,
    help="Only show the file and the commands.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def install(run: Run, dry_run: bool, yes: bool) -> None:
    """Start the daemon now and with every login.

    It writes one file: a user unit of systemd, an agent of launchd, or a task of Windows. On a terminal it asks first.
    """
    found = installing.installation(run.settings)
    if dry_run:
        run.answer(_installation_record(found, done=False), lambda paper: _show_plan(paper, found))
        return
    if run.is_interactive and not yes:
        run.confirm(f"Write {found.path}, and run {shlex.join(found.install[-1])}?")
    _prepare(run)
    found = perform(run, "watcher-install")
    run.answer(
        _installation_record(found, done=True),
        lambda paper: paper.line(
            bold("Installed"), f" {found.path}; nacre admin watcher status shows its state"
        ),
    )


@command_command("uninstall", examples=["nacre serve uninstall"])
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.pass_obj
def uninstall(run: Run, dry_run: bool) -> None:
    """Stop the daemon and remove it from the system's services.

    Your memories stay.
    """
    found = installing.installation(run.settings)
    if not dry_run:
        found = perform(run, "watcher-uninstall")
    words = "Would remove" if dry_run else "Removed"
    run.answer(
        _installation_record(found, done=not dry_run),
        lambda paper: paper.line(bold(words), f" {found.path}"),
    )


@watcher.command("start", examples=["nacre admin watcher start"])
@click.pass_obj
def start(run: Run) -> None:
    """Start the watcher in the background.

    Where it is not installed it runs until the machine is restarted.
    """
    _prepare(run)
    _answer(run, perform(run, "watcher-start"))


@watcher.command("stop", examples=["nacre admin watcher stop"])
@click.pass_obj
def stop(run: Run) -> None:
    """Stop the watcher after its current work.

    An installed one starts again with the next login.
    """
    ran: bool = perform(run, "watcher-stop")
    found: Standing = perform(run, "watcher")
    if not ran:
        run.warnings.append("no watcher ran")
    _answer(run, found)


@watcher.command("restart", examples=["nacre admin watcher restart"])
@click.pass_obj
def restart(run: Run) -> None:
    """Restart the watcher, for example after an update of nacre."""
    _prepare(run)
    perform(run, "watcher-stop")
    _answer(run, perform(run, "watcher-start"))


@watcher.command(
    "status", examples=["nacre admin watcher status", "nacre admin watcher status --json"]
)
@click.pass_obj
def status(run: Run) -> None:
    """Show whether the watcher runs, and its activity.

    Exits with 1 where it does not run.
    """
    found: Standing = perform(run, "watcher")
    run.exit_code = 0 if found.state == "running" else 1
    _answer(run, found)


@watcher.command(
    "logs",
    examples=[
        "nacre admin watcher logs",
        "nacre admin watcher logs -n 200",
        "nacre admin watcher logs --follow",
    ],
)
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(1, 100_000),
    default=40,
    show_default=True,
    help="Number of lines.",
)
@click.option("--follow", "-f", is_flag=True, help="Follow the log until Ctrl-C.")
@click.pass_obj
def logs(run: Run, lines: int, follow: bool) -> None:
    """Show the log of the watcher."""
    home = run.settings.home
    found = watcher_module.last_lines(home, lines)
    path = watcher_module.log_file(home)

    def render(paper: Paper) -> None:
        for line in found:
            paper.verbatim(line)
        if not found:
            paper.line(dim(f"Nothing in {path} yet."))

    run.answer({"path": str(path), "lines": found}, render)
    if follow and not run.as_json:
        run.flush()
        _follow(run)


def _follow(run: Run) -> None:
    path = watcher_module.log_file(run.settings.home)
    at = path.stat().st_size if path.exists() else 0
    while True:
        time.sleep(_FOLLOW_SECONDS)
        size = path.stat().st_size if path.exists() else 0
        if size < at:
            at = 0
        if size > at:
            with path.open(encoding="utf-8", errors="replace") as file:
                file.seek(at)
                click.echo(file.read(), nl=False)
            at = size


def _prepare(run: Run) -> None:
    """Make the home, and see that it can be used, before something is to work on it unseen."""
    run.keeps_history = False
    run.home.now()


def _answer(run: Run, found: Standing) -> None:
    way = installing.installation(run.settings)
    path = way.path if way.is_installed else None

    def render(paper: Paper) -> None:
        _render_standing(paper, found)
        how = (
            f"Started by the system: {path}"
            if path
            else "Not installed: nacre serve install has it always started."
        )
        paper.line(dim(how))

    run.answer({**to_plain(found), "installed": path}, render)


def _show_plan(paper: Paper, found: Installation) -> None:
    paper.line("Would write ", bold(str(found.path)), ":")
    paper.blank()
    for line in found.text.splitlines():
        paper.verbatim(f"    {line}")
    paper.blank()
    paper.line("and run:")
    for command in found.install:
        paper.verbatim(f"    {shlex.join(command)}")


def _installation_record(found: Installation, *, done: bool) -> dict[str, object]:
    return {
        "form": found.form,
        "path": found.path,
        "text": found.text,
        "commands": found.install,
        "done": done,
    }


def _render_standing(paper: Paper, found: Standing) -> None:
    """How it stands, in a line, then what it did."""
    health = found.health
    paper.line(
        bold(_STATES[found.state]), f" (process {health.pid})." if health and found.lives else "."
    )
    if health is None or found.state == "never":
        return
    errors = []
    if health.last_error and health.last_error_at:
        errors.append(
            ("last problem", f"{health.last_error} ({shown_minute(health.last_error_at)})")
        )
    how = "events" if not health.why_polling else f"polling: {health.why_polling}"
    paper.facts(
        [
            ("since", shown_minute(health.started)),
            ("last heartbeat", shown(health.heartbeat, "%Y-%m-%d %H:%M:%S")),
            ("follows", f"{count(health.folders, 'folder')} by {how}"),
            (
                "did",
                f"{health.turns:,} turns of {count(health.transcripts, 'transcript')}, "
                f"{count(health.memories, 'memory', 'memories')}",
            ),
            *errors,
        ],
        indent=2,
    )


# ----------------------------------------------------------------------------
# ``nacre admin watch``.


_BACKGROUND_NICENESS = 10


@command_command(
    "watch",
    examples=[
        "nacre admin watch",
        "nacre admin watch --context ~/code/shop/CONTEXT.md",
        "nacre serve install        # have the system do it",
    ],
)
@argument("watch-once", "paths")
@click.option("--once", is_flag=True, help="Read new turns, learn, make vectors, and end.")
@click.option(
    "--interval",
    type=click.FloatRange(1, 86_400),
    help="Seconds between two checks of all transcripts.",
)
@click.option(
    "--polling",
    is_flag=True,
    help="Poll instead of waiting for notifications, for network drives.",
)
@option(
    "watch-once",
    "learns",
    "--no-learn",
    help="Make sessions searchable, without memories and vectors.",
)
@click.option(
    "--context",
    type=click.Path(dir_okay=False, resolve_path=True, path_type=Path),
    help="After each round, write the output of nacre context to this file.",
)
@click.option(
    "--dry-run", is_flag=True, help="Only show the followed folders and unread transcripts."
)
@click.option("--log", is_flag=True, help="Write into the home's logs/watcher.log instead of here.")
@click.option("--background", is_flag=True, hidden=True, help="With --once: run with low priority.")
@option(
    "watch-once",
    "reads",
    "--no-read",
    hidden=True,
    help="With --once: only learn, and make vectors.",
)
@option("watch-once", "seconds", hidden=True, help="With --once: make vectors no longer than this.")
@click.pass_obj
def watch(  # noqa: PLR0913 - its options
    run: Run,
    paths: tuple[Path, ...],
    once: bool,
    interval: float | None,
    polling: bool,
    learns: bool,
    context: Path | None,
    dry_run: bool,
    log: bool,
    background: bool,
    reads: bool,
    seconds: float | None,
) -> None:
    """Follow your agents' sessions as they happen.

    New turns are searchable within two seconds; memories learned from them follow. Without PATHS, it follows all agents
    on this machine; with PATHS, those files and folders. It runs until Ctrl-C or nacre admin watcher stop. With --json
    it prints one object for each event, each on its own line.
    """
    if dry_run:
        _survey(run, paths)
    elif once:
        _go_round(
            run, paths, context, background=background, reads=reads, learns=learns, seconds=seconds
        )
    else:
        _follow_watch(
            run, watcher_module.WatchOptions(paths, interval, polling, learns, context), to_log=log
        )


def _survey(run: Run, paths: tuple[Path, ...]) -> None:
    found: Survey = perform(run, "watch-survey", paths=paths)
    run.answer(found, lambda paper: _render_survey(paper, found))


def _go_round(
    run: Run,
    paths: tuple[Path, ...],
    context: Path | None,
    *,
    background: bool,
    reads: bool,
    learns: bool,
    seconds: float | None,
) -> None:
    if background:
        _give_way()
    wanted: dict[str, Any] = {"paths": paths, "reads": reads, "seconds": seconds, "learns": learns}
    with output.shown(run) as notify:
        report: IngestReport = perform(run, "watch-once", notify, **wanted)
    _write_context(run, context)
    if report.problems and not background:
        run.exit_code = 1
    run.answer(report, lambda paper: render_ingest(paper, report, searched=not paths))


def _write_context(run: Run, path: Path | None) -> None:
    """Write the context of a file's folder into it, if there is one."""
    if path:
        block: ContextBlock = perform(run, "context", moment="start", folder=str(path.parent))
        categories.write_snapshot(path, block, territory(run.settings))


def _give_way() -> None:
    """Run with the lowest priority, and end between two steps when asked to."""
    if hasattr(os, "nice"):
        os.nice(_BACKGROUND_NICENESS)

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def _follow_watch(run: Run, options: WatchOptions, *, to_log: bool) -> None:
    if options.paths:
        run.settings.actor.require_owner("nacre admin watch of files that are named")
    write: Callable[[str], None] = (
        watcher_module.Log(run.settings.home).write if to_log else click.echo
    )
    stop = stopped_by_signals()

    def tell(event: WatchEvent) -> None:
        with suppress(BrokenPipeError):
            write(_line(run, event, with_day=to_log))

    run.keeps_history = False
    watcher_module.Watcher(_opened, options, tell, __version__).run(stop)


def _opened() -> Home:
    return home.open_home(replace(settings_module.load_settings(), face=Face.DAEMON))


def _line(run: Run, event: WatchEvent, *, with_day: bool) -> str:
    if run.as_json:
        return unsteered(json.dumps(event_record(event)))

    return printable(event_line(event, with_day=with_day))


def _render_survey(paper: Paper, found: Survey) -> None:
    """What would be watched, then what waits there."""
    there = [item for item in found.watched if item.is_there]
    paper.line(bold("Would follow"))
    paper.table([(item.tool or "named", str(item.path)) for item in there], indent=2)
    missing = len(found.watched) - len(there)
    if missing:
        words = f"and {count(missing, 'more folder')} as soon as a tool makes {'it' if missing == 1 else 'them'}"
        paper.line(dim(words), indent=2)
    unread = f"{count(found.unread_files, 'transcript')} ({options_size(found.unread_bytes)})"
    paper.line(f"{count(found.files, 'transcript')} there; {unread} would be read now.")
    for problem in found.problems:
        paper.line(f"  {problem.path}: {problem.message}")


# ----------------------------------------------------------------------------
# ``nacre serve``: the daemon.


_DOOR = {
    "http": "daemon.http",
    "tls_cert": "web.tls_cert",
    "tls_key": "web.tls_key",
    "insecure": "web.insecure",
}


@click.group(
    "serve",
    cls=DefaultGroup,
    places={"install": "watch:install", "uninstall": "watch:uninstall"},
    examples=["nacre serve", "nacre serve --http 8765", "nacre serve status"],
)
@click.option(
    "--http",
    metavar="[HOST:]PORT",
    type=TEXT,
    help="Also serve programs, agents and browsers at this address.",
)
@click.option(
    "--no-token",
    is_flag=True,
    help="With --http, on this machine only: do not require a token.",
)
@click.option(
    "--tls-cert", metavar="FILE", type=TEXT, help="With --http: encrypt by this certificate (PEM)."
)
@click.option(
    "--tls-key",
    metavar="FILE",
    type=TEXT,
    help="The certificate's key, if it is in a separate file.",
)
@click.option(
    "--insecure", is_flag=True, help="With --http: serve other machines without encryption."
)
@click.option("--no-watch", is_flag=True, help="Do not follow your agents' sessions.")
@click.option(
    "--on-demand",
    is_flag=True,
    help="Run in the background until no requests come; return at once.",
)
@click.option("--log", is_flag=True, help="Write into the home's logs/daemon.log instead of here.")
@click.option(
    "--idle",
    is_flag=True,
    hidden=True,
    help="End without requests, and make way for a daemon that stays.",
)
@click.pass_context
def serve(
    ctx: click.Context, /, no_watch: bool, on_demand: bool, log: bool, idle: bool, **door: Any
) -> None:
    """Run the background server (faster answers).

    It answers on a socket that only you can use, and follows your agents' sessions. There is one for each home. Hooks
    start it if it does not run; nacre serve install starts it with every login. It runs until Ctrl-C or nacre serve
    stop.
    """
    if ctx.invoked_subcommand:
        return
    run: Run = ctx.obj
    for name in ("tls_cert", "tls_key"):
        door[name] = (
            os.path.abspath(door[name]) if door[name] else None
        )  # the daemon may work in another folder
    if on_demand:
        link.start_daemon(
            str(run.settings.home), run.settings.environ, *_words({**door, "no_watch": no_watch})
        )
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
    options = server.DaemonOptions(
        idle,
        settings.number("daemon.idle_minutes"),
        watches and settings.flag("daemon.watch"),
        daemon_web.Door.of(said, said.text("daemon.http"), asks_token=not door["no_token"]),
        __version__,
    )
    stop = stopped_by_signals()
    run.keeps_history = False
    environ = environment.of_the_owner(settings.environ)
    daemon = server.Daemon(
        settings,
        lambda: home.open_home(
            replace(settings_module.load_settings(settings.home, environ), face=Face.DAEMON)
        ),
        options,
        _voice(run, to_log),
    )
    why = daemon.run(stop)
    if why is server.End.UPGRADED and not idle:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this very program, anew
    if daemon.is_at_work:  # threads that do not end in time would keep the process
        sys.stdout.flush()
        os._exit(0)
    run.exit_code = 1 if why in (server.End.OUTDATED, server.End.GONE) else 0


def _voice(run: Run, to_log: bool) -> Voice:
    own: Callable[[str], None] = (
        watcher_module.Log(run.settings.home, "daemon").write if to_log else click.echo
    )
    watchers: Callable[[str], None] = (
        watcher_module.Log(run.settings.home).write if to_log else click.echo
    )
    form = "%Y-%m-%d %H:%M:%S" if to_log else "%H:%M:%S"

    def tell(line: str) -> None:
        with suppress(OSError):  # what cannot be told must not stop who answers
            own(printable(f"{ids.utc_now():{form}}  {output.redactor_of(run).clean(line)}"))

    def watched(event: WatchEvent) -> None:
        with suppress(OSError):
            watchers(printable(event_line(event, with_day=to_log)))

    return server.Voice(tell, watched)


@serve.command("status", examples=["nacre serve status", "nacre serve status --json"])
@click.pass_obj
def daemon_status(run: Run) -> None:
    """Show whether a daemon serves this home, and its state.

    Exits with 1 where none does.
    """
    told = homes.greet(run.settings.home)
    run.exit_code = 0 if told else 1
    is_silent = told is None and locks.is_held(run.settings.home / link.LOCK)
    if not told and not is_silent:
        also = "; hooks do, too" if ways.hooks_start_daemon(run.settings) else ""
        run.answer(
            _record(None, "none"),
            lambda paper: paper.line(
                bold("No daemon serves this home."), dim(f"  nacre serve starts one{also}")
            ),
        )
        return
    run.answer(_record(told, "running" if told else "silent"), lambda paper: _show(paper, told))


def _record(told: Greeting | None, state: str) -> dict[str, object]:
    names = [field.name for field in fields(homes.Greeting)]
    return {"state": state, **(asdict(told) if told else dict.fromkeys(names))}


def _show(paper: Paper, told: Greeting | None) -> None:
    if told is None:
        paper.line(
            bold("A daemon holds this home and does not answer."),
            dim("  nacre serve logs tells more"),
        )
        return
    stays = (
        f"until nobody asks for {told.idle_minutes:g} minutes"
        if told.on_demand
        else "until it is stopped"
    )
    facts = [
        (
            "process",
            f"{told.pid}, version {told.version}"
            + (f", {told.memory_mb:.0f} MB" if told.memory_mb else ""),
        ),
        ("runs", f"for {_span(told.seconds)}, {stays}"),
        (
            "answered",
            f"{told.answered:,} questions" + (f"; {told.at_work} at work" if told.at_work else ""),
        ),
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
def stop_daemon(run: Run) -> None:
    """Stop the daemon after its current work.

    An installed one starts again with the next login, hooks start one when they need it; nacre config set
    daemon.enabled false keeps them from it.
    """
    was_there = locks.is_held(run.settings.home / link.LOCK)
    if was_there and not homes.ask_to_stop(run.settings.home):
        raise UnavailableError(
            "the daemon does not end", hint="nacre serve status names its process: end it by kill"
        )
    told = "The daemon ended." if was_there else "No daemon serves this home."
    run.answer({"ended": was_there}, lambda paper: paper.line(told))


@serve.command("logs", examples=["nacre serve logs", "nacre serve logs -n 200"])
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(1, 100_000),
    default=40,
    show_default=True,
    help="Number of lines.",
)
@click.pass_obj
def daemon_logs(run: Run, lines: int) -> None:
    """Show the log of the daemon."""
    found = watcher_module.last_lines(run.settings.home, lines, "daemon")
    path = watcher_module.log_file(run.settings.home, "daemon")

    def render(paper: Paper) -> None:
        for line in found:
            paper.verbatim(line)
        if not found:
            paper.line(dim(f"Nothing in {path} yet."))

    run.answer({"path": str(path), "lines": found}, render)
