"""``nacre watcher``: have the system run ``nacre watch``."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

import click

from nacre.cli.command import Group
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.watching.install import Installation
    from nacre.watching.status import Standing

_FOLLOW_SECONDS = 0.5


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
    from nacre.watching import install as installing

    found = installing.installation(run.settings)
    if dry_run:
        run.answer(_installation_record(found, done=False), lambda paper: _show_plan(paper, found))
        return
    if run.is_interactive and not yes:
        run.confirm(f"Write {found.path}, and run {_shown(found.install[-1])}?")
    _prepare(run)
    found = installing.install(run.settings)
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
    from nacre.watching import install as installing

    found = installing.installation(run.settings)
    if not dry_run:
        found = installing.uninstall(run.settings)
    words = "Would remove" if dry_run else "Removed"
    run.answer(_installation_record(found, done=not dry_run), lambda paper: paper.line(bold(words), f" {found.path}"))


@watcher.command("start", examples=["nacre watcher start"])
@click.pass_obj
def start(run: Run) -> None:
    """Start the watcher in the background.

    Where it is not installed it runs until the machine is restarted.
    """
    from nacre.watching import install as installing

    _prepare(run)
    _answer(run, installing.start(run.settings))


@watcher.command("stop", examples=["nacre watcher stop"])
@click.pass_obj
def stop(run: Run) -> None:
    """Have the watcher finish what it is at, and end.

    An installed one starts again with the next login.
    """
    from nacre.platform.ids import utc_now
    from nacre.watching import install as installing
    from nacre.watching.status import standing

    ran = installing.stop(run.settings)
    found = standing(run.settings.home, utc_now())
    if not ran:
        run.warnings.append("no watcher ran")
    _answer(run, found)


@watcher.command("restart", examples=["nacre watcher restart"])
@click.pass_obj
def restart(run: Run) -> None:
    """Stop it and start it again, as after an update of nacre."""
    from nacre.watching import install as installing

    _prepare(run)
    installing.stop(run.settings)
    _answer(run, installing.start(run.settings))


@watcher.command("status", examples=["nacre watcher status", "nacre watcher status --json"])
@click.pass_obj
def status(run: Run) -> None:
    """Tell whether the watcher runs, and what it did.

    Exits with 1 where it does not run.
    """
    from nacre.platform.ids import utc_now
    from nacre.watching.status import standing

    found = standing(run.settings.home, utc_now())
    run.exit_code = 0 if found.state == "running" else 1
    _answer(run, found)


@watcher.command("logs", examples=["nacre watcher logs", "nacre watcher logs -n 200", "nacre watcher logs --follow"])
@click.option("--lines", "-n", type=click.IntRange(1, 100_000), default=40, show_default=True, help="The last lines.")
@click.option("--follow", "-f", is_flag=True, help="Go on with what is written, until Ctrl-C.")
@click.pass_obj
def logs(run: Run, lines: int, follow: bool) -> None:
    """Show what the watcher in the background wrote."""
    from nacre.watching.log import last_lines, log_file

    home = run.settings.home
    found = last_lines(home, lines)
    path = log_file(home)

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
    from nacre.watching.log import log_file

    path = log_file(run.settings.home)
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
    from nacre.cli.records.watching import standing_record
    from nacre.cli.render.watching import render_standing
    from nacre.watching.install import installation

    way = installation(run.settings)
    path = way.path if way.is_installed else None

    def render(paper: Paper) -> None:
        render_standing(paper, found)
        how = (
            f"Started by the system: {path}" if path else "Not installed: nacre watcher install has it always started."
        )
        paper.line(dim(how))

    run.answer(standing_record(found) | {"installed": str(path) if path else None}, render)


def _show_plan(paper: Paper, found: Installation) -> None:
    paper.line("Would write ", bold(str(found.path)), ":")
    paper.blank()
    for line in found.text.splitlines():
        paper.verbatim(f"    {line}")
    paper.blank()
    paper.line("and run:")
    for command in found.install:
        paper.verbatim(f"    {_shown(command)}")


def _shown(command: tuple[str, ...]) -> str:
    return shlex.join(command)


def _installation_record(found: Installation, *, done: bool) -> dict[str, object]:
    return {
        "form": found.form,
        "path": str(found.path),
        "text": found.text,
        "commands": [list(command) for command in found.install],
        "done": done,
    }
