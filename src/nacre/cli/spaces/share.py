"""``nacre share``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import command
from nacre.cli.formats import short_id
from nacre.cli.memories.memory import memory_record
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.spaces.values import Shared


@command(
    "share",
    examples=["nacre share 5f0c2a4d --with ferry-team --as personal", "nacre share 5f0c2a4d --with acme --as public"],
)
@argument("share", "reference", metavar="ID")
@option("share", "space", "--with", metavar="SPACE")
@option("share", "scope", "--as")
@click.pass_obj
def share(run: Run, /, **asked: Any) -> None:
    """Carry a copy of a memory into the space of a team or an organisation.

    The rule of the space says who may. Yours stays as it is; share it again, and the copy says what yours says then.
    A private memory is shared only with --as. The audit logs of both spaces tell it.
    """
    done: Shared = perform(run, "share", **asked)
    record = {"memory": memory_record(done.memory), "space": done.space, "new": done.is_new}
    run.answer(record, lambda paper: _render(paper, done))


def _render(paper: Paper, done: Shared) -> None:
    how = "Shared with" if done.is_new else "Up to date in"
    paper.line(f"{how} ", bold(done.space), f"  {done.memory.subject}", hang=2)
    paper.line(dim(f"{short_id(done.memory)}, {done.memory.scope}"), indent=2)
