"""``python -m benchmarks stale``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from benchmarks.contradictions.stale import PhrasingResult, StaleData, StaleResult, measure, totals
from benchmarks.dataset import load_cases
from benchmarks.running import FILE, workspace
from nacre.cli.command import Paper, Run, bold, command, dim
from nacre.llm.local_model import load_minilm


@command(
    "stale",
    examples=[
        "python -m benchmarks stale",
        "python -m benchmarks stale --no-vectors --json",
        "python -m benchmarks stale --through sessions",
    ],
)
@click.option("--data", type=FILE, help="Use other data in this format.")
@click.option("--no-vectors", is_flag=True, help="Compare by words only.")
@click.option(
    "--through",
    type=click.Choice(["store", "sessions"]),
    default="store",
    show_default=True,
    help="Store each statement directly, or learn it from a session.",
)
def stale(run: Run, data: Path | None, no_vectors: bool, through: str) -> None:
    """Measure whether changed facts replace the outdated ones, and nothing else.

    Works in a temporary folder; nothing is written to your home.
    """

    cases = load_cases(data, "stale", StaleData)
    with workspace(run) as (place, notify):
        result = measure(
            cases, place, None if no_vectors else load_minilm, through=through, notify=notify
        )
    run.answer(dataclasses.asdict(result), lambda paper: _render_stale(paper, result))


_HEADINGS = (
    "phrasing",
    "changes",
    "superseded",
    "marked",
    "questions",
    "stale first",
    "stale hits",
    "of them marked",
    "new found",
    "past found",
)


def _render_stale(paper: Paper, result: StaleResult) -> None:
    how = f"through {result.through}, {'with' if result.vectors else 'without'} vectors"
    paper.line(bold("Changes"), dim(f"  {how}"))
    rows = [_row(phrasing) for phrasing in (*result.phrasings, totals(result))]
    paper.table([[dim(name) for name in _HEADINGS], *rows], indent=2)
    paper.heading("Unchanged facts")
    rates = (
        ("look-alikes superseded or dropped", result.wrong_lookalikes),
        ("other memories superseded or dropped", result.wrong_others),
        ("look-alikes marked", result.doubted_lookalikes),
        ("other memories marked", result.doubted_others),
        ("repetitions found", result.duplicates_found),
        ("distinct pairs merged", result.distinct_merged),
        ("related pairs merged", result.related_merged),
    )
    paper.table(
        [(name, f"{rate.count} of {rate.of}", dim(f"{rate.percent} %")) for name, rate in rates],
        indent=2,
    )
    if result.not_learned:
        paper.line(
            dim(
                f"{result.not_learned} cases were not learned from their sessions and are not counted"
            ),
            indent=2,
        )
    if result.failures:
        paper.heading("Failures")
    for failure in result.failures:
        paper.line(bold(failure.what), f"  {failure.id}  ", dim(failure.note), indent=2, hang=2)
        paper.line(failure.earlier, indent=4)
        paper.line(f"→ {failure.later}", indent=4, hang=2)


def _row(result: PhrasingResult) -> list[str]:
    marked = (result.changes, result.superseded, result.doubted)
    answers = (
        result.questions,
        result.first,
        result.stale,
        result.marked,
        result.found,
        result.past,
    )
    return [result.phrasing, *map(str, (*marked, *answers))]
