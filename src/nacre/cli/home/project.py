"""``nacre project``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre.cli.command import DefaultGroup
from nacre.cli.formats import Record, count, day, kind_span, short_id, stamp
from nacre.cli.memories.memory import memory_record
from nacre.cli.operations import ask, perform, place_of
from nacre.cli.options import find_project, tie_hint
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.projects.values import ProjectDetail, ProjectLine, ProjectMergePlan, ProjectMoved
    from nacre.views import Place

_SHOWN = 12


@click.group(
    "project",
    cls=DefaultGroup,
    examples=["nacre project list", "nacre project show acme-billing", "nacre project tie acme-billing ~/code/billing"],
)
@click.pass_context
def project(context: click.Context) -> None:
    """Manage projects: names, folders, dependencies.

    A project is created by its first memory (nacre store --project NAME) or by the first session in its folder, and
    found by the remote of the repository, or else by the path. projects/NAME/project.md in the vault lists all folders,
    remotes and names of a project.
    """
    if context.invoked_subcommand is not None:
        return
    run: Run = context.obj
    found = place_of(run, None)
    record = {"project": found.project, "namesake": found.namesake, "known": list(found.known)}
    run.answer(record, lambda paper: _render(paper, found))


@project.command("list", examples=["nacre project list", "nacre project list --json"])
@click.pass_obj
def list_(run: Run) -> None:
    """List the projects, the most recently used first."""
    found: list[ProjectLine] = ask(run, "project-list")
    run.answer({"projects": [_line_record(one) for one in found]}, lambda paper: _render_list(paper, found))


@project.command("show", examples=["nacre project show", "nacre project show acme-billing --json"])
@argument("project-show", "project", metavar="[PROJECT]", required=False, default=".")
@click.pass_obj
def show(run: Run, project: str) -> None:
    """Show a project, by default the one of this folder."""
    found: ProjectDetail = ask(run, "project-show", project=_named(run, project))
    run.answer(_detail_record(found), lambda paper: _render_detail(paper, found))


@project.command(
    "tie", examples=["nacre project tie acme-billing", "nacre project tie acme-billing ~/code/billing --json"]
)
@argument("project-tie", "project", metavar="PROJECT")
@argument(
    "project-tie", "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path),
)  # fmt: skip
@click.pass_obj
def tie(run: Run, project: str, folder: Path | None) -> None:
    """Assign a folder, with its repository, to a project.

    Without FOLDER, the current one. Sessions and memories from before stay in their project.
    """
    meant = Path(os.path.abspath(folder or Path.cwd()))
    found: Place = perform(run, "project-tie", project=project, folder=str(meant))
    record = {"project": found.project, "folder": str(meant)}
    run.answer(record, lambda paper: paper.line(f"{meant} belongs to ", bold(found.project or ""), " now."))


@project.command(
    "rename", examples=["nacre project rename billing acme-billing", 'nacre project rename . "Acme Billing"']
)
@argument("project-rename", "project", metavar="OLD")
@argument("project-rename", "name", metavar="NEW")
@option("project-rename", "reason")
@click.pass_obj
def rename(run: Run, project: str, name: str, reason: str | None) -> None:
    """Give a project another name.

    Its folder in the vault is renamed, too. Its memories keep their ids, and its former name stays as an alias.
    """
    found: ProjectMoved = perform(
        run, "project-rename", project=_named(run, project), name=name, reason=reason
    )  # fmt: skip
    run.answer(_moved_record(found), lambda paper: _render_moved(paper, found, "is now called"))


@project.command(
    "merge",
    examples=[
        "nacre project merge billing-old acme-billing --dry-run",
        'nacre project merge billing-old acme-billing --yes --reason "the repository moved"',
    ],
)
@argument("project-merge", "project", metavar="FROM")
@argument("project-merge", "into", metavar="INTO")
@option("project-merge", "reason")
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def merge(run: Run, /, dry_run: bool, yes: bool, reason: str | None, **names: str) -> None:
    """Merge a project into another.

    INTO gets the memories, sessions, folders, remotes and names of FROM. The page of FROM is retired, and your text on
    it is appended to the page of INTO. nacre undo takes it back.
    """
    wanted: dict[str, Any] = {name: _named(run, given) for name, given in names.items()}
    plan: ProjectMergePlan = perform(run, "project-merge-plan", **wanted)
    if dry_run:
        run.answer(_plan_record(plan), lambda paper: _render_plan(paper, plan))
        return
    run.settings.actor.require_owner("nacre project merge")
    if not yes and run.is_interactive:
        run.show(lambda paper: _render_plan(paper, plan))
    run.confirm("Do it?", yes=yes, refusal="not interactive: pass --yes, or --dry-run to see the plan")
    found: ProjectMoved = perform(run, "project-merge", **wanted, reason=reason)
    run.answer(_moved_record(found), lambda paper: _render_moved(paper, found, "is now part of"))


@project.command(
    "depend",
    examples=["nacre project depend shop acme-billing design", "nacre project depend shop design --remove"],
)
@argument("project-depend", "project", metavar="PROJECT")
@argument("project-depend", "on", metavar="ON...")
@option("project-depend", "remove")
@click.pass_obj
def depend(run: Run, project: str, on: Sequence[str], remove: bool) -> None:
    """Set which projects a project depends on.

    Recall and context in PROJECT then include their memories, but not those of their own dependencies.
    """
    found: ProjectLine = perform(
        run, "project-depend", project=_named(run, project), on=tuple(on), remove=remove
    )  # fmt: skip
    named = ", ".join(found.dependencies) or "nothing"
    run.answer(_line_record(found), lambda paper: paper.line(bold(found.slug), f" depends on {named}."))


def _named(run: Run, name: str) -> str:
    """A project as the operation is to look for it: it reads pages that were just written first."""
    return (find_project(run, name) or name) if name == "." else name


def _render(paper: Paper, found: Place) -> None:
    if found.project:
        paper.line("This folder belongs to ", bold(found.project), ".")
    else:
        paper.line("This folder belongs to no project", dim(f"  {tie_hint(found.namesake)}") if found.namesake else ".")
    if not found.known:
        paper.line(dim("There are no projects yet: each comes with its first session or memory."))
        return
    paper.heading("Known")
    for name in found.known:
        paper.line(name, indent=2)


def _render_list(paper: Paper, found: Sequence[ProjectLine]) -> None:
    if not found:
        paper.line(dim("There are no projects yet: each comes with its first session or memory."))
        return
    rows = [
        (bold(one.slug), f"{one.memories:,}", f"{one.sessions:,}", day(one.last) or "never", dim(_names(one)))
        for one in found
    ]
    paper.table(rows, header=("project", "memories", "sessions", "last", ""))


def _names(one: ProjectLine) -> str:
    """The other names of a project, and what it depends on."""
    told = (("also", one.aliases), ("depends on", one.dependencies))
    return "; ".join(f"{words} {', '.join(names)}" for words, names in told if names)


def _render_detail(paper: Paper, found: ProjectDetail) -> None:
    line = found.project
    paper.line(bold(line.name if line.name != line.slug else line.slug), dim(f"  projects/{line.slug}/project.md"))
    said = f", last {day(line.last)}" if line.last else ""
    paper.line(f"{count(line.memories, 'memory', 'memories')}, {count(line.sessions, 'session')}{said}")
    facts = (
        ("also", line.aliases), ("depends on", line.dependencies), ("needed by", found.needed_by),
        ("remotes", found.remotes), ("folders", found.roots), ("labels", found.labels),
    )  # fmt: skip
    paper.facts([(name, ", ".join(values)) for name, values in facts if values])
    if found.page:
        paper.heading("Page")
        paper.body(found.page, indent=2)
    if found.latest:
        paper.heading("Latest memories")
        for memory in found.latest:
            paper.line(kind_span(memory.kind), f"  {memory.subject}", dim(f"  {short_id(memory)}"), indent=2, hang=2)


def _render_plan(paper: Paper, plan: ProjectMergePlan) -> None:
    paper.line(bold(plan.project), " would become part of ", bold(plan.into), ":")
    paper.line(
        f"{count(plan.memories, 'memory', 'memories')}, retired ones too, and {count(plan.sessions, 'session')}",
        indent=2,
    )
    for kind, value in plan.takes[:_SHOWN]:
        paper.line(f"{kind}  {value}", indent=2)
    if len(plan.takes) > _SHOWN:
        paper.line(dim(f"and {len(plan.takes) - _SHOWN} more"), indent=2)
    if plan.words:
        paper.line(f"the text of its page, appended to that of {plan.into}:", indent=2)
        paper.body(plan.words, indent=4)
    paper.blank()
    for one in plan.evidence:
        paper.line(f"They are one: {one}.")
    if not plan.evidence:
        paper.line("nacre knows no evidence that they are one project: that is your decision.")


def _render_moved(paper: Paper, found: ProjectMoved, words: str) -> None:
    moved = f"{count(found.memories, 'memory', 'memories')} and {count(found.sessions, 'session')}"
    paper.line(bold(found.project), f" {words} ", bold(found.into), f": {moved} moved.")
    if found.retired:
        paper.line(dim(f"its page is now {found.retired}"))
    for path in found.left:
        paper.line(f"not moved: {path} cannot be read as a memory")
    paper.line(dim(f"nacre undo {found.operation[-8:]} takes it back"))


def _line_record(one: ProjectLine) -> Record:
    return {
        "project": one.slug, "name": one.name, "memories": one.memories, "sessions": one.sessions,
        "last": stamp(one.last), "aliases": list(one.aliases), "dependencies": list(one.dependencies),
    }  # fmt: skip


def _detail_record(found: ProjectDetail) -> Record:
    return _line_record(found.project) | {
        "page": found.page or None, "remotes": list(found.remotes), "roots": list(found.roots),
        "labels": list(found.labels), "needed_by": list(found.needed_by),
        "latest": [memory_record(one) for one in found.latest],
    }  # fmt: skip


def _plan_record(plan: ProjectMergePlan) -> Record:
    return {
        "project": plan.project, "into": plan.into, "memories": plan.memories, "sessions": plan.sessions,
        "takes": [{"kind": kind, "value": value} for kind, value in plan.takes], "words": plan.words or None,
        "evidence": list(plan.evidence),
    }  # fmt: skip


def _moved_record(found: ProjectMoved) -> Record:
    return {
        "project": found.project, "into": found.into, "memories": found.memories, "sessions": found.sessions,
        "retired": found.retired, "left": list(found.left), "operation": found.operation,
    }  # fmt: skip
