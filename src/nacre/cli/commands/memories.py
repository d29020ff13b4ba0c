"""``nacre list`` and ``nacre show``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from nacre.cli.command import TEXT, command
from nacre.cli.options import EVERYTHING, JSON_LINES, OFFSET, SESSION, limit_option, pages, with_memory_filter
from nacre.cli.run import Run
from nacre.values.recall import Filter

if TYPE_CHECKING:
    from nacre.values.memory import Memory
    from nacre.views import Listing


@command(
    "list",
    examples=["nacre list", "nacre list --kind decision --project . --limit 50", "nacre list --all --jsonl"],
)
@limit_option(20, "Memories")
@OFFSET
@EVERYTHING
@JSON_LINES
@with_memory_filter
def list_memories(run: Run, limit: int, offset: int, everything: bool, as_lines: bool, wanted: Filter) -> None:
    """List memories, the newest first."""
    from nacre.cli.by_daemon import asked, is_empty
    from nacre.cli.records.memories import memory_record
    from nacre.cli.render.answers import render_beginning
    from nacre.cli.render.memories import render_list
    from nacre.memories.requests import ListRequest

    total, most = 0, None if everything else limit

    def page(size: int, at: int) -> tuple[Sequence[Memory], bool]:
        nonlocal total
        found: Listing = asked(run, "list", ListRequest(filter=wanted, limit=size, offset=at))
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


@command(
    "show",
    examples=["nacre show 5f0c2a4d", 'nacre show "Database of the billing service"', "nacre show 5f0c2a4d --history"],
)
@click.argument("reference", metavar="ID", type=TEXT)
@SESSION
@click.option("--no-update", is_flag=True, help="Do not count this as a use of the memory.")
@click.option("--history", "with_history", is_flag=True, help="What it superseded, what superseded it, when and why.")
@click.pass_obj
def show(run: Run, reference: str, session: str | None, no_update: bool, with_history: bool) -> None:
    """Show one memory with its evidence and links.

    ID is the memory's id, its beginning or end (four characters or more), or its subject.
    """
    if with_history:
        _show_history(run, reference)
        return
    from nacre.cli.by_daemon import asked
    from nacre.cli.records.memories import view_record
    from nacre.cli.render.memories import render_memory
    from nacre.memories.requests import GetRequest

    view = asked(run, "look", GetRequest(reference=reference, update=not no_update, session=session))
    vault = run.settings.vault
    run.answer(view_record(view, str(vault)), lambda paper: render_memory(paper, view, vault))


def _show_history(run: Run, reference: str) -> None:
    from nacre.cli.by_daemon import asked
    from nacre.cli.records.memories import step_record
    from nacre.cli.render.memories import render_history
    from nacre.memories.requests import ReferenceRequest

    steps = asked(run, "history", ReferenceRequest(reference=reference))
    run.answer({"history": [step_record(step) for step in steps]}, lambda paper: render_history(paper, steps))
