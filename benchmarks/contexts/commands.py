"""``python -m benchmarks context``."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.contexts.measuring import ContextFigures, Told, measure_context, read_prompts
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
@click.option("--data", type=FILE, help="Other prompts of this shape.")
@click.option("--misses", is_flag=True, help="Also tell which prompts went wrong.")
@click.pass_obj
def context(run: Run, data: Path | None, misses: bool) -> None:
    """Tell whether an agent is given what a prompt needs, and nothing where it needs nothing.

    The prompts come after nacre's example sessions, which are ingested into a home of their own. Nothing is written to
    yours.
    """

    prompts = read_prompts(data)
    with progress_shown(run) as notify:
        figures = [
            measure_context(prompts, lambda _: load_minilm(), alone=alone, notify=notify)
            for alone in (False, True)
        ]
    answer = {"figures": [dataclasses.asdict(one) for one in figures]}
    run.answer(answer, lambda paper: _render_context(paper, figures, misses=misses))


_PROMPT_CHARACTERS = 76


def _render_context(paper: Paper, figures: Sequence[ContextFigures], *, misses: bool) -> None:
    """A line for each way of looking, and the prompts that went wrong."""
    paper.line(bold("Context"), dim("  of prompts, in percent"))
    rows = [
        (
            one.mode,
            f"{one.found:.1f}",
            f"{one.found_in_all:.1f}",
            f"{one.silent:.1f}",
            f"{one.start_tokens:.0f} / {one.prompt_tokens:.0f}",
            f"{one.start_ms:.0f} / {one.prompt_ms:.0f}",
        )
        for one in figures
    ]
    headings = ("", "found", "with the start", "silent", "tokens: start / prompt", "ms")
    paper.table([[dim(name) for name in headings], *rows], indent=2)
    for one in figures if misses else ():
        _list(paper, f"Missed, {one.mode}", one.missed)
        _list(paper, f"Told in vain, {one.mode}", one.noise)


def _list(paper: Paper, title: str, told: Sequence[Told]) -> None:
    if told:
        paper.heading(title)
    for one in told:
        note = "" if one.with_start is one.is_right else "  (the start tells it)"
        paper.line(shorten(one.prompt, _PROMPT_CHARACTERS), dim(note), indent=2, hang=2)
