"""The output of ``nacre init``, and ``nacre open``, ``mcp`` and ``statusline``."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
import webbrowser
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from nacre import __version__
from nacre import settings as nacre_settings
from nacre.base import link
from nacre.base.environment import environment
from nacre.base.frozen import frozen
from nacre.base.link import DaemonAwayError, DaemonRefusedError, ask, start_daemon
from nacre.base.log import Log
from nacre.cli.command import Paper, Run, Span, bold, dim
from nacre.cli.command import command as command_command
from nacre.cli.options import count, flag
from nacre.errors import OwnerOnlyError, UnavailableError
from nacre.home.location import is_empty
from nacre.hosts import connect as wiring_preview
from nacre.hosts import registry
from nacre.serve import browsers, homes, mcp_protocol
from nacre.serve import mcp as calling
from nacre.serve.statusline import line as statusline_line
from nacre.serve.statusline import look
from nacre.values.memory import AN_AGENT

if TYPE_CHECKING:
    from nacre.data.imports import Captured
    from nacre.values.reports import FileChange, HostCommand, LeftAlone, WiringDone, WiringPlan

_START_SECONDS = 10.0


@frozen
class DaemonMet:
    """The effect of a command on the daemon.

    ``state``: ``runs`` if an outdated or unneeded daemon was not stopped. Only a daemon that hooks
    started is stopped.
    """

    version: str
    state: Literal["started", "ended", "runs"]
    message: str


def start_for_hosts(settings: nacre_settings.Settings) -> DaemonMet | None:
    """Start the daemon before the first session needs it.

    Return ``None`` if a daemon is already running or cannot be started.
    """
    try:
        started = (
            link.start_daemon(str(settings.home), settings.environ)
            if settings.flag("daemon.enabled")
            else None
        )
    except OSError:
        return None  # hooks try again
    if started is None:
        return None
    until = time.monotonic() + _START_SECONDS
    while not (found := homes.greet(settings.home)) or not found.is_warm:
        if started.poll() is not None or time.monotonic() > until:
            return None  # its log has the reason; hooks try again
        time.sleep(0.05)
    message = "The daemon now runs in the background and stops when idle."
    return DaemonMet(__version__, "started", message)


def end_unneeded(home: Path) -> DaemonMet | None:
    """Stop the daemon after the last host is disconnected. Return ``None`` if it is not running."""
    found = homes.greet(home)
    if found is None:
        return None
    if found.on_demand and link.ask_to_stop(home):
        message = "The daemon was stopped. Only nacre ingest reads new sessions now."
        return DaemonMet(found.version, "ended", message)
    reads = " and reading your agents' sessions" if found.following else ""
    stop = "to stop it, run nacre serve stop, or nacre serve uninstall to remove its service"
    return DaemonMet(found.version, "runs", f"The daemon is still running{reads}; {stop}.")


def end_other_version(home: Path) -> DaemonMet | None:
    """Stop the daemon if it has a different version. Otherwise return ``None``."""
    found, own = homes.greet(home), __version__
    if found is None or found.version == own:
        return None
    if found.on_demand and link.ask_to_stop(home):
        message = f"The daemon of nacre {found.version} was stopped; the next session starts {own}."
        return DaemonMet(found.version, "ended", message)
    message = f"The daemon has version {found.version}, not {own}: restart it (nacre serve stop)."
    return DaemonMet(found.version, "runs", message)


# ----------------------------------------------------------------------------
# Planned and completed changes to hosts' files.


_STYLES = {"+": "green", "-": "red", "@": "cyan"}
Clean = Callable[[str], str]
_LONGEST_LINE = 300
_NEW_LINES = 12
"""Maximum number of lines shown of a new file."""
_TO_DO = {"create": "write", "change": "change", "remove": "remove", "run": "run"}
_DONE = {"create": "wrote", "change": "changed", "remove": "removed", "run": "ran"}


@frozen
class Shown:
    """Formats paths and text for display. The user's folder becomes ``~``, and secrets are removed."""

    user: Path
    home: Path
    clean: Clean

    def is_own(self, path: Path) -> bool:
        """Return True if a file is in nacre's home."""
        return path.is_relative_to(self.home)

    def short(self, path: Path) -> str:
        """Return a path, with ``~`` for the user's folder."""
        return f"~/{path.relative_to(self.user)}" if path.is_relative_to(self.user) else str(path)

    def words(self, command: HostCommand) -> str:
        """Return a command as a shell line."""
        first, *rest = command.words
        return shlex.join([Path(first).stem, *rest])


