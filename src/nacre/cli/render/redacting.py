"""What redaction found, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, bold, dim
from nacre.cli.render.words import count, seconds

if TYPE_CHECKING:
    from nacre.values.scrub import ScrubReport


def render_redacted(paper: Paper, found: Mapping[str, int]) -> None:
    """Which rules found something."""
    if not found:
        paper.line(dim("No secrets were found."))
        return
    paper.line(bold(count(sum(found.values()), "secret")), " would not be stored:")
    paper.table([(f"{number:>5,}", rule) for rule, number in _by_number(found)], indent=2)


def render_rules(paper: Paper, names: Sequence[str]) -> None:
    """The rules, in the order in which they are tried."""
    paper.line(bold(count(len(names), "rule")), ", the first that matches counts:")
    paper.body(", ".join(names), indent=2)


def render_scrub(paper: Paper, report: ScrubReport) -> None:
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
        told = ", ".join(count(number, word, "memories" if word == "memory" else None) for number, word in changed)
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
