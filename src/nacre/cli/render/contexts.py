"""Contexts for people and for agents."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from nacre.cli.paper import Paper, bold, dim
from nacre.cli.render.answers import lanes_told
from nacre.text.passages import shorten
from nacre.values.context import ContextBlock

_TEXT_CHARACTERS = 100
_ID_CHARACTERS = 8


def render_context(paper: Paper, block: ContextBlock, *, output: Path | None, changed: bool | None) -> None:
    """The block itself, or where it was written; nothing where there is nothing to tell."""
    if output:
        told = f"{block.tokens:,} tokens in {output}" if changed else f"{output} says that already"
        paper.line(bold("Written: ") if changed else "", told)
    elif block.text:
        paper.verbatim(block.text)


def render_explained(paper: Paper, block: ContextBlock) -> None:
    """What is told and why, and what was left out and why."""
    head = f"{block.tokens:,} tokens" if block.text else "Nothing is told."
    paper.line(bold(head), dim(f"  {block.project or 'no project'}" + (f" · {block.gate}" if block.gate else "")))
    part = None
    for item in block.items:
        if item.part is not part:
            tokens = sum(one.tokens for one in block.items if one.part is item.part)
            paper.heading(f"{item.part.value} · {tokens:,} tokens")
            part = item.part
        paper.line(shorten(item.text.lstrip("-> "), _TEXT_CHARACTERS), indent=2, hang=2)
        score = f" · score {item.score:.2f}" if item.score is not None else ""
        paper.line(dim(f"{item.why} · {item.tokens} tokens{score}"), indent=4)
    if block.left_out:
        paper.heading("Left out")
        for (where, why), times in Counter((one.part.value, one.why) for one in block.left_out).items():
            paper.line(f"{where}: {why}", dim(f"  {times}" if times > 1 else ""), indent=2)
    paper.blank()
    lanes = f"lanes: {lanes_told(block.lanes)} · " if block.lanes else ""
    paper.line(dim(f"{lanes}{block.took_ms:.0f} ms"), hang=2)
