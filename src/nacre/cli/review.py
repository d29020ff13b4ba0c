"""``nacre review``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from nacre.base.text import shorten
from nacre.cli import hits, terminal
from nacre.cli.command import DefaultGroup, Paper, Run, Span, bold, command, dim, joined
from nacre.cli.operations import ask, perform
from nacre.cli.options import (
    SESSION,
    SHORT_ID,
    YES,
    argument,
    count,
    option,
    options,
    read_content,
    when,
)
from nacre.errors import DepartedError
from nacre.home import views
from nacre.memories import store
from nacre.recall import recall
from nacre.review import queue
from nacre.values import review as reviews

if TYPE_CHECKING:
    from nacre.values.review import (
        FeedbackReport,
        Judged,
        Unanswered,
        UnansweredQuestion,
    )

_OUTCOMES = {
    "keep-new": "the newer memory supersedes the older one",
    "keep-old": "the older memory is kept, the newer one retired",
    "keep-both": "both are kept",
}


@click.group(
    "review",
    cls=DefaultGroup,
    places={name: f"review:{name}" for name in ("feedback", "gaps")},
    examples=[
        "nacre review --only candidate --json",
        "nacre review keep 5f0c2a4d",
        "nacre review resolve 5f0c2a4d keep-new",
    ],
)
@options("review", "project", "only", "limit", "offset")
def review(run: Run, **request: Any) -> None:
    """Review pending items: keep, change or drop them.

    Two memories are pending if they contradict each other and nacre cannot tell which one is true. A memory is pending
    if an agent proposed or changed it, if it is recalled often but rarely used, or if you rated it as bad. Candidates
    are possible memories. Agents do not get them, and they are deleted after 90 days.

    On a terminal, all items are shown one by one, with keys to keep, edit, merge, drop or skip an item, and to undo the
    last decision. Otherwise, or with options, the command lists conflicts, then doubtful memories, then candidates.
    """
    context = click.get_current_context()
    is_narrowed = any(
        context.get_parameter_source(name) is ParameterSource.COMMANDLINE for name in request
    )
    if not is_narrowed and terminal.can_be_drawn(run):
        terminal.go_through(run, ask(run, views.PendingPage, "review", limit=0).items)
        return
    run.present(ask(run, views.PendingPage, "review", **request), _render)


@review.command(
    "keep", examples=["nacre review keep 5f0c2a4d", "nacre review keep 5f0c2a4d --into 3f9a01c2"]
)
@argument("review-keep", "references", metavar="ID...")
@options("review-keep", "content", "into", "anyway")
def keep(run: Run, references: tuple[str, ...], **fields: Any) -> None:
    """Keep pending items.

    Candidates become memories. A doubtful memory is kept even if a newer memory seemed to contradict it, with a quality
    of at least .3.
    """
    try:
        memories = perform(run, queue.keep_items, references=references, **fields)
    except DepartedError as error:
        if not run.is_interactive:
            raise
        run.confirm(f"{error.message[:1].upper()}{error.message[1:]}. Keep it anyway?")
        memories = perform(
            run, queue.keep_items, references=references, **{**fields, "anyway": True}
        )
    run.answer({"kept": memories}, hits.render_outcomes, "Kept", memories)


@review.command(
    "drop",
    examples=["nacre review drop 5f0c2a4d", "nacre review drop 5f0c2a4d --reason 'no longer so'"],
)
@argument("review-drop", "references", metavar="ID...")
@option("review-drop", "reason")
@YES
def drop(run: Run, references: tuple[str, ...], reason: str | None, yes: bool) -> None:
    """Delete candidates, and retire memories that might be outdated.

    The files of retired memories are kept. On a terminal, the command asks before it retires memories.
    """
    if run.is_interactive and not yes:
        memories = [
            store.get(run.home, reference)
            for reference in references
            if not run.home.candidates.find(reference.strip())
        ]
        if memories:
            run.show(hits.render_table, memories)
            run.confirm("Retire?")
    items = perform(run, queue.drop, references=references, reason=reason)
    run.answer({"dropped": items}, hits.render_outcomes, "Dropped", items)


@review.command(
    "resolve",
    examples=[
        "nacre review resolve 5f0c2a4d keep-new",
        "nacre review resolve 5f0c2a4d+91d0a4be keep-both --reason 'one is for staging'",
    ],
)
@argument("review-resolve", "reference", metavar="ID")
@argument("review-resolve", "choice")
@option("review-resolve", "reason")
def resolve(run: Run, reference: str, choice: str, reason: str | None) -> None:
    """Resolve a conflict between two memories.

    keep-new: the newer memory supersedes the older one. keep-old: the newer memory is retired. keep-both: both are
    kept, and are not reported again. nacre undo reverts it.
    """
    settled = perform(run, queue.resolve, reference=reference, choice=choice, reason=reason)
    outcome = f"  {settled.older.subject}: {_OUTCOMES[choice]}"
    run.answer(settled, Paper.line, bold("Resolved"), outcome, hang=2)


def _render(paper: Paper, page: views.PendingPage) -> None:
    if not page.items:
        paper.line("Nothing is pending.")
        return
    for item in page.items:
        ids = [memory.id[-SHORT_ID:] for memory in (item.memory, item.newer) if memory]
        terminal.render_item(paper, item, bold("+".join(ids)))
        paper.blank()
    paper.note(
        f"{len(page.items):,} of {count(page.total, 'item')}; nacre review keep ID keeps one"
    )
    paper.note("nacre review drop ID drops a candidate or retires a doubtful memory")
    if page.conflicts:
        paper.note("nacre review resolve ID keep-new, keep-old or keep-both resolves a conflict")


# ----------------------------------------------------------------------------
# ``nacre review feedback``.


_TINTS = {"used": "green", "unused": "dim", "corrected": "yellow"}
_BY_PERSON = {"used": "good", "corrected": "bad"}


@command(
    "feedback",
    examples=[
        "nacre review feedback --session 7f3a1c2d --reply reply.md",
        "cat reply.md | nacre review feedback 5f0c2a4d 9b1e0c3e",
        "nacre review feedback 5f0c2a4d --bad",
    ],
)
@argument("feedback", "references", metavar="[ID]...")
@SESSION
@option(
    "feedback",
    "reply",
    required=False,
    type=click.Path(dir_okay=False, exists=True, allow_dash=True),
    help="A file with the agent's reply [default: standard input].",
)
@option("feedback", "stored", "--stored")
@click.option(
    "--good/--bad", "good", default=None, help="Rate the memories yourself, without a reply."
)
def feedback(run: Run, reply: str | None, good: bool | None, **judged: Any) -> None:
    """Rate whether recalled memories were useful.

    An agent's reply is compared with the named memories, or else with memories recalled in the session since the last
    feedback. A memory whose words are in the reply gains quality, other memories lose a little, and a memory that the
    agent stored again loses more. The reply is not stored. With --good or --bad, you rate the memories yourself. Bad
    memories are also pending in nacre review.
    """
    if good is None:
        report = perform(run, recall.feedback, reply=_reply(run, reply), **judged)
    elif reply or judged["stored"] or judged["session"] or not judged["references"]:
        raise click.UsageError("--good and --bad require memories and no other options")
    else:
        report = perform(run, recall.judge, references=judged["references"], good=good)
    run.present(report, _render_feedback)


def _reply(run: Run, path: str | None) -> str:
    if path and path != "-":
        return Path(path).read_text(encoding="utf-8", errors="replace")
    if run.is_interactive:
        raise click.UsageError("no reply: pass --reply FILE, --good or --bad")
    return read_content("-")


def _render_feedback(paper: Paper, report: FeedbackReport) -> None:
    if report.note:
        paper.line(f"Nothing changed: {report.note}.")
    paper.table([_judged_row(item) for item in report.judged])
    if any(
        item.verdict is reviews.Verdict.CORRECTED and item.likeness is None
        for item in report.judged
    ):
        paper.note("nacre review lists memories rated as bad")


def _judged_row(item: Judged) -> tuple[Span | str, ...]:
    verdict = item.verdict.value if item.likeness is not None else _BY_PERSON[item.verdict]
    return (
        Span(verdict, _TINTS[item.verdict]),
        dim(item.memory_id[-SHORT_ID:]),
        f"quality {item.before:.2f} → {item.after:.2f}",
        item.subject,
    )


# ----------------------------------------------------------------------------
# ``nacre review gaps``.


_WORDINGS_SHOWN = 3
_CHARACTERS_GAPS = 160


@command(
    "gaps",
    examples=[
        "nacre review gaps",
        "nacre review gaps --project . --min-times 2",
    ],
)
@options("unanswered", "days", "project", "min_times")
@option("unanswered", "limit", "--limit", "-n")
def gaps(run: Run, **request: Any) -> None:
    """List questions that nacre could not answer.

    Similar questions are grouped, the most frequent first. Questions that nacre can answer now are closed.
    """
    report = ask(run, reviews.Unanswered, "unanswered", **request)
    has_log = run.settings.whole("traces.keep_days") > 0
    run.present(report, _render_gaps, request, has_log=has_log)


def _render_gaps(
    paper: Paper, report: Unanswered, request: dict[str, Any], *, has_log: bool
) -> None:
    if not has_log:
        paper.line("Questions are not stored: traces.keep_days is 0.", hang=2)
    if not report.gaps:
        is_narrowed = request["project"] is not None or request["min_times"] > 1
        paper.line(
            f"No unanswered questions in the last {request['days']} days{' match' * is_narrowed}."
        )
    for gap in report.gaps:
        _render_gap(paper, gap)
    remaining = report.total - len(report.gaps)
    more = joined(
        (
            f"{remaining} more" if remaining else "",
            f"{report.closed} answered since" if report.closed else "",
        ),
        "; ",
    )
    if more:
        paper.note(f"{more[:1].upper()}{more[1:]}.")
    if report.gaps:
        paper.note('nacre store "…" answers a question', hang=2)


def _render_gap(paper: Paper, gap: UnansweredQuestion) -> None:
    paper.line(dim(gap.id), "  ", bold(shorten(gap.question, _CHARACTERS_GAPS)), hang=10)
    near = count(gap.unsure, "near miss", "near misses") if gap.unsure else ""
    facts = (
        f"asked {count(gap.times, 'time')}",
        near,
        f"last {when(gap.last)}",
        ", ".join(gap.projects),
    )
    paper.note(joined(facts), indent=10)
    for wording in gap.wordings[:_WORDINGS_SHOWN]:
        paper.line(dim("also: "), shorten(wording, _CHARACTERS_GAPS), indent=10)
    if len(gap.wordings) > _WORDINGS_SHOWN:
        paper.note(f"and {count(len(gap.wordings) - _WORDINGS_SHOWN, 'more wording')}", indent=10)
    paper.blank()
