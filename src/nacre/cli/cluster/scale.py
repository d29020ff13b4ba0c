"""``nacre benchmark scale``."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.boundary import INTERRUPTED
from nacre.cli.command import TEXT, command
from nacre.cli.formats import size
from nacre.cli.measured import answer_measured
from nacre.cli.paper import Paper, dim
from nacre.cli.run import Run
from nacre.platform.json_values import to_plain
from nacre.speed import growth

if TYPE_CHECKING:
    from nacre.speed import clients as speed_clients

_STEPS = ("1x1000", "9x1000", "90x1000")


@command(
    "scale",
    examples=[
        "nacre benchmark scale --url postgresql://postgres@localhost/bench --transcripts ~/.claude/projects",
        "nacre benchmark scale --url postgresql://… --transcripts samples --step 1x100000 --step 99x1000",
    ],
)
@click.option("--url", type=TEXT, required=True, help="The address of a PostgreSQL database to measure.")
@click.option("--transcripts", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True,
              help="A tree of sessions that tenants grow from.")  # fmt: skip
@click.option("--step", "steps", metavar="TENANTSxTURNS", type=TEXT, multiple=True, default=_STEPS, show_default=True,
              help="So many more tenants of so many turns, then measure; may be repeated.")  # fmt: skip
@click.option("--clients", type=click.IntRange(1, 1000), default=64, show_default=True, help="Clients that ask.")
@click.option(
    "--seconds", type=click.FloatRange(1), default=20.0, show_default=True, help="So long they ask each time."
)
@click.option("--clear", "clears", is_flag=True, help="Delete what an earlier measurement left, first.")
@click.pass_obj
def scale(
    run: Run, url: str, transcripts: Path, steps: tuple[str, ...], clients: int, seconds: float, *, clears: bool
) -> None:
    """Measure how a server answers as its tenants become more.

    It makes tenants whose names begin with scale-, starts nacre cluster api on this machine, has it asked, and deletes
    the tenants in the end. Others on the server feel it. Ctrl-C ends it; it deletes the tenants and tells what it
    measured that far.
    """
    wanted = growth.steps_of(steps)
    with tempfile.TemporaryDirectory(prefix="nacre-scale-") as folder, progress.shown(run) as notify:
        found = growth.measure_growth(
            url, transcripts, Path(folder), steps=wanted, clients=clients, seconds=seconds,
            notify=notify or (lambda _: None), clears=clears,
        )  # fmt: skip
    answer_measured(run, to_plain(found), lambda paper: _render(paper, found))
    if not found.is_whole:
        run.exit_code = INTERRUPTED


def _render(paper: Paper, found: growth.Growth) -> None:
    if not found.is_whole:
        paper.line(f"Interrupted; of the steps {len(found.stages)} ended. The tenants are deleted.")
    if not found.stages:
        return
    paper.heading("Tenants as they are made and filled")
    header = ("tenants", "of turns", "to make one", "empty", "turns a second", "vectors a second", "a turn")
    paper.table([_growing(stage) for stage in found.stages], header=header, indent=2)
    paper.heading("One client recalls from the newest tenants")
    columns = ("", "requests", "p50", "p95", "p99")
    paper.table([row for stage in found.stages for row in _waits(f"{stage.step.turns:,}", stage.alone)],
                header=("of turns", *columns), indent=2)  # fmt: skip
    paper.heading(f"{found.stages[0].mixed.clients} clients at once: eight of ten recall, one stores, one lists")
    paper.table([row for stage in found.stages for row in _waits(str(stage.tenants), stage.mixed)],
                header=("tenants", *columns), indent=2)  # fmt: skip
    if hot := found.hot:
        paper.heading("One hot tenant: how the others wait")
        told = (("in quiet", hot.quiet), ("beside it", hot.beside), (f"itself, {hot.hot.clients} clients", hot.hot))
        paper.table([row for name, load in told for row in _waits(name, load)], header=("", *columns), indent=2)
        paper.line(f"p95 of the others: {hot.ratio:.1f} times that in quiet", indent=2)
    paper.line(dim(f"Grown from {found.material:,} turns; clients, API and server share this machine if it is one."),
               indent=2)  # fmt: skip


def _growing(stage: growth.Stage) -> tuple[str, ...]:
    return (
        f"{stage.tenants:,}", f"{stage.step.turns:,}", f"{stage.tenant_ms:.0f} ms", size(round(stage.empty_bytes)),
        f"{stage.turns_per_second:,.0f}", f"{stage.passages_per_second:,.0f}", size(round(stage.bytes_per_turn)),
    )  # fmt: skip


def _waits(name: str, load: speed_clients.Load) -> Iterator[tuple[str, ...]]:
    for wait in load.waits:
        times = (f"{one:,.0f} ms" for one in (wait.p50_ms, wait.p95_ms, wait.p99_ms))
        yield (name, wait.name, f"{wait.requests / load.seconds:.1f}/s", *times)
    for status, count in sorted(load.refused.items()):
        yield name, f"HTTP {status}" if status else "no answer", f"{count / load.seconds:.1f}/s", "", "", ""
