"""``nacre redact`` and ``nacre scrub``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from nacre.cli import progress
from nacre.cli.command import command
from nacre.cli.run import Run


@command(
    "redact",
    examples=[
        "nacre redact notes.md",
        "pbpaste | nacre redact -",
        "nacre redact --rules",
    ],
)
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--rules", "lists_rules", is_flag=True, help="List the rules instead.")
@click.pass_obj
def redact(run: Run, file: Path | None, lists_rules: bool) -> None:
    """Show a text as it would be stored, and which rules find secrets in it.

    FILE is a file, or - for standard input. Nothing is stored. What is yours to add: redaction.patterns for your own
    secrets, redaction.allow for what only looks like one; <private>…</private> marks what is never kept.
    """
    from nacre.cli.render.redacting import render_redacted, render_rules
    from nacre.redact import Redactor, rule_names

    if lists_rules:
        names = rule_names()
        run.answer({"rules": names}, lambda paper: render_rules(paper, names))
        return
    if file is None:
        raise click.UsageError("say which text: a file, or - for standard input")
    data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    redactor = Redactor(run.settings["redaction.patterns"], run.settings["redaction.allow"])
    result = redactor.redact(data.decode("utf-8", errors="replace"))
    record = {"text": result.text, "found": dict(result.found), "total": sum(result.found.values())}
    run.answer(record, lambda paper: paper.verbatim(result.text.removesuffix("\n")))
    if not run.as_json:
        notes = run.paper(stderr=True)
        render_redacted(notes, dict(result.found))
        click.echo(notes.text(), err=True, nl=False)


@command(
    "scrub",
    examples=[
        "nacre scrub --dry-run",
        "nacre scrub --history             # also every version that git keeps",
        "nacre scrub --history --remove-copies --yes",
    ],
)
@click.option("--dry-run", is_flag=True, help="Tell what would be taken out, change nothing.")
@click.option("--history", is_flag=True, help="Also rewrite the vault's git history; all commits get new ids.")
@click.option("--remove-copies", is_flag=True, help="Also remove older copies of the database.")
@click.option("--no-vectors", is_flag=True, help="Leave new vectors to the next ingest.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def scrub(run: Run, dry_run: bool, history: bool, remove_copies: bool, no_vectors: bool, yes: bool) -> None:
    """Apply the present rules of redaction to everything that is stored.

    Sessions, memories and their files, indexes, vectors, ledger, usage, logs: what a rule knows now and did not know
    then is taken out, and the database is written anew without it. A second scrub finds nothing; one that was
    interrupted goes on.
    """
    from nacre.cli.records.forgetting import scrub_record
    from nacre.cli.render.redacting import render_scrub
    from nacre.forgetting.requests import ScrubOptions
    from nacre.forgetting.scrub import scrub as apply

    if history and not dry_run:
        _confirm(
            run, yes, "Rewrite the vault's git history? Every commit gets a new id, and clones have to be made anew."
        )
    if remove_copies and not dry_run:
        _confirm(run, yes, "Remove older copies of the database for good?")
    options = ScrubOptions(dry_run=dry_run, history=history, remove_copies=remove_copies, vectors=not no_vectors)
    with progress.shown(run) as notify:
        report = apply(run.home, options, notify or (lambda _: None))
    run.answer(scrub_record(report), lambda paper: render_scrub(paper, report))


def _confirm(run: Run, yes: bool, question: str) -> None:
    if yes:
        return
    if not run.is_interactive:
        raise click.UsageError("nobody can be asked here: add --yes if that is what you want")
    run.confirm(question)
