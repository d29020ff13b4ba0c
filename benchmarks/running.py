"""Shared parts of the commands: option types, temporary folders, progress."""

from __future__ import annotations

import dataclasses
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import nacre
from nacre.base.frozen import frozen
from nacre.cli import output
from nacre.cli.command import Paper, Run
from nacre.errors import InvalidInputError
from nacre.values.reports import OnProgress

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
NEW_FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)


@contextmanager
def progress_shown(run: Run) -> Iterator[OnProgress]:
    """Show progress on a terminal during the block."""
    with output.progress_bar(run) as notify:
        yield notify


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


def answer_measured(run: Run, record: Mapping[str, Any], render: Callable[[Paper], None]) -> None:
    """Output the measured values and a description of this machine."""
    machine = describe()

    def render_all(paper: Paper) -> None:
        render(paper)
        paper.blank()
        paper.note(
            f"{machine.processor}, {machine.cores} cores, {machine.system}, Python {machine.python}, "
            f"nacre {machine.commit or 'installed'}"
        )

    run.answer({**record, "machine": dataclasses.asdict(machine)}, render_all)


@frozen
class Machine:
    """The machine and the software versions that were measured."""

    processor: str
    cores: int
    system: str
    python: str
    commit: str | None


def describe() -> Machine:
    """Return a description of this machine."""
    return Machine(
        processor=_processor(),
        cores=os.cpu_count() or 1,
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        commit=_commit(),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def _commit() -> str | None:
    folder = Path(nacre.__file__).parent
    try:
        described = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return described.stdout.strip() or None
