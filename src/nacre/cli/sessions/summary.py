"""``nacre sessions summary``: a session in brief."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.formats import Record, count, speaker_name
from nacre.cli.memories.memory import memory_record
from nacre.cli.operations import ask
from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.request_options import argument
from nacre.cli.run import Run
from nacre.cli.sessions.session import render_facts, render_outcome, session_facts_record, tell_which
from nacre.values import session

if TYPE_CHECKING:
    from nacre.values.summary import ErrorMet, SessionOutcome, Summary
    from nacre.views import SessionReport


_FILES_SHOWN = 12
_ERRORS_SHOWN = 3
_TOOLS_SHOWN = 8
_COMMANDS_SHOWN = 10
_TINTS = {"done": "bold green", "failed": "bold red", "stopped": "bold yellow", "unknown": "dim"}
_LOOSE = {
    "request": "unfinished", "question": "asked", "todo": "to do", "next step": "left",
    "failing": "fails",
}  # fmt: skip


@command(
    "summary",
    examples=[
        "nacre sessions summary",
        "nacre sessions summary 7f3a1c2d 019fc8be-3658",
        "nacre sessions summary claude-code:7f3a1c2d --json",
    ],
)
@argument("session-summary", "reference", metavar="[ID]...", nargs=-1)
@click.pass_obj
def summary(run: Run, reference: tuple[str, ...]) -> None:
    """Sum up sessions: what was asked, how it ended, what was left, what was done.

    ID is the session's id at its tool, or the beginning of it; without one, the last session of this folder. No model
    is asked: the words are yours and the agent's own, none that draw on text from outside.
    """
    here, named = str(Path.cwd()), dict.fromkeys(reference or (None,))
    reports = [ask(run, "session-summary", reference=one, folder=here) for one in named]
    tell_which(run, next(iter(named)), reports[0].view.session)

    def render(paper: Paper) -> None:
        for number, report in enumerate(reports):
            if number:
                paper.blank()
                paper.line("─" * 40)
                paper.blank()
            _render_summary(paper, report)

    run.answer({"summaries": [_summary_record(report) for report in reports]}, render)


def _summary_record(report: SessionReport) -> Record:
    """What a session was about."""
    summary = report.summary
    return {
        **session_facts_record(report.view),
        "topics": [
            {"text": topic.text, "turn_id": topic.turn, "speaker": topic.speaker.value, "work": topic.work}
            for topic in summary.topics
        ],
        "outcome": _outcome_record(summary.outcome),
        "open_ends": [
            {"kind": end.kind.value, "text": end.text, "speaker": end.speaker.value, "turn_id": end.turn}
            for end in summary.open_ends
        ],
        "tools": [
            {"name": tool.name, "action": tool.action.value, "calls": tool.calls, "failed": tool.failed}
            for tool in summary.tools
        ],
        "files": [{"path": file.path, "edits": file.edits, "reads": file.reads} for file in summary.files],
        "commands": [
            {"name": command.name, "runs": command.runs, "failed": command.failed} for command in summary.commands
        ],
        "commits": list(summary.commits),
        "pull_requests": list(summary.pull_requests),
        "errors": [
            {
                "error": error.text, "trust": session.Trust.UNTRUSTED.value, "call": error.call, "times": error.times,
                "mended": error.mended,
            }
            for error in summary.errors
        ],
        "packages": list(summary.packages),
        "urls": list(summary.urls),
        "memories": [memory_record(memory) for memory in report.view.memories],
    }  # fmt: skip


def _outcome_record(outcome: SessionOutcome) -> Record:
    return {
        "ending": outcome.ending.value, "reason": outcome.reason, "words": outcome.words,
        "speaker": outcome.speaker and outcome.speaker.value, "turn_id": outcome.turn,
    }  # fmt: skip


def _render_summary(paper: Paper, report: SessionReport) -> None:
    """Facts, what was asked, how it ended, what was left, what was done."""
    summary = report.summary
    render_facts(paper, report.view)
    if summary.topics:
        paper.heading("Asked for")
        for topic in summary.topics:
            who = "" if topic.speaker is session.Speaker.OWNER else f"{speaker_name(topic.speaker)}: "
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
    render_outcome(paper, report.view)


def _to_you(reason: str) -> str:
    """A reason as the person reads it whom it calls the owner."""
    for told, said in (("the owner is", "you are"), ("the owner's", "your"), ("the owner", "you")):
        reason = reason.replace(told, said)
    return reason


def _render_outcome(paper: Paper, outcome: SessionOutcome) -> None:
    paper.line(Span(outcome.ending.value, _TINTS[outcome.ending]), dim(f"  {_to_you(outcome.reason)}"), indent=2)
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
