"""``python -m benchmarks code``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from benchmarks.load.code import CodeResult, measure_code
from benchmarks.running import FOLDER, NEW_FOLDER, answer_measured, workspace
from nacre.cli.command import Paper, Run, command


@command(
    "code",
    examples=[
        "python -m benchmarks code",
        "python -m benchmarks code --repository ~/code/shop --json",
    ],
)
@click.option("--repository", type=FOLDER, help="A real repository (default: a generated one).")
@click.option(
    "--files",
    type=click.IntRange(8),
    default=5000,
    show_default=True,
    help="Number of files in the generated repository.",
)
@click.option(
    "--symbols",
    type=click.IntRange(8),
    default=40,
    show_default=True,
    help="Number of symbols in each file.",
)
@click.option(
    "--memories",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Number of memories that mention code.",
)
@click.option(
    "--folder",
    type=NEW_FOLDER,
    help="A new folder on the disk to measure (default: a temporary folder).",
)
def code(
    run: Run, repository: Path | None, files: int, symbols: int, memories: int, folder: Path | None
) -> None:
    """Measure how fast a repository is read and questions about its code are answered.

    Nothing is written to your home or to a real repository.
    """
    with workspace(run, folder) as (place, notify):
        result = measure_code(
            place, root=repository, files=files, symbols=symbols, memories=memories, notify=notify
        )
    answer_measured(run, dataclasses.asdict(result), lambda paper: _render(paper, result))


def _render(paper: Paper, result: CodeResult) -> None:
    paper.heading(f"{result.files:,} files, {result.symbols:,} symbols, {result.edges:,} edges")
    paper.line(
        f"read in {result.seconds:.1f} s ({result.cpu_seconds:.1f} s of CPU, {result.cores} cores), again in "
        f"{result.unchanged_seconds:.1f} s, with one file changed in {result.one_changed_seconds:.1f} s",
        indent=2,
    )
    paper.line(
        f"peak memory {result.memory_mb:.0f} MB, database {result.database_mb:.0f} MB", indent=2
    )
    rows = [
        [
            name,
            f"p50 {times.p50:.1f} ms",
            f"p95 {times.p95:.1f} ms",
            f"longest {times.longest:.1f} ms",
        ]
        for name, times in result.questions.items()
    ]
    paper.table(rows, indent=2)
