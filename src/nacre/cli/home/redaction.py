"""``nacre redact`` and ``nacre scrub``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nacre import redact as nacre_redact
from nacre.cli import progress
from nacre.cli.command import TEXT, command
from nacre.cli.formats import count, seconds
from nacre.cli.operations import perform
from nacre.cli.paper import Paper, bold, dim
from nacre.cli.request_options import option, options
from nacre.cli.run import Run

if TYPE_CHECKING:
    from nacre.values.scrub import ScrubReport


_REFUSAL = "not interactive: pass --yes if that is what you want"


@command(
    "redact",
    examples=[
        "nacre redact notes.md",
        "nacre redact 'mail jo@example.org, the key is in the safe'",
        "pbpaste | nacre redact -",
    ],
)
@click.argument("words", nargs=-1, metavar="[FILE|TEXT]", type=TEXT)
@click.option("--rules", "lists_rules", is_flag=True, help="List the rules instead.")
@click.pass_obj
def redact(run: Run, words: tuple[str, ...], lists_rules: bool) -> None:
    """Show a text as it would be stored, and which rules find secrets in it.

    FILE is a file, or - for standard input; what is no file is TEXT itself. Shells keep what is typed: real secrets are
    for a file. Nothing is stored. What is yours to add: redaction.patterns for your own
    secrets, redaction.allow for what only looks like one, redaction.emails,
    redaction.payment_cards and redaction.home_paths for what goes besides; <private>…</private> marks what is never
    kept.
    """
    if lists_rules:
        names = nacre_redact.rule_names()
        run.answer({"rules": names}, lambda paper: _render_rules(paper, names))
        return
    if not words:
        raise click.UsageError("say which text: a file, - for standard input, or the text itself")
    text, is_typed = _text_of(words)
    redactor = nacre_redact.Redactor(*run.settings.redaction)
    result = redactor.redact(text)
    record = {"text": result.text, "found": dict(result.found), "total": sum(result.found.values())}
    run.answer(record, lambda paper: paper.verbatim(result.text.removesuffix("\n")))
    if not run.as_json:
        notes = run.paper(stderr=True)
        if is_typed and len(words) == 1 and not words[0].split()[1:]:
            notes.line(dim("There is no file of that name: this is the text itself."))
        _render_redacted(notes, dict(result.found))
        click.echo(notes.text(), err=True, nl=False)


def _text_of(words: tuple[str, ...]) -> tuple[str, bool]:
    """The text that is meant, and whether it was typed."""
    if words == ("-",):
        return sys.stdin.buffer.read().decode("utf-8", errors="replace"), False
    if len(words) == 1 and os.path.exists(words[0]):
        return Path(words[0]).read_bytes().decode("utf-8", errors="replace"), False
    return " ".join(words), True


@command(
    "scrub",
    examples=[
        "nacre scrub --dry-run",
        "nacre scrub --history             # also every version that git keeps",
        "nacre scrub --history --remove-copies --yes",
    ],
)
@options("scrub", "dry_run", "history")
@option("scrub", "remove_copies")
@option("scrub", "vectors", help="Leave new vectors to the next ingest.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def scrub(run: Run, dry_run: bool, history: bool, remove_copies: bool, vectors: bool, yes: bool) -> None:
    """Apply the present rules of redaction to everything that is stored.

    Sessions, memories and their files, indexes, vectors, ledger, usage, logs: what a rule knows now and did not know
    then is taken out, and the database is written anew without it. A second scrub finds nothing; one that was
    interrupted goes on.
    """
    if history and not dry_run:
        question = "Rewrite the vault's git history? Every commit gets a new id, and clones have to be made anew."
        run.confirm(question, yes=yes, refusal=_REFUSAL)
    if remove_copies and not dry_run:
        run.confirm("Remove older copies of the database for good?", yes=yes, refusal=_REFUSAL)
    wanted = {"dry_run": dry_run, "history": history, "remove_copies": remove_copies, "vectors": vectors}
    with progress.shown(run) as notify:
        report: ScrubReport = perform(run, "scrub", notify, **wanted)
    run.answer(_scrub_record(report), lambda paper: _render_scrub(paper, report))


def _scrub_record(report: ScrubReport) -> dict[str, Any]:
    """What a scrub found and changed."""
    return {
        "dry_run": report.dry_run, "total": report.total,
        "found": {place: dict(rules) for place, rules in report.found.items()},
        "turns": report.turns, "memories": report.memories, "files": report.files, "commits": report.commits,
        "copies": [str(path) for path in report.copies], "removed": [str(path) for path in report.removed],
        "elsewhere": list(report.elsewhere), "vectors_left": report.vectors_left, "seconds": round(report.seconds, 3),
    }  # fmt: skip


def _render_redacted(paper: Paper, found: Mapping[str, int]) -> None:
    """Which rules found something."""
    if not found:
        paper.line(dim("No secrets were found."))
        return
    paper.line(bold(count(sum(found.values()), "secret")), " would not be stored:")
    paper.table([(f"{number:>5,}", rule) for rule, number in _by_number(found)], indent=2)


def _render_rules(paper: Paper, names: Sequence[str]) -> None:
    """The rules, in the order in which they are tried."""
    paper.line(bold(count(len(names), "rule")), ", the first that matches counts:")
    paper.body(", ".join(names), indent=2)
    paper.line("email and home-path hold where redaction.emails and redaction.home_paths are on.")


def _render_scrub(paper: Paper, report: ScrubReport) -> None:
    """What was taken out where, and what a scrub does not reach."""
    if report.total:
        verb = "would be taken out" if report.dry_run else "taken out"
        paper.line(bold(count(report.total, "secret")), f" {verb} in {seconds(report.seconds)}:")
        rows = [
            (f"{number:>6,}", rule, dim(f"in {place}"))
            for place, rules in report.found.items()
            for rule, number in _by_number(rules)
        ]
        paper.table(rows, indent=2)
        changed = [(report.turns, "turn"), (report.memories, "memory"), (report.files, "file")]
        told = ", ".join(count(number, word, "memories" if word == "memory" else "") for number, word in changed)
        paper.line(f"{'Would change' if report.dry_run else 'Changed'}: {told}.")
    else:
        paper.line(bold("Nothing to take out"), ": the rules find no secret in what is stored.")
    if report.commits is not None:
        what = "would be looked through" if report.dry_run else "of the vault's history rewritten"
        paper.line(f"{count(report.commits, 'commit')} {what}.")
    if report.vectors_left:
        paper.line(dim(f"{report.vectors_left:,} texts wait for their vectors: the next nacre ingest makes them."))
    _render_rest(paper, report)


def _render_rest(paper: Paper, report: ScrubReport) -> None:
    if report.removed:
        paper.line(f"Removed {count(len(report.removed), 'older copy', 'older copies')} of the database.")
    if report.copies:
        paper.heading("Older copies of the database, not looked into")
        for path in report.copies:
            paper.line(str(path), indent=2)
        paper.line(dim("nacre scrub --remove-copies removes them"), indent=2)
    if report.elsewhere and (report.total or report.commits):
        paper.heading("What may still hold it elsewhere")
        for place in report.elsewhere:
            paper.line(f"- {place}", indent=2, hang=2)


def _by_number(found: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))
