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
    help="So many people; may be repeated.",
)
@click.option(
    "--turns",
    type=click.FloatRange(0),
    default=_USE.turns,
    show_default=True,
    help="Turns of one person on a day of work.",
)
@click.option(
    "--requests",
    type=click.FloatRange(0),
    default=_USE.requests,
    show_default=True,
    help="Requests of one person on a day of work.",
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
    """Tell what a cluster for so many people takes: cores, nodes, memory, disk, money.

    Nothing is measured: it is a model (docs/cluster.md).
    """
    use, prices = (
        dataclasses.replace(_USE, turns=turns, requests=requests),
        dataclasses.replace(_PRICES, core=core),
    )
    found = [needs(number, Measured(), use, prices) for number in people]
    run.answer(
        {"needs": [dataclasses.asdict(one) for one in found]}, lambda paper: _render(paper, found)
    )


def _render(paper: Paper, found: list[Needs]) -> None:
    rows = [
        (
            f"{one.people:,}",
            f"{one.per_second:,.0f}",
            f"{one.api_cores:,}",
            f"{one.worker_cores:,}",
            f"{one.server_cores:,}",
            f"{one.nodes:,}",
            f"{one.memory_gb:,.0f} GB",
            f"{one.disk_gb:,.0f} GB",
            f"{one.objects_gb:,.0f} GB",
            f"${one.usd:,.0f}",
            f"${one.usd / one.people:.2f}",
        )
        for one in found
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
        "a month",
        "a person",
    )
    paper.table(rows, header=header)
    paper.line(dim("A model, not a measurement: docs/cluster.md says of what."))