def render_plan(paper: Paper, plan: WiringPlan, places: Shown, *, is_whole: bool = False) -> None:
    """Print the planned changes and the affected lines.

    With ``is_whole``, print all lines and include nacre's own files.
    """
    verbs = {action: f"would {verb}" for action, verb in _TO_DO.items()}
    _render_changes(paper, plan, places, verbs, shows_lines=True, is_whole=is_whole)
    same = sum(change.action == "none" for change in plan.changes)
    if same:
        paper.note(f"{count(same, 'file')} already up to date")


def render_outline(paper: Paper, plan: WiringPlan, places: Shown) -> None:
    """Print the planned changes, one line for each file."""
    _render_changes(paper, plan, places, _TO_DO)


def _render_changes(
    paper: Paper,
    plan: WiringPlan,
    places: Shown,
    verbs: Mapping[str, str],
    *,
    shows_lines: bool = False,
    is_whole: bool = False,
) -> None:
    width = max(map(len, verbs.values()))
    own: Counter[tuple[str, str, str]] = Counter()
    for change in plan.changes:
        if change.action == "none":
            continue
        if places.is_own(change.path) and not is_whole:
            own[change.action, change.hosts[0], change.what] += 1
            continue
        labels = ", ".join(registry.ALL_HOSTS[host].label for host in change.hosts)
        verb = bold(f"{verbs[change.action]:<{width}}")
        paper.line(verb, f" {places.short(change.path)}", dim(f"  {labels}: {change.what}"))
        for line in _shown(change, places.clean, is_whole=is_whole) if shows_lines else ():
            paper.verbatim("  " + line, _STYLES.get(line[:1], "dim"))
    for (action, host, what), number in own.items():
        where = f" {count(number, 'file')} in {places.short(places.home / 'hosts' / host)}"
        what = f"  {registry.ALL_HOSTS[host].label}: {what}"
        paper.line(bold(f"{verbs[action]:<{width}}"), where, dim(what))
    for command in plan.commands:
        words = f" {places.words(command)}"
        paper.line(bold(f"{verbs['run']:<{width}}"), words, dim(f"  {command.what}"), hang=2)
    for memory in plan.own_memories:
        style = "yellow" if memory.hint else "green"
        label = registry.ALL_HOSTS[memory.host].label
        hint = f" ({memory.hint})" if memory.hint else ""
        told = f" own memory of {label}: {memory.told}{hint}"
        paper.line(Span(f"{memory.state:<8}", style), told, hang=2)
    _left(paper, plan.left_alone, places)
    _left(paper, plan.kept, places, "kept      ")


def render_done(
    paper: Paper,
    done: WiringDone,
    places: Shown,
    daemon: DaemonMet | None = None,
    captured: Sequence[Captured] = (),
) -> None:
    """Print the changes, the daemon's state and the remaining steps."""
    left = {item.path for item in done.left_alone}
    changes = tuple(change for change in done.plan.changes if change.path not in left)
    plan = replace(done.plan, changes=changes)
    _render_changes(paper, plan, places, _DONE)
    if done.trusted:
        paper.line(Span(f"{'trusted':<8}", "green"), " the hooks, by Codex")
    elif done.plan.is_nothing and not plan.left_alone:
        state = "nothing is connected." if plan.is_removal else "everything is connected."
        paper.line(f"Nothing to do: {state}")
    _captured(paper, captured, places)
    for path in done.backups:
        paper.note(f"backup: {places.short(path)}")
    for path in done.old_copies:
        paper.note(f"original file, before nacre: {places.short(path)}")
    for command, said in done.failed:
        paper.line(Span("failed", "bold red"), f" {command}: {said}", hang=2)
    _left(paper, done.left_alone, places)
    if daemon:
        paper.line(daemon.message, hang=2)
    if plan.is_removal:
        paper.note(f"Your memories stay in {places.short(places.home)}.")
        return
    for host, note in plan.notes:
        if not plan.is_nothing or host == registry.NAME_CODEX:  # its hooks are not trusted yet
            paper.line(bold(registry.ALL_HOSTS[host].label), f": {note}", hang=2)
    paper.note("nacre admin doctor hosts tests the hooks; nacre init --uninstall removes them.")


def _captured(paper: Paper, captured: Sequence[Captured], places: Shown) -> None:
    for host in dict.fromkeys(item.host for item in captured):
        own = [item for item in captured if item.host == host]
        added, updated = sum(item.added for item in own), sum(item.updated for item in own)
        if added or updated:
            above = places.short(Path(os.path.commonpath([item.path for item in own])))
            changed = f", {updated} changed" if updated else ""
            hint = dim(f"  searchable; to give them to sessions: nacre data import {above} --trust")
            paper.line(
                Span("imported", "green"),
                f" {count(added, 'memory', 'memories')} of {above}{changed}",
                hint,
                hang=2,
            )
        for item in own:
            if item.problem:
                paper.line(
                    Span("left alone", "yellow"),
                    f" {places.short(item.path)}: {item.problem}",
                    hang=2,
                )


