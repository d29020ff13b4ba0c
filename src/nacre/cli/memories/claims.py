"""``nacre backfill-claims``."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.formats import Record, amount, count, float_or_none
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, Span, bold
from nacre.cli.request_options import option
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.review.claims import Backfill, Estimate


@command(
    "backfill-claims",
    examples=[
        "nacre backfill-claims --estimate",
        "nacre backfill-claims --limit 200",
        "nacre backfill-claims --batch-size 25 --json",
    ],
)
@option("claims-backfill", "limit", "--limit", "-n", help="Memories at most, the latest first.")
@option("claims-backfill", "batch_size")
@click.option("--estimate", is_flag=True, help="Tell what it would cost, and ask no model.")
@click.pass_obj
def backfill_claims(run: Run, limit: int | None, batch_size: int, estimate: bool) -> None:
    """Have a model tell what older memories claim.

    Memories that are stored later are compared with these claims. An interrupted run goes on with the next one.
    """
    if estimate:
        expected: Estimate = perform(run, "claims-estimate", limit=limit)
        run.answer(_estimate_record(expected), lambda paper: _render_estimate(paper, expected))
        return
    with progress.shown(run) as notify:
        report: Backfill = perform(run, "claims-backfill", notify, limit=limit, batch_size=batch_size)
    run.exit_code = 5 if report.note else 0
    run.answer(dataclasses.asdict(report), lambda paper: _render_backfill(paper, report))


def _estimate_record(expected: Estimate) -> Record:
    """What a backfill would cost."""
    return {
        "memories": expected.memories,
        "model": expected.model,
        "input_tokens": expected.tokens.input,
        "output_tokens": expected.tokens.output,
        "cost_usd": float_or_none(expected.cost),
    }


def _render_backfill(paper: Paper, report: Backfill) -> None:
    """What became of older memories."""
    paper.line(bold(f"{count(report.claimed, 'memory has', 'memories have')} a claim now"))
    paper.facts(
        (
            ("claim nothing", str(report.claimless or "")),
            ("no answer of use", str(report.failed or "")),
            ("left", f"{report.left}; run it again" if report.left else ""),
        ),
        indent=2,
    )
    if report.note:
        paper.line(Span(report.note, "yellow"), indent=2, hang=2)


def _render_estimate(paper: Paper, expected: Estimate) -> None:
    """What a backfill would cost."""
    if not expected.memories:
        paper.line("Every memory has a claim, or claims nothing.")
        return
    cost = "unknown: the price of this model is not" if expected.cost is None else f"about ${expected.cost:.2f}"
    paper.line(bold(f"{count(expected.memories, 'memory', 'memories')} without a claim"))
    tokens = f"{amount(expected.tokens.input)} read, {amount(expected.tokens.output)} written"
    paper.facts((("model", expected.model), ("tokens", tokens), ("cost", cost)), indent=2)
