"""What the benchmark of redaction tells."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from nacre.bench.redaction.measuring import Outcome, RedactionResult
from nacre.bench.report import render_machine
from nacre.cli.paper import Paper, bold, dim
from nacre.text.passages import shorten

if TYPE_CHECKING:
    from nacre.bench.machine import Machine

_SHOWN = 140


def redaction_record(result: RedactionResult) -> dict[str, Any]:
    """The result as JSON."""
    return {
        "scanners": [_outcome_record(one) for one in (result.own, result.other) if one],
        "speeds": [dataclasses.asdict(speed) for speed in result.speeds],
        "note": result.note or None,
    }


def render_redaction(paper: Paper, result: RedactionResult, machine: Machine, *, misses: bool) -> None:
    """Recall and false positives of each scanner, the families that are not complete, speed."""
    outcomes = [one for one in (result.own, result.other) if one]
    paper.heading(f"{result.own.positives:,} texts with secrets, {result.own.negatives:,} without")
    paper.table(
        [
            ("scanner", "found", "recall", "touched", "false positives"),
            *(
                (one.scanner, f"{one.found:,}", f"{one.recall:.1%}", f"{one.touched:,}", f"{one.false_positives:.2%}")
                for one in outcomes
            ),
        ]
    )
    weak = [family for family in result.own.families if family.right < family.samples]
    if weak:
        paper.heading("Families that are not complete")
        paper.table([(family.name, f"{family.right} of {family.samples}") for family in weak], indent=2)
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
    render_machine(paper, machine)


def _render_misses(paper: Paper, outcome: Outcome) -> None:
    for title, samples in (("Missed", outcome.missed), ("Taken for a secret", outcome.wrong)):
        if samples:
            paper.heading(title)
        for sample in samples:
            paper.line(bold(sample.family), "  ", shorten(sample.text, _SHOWN), indent=2, hang=4)


def _outcome_record(outcome: Outcome) -> dict[str, Any]:
    return {
        "scanner": outcome.scanner, "positives": outcome.positives, "found": outcome.found, "recall": outcome.recall,
        "negatives": outcome.negatives, "touched": outcome.touched, "false_positives": outcome.false_positives,
        "families": [dataclasses.asdict(family) for family in outcome.families],
        "missed": [dataclasses.asdict(sample) for sample in outcome.missed],
        "wrong": [dataclasses.asdict(sample) for sample in outcome.wrong],
    }  # fmt: skip
