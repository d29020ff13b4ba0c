"""``nacre project``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli.command import DefaultGroup
from nacre.cli.operations import perform, place_of
from nacre.cli.options import tie_hint
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.views import Place


@click.group(
    "project",
    cls=DefaultGroup,
    examples=["nacre project", "nacre project tie acme-billing", "nacre project tie acme-billing ~/code/billing"],
)
@click.pass_context
def project(context: click.Context) -> None:
    """Tell which projects are known, and tie a folder to one.

    A folder becomes a project's with the first session in it that is read, by the remote of its repository, or else by
    its path. What else is to count as the project's is in projects/NAME/project.md in the vault.
    """
    if context.invoked_subcommand is not None:
        return
    run: Run = context.obj
    found = place_of(run, None)
    record = {"project": found.project, "namesake": found.namesake, "known": list(found.known)}
    run.answer(record, lambda paper: _render(paper, found))


@project.command(
    "tie", examples=["nacre project tie acme-billing", "nacre project tie acme-billing ~/code/billing --json"]
)
@argument("project-tie", "project", metavar="PROJECT")
@argument(
    "project-tie", "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path),
)  # fmt: skip
@click.pass_obj
def tie(run: Run, project: str, folder: Path | None) -> None:
    """Make a folder a project's from now on, with the repository it lies in.

    Without FOLDER it is this one. What was told there before stays where it is.
    """
    meant = Path(os.path.abspath(folder or Path.cwd()))
    found: Place = perform(run, "project-tie", project=project, folder=str(meant))
    record = {"project": found.project, "folder": str(meant)}
    run.answer(record, lambda paper: paper.line(f"{meant} belongs to ", bold(found.project or ""), " now."))


def _render(paper: Paper, found: Place) -> None:
    if found.project:
        paper.line("This folder belongs to ", bold(found.project), ".")
    else:
        paper.line("This folder belongs to no project", dim(f"  {tie_hint(found.namesake)}") if found.namesake else ".")
    if not found.known:
        paper.line(dim("No project is known yet: they come with the sessions that are read."))
        return
    paper.heading("Known")
    for name in found.known:
        paper.line(name, indent=2)
