"""``nacre watcher``: have the system run ``nacre watch``."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

import click

from nacre.cli.command import Group
from nacre.cli.formats import Record, count, stamp
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.run import Run
from nacre.platform.days import shown, shown_minute
from nacre.watching import install as installing
from nacre.watching import log

if TYPE_CHECKING:
    from nacre.watching.install import Installation
    from nacre.watching.status import Standing


_FOLLOW_SECONDS = 0.5
_STATES = {
    "starting": "The watcher is starting",
    "running": "The watcher runs",
    "stale": "The watcher runs and says nothing",
    "died": "The watcher ended without saying so",
    "stopped": "The watcher is stopped",
    "never": "No watcher ever ran for this home",
}


@click.group("watcher", cls=Group, examples=["nacre watcher install", "nacre watcher status", "nacre watcher logs"])
def watcher() -> None:
    """Have the system follow your agents' sessions.

    nacre watch does the same in the foreground.
    """


@watcher.command("install", examples=["nacre watcher install", "nacre watcher install --dry-run"])
@click.option("--dry-run", is_flag=True, help="Only show the file that would be written, and what would be run.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def install(run: Run, dry_run: bool, yes: bool) -> None:
    """Start nacre serve, which follows sessions, now and with every login.

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
        lambda paper: paper.line(bold("Installed"), f" {found.path}; nacre watcher status tells how it is"),
    )


@watcher.command("uninstall", examples=["nacre watcher uninstall"])
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@click.pass_obj
def uninstall(run: Run, dry_run: bool) -> None:
    """Stop it, and have the system forget it.

    Your memories stay.
    """
    found = installing.installation(run.settings)
    if not dry_run:
        found = perform(run, "watcher-uninstall")
    words = "Would remove" if dry_run else "Removed"
    run.answer(_installation_record(found, done=not dry_run), lambda paper: paper.line(bold(words), f" {found.path}"))


@watcher.command("start", examples=["nacre watcher start"])
@click.pass_obj
def start(run: Run) -> None:
    """Start the watcher in the background.

    Where it is not installed it runs until the machine is restarted.
    """
    _prepare(run)
    _answer(run, perform(run, "watcher-start"))


@watcher.command("stop", examples=["nacre watcher stop"])
@click.pass_obj
def stop(run: Run) -> None:
    """Have the watcher finish what it is at, and end.

    An installed one starts again with the next login.
    """
    ran: bool = perform(run, "watcher-stop")
    found: Standing = perform(run, "watcher")
    if not ran:
        run.warnings.append("no watcher ran")
    _answer(run, found)


@watcher.command("restart", examples=["nacre watcher restart"])
@click.pass_obj
def restart(run: Run) -> None:
    """Stop it and start it again, as after an update of nacre."""
    _prepare(run)
    perform(run, "watcher-stop")
    _answer(run, perform(run, "watcher-start"))


@watcher.command("status", examples=["nacre watcher status", "nacre watcher status --json"])
@click.pass_obj
def status(run: Run) -> None:
    """Tell whether the watcher runs, and what it did.

    Exits with 1 where it does not run.
    """
    found: Standing = perform(run, "watcher")
    run.exit_code = 0 if found.state == "running" else 1
    _answer(run, found)


@watcher.command("logs", examples=["nacre watcher logs", "nacre watcher logs -n 200", "nacre watcher logs --follow"])
@click.option("--lines", "-n", type=click.IntRange(1, 100_000), default=40, show_default=True, help="The last lines.")
@click.option("--follow", "-f", is_flag=True, help="Go on with what is written, until Ctrl-C.")
@click.pass_obj
def logs(run: Run, lines: int, follow: bool) -> None:
    """Show what the watcher in the background wrote."""
    home = run.settings.home
    found = log.last_lines(home, lines)
    path = log.log_file(home)

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
    path = log.log_file(run.settings.home)
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
            f"Started by the system: {path}" if path else "Not installed: nacre watcher install has it always started."
        )
        paper.line(dim(how))

    run.answer(_standing_record(found) | {"installed": str(path) if path else None}, render)


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
        "path": str(found.path),
        "text": found.text,
        "commands": [list(command) for command in found.install],
        "done": done,
    }


def _standing_record(found: Standing) -> Record:
    """How it stands with the watcher."""
    health = found.health
    return {
        "state": found.state,
        "pid": health.pid if health else None,
        "started": stamp(health.started) if health else None,
        "heartbeat": stamp(health.heartbeat) if health else None,
        "stopped": stamp(health.stopped) if health else None,
        "mode": health.mode if health else None,
        "why_polling": health.why_polling if health else None,
        "folders": health.folders if health else None,
        "transcripts": health.transcripts if health else None,
        "turns": health.turns if health else None,
        "memories": health.memories if health else None,
        "vectors_left": health.vectors_left if health else None,
        "last_read": stamp(health.last_read) if health else None,
        "last_error": health.last_error if health else None,
        "last_error_at": stamp(health.last_error_at) if health else None,
    }


def _render_standing(paper: Paper, found: Standing) -> None:
    """How it stands, in a line, then what it did."""
    health = found.health
    paper.line(bold(_STATES[found.state]), f" (process {health.pid})." if health and found.lives else ".")
    if health is None or found.state == "never":
        return
    errors = []
    if health.last_error and health.last_error_at:
        errors.append(("last problem", f"{health.last_error} ({shown_minute(health.last_error_at)})"))
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
