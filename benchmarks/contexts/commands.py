"""``python -m benchmarks context``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.contexts.measuring import (
    ContextFigures,
    PromptResult,
    measure_context,
    read_prompts,
)
from benchmarks.running import FILE, progress_shown
from nacre.base.text import shorten
from nacre.cli.command import Paper, Run, bold, command, dim
from nacre.llm.local_model import load_minilm


@command(
    "context",
    examples=[
        "python -m benchmarks context",
        "python -m benchmarks context --misses",
        "python -m benchmarks context --data mine.toml",
    ],
)
@click.option("--data", type=FILE, help="Use other prompts in this format.")
@click.option("--misses", is_flag=True, help="Also list the prompts that went wrong.")
def context(run: Run, data: Path | None, misses: bool) -> None:
    """Measure whether agents get the memory a prompt needs, and nothing if it needs none.

    The prompts follow nacre's example sessions, which are ingested into a temporary home. Nothing is written to yours.
    """

    prompts = read_prompts(data)
    with progress_shown(run) as notify:
        figures = [
            measure_context(prompts, lambda _: load_minilm(), alone=alone, notify=notify)
            for alone in (False, True)
        ]
    answer = {"figures": [dataclasses.asdict(figure) for figure in figures]}
    run.answer(answer, lambda paper: _render_context(paper, figures, misses=misses))


_PROMPT_CHARACTERS = 76


def _render_context(paper: Paper, figures: Sequence[ContextFigures], *, misses: bool) -> None:
    paper.line(bold("Context"), dim("  of prompts, in percent"))
    rows = [
        (
            figure.mode,
            f"{figure.found:.1f}",
            f"{figure.found_in_all:.1f}",
            f"{figure.silent:.1f}",
            f"{figure.start_tokens:.0f} / {figure.prompt_tokens:.0f}",
            f"{figure.start_ms:.0f} / {figure.prompt_ms:.0f}",
        )
        for figure in figures
    ]
    headings = ("", "found", "with the start", "silent", "tokens: start / prompt", "ms")
    paper.table([[dim(name) for name in headings], *rows], indent=2)
    for figure in figures if misses else ():
        _list(paper, f"Missed, {figure.mode}", figure.missed)
        _list(paper, f"Needless context, {figure.mode}", figure.noise)


def _list(paper: Paper, title: str, results: Sequence[PromptResult]) -> None:
    if results:
        paper.heading(title)
    for result in results:
        note = (
            "" if result.with_start is result.is_right else "  (found at the start of the session)"
        )
        paper.line(shorten(result.prompt, _PROMPT_CHARACTERS), dim(note), indent=2, hang=2)
