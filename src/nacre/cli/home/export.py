"""``nacre export``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.formats import Record, count, size
from nacre.cli.options import project_slug
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.portability import exporting, requests

if TYPE_CHECKING:
    from nacre.portability.exporting import ExportReport

_STDOUT = "-"
_FORMS = {"jsonl": "JSON lines", "markdown": "one page", "zip": "Markdown files", "clawxmemory": "for ClawXMemory"}
_NAMES = {
    "memory": ("memory", "memories"), "page": ("project page", "project pages"),
    "link": ("computed edge", "computed edges"),
    "ledger": ("ledger entry", "ledger entries"), "session": ("session", "sessions"), "turn": ("turn", "turns"),
}  # fmt: skip


@command(
    "export",
    examples=[
        "nacre export memories.jsonl            # for another nacre, or for a program",
        "nacre export memories.md               # one page to read",
        "nacre export vault.zip --sessions      # the Markdown files themselves, and every session",
    ],
)
@argument("export", "target", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True))
@option(
    "export", "form", "--format", type=click.Choice(["jsonl", "markdown", "clawxmemory"]), default=None,
    show_default=False,
    help="Without it, FILE's ending decides: .md is one page, .zip the Markdown files, all else JSON lines. "
    "clawxmemory is a snapshot that ClawXMemory imports.",
)  # fmt: skip
@option("export", "sessions")
@option("export", "project", help="Only this project; . is the one of this folder.")
@option("export", "include_retired")
@option("export", "overwrite", "--force", help="Overwrite FILE.")
@click.pass_obj
def export(
    run: Run, target: Path, form: str | None, sessions: bool, project: str | None, include_retired: bool,
    overwrite: bool,
) -> None:  # fmt: skip
    """Write everything into one file that others can read.

    Memories with every key, links, how they were used, the ledger, project pages; - writes to standard output. Secrets
    are taken out once more. nacre import reads the JSON lines and the zip again.
    """
    to_stdout = str(target) == _STDOUT
    if to_stdout and run.as_json:
        raise click.UsageError("standard output can hold the export or the report: name a file, or leave --json out")
    options = requests.ExportOptions(
        form=_form(target, form), sessions=sessions, include_retired=include_retired,
        project=project_slug(run.home, project) if project else None,
    )  # fmt: skip
    out = sys.stdout.buffer if to_stdout else target
    with progress.shown(run) as notify:
        report = exporting.export(run.home, out, options, overwrite=overwrite, on_progress=notify)
    if to_stdout:
        run.show(lambda paper: _render_export(paper, report))
        return
    run.answer(_export_record(report), lambda paper: _render_export(paper, report))


def _form(file: Path, form: str | None) -> str:
    ending = file.suffix.lower()
    if ending == ".zip" and form in (None, "markdown"):
        return "zip"
    if form:
        return form
    return "markdown" if ending in (".md", ".markdown") else "jsonl"


def _export_record(report: ExportReport) -> Record:
    """What went out."""
    return {
        "path": report.path,
        "format": report.form,
        "counts": report.counts,
        "left_out": report.left_out,
        "withheld": report.withheld,
        "bytes": report.bytes,
    }


def _render_export(paper: Paper, report: ExportReport) -> None:
    """What went out, and what stayed."""
    paper.line(
        bold("Exported"), f" {count(report.counts['memory'], 'memory', 'memories')} to {report.path} ",
        dim(f"({_FORMS[report.form]}, {size(report.bytes)})"),
    )  # fmt: skip
    told = [count(number, *_NAMES[name]) for name, number in report.counts.items() if number and name != "memory"]
    if told:
        paper.line(f"with {', '.join(told)}", indent=2)
    if report.left_out:
        stay = count(report.left_out, "retired memory stays", "retired memories stay")
        paper.line(dim(f"{stay} here: --include-retired takes them along"), indent=2)
    if report.withheld:
        stay = count(report.withheld, "memory stays", "memories stay")
        paper.line(dim(f"{stay} here: from outside, or proposed by agents, and the file could not say so"), indent=2)
