"""``nacre feedback``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.cli.command import command
from nacre.cli.formats import SHORT_ID, Record
from nacre.cli.operations import perform
from nacre.cli.options import SESSION, read_content
from nacre.cli.paper import Paper, Span, dim
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.values import review

if TYPE_CHECKING:
    from nacre.values.review import FeedbackReport, Judged

_TINTS = {"used": "green", "unused": "dim", "corrected": "yellow"}
_BY_PERSON = {"used": "good", "corrected": "bad"}


@command(
    "feedback",
    examples=[
        "nacre feedback --session 7f3a1c2d --reply reply.md",
        "cat reply.md | nacre feedback 5f0c2a4d 9b1e0c3e",
        "nacre feedback 5f0c2a4d --bad",
    ],
)
@argument("feedback", "references", metavar="[ID]...")
@SESSION
@option(
    "feedback",
    "reply",
    required=False,
    type=click.Path(dir_okay=False, exists=True, allow_dash=True),
    help="A file with the agent's reply; standard input where it is left out.",
)
@option("feedback", "stored", "--stored", help="A memory that the agent stored itself meanwhile.")
@click.option("--good/--bad", "good", default=None, help="Your own verdict, in place of a reply.")
@click.pass_obj
def feedback(
    run: Run, references: tuple[str, ...], session: str | None, reply: str | None, stored: tuple[str, ...],
    good: bool | None,
) -> None:  # fmt: skip
    """Tell whether recalled memories were of use.

    An agent's reply is compared with the memories that were recalled for it: those named, else those used in the
    session since the last feedback. A memory whose words are in the reply gains quality, one that is not loses a
    little, and one that the agent stored anew loses more. The reply itself is not kept. With --good or --bad the
    verdict is yours; what is bad also waits in nacre review.
    """
    if good is None:
        words = _reply(run, reply)
        report = perform(run, "feedback", reply=words, references=references, session=session, stored=stored)
    else:
        report = _verdict(run, references, good=good, is_mixed=bool(reply or stored or session))
    run.answer(_feedback_record(report), lambda paper: _render_feedback(paper, report))


def _verdict(run: Run, references: tuple[str, ...], *, good: bool, is_mixed: bool) -> FeedbackReport:
    if is_mixed or not references:
        raise click.UsageError("--good and --bad take memories, and nothing else", click.get_current_context())
    report: FeedbackReport = perform(run, "feedback-judge", references=references, good=good)
    return report


def _reply(run: Run, path: str | None) -> str:
    if path and path != "-":
        return Path(path).read_text(encoding="utf-8", errors="replace")
    if run.is_interactive:
        raise click.UsageError(
            "there is no reply to judge by: name a file with --reply, or say --good or --bad",
            click.get_current_context(),
        )
    return read_content("-")


def _feedback_record(report: FeedbackReport) -> Record:
    """What a reply or a person said of memories."""
    return {
        "judged": [
            {
                "id": item.memory_id,
                "subject": item.subject,
                "verdict": item.verdict.value,
                "likeness": None if item.likeness is None else round(item.likeness, 4),
                "quality_before": round(item.before, 4),
                "quality": round(item.after, 4),
            }
            for item in report.judged
        ],
        "by": report.by,
        "message": report.note,
    }


def _render_feedback(paper: Paper, report: FeedbackReport) -> None:
    """One line a memory: the verdict, its quality before and after."""
    if report.note:
        paper.line(f"Nothing changed: {report.note}.")
    paper.table([_judged_row(item) for item in report.judged])
    if any(item.verdict is review.Verdict.CORRECTED and item.likeness is None for item in report.judged):
        paper.line(dim("nacre review lists what you called bad"))


def _judged_row(item: Judged) -> tuple[Span | str, ...]:
    said = item.verdict.value if item.likeness is not None else _BY_PERSON[item.verdict]
    return (
        Span(said, _TINTS[item.verdict]), dim(item.memory_id[-SHORT_ID:]),
        f"quality {item.before:.2f} → {item.after:.2f}", item.subject,
    )  # fmt: skip
