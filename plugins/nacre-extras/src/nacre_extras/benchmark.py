"""``nacre admin benchmark``."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from nacre.cli import output
from nacre.cli.command import Paper, Run, command, dim
from nacre_extras import speed


@command(
    "benchmark",
    examples=[
        "nacre admin benchmark --transcripts ~/.claude/projects",
        "nacre admin benchmark --transcripts samples --megabytes 100 --turns 20000 --json",
    ],
)
@click.option(
    "--transcripts",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="A folder with Claude Code sessions to repeat.",
)
@click.option(
    "--megabytes",
    type=click.IntRange(1),
    default=500,
    show_default=True,
    help="Raw transcripts to ingest.",
)
@click.option(
    "--turns",
    type=click.IntRange(100),
    default=100_000,
    show_default=True,
    help="Turns to recall from.",
)
def benchmark(run: Run, transcripts: Path, megabytes: int, turns: int) -> None:
    """Measure how fast nacre reads, recalls and starts on this machine.

    It works in a temporary folder and writes nothing to your home. nacre admin check checks pinned answers.
    """
    with tempfile.TemporaryDirectory(prefix="nacre-speed-") as folder, output.shown(run) as notify:
        result = speed.measure(
            transcripts,
            Path(folder),
            megabytes=megabytes,
            turns=turns,
            notify=notify or (lambda _: None),
        )
    answer_measured(run, dataclasses.asdict(result), lambda paper: _render_speed(paper, result))


def answer_measured(run: Run, record: Mapping[str, Any], render: Callable[[Paper], None]) -> None:
    """Output the measured values and a description of this machine."""
    machine = speed.describe()

    def render_all(paper: Paper) -> None:
        render(paper)
        paper.blank()
        paper.note(
            f"{machine.processor}, {machine.cores} cores, {machine.system}, Python {machine.python}, "
            f"nacre {machine.commit or 'installed'}"
        )

    run.answer({**record, "machine": dataclasses.asdict(machine)}, render_all)


def _render_speed(paper: Paper, result: speed.SpeedResult) -> None:
    paper.heading("Ingest in a separate process")
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
    header = [
        dim(name) for name in ("", "searchable", "", "whole command", "", "CPU", "memory", "turns")
    ]
    paper.table([header, *rows], indent=2)
    paper.heading(
        f"Recall at {result.turns:,} turns and {result.passages:,} passages, warm, in this process"
    )
    _latencies(paper, result.recalls)
    paper.note(result.note, indent=2)
    paper.heading(f"Contexts with {result.memories:,} memories, warm, in this process")
    _latencies(paper, result.contexts)
    paper.heading("Whole processes, median of seven")
    paper.table([[start.name, f"{start.median_ms:.0f} ms"] for start in result.starts], indent=2)


def _latencies(paper: Paper, latencies: Sequence[speed.Latency]) -> None:
    rows = [
        [
            latency.name,
            f"p50 {latency.p50_ms:.1f} ms",
            f"p95 {latency.p95_ms:.1f} ms",
            f"{latency.queries} questions",
        ]
        for latency in latencies
    ]
    paper.table(rows, indent=2)
