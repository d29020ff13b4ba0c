"""A session in brief, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.render.memories import render_table
from nacre.cli.render.sessions import render_facts, render_sent
from nacre.cli.render.words import count, speaker_name
from nacre.values.session import Speaker
from nacre.values.summary import Ending, Loose

if TYPE_CHECKING:
    from nacre.values.summary import ErrorMet, Outcome, Summary
    from nacre.views import SessionReport

_FILES_SHOWN = 12
_ERRORS_SHOWN = 3
_TOOLS_SHOWN = 8
_COMMANDS_SHOWN = 10
_TINTS = {Ending.DONE: "bold green", Ending.FAILED: "bold red", Ending.STOPPED: "bold yellow", Ending.UNKNOWN: "dim"}
_LOOSE = {
    Loose.REQUEST: "unfinished", Loose.QUESTION: "asked", Loose.TODO: "to do", Loose.NEXT_STEP: "left",
    Loose.FAILING: "fails",
}  # fmt: skip


def render_summary(paper: Paper, report: SessionReport) -> None:
    """Facts, what was asked, how it ended, what was left, what was done."""
    summary = report.summary
    render_facts(paper, report.view)
    if summary.topics:
        paper.heading("Asked for")
        for topic in summary.topics:
            who = "" if topic.speaker is Speaker.OWNER else f"{speaker_name(topic.speaker)}: "
            paper.line("· ", dim(who), topic.text, indent=2, hang=2)
    paper.heading("Ended")
    _render_outcome(paper, summary.outcome)
    if summary.open_ends:
        paper.heading("Left open")
        for end in summary.open_ends:
            paper.line("· ", dim(f"{_LOOSE[end.kind]}: "), end.text, indent=2, hang=2)
    _render_work(paper, summary)
    unmended = [error for error in summary.errors if not error.mended]
    if unmended:
        _render_errors(paper, unmended)
    render_sent(paper, report.view)
    if report.view.memories:
        paper.heading("Learned from it")
        render_table(paper, report.view.memories, indent=2)


def _render_outcome(paper: Paper, outcome: Outcome) -> None:
    paper.line(Span(outcome.ending.value, _TINTS[outcome.ending]), dim(f"  {outcome.reason}"), indent=2)
    if outcome.words and outcome.speaker:
        paper.line(bold(f"{speaker_name(outcome.speaker)}:"), " ", outcome.words, indent=2)


def _render_work(paper: Paper, summary: Summary) -> None:
    changed = [f"{file.path}{_times(file.edits)}" for file in summary.modified]
    read = sum(1 for file in summary.files if not file.edits)
    only_read = f"{count(read, 'file')} only read" if read else ""
    tools = [f"{tool.name}{_times(tool.calls)}{_failed(tool.failed)}" for tool in summary.tools]
    commands = [f"{command.name}{_times(command.runs)}{_failed(command.failed)}" for command in summary.commands]
    mended = sum(1 for error in summary.errors if error.mended)
    if not any((changed, read, tools, commands, summary.commits, summary.pull_requests, summary.packages)):
        return
    paper.heading("Done")
    paper.facts(
        (
            ("changed", joined((_list(changed, _FILES_SHOWN), only_read))),
            ("tools", _list(tools, _TOOLS_SHOWN)),
            ("commands", _list(commands, _COMMANDS_SHOWN)),
            ("commits", ", ".join(summary.commits)),
            ("requests", ", ".join(summary.pull_requests)),
            ("packages", ", ".join(summary.packages)),
            ("errors", f"{count(mended, 'error')} met and mended" if mended else ""),
            ("pages", " ".join(summary.urls)),
        ),
        indent=2,
    )


def _render_errors(paper: Paper, errors: Sequence[ErrorMet]) -> None:
    paper.heading("Met and not seen to work after")
    for error in errors[:_ERRORS_SHOWN]:
        paper.line(dim(f"{error.call}{_times(error.times)}"), indent=2, hang=2)
        paper.framed(error.text, "what a tool put out", indent=4)
    if len(errors) > _ERRORS_SHOWN:
        paper.line(dim(f"and {len(errors) - _ERRORS_SHOWN:,} more: --json has them"), indent=2)


def _list(items: Iterable[str], most: int) -> str:
    found = list(items)
    more = f" and {len(found) - most:,} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def _times(number: int) -> str:
    return f" ×{number:,}" if number > 1 else ""


def _failed(number: int) -> str:
    return f" ({number:,} failed)" if number else ""
