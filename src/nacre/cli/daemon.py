"""``nacre serve``, ``open``, ``mcp`` and ``statusline``."""

from __future__ import annotations

import os
import shlex
import sys
import time
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from nacre import settings as nacre_settings
from nacre.base import environment, ids, link, locks
from nacre.base.log import Log
from nacre.base.times import shown_minute
from nacre.care import autostart
from nacre.cli import output
from nacre.cli.command import TEXT, DefaultGroup, Paper, Run, bold, command, dim, printable
from nacre.cli.options import YES, count, duration, flag
from nacre.cli.signals import stopped_by_signals
from nacre.errors import ConflictError, NacreError, OwnerOnlyError, UnavailableError
from nacre.home import home
from nacre.home.location import is_empty
from nacre.hosts import ways
from nacre.serve import browsers, homes, mcp_protocol, server
from nacre.serve import mcp as calling
from nacre.serve import server_web as daemon_web
from nacre.serve import statusline as summaries
from nacre.values.memory import AN_AGENT, Face

_START_SECONDS = 20.0

_DOOR = {"http": "daemon.http", "insecure": "web.insecure"}


@click.group(
    "serve",
    cls=DefaultGroup,
    examples=["nacre serve", "nacre serve --http 8765", "nacre serve status"],
)
@click.option(
    "--http",
    metavar="[HOST:]PORT",
    type=TEXT,
    help="Also serve programs, agents and browsers at this address.",
)
@flag("--no-token", "With --http, on this machine only: do not require a token.")
@flag("--insecure", "With --http: serve other machines without encryption.")
@flag("--no-watch", "Do not follow your agents' sessions.")
@flag("--on-demand", "Return immediately, and run in the background until no requests come.")
@click.option(
    "--idle", is_flag=True, hidden=True, help="End when idle, or when a permanent daemon starts."
)
def serve(run: Run, no_watch: bool, on_demand: bool, idle: bool, **door: Any) -> None:
    """Run the background server (faster answers).

    It answers on a socket that only you can use, and follows your agents' sessions. Each home has its own server. Hooks
    start it if it is not running; nacre serve install starts it at every login. It runs until Ctrl-C or nacre serve
    stop.
    """
    if on_demand:
        link.start_daemon(
            run.settings.home, run.settings.environ, *_words({**door, "no_watch": no_watch})
        )
        return
    settings = door_settings = run.settings
    for name, key in _DOOR.items():
        door_settings = (
            door_settings if door[name] in (None, False) else door_settings.having(key, door[name])
        )
    options = server.DaemonOptions(
        idle,
        settings.number("daemon.idle_minutes"),
        not no_watch and settings.flag("daemon.watch"),
        daemon_web.Door.of(
            door_settings, door_settings.text("daemon.http"), asks_token=not door["no_token"]
        ),
    )
    stop = stopped_by_signals()
    run.keeps_history = False
    environ = environment.of_the_owner(settings.environ)
    daemon = server.Daemon(
        settings,
        lambda: home.open_home(
            replace(nacre_settings.load_settings(settings.home, environ), face=Face.DAEMON)
        ),
        options,
        partial(_tell, run),
    )
    try:
        why = daemon.run(stop)
    except NacreError as error:
        if not (idle and isinstance(error, ConflictError)):  # another process started first
            _log(run, f"did not start: {error.message}")
        raise
    if why is server.End.UPGRADED and not idle:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - the same program again
    if daemon.is_at_work:  # unfinished threads would keep the process alive
        sys.stdout.flush()
        os._exit(0)
    run.exit_code = 1 if why in (server.End.OUTDATED, server.End.HOME_MISSING) else 0


