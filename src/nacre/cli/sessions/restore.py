"""``nacre sessions restore``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.formats import Record, size
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.archive.operations import Restored


@command(
    "restore",
    examples=["nacre sessions restore 7f3a1c2d", "nacre sessions restore claude-code:7f3a1c2d --to ~/old-sessions"],
)
@argument("session-restore", "reference", metavar="ID")
@option(
    "session-restore", "folder", "--to", type=click.Path(path_type=Path, file_okay=False),
    help="Write it into this folder.",
)  # fmt: skip
@click.pass_obj
def restore(run: Run, reference: str, folder: Path | None) -> None:
    """Write a session's transcript again, from the archive.

    Without --to, where it was, so that its tool finds it. Secrets are not in it, nor images.
    """
    restored: Restored = perform(run, "session-restore", reference=reference, folder=folder)
    run.answer(_restored_record(restored), lambda paper: _render_restored(paper, restored))


def _restored_record(restored: Restored) -> Record:
    """A transcript that was written again."""
    return {
        "session": restored.session, "path": str(restored.path), "bytes": restored.size, "whole": restored.is_whole,
    }  # fmt: skip


def _render_restored(paper: Paper, restored: Restored) -> None:
    """Where a transcript is now."""
    paper.line(bold("Wrote"), f" {restored.path} ", dim(f"({size(restored.size)})"))
    if restored.is_whole:
        paper.line(dim("Secrets, and images and other encoded bytes, are left out of it."), indent=2)
    else:
        paper.line(dim("Only its turns were kept, as JSON lines: its tool cannot read them."), indent=2)
