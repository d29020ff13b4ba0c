"""``nacre report``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.formats import Record
from nacre.cli.operations import ask
from nacre.cli.options import find_project
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import option
from nacre.cli.run import Run
from nacre.home.territory import territory
from nacre.platform import named_files
from nacre.values.codec import plain
from nacre.values.spending import DOLLAR, dollars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nacre.reporting.values import Activity, Report, Series

_SHADES = "▁▂▃▄▅▆▇█"
_MOST_STEPS = 40


@command(
    "report",
    examples=[
        "nacre report --project .",
        "nacre report --html year.html               # pictures, as a page of its own",
        "nacre report --html november.html --month 2026-11",
    ],
)
@option("report", "project", help="Only what belongs to this project; . is the one of this folder.")
@option("report", "month", metavar="YYYY-MM")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write pictures and numbers to FILE.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.pass_obj
def report(run: Run, project: str | None, month: str | None, html: Path | None, force: bool) -> None:
    """Show what a year or a month brought: sessions, memories, recalls, cost.

    FILE is one HTML file with pictures, each with its numbers: it needs no network and runs no script.
    """
    path = html.expanduser().absolute() if html else None
    if path:
        named_files.refuse_named(path, territory(run.settings))
        if path.exists() and not force and run.is_interactive:
            run.confirm(f"{path} exists. Overwrite it?")
            force = True
    found: Report = ask(run, "report", project=find_project(run, project), month=month)
    record = _record(found.activity)
    if path:
        with named_files.named_file(path, territory(run.settings), overwrite=force) as file:
            size = file.write(found.html.encode("utf-8", "replace"))
        record |= {"path": str(path), "bytes": size}
    run.answer(record, lambda paper: paper.line(f"Wrote {path}") if path else _render(paper, found.activity))


def _record(found: Activity) -> Record:
    record: Record = plain(found)
    costs = [{"name": one.name, "values": [cost / DOLLAR for cost in one.values]} for one in found.cost]
    return {**{name: value for name, value in record.items() if name != "cost"}, "cost_usd": costs}


def _render(paper: Paper, found: Activity) -> None:
    about = found.project or "All projects"
    paper.line(bold(about), dim(f"  {found.since} to {found.until}, by {found.step}"))
    sessions = {one.name: sum(one.values) for one in found.sessions}
    _group(paper, "Sessions", [
        (one, f"{sessions.get(one.name, 0):,}", f"{sum(one.values):,} turns") for one in found.turns
    ])  # fmt: skip
    stored = {one.name: sum(one.values) for one in found.stored}
    _group(paper, "Memories", [
        (_at_ends(one), f"{one.values[-1]:,}", f"{stored.get(one.name, 0):,} new")
        for one in found.held if any(one.values)
    ])  # fmt: skip
    costs = {one.name: sum(one.values) for one in found.cost}
    _group(paper, "Language models", [
        (one, dollars(costs[one.name]), f"{sum(one.values):,} tokens") for one in found.tokens
    ])  # fmt: skip
    paper.heading("Use")
    paper.table(
        [
            ("recalls", f"{sum(found.recalls):,}", _curve(found.recalls)),
            ("memories never recalled", f"{found.never:,}", ""), ("up to five times", f"{found.seldom:,}", ""),
            ("more often", f"{found.often:,}", ""),
            ("that may be out of date", f"{sum(one.stale for one in found.ages):,}", ""),
        ], indent=2,
    )  # fmt: skip
    paper.blank()
    paper.line(dim("nacre report --html FILE draws it"))


def _group(paper: Paper, title: str, rows: Sequence[tuple[Series, str, str]]) -> None:
    if rows:
        paper.heading(title)
        paper.table([(one.name, number, more, _curve(one.values)) for one, number, more in rows], indent=2)


def _at_ends(levels: Series) -> Series:
    """Levels instead of counts: where several steps become one, what was there at its end."""
    width = -(-len(levels.values) // _MOST_STEPS)
    return replace(levels, values=levels.values[::-1][::width][::-1])


def _curve(values: Sequence[int]) -> str:
    """The values as blocks of eight heights; of very many steps, several together."""
    width = -(-len(values) // _MOST_STEPS)
    sums = [sum(values[at : at + width]) for at in range(0, len(values), width)]
    most = max(sums, default=0)
    return "".join(_SHADES[min(7, value * 8 // most)] if value else " " for value in sums) if most else ""
