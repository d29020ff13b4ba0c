"""``nacre watch``."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from nacre import __version__, settings
from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.formats import Record, count, size
from nacre.cli.home.ingest_report import ingest_record, render_ingest
from nacre.cli.home.problems import problem_records
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim, printable, unsteered
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.cli.services.events import event_line, event_record
from nacre.cli.services.signals import stopped_by_signals
from nacre.context import snapshot
from nacre.home import home
from nacre.home.territory import territory
from nacre.values.actor import Face
from nacre.watching import log as watching_log
from nacre.watching import watcher

if TYPE_CHECKING:
    from nacre.home.home import Home
    from nacre.values.context import ContextBlock
    from nacre.values.reports import IngestReport
    from nacre.watching.survey import Survey
    from nacre.watching.watcher import WatchEvent, WatchOptions


_BACKGROUND_NICENESS = 10


@command(
    "watch",
    examples=[
        "nacre watch",
        "nacre watch --context ~/code/shop/CONTEXT.md",
        "nacre watcher install        # have the system do it",
    ],
)
@argument("watch-once", "paths")
@click.option("--once", is_flag=True, help="Read what is new, learn, make vectors, and end.")
@click.option("--interval", type=click.FloatRange(1, 86_400), help="Seconds between two looks at all transcripts.")
@click.option("--polling", is_flag=True, help="Look again and again instead of being told: for network drives.")
@option("watch-once", "learns", "--no-learn", help="Make sessions searchable; write no memories, make no vectors.")
@click.option(
    "--context", type=click.Path(dir_okay=False, resolve_path=True, path_type=Path),
    help="After each round, write there what nacre context tells in its folder.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only say what would be followed, and what waits to be read.")
@click.option("--log", is_flag=True, help="Write into the home's logs/watcher.log instead of here.")
@click.option("--background", is_flag=True, hidden=True, help="With --once: give way to everything else.")
@option("watch-once", "reads", "--no-read", hidden=True, help="With --once: only learn, and make vectors.")
@option("watch-once", "seconds", hidden=True, help="With --once: make vectors no longer than this.")
@click.pass_obj
def watch(  # noqa: PLR0913 - its options
    run: Run, paths: tuple[Path, ...], once: bool, interval: float | None, polling: bool, learns: bool,
    context: Path | None, dry_run: bool, log: bool, background: bool, reads: bool, seconds: float | None,
) -> None:  # fmt: skip
    """Follow your agents' sessions as they happen.

    What is written is searchable within two seconds; what it teaches follows. Without PATHS, everything the agents on
    this machine write; with PATHS, those files and folders. It runs until Ctrl-C, or nacre watcher stop. With --json
    it prints one object for each event, each on a line of its own.
    """
    if dry_run:
        _survey(run, paths)
    elif once:
        _go_round(run, paths, context, background=background, reads=reads, learns=learns, seconds=seconds)
    else:
        _follow(run, watcher.WatchOptions(paths, interval, polling, learns, context), to_log=log)


def _survey(run: Run, paths: tuple[Path, ...]) -> None:
    found: Survey = perform(run, "watch-survey", paths=paths)
    run.answer(_survey_record(found), lambda paper: _render_survey(paper, found))


def _go_round(
    run: Run, paths: tuple[Path, ...], context: Path | None, *, background: bool, reads: bool, learns: bool,
    seconds: float | None,
) -> None:  # fmt: skip
    if background:
        _give_way()
    wanted: dict[str, Any] = {"paths": paths, "reads": reads, "seconds": seconds, "learns": learns}
    with progress.shown(run) as notify:
        report: IngestReport = perform(run, "watch-once", notify, **wanted)
    _write_context(run, context)
    if report.problems and not background:
        run.exit_code = 1
    run.answer(ingest_record(report), lambda paper: render_ingest(paper, report, searched=not paths))


def _write_context(run: Run, path: Path | None) -> None:
    """Keep a file with what an agent should know in its folder; else the one of ``watch.context``, if it is set."""
    named = run.settings.text("watch.context")
    place = path or (Path(named).expanduser() if named else None)
    if place:
        block: ContextBlock = perform(run, "context", moment="start", folder=str(place.parent))
        snapshot.write_snapshot(place, block, territory(run.settings))


def _give_way() -> None:
    """Run only where nobody else wants to, and end like with Ctrl-C when asked to: between two steps."""
    if hasattr(os, "nice"):
        os.nice(_BACKGROUND_NICENESS)

    def interrupt(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def _follow(run: Run, options: WatchOptions, *, to_log: bool) -> None:
    if options.paths:
        run.settings.actor.require_owner("nacre watch of files that are named")
    write: Callable[[str], None] = watching_log.Log(run.settings.home).write if to_log else click.echo
    stop = stopped_by_signals()

    def tell(event: WatchEvent) -> None:
        with suppress(BrokenPipeError):
            write(_line(run, event, with_day=to_log))

    run.keeps_history = False
    watcher.Watcher(_opened, options, tell, __version__).run(stop)


def _opened() -> Home:
    return home.open_home(replace(settings.load_settings(), face=Face.DAEMON))


def _line(run: Run, event: WatchEvent, *, with_day: bool) -> str:
    if run.as_json:
        return unsteered(json.dumps(event_record(event)))

    return printable(event_line(event, with_day=with_day))


def _survey_record(found: Survey) -> Record:
    """The answer of ``watch --dry-run``."""
    return {
        "dry_run": True,
        "watched": [{"path": str(one.path), "tool": one.tool, "exists": one.is_there} for one in found.watched],
        "files": found.files,
        "unread": {"files": found.unread_files, "bytes": found.unread_bytes},
        "problems": problem_records(found.problems),
    }


def _render_survey(paper: Paper, found: Survey) -> None:
    """What would be watched, then what waits there."""
    there = [one for one in found.watched if one.is_there]
    paper.line(bold("Would follow"))
    paper.table([(one.tool or "named", str(one.path)) for one in there], indent=2)
    missing = len(found.watched) - len(there)
    if missing:
        words = f"and {count(missing, 'more folder')} as soon as a tool makes {'it' if missing == 1 else 'them'}"
        paper.line(dim(words), indent=2)
    unread = f"{count(found.unread_files, 'transcript')} ({size(found.unread_bytes)})"
    paper.line(f"{count(found.files, 'transcript')} there; {unread} would be read now.")
    for problem in found.problems:
        paper.line(f"  {problem.path}: {problem.message}")
