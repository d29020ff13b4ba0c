"""``nacre cost``."""

from __future__ import annotations

import click

from nacre.cli.command import command
from nacre.cli.run import Run


@command("cost", examples=["nacre cost", "nacre cost --days 7 --by model", "nacre cost --by day --json"])
@click.option("--days", type=click.IntRange(1, 400), default=30, show_default=True, help="Days, today counted.")
@click.option(
    "--by", type=click.Choice(["task", "model", "day"], case_sensitive=False), default="task", show_default=True,
    help="What calls are added up by.",
)  # fmt: skip
@click.pass_obj
def cost(run: Run, days: int, by: str) -> None:
    """Tell what language models cost, and what is left of today's budget.

    Budgets hold what models do in the background; what you ask for yourself is counted beside it.
    """
    from nacre.cli.by_daemon import asked
    from nacre.cli.records.spending import cost_record
    from nacre.cli.render.spending import render_costs
    from nacre.spending.requests import CostRequest

    report = asked(run, "cost", CostRequest(days=days))
    run.answer(cost_record(report, by), lambda paper: render_costs(paper, report, by, days))
