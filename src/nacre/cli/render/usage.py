"""How memories are used, for people: verdicts, what waits for review, what is used together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nacre.cli.paper import Paper, Span, bold, dim, joined
from nacre.cli.render.words import SHORT_ID, count, kind_span, short_id, when
from nacre.text.passages import normalise, shorten
from nacre.values.review import FeedbackReport, Judged, Reason, Verdict

if TYPE_CHECKING:
    from nacre.views import CompanionView, Review

_TINTS = {Verdict.USED: "green", Verdict.UNUSED: "dim", Verdict.CORRECTED: "yellow"}
_BY_PERSON = {Verdict.USED: "good", Verdict.CORRECTED: "bad"}
_CONTENT_CHARACTERS = 240


def render_feedback(paper: Paper, report: FeedbackReport) -> None:
    """One line a memory: the verdict, its quality before and after."""
    if report.note:
        paper.line(f"Nothing changed: {report.note}.")
    paper.table([_judged_row(item) for item in report.judged])
    if any(item.verdict is Verdict.CORRECTED and item.likeness is None for item in report.judged):
        paper.line(dim("nacre review lists what you called bad"))


def _judged_row(item: Judged) -> tuple[Span | str, ...]:
    said = item.verdict.value if item.likeness is not None else _BY_PERSON[item.verdict]
    return (
        Span(said, _TINTS[item.verdict]), dim(item.memory_id[-SHORT_ID:]),
        f"quality {item.before:.2f} → {item.after:.2f}", item.subject,
    )  # fmt: skip


def render_reviews(paper: Paper, waiting: Sequence[Review]) -> None:
    """What waits, why, and the two ways out."""
    if not waiting:
        paper.line("Nothing waits for review.")
        return
    for review in waiting:
        memory = review.memory
        paper.line(kind_span(memory.kind), "  ", bold(memory.subject), hang=2)
        if normalise(memory.content) != normalise(memory.subject):
            paper.line(shorten(memory.content, _CONTENT_CHARACTERS), indent=2)
        why = joined((review.entry.reason.value.replace("_", " "), review.entry.detail), ": ")
        paper.line(Span(why, "yellow"), indent=2)
        facts = (memory.project, f"recalled {count(review.usage.recall_count, 'time')}", when(review.entry.since))
        paper.line(dim(joined((*facts, short_id(memory)))), indent=2)
        paper.blank()
    if any(review.entry.reason is Reason.CONTRADICTED for review in waiting):
        paper.line(dim("nacre conflicts shows those that contradict each other side by side"))
    paper.line(dim("nacre review dismiss ID keeps a memory, replace ID lets the newer one hold, retire ID retires it"))


def render_together(paper: Paper, together: Sequence[CompanionView]) -> None:
    """The memories that are used together with one, and how often they were."""
    paper.heading("Used or learned together with")
    rows = [
        (f"{item.weight:.2f}", dim(short_id(item.memory)), count(item.sessions, "time"), item.memory.subject)
        for item in together
    ]
    paper.table(rows, indent=2)