def _words(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        if value is not None and value is not False:
            yield f"--{name.replace('_', '-')}"
            if value is not True:
                yield value


def _tell(run: Run, line: str) -> None:
    line = _log(run, line)
    with suppress(OSError):  # a closed terminal must not stop the daemon
        click.echo(f"{ids.utc_now():%H:%M:%S}  {line}")


def _log(run: Run, line: str) -> str:
    line = printable(output.redactor_of(run).clean(line))
    with suppress(OSError):  # a full disk must not stop the daemon
        if run.settings.home.is_dir():
            now = ids.utc_now()
            Log(run.settings.home, "daemon").write(f"{now:%Y-%m-%d %H:%M:%S}  {line}")
    return line


@serve.command("install", examples=["nacre serve install", "nacre serve install --dry-run"])
@flag("--dry-run", "Only show the file and the commands.")
@YES
def install(run: Run, dry_run: bool, yes: bool) -> None:
    """Start the daemon now and at every login.

    It writes one file: a systemd user unit, a launchd agent, or a Windows task. On a terminal it asks first.
    """
    installation = autostart.installation(run.settings)
    if dry_run:
        run.answer(_installation_record(installation, is_done=False), _show_plan, installation)
        return
    run.settings.actor.require_owner("nacre serve install")
    run.confirm(
        f"Write {installation.path}, and run {shlex.join(installation.install[-1])}?", yes=yes
    )
    _prepare(run)
    autostart.install(run.settings)
    run.answer(
        _installation_record(installation, is_done=True),
        Paper.title,
        "Installed",
        f" {installation.path}; nacre serve status shows its state",
    )


@serve.command("uninstall", examples=["nacre serve uninstall"])
@flag("--dry-run", "Only show what would be removed.")
def uninstall(run: Run, dry_run: bool) -> None:
    """Stop the daemon and remove it from the system's services.

    Your memories stay.
    """
    installation = autostart.installation(run.settings)
    if not dry_run:
        run.settings.actor.require_owner("nacre serve uninstall")
        autostart.uninstall(run.settings)
    words = "Would remove" if dry_run else "Removed"
    run.answer(
        _installation_record(installation, is_done=not dry_run),
        Paper.title,
        words,
        f" {installation.path}",
    )


def _prepare(run: Run) -> None:
    run.keeps_history = False
    run.home.now()


def _installation_record(
    installation: autostart.Installation, *, is_done: bool
) -> dict[str, object]:
    return {
        "form": installation.form,
        "path": installation.path,
        "text": installation.text(),
        "commands": installation.install,
        "done": is_done,
    }


def _show_plan(paper: Paper, installation: autostart.Installation) -> None:
    paper.line("Would write ", bold(str(installation.path)), ":")
    paper.blank()
    for line in installation.text().splitlines():
        paper.verbatim(f"    {line}")
    paper.blank()
    paper.line("and run:")
    for words in installation.install:
        paper.verbatim(f"    {shlex.join(words)}")


@serve.command("start", examples=["nacre serve start"])
def start_daemon(run: Run) -> None:
    """Start the daemon in the background.

    It starts the installed service, or else a process that runs until the machine is restarted.
    """
    _prepare(run)
    log = Log(run.settings.home, "daemon")
    before, greeting = log.last_lines(1), homes.greet(run.settings.home)
    process, until = None, time.monotonic() + _START_SECONDS
    if greeting is None or greeting.on_demand:
        process = autostart.start(run.settings)
    while greeting is None or greeting.on_demand:
        if time.monotonic() > until or (process and process.poll() is not None):
            last = log.last_lines(1)
            reason = f"; it printed: {last[0]}" if last != before else ""
            raise UnavailableError(
                f"the daemon did not start{reason}", hint="nacre serve shows the problem"
            )
        time.sleep(0.1)
        greeting = homes.greet(run.settings.home)
    run.answer({"state": "running", **asdict(greeting)}, _show, greeting)


@serve.command("status", examples=["nacre serve status"])
def daemon_status(run: Run) -> None:
    """Show the state of this home's daemon.

    Exits with 1 if no daemon answers.
    """
    if greeting := homes.greet(run.settings.home):
        run.answer({"state": "running", **asdict(greeting)}, _show, greeting)
        return
    run.exit_code = 1
    if locks.is_held(run.settings.home / link.LOCK):
        state, problem = "silent", "This home's daemon is not responding."
        hint = "nacre serve logs"
    else:
        state, problem = "none", "No daemon is running for this home."
        also = ", as do hooks" if ways.hooks_start_daemon(run.settings) else ""
        hint = f"nacre serve starts it{also}"
    run.answer({"state": state}, Paper.title, problem, dim(f"  {hint}"))


def _show(paper: Paper, greeting: homes.Greeting) -> None:
    ends = (
        f"until {greeting.idle_minutes:g} minutes without requests"
        if greeting.on_demand
        else "until it is stopped"
    )
    facts = [
        (
            "process",
            f"{greeting.pid}, version {greeting.version}"
            + (f", {greeting.memory_mb:.0f} MB" if greeting.memory_mb else ""),
        ),
        ("runs", f"for {duration(greeting.seconds)}, {ends}"),
        (
            "answered",
            f"{greeting.answered:,} requests"
            + (f"; {greeting.at_work} in progress" if greeting.at_work else ""),
        ),
        *_following_facts(greeting),
    ]
    facts += [("over HTTP", greeting.http)] if greeting.http else []
    facts += [("problem", problem) for problem in greeting.problems]
    paper.title("The daemon is running" if greeting.is_warm else "The daemon is loading")
    paper.facts(tuple(facts))


def _following_facts(greeting: homes.Greeting) -> Iterator[tuple[str, str]]:
    state = greeting.following
    if state is None:
        yield "sessions", "not followed"
        return
    how = f" by polling: {state.why_polling}" if state.why_polling else ""
    read = f"{count(state.turns, 'turn')} of {count(state.transcripts, 'transcript')} read"
    memories = f"{count(state.memories, 'memory')} learned"
    yield "sessions", f"followed in {count(state.folders, 'folder')}{how}; {read}, {memories}"
    if state.last_error and state.last_error_at:
        yield "last problem", f"{state.last_error} ({shown_minute(state.last_error_at)})"


@serve.command("stop", examples=["nacre serve stop"])
def stop_daemon(run: Run) -> None:
    """Stop the daemon after its current work.

    An installed daemon starts again at the next login or with nacre serve start. Hooks start a daemon when they need
    it; nacre config set daemon.enabled false prevents this.
    """
    was_there = locks.is_held(run.settings.home / link.LOCK)
    autostart.stop(run.settings)
    message = "The daemon ended." if was_there else "No daemon is running for this home."
    run.answer({"ended": was_there}, Paper.line, message)


@serve.command("logs", examples=["nacre serve logs", "nacre serve logs -n 200"])
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(1, 100_000),
    default=40,
    show_default=True,
    help="Number of lines.",
)
def daemon_logs(run: Run, lines: int) -> None:
    """Show the daemon's log, with problems and the sessions it has read."""
    log = Log(run.settings.home, "daemon")
    log_lines = log.last_lines(lines)

    def render(paper: Paper) -> None:
        for line in log_lines:
            paper.verbatim(line)
        if not log_lines:
            paper.note(f"Nothing in {log.path} yet.")

    run.answer({"path": str(log.path), "lines": log_lines}, render)


