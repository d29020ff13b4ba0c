"""``python -m benchmarks dreams``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.dataset import load_cases
from benchmarks.dreams.measuring import DreamData, DreamResult, measure
from benchmarks.running import FILE, workspace
from nacre.cli.command import Paper, Run, bold, command, dim


@command("dreams", examples=["python -m benchmarks dreams", "python -m benchmarks dreams --json"])
@click.option("--data", type=FILE, help="Use other data in this format.")
def dreams(run: Run, data: Path | None) -> None:
    """Measure dreams over a year of memories: by rules, and with writers that are right, wrong or malicious.

    Works in a temporary folder without a model. Nothing is written to your home.
    """
    cases = load_cases(data, "dreams", DreamData)
    with workspace(run) as (place, notify):
        results = measure(cases, place, notify)
    run.answer(
        {"results": [dataclasses.asdict(result) for result in results]},
        lambda paper: _render(paper, results),
    )


def _render(paper: Paper, results: Sequence[DreamResult]) -> None:
    for result in results:
        paper.line(bold(f"{result.year}, {result.writer}"))
        refused = f"refused {result.refused}, {result.refused_right} of them right"
        paper.line(
            f"{result.merges} merges, {result.wrong} wrong; {result.pairs} of {result.repeated} repetitions; "
            f"{result.ends} of {result.outdated} outdated, {result.wrong_ends} wrong; {refused}; {result.ended} ended",
            indent=2,
        )
        paper.line(
            f"lost {result.lost}, planted {result.planted}; undone completely: {'yes' if result.is_undone else 'NO'}",
            indent=2,
        )
        for name, figures in (("before", result.before), ("after", result.after)):
            paper.line(
                dim(
                    f"{name:<6} {figures.memories} memories, {figures.characters:,} characters; "
                    f"answer first {figures.first} %, in the top 5 {figures.among_five} %; outdated {figures.stale} %"
                ),
                indent=2,
            )
