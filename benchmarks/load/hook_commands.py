"""``python -m benchmarks hooks``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import click

from benchmarks.load.hooks import LIMIT_MS, START_LIMIT_MS, STATES, HookFigures, measure_hooks
from benchmarks.running import answer_measured, workspace
from nacre.cli.command import TEXT, Paper, Run, bold, command, dim
from nacre.errors import InvalidInputError


@command(
    "hooks",
    examples=[
        "python -m benchmarks hooks",
        "python -m benchmarks hooks --state 'daemon hung' --runs 50 --json",
    ],
)
@click.option(
    "--runs",
    type=click.IntRange(10, 10_000),
    default=200,
    show_default=True,
    help="Number of runs for each event in each state.",
)
@click.option(
    "--memories",
    type=click.IntRange(10, 100_000),
    default=2000,
    show_default=True,
    help="Number of memories in the home.",
)
@click.option(
    "--state", "states", type=TEXT, multiple=True, help="Only this state; can be repeated."
)
def hooks(run: Run, runs: int, memories: int, states: tuple[str, ...]) -> None:
    """Measure the latency of hooks, with and without the daemon, and when something is wrong.

    Complete processes run on a temporary home in each state. Nothing is written to yours.
    """

    unknown = [state for state in states if state not in STATES]
    if unknown:
        raise InvalidInputError(
            f"unknown state {unknown[0]!r}", hint=f"one of: {', '.join(STATES)}"
        )
    with workspace(run) as (place, notify):
        figures = measure_hooks(place, runs=runs, memories=memories, only=states, notify=notify)
    record = {
        "memories": memories,
        "limit_ms": LIMIT_MS,
        "start_limit_ms": START_LIMIT_MS,
        "figures": [dataclasses.asdict(figure) for figure in figures],
    }
    answer_measured(run, record, lambda paper: _render_hooks(paper, figures))


def _render_hooks(paper: Paper, figures: Sequence[HookFigures]) -> None:
    limits = f"limit {LIMIT_MS:,.0f}, at a session's start {START_LIMIT_MS:,.0f}"
    paper.line(bold("Hooks"), dim(f"  milliseconds of the whole process; {limits}"))
    rows = []
    for figure in figures:
        p99, limit = (
            f"{figure.p99:.0f}",
            START_LIMIT_MS if figure.event == "SessionStart" else LIMIT_MS,
        )
        rows.append(
            [
                figure.state,
                figure.event,
                f"{figure.p50:.0f}",
                p99 if figure.p99 < limit else bold(p99),
                f"{figure.longest:.0f}",
                f"{figure.cpu_p50:.0f}",
                f"{figure.told}/{figure.runs}",
                bold(str(figure.failed)) if figure.failed else "0",
            ]
        )
    headings = ("", "event", "p50", "p99", "longest", "cpu", "output", "failed")
    paper.table([[dim(name) for name in headings], *rows], indent=2)
