"""``python -m benchmarks size``, ``writers``, ``locks`` and ``gateway``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.load.conversations import GatewayResult, measure_gateway
from benchmarks.load.locks import JobHolds, measure_locks
from benchmarks.load.size import SizeResult, measure_size
from benchmarks.load.writers import WritersResult, measure_writers
from benchmarks.running import FOLDER, NEW_FOLDER, answer_measured, workspace
from nacre.cli.command import Paper, Run, command, dim


@command(
    "size",
    examples=[
        "python -m benchmarks size --transcripts ~/.claude/projects",
        "python -m benchmarks size --transcripts samples --turns 100000 --json",
        "python -m benchmarks size --transcripts samples --server postgresql://postgres@localhost/bench",
    ],
)
@click.option(
    "--transcripts",
    type=FOLDER,
    required=True,
    multiple=True,
    help="Folder with sessions from which a large home is generated.",
)
@click.option(
    "--turns",
    type=click.IntRange(1000),
    default=1_000_000,
    show_default=True,
    help="Final number of turns.",
)
@click.option(
    "--folder",
    type=NEW_FOLDER,
    help="A new folder on the disk to measure (default: a temporary folder).",
)
@click.option(
    "--server",
    default="",
    help="Measure an empty PostgreSQL database at this address instead.",
)
def size(
    run: Run, transcripts: tuple[Path, ...], turns: int, folder: Path | None, server: str
) -> None:
    """Measure search latency from a thousand turns to a million.

    Nothing is written to your home. A million turns take about 3 GB and half an hour.
    """

    with workspace(run, folder) as (place, notify):
        result = measure_size(transcripts, place, turns=turns, server=server, notify=notify)
    answer_measured(run, dataclasses.asdict(result), lambda paper: _render_size(paper, result))


@command(
    "writers",
    examples=[
        "python -m benchmarks writers",
        "python -m benchmarks writers --clients 16 --as threads --seconds 5 --json",
    ],
)
@click.option(
    "--clients",
    type=click.IntRange(1, 512),
    default=64,
    show_default=True,
    help="Number of concurrent clients.",
)
@click.option(
    "--as",
    "kind",
    type=click.Choice(["processes", "threads", "both"]),
    default="both",
    show_default=True,
    help="Separate processes, threads of one process, or half of each.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 600),
    default=20.0,
    show_default=True,
    help="Duration of the test.",
)
@click.option(
    "--home", type=NEW_FOLDER, help="A new home on the disk to measure (default: a temporary home)."
)
def writers(run: Run, clients: int, kind: str, seconds: float, home: Path | None) -> None:
    """Measure how many memories a second many clients store, and check that none are lost.

    Of the operations, 78 % are stores, 20 % recalls and 2 % updates of one shared memory. Nothing
    is written to your home.
    """

    processes = {"processes": clients, "threads": 0, "both": clients // 2}[kind]
    with workspace(run, home) as (place, notify):
        result = measure_writers(
            place, processes=processes, threads=clients - processes, seconds=seconds, notify=notify
        )
    answer_measured(run, dataclasses.asdict(result), lambda paper: _render_writers(paper, result))
    run.exit_code = 1 if result.wrong else 0


@command(
    "locks", examples=["python -m benchmarks locks", "python -m benchmarks locks --size 500 --json"]
)
@click.option(
    "--size",
    type=click.IntRange(10, 100_000),
    default=2000,
    show_default=True,
    help="Number of sessions and memories.",
)
@click.option(
    "--home",
    type=NEW_FOLDER,
    help="A new folder on the disk to measure (default: a temporary folder).",
)
def locks(run: Run, size: int, home: Path | None) -> None:
    """Measure how long each long job blocks other writers.

    Ingest, import, sync, forget and other jobs run one after another on new homes. Nothing is written to your home.
    """

    with workspace(run, home) as (place, notify):
        jobs = measure_locks(place, size=size, notify=notify)
    record = {"size": size, "jobs": [dataclasses.asdict(job) for job in jobs]}
    answer_measured(run, record, lambda paper: _render_locks(paper, size, jobs))


@command(
    "gateway",
    examples=["python -m benchmarks gateway", "python -m benchmarks gateway --messages 600 --json"],
)
@click.option(
    "--messages",
    type=click.IntRange(10, 1_000_000),
    default=10_000,
    show_default=True,
    help="Number of messages.",
)
@click.option(
    "--conversations",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="Number of people.",
)
@click.option(
    "--home", type=NEW_FOLDER, help="A new home on the disk to measure (default: a temporary home)."
)
def gateway(run: Run, messages: int, conversations: int, home: Path | None) -> None:
    """Measure how many messages a second the gateway answers, and check that each is answered once and in order.

    Messages are repeated and reordered, connections break, and sends are refused. The agent answers
    within 20 ms. Nothing is written to your home.
    """

    with workspace(run, home) as (place, _):
        result = measure_gateway(place, messages=messages, conversations=conversations)
    answer_measured(run, dataclasses.asdict(result), lambda paper: _render_gateway(paper, result))
    run.exit_code = 1 if result.wrong else 0


def _render_gateway(paper: Paper, result: GatewayResult) -> None:
    paper.heading(
        f"{result.messages:,} messages from {result.conversations:,} people in {result.seconds:.0f} seconds"
    )
    rows = [
        [
            "answered",
            f"{result.messages_per_second:.0f} messages a second, in {result.turns:,} answers",
        ],
        [
            "disturbances",
            f"{result.duplicates:,} duplicates, {result.cuts} cuts, {result.refusals:,} refused sends",
        ],
        [
            "memory",
            f"half-way {result.memory_half_mb:.0f} MB, at the end {result.memory_end_mb:.0f} MB",
        ],
        ["possibly sent twice", f"{result.doubled}"],
    ]
    paper.table(rows, indent=2)
    for problem in result.wrong:
        paper.line(problem, indent=2)


def _render_size(paper: Paper, result: SizeResult) -> None:
    paper.heading(f"Warm recall over turns, generated from {result.material:,} real turns")
    rows = [
        [
            f"{size.turns:,} turns",
            f"lexical p50 {size.lexical.p50:.1f}, p95 {size.lexical.p95:.1f}, p99 {size.lexical.p99:.1f} ms",
            f"all lanes p50 {size.all_lanes.p50:.1f}, p95 {size.all_lanes.p95:.1f}, p99 {size.all_lanes.p99:.1f} ms",
            f"text {size.text_bytes:.0f}, vectors {size.vector_bytes:.0f} bytes per turn",
            f"{size.memory_mb:.0f} MB, mapped {size.mapped_mb:.0f}",
            f"generated in {size.growing_seconds:.0f} s, vectors in {size.vector_seconds:.0f} s",
        ]
        for size in result.sizes
    ]
    paper.table(rows, indent=2)
    paper.line(dim(result.note), indent=2)


def _render_writers(paper: Paper, result: WritersResult) -> None:
    clients = f"{result.processes} processes and {result.threads} threads"
    paper.heading(
        f"{clients}, {result.seconds:.0f} seconds: {result.stores_per_second:.0f} durable stores a second"
    )
    spreads = {
        "store": result.stores,
        "recall": result.recalls,
        "update of one memory": result.updates,
        "write lock held": result.write_lock,
        "vault lock held": result.vault_lock,
    }
    rows = [
        [
            name,
            f"p50 {times.p50:.0f} ms",
            f"p95 {times.p95:.0f} ms",
            f"p99 {times.p99:.0f} ms",
            f"longest {times.longest:.0f} ms",
            f"{times.count:,} times",
        ]
        for name, times in spreads.items()
    ]
    paper.table(rows, indent=2)
    each = 1000 * result.cpu_seconds / max(1, result.stores.count)
    paper.line(
        f"The clients used {result.cpu_seconds:.1f} s of CPU in total, {each:.1f} ms per store.",
        indent=2,
    )
    outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(result.outcomes.items()))
    paper.line(f"Answers: {outcomes or 'none'}.", indent=2)
    errors = ", ".join(f"{count:,} × {name}" for name, count in sorted(result.errors.items()))
    paper.line(f"Errors: {errors or 'none'}.", indent=2)
    for text in result.wrong or ("All acknowledged memories exist once; index and vault agree.",):
        paper.line(text, indent=2)


def _render_locks(paper: Paper, size: int, jobs: Sequence[JobHolds]) -> None:
    paper.heading(f"Duration of locks in milliseconds, {size:,} sessions and {size:,} memories")
    rows = [
        [
            "job",
            "seconds",
            "write lock",
            "p50",
            "p99",
            "longest",
            "vault lock",
            "p50",
            "p99",
            "longest",
        ]
    ]
    for job in jobs:
        locks = (
            [
                f"{holds.count:,} ×",
                *(f"{figure:.0f}" for figure in (holds.p50, holds.p99, holds.longest)),
            ]
            for holds in (job.write, job.vault)
        )
        rows.append([job.job, f"{job.seconds:.1f}", *(cell for cells in locks for cell in cells)])
    paper.table(rows, indent=2)
