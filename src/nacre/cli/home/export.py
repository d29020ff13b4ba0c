"""``nacre export``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nacre.cli import progress
from nacre.cli.command import TEXT, command
from nacre.cli.formats import Record, count, size
from nacre.cli.options import project_slug
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.run import Run
from nacre.portability import exporting
from nacre.portability.exporting import ExportReport
from nacre.portability.requests import ExportOptions

_STDOUT = "-"
_FORMS = {"jsonl": "JSON lines", "markdown": "one page", "zip": "Markdown files"}
_NAMES = {
    "memory": ("memory", "memories"), "page": ("project page", "project pages"), "link": ("link", "links"),
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
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "markdown"]),
    help="Without it, FILE's ending decides: .md is one page, .zip the Markdown files, all else JSON lines.",
)  # fmt: skip
@click.option("--sessions", is_flag=True, help="With every session and what was said in it.")
@click.option("--project", type=TEXT, help="Only this project; . is the one of this folder.")
@click.option("--include-retired", is_flag=True, help="With what was retired.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.pass_obj
def export(
    run: Run, file: Path, form: str | None, sessions: bool, project: str | None, include_retired: bool, force: bool
) -> None:
    """Write everything into one file that others can read.

    Memories with every key, links, how they were used, the ledger, project pages; - writes to standard output. Secrets
    are taken out once more. nacre import reads the JSON lines and the zip again.
    """
    to_stdout = str(file) == _STDOUT
    if to_stdout and run.as_json:
        raise click.UsageError("standard output can hold the export or the report: name a file, or leave --json out")
    options = ExportOptions(
        form=_form(file, form), sessions=sessions, include_retired=include_retired,
        project=project_slug(run.home, project) if project else None,
    )  # fmt: skip
    target = sys.stdout.buffer if to_stdout else file
    with progress.shown(run) as notify:
        report = exporting.export(run.home, target, options, overwrite=force, on_progress=notify)
    if to_stdout:
        run.show(lambda paper: _render_export(paper, report))
        return
    run.answer(_export_record(report), lambda paper: _render_export(paper, report))


def _form(file: Path, form: str | None) -> str:
    ending = file.suffix.lower()
    if ending == ".zip" and form != "jsonl":
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
