"""The results of ``nacre benchmark context`` for people."""

from __future__ import annotations

from collections.abc import Sequence

from nacre.bench.contexts import ContextFigures, Told
from nacre.cli.paper import Paper, bold, dim
from nacre.text.passages import shorten

_PROMPT_CHARACTERS = 76


def render_context(paper: Paper, figures: Sequence[ContextFigures], *, misses: bool) -> None:
    """A line for each way of looking, and the prompts that went wrong."""
    paper.line(bold("Context"), dim("  of prompts, in percent"))
    rows = [
        (
            one.mode, f"{one.found:.1f}", f"{one.found_in_all:.1f}", f"{one.silent:.1f}",
            f"{one.start_tokens:.0f} / {one.prompt_tokens:.0f}", f"{one.start_ms:.0f} / {one.prompt_ms:.0f}",
        )
        for one in figures
    ]  # fmt: skip
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
