"""``nacre list``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from nacre.cli.command import TEXT, command
from nacre.cli.memories.hits import render_beginning
from nacre.cli.memories.memory import memory_record, render_list
from nacre.cli.operations import ask, is_empty
from nacre.cli.options import EVERYTHING, JSON_LINES, OFFSET, limit_option, pages, with_memory_filter
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.values.memory import Memory
    from nacre.values.recall import Filter
    from nacre.views import Listing


@command(
    "list",
    examples=["nacre list", "nacre list postgres --kind decision --project . --limit 50", "nacre list --all --jsonl"],
)
@click.argument("words", nargs=-1, type=TEXT)
@limit_option("list", default=20)
@OFFSET
@EVERYTHING
@JSON_LINES
@with_memory_filter
def list_memories(
    run: Run, words: tuple[str, ...], limit: int, offset: int, everything: bool, as_lines: bool, wanted: Filter
) -> None:  # fmt: skip
    """List memories, the newest first.

    With WORDS, those whose subject, content or tags hold each of them; nacre recall ranks by what answers instead.
    """
    total, most = 0, None if everything else limit

    def page(size: int, at: int) -> tuple[Sequence[Memory], bool]:
        nonlocal total
        found: Listing = ask(run, "list", filter=wanted, words=" ".join(words), limit=size, offset=at)
        total = found.total
        return found.memories, at + size < total

    found = pages(page, most, offset)
    if as_lines:
        run.answer_lines(memory_record(memory) for memory in found)
        return
    memories = list(found)
    record = {
        "memories": [memory_record(memory) for memory in memories], "total": total, "limit": most, "offset": offset,
    }  # fmt: skip
    if memories:
        run.answer(record, lambda paper: render_list(paper, memories, total=total, offset=offset))
    elif is_empty(run):
        run.answer(record, render_beginning)
    else:
        run.answer(record, lambda paper: paper.line("No memory fits." if not offset else "No more memories."))
