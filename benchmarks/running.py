"""Shared parts of the commands: option types, temporary folders, progress."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from nacre.cli import output
from nacre.cli.command import Run
from nacre.errors import InvalidInputError
from nacre.values.reports import OnProgress

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
NEW_FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)


@contextmanager
def progress_shown(run: Run) -> Iterator[OnProgress]:
    """Show progress on a terminal during the block."""
    with output.shown(run) as notify:
        yield notify or (lambda _: None)


@contextmanager
def workspace(run: Run, new: Path | None = None) -> Iterator[tuple[Path, OnProgress]]:
    """Yield a folder for a measurement, which is ``new`` or temporary, and a progress callback.

    Raises InvalidInputError if ``new`` exists.
    """
    if new and new.exists():
        raise InvalidInputError(f"{new} already exists", hint="choose a new folder")
    with (
        tempfile.TemporaryDirectory(prefix="nacre-benchmark-") as folder,
        progress_shown(run) as notify,
    ):
        yield new or Path(folder), notify
