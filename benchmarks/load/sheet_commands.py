"""``python -m benchmarks sheet``."""

from __future__ import annotations

import dataclasses

import click

from benchmarks.load.sheet import Measured, Needs, Prices, Use, needs
from nacre.cli.command import Paper, Run, command, dim

_PEOPLE = (10_000, 1_000_000, 100_000_000)
_USE, _PRICES = Use(), Prices()


@command(
    "sheet",
    examples=[
        "python -m benchmarks sheet",
        "python -m benchmarks sheet --people 500 --turns 1000 --requests 200",
    ],
)
@click.option(
    "--people",
    type=click.IntRange(1),
    multiple=True,
    default=_PEOPLE,
    show_default=True,
    help="Number of people; may be repeated.",
)
@click.option(
    "--turns",
    type=click.FloatRange(0),
    default=_USE.turns,
    show_default=True,
    help="Turns of one person on a workday.",
)
@click.option(
    "--requests",
    type=click.FloatRange(0),
    default=_USE.requests,
    show_default=True,
    help="Requests of one person on a workday.",
)
@click.option(
    "--core",
    type=click.FloatRange(0),
    default=_PRICES.core,
    show_default=True,
    help="US dollars a month for a core with 4 GB.",
)
@click.pass_obj
def sheet(run: Run, people: tuple[int, ...], turns: float, requests: float, core: float) -> None:
    """Estimate the size and cost of a cluster.

    This is a model, not a measurement (docs/cluster.md).
    """
    use, prices = (
        dataclasses.replace(_USE, turns=turns, requests=requests),
        dataclasses.replace(_PRICES, core=core),
    )
    sizes = [needs(number, Measured(), use, prices) for number in people]
    run.answer(
        {"needs": [dataclasses.asdict(result) for result in sizes]},
        lambda paper: _render(paper, sizes),
    )


def _render(paper: Paper, sizes: list[Needs]) -> None:
    rows = [
        (
            f"{result.people:,}",
            f"{result.per_second:,.0f}",
            f"{result.api_cores:,}",
            f"{result.worker_cores:,}",
            f"{result.server_cores:,}",
            f"{result.nodes:,}",
            f"{result.memory_gb:,.0f} GB",
            f"{result.disk_gb:,.0f} GB",
            f"{result.objects_gb:,.0f} GB",
            f"${result.usd:,.0f}",
            f"${result.usd / result.people:.2f}",
        )
        for result in sizes
    ]
    header = (
        "people",
        "requests/s",
        "api cores",
        "worker cores",
        "database cores",
        "nodes",
        "memory",
        "disk",
        "objects",
        "per month",
        "per person",
    )
    paper.table(rows, header=header)
    paper.line(dim("A model, not a measurement: see docs/cluster.md."))
