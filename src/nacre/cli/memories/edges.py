"""``nacre edges``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.formats import Record, count, short_id
from nacre.cli.operations import ask
from nacre.cli.paper import Paper, dim
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.text import passages

if TYPE_CHECKING:
    from nacre.values.memory import Memory
    from nacre.views import UsedTogether

_SUBJECT_CHARACTERS = 28


@command("edges", examples=["nacre edges", "nacre edges 5f0c2a4d --limit 5", "nacre edges --json"])
@argument("edges", "reference", metavar="[ID]", required=False)
@option("edges", "limit", "--limit", "-n")
@click.pass_obj
def edges(run: Run, reference: str | None, limit: int) -> None:
    """List memories that were used together.

    A pair gains .1 for each session in which both were used, 1 at most, and loses a twentieth a day. Recall ranks
    memories higher that are often used with its best hits. With ID, only pairs of that memory.
    """
    found: list[UsedTogether] = ask(run, "edges", reference=reference, limit=limit)
    record = {"edges": [_record(edge) for edge in found]}
    run.answer(record, lambda paper: _render(paper, found))


def _record(edge: UsedTogether) -> Record:
    """One pair."""
    return {
        "memory": edge.memory.id, "subject": edge.memory.subject, "other": edge.other.id,
        "other_subject": edge.other.subject, "weight": round(edge.weight, 4), "sessions": edge.sessions,
    }  # fmt: skip


def _render(paper: Paper, found: Sequence[UsedTogether]) -> None:
    if not found:
        paper.line("No memories were used together yet.")
        return
    rows = [
        (f"{edge.weight:.2f}", dim(count(edge.sessions, "session")), dim(short_id(edge.memory)), _named(edge.memory),
         dim(short_id(edge.other)), _named(edge.other))
        for edge in found
    ]  # fmt: skip
    paper.table(rows, header=("weight", "used in", "id", "memory", "id", "and"), drop=(1,))


def _named(memory: Memory) -> str:
    return passages.shorten(memory.subject, _SUBJECT_CHARACTERS)
