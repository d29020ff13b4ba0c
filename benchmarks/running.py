"""What the commands share: types of options, a folder to measure in, progress."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from nacre.cli import output
from nacre.cli.command import Run
from nacre.errors import InvalidInput
from nacre.values.reports import OnProgress

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
NEW_FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)


@contextmanager
def progress_shown(run: Run) -> Iterator[OnProgress]:
    """Show progress on a terminal while the block runs."""
    with output.shown(run) as notify:
        yield notify or (lambda _: None)


@contextmanager
def workspace(run: Run, new: Path | None = None) -> Iterator[tuple[Path, OnProgress]]:
    """A folder to measure in, and progress: the new folder that is named, else a temporary one.

    Raises InvalidInput where the named folder exists.
    """
    if new and new.exists():
        raise InvalidInput(f"{new} is there already", hint="name a folder that is not there yet")
    with (
        tempfile.TemporaryDirectory(prefix="nacre-benchmark-") as folder,
        progress_shown(run) as notify,
    ):
        yield new or Path(folder), notify
