"""``nacre export`` and ``nacre import``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nacre.cli import progress
from nacre.cli.command import TEXT, command
from nacre.cli.options import project_slug
from nacre.cli.run import Run
from nacre.portability.requests import ExportOptions, ImportOptions

_STDOUT = "-"
_SOURCES = (
    "nacre", "agenr", "agent-knowledge", "clawxmemory", "claude-memory", "openclaw", "codex-memories", "chatgpt",
    "claude-ai",
)  # fmt: skip


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
    from nacre.cli.records.portable import export_record
    from nacre.cli.render.portable import render_export
    from nacre.portability import exporting

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
        paper = run.paper(stderr=True)
        render_export(paper, report)
        click.echo(paper.text(), nl=False, err=True)
        return
    run.answer(export_record(report), lambda paper: render_export(paper, report))


@command(
    "import",
    examples=[
        "nacre import memories.jsonl --trust",
        "nacre import ~/.agenr/knowledge.db --dry-run",
        "nacre import ~/Downloads/chatgpt-export.zip",
    ],
)
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path))
@click.option(
    "--from", "source", type=click.Choice(["auto", *_SOURCES]), default="auto", show_default=True,
    help="What wrote it; recognised by its content where that is possible.",
)  # fmt: skip
@click.option("--trust", is_flag=True, help="It is yours: treat it as what you said to nacre itself.")
@click.option("--project", type=TEXT, help="Put everything into this project; . is the one of this folder.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option("--no-vectors", is_flag=True, help="Leave the vectors to the next ingest.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def import_(run: Run, /, path: Path, source: str, project: str | None, dry_run: bool, yes: bool, **more: bool) -> None:
    """Take in what another memory or an account's export holds.

    What comes in is untrusted unless you say --trust: it is found when you search, it is never put before an agent by
    itself, and it ends nothing that is here. A second import of the same adds nothing. On a terminal it asks first.
    """
    from nacre.cli.records.portable import import_record
    from nacre.cli.render.portable import render_import, render_plan
    from nacre.portability import importing

    options = ImportOptions(
        path=path, source=source, trust=more["trust"], vectors=not more["no_vectors"],
        project=project_slug(run.home, project) if project else None,
    )  # fmt: skip
    plan = importing.plan_import(run.home, options)
    if dry_run or plan.is_empty:
        run.answer(import_record(plan, None, dry_run=dry_run), lambda paper: render_plan(paper, plan))
        return
    if run.is_interactive and not yes:
        paper = run.paper(stderr=True)
        render_plan(paper, plan)
        click.echo(paper.text(), nl=False, err=True)
        run.confirm("Take this in?")
    with progress.shown(run) as notify:
        report = importing.carry_out(run.home, plan, notify)
    run.exit_code = 1 if report.ingest and report.ingest.problems else 0
    run.answer(import_record(plan, report, dry_run=False), lambda paper: render_import(paper, plan, report))


def _form(file: Path, form: str | None) -> str:
    ending = file.suffix.lower()
    if ending == ".zip" and form != "jsonl":
        return "zip"
    if form:
        return form
    return "markdown" if ending in (".md", ".markdown") else "jsonl"
