"""``nacre benchmark``."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.cluster.scale import scale
from nacre.cli.command import Group, command
from nacre.cli.measured import answer_measured
from nacre.cli.paper import Paper, dim
from nacre.cli.run import Run
from nacre.errors import InvalidInput
from nacre.speed import measurement

if TYPE_CHECKING:
    from nacre.speed.measurement import Latency, SpeedResult

_FOR_DEVELOPERS = frozenset(
    (
        "claims code context dreams extraction gaps gateway graph hooks judge locks parity redaction retrieval sheet "
        "silence size stale writers"
    ).split()
)
"""Benchmarks that are part of a checkout only."""


class _Benchmarks(Group):
    """A group that says where the developers' benchmarks are."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command. Raises InvalidInput for a benchmark that is not installed."""
        if args[0] in _FOR_DEVELOPERS:
            raise InvalidInput(
                f"the benchmark {args[0]!r} is for developing nacre, and not installed with it",
                hint=f"run from a checkout: python -m benchmarks {args[0]}",
            )
        return super().resolve_command(ctx, args)


@click.group(
    "benchmark", cls=_Benchmarks,
    examples=["nacre benchmark speed --transcripts ~/.claude/projects"],
)  # fmt: skip
def benchmark() -> None:
    """Measure how fast nacre is on this machine.

    nacre eval measures how well recall answers; a checkout of nacre has more: python -m benchmarks.
    """


@command(
    "speed",
    examples=[
        "nacre benchmark speed --transcripts ~/.claude/projects",
        "nacre benchmark speed --transcripts samples --megabytes 100 --turns 20000 --json",
    ],
)
@click.option(
    "--transcripts", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True,
    help="A tree with Claude Code sessions to repeat.",
)  # fmt: skip
@click.option("--megabytes", type=click.IntRange(1), default=500, show_default=True, help="Raw transcripts to ingest.")
@click.option("--turns", type=click.IntRange(100), default=100_000, show_default=True, help="Turns to recall from.")
@click.pass_obj
def speed(run: Run, transcripts: Path, megabytes: int, turns: int) -> None:
    """Measure how fast nacre reads, recalls and starts.

    Works in a temporary folder; nothing is written to your home.
    """
    with tempfile.TemporaryDirectory(prefix="nacre-speed-") as folder, progress.shown(run) as notify:
        result = measurement.measure(
            transcripts, Path(folder), megabytes=megabytes, turns=turns, notify=notify or (lambda _: None)
        )
    answer_measured(run, dataclasses.asdict(result), lambda paper: _render_speed(paper, result))


benchmark.add_command(speed)
benchmark.add_command(scale)


def _render_speed(paper: Paper, result: SpeedResult) -> None:
    """Ingest, recall and start."""
    paper.heading("Ingest as a process of its own")
    rows = [
        [
            ingest.name,
            f"{ingest.searchable_seconds:.1f} s",
            f"{ingest.searchable_mb_per_second:.0f} MB/s",
            f"{ingest.seconds:.1f} s",
            f"{ingest.megabytes_per_second:.0f} MB/s",
            f"{ingest.cpu_seconds:.1f} s",
            f"{ingest.peak_mb:.0f} MB",
            f"{ingest.turns:,}",
        ]
        for ingest in result.ingests
    ]
    header = [dim(name) for name in ("", "searchable", "", "whole command", "", "CPU", "memory", "turns")]
    paper.table([header, *rows], indent=2)
    paper.heading(f"Recall at {result.turns:,} turns and {result.passages:,} passages, warm, in this process")
    _latencies(paper, result.recalls)
    paper.line(dim(result.note), indent=2)
    paper.heading(f"Contexts with {result.memories:,} memories, warm, in this process")
    _latencies(paper, result.contexts)
    paper.heading("Whole processes, median of seven")
    paper.table([[start.name, f"{start.median_ms:.0f} ms"] for start in result.starts], indent=2)


def _latencies(paper: Paper, latencies: Sequence[Latency]) -> None:
    rows = [
        [latency.name, f"p50 {latency.p50_ms:.1f} ms", f"p95 {latency.p95_ms:.1f} ms", f"{latency.queries} questions"]
        for latency in latencies
    ]
    paper.table(rows, indent=2)
