"""``python -m benchmarks redaction``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import click

from benchmarks.redaction.building import SEED, build, read_samples, write_samples
from benchmarks.redaction.measuring import Outcome, RedactionResult, measure
from benchmarks.running import FILE, NEW_FILE, answer_measured, progress_shown
from nacre.base.text import shorten
from nacre.cli.command import Paper, Run, bold, command, dim


@command(
    "redaction",
    examples=[
        "python -m benchmarks redaction --misses",
        "python -m benchmarks redaction --file labelled.jsonl",
        "python -m benchmarks redaction --write set.jsonl",
    ],
)
@click.option(
    "--file",
    "file",
    type=FILE,
    help="Your own labelled texts: JSON lines with text, family and secrets.",
)
@click.option("--seed", type=int, help="Generate the set from another seed.")
@click.option("--write", "target", type=NEW_FILE, help="Also write the set to a file.")
@click.option(
    "--misses",
    is_flag=True,
    help="Also list missed secrets and false positives.",
)
@click.option("--no-scanner", is_flag=True, help="Leave out the independent scanner.")
def redaction(
    run: Run,
    file: Path | None,
    seed: int | None,
    target: Path | None,
    misses: bool,
    no_scanner: bool,
) -> None:
    """Measure recall, false positives and speed of redaction.

    The set is generated from patterns and a seed and has no real secrets. If kingfisher is installed (pip install
    'nacre-memory[scan]'), it scans the same texts, without validating secrets online.
    """

    samples = read_samples(file) if file else build(SEED if seed is None else seed)
    if target:
        write_samples(target, samples)
    with progress_shown(run) as notify:
        result = measure(samples, notify, with_scanner=not no_scanner)
    answer_measured(
        run, _record(result), lambda paper: _render_redaction(paper, result, misses=misses)
    )


_SHOWN = 140


def _record(result: RedactionResult) -> dict[str, Any]:
    return {
        "scanners": [_outcome_record(outcome) for outcome in (result.own, result.other) if outcome],
        "speeds": [dataclasses.asdict(speed) for speed in result.speeds],
        "note": result.note or None,
    }


def _render_redaction(paper: Paper, result: RedactionResult, *, misses: bool) -> None:
    outcomes = [outcome for outcome in (result.own, result.other) if outcome]
    paper.heading(f"{result.own.positives:,} texts with secrets, {result.own.negatives:,} without")
    paper.table(
        [
            ("scanner", "found", "recall", "touched", "false positives"),
            *(
                (
                    outcome.scanner,
                    f"{outcome.found:,}",
                    f"{outcome.recall:.1%}",
                    f"{outcome.touched:,}",
                    f"{outcome.false_positives:.2%}",
                )
                for outcome in outcomes
            ),
        ]
    )
    weak = [family for family in result.own.families if family.right < family.samples]
    if weak:
        paper.heading("Incomplete families")
        paper.table(
            [(family.name, f"{family.right} of {family.samples}") for family in weak], indent=2
        )
    paper.heading("Speed on clean text")
    rows = [
        (
            f"pieces of {speed.piece:,} characters",
            "all at once" if speed.at_once else "one by one",
            f"{speed.megabytes_per_second:.0f} MB/s",
        )
        for speed in result.speeds
    ]
    paper.table(rows, indent=2)
    if misses:
        _render_misses(paper, result.own)
    if result.note:
        paper.line(dim(result.note))


def _render_misses(paper: Paper, outcome: Outcome) -> None:
    for title, samples in (("Missed", outcome.missed), ("False positives", outcome.wrong)):
        if samples:
            paper.heading(title)
        for sample in samples:
            paper.line(bold(sample.family), "  ", shorten(sample.text, _SHOWN), indent=2, hang=4)


def _outcome_record(outcome: Outcome) -> dict[str, Any]:
    return {
        "scanner": outcome.scanner,
        "positives": outcome.positives,
        "found": outcome.found,
        "recall": outcome.recall,
        "negatives": outcome.negatives,
        "touched": outcome.touched,
        "false_positives": outcome.false_positives,
        "families": [dataclasses.asdict(family) for family in outcome.families],
        "missed": [dataclasses.asdict(sample) for sample in outcome.missed],
        "wrong": [dataclasses.asdict(sample) for sample in outcome.wrong],
    }