# ----------------------------------------------------------------------------
# ``nacre open``.


_SECONDS = 30.0


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
            return str(link.ask(home, "open", {}, seconds=_SECONDS))
        except link.DaemonRefusedError as refused:
            kind = (
                OwnerOnlyError
                if refused.error.get("code") == OwnerOnlyError.code
                else UnavailableError
            )
            raise kind(str(refused), hint=refused.error.get("hint")) from None
        except link.DaemonAwayError as away:
            if time.monotonic() > until:
                raise UnavailableError(
                    "the daemon does not answer", hint="nacre serve logs shows the reason"
                ) from away
        if not is_started:
            is_started = True
            link.start_daemon(
                home, run.settings.environ, *(() if _may_read(run) else ("--no-watch",))
            )
        time.sleep(0.1)


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
    settings = nacre_settings.load_settings(home)
    folder = None
    with suppress(FileNotFoundError):  # the folder was deleted
        folder = str(Path.cwd())
    # Started by a process that ends immediately, because agents stop this server with all its child processes.
    start = partial(link.start_process, settings.home, settings.environ, "serve", "--on-demand")
    face = calling.Face(
        calling.HomeCalls(
            settings.home,
            agent=settings.actor.agent or AN_AGENT,
            start=start if settings.flag("daemon.enabled") else None,
        ),
        everything=(tools or settings.text("mcp.tools")) == "all",
        structured=structured,
        folder=folder,
        session=settings.session,
        note=partial(_note, settings.home),
    )
    run.keeps_history = False
    if run.is_interactive:
        click.echo(
            "Waiting for an agent. Agents start this command. Press Ctrl-D to end it.", err=True
        )
    mcp_protocol.serve(face, mcp_protocol.Wire.take_over())


def _note(home: Path, line: str) -> None:
    if home.is_dir():
        with suppress(OSError):
            Log(home, "mcp").write(line)


# ----------------------------------------------------------------------------
# ``nacre statusline``. Without options, :mod:`nacre.serve.statusline` prints the line, and this module is not loaded.


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
    summary = summaries.look(environment.environment(), 1.0)
    run.answer({"told": 0, "to_review": 0} | summary, Paper.line, summaries.line(summary))
