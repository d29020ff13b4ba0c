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
@click.option("--data", type=FILE, help="Other data of this shape.")
@click.pass_obj
def dreams(run: Run, data: Path | None) -> None:
    """Tell what a dream makes of a year of memories: by rules, and with a writer that knows, errs or lies.

    Works in a temporary folder; no model is asked, and nothing is written to your home.
    """
    cases = load_cases(data, "dreams", DreamData)
    with workspace(run) as (place, notify):
        results = measure(cases, place, notify)
    run.answer(
        {"results": [dataclasses.asdict(one) for one in results]},
        lambda paper: _render(paper, results),
    )


def _render(paper: Paper, results: Sequence[DreamResult]) -> None:
    for one in results:
        paper.line(bold(f"{one.year}, {one.writer}"))
        refused = f"refused {one.refused}, of them {one.refused_right} right"
        paper.line(
            f"{one.merges} merges, {one.wrong} wrong; {one.pairs} of {one.repeated} repetitions; {one.ends} of "
            f"{one.outdated} outdated, {one.wrong_ends} wrong; {refused}; {one.ended} ended",
            indent=2,
        )
        paper.line(
            f"lost {one.lost}, planted {one.planted}; undone to the byte: {'yes' if one.is_undone else 'NO'}",
            indent=2,
        )
        for name, found in (("before", one.before), ("after", one.after)):
            paper.line(
                dim(
                    f"{name:<6} {found.memories} memories, {found.characters:,} characters; an answer first "
                    f"{found.first} %, among five {found.among_five} %; outdated among five {found.stale} %"
                ),
                indent=2,
            )
