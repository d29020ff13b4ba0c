"""Progress on a terminal; silence elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from nacre.platform.lazy import Module
from nacre.values.reports import OnProgress

if TYPE_CHECKING:
    from rich import console as rich_console
    from rich import progress as rich_progress
    from rich.progress import TaskID

    from nacre.cli.run import Run
    from nacre.llm.retry import Setback
    from nacre.values.reports import Progress
else:
    rich_console = Module("rich.console")
    rich_progress = Module("rich.progress")

_STAGES = {
    "reading": "Reading transcripts",
    "learning": "Learning from them",
    "archiving": "Archiving; text is searchable",
    "indexing": "Indexing",
    "verifying": "Verifying the archive",
    "asking": "Asking",
    "scrubbing": "Looking through what is stored",
    "redacting": "Redacting",
    "scanning": "Scanning",
    "exporting": "Writing the export",
    "importing": "Importing",
    "backup": "Backing up",
    "restoring": "Restoring",
    "claims": "Telling claims, Ctrl-C is fine",
    "judging": "Judging",
    "proving": "Reading transcripts again",
    "vectors": "Making vectors, Ctrl-C is fine",
}


@contextlib.contextmanager
def waiting(run: Run, told: str) -> Iterator[Callable[[Setback], None] | None]:
    """What is waited for, and how long already, while the block runs; tries that failed get a line each.

    In a pipe there are only these lines, with ``--json`` nothing: then it is ``None``.
    """
    if run.as_json:
        yield None
        return
    if not sys.stderr.isatty():
        yield lambda setback: click.echo(_setback(setback), err=True)
        return

    console = rich_console.Console(stderr=True, no_color=bool(run.environ.get("NO_COLOR")) or None, highlight=False)
    with rich_progress.Progress(
        rich_progress.TextColumn("{task.description}"),
        rich_progress.TimeElapsedColumn(),
        console=console,
        transient=True,
    ) as bars:
        bars.add_task(told, total=None)
        yield lambda setback: console.print(_setback(setback), markup=False)


def _setback(setback: Setback) -> str:
    wait = f"in {setback.wait:.0f} s" if setback.wait >= 1 else "at once"
    return (
        f"try {setback.number} of {setback.tries} failed after {setback.seconds:.1f} s: {setback.error.message}; "
        f"asking again {wait}"
    )


@contextlib.contextmanager
def shown(run: Run) -> Iterator[OnProgress | None]:
    """Bars on standard error while the block runs; ``None`` where nobody watches."""
    if run.as_json or not sys.stderr.isatty():
        yield None
        return

    console = rich_console.Console(stderr=True, no_color=bool(run.environ.get("NO_COLOR")) or None)
    columns = (
        rich_progress.TextColumn("{task.description}"), rich_progress.BarColumn(bar_width=24),
        rich_progress.TextColumn("{task.percentage:>3.0f}%"),
        rich_progress.TextColumn("{task.fields[note]}", style="dim"), rich_progress.TimeRemainingColumn(),
    )  # fmt: skip
    with rich_progress.Progress(*columns, console=console, transient=True) as bars:
        stages: dict[str, TaskID] = {}

        def show(progress: Progress) -> None:
            if not progress.total:
                return
            if progress.stage not in stages:
                for earlier in stages.values():
                    bars.update(earlier, visible=False)
                description = _STAGES.get(progress.stage, progress.stage)
                stages[progress.stage] = bars.add_task(description, total=progress.total, note="")
            bars.update(
                stages[progress.stage],
                completed=progress.done, total=progress.total, note=progress.note,
            )  # fmt: skip

        yield show
