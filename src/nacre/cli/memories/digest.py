"""``nacre digest``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.formats import stamp
from nacre.cli.memories.memory import memory_record
from nacre.cli.operations import ask
from nacre.cli.options import find_project
from nacre.cli.request_options import option
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.views import Digest


@command("digest", examples=["nacre digest", "nacre digest --days 30 --project .", "nacre digest --json"])
@option("digest", "days")
@option("digest", "project", help="Of this project, and of what holds everywhere; . is the one of this folder.")
@click.pass_obj
def digest(run: Run, days: int, project: str | None) -> None:
    """Tell what is open, and what was decided and learned lately.

    Todos come first, the oldest first: what was promised longest ago. It is 8,000 bytes at most, fit to be sent to
    somebody.
    """
    found: Digest = ask(run, "digest", days=days, project=find_project(run, project))
    record = {
        "since": stamp(found.since), "todos": [memory_record(one) for one in found.todos],
        "threads": list(found.threads), "decisions": [memory_record(one) for one in found.decisions],
        "learned": [memory_record(one) for one in found.learned], "text": found.text, "left": found.left,
    }  # fmt: skip
    nothing = f"Nothing is open, and nothing was learned in the last {days} days."
    run.answer(record, lambda paper: paper.verbatim(found.text) if found.text else paper.line(nothing))
