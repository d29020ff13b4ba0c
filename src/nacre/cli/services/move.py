"""``nacre move``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import Command
from nacre.cli.formats import count, size
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import option
from nacre.cli.run import Run
from nacre.platform.lazy import load

if TYPE_CHECKING:
    from nacre.moving.move import MoveReport

_YES = "Do not ask."


@click.command(
    "move",
    cls=Command,
    examples=[
        "nacre move --to postgresql://ada@db.example.org/nacre",
        "nacre move --to postgresql://ada@db.example.org/nacre --tenant ada",
        "nacre move --from postgresql://ada@db.example.org/nacre --tenant ada",
    ],
)
@option("move", "to", metavar="ADDRESS")
@option("move", "source", "--from", metavar="ADDRESS", help="Bring the memory back from that server.")
@option("move", "tenant", metavar="NAME")
@option("move", "questions", metavar="NUMBER")
@click.option("--yes", "-y", is_flag=True, help=_YES)
@click.pass_obj
def move(run: Run, to: str | None, source: str | None, tenant: str | None, questions: int, yes: bool) -> None:
    """Carry your memory to a PostgreSQL server, or back.

    Memories with their files and history of changes, sessions, links, vectors, usage: all of it, with the same ids.
    Both ends are compared before nacre goes on with the new one. What you move from stays as it is. A move that was
    interrupted goes on with the same command. Exits with 1 where documents differ.
    """
    if to:
        told = f"Carry your memory to {load('nacre.moving.places:without_password')(to)}, and work with it there?"
        run.confirm(told, yes=yes, refusal="your memory leaves this machine: --yes says that you want it")
    with progress.shown(run) as notify:
        report: MoveReport = perform(run, "move", notify, to=to, source=source, tenant=tenant, questions=questions)
    run.answer(_record(report), lambda paper: _tell(paper, report))
    if not report.is_same:
        run.exit_code = 1


def _tell(paper: Paper, report: MoveReport) -> None:
    rows = report.rows
    paper.line(bold("Carried"), f" to {report.place}", dim(f", tenant {report.tenant}"))
    told = [count(rows["memories"], "memory", "memories")]
    told += [count(rows[f"{one}s"], one) for one in ("turn", "session", "link")]
    paper.line(", ".join(told), indent=2)
    paper.line(
        dim(f"{sum(rows.values()):,} rows of {sum(map(bool, rows.values()))} tables, the same in both"), indent=2
    )
    here, there = report.documents, report.documents_there
    same = "byte for byte the same" if here == there else f"{there.count:,} there: they differ"
    paper.line(dim(f"{count(here.count, 'document')}, {size(here.bytes)}: {same}"), indent=2)
    asked = report.answers
    paper.line(dim(f"{asked.same} of {count(asked.asked, 'question')} answered the same"), indent=2)
    for question in asked.differing:
        paper.line(dim(f"not: {question}"), indent=4)
    if report.is_in_use:
        paper.line(
            f"It is in use there from now on. What {report.kept} has stays as it is, and is not read any more.",
            indent=2,
        )
    else:
        paper.line(f"Your memory stays in use where it was: {report.left}", indent=2)


def _record(report: MoveReport) -> dict[str, object]:
    documents = {
        "count": report.documents.count, "bytes": report.documents.bytes, "hash": report.documents.hash,
        "same": report.documents == report.documents_there,
    }  # fmt: skip
    answers = {"asked": report.answers.asked, "same": report.answers.same, "same_first": report.answers.same_first}
    return {
        "place": report.place, "tenant": report.tenant, "rows": dict(report.rows), "written": report.written,
        "passes": report.passes, "documents": documents, "answers": answers, "is_same": report.is_same,
        "is_in_use": report.is_in_use, "left": report.left,
    }  # fmt: skip
