"""``python -m benchmarks code``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from benchmarks.load.code import CodeResult, measure_code
from benchmarks.running import FOLDER, NEW_FOLDER, workspace
from nacre.cli.command import Paper, Run, command
from nacre.cli.root import answer_measured


@command(
    "code",
    examples=[
        "python -m benchmarks code",
        "python -m benchmarks code --repository ~/code/shop --json",
    ],
)
@click.option("--repository", type=FOLDER, help="A real repository; else one is made.")
@click.option(
    "--files",
    type=click.IntRange(8),
    default=5000,
    show_default=True,
    help="Files of the one that is made.",
)
@click.option(
    "--symbols", type=click.IntRange(8), default=40, show_default=True, help="Symbols in each."
)
@click.option(
    "--memories",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Memories that name code.",
)
@click.option(
    "--folder", type=NEW_FOLDER, help="A new folder on the disk that counts; else a temporary one."
)
@click.pass_obj
def code(
    run: Run, repository: Path | None, files: int, symbols: int, memories: int, folder: Path | None
) -> None:
    """Tell how fast a repository is read, and how fast questions about its code are answered.

    Nothing is written to your home, nor to a real repository.
    """
    with workspace(run, folder) as (place, notify):
        result = measure_code(
            place, root=repository, files=files, symbols=symbols, memories=memories, notify=notify
        )
    answer_measured(run, dataclasses.asdict(result), lambda paper: _render(paper, result))


def _render(paper: Paper, result: CodeResult) -> None:
    """What reading took, and a line for each question."""
    paper.heading(f"{result.files:,} files, {result.symbols:,} symbols, {result.edges:,} edges")
    paper.line(
        f"read in {result.seconds:.1f} s ({result.cpu_seconds:.1f} s of CPU, {result.cores} cores), again in "
        f"{result.unchanged_seconds:.1f} s, with one file changed in {result.one_changed_seconds:.1f} s",
        indent=2,
    )
    paper.line(
        f"memory at most {result.memory_mb:.0f} MB, database {result.database_mb:.0f} MB", indent=2
    )
    rows = [
        [name, f"p50 {one.p50:.1f} ms", f"p95 {one.p95:.1f} ms", f"longest {one.longest:.1f} ms"]
        for name, one in result.questions.items()
    ]
    paper.table(rows, indent=2)