def _shown(change: FileChange, clean: Clean, *, is_whole: bool) -> Iterator[str]:
    lines = [  # some settings files consist of a single line
        line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"
        for line in wiring_preview.diff_of(change, clean)[2:]
    ]
    if change.action == "change" or is_whole:
        yield from lines
        return
    if change.action == "remove":
        return
    yield from lines[1 : _NEW_LINES + 1]
    if len(lines) > _NEW_LINES + 1:
        yield f"  … and {len(lines) - _NEW_LINES - 1} more lines"


def _left(
    paper: Paper, left: Sequence[LeftAlone], places: Shown, label: str = "left alone"
) -> None:
    for alone in left:
        reason = f" {places.short(alone.path)}: {alone.reason} ({alone.hint})"
        paper.line(Span(label, "yellow"), reason, hang=2)


# ----------------------------------------------------------------------------
# ``nacre open``.


_SECONDS = 30.0
_PAUSE_SECONDS = 0.1


@command_command("open", examples=["nacre open", "nacre open --print", "nacre open --forget"])
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
        forgotten = browsers.Browsers(run.settings.home).forget()
        message = "All browsers lost their access." if forgotten else "No browser had access."
        run.answer({"forgotten": forgotten}, Paper.line, message)
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
    """Return True if a graphical browser can open. The dashboard does not work in terminal browsers."""
    return sys.platform in ("darwin", "win32") or bool(
        environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")
    )


def _may_read(run: Run) -> bool:
    """Return True if the daemon is allowed to read sessions, which requires a person's consent to the first reading."""
    if run.home.sessions.last_ingest() or not is_empty(run.home):
        return True
    if run.is_interactive and click.confirm(
        "Read your agents' sessions on this machine?", default=True, err=True
    ):
        return True
    run.warnings.append("no sessions were read yet: run nacre ingest")
    return False


def _address(run: Run) -> str:
    """Ask the daemon for its address, starting the daemon if necessary. Raises OwnerOnlyError, UnavailableError."""
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
                    "no daemon answers", hint="nacre serve logs shows the reason"
                ) from away
        if not is_started:
            is_started = True
            start_daemon(home, run.settings.environ, *(() if _may_read(run) else ("--no-watch",)))
        time.sleep(_PAUSE_SECONDS)


# ----------------------------------------------------------------------------
# ``nacre mcp``.


@command_command("mcp", examples=["nacre mcp", "nacre mcp --tools all"])
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
    mcp_protocol.serve(face, mcp_protocol.Wire.taken())


def _face(home: Path | None, *, everything: str | None, structured: bool) -> calling.Face:
    settings = nacre_settings.load_settings(home)
    folder = None
    with contextlib.suppress(FileNotFoundError):  # the folder was deleted
        folder = str(Path.cwd())
    start = partial(_start_daemon, settings) if settings.flag("daemon.enabled") else None
    return calling.Face(
        calling.HomeCalls(settings.home, agent=settings.actor.agent or AN_AGENT, start=start),
        everything=(everything or settings.text("mcp.tools")) == "all",
        structured=structured,
        folder=folder,
        session=settings.session,
        note=partial(_note, settings.home),
    )


def _start_daemon(settings: nacre_settings.Settings) -> None:
    # Started by a process that ends immediately, because agents stop this server with all its child processes.
    link.start_process(str(settings.home), settings.environ, "serve", "--on-demand")


def _note(home: Path, line: str) -> None:
    """Add a line to the log of an existing home. Ignore errors."""
    if home.is_dir():
        with contextlib.suppress(OSError):
            Log(home, "mcp").write(line)


# ----------------------------------------------------------------------------
# ``nacre statusline``. Without options, :mod:`nacre.serve.statusline` prints the line, and this module is not loaded.


_SECONDS_STATUSLINE = 1.0


@command_command(
    "statusline",
    examples=["nacre statusline", """echo '{"session_id": "7f3a1c2d"}' | nacre statusline"""],
)
def statusline(run: Run) -> None:
    """Print a summary of the session for Claude Code's status line.

    For example, "nacre: 3 told, 12 to review" means that the session was given 3 memories, and that
    12 reviews are pending. Set it in ~/.claude/settings.json:
    "statusLine": {"type": "command", "command": "nacre statusline"}
    """
    found = look(environment(), _SECONDS_STATUSLINE)
    run.answer({"told": 0, "to_review": 0} | found, Paper.line, statusline_line(found))
