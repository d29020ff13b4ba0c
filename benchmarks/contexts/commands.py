"""``python -m benchmarks context``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.contexts.measuring import (
    ContextFigures,
    PointerFigures,
    Prompts,
    measure_context,
    measure_pointers,
)
from benchmarks.dataset import load_cases
from benchmarks.running import FILE, FOLDER
from nacre.cli.command import Paper, Run, bold, command, dim
from nacre.llm.local_model import load_minilm


@command(
    "context",
    examples=[
        "python -m benchmarks context",
        "python -m benchmarks context --data mine.json",
        "python -m benchmarks context --pointers bench --data prompts.jsonl",
    ],
)
@click.option("--data", type=FILE, help="Use other prompts in this format.")
@click.option("--pointers", type=FOLDER, help="Measure pointers, in a folder with DevMemBench.")
def context(run: Run, data: Path | None, pointers: Path | None) -> None:
    """Measure whether prompts get the memory or the pointer they need, and nothing if they need none.

    The prompts follow nacre's example sessions, which are ingested into a temporary home. Nothing is written to yours.
    """

    figures: Sequence[ContextFigures | PointerFigures]
    if pointers:
        figures = [
            figure
            for alone in (False, True)
            for figure in measure_pointers(pointers, data, load_minilm, alone=alone)
        ]
    else:
        prompts = load_cases(data, "context", Prompts)
        figures = [
            measure_context(prompts, lambda _: load_minilm(), alone=alone)
            for alone in (False, True)
        ]
    answer = {"figures": [dataclasses.asdict(figure) for figure in figures]}
    run.answer(answer, lambda paper: _render(paper, figures))


def _render(paper: Paper, figures: Sequence[ContextFigures | PointerFigures]) -> None:
    paper.line(bold("Context of prompts, in percent or numbers"))
    names = [field.name for field in dataclasses.fields(figures[0]) if field.name != "wrong"]
    rows = [[_cell(getattr(figure, name)) for name in names] for figure in figures]
    paper.table([[dim(name) for name in names], *rows])
    for figure in figures:
        for prompt in getattr(figure, "wrong", ()):
            paper.line(dim(f"{figure.mode}: "), prompt, hang=2)


def _cell(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)
